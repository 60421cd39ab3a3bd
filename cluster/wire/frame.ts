// What nodes say to each other: one frame is one payload of the network below. The first frames of a
// connection prove who is there (cluster/transport/handshake/handshake.ts says how); then both sides send messages
// and calls. Shapes only: frame-codec.ts gives them bytes, docs/WIRE.md tells their history.

import type { Message } from '../raft/message.ts';
import type { NodeId } from '../raft/node-id.ts';

/**
 * What a connection is for. Small frames never stand behind large ones: those go another way. `call` is for
 * whoever has no link with this node and only asks.
 */
export type Lane = 'control' | 'bulk' | 'call';

/** The first frame of both sides: who is there, and what it expects. */
export interface Hello {
  readonly kind: 'hello';
  /** The range of protocol versions that its program speaks. */
  readonly oldestVersion: number;
  readonly newestVersion: number;
  /** Empty while the node belongs to no cluster, or only looks who is there. */
  readonly clusterId: string;
  readonly datacenter: string;
  readonly node: NodeId;
  /** The uuid of its data folder. */
  readonly id: string;
  readonly name: string;
  readonly programVersion: string;
  /** Another one after every start of its process: what its earlier life was asked, it cannot answer. */
  readonly life: string;
  /** What the dialling side wants the connection for; the other side repeats it. */
  readonly lane: Lane;
  /** Whether it has a cluster key, and so asks for proof of it. */
  readonly hasKey: boolean;
  /** 32 random bytes: no proof can be used twice. */
  readonly nonce: Uint8Array;
  /** Which datacenters belong together; empty while the node knows of none. The first release lacks it. */
  readonly federationId: string;
  /** Up to which level its program reads what the log says. Releases that do not say so read FIRST_LEVEL. */
  readonly reads: number;
  /** The level that its group uses, as far as it knows; FIRST_LEVEL while it has none. */
  readonly uses: number;
}

/** The second frame of the dialling side. */
export interface Proof {
  readonly kind: 'proof';
  /** Empty where nobody has a key. */
  readonly mac: Uint8Array;
}

/** The second frame of the listening side: the link stands. */
export interface Accepted {
  readonly kind: 'accepted';
  /** The protocol version of all frames that follow. */
  readonly version: number;
  /** Its own proof; empty where nobody has a key. */
  readonly mac: Uint8Array;
}

/** Why the connection closes now; at any time, from either side. */
export interface Refused {
  readonly kind: 'refused';
  readonly code: RefusedCode;
  readonly why: string;
}

/** `refused` is for an operator to look at; the others pass by themselves or are nobody's fault. */
export type RefusedCode = 'refused' | 'linked-already' | 'busy' | 'closing' | 'self';

/** What was handed over for the other node in one turn, in order. */
export interface Messages {
  readonly kind: 'messages';
  readonly messages: readonly Message[];
}

export interface CallFrame {
  readonly kind: 'call';
  /** Names the call among those of its sender's life. */
  readonly id: number;
  readonly method: string;
  /** How many nodes handed it on before. */
  readonly hops: number;
  /** So long the caller waits from now on: clocks differ, durations do not. */
  readonly remainingMs: number;
  readonly payload: Uint8Array;
}

export interface AnswerFrame {
  readonly kind: 'answer';
  readonly id: number;
  readonly payload: Uint8Array;
}

/** The call was not carried out, or its handler says no. */
export interface RefusalFrame {
  readonly kind: 'refusal';
  readonly id: number;
  readonly code: string;
  readonly says: string;
}

/** Still here; asks to be told so. */
export interface Ping {
  readonly kind: 'ping';
  /** Milliseconds of the sender's own clock, for itself. */
  readonly sentAtMs: number;
}

/** Copied from the ping: how long the way there and back took. */
export interface Pong {
  readonly kind: 'pong';
  readonly sentAtMs: number;
}

export type Frame =
  | Hello
  | Proof
  | Accepted
  | Refused
  | Messages
  | CallFrame
  | AnswerFrame
  | RefusalFrame
  | Ping
  | Pong;

/** Versions of the protocol that this program speaks. */
export const OLDEST_PROTOCOL = 1;
export const NEWEST_PROTOCOL = 2;
/** Of what the log says, before there were levels. */
export const FIRST_LEVEL = 1;
export const NONCE_BYTES = 32;
export const MAC_BYTES = 32;
/** Characters of a name, an id, a version, a method, a code. */
export const NAME_MAX = 256;
/** Characters of a reason. */
export const WHY_MAX = 1024;
/** Messages of one frame. */
export const MESSAGES_MAX = 4096;
