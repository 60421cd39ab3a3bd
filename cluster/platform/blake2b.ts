// BLAKE2b with 32 bytes, as the outside world supplies it: in portable code until the platform brings its own.
// Both give the same bytes (see sha256.ts).

import { blake2b as portable } from '@noble/hashes/blake2.js';
import { assert } from '../base/assert.ts';

/** The 32 bytes belong to the caller. */
export type Blake2b256 = (bytes: Uint8Array) => Uint8Array;

let inUse: Blake2b256 = portableBlake2b256;

/** BLAKE2b-256 of `bytes` (RFC 7693, without a key). */
export function blake2b256(bytes: Uint8Array): Uint8Array {
  return inUse(bytes);
}

/** Hashes with the platform's own code from now on. It must agree with the portable code. */
export function adoptBlake2b256(native: Blake2b256): void {
  for (const length of PROBE_LENGTHS) {
    const probe = Uint8Array.from({ length }, (_, place) => place);
    const isSame = Buffer.compare(native(probe), portableBlake2b256(probe)) === 0;
    assert(isSame, "the platform's BLAKE2b-256 is BLAKE2b-256", { length });
  }
  inUse = native;
}

function portableBlake2b256(bytes: Uint8Array): Uint8Array {
  return portable(bytes, { dkLen: 32 });
}

/** Around the ends of blocks of 128 bytes. */
const PROBE_LENGTHS = [0, 1, 127, 128, 129, 256, 300];
