// Whose state is wrong, when digests of one index differ. The digest that most voters have is right;
// while it could still be another's, nobody is judged. Pure.

import type { NodeId } from '../../raft/node-id.ts';
import { quorumOf } from '../leading/autopilot.ts';

export interface DigestSaid {
  readonly node: NodeId;
  readonly isVoter: boolean;
  /** Undefined: it did not answer, or does not know that index. */
  readonly digest: string | undefined;
}

export type DigestVerdict =
  | { readonly kind: 'equal' }
  /** They differ, and who is right cannot be told before others answer. */
  | { readonly kind: 'open'; readonly says: string }
  | {
      readonly kind: 'wrong';
      readonly right: string;
      readonly nodes: readonly NodeId[];
      /** Those of them that must lose their votes before they stop: the others would be no quorum. */
      readonly voters: readonly NodeId[];
    };

/** Of all members; the leader among them. Where votes are even, the leader's digest counts. */
export function digestVerdict(said: readonly DigestSaid[], leader: NodeId): DigestVerdict {
  const known = said.filter(({ digest }) => digest !== undefined);
  const digests = new Set(known.map(({ digest }) => digest));
  if (digests.size <= 1) return { kind: 'equal' };
  const right = rightDigest(said, leader);
  if (right === undefined) {
    const silent = said.filter(({ isVoter, digest }) => isVoter && digest === undefined);
    const says = `digests differ, and ${silent.length} voters have not said theirs`;
    return { kind: 'open', says };
  }
  const wrong = known.filter(({ digest }) => digest !== right);
  const voters = said.filter(({ isVoter }) => isVoter);
  const rightCount = voters.filter(({ digest }) => digest === right).length;
  const isQuorum = rightCount >= quorumOf(voters.length);
  return {
    kind: 'wrong',
    right,
    nodes: wrong.map(({ node }) => node),
    voters: isQuorum ? [] : wrong.filter(({ isVoter }) => isVoter).map(({ node }) => node),
  };
}

function rightDigest(said: readonly DigestSaid[], leader: NodeId): string | undefined {
  const voters = said.filter(({ isVoter }) => isVoter);
  const countByDigest = new Map<string, number>();
  for (const { digest } of voters) {
    if (digest !== undefined) countByDigest.set(digest, (countByDigest.get(digest) ?? 0) + 1);
  }
  for (const [digest, count] of countByDigest) {
    if (count >= quorumOf(voters.length)) return digest;
  }
  const isComplete = voters.every(({ digest }) => digest !== undefined);
  return isComplete ? said.find(({ node }) => node === leader)?.digest : undefined;
}
