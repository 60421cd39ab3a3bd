// What is asked of the remembered requests by whoever forgets them.

/** A part of the remembered requests, from the oldest on. */
export interface RequestSearch {
  /** Answers with a smaller index than this one are looked for. */
  readonly below: number;
  /** Those with the same index, which changed nothing, when they were remembered before this time. */
  readonly orBeforeMs: number;
  /** Behind the row that the last search ended with. */
  readonly after: Uint8Array | undefined;
  /** Rows that are looked at. */
  readonly limit: number;
}
