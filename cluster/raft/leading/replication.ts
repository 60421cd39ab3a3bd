// The leader's sending side: entries, heartbeats and, where entries are gone, snapshots; and how its
// own log grows and commits. What comes back is handled in acknowledgement.ts.

import { type Entry, type ProposedEntry, payloadSizeBytes } from '../log/entry.ts';
import { quorumIndex } from '../membership/quorum.ts';
import type { NodeId } from '../node-id.ts';
import { envelope, observe, otherMembers, progressOf, type Raft, send } from '../state.ts';
import type { Progress } from './progress.ts';

/** Sends what the follower lacks, or an empty append that only carries the commit index. */
export function sendAppend(raft: Raft, to: NodeId): void {
  trySendAppend(raft, to, { evenIfEmpty: true });
}

/** Sends an append if the follower lacks entries and its flow allows it; false otherwise. */
export function sendEntries(raft: Raft, to: NodeId): boolean {
  return trySendAppend(raft, to, { evenIfEmpty: false });
}

export function broadcastAppend(raft: Raft): void {
  for (const member of otherMembers(raft)) sendAppend(raft, member);
}

/** One heartbeat to every member, carrying the number of the newest waiting read. */
export function broadcastHeartbeat(raft: Raft): void {
  const readCount = raft.reads.heartbeatCount;
  for (const member of otherMembers(raft)) {
    const progress = progressOf(raft, member);
    // Beyond what the follower is known to hold, its entries may not be the committed ones.
    const commitIndex = Math.min(progress.matchIndex, raft.log.commitIndex);
    send(raft, { type: 'heartbeat', ...envelope(raft, member), commitIndex, readCount });
    progress.sentCommit(commitIndex);
  }
}

/**
 * Appends to the leader's own log; false, and nothing appended, when too much is uncommitted already.
 * Entries without payload always pass: a term's first entry and the leaving of a joint state must.
 */
export function appendToOwnLog(raft: Raft, proposed: readonly ProposedEntry[]): boolean {
  const sizeBytes = payloadSizeBytes(proposed);
  const exceeds = raft.uncommittedBytes + sizeBytes > raft.config.maxUncommittedBytes;
  if (raft.uncommittedBytes > 0 && sizeBytes > 0 && exceeds) {
    observe(raft, { kind: 'uncommitted-limit-reached' });
    return false;
  }
  raft.uncommittedBytes += sizeBytes;
  const lastIndex = raft.log.lastIndex;
  const entries = proposed.map(
    ({ type, data }, position): Entry => ({
      term: raft.term,
      index: lastIndex + 1 + position,
      type,
      data,
    }),
  );
  raft.log.append(entries);
  // The leader acknowledges to itself like any follower: only when its own disk has the entries.
  send(raft, { type: 'append-reply', ...envelope(raft, raft.id), index: raft.log.lastIndex });
  return true;
}

/** Commits what a quorum has on disk; true when that moved the commit index. */
export function maybeCommit(raft: Raft): boolean {
  const index = quorumIndex(raft.membership, (voter) => raft.progressByNode.get(voter)?.matchIndex);
  return raft.log.maybeCommit({ term: raft.term, index });
}

function trySendAppend(
  raft: Raft,
  to: NodeId,
  { evenIfEmpty }: { readonly evenIfEmpty: boolean },
): boolean {
  const progress = progressOf(raft, to);
  if (progress.isPaused) return false;
  const prevIndex = progress.nextIndex - 1;
  const prevTerm = raft.log.term(prevIndex);
  if (typeof prevTerm !== 'number') return trySendSnapshot(raft, to, progress);
  const entries = entriesToSend(raft, progress);
  if (entries === 'compacted') {
    return evenIfEmpty ? trySendSnapshot(raft, to, progress) : false;
  }
  if (entries.length === 0 && !evenIfEmpty) return false;
  const commitIndex = raft.log.commitIndex;
  send(raft, { type: 'append', ...envelope(raft, to), prevTerm, prevIndex, entries, commitIndex });
  progress.sentEntries(entries.length, payloadSizeBytes(entries));
  progress.sentCommit(commitIndex);
  return true;
}

function entriesToSend(raft: Raft, progress: Progress): readonly Entry[] | 'compacted' {
  // With a full window only an empty append goes out: it will be acknowledged or refused, and either
  // one frees the window, even if all the messages that filled it were lost.
  if (progress.state === 'replicate' && progress.inflights.full) return [];
  return raft.log.entriesFrom(progress.nextIndex, raft.config.maxMessageBytes);
}

function trySendSnapshot(raft: Raft, to: NodeId, progress: Progress): boolean {
  if (!progress.recentlyActive) {
    observe(raft, { kind: 'snapshot-skipped-inactive', node: to });
    return false;
  }
  const snapshot = raft.log.snapshot();
  if (snapshot === undefined) {
    observe(raft, { kind: 'snapshot-not-ready', node: to });
    return false;
  }
  const { firstIndex, commitIndex } = raft.log;
  observe(raft, {
    kind: 'snapshot-sent',
    node: to,
    snapshot,
    firstIndex,
    commitIndex,
    progress: progress.view(),
  });
  progress.becomeSnapshot(snapshot.index);
  observe(raft, { kind: 'replication-paused', node: to, progress: progress.view() });
  send(raft, { type: 'snapshot', ...envelope(raft, to), snapshot });
  return true;
}
