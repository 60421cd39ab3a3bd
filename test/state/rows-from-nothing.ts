// The rows and digests that follow from the objects of a state, made again from nothing, and compared with
// those that are there.

import { Digest, rowHash } from '../../src/state/rows/digest.ts';
import { decodeRecord } from '../../src/state/rows/layout/record-codec.ts';
import {
  AUTH_METHODS,
  BINDING_RULES,
  NAMESPACES,
  type ObjectTable,
  POLICIES,
  ROLES,
  TOKENS,
} from '../../src/state/rows/objects/objects.ts';
import { ROW } from '../../src/state/rows/tables.ts';
import type { StateView } from '../../src/state/view.ts';
import type { MemoryKv } from '../support/memory-kv.ts';

/** Throws unless both look alike as JSON. */
export function requireSame(what: string, found: unknown, expected: unknown): void {
  const [left, right] = [jsonOf(found), jsonOf(expected)];
  if (left !== right) throw new Error(`${what}: found ${left}, expected ${right}`);
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'bigint' ? `${each}n` : each,
  );
}

export const byKey =
  <T>(keyOf: (object: T) => string) =>
  (left: T, right: T): number =>
    keyOf(left) < keyOf(right) ? -1 : 1;

/** Texts in the order of their code units, as keys order. */
export const inOrder = (texts: readonly string[]): readonly string[] =>
  [...texts].sort(byKey((text) => text));

const DERIVED_KINDS: ReadonlySet<number> = new Set([
  ROW.tokenBySecret,
  ROW.tokenByNamespace,
  ROW.tokenByPolicy,
  ROW.tokenByRole,
  ROW.tokenByService,
  ROW.tokenByMethod,
  ROW.tokenByExpiry,
  ROW.policyByName,
  ROW.roleByName,
  ROW.roleByPolicy,
  ROW.ruleByNamespace,
]);

/** Digests, totals and index rows, made again from the rows of the objects alone. */
export function requireRowsFromNothing(kv: MemoryKv, view: StateView): void {
  const rows = kv.dump().map((row) => {
    const [key = '', value = ''] = row.split(' ');
    return { row, key: Buffer.from(key, 'hex'), value: Buffer.from(value, 'hex') };
  });
  const [global, all] = [new Digest(), new Digest()];
  const derived = new Set<string>();
  let localTokens = 0;
  for (const { key, value } of rows) {
    const table = tableOf(key[0]!);
    if (table === undefined) continue;
    const object = decodeRecord(table.codec, value);
    const isLocal = table.isLocal(object);
    all.add(rowHash(key, value));
    if (!isLocal) global.add(rowHash(key, value));
    if (isLocal) localTokens += 1;
    for (const row of table.indexRowsOf(object)) {
      derived.add(`${hex(row.key)} ${hex(row.value)}`);
    }
  }
  requireSame('digests', view.digests(), { global: global.hex(), all: all.hex() });
  requireSame(
    'index rows',
    rows.filter(({ key }) => DERIVED_KINDS.has(key[0]!)).map(({ row }) => row),
    inOrder([...derived]),
  );
  requireSame('local tokens', view.totals().localTokens, localTokens);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function tableOf(
  kind: number,
): ObjectTable<{ readonly createIndex: number; readonly modifyIndex: number }> | undefined {
  const tables: Readonly<Record<number, unknown>> = {
    [ROW.token]: TOKENS,
    [ROW.policy]: POLICIES,
    [ROW.role]: ROLES,
    [ROW.authMethod]: AUTH_METHODS,
    [ROW.bindingRule]: BINDING_RULES,
    [ROW.namespace]: NAMESPACES,
  };
  return tables[kind] as ReturnType<typeof tableOf>;
}
