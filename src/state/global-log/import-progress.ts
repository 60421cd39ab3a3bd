// How far a snapshot of another datacenter is on its way in: it stands in the row of restores, because
// a datacenter takes in one other state at a time. Restores have format 1 of that row.

import { type Fields, pack, requireFormat, unpack } from '../rows/layout/packing.ts';
import { countsTotals, type Totals, totalsFields } from '../rows/meta.ts';
import type { Sums } from '../rows/objects/object-rows.ts';
import { decodeHeader, encodeHeader, type GlobalSnapshotHeader } from './global-snapshot.ts';

export interface ImportProgress {
  readonly id: string;
  /** When its last command was made. */
  readonly timeMs: number;
  readonly header: GlobalSnapshotHeader;
  /** Pieces that came. */
  readonly chunkCount: number;
  /** The greatest key among them; empty at first. */
  readonly lastKey: Uint8Array;
  /** Batches of local rows; once there is one, what changes locally goes into both keyspaces. */
  readonly carryCount: number;
  /** No local row is left to carry. */
  readonly isCarried: boolean;
  /** A local token had to give way to a global one. */
  readonly hasDropped: boolean;
  /** Of what came in so far. */
  readonly sums: Sums;
}

const IMPORT_FORMAT = 2;

export function encodeImport(progress: ImportProgress): Uint8Array {
  const { id, timeMs, header, chunkCount, lastKey, carryCount, sums } = progress;
  return pack([
    IMPORT_FORMAT,
    id,
    timeMs,
    encodeHeader(header),
    chunkCount,
    lastKey,
    carryCount,
    progress.isCarried,
    progress.hasDropped,
    sums.globalDigest,
    sums.fullDigest,
    totalsFields(sums.totals),
  ]);
}

/** Undefined for the row of a restore. */
export function decodeImport(value: Uint8Array): ImportProgress | undefined {
  const [format, id, timeMs, header, chunkCount, lastKey, carryCount, ...rest] = unpack(value);
  if (format === RESTORE_FORMAT) return undefined;
  requireFormat('import row', format, IMPORT_FORMAT);
  const [isCarried, hasDropped, globalDigest, fullDigest, totals] = rest;
  return {
    id,
    timeMs,
    header: decodeHeader(header as Uint8Array),
    chunkCount,
    lastKey,
    carryCount,
    isCarried,
    hasDropped,
    sums: { globalDigest, fullDigest, totals: countsTotals(totals as Fields) as Totals },
  } as ImportProgress;
}

const RESTORE_FORMAT = 1;
