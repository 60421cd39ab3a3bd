// All that members say to each other, and what a node says to its own storage workers.
// Shapes only; the wire knows how to pack them and raft.ts what to do about them.

import type { HardState } from './hard-state.ts';
import type { Entry, EntryId, ProposedEntry } from './log/entry.ts';
import type { Snapshot } from './log/snapshot.ts';
import type { NodeId } from './node-id.ts';

/** Every message says between whom it goes and under which term; 0 where a term has no meaning. */
export interface Envelope {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly term: number;
}

/** Leader to follower: entries after (prevTerm, prevIndex), and how far is committed. */
export interface AppendMessage extends Envelope {
  readonly type: 'append';
  readonly prevTerm: number;
  readonly prevIndex: number;
  readonly entries: readonly Entry[];
  readonly commitIndex: number;
}

/** Where a follower's log may still agree with the leader's; a term of 0 is unknown. */
export interface AppendRejection {
  readonly hintIndex: number;
  readonly hintTerm: number;
}

/** The log is on disk through `index`; or, with a rejection, the append at `index` did not fit. */
export interface AppendReply extends Envelope {
  readonly type: 'append-reply';
  readonly index: number;
  readonly rejection?: AppendRejection;
}

/**
 * The last entry that the sender of a vote, or of an answer to one, knows to be committed. Who has that very
 * entry learns it so, and with it who may vote; NO_ENTRY where nothing is known, or an older release does
 * not say.
 */
export interface VoteNews {
  readonly committed: EntryId;
}

/**
 * Asks for a vote, or (pre-vote) whether there would be one. `term` is the one asked for. A vote is asked for when that
 * term is on the own disk, and the log that the others compare with theirs: whoever forgets either in a crash opens the
 * same term once more, and would take what it was given for the longer log for an answer to the shorter one.
 */
export interface VoteMessage extends Envelope, VoteNews {
  readonly type: 'vote' | 'pre-vote';
  readonly lastTerm: number;
  readonly lastIndex: number;
  /** The leader asked for this election, so its lease does not speak against it. */
  readonly forced: boolean;
}

/** A vote; `term` is the one asked for, or the voter's own when it refuses. */
export interface VoteReply extends Envelope, VoteNews {
  readonly type: 'vote-reply' | 'pre-vote-reply';
  readonly rejected: boolean;
}

/** Leader to follower: still here; `commitIndex` never exceeds what the follower is known to hold. */
export interface HeartbeatMessage extends Envelope {
  readonly type: 'heartbeat';
  readonly commitIndex: number;
  /** Number of the newest read that waits for a quorum; 0 when none does. */
  readonly readCount: number;
}

export interface HeartbeatReply extends Envelope {
  readonly type: 'heartbeat-reply';
  /** Copied from the heartbeat: its sender was leader when this many reads had been asked. */
  readonly readCount: number;
}

/** Leader to follower: the state at an index whose entries are gone. */
export interface SnapshotMessage extends Envelope {
  readonly type: 'snapshot';
  readonly snapshot: Snapshot;
}

/** Leader to its chosen successor: campaign now. */
export interface TimeoutNowMessage extends Envelope {
  readonly type: 'timeout-now';
}

/** Follower to leader: a leadership transfer asked for at the follower. */
export interface TransferMessage extends Envelope {
  readonly type: 'transfer-leader';
  readonly target: NodeId;
}

/** Follower to leader: a proposal made at the follower. Carries no term. */
export interface ProposeMessage extends Envelope {
  readonly type: 'propose';
  readonly entries: readonly ProposedEntry[];
}

/** Follower to leader: which index must be applied before a read may be answered? No term. */
export interface ReadIndexMessage extends Envelope {
  readonly type: 'read-index';
  readonly context: string;
}

export interface ReadIndexReply extends Envelope {
  readonly type: 'read-index-reply';
  readonly index: number;
  readonly context: string;
}

/** To the append worker: make this durable, a snapshot before entries, then deliver the replies. */
export interface StorageAppendMessage extends Envelope {
  readonly type: 'storage-append';
  readonly hardState?: HardState;
  readonly entries: readonly Entry[];
  readonly snapshot?: Snapshot;
  readonly replies: readonly Message[];
}

/** From the append worker: everything up to and including `lastStable` and `snapshot` is on disk. */
export interface StorageAppendReply extends Envelope {
  readonly type: 'storage-append-reply';
  readonly lastStable?: { readonly term: number; readonly index: number };
  readonly snapshot?: Snapshot;
}

/**
 * To the apply worker: apply these committed entries, in the order given, then deliver the replies. The two
 * workers do not wait for each other, so a snapshot may be in place before older entries come to be
 * applied: it contains them, and they must be skipped.
 */
export interface StorageApplyMessage extends Envelope {
  readonly type: 'storage-apply';
  readonly entries: readonly Entry[];
  readonly replies: readonly Message[];
}

export interface StorageApplyReply extends Envelope {
  readonly type: 'storage-apply-reply';
  readonly entries: readonly Entry[];
}

export type Message =
  | AppendMessage
  | AppendReply
  | VoteMessage
  | VoteReply
  | HeartbeatMessage
  | HeartbeatReply
  | SnapshotMessage
  | TimeoutNowMessage
  | TransferMessage
  | ProposeMessage
  | ReadIndexMessage
  | ReadIndexReply
  | StorageAppendMessage
  | StorageAppendReply
  | StorageApplyMessage
  | StorageApplyReply;

export type MessageType = Message['type'];

/** How a message type is handled on its way in and out. */
export interface MessageTraits {
  /** Is a promise about what is on this node's disk, or leads to one, so it may not leave before the disk has it. */
  readonly waitsForDisk: boolean;
  /** Comes from a storage worker of this node, never from the network. */
  readonly local: boolean;
  /** Means the same in every term and carries 0 for it. */
  readonly termless: boolean;
  /** Answers something, so its sender must be a known member. */
  readonly reply: boolean;
}

const PLAIN: MessageTraits = { waitsForDisk: false, local: false, termless: false, reply: false };
const REPLY: MessageTraits = { ...PLAIN, reply: true };
const PROMISE: MessageTraits = { ...REPLY, waitsForDisk: true };
const TERMLESS: MessageTraits = { ...PLAIN, termless: true };
const LOCAL: MessageTraits = { ...TERMLESS, local: true };

export const MESSAGE_TRAITS: Readonly<Record<MessageType, MessageTraits>> = {
  append: PLAIN,
  'append-reply': PROMISE,
  vote: { ...PLAIN, waitsForDisk: true },
  'vote-reply': PROMISE,
  'pre-vote': PLAIN,
  'pre-vote-reply': PROMISE,
  heartbeat: PLAIN,
  'heartbeat-reply': REPLY,
  snapshot: PLAIN,
  'timeout-now': PLAIN,
  'transfer-leader': PLAIN,
  propose: TERMLESS,
  'read-index': TERMLESS,
  'read-index-reply': REPLY,
  'storage-append': LOCAL,
  'storage-append-reply': { ...LOCAL, termless: false, reply: true },
  'storage-apply': LOCAL,
  'storage-apply-reply': { ...LOCAL, reply: true },
};
