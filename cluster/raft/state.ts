// Everything a node remembers between two calls, in one record that the files beside this one change.
// Knows how messages are queued (by whether they wait for the disk) and nothing of the algorithm.

import { assert } from '../base/assert.ts';
import type { FullRaftConfig } from './config.ts';
import type { RaftEvent } from './events.ts';
import { type HardState, sameHardState } from './hard-state.ts';
import { Progress } from './leading/progress.ts';
import type { ReadQueue } from './leading/read-queue.ts';
import type { RaftLog } from './log/raft-log.ts';
import type { Membership } from './membership/membership.ts';
import { MESSAGE_TRAITS, type Message } from './message.ts';
import type { NodeId } from './node-id.ts';

export type Standing = 'follower' | 'pre-candidate' | 'candidate' | 'leader';

/**
 * election: as configured, with a pre-vote first or without; forced: the leader asks its successor
 * to take over, which needs no pre-vote and passes the voters' lease.
 */
export type CampaignKind = 'election' | 'forced';

/** What may be lost at a crash: who leads, and what this node is. */
export interface SoftState {
  readonly leader: NodeId;
  readonly standing: Standing;
}

/** The read `context` may be answered once the state machine has applied `index`. */
export interface ReadState {
  readonly index: number;
  readonly context: string;
}

/** The memory of one node. Only files of this folder change it. */
export interface Raft {
  readonly id: NodeId;
  readonly config: FullRaftConfig;
  readonly log: RaftLog;
  term: number;
  vote: NodeId;
  standing: Standing;
  leader: NodeId;
  membership: Membership;
  /** The entry or snapshot that `membership` was last decided by; older changes are overtaken. */
  membershipIndex: number;
  /** Keys of progressByNode, ascending; all walks over members go by this list. */
  members: readonly NodeId[];
  progressByNode: ReadonlyMap<NodeId, Progress>;
  /** Answers to the present campaign, the first of each node. */
  votes: Map<NodeId, boolean>;
  /** To be sent at once. */
  messages: Message[];
  /** To be sent, or delivered to this node itself, when all that is unstable now is on disk. */
  messagesAfterAppend: Message[];
  readStates: ReadState[];
  reads: ReadQueue;
  transferTarget: NodeId;
  /** Index of the first entry of this leader's term; what came before is its predecessors'. */
  termStartIndex: number;
  /** No membership change may be proposed before this index is applied: one may be under way. */
  pendingChangeIndex: number;
  /** Payload of the leader's uncommitted entries; may be too small, never too large. */
  uncommittedBytes: number;
  /** Ticks since the leader was heard of, since campaigning, or (leader) since the quorum check. */
  electionElapsed: number;
  heartbeatElapsed: number;
  /** Ticks after which this node campaigns; drawn anew with each change of standing. */
  electionTimeoutTicks: number;
  /** A campaign of this term that waits until a membership change is applied. */
  postponed: { readonly kind: CampaignKind; readonly ticksLeft: number } | undefined;
}

/** Queues a message; the type decides whether it waits for the disk. */
export function send(raft: Raft, message: Message): void {
  const goesAtOnce = message.type === 'vote' && raft.config.asksBeforeDisk;
  if (MESSAGE_TRAITS[message.type].waitsForDisk && !goesAtOnce) {
    raft.messagesAfterAppend.push(message);
    return;
  }
  assert(message.to !== raft.id, 'a message to oneself', { type: message.type });
  raft.messages.push(message);
}

/** The sender and term that all messages of this moment share. */
export function envelope(raft: Raft, to: NodeId): { from: NodeId; to: NodeId; term: number } {
  return { from: raft.id, to, term: raft.term };
}

export function observe(raft: Raft, event: RaftEvent): void {
  raft.config.observe(event);
}

export function hardStateOf(raft: Raft): HardState {
  return { term: raft.term, vote: raft.vote, commitIndex: raft.log.commitIndex };
}

export function softStateOf(raft: Raft): SoftState {
  return { leader: raft.leader, standing: raft.standing };
}

export function hardStateChanged(raft: Raft, since: HardState): boolean {
  return !sameHardState(hardStateOf(raft), since);
}

/** Every member but this node, ascending. */
export function otherMembers(raft: Raft): readonly NodeId[] {
  return raft.members.filter((member) => member !== raft.id);
}

/** A member's progress; asking for a stranger's is a fault. */
export function progressOf(raft: Raft, node: NodeId): Progress {
  const progress = raft.progressByNode.get(node);
  assert(progress !== undefined, 'no progress is kept for a node', { node, members: raft.members });
  return progress;
}

/** Whether this leader has committed an entry of its own term, and so knows all that is committed. */
export function hasCommittedInTerm(raft: Raft): boolean {
  return raft.standing === 'leader' && raft.log.commitIndex >= raft.termStartIndex;
}

/** A progress for a member about whom nothing is known. */
export function newProgress(
  raft: Pick<Raft, 'config'>,
  start: { nextIndex: number; matchIndex: number; isLearner: boolean; recentlyActive: boolean },
): Progress {
  const { maxInflightMessages, maxInflightBytes } = raft.config;
  const inflightLimits = { maxMessages: maxInflightMessages, maxBytes: maxInflightBytes };
  return new Progress({ ...start, inflightLimits });
}
