// Whether a member may be removed at an operator's word. Pure: it gives the change to propose.

import type { MembershipChange } from '../../raft/membership/membership-change.ts';
import type { NodeId } from '../../raft/node-id.ts';
import { GroupRefusal } from '../../replica/group-refusal.ts';
import type { MemberView } from '../group-member.ts';
import { quorumOf } from './autopilot.ts';

/**
 * Throws GroupRefusal 'refused' where nothing but an empty data folder would be left, or no quorum that
 * answers. The member that goes may be the very one whose word commits its removal, so nothing but this
 * keeps the others from being left without a quorum.
 */
export function removalChange(
  node: NodeId,
  members: readonly MemberView[],
  isAnswering: (member: MemberView) => boolean,
): MembershipChange {
  const member = members.find((each) => each.node === node);
  if (member === undefined) {
    throw new GroupRefusal('refused', `no member of the cluster has the number ${node}`);
  }
  const left = members.filter((each) => each.isVoter && each.node !== node);
  if (left.length === 0) {
    const says = `${member.name} is the only voter: without it the cluster would be gone`;
    throw new GroupRefusal('refused', says);
  }
  const silent = left.filter((each) => !isAnswering(each));
  const quorum = quorumOf(left.length);
  if (member.isVoter && left.length - silent.length < quorum) {
    const names = silent.map(({ name }) => name).join(', ');
    const says =
      `without ${member.name} there would be ${left.length} voters, of whom ${quorum} must answer, and ` +
      `there is no answer from ${names}: the cluster could write nothing. Bring back, or remove first, ` +
      'whoever does not answer';
    throw new GroupRefusal('refused', says);
  }
  const changes = [{ kind: 'remove', node } as const];
  return { transition: 'auto', changes, context: new Uint8Array(0) };
}
