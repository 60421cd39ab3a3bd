// What a command did to objects that every datacenter has: full values and deletions, in the order
// they were made, the last one of each row. This list is what enters the global log. It is made here
// alone, and nothing local can get into it.

import { assert } from '../../cluster/base/assert.ts';
import type { Token } from '../acl/token.ts';
import { decodeRecord, TOKEN_CODEC } from './rows/layout/record-codec.ts';
import { isLocalTokenRow } from './rows/layout/token-row.ts';
import { nameOf } from './rows/store/rows-before.ts';
import { isObjectRow, ROW } from './rows/tables.ts';

/** What a command did to one object's row. */
export interface RowEffect {
  readonly key: Uint8Array;
  /** Undefined: the row is gone. */
  readonly value: Uint8Array | undefined;
  /** Whether the object (as it was, or as it is) lives in its datacenter alone. */
  readonly isLocal: boolean;
}

declare const brand: unique symbol;
/** An effect that may leave the datacenter. */
export type GlobalEffect = RowEffect & {
  readonly isLocal: false;
  /** What its row holds, where it arrived and is a token's: it was unpacked to see where it may go. */
  readonly token?: Token | undefined;
  readonly [brand]: 'global';
};

/** The effects that other datacenters must have too, in order. */
export function globalEffectsOf(effects: readonly RowEffect[]): readonly GlobalEffect[] {
  const [only] = effects;
  if (only !== undefined && effects.length === 1) return only.isLocal ? [] : [requireGlobal(only)];
  const last = new Map<string, RowEffect>();
  for (const effect of effects) {
    if (effect.isLocal) continue;
    const name = nameOf(effect.key);
    last.delete(name);
    last.set(name, effect);
  }
  return [...last.values()].map(requireGlobal);
}

/** The effect that another datacenter tells of; undefined for a row that may not leave its own. */
export function arrivedEffect(
  key: Uint8Array,
  value: Uint8Array | undefined,
): GlobalEffect | undefined {
  const kind = key[0];
  if (kind === undefined || !isObjectRow(kind)) return undefined;
  const isToken = kind === ROW.token && value !== undefined;
  const token = isToken ? decodeRecord(TOKEN_CODEC, value) : undefined;
  if (token?.local === true) return undefined;
  return { key, value, isLocal: false, token } as GlobalEffect;
}

/** Looks at the bytes, whoever says what of them. */
export function isGlobalRow(key: Uint8Array, value: Uint8Array | undefined): boolean {
  const kind = key[0];
  if (kind === undefined || !isObjectRow(kind)) return false;
  if (kind !== ROW.token || value === undefined) return true;
  return !isLocalTokenRow(value);
}

function requireGlobal(effect: RowEffect): GlobalEffect {
  assert(!effect.isLocal, 'a local object stays in its datacenter');
  return effect as GlobalEffect;
}
