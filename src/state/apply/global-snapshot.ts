// The objects of the primary in place of those that a datacenter has, when entries do not lead there any
// more: they come in piece by piece where nobody sees them, what lives here alone is carried over, and
// one command makes both the state, with the place in the global log that they are of.

import { AssertionError, must } from '../../../cluster/base/assert.ts';
import type { KvRow } from '../../../cluster/platform/kv.ts';
import type { ChangeSet } from '../change-set.ts';
import type { ChangeOf } from '../commands/commands.ts';
import { isStrictOnRows } from '../commands/feature-levels.ts';
import { isGlobalRow } from '../global-effects.ts';
import { isOwn, suffixOf } from '../global-log/chain.ts';
import { comparePlaces } from '../global-log/cursor.ts';
import { decodeHeader, type GlobalSnapshotHeader } from '../global-log/global-snapshot.ts';
import { encodeImport } from '../global-log/import-progress.ts';
import { forkIndexOf } from '../global-log/left-fork.ts';
import { isPrimary, isStranger } from '../global-log/replication.ts';
import { setApart } from '../global-log/set-apart.ts';
import type { StagedImport } from '../global-log/staged-import.ts';
import type { Verdict, VerdictAnswer } from '../global-log/verdict.ts';
import { arrivedRequest } from '../reads/shared-request.ts';
import { Digest } from '../rows/digest.ts';
import { fieldsOrNone } from '../rows/layout/packing.ts';
import { isReadable } from '../rows/layout/readable-row.ts';
import { EMPTY_META } from '../rows/meta.ts';
import type { Sums } from '../rows/objects/object-rows.ts';
import { RESTORE_KEY } from '../rows/restore-progress.ts';
import { NO_BYTES } from '../rows/tables.ts';
import { RowParser } from '../snapshot/row-parser.ts';
import type { ApplyContext } from './checks.ts';
import { verdictOf } from './global-log.ts';

export function applyGlobalSnapshotBegin(
  { changes, timeMs }: ApplyContext,
  { id, header: bytes }: ChangeOf<'global-snapshot.begin'>,
): VerdictAnswer {
  const header = readHeader(bytes);
  const refusal = header === undefined ? 'broken-chain' : refusalOf(changes, header);
  if (header === undefined || refusal !== undefined) return verdictOf(changes, refusal!);
  const { globalDigest, fullDigest, totals } = EMPTY_META;
  const progress = {
    id,
    timeMs,
    header,
    chunkCount: 0,
    lastKey: NO_BYTES,
    carryCount: 0,
    isCarried: false,
    hasDropped: false,
    sums: { globalDigest, fullDigest, totals },
  };
  changes.putRow(RESTORE_KEY, encodeImport(progress));
  changes.setKeyspaceStep('stage');
  return verdictOf(changes, 'applied');
}

export function applyGlobalSnapshotChunk(
  { changes, timeMs }: ApplyContext,
  { id, number, rows: packed }: ChangeOf<'global-snapshot.chunk'>,
): VerdictAnswer {
  const staged = stagedOf(changes, id);
  const { chunkCount, carryCount, lastKey: before } = staged?.progress ?? NOTHING;
  if (staged === undefined || number !== chunkCount + 1 || carryCount > 0) {
    return verdictOf(changes, 'other-cursor');
  }
  const rows = rowsIn(packed);
  if (rows === undefined || !mayBeTaken(changes, rows)) return verdictOf(changes, 'broken-chain');
  let lastKey = before;
  for (const { key, value } of rows) {
    const mayCome = isGlobalRow(key, value) || arrivedRequest(key, value) !== undefined;
    const isNext = Buffer.compare(key, lastKey) > 0 && mayCome;
    if (!isNext) return verdictOf(changes, 'broken-chain');
    lastKey = key;
  }
  for (const { key, value } of rows) {
    const arrived = arrivedRequest(key, value);
    if (arrived === undefined) staged.putGlobal(key, value);
    else staged.putRequest(arrived, changes.index);
  }
  staged.moveOn({ timeMs, chunkCount: number, lastKey });
  return verdictOf(changes, 'applied');
}

