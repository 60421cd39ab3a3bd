// Every kind of row of the state, by the first byte of its key. A number is never given another
// meaning: a retired kind stays in the list as a tombstone. This file knows keys only; what the
// values look like is record-codec.ts, and which index rows an object has is objects.ts.
//
// In the keys below, `text` is UTF-8 ended by 00 (a 00 inside is escaped), ids are 16 bytes, numbers
// are eight bytes, big end first: so keys order as their parts do.

import type { NamespaceName } from '../../acl/ids.ts';
import { nameKey } from '../../acl/values/names.ts';

export const ROW = {
  /** () -> applied entry, index, position, digests, table indexes, totals */
  meta: 1,
  /** namespace text -> object counts */
  counts: 2,

  /** accessor id -> token */
  token: 10,
  /** SHA-256 of the secret -> accessor id */
  tokenBySecret: 11,
  /** namespace text, accessor id -> () */
  tokenByNamespace: 12,
  /** namespace text, policy id, accessor id -> () */
  tokenByPolicy: 13,
  /** namespace text, role id, accessor id -> () */
  tokenByRole: 14,
  /** namespace text, lower-cased service name text, accessor id -> () */
  tokenByService: 15,
  /** method's namespace text, lower-cased name text, its CreateIndex, token's namespace text, accessor id -> () */
  tokenByMethod: 16,
  /** expiration time in milliseconds, accessor id -> () */
  tokenByExpiry: 17,

  /** policy id -> policy */
  policy: 20,
  /** namespace text, lower-cased name text -> policy id */
  policyByName: 21,

  /** role id -> role */
  role: 30,
  /** namespace text, lower-cased name text -> role id */
  roleByName: 31,
  /** namespace text, policy id, role id -> () */
  roleByPolicy: 32,

  /** namespace text, lower-cased name text -> auth method */
  authMethod: 40,
  /** namespace text, lower-cased name text, CreateIndex -> how many tokens it has */
  methodTokens: 41,
  /** namespace text, lower-cased name text, CreateIndex -> (), of a deleted method that still has tokens */
  retiredMethod: 42,

  /** rule id -> binding rule */
  bindingRule: 50,
  /** namespace text, rule id -> () */
  ruleByNamespace: 51,
  /** namespace text, lower-cased method name text -> rule ids, in order */
  rulesOfMethod: 52,

  /** name text -> namespace */
  namespace: 60,

  /** request key (32 bytes) -> remembered request */
  request: 70,
  /** time in milliseconds, request key -> () */
  requestByTime: 71,

  /** key text -> pending login */
  pendingLogin: 80,
  /** expiry in milliseconds, key text -> () */
  pendingLoginByTime: 81,

  /** namespace text -> of a deleted namespace that still holds local tokens: up to which index, and how many */
  retiredNamespace: 85,

  /** () -> how far the restore, or the snapshot of the primary, is that is under way */
  restore: 90,
  /** key of a row -> its value, of the state that the restore brings; see keyspaces.ts */
  staged: 91,

  /** () -> how this datacenter stands in the global log; see global-log/replication.ts */
  replication: 92,
  /** epoch, seq -> entry of the global log */
  globalEntry: 93,

  /** () -> which keyspaces there are, and what for */
  keyspaces: 100,
  /** number of a keyspace in four bytes, key of a row -> its value */
  inKeyspace: 101,
} as const;

export type RowKind = keyof typeof ROW;

/** Said apart from the rows, or true of one store alone. */
const NOT_SENT: ReadonlySet<number> = new Set([ROW.meta, ROW.keyspaces, ROW.inKeyspace]);
const SENT_KINDS: ReadonlySet<number> = new Set(
  Object.values(ROW).filter((kind) => !NOT_SENT.has(kind)),
);
const BOOKKEEPING_KINDS: ReadonlySet<number> = new Set([
  ROW.request,
  ROW.requestByTime,
  ROW.pendingLogin,
  ROW.pendingLoginByTime,
]);
const PASSING_KINDS: ReadonlySet<number> = new Set([
  ...BOOKKEEPING_KINDS,
  ROW.restore,
  ROW.staged,
  ROW.replication,
  ROW.globalEntry,
]);
/** The kinds of rows that are objects, in the order of their keys. */
export const OBJECT_KINDS: ReadonlySet<number> = new Set([
  ROW.token,
  ROW.policy,
  ROW.role,
  ROW.authMethod,
  ROW.bindingRule,
  ROW.namespace,
]);

/** Whether a snapshot has rows whose keys begin with this byte. */
export function isSentRow(kind: number): boolean {
  return SENT_KINDS.has(kind);
}

