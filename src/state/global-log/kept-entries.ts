// The entries of the global log that a datacenter keeps, read back: for those who follow it, for the
// hash at a place, and for an operator who looks at what diverged.

import type { KvRange, KvReader, KvRow } from '../../../cluster/platform/kv.ts';
import { IN_ONE_PIECE_BYTES } from '../in-one-piece.ts';
import type { Getter } from '../rows/store/getter.ts';
import { numberInKey, rangeOf, rowKey } from '../rows/tables.ts';
import { epochAt, rangesOf } from './chain.ts';
import type { GlobalCursor, Position } from './cursor.ts';
import { decodeEntry, entryHash, entryLinks, type GlobalEntry, isReset } from './global-entry.ts';
import { entryKey } from './global-log-writer.ts';
import type { EntryRange, Replication } from './replication.ts';

/** The entries that a datacenter can send to others. */
export interface KeptRange {
  /** One more than `head.seq` when none is kept. */
  readonly first: number;
  readonly head: GlobalCursor;
  readonly bytes: number;
}

/** Of the seq in the key of an entry: behind the kind and the epoch. */
const SEQ_AT = 9;

/**
 * The hash after the entry of this seq; undefined where it is not kept, is beyond the head, or where the
 * objects are not those of the chain.
 */
export function hashAt(
  rows: Getter,
  replication: Replication,
  seq: number,
): Uint8Array | undefined {
  const { cursor, epochs, first, isDiverged } = replication;
  if (isDiverged) return undefined;
  if (seq === cursor.seq) return cursor.hash;
  if (seq < first - 1 || seq > cursor.seq) return undefined;
  const next = rows.get(entryKey(epochAt(epochs, seq + 1), seq + 1));
  return next === undefined ? undefined : entryLinks(next)?.prevHash;
}

/**
 * The bytes of the entries behind `afterSeq` in order, at least one where there is one, and no more than
 * fit in `limitBytes`. Undefined where they are not kept any more.
 */
export async function entriesAfter(
  reader: KvReader,
  replication: Replication,
  afterSeq: number,
  limitBytes: number,
): Promise<readonly Uint8Array[] | undefined> {
  const { cursor, epochs, first, isDiverged } = replication;
  if (isDiverged || afterSeq + 1 < first) return undefined;
  const entries: Uint8Array[] = [];
  let sizeBytes = 0;
  for (const range of rangesOf(epochs, afterSeq + 1, cursor.seq)) {
    for await (const rows of rowsIn(reader, range)) {
      for (const { key, value } of rows) {
        const isFull = entries.length > 0 && sizeBytes + value.length > limitBytes;
        // Entries can be dropped between two ranges.
        const isNext = numberInKey(key, SEQ_AT) === afterSeq + 1 + entries.length;
        if (isFull || !isNext) return entries;
        entries.push(value);
        sizeBytes += value.length;
      }
    }
  }
  return entries;
}

/** The digest of all global objects after the entry of that place; undefined where it is not kept here. */
export function entryDigestAt(
  rows: Getter,
  { epochs, first }: Replication,
  { epoch, seq, hash }: GlobalCursor,
): Uint8Array | undefined {
  if (seq < first || epochAt(epochs, seq) !== epoch) return undefined;
  const entry = rows.get(entryKey(epoch, seq));
  const isThis = entry !== undefined && Buffer.compare(entryHash(entry), hash) === 0;
  return isThis ? decodeEntry(entry).digest : undefined;
}

/** Reading so many, of which no block is in memory any more, takes a leader, and each server, a millisecond or two. */
const TRIMMED_AT_ONCE = 128;

/** Up to which entry the log is trimmed in one piece, of those up to `upTo`: one at least. */
export function trimmableTo(rows: Getter, { epochs, first }: Replication, upTo: number): number {
  const end = Math.min(upTo, first + TRIMMED_AT_ONCE - 1);
  let last = first;
  for (let bytes = 0; last < end; last += 1) {
    bytes += rows.get(entryKey(epochAt(epochs, last), last))?.length ?? 0;
    if (bytes >= IN_ONE_PIECE_BYTES) break;
  }
  return Math.min(last, end);
}

