// The global log of this datacenter, as its state has it on disk: what the feed reads from. Declared by the
// feed, made by whoever knows the state.

import type { GlobalCursor, GlobalEntry } from './global-log.ts';

/** Where a cursor of another datacenter lies. */
export type Location =
  /** On this chain, and all entries behind it are kept. */
  | { readonly kind: 'kept' }
  /** Before what is kept: nobody can tell any more whether it is on this chain. */
  | { readonly kind: 'trimmed' }
  /** Not on this chain, or ahead of it. The chains are the same up to `forkSeq`, as far as is known. */
  | { readonly kind: 'diverged'; readonly forkSeq: number };

export interface EntrySource {
  /** The last entry that is applied and on disk here; LOG_START before the first. */
  readonly head: GlobalCursor;
  /** The entries behind `afterSeq` are kept, and take so many bytes; an estimate is good enough. */
  readonly kept: { readonly afterSeq: number; readonly sizeBytes: number };
  /** The seq of the last restore, as long as that is kept: what it brought, no entry has. 0: none is known. */
  readonly restoredSeq: number;
  /** Called when the head has moved. Gives what takes the listener away. */
  onMoved(listener: () => void): () => void;
  locate(cursor: GlobalCursor): Location;
  /**
   * What follows `afterSeq`, in order and without a gap: as many entries as have `maxBytes` together, one
   * at least, none at the head. Undefined when the first of them is not kept any more.
   */
  read(afterSeq: number, maxBytes: number): Promise<readonly GlobalEntry[] | undefined>;
  /**
   * Of all that the log speaks of, exactly at that place; undefined where it is not on this chain, or not
   * known any more.
   */
  digestAt(cursor: GlobalCursor): Uint8Array | undefined;
  /** How many bytes follow `seq`, as far as they are kept; by the average size where they are many. */
  sizeAfter(seq: number): number;
  /** Numbers of the state at the head, for followers; the feed does not know what they count. */
  figures(): readonly number[];
  /** When the primary wrote that entry, by its wall clock; undefined where it is not kept. */
  writtenAtMs(seq: number): number | undefined;
}
