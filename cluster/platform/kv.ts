// An ordered key-value store of bytes, as the outside world supplies it: LevelDB in production, a
// sorted map in tests. Keys order byte-wise. A batch is atomic; with `sync` it survives power loss
// once its promise resolves. Two batches of one store are never in flight together: the caller
// waits for one before it starts the next (LevelDB does not order un-awaited writes).

export type KvWrite =
  | { readonly type: 'put'; readonly key: Uint8Array; readonly value: Uint8Array }
  | { readonly type: 'del'; readonly key: Uint8Array };

/** A half-open range of keys: `from` included, `to` not. */
export interface KvRange {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly reverse?: boolean;
  /** At most so many rows; default all. */
  readonly limit?: number;
  /** About so many will be taken: larger slices are read for nothing. Default: what suits the store. */
  readonly sliceRows?: number | undefined;
  /** Nobody looks at the keys: they come empty, which is cheaper. */
  readonly isValuesOnly?: boolean | undefined;
}

export interface KvRow {
  readonly key: Uint8Array;
  readonly value: Uint8Array;
}

/** What reads need. The bytes that come back belong to the caller. */
export interface KvReader {
  /** The value, or undefined when the key is missing. Synchronous: a few microseconds when warm. */
  get(key: Uint8Array): Uint8Array | undefined;
  /**
   * The rows of a range in key order, in slices of bounded size, all as of the moment of the call.
   * Can be gone through once; whoever asks goes through it or ends it early (`break` does).
   */
  rows(range: KvRange): AsyncIterable<readonly KvRow[]>;
}

/** The store as of one moment, while others write on. Whoever takes one closes it. */
export interface KvSnapshot extends KvReader {
  close(): Promise<void>;
}

export interface Kv extends KvReader {
  /**
   * Writes all or nothing, and resolves when it is on disk. Every batch is synced. The first failure
   * is final: it is reported once to whoever opened the store, and everything later is refused.
   */
  write(writes: readonly KvWrite[]): Promise<void>;
  snapshot(): KvSnapshot;
  /** Frees the space of deleted keys of a range in the background. */
  compact(range: { readonly from: Uint8Array; readonly to: Uint8Array }): Promise<void>;
  /** Waits for a write under way. Closing twice is harmless. */
  close(): Promise<void>;
}
