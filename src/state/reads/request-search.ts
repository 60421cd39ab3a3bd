// What is asked of the remembered requests by whoever forgets them.

/** A part of the remembered requests, from the oldest on. */
export interface RequestSearch {
  /** Answers with a smaller index than this one are looked for. */
  readonly below: number;
  /** Those with the same index, which changed nothing, when they were remembered before this time. */
  readonly orBeforeMs: number;
  /** Behind the row that the last search ended with. */
  readonly after: Uint8Array | undefined;
  /** Rows that are looked at, at most; and none behind the one that makes them IN_ONE_PIECE_BYTES. */
  readonly limit: number;
}

export interface FoundRequests {
  readonly keys: readonly Uint8Array[];
  /** Rows that were looked at. */
  readonly looked: number;
  /** Where the next search goes on; undefined at the end. */
  readonly next: Uint8Array | undefined;
}