/** So many entries are looked at one by one, as long as they are short. */
const MEASURED_MAX = 256;

/** How many bytes the kept entries behind `seq` have; of many, by the size of all that are kept. */
export function keptSizeAfter(
  rows: Getter,
  { epochs, cursor, first, keptBytes }: Replication,
  seq: number,
): number {
  const from = Math.max(first, seq + 1);
  const count = Math.max(0, cursor.seq + 1 - from);
  const onAverage = Math.round((keptBytes * count) / (cursor.seq + 1 - first));
  if (count > MEASURED_MAX) return onAverage;
  let sizeBytes = 0;
  for (let each = from; each <= cursor.seq; each += 1) {
    if (sizeBytes >= IN_ONE_PIECE_BYTES) return Math.max(sizeBytes, onAverage);
    sizeBytes += rows.get(entryKey(epochAt(epochs, each), each))?.length ?? 0;
  }
  return sizeBytes;
}

/** When the entry of this seq was made; undefined where it is not kept. */
export function entryTimeMs(
  rows: Getter,
  { epochs, cursor, first }: Replication,
  seq: number,
): number | undefined {
  if (seq < first || seq > cursor.seq) return undefined;
  const entry = rows.get(entryKey(epochAt(epochs, seq), seq));
  return entry === undefined ? undefined : entryLinks(entry)?.timeMs;
}

/** Whether the entry of this seq is kept and says that an archive took the place of all objects. */
export function isRestoreAt(
  rows: Getter,
  { epochs, cursor, first }: Replication,
  seq: number,
): boolean {
  if (seq < first || seq > cursor.seq) return false;
  const entry = rows.get(entryKey(epochAt(epochs, seq), seq));
  return entry !== undefined && isReset(entry);
}

/**
 * When the newest entry was made that nobody wants any more, of those that are still there; undefined where there is
 * none. Who waits on a fork may still want them, to go back or to find more of its own among them.
 */
export function unusedTimeMs(
  rows: Getter,
  { unused, isDiverged }: Pick<Replication, 'unused' | 'isDiverged'>,
): number | undefined {
  if (isDiverged || unused.length === 0) return undefined;
  const times = unused.map(({ epoch, last }) => {
    const entry = rows.get(entryKey(epoch, last));
    return (entry && entryLinks(entry)?.timeMs) ?? 0;
  });
  return Math.max(...times);
}

/** What this datacenter wrote and no later epoch has, oldest first. */
export async function divergentEntries(
  reader: KvReader,
  { divergent }: Replication,
  limit: number,
): Promise<readonly GlobalEntry[]> {
  const entries: GlobalEntry[] = [];
  for (const range of divergent) {
    for await (const rows of rowsIn(reader, range)) {
      for (const { value } of rows) {
        if (entries.length >= limit) return entries;
        entries.push(decodeEntry(value));
      }
    }
  }
  return entries;
}

/** The divergent entry at that place; undefined where there is none. */
export function divergentEntryAt(
  rows: Getter,
  { divergent }: Replication,
  { epoch, seq }: Position,
): GlobalEntry | undefined {
  const isThere = divergent.some(
    (range) => range.epoch === epoch && range.first <= seq && seq <= range.last,
  );
  const entry = isThere ? rows.get(entryKey(epoch, seq)) : undefined;
  return entry && decodeEntry(entry);
}

/** The last one first. */
export function rowsBackIn(reader: KvReader, range: EntryRange): AsyncIterable<readonly KvRow[]> {
  return reader.rows({ ...keysOf(range), reverse: true });
}

function rowsIn(reader: KvReader, range: EntryRange): AsyncIterable<readonly KvRow[]> {
  return reader.rows(keysOf(range));
}

function keysOf({ epoch, first, last }: EntryRange): Pick<KvRange, 'from' | 'to'> {
  return { from: entryKey(epoch, first), to: rangeOf(rowKey('globalEntry', epoch, last)).to };
}
