// SHA-256 of bytes that come piece by piece, as the outside world supplies it: in portable code until the
// platform brings its own. Both give the same bytes (see sha256.ts for bytes that are there at once).

import { sha256 as portable } from '@noble/hashes/sha2.js';
import { assert } from '../base/assert.ts';

export interface RunningSha256 {
  update(bytes: Uint8Array): unknown;
  /** The 32 bytes. Nothing may follow. */
  digest(): Uint8Array;
}

export type BeginSha256 = () => RunningSha256;

let inUse: BeginSha256 = () => portable.create();

/** A hash of nothing yet. */
export function beginSha256(): RunningSha256 {
  return inUse();
}

/** Hashes with the platform's own code from now on. It must agree with the portable code. */
export function adoptRunningSha256(native: BeginSha256): void {
  for (const lengths of PROBE_LENGTHS) {
    const ours = portable.create();
    const theirs = native();
    for (const length of lengths) {
      const piece = Uint8Array.from({ length }, (_, place) => place);
      ours.update(piece);
      theirs.update(piece);
    }
    const isSame = Buffer.compare(theirs.digest(), ours.digest()) === 0;
    assert(isSame, "the platform's running SHA-256 is SHA-256", { lengths });
  }
  inUse = native;
}

/** Pieces that end before, at and behind the end of a block of 64 bytes. */
const PROBE_LENGTHS: readonly (readonly number[])[] = [[], [0], [1, 62], [63, 1, 1], [64, 200]];
