// Quorums counted the slow way, by trying every set of nodes: groups are small, and the arithmetic of
// the product is what is checked.

import { type Membership, votersOf } from '../../../cluster/raft/membership/membership.ts';
import type { NodeId } from '../../../cluster/raft/node-id.ts';

/** Whether these nodes can decide alone. */
export function isQuorumOf(nodes: readonly NodeId[], membership: Membership): boolean {
  const { voters, votersOutgoing } = membership;
  return [voters, votersOutgoing].every((half) => {
    return (
      half.length === 0 || 2 * half.filter((voter) => nodes.includes(voter)).length > half.length
    );
  });
}

/** Whether no two sets of nodes that share nobody can decide, one under each membership. */
export function everyQuorumMeets(left: Membership, right: Membership): boolean {
  const all = [...new Set([...votersOf(left), ...votersOf(right)])];
  for (let chosen = 0; chosen < 2 ** all.length; chosen += 1) {
    const side = all.filter((_, place) => (chosen & (1 << place)) !== 0);
    const rest = all.filter((node) => !side.includes(node));
    if (isQuorumOf(side, left) && isQuorumOf(rest, right)) return false;
  }
  return true;
}
