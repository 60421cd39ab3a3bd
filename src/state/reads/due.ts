// What the leader's duties look for: requests and logins to forget; of tokens see void-tokens.ts. Each looks from
// the oldest on and stops at its limit, so that a duty costs what it finds.

import type { KvReader, KvRow } from '../../../cluster/platform/kv.ts';
import { IN_ONE_PIECE_BYTES } from '../in-one-piece.ts';
import { requestAgeOf } from '../rows/request-row.ts';
import { behind, type RowKind, rangeOf, rowKey, textsInKey } from '../rows/tables.ts';
import type { FoundRequests, RequestSearch } from './request-search.ts';

/** Keys of requests that were remembered before `beforeMs`, oldest first. */
export async function oldRequests(
  reader: KvReader,
  beforeMs: number,
  limit: number,
): Promise<readonly Uint8Array[]> {
  const keys = await keysBefore(reader, 'requestByTime', beforeMs, limit);
  return keys.map((key) => key.subarray(TIMED_PREFIX_BYTES));
}

/** In one piece, however long what was answered is: see RequestSearch. */
export async function requestsBelow(
  reader: KvReader,
  { below, orBeforeMs, after, limit }: RequestSearch,
): Promise<FoundRequests> {
  const all = rangeOf(rowKey('requestByTime'));
  const range = { from: after === undefined ? all.from : behind(after), to: all.to, limit };
  const rows = await allRows(reader.rows(range));
  const keys: Uint8Array[] = [];
  let looked = 0;
  for (let bytes = 0; looked < rows.length && bytes < IN_ONE_PIECE_BYTES; looked += 1) {
    const key = rows[looked]!.key.subarray(TIMED_PREFIX_BYTES);
    const value = reader.get(rowKey('request', key));
    if (value === undefined) continue;
    bytes += value.length;
    const { index, timeMs } = requestAgeOf(value);
    if (index < below || (index === below && timeMs < orBeforeMs)) keys.push(key);
  }
  const isEnd = looked === rows.length && looked < limit;
  return { keys, looked, next: isEnd ? undefined : rows[looked - 1]?.key };
}

/** Keys of pending logins whose time lies before `nowMs`, oldest first. */
export async function oldPendingLogins(
  reader: KvReader,
  nowMs: number,
  limit: number,
): Promise<readonly string[]> {
  const keys = await keysBefore(reader, 'pendingLoginByTime', nowMs, limit);
  return keys.flatMap((key) => textsInKey(key.subarray(TIMED_PREFIX_BYTES - 1), 1));
}

/** The first byte, and the time behind it. */
const TIMED_PREFIX_BYTES = 9;

async function keysBefore(
  reader: KvReader,
  kind: RowKind,
  beforeMs: number,
  limit: number,
): Promise<readonly Uint8Array[]> {
  const range = { from: rowKey(kind), to: rowKey(kind, Math.max(0, beforeMs)), limit };
  return (await allRows(reader.rows(range))).map(({ key }) => key);
}

async function allRows(slices: AsyncIterable<readonly KvRow[]>): Promise<readonly KvRow[]> {
  const rows: KvRow[] = [];
  for await (const slice of slices) rows.push(...slice);
  return rows;
}
