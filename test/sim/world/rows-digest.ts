// A digest of a set of rows: the sum of the hashes of all rows. Equal sets have equal digests, in whatever
// order and however many batches they came to be.

import type { RowsFold, SortedRows } from './sorted-rows.ts';

export interface RowSums {
  readonly sum: number;
  readonly other: number;
}

export const NO_SUMS: RowSums = { sum: 0, other: 0 };

export function sumsOfRow(key: string, value: Uint8Array): RowSums {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at += 1)
    hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  let other = hash ^ value.length;
  for (let at = 0; at < value.length; at += 1) {
    hash = Math.imul(hash ^ value[at]!, 0x01000193);
    other = Math.imul(other ^ hash, 0x5bd1e995) ^ (other >>> 15);
  }
  return { sum: hash | 0, other: other | 0 };
}

export function addedSums(left: RowSums, right: RowSums): RowSums {
  if (left === NO_SUMS) return right;
  if (right === NO_SUMS) return left;
  return { sum: (left.sum + right.sum) | 0, other: (left.other + right.other) | 0 };
}

export function sumsText({ sum, other }: RowSums): string {
  return `${(sum >>> 0).toString(16)}-${(other >>> 0).toString(16)}`;
}

const ALL: RowsFold<RowSums> = {
  none: NO_SUMS,
  of: ({ key, value }) => sumsOfRow(key, value),
  join: addedSums,
};

/** Costs what has changed since a digest of rows that these were made from. */
export function rowsDigest(rows: SortedRows): string {
  return sumsText(rows.fold(ALL));
}
