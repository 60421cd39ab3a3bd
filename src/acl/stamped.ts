// Indexes are stamped when a change is applied, never before.

/** An object as it enters the log: everything decided but its indexes. */
export type Unstamped<T extends { readonly createIndex: number; readonly modifyIndex: number }> =
  Omit<T, 'createIndex' | 'modifyIndex'>;
