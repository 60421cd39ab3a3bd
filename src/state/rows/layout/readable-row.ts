// Whether this release reads a row that somebody else gives: a snapshot, an archive, another datacenter. What
// does not hold is named by the kind of the row and its key, never by what is in it: rows hold secrets, and
// so does what a parser says of them.

import type { KvRow } from '../../../../cluster/platform/kv.ts';
import { uuidOfBytes } from '../../../acl/ids.ts';
import { decodeImport } from '../../global-log/import-progress.ts';
import { decodeReplication } from '../../global-log/replication.ts';
import { decodePendingLogin } from '../bookkeeping.ts';
import { decodeCounts } from '../meta.ts';
import { type ObjectTable, tableOfRow } from '../objects/objects.ts';
import { decodeRetiredNamespace } from '../objects/retired-namespace.ts';
import { decodeRequest } from '../request-row.ts';
import { decodeRestore } from '../restore-progress.ts';
import { isObjectRow, ROW, type RowKind } from '../tables.ts';
import { isCount, wrongFieldOf } from './object-shapes.ts';
import { decodeNumber, fieldsOrNone } from './packing.ts';
import { decodeRecord, RECORD_FORMAT } from './record-codec.ts';
import type { Stamped } from './stamp.ts';

/** The row is damaged, or a newer release wrote it. */
export class UnreadableRow extends Error {
  override readonly name = 'UnreadableRow';

  constructor(key: Uint8Array, says: string) {
    super(`${nameOfRow(key)} ${says}`);
  }
}

/** An object that is in a row, whole. */
export interface ReadObject {
  readonly table: ObjectTable<Stamped>;
  readonly object: Stamped;
}

/** The object in a row of an object's kind, when all of it is what such an object has. Throws UnreadableRow. */
export function objectIn({ key, value }: KvRow): ReadObject {
  const table = tableOfRow(key[0]!);
  const object = orUnreadable(
    () => decodeRecord(table.codec, value),
    () => new UnreadableRow(key, whyNoRecord(value)),
  );
  const field = wrongFieldOf(table.name, object);
  if (field !== undefined) {
    throw new UnreadableRow(key, `has a field that no such object has: ${field}`);
  }
  if (Buffer.compare(table.keyOf(object), key) !== 0) {
    throw new UnreadableRow(key, 'is not at the place of the object that is in it');
  }
  return { table, object };
}

/** Throws UnreadableRow unless the row is one that this release reads, whatever its kind. */
export function requireReadable(row: KvRow): void {
  const { key, value } = row;
  if (isObjectRow(key[0]!)) {
    objectIn(row);
    return;
  }
  const holds = HOLDS_BY_KIND.get(key[0]!);
  if (holds === undefined) throw new UnreadableRow(key, 'is of a kind that is not known here');
  const unreadable = (): UnreadableRow =>
    new UnreadableRow(key, 'does not hold what such a row does');
  if (!orUnreadable(() => holds(value, key), unreadable)) throw unreadable();
}

/** Whether `requireReadable` lets it pass. */
export function isReadable(row: KvRow): boolean {
  try {
    requireReadable(row);
    return true;
  } catch (error) {
    if (error instanceof UnreadableRow) return false;
    throw error;
  }
}

/** The kind of a row by its name, and its key where that is no secret and made of none. */
export function nameOfRow(key: Uint8Array): string {
  const kind = KIND_NAMES.get(key[0]!) ?? `of kind ${key[0]}`;
  if (key.length === 1 || KEYS_OF_SECRETS.has(key[0]!)) return `the row ${kind}`;
  const rest = key.subarray(1);
  return `the row ${kind} ${rest.length === 16 ? uuidOfBytes(rest) : Buffer.from(rest).toString('hex')}`;
}

type Holds = (value: Uint8Array, key: Uint8Array) => boolean;
type ObjectKind = 'token' | 'policy' | 'role' | 'authMethod' | 'bindingRule' | 'namespace';
/** In no snapshot. */
type UncheckedKind = 'meta' | 'keyspaces' | 'inKeyspace';

const isEmpty: Holds = (value) => value.length === 0;
const isOneId: Holds = (value) => value.length === 16;
/** Whatever decodes. */
const decodesBy =
  (decode: (value: Uint8Array) => unknown): Holds =>
  (value) => {
    decode(value);
    return true;
  };

const HOLDS: Readonly<Record<Exclude<RowKind, ObjectKind | UncheckedKind>, Holds>> = {
  counts: (value) => Object.values(decodeCounts(value)).every(isCount),
  tokenBySecret: isOneId,
  tokenByNamespace: isEmpty,
  tokenByPolicy: isEmpty,
  tokenByRole: isEmpty,
  tokenByService: isEmpty,
  tokenByMethod: isEmpty,
  tokenByExpiry: isEmpty,
  policyByName: isOneId,
  roleByName: isOneId,
  roleByPolicy: isEmpty,
  methodTokens: (value) => isCount(decodeNumber(value)),
  retiredMethod: isEmpty,
  ruleByNamespace: isEmpty,
  rulesOfMethod: (value) => value.length > 0 && value.length % 16 === 0,
  request: decodesBy(decodeRequest),
  requestByTime: isEmpty,
  pendingLogin: decodesBy(decodePendingLogin),
  pendingLoginByTime: isEmpty,
  retiredNamespace: (value) => Object.values(decodeRetiredNamespace(value)).every(isCount),
  restore: decodesBy((value) => decodeImport(value) ?? decodeRestore(value)),
  staged: (value, key) => {
    requireReadable({ key: key.subarray(1), value });
    return true;
  },
  replication: decodesBy(decodeReplication),
  // Found where it is needed: who keeps a damaged one goes on without it, see feed-source.ts.
  globalEntry: () => true,
};

const HOLDS_BY_KIND: ReadonlyMap<number, Holds> = new Map(
  Object.entries(HOLDS).map(([kind, holds]) => [ROW[kind as RowKind], holds]),
);
const KIND_NAMES: ReadonlyMap<number, string> = new Map(
  Object.entries(ROW).map(([name, kind]) => [kind, name]),
);
/** A hash of a short secret gives it away; the key of a login that is under way is one. */
const KEYS_OF_SECRETS: ReadonlySet<number> = new Set([
  ROW.tokenBySecret,
  ROW.pendingLogin,
  ROW.pendingLoginByTime,
  ROW.staged,
]);

/** Without the cause: its words may quote the row. */
function orUnreadable<T>(read: () => T, unreadable: () => UnreadableRow): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof UnreadableRow ? error : unreadable();
  }
}

function whyNoRecord(value: Uint8Array): string {
  const format = fieldsOrNone(value)?.[0];
  return typeof format === 'number' && format !== RECORD_FORMAT
    ? `has format ${format}, known here is ${RECORD_FORMAT}`
    : 'cannot be read';
}
