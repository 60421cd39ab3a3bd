// What a command did to objects that every datacenter has: full values and deletions, in the order
// they were made. This list is what will enter the global log; today it decides whether the position
// moves. It is made here alone, and nothing local can get into it.

import { assert } from '../../cluster/base/assert.ts';

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
export type GlobalEffect = RowEffect & { readonly isLocal: false; readonly [brand]: 'global' };

/** The effects that other datacenters must have too, in order. */
export function globalEffectsOf(effects: readonly RowEffect[]): readonly GlobalEffect[] {
  return effects.filter((effect) => !effect.isLocal).map(requireGlobal);
}

function requireGlobal(effect: RowEffect): GlobalEffect {
  assert(!effect.isLocal, 'a local object stays in its datacenter');
  return effect as GlobalEffect;
}
