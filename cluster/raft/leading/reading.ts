// Linearizable reads: the leader notes its commit index, proves by a round of heartbeats that it still
// leads, and only then names the index that must be applied. Reads of a lost leadership are forgotten;
// whoever asked must ask again when Ready shows a change of leader or standing.

import type { HeartbeatReply, ReadIndexReply } from '../message.ts';
import { NO_NODE } from '../node-id.ts';
import { envelope, hasCommittedInTerm, observe, type Raft, send } from '../state.ts';
import type { ReadRequest } from './read-queue.ts';
import { broadcastHeartbeat } from './replication.ts';

/**
 * Asks for a read. `request.context` must never be used twice, not even after a restart: a late answer
 * to the first use would be taken for one to the second.
 */
export function askRead(raft: Raft, request: ReadRequest): void {
  if (raft.standing === 'leader') {
    // Before its first commit a leader does not know what its predecessors have committed.
    if (hasCommittedInTerm(raft)) startRead(raft, request);
    else raft.reads.park(request);
    return;
  }
  const { from, context } = request;
  if (raft.standing !== 'follower' || raft.leader === NO_NODE) {
    observe(raft, { kind: 'read-dropped', term: raft.term });
    return;
  }
  if (from !== raft.id) {
    // A link carries the words of the nodes at its ends alone; whoever asked the wrong one asks again.
    observe(raft, { kind: 'read-not-handed-on', from });
    return;
  }
  send(raft, { type: 'read-index', from, to: raft.leader, term: 0, context });
}

/** Starts the reads that waited for the first commit of the term. */
export function releaseParkedReads(raft: Raft): void {
  if (!hasCommittedInTerm(raft)) return;
  for (const request of raft.reads.releaseParked()) startRead(raft, request);
}

/** A follower has answered a heartbeat, and with it the reads that the heartbeat counted. */
export function onReadsAcknowledged(raft: Raft, message: HeartbeatReply): void {
  if (raft.config.readMode !== 'quorum' || message.readCount === 0) return;
  raft.reads.acknowledge(message.from, message.readCount);
  answerConfirmedReads(raft);
}

/** Answers what is confirmed; also due when the membership, and with it the quorum, has changed. */
export function answerConfirmedReads(raft: Raft): void {
  for (const { request, index } of raft.reads.takeConfirmed(raft.membership)) {
    answerRead(raft, request, index);
  }
}

/** The leader has answered a read that was asked here. */
export function onReadIndexReply(raft: Raft, message: ReadIndexReply): void {
  raft.readStates.push({ index: message.index, context: message.context });
}

function startRead(raft: Raft, request: ReadRequest): void {
  const { commitIndex } = raft.log;
  if (raft.config.readMode === 'lease') {
    answerRead(raft, request, commitIndex);
    return;
  }
  raft.reads.add(request, commitIndex);
  raft.reads.acknowledge(raft.id, raft.reads.heartbeatCount);
  answerConfirmedReads(raft);
  // A leader that is the only voter has just answered; all others need a word from their followers.
  if (raft.reads.heartbeatCount > 0) broadcastHeartbeat(raft);
}

function answerRead(raft: Raft, { from, context }: ReadRequest, index: number): void {
  if (from === raft.id) raft.readStates.push({ index, context });
  else send(raft, { type: 'read-index-reply', ...envelope(raft, from), index, context });
}
