// What a group of nodes that agree on one log offers to the node that it runs on, and what it asks
// for: a machine that gives the entries their meaning, and that can hand its whole state to the
// machine of another node. Who agrees, and how, is the implementation's matter.

import type { LogEntry, LogWitness } from '../log/log-entry.ts';

/** A committed entry on its way to the machine. */
export interface AppliedEntry extends LogEntry {
  /** To be remembered with this entry, in the same batch; what it says is not the machine's matter. */
  readonly groupRecord?: Uint8Array;
}

/** What committed entries are applied to. It remembers on its own disk how far it came. */
export interface Machine<Outcome> {
  /** The last applied entry, as it is on disk; undefined before the first one. */
  readonly appliedEntry: LogWitness | undefined;
  /** The newest group record that was applied; undefined before the first. */
  readonly groupRecord: Uint8Array | undefined;
  /**
   * Applies entries that follow the last applied one; resolves with one outcome an entry once the
   * effects are on disk. Never called again before that. An entry with an empty payload, or of type
   * membership, does nothing but be remembered as applied.
   */
  apply(entries: readonly AppliedEntry[]): Promise<readonly Outcome[]>;
  /** The state as of the last applied entry, held until closed, whatever is applied meanwhile. */
  snapshot(): MachineSnapshot;
  /**
   * Begins to take in another node's state beside the present one; the present one serves on. One at a
   * time: the one before was adopted or abandoned.
   */
  beginInstall(): Promise<MachineIntake>;
}

/** No chunk of a snapshot is larger. */
export const SNAPSHOT_CHUNK_MAX_BYTES = 256 * 1024;

export interface MachineSnapshot {
  readonly appliedEntry: LogWitness | undefined;
  readonly groupRecord: Uint8Array | undefined;
  /** To be gone through once; self-checking as a whole. */
  chunks(): AsyncIterable<Uint8Array>;
  /** Closing twice is harmless. */
  close(): Promise<void>;
}

/** What a state that was taken in says of itself. */
export interface TakenState {
  readonly appliedEntry: LogWitness;
  readonly groupRecord: Uint8Array | undefined;
  /** Names the database it is in; see DurableLog.reset. */
  readonly generation: number;
}

export interface MachineIntake {
  /** One call at a time, in the order of the chunks. Rejects with SnapshotDamage. */
  add(chunk: Uint8Array): Promise<void>;
  /** All is there, checked, and on disk. Rejects with SnapshotDamage. */
  complete(): Promise<TakenState>;
  /** The machine becomes it: from now on it serves and applies there. After the log has switched. */
  adopt(): Promise<void>;
  /** At any time before adopt; twice is harmless. */
  abandon(): Promise<void>;
}

/** The chunks of a snapshot do not come to a whole state; the message says what is wrong. */
export class SnapshotDamage extends Error {
  override readonly name = 'SnapshotDamage';
}

export interface Replica<Outcome> {
  /**
   * Puts a payload (not empty) into the log; resolves with its outcome once it is applied and on disk.
   * Rejects with ReplicaError.
   */
  propose(payload: Uint8Array): Promise<Outcome>;
  /** Resolves when the machine's state holds everything that was answered before the call. */
  readBarrier(): Promise<void>;
  status(): ReplicaStatus;
  /** Stops taking proposals and waits for those under way. */
  close(): Promise<void>;
}

export type Standing = 'leader' | 'follower' | 'candidate' | 'learner';

export interface ReplicaStatus {
  readonly standing: Standing;
  readonly term: number;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  /** Proposals that wait for their batch of the log. */
  readonly queuedCount: number;
  /** Entries that are committed and wait for the machine. */
  readonly unappliedCount: number;
  /** Payload bytes of both. */
  readonly pendingBytes: number;
}

export type ReplicaErrorCode =
  /** Nothing was done: the queue is full. Trying again later may work. */
  | 'queue-full'
  /** Nothing was done: the replica is closing or has failed, or the payload is too large. */
  | 'closed'
  | 'too-large'
  /** It may or may not have taken effect: the disk failed while it was under way. */
  | 'outcome-unknown';

export class ReplicaError extends Error {
  override readonly name = 'ReplicaError';
  readonly code: ReplicaErrorCode;

  constructor(code: ReplicaErrorCode, message: string, options?: { readonly cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
}
