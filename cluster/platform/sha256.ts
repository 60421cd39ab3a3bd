// SHA-256, as the outside world supplies it: in portable code until the platform brings its own. Both
// give the same bytes, so which one runs shows in nothing but time, and pure code may ask for hashes.

import { sha256 as portable } from '@noble/hashes/sha2.js';
import { assert } from '../base/assert.ts';

/** The 32 bytes belong to the caller. */
export type Sha256 = (bytes: Uint8Array) => Uint8Array;

let inUse: Sha256 = portable;

/** SHA-256 of `bytes`. */
export function sha256(bytes: Uint8Array): Uint8Array {
  return inUse(bytes);
}

/** Hashes with the platform's own code from now on. It must agree with the portable code. */
export function adoptSha256(native: Sha256): void {
  for (const length of PROBE_LENGTHS) {
    const probe = Uint8Array.from({ length }, (_, place) => place);
    const isSame = Buffer.compare(native(probe), portable(probe)) === 0;
    assert(isSame, "the platform's SHA-256 is SHA-256", { length });
  }
  inUse = native;
}

/** Around the places where the padding needs another block. */
const PROBE_LENGTHS = [0, 1, 55, 56, 63, 64, 65, 200];
