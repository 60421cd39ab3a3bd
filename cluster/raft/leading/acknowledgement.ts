// The leader's receiving side: what followers' replies and failed sends say about their logs, and what
// may be sent or committed because of it.

import type { AppendRejection, AppendReply, HeartbeatReply } from '../message.ts';
import type { NodeId } from '../node-id.ts';
import { observe, type Raft } from '../state.ts';
import type { Progress } from './progress.ts';
import { onReadsAcknowledged, releaseParkedReads } from './reading.ts';
import { broadcastAppend, maybeCommit, sendAppend, sendEntries } from './replication.ts';
import { maybeFinishTransfer } from './transfer.ts';

/** A follower (or the own disk) has taken or refused an append. */
export function onAppendReply(raft: Raft, message: AppendReply): void {
  const progress = knownProgress(raft, message.from);
  if (progress === undefined) return;
  progress.recentlyActive = true;
  const { rejection, index, from } = message;
  if (rejection !== undefined) {
    onRejection(raft, progress, { from, index, rejection });
    return;
  }
  const { lastIndex } = raft.log;
  if (index > lastIndex) {
    // It has committed what is not in this log, and that is no word for what is. From the end of this log, which
    // comes next, it learns that both are not of one history: see onAppend.
    if (progress.state !== 'snapshot') progress.nextIndex = lastIndex + 1;
    return;
  }
  const isNews = progress.acknowledge(index);
  // A probe that was acknowledged before can still tell that the follower is back.
  const endsProbe = progress.state === 'probe' && progress.matchIndex === index;
  if (!isNews && !endsProbe) return;
  openFlow(raft, progress, message);
  if (maybeCommit(raft)) {
    releaseParkedReads(raft);
    broadcastAppend(raft);
  } else if (from !== raft.id && progress.canBumpCommit(raft.log.commitIndex)) {
    sendAppend(raft, from);
  }
  if (from === raft.id) return;
  // The window may have room for several messages now.
  while (sendEntries(raft, from)) {}
  maybeFinishTransfer(raft, from);
}

/** A follower is alive; whoever is behind or being probed gets one append. */
export function onHeartbeatReply(raft: Raft, message: HeartbeatReply): void {
  const { from } = message;
  const progress = knownProgress(raft, from);
  if (progress === undefined) return;
  progress.recentlyActive = true;
  progress.appendsPaused = false;
  if (progress.matchIndex < raft.log.lastIndex || progress.state === 'probe') {
    sendAppend(raft, from);
  }
  onReadsAcknowledged(raft, message);
}

/** A message to `node` could not be sent, so appends that were sent ahead are probably lost. */
export function onUnreachable(raft: Raft, node: NodeId): void {
  if (raft.standing !== 'leader') return;
  const progress = knownProgress(raft, node);
  if (progress === undefined) return;
  if (progress.state === 'replicate') progress.becomeProbe();
  observe(raft, { kind: 'node-unreachable', node, progress: progress.view() });
}

/** The transport has delivered a snapshot to `node`, or given up on it. */
export function onSnapshotReport(
  raft: Raft,
  node: NodeId,
  { delivered }: { readonly delivered: boolean },
): void {
  if (raft.standing !== 'leader') return;
  const progress = knownProgress(raft, node);
  if (progress === undefined || progress.state !== 'snapshot') return;
  // A snapshot that never arrived is no base to probe from.
  if (!delivered) progress.pendingSnapshotIndex = 0;
  progress.becomeProbe();
  const kind = delivered ? 'snapshot-succeeded' : 'snapshot-failed';
  observe(raft, { kind, node, progress: progress.view() });
  // Delivered: its reply will open the flow. Failed: try again after a heartbeat, not at once.
  progress.appendsPaused = true;
}

function onRejection(
  raft: Raft,
  progress: Progress,
  reply: { from: NodeId; index: number; rejection: AppendRejection },
): void {
  const { from, index, rejection } = reply;
  const { hintIndex, hintTerm } = rejection;
  observe(raft, { kind: 'rejection-received', from, index, hintIndex, hintTerm });
  // The follower's terms up to the hint are at most hintTerm, so nowhere that the leader's own term is
  // greater can the logs agree: one probe a term is enough.
  const agreeingIndex =
    hintTerm > 0 ? raft.log.lastAgreement(hintIndex, hintTerm).index : hintIndex;
  if (!progress.reject(index, agreeingIndex)) return;
  observe(raft, { kind: 'progress-decreased', node: from, progress: progress.view() });
  if (progress.state === 'replicate') progress.becomeProbe();
  sendAppend(raft, from);
}

function openFlow(raft: Raft, progress: Progress, { from, index }: AppendReply): void {
  if (progress.state === 'probe') {
    progress.becomeReplicate();
    return;
  }
  if (progress.state === 'replicate') {
    progress.inflights.freeThrough(index);
    return;
  }
  // Any snapshot will do, also an older one from elsewhere, if the log goes on from it.
  if (progress.matchIndex + 1 < raft.log.firstIndex) return;
  observe(raft, { kind: 'snapshot-caught-up', node: from, progress: progress.view() });
  progress.becomeProbe();
  progress.becomeReplicate();
}

function knownProgress(raft: Raft, node: NodeId): Progress | undefined {
  const progress = raft.progressByNode.get(node);
  if (progress === undefined) observe(raft, { kind: 'message-from-stranger', from: node });
  return progress;
}
