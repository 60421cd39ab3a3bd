// The algorithm's two inputs beside proposals and reads: a message, and a tick. Pure: everything they
// cause is left in the record (log, messages, read states) for raw-node.ts to hand out.

import { unreachable } from '../base/unreachable.ts';
import { leaveJointState, onApplied, onSnapshotApplied } from './applying.ts';
import { fullConfig, type RaftConfig } from './config.ts';
import {
  isBarredByLease,
  isPromotable,
  learnCommit,
  onVoteReply,
  onVoteRequest,
  refuseVote,
  startElection,
  tickPostponed,
} from './election.ts';
import { onAppend, onHeartbeat } from './following.ts';
import { onAppendReply, onHeartbeatReply } from './leading/acknowledgement.ts';
import { propose } from './leading/proposing.ts';
import { ReadQueue } from './leading/read-queue.ts';
import { askRead, onReadIndexReply } from './leading/reading.ts';
import { broadcastHeartbeat } from './leading/replication.ts';
import { abortTransfer, transferLeadership } from './leading/transfer.ts';
import { RaftLog } from './log/raft-log.ts';
import { NO_MEMBERS, votersOf } from './membership/membership.ts';
import { quorumVote } from './membership/quorum.ts';
import { restoreMembership } from './membership/reconfiguration.ts';
import type {
  AppendMessage,
  HeartbeatMessage,
  Message,
  SnapshotMessage,
  StorageAppendReply,
  TimeoutNowMessage,
} from './message.ts';
import { NO_NODE, type NodeId } from './node-id.ts';
import type { Refusal } from './refusal.ts';
import { onSnapshot } from './snapshotting.ts';
import { becomeFollower } from './standing.ts';
import { envelope, observe, type Raft, send } from './state.ts';

/** A node as its storage knows it, as a follower that has heard of no leader yet. */
export function createRaft(wanted: RaftConfig): Raft {
  const config = fullConfig(wanted);
  const { storage, observe: observer, appliedIndex } = config;
  const { hardState, membership } = storage.initialState();
  const log = new RaftLog({
    storage,
    maxApplyingBytes: config.maxApplyingBytes,
    observe: observer,
  });
  const raft: Raft = {
    id: config.id,
    config,
    log,
    term: hardState.term,
    vote: hardState.vote,
    standing: 'follower',
    leader: NO_NODE,
    membership: NO_MEMBERS,
    membershipIndex: 0,
    members: [],
    progressByNode: new Map(),
    votes: new Map(),
    messages: [],
    messagesAfterAppend: [],
    readStates: [],
    reads: new ReadQueue(),
    transferTarget: NO_NODE,
    termStartIndex: 0,
    pendingChangeIndex: 0,
    uncommittedBytes: 0,
    electionElapsed: 0,
    heartbeatElapsed: 0,
    electionTimeoutTicks: config.electionTicks,
    postponed: undefined,
  };
  restoreMembership(raft, appliedIndex, membership);
  // The commit index is not synced like a promise: what is applied was committed all the same.
  log.commitTo(Math.max(hardState.commitIndex, appliedIndex));
  if (appliedIndex > 0) log.appliedTo(appliedIndex, 0);
  becomeFollower(raft, raft.term, NO_NODE);
  observe(raft, {
    kind: 'started',
    voters: votersOf(raft.membership),
    term: raft.term,
    commitIndex: log.commitIndex,
    appliedIndex: log.appliedIndex,
    last: log.lastId,
  });
  return raft;
}

/** One unit of time. */
export function tick(raft: Raft): void {
  raft.electionElapsed += 1;
  if (raft.standing === 'leader') {
    tickLeader(raft);
    return;
  }
  tickPostponed(raft);
  if (raft.electionElapsed < raft.electionTimeoutTicks) return;
  if (isPromotable(raft)) {
    raft.electionElapsed = 0;
    startElection(raft, 'election');
  } else if (raft.config.readMode !== 'lease') {
    // Who cannot campaign must not say for ever that a leader is there of whom nothing is heard.
    forgetLeader(raft);
  }
}

/** One message, from another member or from a storage worker of this node. */
export function step(raft: Raft, message: Message): Refusal | undefined {
  if (message.term > raft.term) {
    if (!takesHigherTerm(raft, message)) return undefined;
  } else if (message.term !== 0 && message.term < raft.term) {
    onLowerTerm(raft, message);
    return undefined;
  }
  return dispatch(raft, message);
}

/**
 * Forgets the leader without campaigning, so that this node no longer speaks against an election. For
 * a node that knows better than its ticks that its leader is gone.
 */
export function forgetLeader(raft: Raft): void {
  if (raft.standing !== 'follower' || raft.leader === NO_NODE) return;
  if (raft.config.readMode === 'lease') {
    observe(raft, { kind: 'forget-leader-refused-by-lease' });
    return;
  }
  observe(raft, { kind: 'leader-forgotten', leader: raft.leader, term: raft.term });
  raft.leader = NO_NODE;
}

function dispatch(raft: Raft, message: Message): Refusal | undefined {
  switch (message.type) {
    case 'append':
    case 'heartbeat':
    case 'snapshot':
      onLeaderMessage(raft, message);
      return undefined;
    case 'append-reply':
      if (raft.standing === 'leader') onAppendReply(raft, message);
      return undefined;
    case 'heartbeat-reply':
      if (raft.standing === 'leader') onHeartbeatReply(raft, message);
      return undefined;
    case 'vote':
    case 'pre-vote':
      learnCommit(raft, message);
      onVoteRequest(raft, message);
      return undefined;
    case 'vote-reply':
    case 'pre-vote-reply':
      learnCommit(raft, message);
      onVoteReply(raft, message);
      return undefined;
    case 'timeout-now':
      onTimeoutNow(raft, message);
      return undefined;
    case 'transfer-leader':
      return transferLeadership(raft, message.target);
    case 'propose': {
      const result = propose(raft, message.from, message.entries);
      return result.kind === 'refused' ? result.reason : undefined;
    }
    case 'read-index':
      askRead(raft, { from: message.from, context: message.context });
      return undefined;
    case 'read-index-reply':
      if (raft.standing === 'follower') onReadIndexReply(raft, message);
      return undefined;
    case 'storage-append-reply':
      onStored(raft, message);
      return undefined;
    case 'storage-apply-reply':
      onApplied(raft, message);
      return undefined;
    case 'storage-append':
    case 'storage-apply':
      return 'local-message';
    default:
      return unreachable(message);
  }
}

