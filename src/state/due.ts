// What the leader's duties look for: tokens to reap, requests and logins to forget. Each looks from
// the oldest on and stops at its limit, so that a duty costs what it finds.

import type { KvReader, KvRow } from '../../cluster/platform/kv.ts';
import { type AccessorId, uuidOfBytes } from '../acl/ids.ts';
import { IN_ONE_PIECE_BYTES } from './in-one-piece.ts';
import { requestAgeOf } from './request-row.ts';
import type { FoundRequests, RequestSearch } from './request-search.ts';
import { TOKENS } from './objects.ts';
import { readAt } from './reads.ts';
import { decodeRetiredNamespace } from './retired-namespace.ts';
import { behind, idAtEnd, rangeOf, type RowKind, ROW, rowKey, textsInKey } from './tables.ts';

export interface TokenSearch {
  readonly limit: number;
  /** The tokens that are looked for; all, when it is left out. */
  readonly isOwn?: ((accessorId: AccessorId) => boolean) | undefined;
}

/** Accessor ids of tokens whose time lies before `nowMs`, oldest first. */
export async function expiredTokens(
  reader: KvReader,
  { nowMs, limit, isOwn = () => true }: TokenSearch & { readonly nowMs: number },
): Promise<readonly AccessorId[]> {
  const found: AccessorId[] = [];
  const range = { from: rowKey('tokenByExpiry'), to: rowKey('tokenByExpiry', Math.max(0, nowMs)) };
  for await (const rows of reader.rows(range)) {
    for (const { key } of rows) {
      if (found.length >= limit) return found;
      const accessorId = accessorOf(key);
      if (isOwn(accessorId)) found.push(accessorId);
    }
  }
  return found;
}

/** Accessor ids of tokens whose auth method or namespace is gone. */
export async function orphanedTokens(
  reader: KvReader,
  { limit, isOwn = () => true }: TokenSearch,
): Promise<readonly AccessorId[]> {
  const found: AccessorId[] = [];
  await addNamespaceless(found, reader, limit);
  for await (const methods of reader.rows(rangeOf(rowKey('retiredMethod')))) {
    for (const method of methods) {
      if (found.length >= limit) return found;
      // Both kinds of keys name a method in the same way.
      const prefix = Uint8Array.from(method.key);
      prefix[0] = ROW.tokenByMethod;
      for await (const rows of reader.rows(rangeOf(prefix))) {
        for (const { key } of rows) {
          if (found.length >= limit) return found;
          const accessorId = accessorOf(key);
          if (isOwn(accessorId)) found.push(accessorId);
        }
      }
    }
  }
  return found;
}

/** Local tokens that were made in a namespace that is gone. */
async function addNamespaceless(
  found: AccessorId[],
  reader: KvReader,
  limit: number,
): Promise<void> {
  for await (const namespaces of reader.rows(rangeOf(rowKey('retiredNamespace')))) {
    for (const namespace of namespaces) {
      const { upTo } = decodeRetiredNamespace(namespace.value);
      const prefix = Uint8Array.from(namespace.key);
      prefix[0] = ROW.tokenByNamespace;
      for await (const rows of reader.rows(rangeOf(prefix))) {
        for (const { key } of rows) {
          if (found.length >= limit) return;
          const token = readAt(reader, TOKENS, rowKey('token', idAtEnd(key)));
          if (token?.local === true && token.createIndex <= upTo) found.push(token.accessorId);
        }
      }
    }
  }
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

function accessorOf(key: Uint8Array): AccessorId {
  return uuidOfBytes(idAtEnd(key)) as AccessorId;
}
