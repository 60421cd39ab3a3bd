// Another state in place of this one: its rows come in one command after the other, where nobody sees
// them, and become the state in one. What a command says is checked against what came in before, so
// that a lost, doubled or foreign piece is refused by all servers alike; so is a row that none of them could
// read once it is part of the state. The leader has looked at all of it before: see archives.ts.

import type { KvRow } from '../../../cluster/platform/kv.ts';
import { AclError } from '../../acl/error.ts';
import type { ChangeOf } from '../commands/commands.ts';
import { isStrictOnRows } from '../commands/feature-levels.ts';
import type { Answer } from '../commands/outcome.ts';
import { decodeImport } from '../global-log/import-progress.ts';
import { Digest, rowHash } from '../rows/digest.ts';
import { requireReadable, UnreadableRow } from '../rows/layout/readable-row.ts';
import { decodeMeta, type Meta } from '../rows/meta.ts';
import { wrongInMeta } from '../rows/meta-check.ts';
import {
  decodeRestore,
  encodeRestore,
  newRestore,
  RESTORE_KEY,
  type RestoreProgress,
} from '../rows/restore-progress.ts';
import { stagedKey } from '../rows/store/row-buffer.ts';
import { isObjectRow, isRestoredRow } from '../rows/tables.ts';
import { RowParser } from '../snapshot/row-parser.ts';
import { chained } from '../snapshot/snapshot-format.ts';
import type { ApplyContext } from './checks.ts';

const DONE: Answer = { type: 'done' };

export function applyRestoreBegin(
  { changes, timeMs }: ApplyContext,
  { id }: ChangeOf<'restore.begin'>,
): Answer {
  changes.putRow(RESTORE_KEY, encodeRestore(newRestore(id, timeMs)));
  changes.setKeyspaceStep('stage');
  return DONE;
}

export function applyRestoreChunk(
  context: ApplyContext,
  { id, number, rows: packed }: ChangeOf<'restore.chunk'>,
): Answer {
  const { changes, timeMs } = context;
  const before = requireRestore(context, id);
  if (number !== before.chunkCount + 1) {
    throw refused(`piece ${number} came behind piece ${before.chunkCount}`);
  }
  const parser = new RowParser(refused);
  const rows = parser.take(packed);
  if (parser.begunBytes > 0) throw refused(`piece ${number} is cut off`);
  const digest = new Digest(before.digest);
  let { lastKey } = before;
  for (const { key, value } of rows) {
    const isNext = isRestoredRow(key[0]!) && Buffer.compare(key, lastKey) > 0;
    if (!isNext) throw refused(`piece ${number} has a row that does not belong there`);
    lastKey = key;
    if (isObjectRow(key[0]!)) digest.add(rowHash(key, value));
  }
  if (isStrictOnRows(changes.level)) requireAllReadable(rows);
  for (const { key, value } of rows) changes.putRow(stagedKey(key), value);
  const progress: RestoreProgress = {
    id,
    timeMs,
    chunkCount: number,
    rowCount: before.rowCount + rows.length,
    chain: chained(before.chain, packed),
    digest: digest.bytes(),
    lastKey,
  };
  changes.putRow(RESTORE_KEY, encodeRestore(progress));
  return DONE;
}

export function applyRestoreCommit(
  context: ApplyContext,
  { id, chunkCount, chain, metaRow }: ChangeOf<'restore.commit'>,
): Answer {
  const progress = requireRestore(context, id);
  if (progress.chunkCount !== chunkCount) {
    throw refused(`${progress.chunkCount} of ${chunkCount} pieces are there`);
  }
  if (Buffer.compare(progress.chain, chain) !== 0) throw refused('its pieces are not those sent');
  const restored = metaOf(metaRow);
  if (Buffer.compare(progress.digest, restored.fullDigest) !== 0) {
    throw refused('its objects do not have the digest that it says');
  }
  if (isStrictOnRows(context.changes.level)) requireUsable(restored, context.changes.level);
  const { changes, timeMs, principal } = context;
  changes.adoptRestored(restored, { timeMs, principal, request: undefined });
  changes.deleteRow(RESTORE_KEY);
  return DONE;
}

export function applyRestoreAbandon(
  { changes }: ApplyContext,
  { id }: ChangeOf<'restore.abandon'>,
): Answer {
  const value = changes.get(RESTORE_KEY);
  if (value === undefined) return DONE;
  const underWay = decodeImport(value) ?? decodeRestore(value);
  if (underWay.id !== id) return DONE;
  changes.deleteRow(RESTORE_KEY);
  changes.setKeyspaceStep('drop');
  return DONE;
}

function requireRestore({ changes }: ApplyContext, id: string): RestoreProgress {
  const value = changes.get(RESTORE_KEY);
  const isRestore = value !== undefined && decodeImport(value) === undefined;
  const progress = isRestore ? decodeRestore(value) : undefined;
  if (progress?.id === id) return progress;
  throw refused(progress === undefined ? 'it was given up' : 'a later one took its place');
}

function metaOf(metaRow: Uint8Array): Meta {
  try {
    return decodeMeta(metaRow);
  } catch (cause) {
    throw new AclError('unavailable', 'the restore was refused: its meta row cannot be read', {
      cause,
    });
  }
}

function requireAllReadable(rows: readonly KvRow[]): void {
  try {
    for (const row of rows) requireReadable(row);
  } catch (error) {
    throw error instanceof UnreadableRow ? refused(error.message) : error;
  }
}

/** By the level of the log, which is the same for all servers, whatever each of them could read. */
function requireUsable(restored: Meta, level: number): void {
  const wrong = wrongInMeta(restored);
  if (wrong !== undefined) throw refused(wrong);
  if (restored.level <= level) return;
  throw refused(`it is of feature level ${restored.level}, and ${level} is used here`);
}

function refused(why: string): AclError {
  return new AclError('unavailable', `the restore was refused, and nothing was changed: ${why}`);
}