/** Steps down to a higher term where the message proves that it has begun; false to ignore it. */
function takesHigherTerm(raft: Raft, message: Message): boolean {
  switch (message.type) {
    case 'pre-vote':
      // Only asks about a term that may never begin.
      return !isBarredByLease(raft, message);
    case 'pre-vote-reply':
      // A grant repeats the term this node asked about; a refusal brings the refuser's own term.
      if (message.rejected) followHigherTerm(raft, message, NO_NODE);
      return true;
    case 'vote':
      if (isBarredByLease(raft, message)) return false;
      followHigherTerm(raft, message, NO_NODE);
      return true;
    case 'append':
    case 'heartbeat':
    case 'snapshot':
      followHigherTerm(raft, message, message.from);
      return true;
    default:
      followHigherTerm(raft, message, NO_NODE);
      return true;
  }
}

function followHigherTerm(raft: Raft, message: Message, leader: NodeId): void {
  const { type, from, term: messageTerm } = message;
  observe(raft, { kind: 'higher-term-seen', type, from, messageTerm, term: raft.term });
  becomeFollower(raft, messageTerm, leader);
}

function onLowerTerm(raft: Raft, message: Message): void {
  const { checkQuorum, preVote } = raft.config;
  const { type, from, term: messageTerm } = message;
  if ((checkQuorum || preVote) && (type === 'append' || type === 'heartbeat')) {
    // A leader that this node has outrun cannot be told by a vote request, since leases bar those;
    // this reply carries the higher term and frees both.
    send(raft, { type: 'append-reply', ...envelope(raft, from), index: 0 });
  } else if (type === 'pre-vote') {
    // Unanswered, a candidate of a group that is being moved to pre-votes could wait forever.
    learnCommit(raft, message);
    refuseVote(raft, message);
  } else if (type === 'storage-append-reply') {
    onStaleStored(raft, message);
  } else {
    observe(raft, { kind: 'lower-term-ignored', type, from, messageTerm, term: raft.term });
  }
}

function onStored(raft: Raft, { lastStable, snapshot }: StorageAppendReply): void {
  if (lastStable !== undefined) raft.log.unstable.stableTo(lastStable);
  if (snapshot !== undefined) onSnapshotApplied(raft, snapshot);
}

/**
 * A write finished that was handed out in an earlier term. Its entries may have been replaced since,
 * and even replaced back, while the write that replaces them on disk is still under way; so what is
 * stable is believed only from writes of the present term. A snapshot holds in every term.
 */
function onStaleStored(raft: Raft, { lastStable, snapshot, term }: StorageAppendReply): void {
  if (lastStable !== undefined) {
    observe(raft, { kind: 'stale-storage-append-ignored', messageTerm: term, term: raft.term });
  }
  if (snapshot !== undefined) onSnapshotApplied(raft, snapshot);
}

function onLeaderMessage(
  raft: Raft,
  message: AppendMessage | HeartbeatMessage | SnapshotMessage,
): void {
  // There is one leader a term: a message of this kind and term to a leader cannot be genuine.
  if (raft.standing === 'leader') return;
  if (raft.standing === 'follower') {
    raft.electionElapsed = 0;
    raft.leader = message.from;
  } else {
    becomeFollower(raft, message.term, message.from);
  }
  switch (message.type) {
    case 'append':
      onAppend(raft, message);
      return;
    case 'heartbeat':
      onHeartbeat(raft, message);
      return;
    case 'snapshot':
      onSnapshot(raft, message);
      return;
    default:
      unreachable(message);
  }
}

function onTimeoutNow(raft: Raft, { from }: TimeoutNowMessage): void {
  const { standing, term } = raft;
  if (standing === 'leader') return;
  if (standing !== 'follower') {
    observe(raft, { kind: 'timeout-now-ignored', from, term, standing });
    return;
  }
  observe(raft, { kind: 'timeout-now-received', from, term });
  startElection(raft, 'forced');
}

function tickLeader(raft: Raft): void {
  raft.heartbeatElapsed += 1;
  if (raft.electionElapsed >= raft.config.electionTicks) {
    raft.electionElapsed = 0;
    if (raft.config.checkQuorum) checkQuorum(raft);
    // A transfer that took a whole election timeout has failed.
    if (raft.standing === 'leader') {
      abortTransfer(raft);
      leaveJointState(raft);
    }
  }
  if (raft.standing !== 'leader' || raft.heartbeatElapsed < raft.config.heartbeatTicks) return;
  raft.heartbeatElapsed = 0;
  broadcastHeartbeat(raft);
}

function checkQuorum(raft: Raft): void {
  const active = new Map<NodeId, boolean>();
  for (const [node, progress] of raft.progressByNode) active.set(node, progress.recentlyActive);
  if (quorumVote(raft.membership, active) !== 'won') {
    observe(raft, { kind: 'quorum-lost' });
    becomeFollower(raft, raft.term, NO_NODE);
  }
  for (const [node, progress] of raft.progressByNode) {
    if (node !== raft.id) progress.recentlyActive = false;
  }
}
