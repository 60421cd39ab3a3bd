// The members of a group as one of them sees them: who they are, from the group's record; how they do,
// from the replica where this node leads, else from its links.

import type { NodeId } from '../../raft/node-id.ts';
import type { GroupRecord, MemberRecord } from '../../replica/group-record.ts';
import type { GroupStatus } from '../../replica/group-replica.ts';
import type { ReplicaStatus } from '../../replica/replica.ts';
import type { PeerStatus } from '../../transport/transport.ts';
import type { MemberView } from '../group-member.ts';

export interface Sight {
  readonly self: NodeId;
  /** Up to which level it reads what the log says. */
  readonly reads: number;
  readonly group: GroupRecord;
  readonly status: ReplicaStatus;
  readonly groupStatus: GroupStatus;
  readonly peers: readonly PeerStatus[];
  /** Who was not heard for so long is not alive. */
  readonly aliveMs: number;
}

export function memberViews(sight: Sight): readonly MemberView[] {
  return sight.group.members.map((member) => viewOf(member, sight));
}

function viewOf(member: MemberRecord, sight: Sight): MemberView {
  const { self, group, groupStatus, aliveMs } = sight;
  const { node } = member;
  const heardMs = heardMsOf(node, sight);
  const peer = sight.peers.find((each) => each.node === node);
  const linkHeardMs = peer?.lastHeardMs;
  const isSelf = node === self;
  // What it was before its link broke, it may not be when it comes back.
  const linkReads = peer?.isLinked === true ? peer.reads : undefined;
  return {
    ...member,
    isSelf,
    isLeader: groupStatus.leader === node,
    isVoter: group.membership.voters.includes(node),
    reads: isSelf ? sight.reads : linkReads,
    isAlive: isSelf || Math.min(heardMs ?? aliveMs, linkHeardMs ?? aliveMs) < aliveMs,
    lastContactMs: heardMs,
    lastIndex: lastIndexOf(node, sight),
  };
}

/** On a leader what counts is what its followers answer; elsewhere, that there is somebody. */
function heardMsOf(node: NodeId, sight: Sight): number | undefined {
  const { self, status, groupStatus, peers } = sight;
  if (node === self) return 0;
  if (status.standing === 'leader') {
    return groupStatus.followers.find((follower) => follower.node === node)?.lastHeardMs;
  }
  if (node === groupStatus.leader) return groupStatus.lastContactMs;
  return peers.find((peer) => peer.node === node)?.lastHeardMs;
}

function lastIndexOf(node: NodeId, { self, status, groupStatus }: Sight): number | undefined {
  if (node === self) return status.lastIndex;
  return groupStatus.followers.find((follower) => follower.node === node)?.matchIndex;
}
