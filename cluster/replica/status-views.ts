// A replica as values, for whoever asks how it stands.

import type { DurableLog } from '../log/durable-log.ts';
import type { ProgressView } from '../raft/leading/progress.ts';
import { isMemberOf } from '../raft/membership/membership.ts';
import { NO_NODE, type NodeId } from '../raft/node-id.ts';
import type { Status } from '../raft/raw-node.ts';
import type { GroupLead, GroupStatus } from './group-replica.ts';
import type { Contact } from './leading/contact.ts';
import type { ReplicaStatus, Standing } from './replica.ts';
import type { PendingProposals } from './requests/pending-proposals.ts';
import type { Inbox } from './turn/inbox.ts';
import type { DiskWatch } from './workers/disk-watch.ts';

export interface ReplicaStatusFacts {
  readonly status: Status;
  readonly log: Pick<DurableLog, 'firstIndex'>;
  /** Of the machine, on its disk. */
  readonly appliedIndex: number;
  readonly proposals: Pick<PendingProposals<unknown>, 'count' | 'bytes'>;
}

export function replicaStatusOf(facts: ReplicaStatusFacts): ReplicaStatus {
  const { status, log, appliedIndex, proposals } = facts;
  const { term, lastIndex, commitIndex } = status;
  return {
    standing: standingOf(status),
    term,
    firstIndex: log.firstIndex,
    lastIndex,
    commitIndex,
    appliedIndex,
    queuedCount: proposals.count,
    unappliedCount: Math.max(0, commitIndex - appliedIndex),
    pendingBytes: proposals.bytes,
  };
}

export interface GroupLeadFacts {
  readonly status: Status;
  readonly contact: Pick<Contact, 'sinceLeaderMs' | 'sinceQuorumMs'>;
  readonly diskWatch: Pick<DiskWatch, 'isStalled'>;
}

export function groupLeadOf({ status, contact, diskWatch }: GroupLeadFacts): GroupLead {
  const { id, term, leader, membership, standing } = status;
  return {
    term,
    isLeader: standing === 'leader',
    leader: leader === NO_NODE ? undefined : leader,
    lastContactMs: leader === id ? contact.sinceQuorumMs(id, membership) : contact.sinceLeaderMs,
    isMember: isMemberOf(membership, id),
    isDiskStalled: diskWatch.isStalled,
  };
}

export interface GroupStatusFacts extends GroupLeadFacts {
  readonly progress: readonly (readonly [NodeId, ProgressView])[];
  readonly contact: GroupLeadFacts['contact'] & Pick<Contact, 'hasLost' | 'sinceMs'>;
  readonly inbox: Pick<Inbox<unknown>, 'lostCount'>;
}

export function groupStatusOf(facts: GroupStatusFacts): GroupStatus {
  const { status, progress, contact, inbox } = facts;
  return {
    ...groupLeadOf(facts),
    hasCommittedInTerm: status.hasCommittedInTerm,
    followers: progress
      .filter(([node]) => node !== status.id)
      .map(([node, { matchIndex, state }]) => ({
        node,
        matchIndex,
        state,
        lastHeardMs: contact.sinceMs(node),
        isLost: contact.hasLost(node),
      })),
    lostMessageCount: inbox.lostCount,
  };
}

/** A node that the group has removed is a follower of nobody. */
function standingOf({
  standing,
  membership,
  id,
}: Pick<Status, 'standing' | 'membership' | 'id'>): Standing {
  if (standing === 'pre-candidate') return 'candidate';
  return standing === 'follower' && membership.learners.includes(id) ? 'learner' : standing;
}
