// Rows that are no objects: remembered requests and pending logins, each with a row that finds it by
// its time. They are the same on every node, but no digest counts them and nobody watches them.

import type { ChangeSet } from '../change-set.ts';
import type { RequestMark } from '../commands/commands.ts';
import type { AppliedOutcome } from '../commands/outcome.ts';
import { pack, requireFormat, unpack } from './layout/packing.ts';
import {
  decodeRequest,
  encodeRequest,
  type RememberedRequest,
  requestAgeOf,
} from './request-row.ts';
import type { Getter } from './store/getter.ts';
import { NO_BYTES, rowKey } from './tables.ts';

/** A remembered request answers repeats for so long, by the clocks of proposing leaders. */
export const REQUEST_MEMORY_MS = 10 * 60 * 1000;

const FORMAT = 1;

export interface PendingLogin {
  readonly value: Uint8Array;
  readonly expiresMs: number;
}

export function readRequest(rows: Getter, key: Uint8Array): RememberedRequest | undefined {
  const value = rows.get(rowKey('request', key));
  return value === undefined ? undefined : decodeRequest(value);
}

/** Replaces what is remembered under the key. */
export function rememberRequest(
  changes: ChangeSet,
  { key, fingerprint }: RequestMark,
  timeMs: number,
  outcome: AppliedOutcome,
): void {
  forgetRequest(changes, key);
  changes.putRow(rowKey('request', key), encodeRequest({ fingerprint, timeMs, outcome }));
  changes.putRow(rowKey('requestByTime', timeMs, key), NO_BYTES);
}

export function forgetRequest(changes: ChangeSet, key: Uint8Array): void {
  const value = changes.get(rowKey('request', key));
  if (value === undefined) return;
  changes.deleteRow(rowKey('request', key));
  changes.deleteRow(rowKey('requestByTime', requestAgeOf(value).timeMs, key));
}

export function readPendingLogin(rows: Getter, key: string): PendingLogin | undefined {
  const bytes = rows.get(rowKey('pendingLogin', key));
  return bytes === undefined ? undefined : decodePendingLogin(bytes);
}

export function decodePendingLogin(bytes: Uint8Array): PendingLogin {
  const [format, value, expiresMs] = unpack(bytes);
  requireFormat('pending login', format, FORMAT);
  return { value: value as Uint8Array, expiresMs: expiresMs as number };
}

export function setPendingLogin(changes: ChangeSet, key: string, login: PendingLogin): void {
  deletePendingLogin(changes, key);
  changes.putRow(rowKey('pendingLogin', key), pack([FORMAT, login.value, login.expiresMs]));
  changes.putRow(rowKey('pendingLoginByTime', login.expiresMs, key), NO_BYTES);
}

export function deletePendingLogin(changes: ChangeSet, key: string): void {
  const login = readPendingLogin(changes, key);
  if (login === undefined) return;
  changes.deleteRow(rowKey('pendingLogin', key));
  changes.deleteRow(rowKey('pendingLoginByTime', login.expiresMs, key));
}
