// What a write that is in the global log found at its place there: what it makes was not there, by its name either,
// what it replaces or deletes was, and is the version that it names, where it names one.

import { decodeRecord } from '../../../../../src/state/rows/layout/record-codec.ts';
import type { Stamped } from '../../../../../src/state/rows/layout/stamp.ts';
import { tableOfRow } from '../../../../../src/state/rows/objects/objects.ts';
import { ROW } from '../../../../../src/state/rows/tables.ts';
import type { KnownEntry } from '../../../checks/federation/global-chain.ts';
import type { Violations } from '../../../checks/violations.ts';
import { textOf } from '../../../world/key-text.ts';
import type { SortedRows } from '../../../world/sorted-rows.ts';
import type { GlobalWrite } from './global-history.ts';

/** By the first word of a target's key. */
const ROW_OF_KIND: ReadonlyMap<string, number> = new Map<string, number>([
  ['policy', ROW.policy],
  ['role', ROW.role],
  ['token', ROW.token],
  ['login', ROW.token],
  ['auth-method', ROW.authMethod],
  ['namespace', ROW.namespace],
]);

/** What whoever makes it replaces where it is there. */
const REPLACED_BY_NAME: ReadonlySet<string> = new Set(['auth-method']);
/** What an update makes where it is not there. */
const MADE_BY_NAME: ReadonlySet<string> = new Set(['auth-method', 'namespace']);

/** The checker's name. */
const CHECKER = 'conditions';

export function requireCondition(
  violations: Violations,
  { requestId, input }: GlobalWrite,
  { known, before }: { readonly known: KnownEntry; readonly before: SortedRows },
): void {
  const { body, epoch, seq } = known.entry;
  const [kind = ''] = input.key.split(' ');
  const row = ROW_OF_KIND.get(kind);
  const effect =
    body.kind === 'effects' ? body.effects.find(({ key }) => key[0] === row) : undefined;
  const complain = (what: string): void => {
    violations.add(CHECKER, `${requestId} ${JSON.stringify(input)} is at ${epoch}.${seq}, ${what}`);
  };
  if (effect === undefined) {
    complain('and changed nothing of the kind');
    return;
  }
  const found = objectIn(before, effect.key);
  const isDeletion = effect.value === undefined;
  if (isDeletion !== (input.kind === 'delete')) complain('and did something else');
  const isMade = input.kind === 'create' || (input.kind === 'update' && MADE_BY_NAME.has(kind));
  if (found === undefined && !isMade) complain('where nothing was there');
  if (found !== undefined && input.kind === 'create' && !REPLACED_BY_NAME.has(kind)) {
    complain(`where there was one, at ${found.modifyIndex}`);
  }
  const cas = 'cas' in input ? input.cas : undefined;
  if (cas !== undefined && cas !== (found?.modifyIndex ?? 0)) {
    complain(`where it was at ${found?.modifyIndex ?? 0}`);
  }
  const made = effect.value && decodeRecord(tableOfRow(effect.key[0]!).codec, effect.value);
  if (made !== undefined && namesakeOf(made, before, effect.key) !== undefined) {
    complain('where another one had its name');
  }
}

interface Named {
  readonly name?: string;
  readonly namespace?: string;
}

function objectIn(rows: SortedRows, key: Uint8Array): Stamped | undefined {
  const value = rows.get(textOf(key));
  return value && decodeRecord(tableOfRow(key[0]!).codec, value);
}

function namesakeOf(made: Stamped, rows: SortedRows, key: Uint8Array): Stamped | undefined {
  const { name, namespace } = made as Named;
  if (name === undefined) return undefined;
  const own = textOf(key);
  const from = own.slice(0, 1);
  const to = String.fromCharCode(own.charCodeAt(0) + 1);
  for (const { key: other, value } of rows.rows({ from, to, reverse: false })) {
    if (other === own) continue;
    const each = decodeRecord(tableOfRow(key[0]!).codec, value) as Stamped & Named;
    if (each.name === name && each.namespace === namespace) return each;
  }
  return undefined;
}
