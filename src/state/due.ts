// What the leader's duties look for: tokens to reap, requests and logins to forget. Each looks from
// the oldest on and stops at its limit, so that a duty costs what it finds.

import type { KvReader, KvRow } from '../../cluster/platform/kv.ts';
import { type AccessorId, uuidOfBytes } from '../acl/ids.ts';
import { idAtEnd, rangeOf, type RowKind, ROW, rowKey, textsInKey } from './tables.ts';

/** Accessor ids of tokens whose time lies before `nowMs`, oldest first. */
export async function expiredTokens(
  reader: KvReader,
  nowMs: number,
  limit: number,
): Promise<readonly AccessorId[]> {
  const keys = await keysBefore(reader, 'tokenByExpiry', nowMs, limit);
  return keys.map(accessorOf);
}

/** Accessor ids of tokens whose auth method is gone. */
export async function orphanedTokens(
  reader: KvReader,
  limit: number,
): Promise<readonly AccessorId[]> {
  const found: AccessorId[] = [];
  for await (const methods of reader.rows(rangeOf(rowKey('retiredMethod')))) {
    for (const method of methods) {
      if (found.length >= limit) return found;
      // Both kinds of keys name a method in the same way.
      const prefix = Uint8Array.from(method.key);
      prefix[0] = ROW.tokenByMethod;
      const range = { ...rangeOf(prefix), limit: limit - found.length };
      for (const { key } of await allRows(reader.rows(range))) found.push(accessorOf(key));
    }
  }
  return found;
}

/** Keys of requests that were remembered before `beforeMs`, oldest first. */
export async function oldRequests(
  reader: KvReader,
  beforeMs: number,
  limit: number,
): Promise<readonly Uint8Array[]> {
  const keys = await keysBefore(reader, 'requestByTime', beforeMs, limit);
  return keys.map((key) => key.subarray(TIMED_PREFIX_BYTES));
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

function accessorOf(key: Uint8Array): AccessorId {
  return uuidOfBytes(idAtEnd(key)) as AccessorId;
}
