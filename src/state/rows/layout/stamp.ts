// Indexes on objects: given when a change is applied, never before.

/** What every stored object carries. */
export interface Stamped {
  readonly createIndex: number;
  readonly modifyIndex: number;
}

/** Stands in the places of the indexes while an object is in a command. */
export const NOT_STAMPED: Stamped = { createIndex: 0, modifyIndex: 0 };
