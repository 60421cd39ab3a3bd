// Objects in slices of bounded size, read from a store as they are asked for: those of a table's own rows, and
// those that index rows point at.

import type { KvRange, KvReader, KvRow, KvSnapshot } from '../../../cluster/platform/kv.ts';
import { decodeRecord } from '../rows/layout/record-codec.ts';
import type { Stamped } from '../rows/layout/stamp.ts';
import type { ObjectTable } from '../rows/objects/objects.ts';

export type Slices<T> = AsyncIterable<readonly T[]>;

/** A slice ends behind the object with which it is so long: an object may have a mebibyte. */
const SLICE_BYTES = 256 * 1024;

/** The objects whose keys `keysIn` finds, all read from one snapshot, which is closed behind them. */
export function joined<T extends Stamped>(
  snapshot: KvSnapshot,
  table: ObjectTable<T>,
  keysIn: (snapshot: KvSnapshot) => Slices<Uint8Array>,
): Slices<T> {
  return joinedSlices(snapshot, table, keysIn(snapshot));
}

async function* joinedSlices<T extends Stamped>(
  snapshot: KvSnapshot,
  table: ObjectTable<T>,
  keys: Slices<Uint8Array>,
): AsyncGenerator<readonly T[]> {
  try {
    for await (const slice of keys) {
      let objects: T[] = [];
      let sizeBytes = 0;
      for (const key of slice) {
        const value = snapshot.get(key);
        if (value === undefined) continue;
        objects.push(decodeRecord(table.codec, value));
        sizeBytes += value.length;
        if (sizeBytes < SLICE_BYTES) continue;
        yield objects;
        objects = [];
        sizeBytes = 0;
      }
      if (objects.length > 0) yield objects;
    }
  } finally {
    await snapshot.close();
  }
}

/** Of rows that point at objects: the keys of those. */
export async function* keysOf(
  rows: Slices<KvRow>,
  keyOf: (row: KvRow) => Uint8Array,
): AsyncGenerator<readonly Uint8Array[]> {
  for await (const slice of rows) yield slice.map(keyOf);
}

/** The objects of a table's own rows. */
export function objectsIn<T extends Stamped>(
  reader: Pick<KvReader, 'rows'>,
  table: ObjectTable<T>,
  range: KvRange,
): Slices<T> {
  return decoded(reader.rows({ ...range, isValuesOnly: true }), table);
}

async function* decoded<T extends Stamped>(
  rows: Slices<KvRow>,
  table: ObjectTable<T>,
): AsyncGenerator<readonly T[]> {
  for await (const slice of rows) yield slice.map(({ value }) => decodeRecord(table.codec, value));
}

/** At most `limit` of those that are wanted; undefined: all. */
export async function* filtered<T>(
  slices: Slices<T>,
  isWanted: (object: T) => boolean,
  limit: number | undefined,
): AsyncGenerator<readonly T[]> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  for await (const slice of slices) {
    const wanted = slice.filter(isWanted).slice(0, left);
    if (wanted.length > 0) yield wanted;
    left -= wanted.length;
    if (left === 0) return;
  }
}

/** One slice, or none where it would be empty. */
export async function* once<T>(slice: readonly T[]): AsyncGenerator<readonly T[]> {
  if (slice.length > 0) yield slice;
}

export function nothing<T>(): Slices<T> {
  return once<T>([]);
}