/** Whether such a row comes back when a state is restored: what was under way then does not. */
export function isRestoredRow(kind: number): boolean {
  return SENT_KINDS.has(kind) && !PASSING_KINDS.has(kind);
}

/** Whether such a row is an object: the digests count it, and other rows follow from it. */
export function isObjectRow(kind: number): boolean {
  return OBJECT_KINDS.has(kind);
}

/** Whether such a row is of a remembered request or a pending login: no object, and of one datacenter. */
export function isBookkeepingRow(kind: number): boolean {
  return BOOKKEEPING_KINDS.has(kind);
}

/** What a key is put together from, after its first byte. Bytes are taken as they are. */
export type KeyPart = string | number | Uint8Array;

export const NO_BYTES = new Uint8Array(0);

const TEXT_END = 0x00;

/** Keys are put together here and copied out; it grows with the largest key. */
let workspace = Buffer.alloc(1024);

/** The key of a row, or (with some parts left out at the end) the prefix that such keys share. */
export function rowKey(kind: RowKind, ...parts: readonly KeyPart[]): Uint8Array {
  workspace[0] = ROW[kind];
  let at = 1;
  for (const part of parts) at = writePart(part, at);
  const key = Buffer.allocUnsafe(at);
  // Keys are short: going through them here is cheaper than a call that copies.
  for (let place = 0; place < at; place += 1) key[place] = workspace[place]!;
  return key;
}

/** The key of the one meta row. */
export const META_KEY = rowKey('meta');

function writePart(part: KeyPart, at: number): number {
  if (typeof part === 'number') {
    reserve(at + 8);
    workspace.writeUInt32BE(Math.floor(part / 2 ** 32), at);
    workspace.writeUInt32BE(part % 2 ** 32, at + 4);
    return at + 8;
  }
  if (typeof part === 'string') {
    const text = escaped(part);
    // No UTF-16 unit becomes more than three bytes.
    reserve(at + text.length * 3 + 1);
    const end = at + workspace.write(text, at, 'utf8');
    workspace[end] = TEXT_END;
    return end + 1;
  }
  reserve(at + part.length);
  workspace.set(part, at);
  return at + part.length;
}

function reserve(size: number): void {
  if (size > workspace.length) workspace = Buffer.concat([workspace], size * 2);
}

const TO_ESCAPE = /[\0\x01]/;

/** 00 becomes 01 01 and 01 becomes 01 02: no 00 is left inside, and the order of texts stays. */
function escaped(text: string): string {
  if (!TO_ESCAPE.test(text)) return text;
  return text.replaceAll('\x01', '\x01\x02').replaceAll('\0', '\x01\x01');
}

function unescaped(text: string): string {
  if (!text.includes('\x01')) return text;
  return text.replaceAll('\x01\x01', '\0').replaceAll('\x01\x02', '\x01');
}

/** The half-open range of all keys that begin with `prefix`. */
export function rangeOf(prefix: Uint8Array): {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
} {
  return { from: prefix, to: afterPrefix(prefix) };
}

/** The first key behind all that begin with `prefix`. First bytes of keys are below 255. */
export function afterPrefix(prefix: Uint8Array): Uint8Array {
  let length = prefix.length;
  while (prefix[length - 1] === 0xff) length -= 1;
  const end = Uint8Array.from(prefix.subarray(0, length));
  end[length - 1] = end[length - 1]! + 1;
  return end;
}

/** The smallest key behind this one. */
export function behind(key: Uint8Array): Uint8Array {
  const next = new Uint8Array(key.length + 1);
  next.set(key);
  return next;
}

/** The number at a place of a key. */
export function numberInKey(key: Uint8Array, at: number): number {
  const view = new DataView(key.buffer, key.byteOffset, key.length);
  return view.getUint32(at) * 2 ** 32 + view.getUint32(at + 4);
}

/** The texts at the start of a key (behind its first byte), as many as asked for. */
export function textsInKey(key: Uint8Array, count: number): readonly string[] {
  const bytes = Buffer.from(key.buffer, key.byteOffset, key.length);
  const texts: string[] = [];
  for (let at = 1; texts.length < count; ) {
    const end = bytes.indexOf(TEXT_END, at);
    texts.push(unescaped(bytes.toString('utf8', at, end)));
    at = end + 1;
  }
  return texts;
}

/** The last 16 bytes of a key: the id of the object that an index row points at. */
export function idAtEnd(key: Uint8Array): Uint8Array {
  return key.subarray(key.length - 16);
}

/** How names are told apart in keys: per namespace, in any letter case. */
export function namedKey(
  kind: RowKind,
  namespace: NamespaceName,
  name: string,
  ...rest: readonly KeyPart[]
): Uint8Array {
  return rowKey(kind, namespace, nameKey(name), ...rest);
}
