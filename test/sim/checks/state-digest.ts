// What the rows of a state come to, wherever its store has put them: which keyspace is the current one is
// a matter of each store alone, and so is how far those that are unused are deleted.

import { decodeKeyspaces, KEYSPACES_KEY } from '../../../src/state/rows/store/keyspaces.ts';
import { ROW } from '../../../src/state/rows/tables.ts';
import { bytesOf, textOf } from '../world/key-text.ts';
import {
  addedSums,
  NO_SUMS,
  type RowSums,
  rowsDigest,
  sumsOfRow,
  sumsText,
} from '../world/rows-digest.ts';
import type { Row, RowsFold, SortedRows } from '../world/sorted-rows.ts';

const KEYSPACES = textOf(KEYSPACES_KEY);
/** Kind and number, before the key of a row that is not in the first keyspace. */
const PREFIX_CHARS = 5;

/** Rows of one keyspace: as they count when it is the current one, and when it is the staged one. */
interface KeyspaceSums {
  readonly current: RowSums;
  readonly staged: RowSums;
}

/** The rows of one store, by what they are to its state. */
interface StateSums {
  /** In no keyspace. */
  readonly outside: RowSums;
  /** In the first keyspace, which has no number before its keys. */
  readonly first: RowSums;
  /** By number. */
  readonly others: ReadonlyMap<number, KeyspaceSums>;
}

const NO_OTHERS: ReadonlyMap<number, KeyspaceSums> = new Map();
const NO_ROWS: StateSums = { outside: NO_SUMS, first: NO_SUMS, others: NO_OTHERS };

const BY_KEYSPACE: RowsFold<StateSums> = {
  none: NO_ROWS,
  of: sumsOf,
  join: (left, right) => ({
    outside: addedSums(left.outside, right.outside),
    first: addedSums(left.first, right.first),
    others: addedKeyspaces(left.others, right.others),
  }),
};

/** Equal states have equal digests. */
export function stateDigest(rows: SortedRows): string {
  const row = rows.get(KEYSPACES);
  if (row === undefined) return rowsDigest(rows);
  const { current, staged } = decodeKeyspaces(row);
  const { outside, first, others } = rows.fold(BY_KEYSPACE);
  const own = [outside, current === 0 ? first : NO_SUMS, others.get(current)?.current ?? NO_SUMS];
  const isComing = staged !== undefined && staged !== current;
  const coming = isComing ? (others.get(staged)?.staged ?? NO_SUMS) : NO_SUMS;
  return sumsText([...own, coming].reduce(addedSums));
}

function sumsOf({ key, value }: Row): StateSums {
  const kind = key.charCodeAt(0);
  if (kind === ROW.keyspaces) return NO_ROWS;
  if (kind !== ROW.inKeyspace) {
    const sums = sumsOfRow(key, value);
    const isOfFirst = kind > ROW.meta && kind < ROW.restore;
    return isOfFirst ? { ...NO_ROWS, first: sums } : { ...NO_ROWS, outside: sums };
  }
  const keyspace = Buffer.from(bytesOf(key)).readUInt32BE(1);
  const own = key.slice(PREFIX_CHARS);
  const current = sumsOfRow(own, value);
  const staged = sumsOfRow(String.fromCharCode(ROW.staged) + own, value);
  return { ...NO_ROWS, others: new Map([[keyspace, { current, staged }]]) };
}

function addedKeyspaces(
  left: ReadonlyMap<number, KeyspaceSums>,
  right: ReadonlyMap<number, KeyspaceSums>,
): ReadonlyMap<number, KeyspaceSums> {
  if (left.size === 0) return right;
  if (right.size === 0) return left;
  const all = new Map(left);
  for (const [keyspace, { current, staged }] of right) {
    const known = all.get(keyspace);
    all.set(keyspace, {
      current: addedSums(known?.current ?? NO_SUMS, current),
      staged: addedSums(known?.staged ?? NO_SUMS, staged),
    });
  }
  return all;
}
