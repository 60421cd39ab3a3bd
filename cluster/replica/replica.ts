// What a group of nodes that agree on one log offers to the node that it runs on, and what it asks
// for: a machine that gives the entries their meaning. Who agrees, and how, is the implementation's
// matter: solo-replica.ts is the group of one.

import type { LogEntry, LogWitness } from '../log/log-entry.ts';

/** What committed entries are applied to. It remembers on its own disk how far it came. */
export interface Machine<Outcome> {
  /** The last applied entry, as it is on disk; undefined before the first one. */
  readonly appliedEntry: LogWitness | undefined;
  /**
   * Applies entries that follow the last applied one; resolves with one outcome an entry once the
   * effects are on disk. Never called again before that. An entry with an empty payload does nothing.
   */
  apply(entries: readonly LogEntry[]): Promise<readonly Outcome[]>;
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
