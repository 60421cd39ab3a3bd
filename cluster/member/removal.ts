// Whether a member may be removed at an operator's word. Pure: it gives the change to propose.

import type { MembershipChange } from '../raft/membership-change.ts';
import type { NodeId } from '../raft/node-id.ts';
import { GroupRefusal } from '../replica/group-refusal.ts';
import { quorumOf } from './autopilot.ts';
import type { MemberView } from './group-member.ts';

/** Throws GroupRefusal 'refused' where nothing but an empty data folder would be left, or no quorum. */
export function removalChange(node: NodeId, members: readonly MemberView[]): MembershipChange {
  const member = members.find((each) => each.node === node);
  if (member === undefined) {
    throw new GroupRefusal('refused', `no member of the cluster has the number ${node}`);
  }
  const left = members.filter((each) => each.isVoter && each.node !== node);
  if (left.length === 0) {
    const says = `${member.name} is the only voter: without it the cluster would be gone`;
    throw new GroupRefusal('refused', says);
  }
  const livingCount = left.filter(({ isAlive }) => isAlive).length;
  if (member.isVoter && livingCount < quorumOf(left.length)) {
    const says =
      `without ${member.name} there would be ${left.length} voters, and only ${livingCount} of them are ` +
      'alive: the cluster could write nothing. Bring the others back first, or replace them';
    throw new GroupRefusal('refused', says);
  }
  const changes = [{ kind: 'remove', node } as const];
  return { transition: 'auto', changes, context: new Uint8Array(0) };
}
