// Where the rows of the state are in its store. A keyspace is a whole set of rows: one is current; while a
// state is being restored, a second one collects it, out of everybody's sight; those that are no longer
// wanted are deleted in their own time. So one small batch replaces a state of any size.
//
// Keyspace 0 has its rows under their own keys, as if there were no keyspaces. The others have them
// behind the row kind `inKeyspace` and their number. Which number is used for what is this store's
// matter alone: no snapshot tells it, and two servers may differ.

import { must } from '../../../../cluster/base/assert.ts';
import { unreachable } from '../../../../cluster/base/unreachable.ts';
import type { KvRange } from '../../../../cluster/platform/kv.ts';
import { orNull, orUndefined, pack, requireFormat, unpack } from '../layout/packing.ts';
import { NO_BYTES, ROW, rangeOf, rowKey } from '../tables.ts';

export interface Keyspaces {
  readonly current: number;
  /** Collects what is being restored. */
  readonly staged: number | undefined;
  /** To be deleted. */
  readonly unused: readonly number[];
}

/** What a batch does to the keyspaces, beside its rows. */
export type KeyspaceStep =
  /** A new one collects a restore; one that did so before is unused. */
  | 'stage'
  /** What was collected is the state from now on. */
  | 'adopt'
  /** What was collected is not wanted. */
  | 'drop';

export const ONE_KEYSPACE: Keyspaces = { current: 0, staged: undefined, unused: [] };

export const KEYSPACES_KEY = rowKey('keyspaces');

const FORMAT = 1;
const STAGED = 'a keyspace that collects a restore';
/** Kind and number. */
const PREFIX_BYTES = 5;

export function encodeKeyspaces({ current, staged, unused }: Keyspaces): Uint8Array {
  return pack([FORMAT, current, orNull(staged), unused]);
}

export function decodeKeyspaces(value: Uint8Array | undefined): Keyspaces {
  if (value === undefined) return ONE_KEYSPACE;
  const [format, current, staged, unused] = unpack(value);
  requireFormat('keyspaces row', format, FORMAT);
  return {
    current: current as number,
    staged: orUndefined(staged as number | null),
    unused: unused as readonly number[],
  };
}

export function afterStep(keyspaces: Keyspaces, step: KeyspaceStep): Keyspaces {
  const { current, staged, unused } = keyspaces;
  const dropped = staged === undefined ? unused : [...unused, staged];
  switch (step) {
    case 'stage':
      return { current, staged: Math.max(current, ...dropped) + 1, unused: dropped };
    case 'adopt':
      return {
        current: must(staged, STAGED),
        staged: undefined,
        unused: [...unused, current],
      };
    case 'drop':
      return { current, staged: undefined, unused: dropped };
    default:
      return unreachable(step);
  }
}

/** All rows of the keyspace are deleted. */
export function withoutUnused(keyspaces: Keyspaces, gone: number): Keyspaces {
  return { ...keyspaces, unused: keyspaces.unused.filter((each) => each !== gone) };
}

/** Where a row of the state is in the store. */
export function placeOf(keyspaces: Keyspaces, key: Uint8Array): Uint8Array {
  const kind = key[0]!;
  if (kind === ROW.staged) return keyIn(must(keyspaces.staged, STAGED), key.subarray(1));
  return hasOwnPlace(kind) || keyspaces.current === 0 ? key : keyIn(keyspaces.current, key);
}

/** A range of rows of the state, as the store has it. */
export interface PlacedRange {
  readonly range: KvRange;
  /** The key of the state for a key that was found. */
  readonly keyOf: ((found: Uint8Array) => Uint8Array) | undefined;
}

/** Where a range is that does not reach from one part of the state into another. */
export function placeOfRange(keyspaces: Keyspaces, range: KvRange): PlacedRange {
  const kind = range.from[0]!;
  const { current, staged } = keyspaces;
  if (kind === ROW.staged && staged !== undefined) {
    return { range: rangeOf(keyIn(staged)), keyOf: stagedKeyOf };
  }
  if (hasOwnPlace(kind) || current === 0) return { range, keyOf: undefined };
  const [from, to] = [keyIn(current, range.from), keyIn(current, range.to)];
  return { range: { ...range, from, to }, keyOf: (found) => found.subarray(PREFIX_BYTES) };
}

/** All that a keyspace has in the store. */
export function rangeOfKeyspace(keyspace: number): KvRange {
  return keyspace === 0 ? FIRST_KEYSPACE : rangeOf(keyIn(keyspace));
}

const FIRST_KEYSPACE: KvRange = {
  from: Uint8Array.of(ROW.meta + 1),
  to: Uint8Array.of(ROW.restore),
};

/** Of rows that are in no keyspace. */
function hasOwnPlace(kind: number): boolean {
  return kind === ROW.meta || kind >= ROW.restore;
}

function keyIn(keyspace: number, key: Uint8Array = NO_BYTES): Uint8Array {
  const placed = Buffer.allocUnsafe(PREFIX_BYTES + key.length);
  placed[0] = ROW.inKeyspace;
  placed.writeUInt32BE(keyspace, 1);
  placed.set(key, PREFIX_BYTES);
  return placed;
}

function stagedKeyOf(found: Uint8Array): Uint8Array {
  // The last byte of the prefix makes room for the kind.
  const key = Buffer.from(found.subarray(PREFIX_BYTES - 1));
  key[0] = ROW.staged;
  return key;
}
