// Arithmetic of majorities: which index a quorum has reached, and how a vote stands.
// An empty half of a joint membership agrees to everything, so that one half alone decides.

import type { NodeId } from '../node-id.ts';

/** How a vote stands: still open, no longer winnable, or granted by a quorum. */
export type VoteResult = 'pending' | 'lost' | 'won';

/** Those whose majorities decide. Both halves must agree while `votersOutgoing` is not empty. */
export interface Voters {
  readonly voters: readonly NodeId[];
  readonly votersOutgoing: readonly NodeId[];
}

/** What a voter has acknowledged, or undefined while it has said nothing. */
export type AckedIndexOf = (voter: NodeId) => number | undefined;

/** The highest index that a majority of `voters` has acknowledged; Infinity for no voters. */
export function majorityIndex(voters: readonly NodeId[], ackedIndexOf: AckedIndexOf): number {
  if (voters.length === 0) return Number.POSITIVE_INFINITY;
  const ascending = voters.map((voter) => ackedIndexOf(voter) ?? 0).sort((a, b) => a - b);
  // Counted from the top, the last member of the smallest majority is the slowest that is needed.
  const slowestNeeded = voters.length - majorityOf(voters.length);
  return ascending[slowestNeeded] ?? 0;
}

/** The highest index that majorities of both halves have acknowledged. */
export function quorumIndex(group: Voters, ackedIndexOf: AckedIndexOf): number {
  return Math.min(
    majorityIndex(group.voters, ackedIndexOf),
    majorityIndex(group.votersOutgoing, ackedIndexOf),
  );
}

/** How a vote among `voters` stands; no voters means won. Votes of others do not count. */
export function majorityVote(
  voters: readonly NodeId[],
  votes: ReadonlyMap<NodeId, boolean>,
): VoteResult {
  if (voters.length === 0) return 'won';
  let granted = 0;
  let missing = 0;
  for (const voter of voters) {
    const vote = votes.get(voter);
    if (vote === undefined) missing += 1;
    else if (vote) granted += 1;
  }
  const needed = majorityOf(voters.length);
  if (granted >= needed) return 'won';
  return granted + missing >= needed ? 'pending' : 'lost';
}

/** How a vote stands that needs majorities of both halves. */
export function quorumVote(group: Voters, votes: ReadonlyMap<NodeId, boolean>): VoteResult {
  const incoming = majorityVote(group.voters, votes);
  const outgoing = majorityVote(group.votersOutgoing, votes);
  if (incoming === outgoing) return incoming;
  return incoming === 'lost' || outgoing === 'lost' ? 'lost' : 'pending';
}

function majorityOf(count: number): number {
  return Math.floor(count / 2) + 1;
}
