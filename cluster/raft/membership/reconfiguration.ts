// Switching to another membership: when a change is applied, when a snapshot brings one, at the start.
// The arithmetic is in membership.ts; this file draws the consequences for a running node.

import type { Progress } from '../leading/progress.ts';
import { answerConfirmedReads, releaseParkedReads } from '../leading/reading.ts';
import { broadcastAppend, maybeCommit, sendEntries } from '../leading/replication.ts';
import { abortTransfer } from '../leading/transfer.ts';
import { NO_NODE, type NodeId } from '../node-id.ts';
import { becomeFollower } from '../standing.ts';
import { newProgress, observe, otherMembers, type Raft } from '../state.ts';
import {
  changeStep,
  type Membership,
  type MembershipRefusal,
  type MembershipStep,
  membersOf,
  normalized,
  votersOf,
} from './membership.ts';
import { decodeMembershipChange, type MembershipChange } from './membership-change.ts';

/** What came of a committed change. `overtaken`: a newer membership has come with a snapshot. */
export type ChangeOutcome = 'switched' | 'overtaken' | MembershipRefusal;

/**
 * Applies the change in the entry at `index`. One that does not fit is refused on every node alike, as
 * all of them have the same membership at the same applied index.
 */
export function applyChange(raft: Raft, index: number, change: MembershipChange): ChangeOutcome {
  if (index <= raft.membershipIndex) return 'overtaken';
  raft.membershipIndex = index;
  const step = changeStep(raft.membership, change);
  if (typeof step === 'string') return step;
  switchMembership(raft, step);
  return 'switched';
}

/**
 * Takes over the membership as of `index` from a snapshot or from storage; every member's progress begins
 * anew.
 */
export function restoreMembership(raft: Raft, index: number, membership: Membership): void {
  raft.membershipIndex = index;
  const restored = normalized(membership);
  switchMembership(raft, { membership: restored, fresh: membersOf(restored) });
}

/** The membership when all that is in the log will be applied, committed or not. */
export function membershipInLog(raft: Raft): Membership {
  let { membership } = raft;
  for (const { data } of raft.log.unappliedChanges(raft.log.lastIndex + 1)) {
    const change = decodeMembershipChange(data);
    const step = change && changeStep(membership, change);
    if (typeof step === 'object') membership = step.membership;
  }
  return membership;
}

function switchMembership(raft: Raft, { membership, fresh }: MembershipStep): void {
  raft.membership = membership;
  raft.members = membersOf(membership);
  raft.progressByNode = progressAfter(raft, fresh);
  observe(raft, { kind: 'membership-switched', membership });
  if (raft.standing !== 'leader') return;
  const own = raft.progressByNode.get(raft.id);
  if (own === undefined || own.isLearner) {
    if (raft.config.stepDownOnRemoval) becomeFollower(raft, raft.term, NO_NODE);
    return;
  }
  if (maybeCommit(raft)) {
    // The new quorum has more on its disks than the old one needed.
    releaseParkedReads(raft);
    broadcastAppend(raft);
  } else {
    // Newcomers need not wait for the next heartbeat.
    for (const member of otherMembers(raft)) sendEntries(raft, member);
  }
  answerConfirmedReads(raft);
  if (!votersOf(membership).includes(raft.transferTarget)) abortTransfer(raft);
}

function progressAfter(raft: Raft, fresh: readonly NodeId[]): ReadonlyMap<NodeId, Progress> {
  const progressByNode = new Map<NodeId, Progress>();
  for (const member of raft.members) {
    const isLearner = raft.membership.learners.includes(member);
    const kept = fresh.includes(member) ? undefined : raft.progressByNode.get(member);
    const progress = kept ?? newcomer(raft, { isLearner });
    progress.isLearner = isLearner;
    progressByNode.set(member, progress);
  }
  return progressByNode;
}

function newcomer(raft: Raft, { isLearner }: { readonly isLearner: boolean }): Progress {
  // Counted as active at first, or the next quorum check could fail before it had a chance to speak.
  const nextIndex = Math.max(raft.log.lastIndex, 1);
  return newProgress(raft, { matchIndex: 0, nextIndex, isLearner, recentlyActive: true });
}
