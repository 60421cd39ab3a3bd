// What a state says of itself, asked of one that somebody else gives: it is gone on with, so its counters must
// be counters, of one state, and far from where numbers stop being exact.

import type { LogWitness } from '../../../cluster/log/log-entry.ts';
import { isCount } from './layout/object-shapes.ts';
import type { Meta } from './meta.ts';

/**
 * No counter of a state that comes in is greater: it leaves as many steps to go as there are behind it, and no
 * state comes there by itself, at a million changes a second in 142 years.
 */
export const COUNTER_MAX = 2 ** 52;

const HASH_BYTES = 32;

/** What of it cannot be gone on with, in words; undefined when all can. Its level is the caller's matter. */
export function wrongInMeta(meta: Meta): string | undefined {
  const { index, position, bootstrapIndex, groupRecord } = meta;
  const own = [...Object.values(meta.tableIndexes), bootstrapIndex ?? 0];
  if (!isCounter(index)) return `its index is ${told(index)}`;
  if (!isCounter(position.epoch) || !isCounter(position.seq)) {
    return `its position is ${told(position.epoch)}.${told(position.seq)}`;
  }
  if (!own.every((each) => isCount(each) && each <= index)) {
    return `it has an index beyond its own, which is ${index}`;
  }
  if (![meta.globalDigest, meta.fullDigest].every(isHash)) return 'its digests are none';
  if (!Object.values(meta.totals).every(isCount)) return 'its totals are none';
  if (!isLevel(meta.level)) return `its feature level is ${told(meta.level)}`;
  if (!isWitness(meta.appliedEntry)) return 'its last entry is none';
  if (groupRecord !== undefined && !isBytes(groupRecord)) return 'its group is none';
  return undefined;
}

function isWitness(entry: LogWitness | undefined): boolean {
  return (
    entry === undefined || (isCounter(entry.index) && isCounter(entry.term) && isHash(entry.hash))
  );
}

function isCounter(value: unknown): boolean {
  return isCount(value) && value <= COUNTER_MAX;
}

function isLevel(value: unknown): boolean {
  return isCount(value) && value > 0;
}

function isHash(value: unknown): boolean {
  return isBytes(value) && value.length === HASH_BYTES;
}

function isBytes(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array;
}

/** What is no number may be anything, of any length. */
function told(value: unknown): string {
  return typeof value === 'number' ? String(value) : 'no number';
}
