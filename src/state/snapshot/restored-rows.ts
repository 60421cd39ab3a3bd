// What a restore brings back of an archive: its objects, and whatever follows from them made anew. Index rows,
// counts and lists of an archive are not taken, so none can be wrong, and one of an older release gets those
// that it did not know. They are collected in the store that takes the archive in, a slice at a time: how
// large the state is, no memory tells.

import type { Kv, KvRow, KvWrite } from '../../../cluster/platform/kv.ts';
import type { NamespaceName } from '../../acl/ids.ts';
import { readAt, readAuthMethod } from '../reads/reads.ts';
import { nameOfRow } from '../rows/layout/readable-row.ts';
import { decodeRecord } from '../rows/layout/record-codec.ts';
import { EMPTY_META, type Meta, type Totals } from '../rows/meta.ts';
import { ObjectRows } from '../rows/objects/object-rows.ts';
import { TOKENS, tableOfRow } from '../rows/objects/objects.ts';
import {
  decodeRetiredNamespace,
  encodeRetiredNamespace,
} from '../rows/objects/retired-namespace.ts';
import { RowBuffer } from '../rows/store/row-buffer.ts';
import {
  idAtEnd,
  NO_BYTES,
  numberInKey,
  ROW,
  rangeOf,
  rowKey,
  textsInKey,
} from '../rows/tables.ts';
import { requireUndamaged, SnapshotDamage } from './snapshot-damage.ts';
import type { ReadRow } from './snapshot-reader.ts';

/** Objects of one batch: making one takes the event loop some microseconds an object. */
export const RESTORED_OBJECTS_MAX = 256;

/**
 * What is to be written for these rows of an archive, behind all that come before them. Each object must be new
 * in the store. Throws SnapshotDamage.
 */
export function restoredWrites(kv: Kv, rows: readonly ReadRow[]): readonly KvWrite[] {
  const buffer = new RowBuffer(kv);
  // The reader has added up digests and totals: what this one says of them is nobody's.
  const objects = new ObjectRows(buffer, EMPTY_META);
  for (const { key, value, object } of rows) {
    if (object !== undefined) {
      objects.put(object.table, object.object, { value, hash: object.hash, isNew: true });
    } else if (key[0] === ROW.retiredNamespace) {
      requireUndamaged({ key, value });
      buffer.putRow(key, value);
    }
  }
  objects.putCounts();
  return buffer.writes();
}

/** Makes what follows from all of the objects together. Rejects with SnapshotDamage where they do not fit. */
export async function completeRestored(kv: Kv, { totals, index }: Meta): Promise<void> {
  await requireOwnAddresses(kv, totals);
  await retireMethods(kv);
  await retireNamespaces(kv, index);
}

/** Kinds of rows that lead to an object of which there may be one, first among those that follow from it. */
const ADDRESSES = [
  { kind: 'tokenBySecret', of: 'token', total: 'tokens' },
  { kind: 'policyByName', of: 'policy', total: 'policies' },
  { kind: 'roleByName', of: 'role', total: 'roles' },
] as const;

type Address = (typeof ADDRESSES)[number];

/** Where two objects have one address, the later one has taken the row of the other. */
async function requireOwnAddresses(kv: Kv, totals: Totals): Promise<void> {
  for (const address of ADDRESSES) {
    let count = 0;
    const range = { ...rangeOf(rowKey(address.kind)), isValuesOnly: true };
    for await (const rows of kv.rows(range)) count += rows.length;
    if (count !== totals[address.total]) throw await sharedAddress(kv, address);
  }
}

async function sharedAddress(kv: Kv, { of }: Address): Promise<SnapshotDamage> {
  for await (const rows of kv.rows(rangeOf(rowKey(of)))) {
    for (const row of rows) {
      const holder = holderOfAddress(kv, row);
      if (Buffer.compare(holder, row.key) === 0) continue;
      const both = `${nameOfRow(row.key)} and ${nameOfRow(holder)}`;
      return new SnapshotDamage(`${both} have one ${of === 'token' ? 'secret' : 'name'}`);
    }
  }
  return new SnapshotDamage(`two of its rows ${of} have one address`);
}

/** The key of the object that is found at the address of this one. */
function holderOfAddress(kv: Kv, { key, value }: KvRow): Uint8Array {
  const table = tableOfRow(key[0]!);
  const [address] = table.indexRowsOf(decodeRecord(table.codec, value));
  const id = address && kv.get(address.key);
  return Buffer.concat([key.subarray(0, 1), id ?? NO_BYTES]);
}

/** A method that is gone, and still has tokens, is found by a row of its own until they are reaped. */
async function retireMethods(kv: Kv): Promise<void> {
  for await (const rows of kv.rows(rangeOf(rowKey('methodTokens')))) {
    const gone = rows.filter(({ key }) => !isMethodThere(kv, key));
    await writeAll(
      kv,
      gone.map(({ key }) => ({ type: 'put', key: retiredKeyOf(key), value: NO_BYTES })),
    );
  }
}

function isMethodThere(kv: Kv, key: Uint8Array): boolean {
  const [namespace, name] = textsInKey(key, 2) as [NamespaceName, string];
  return readAuthMethod(kv, namespace, name)?.createIndex === numberInKey(key, key.length - 8);
}

function retiredKeyOf(methodTokensKey: Uint8Array): Uint8Array {
  const key = Uint8Array.from(methodTokensKey);
  key[0] = ROW.retiredMethod;
  return key;
}

/** Up to where tokens of a namespace are void, only the archive tells; how many there are, its tokens do. */
async function retireNamespaces(kv: Kv, index: number): Promise<void> {
  for await (const rows of kv.rows(rangeOf(rowKey('retiredNamespace')))) {
    const writes: KvWrite[] = [];
    for (const { key, value } of rows) {
      const { upTo } = decodeRetiredNamespace(value);
      if (upTo > index) throw new SnapshotDamage(`${nameOfRow(key)} is beyond index ${index}`);
      const tokens = await voidTokensIn(kv, textsInKey(key, 1)[0]!, upTo);
      const retired = encodeRetiredNamespace({ upTo, tokens });
      writes.push(tokens === 0 ? { type: 'del', key } : { type: 'put', key, value: retired });
    }
    await writeAll(kv, writes);
  }
}

async function voidTokensIn(kv: Kv, namespace: string, upTo: number): Promise<number> {
  let count = 0;
  for await (const rows of kv.rows(rangeOf(rowKey('tokenByNamespace', namespace)))) {
    for (const { key } of rows) {
      const token = readAt(kv, TOKENS, rowKey('token', idAtEnd(key)));
      if (token?.local === true && token.createIndex <= upTo) count += 1;
    }
  }
  return count;
}

async function writeAll(kv: Kv, writes: readonly KvWrite[]): Promise<void> {
  if (writes.length > 0) await kv.write(writes);
}
