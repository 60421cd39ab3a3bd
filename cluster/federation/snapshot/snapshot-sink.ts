// Where a snapshot of the primary goes in a secondary: into its own group's log, piece by piece, beside what
// is there, until one step makes it the global state. Declared here, made by whoever knows the state.

import type { GlobalCursor } from '../global-log.ts';

/** What a snapshot is, before its first piece. */
export interface SnapshotOffer {
  /** Drawn by the primary; no two are the same. */
  readonly snapshotId: string;
  readonly federationId: string;
  /** Of the primary's reign. */
  readonly epoch: number;
  /** The global log up to here is in it, exactly. */
  readonly cursor: GlobalCursor;
}

/** Every step resolves when the own group has it on its disks, and rejects when it may not have it. */
export interface SnapshotSink {
  /** What is staged at the moment, by this leader or an earlier one; undefined: nothing. */
  staged(): { readonly snapshotId: string; readonly nextNumber: number } | undefined;
  /** Drops what was staged before. */
  begin(offer: SnapshotOffer): Promise<void>;
  /** The pieces come in order, from 0. A piece that is staged already changes nothing. */
  add(piece: {
    readonly snapshotId: string;
    readonly number: number;
    readonly bytes: Uint8Array;
  }): Promise<void>;
  /** All pieces are there: from now on they are the global state, at the cursor of the offer. */
  commit(end: { readonly snapshotId: string; readonly pieceCount: number }): Promise<void>;
}