export function applyGlobalSnapshotCarry(
  { changes, timeMs }: ApplyContext,
  { id, number, keys, isLast }: ChangeOf<'global-snapshot.carry'>,
): VerdictAnswer {
  const staged = stagedOf(changes, id);
  const { carryCount, isCarried } = staged?.progress ?? NOTHING;
  const isListedLater = number > 1 || (keys.length === 0 && !isLast);
  if (staged === undefined || number !== carryCount + 1 || isCarried || !isListedLater) {
    return verdictOf(changes, 'other-cursor');
  }
  const forkIndex = forkIndexOf(changes, staged.progress.header.epochs);
  const { level } = changes;
  for (const key of keys) staged.carry(key, { forkIndex, level });
  staged.moveOn({ timeMs, carryCount: number, isCarried: isLast });
  return verdictOf(changes, 'applied');
}

export function applyGlobalSnapshotCommit(
  { changes }: ApplyContext,
  { id }: ChangeOf<'global-snapshot.commit'>,
): VerdictAnswer {
  const staged = stagedOf(changes, id);
  if (staged?.progress.isCarried !== true) return verdictOf(changes, 'other-cursor');
  const { header, hasDropped } = staged.progress;
  const refusal = refusalOf(changes, header);
  if (refusal !== undefined) return verdictOf(changes, refusal);
  const { sums } = staged;
  const replication = must(changes.replication, 'a global log');
  const isWhole = replication.isWitness || Buffer.compare(sums.globalDigest, header.digest) === 0;
  const isCarried =
    hasDropped || Buffer.compare(localDigest(sums), localDigest(changes.sums)) === 0;
  if (!isWhole || !isCarried) return verdictOf(changes, 'diverged');
  // Nothing but the snapshot may have told of its reign.
  if (replication.isDiverged) {
    changes.changeReplication(setApart(changes, replication, header.epochs));
  }
  changes.adoptStaged();
  return verdictOf(changes, 'applied');
}

const NOTHING = { chunkCount: 0, carryCount: 0, isCarried: false, lastKey: NO_BYTES };

function stagedOf({ staged }: ChangeSet, id: string): StagedImport | undefined {
  return staged?.progress.id === id ? staged : undefined;
}

/** Why the objects of that place may not become the state; undefined when they may. */
function refusalOf({ replication }: ChangeSet, header: GlobalSnapshotHeader): Verdict | undefined {
  if (replication === undefined) return 'not-begun';
  if (isPrimary(replication)) return 'primary';
  if (isStranger(replication, header)) return 'stranger';
  const epoch = must(header.epochs.at(-1), 'an epoch').epoch;
  if (epoch < replication.maxEpochPromised) return 'fenced';
  if (replication.isDiverged) return undefined;
  // What it wrote itself and others lack is set apart first, by `epoch.fence`.
  if (suffixOf(replication, header.epochs).some((each) => isOwn(replication, each))) {
    return 'not-allowed';
  }
  return comparePlaces(header.cursor, replication.cursor) < 0 ? 'other-cursor' : undefined;
}

function localDigest({ globalDigest, fullDigest }: Sums): Uint8Array {
  const digest = new Digest(fullDigest);
  digest.subtract(globalDigest);
  return digest.bytes();
}

/** Bytes that are no header are refused; a format that is not known here ends the process. */
function readHeader(bytes: Uint8Array): GlobalSnapshotHeader | undefined {
  if (fieldsOrNone(bytes) === undefined) return undefined;
  try {
    const header = decodeHeader(bytes);
    return header.epochs.length === 0 ? undefined : header;
  } catch (error) {
    if (error instanceof AssertionError) throw error;
    return undefined;
  }
}

/** What nobody can read would end every server at the first command that meets it. */
function mayBeTaken({ level }: ChangeSet, rows: readonly KvRow[]): boolean {
  return !isStrictOnRows(level) || rows.every(isReadable);
}

function rowsIn(packed: Uint8Array): ReturnType<RowParser['take']> | undefined {
  const damage = new Error('the piece is damaged');
  const parser = new RowParser(() => damage);
  try {
    const rows = parser.take(packed);
    return parser.begunBytes === 0 ? rows : undefined;
  } catch (error) {
    if (error === damage) return undefined;
    throw error;
  }
}
