// The published quorum cases: a membership and what its voters have acknowledged or voted, against a bar
// chart and the result. Each case is also computed in other ways that must not matter.

import {
  majorityIndex,
  majorityVote,
  quorumIndex,
  quorumVote,
  type VoteResult,
} from '../../../cluster/raft/membership/quorum.ts';
import { type NodeId, unionOf } from '../../../cluster/raft/node-id.ts';
import type { Case } from './datadriven.ts';

const VOTE_NAMES: Readonly<Record<VoteResult, string>> = {
  won: 'VoteWon',
  lost: 'VoteLost',
  pending: 'VotePending',
};

/** Runs one case; a line with `<--` in the answer says which other way disagreed. */
export function runQuorumCase({ command, args, line }: Case): string {
  const wordsOf = (key: string) => args.find((arg) => arg.key === key)?.values ?? [];
  const idsOf = (key: string) => wordsOf(key).map(Number).filter(Number.isFinite);
  const isJoint = args.some(({ key }) => key === 'cfgj');
  const [voters, votersOutgoing] = [idsOf('cfg'), idsOf('cfgj')];
  // What was said belongs to the voters in the order in which they are first named.
  const named = [...new Set([...voters, ...votersOutgoing])];
  const said = [...wordsOf('idx'), ...wordsOf('votes')];
  const input = new Map(named.map((id, position) => [id, said[position] ?? '_'] as const));
  switch (command) {
    case 'committed':
      return committed(voters, votersOutgoing, { isJoint, input });
    case 'vote':
      return voted(voters, votersOutgoing, { isJoint, input });
    default:
      throw new Error(`line ${line}: no such command`);
  }
}

/** The highest index that at least a majority has reached, by trying them all. */
export function majorityIndexByTrying(
  voters: readonly NodeId[],
  acked: ReadonlyMap<NodeId, number>,
): number {
  if (voters.length === 0) return Number.POSITIVE_INFINITY;
  const candidates = [0, ...acked.values()].sort((a, b) => b - a);
  const reachedBy = (index: number) =>
    voters.filter((voter) => (acked.get(voter) ?? 0) >= index).length;
  return candidates.find((index) => 2 * reachedBy(index) > voters.length) ?? 0;
}

interface Said {
  readonly isJoint: boolean;
  readonly input: ReadonlyMap<NodeId, string>;
}

function committed(
  voters: readonly NodeId[],
  votersOutgoing: readonly NodeId[],
  { isJoint, input }: Said,
): string {
  const acked = new Map<NodeId, number>();
  for (const [id, index] of input) if (index !== '_') acked.set(id, Number(index));
  const ackedOf = (id: NodeId) => acked.get(id);
  const index = quorumIndex({ voters, votersOutgoing }, ackedOf);
  const ways: Record<string, number> = isJoint
    ? { symmetry: quorumIndex({ voters: votersOutgoing, votersOutgoing: voters }, ackedOf) }
    : {
        'one half': majorityIndex(voters, ackedOf),
        'joint with itself': quorumIndex({ voters, votersOutgoing: voters }, ackedOf),
        trying: majorityIndexByTrying(voters, acked),
      };
  const wrong = Object.entries(ways).filter(([, other]) => other !== index);
  const lines = wrong.map(([way, other]) => `${other} <-- ${way}\n`);
  const everyone = unionOf(voters, votersOutgoing);
  return `${chart(everyone, acked)}${lines.join('')}${Number.isFinite(index) ? index : '∞'}`;
}

function voted(
  voters: readonly NodeId[],
  votersOutgoing: readonly NodeId[],
  { isJoint, input }: Said,
): string {
  const votes = new Map<NodeId, boolean>();
  for (const [id, vote] of input) if (vote !== '_') votes.set(id, vote === 'y');
  const result = quorumVote({ voters, votersOutgoing }, votes);
  const other = isJoint
    ? quorumVote({ voters: votersOutgoing, votersOutgoing: voters }, votes)
    : majorityVote(voters, votes);
  const disagrees = other === result ? [] : [`${VOTE_NAMES[other]} <-- the other way`];
  return [...disagrees, VOTE_NAMES[result]].join('\n');
}

/** One line a voter: a bar that grows with its place in the order of what is acknowledged. */
function chart(voters: readonly NodeId[], acked: ReadonlyMap<NodeId, number>): string {
  if (voters.length === 0) return '<empty majority quorum>';
  const count = voters.length;
  const indexOf = (id: NodeId) => acked.get(id) ?? 0;
  const lines = voters.map((id) => {
    const lower = voters.filter((other) => indexOf(other) < indexOf(id)).length;
    const bar = acked.has(id)
      ? `${'x'.repeat(lower)}>${' '.repeat(count - lower)}`
      : `?${' '.repeat(count)}`;
    return `${bar} ${String(indexOf(id)).padStart(5)}    (id=${id.toString(16)})`;
  });
  return [`${' '.repeat(count)}    idx`, ...lines, ''].join('\n');
}
