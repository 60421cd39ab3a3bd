// A multiset hash: the sum of the hashes of all rows, modulo 2^256. A row goes in or out in constant
// time, in any order, so two states are equal when two numbers are. It finds mistakes and damage; it
// is no proof against somebody who chooses rows in order to deceive it.

import { sha256 } from '../../../cluster/platform/sha256.ts';

const BYTES = 32;
const LIMB_BYTES = 4;
const LIMB_RANGE = 2 ** 32;

/** What a row adds to the digest. Keys of rows end by themselves, so no two rows look alike. */
export function rowHash(key: Uint8Array, value: Uint8Array): Uint8Array {
  const row = Buffer.allocUnsafe(key.length + value.length);
  row.set(key, 0);
  row.set(value, key.length);
  return sha256(row);
}

export class Digest {
  /** 32 bits each, little end first. */
  readonly #limbs = new Uint32Array(BYTES / LIMB_BYTES);

  constructor(bytes: Uint8Array = new Uint8Array(BYTES)) {
    for (let place = 0; place < this.#limbs.length; place += 1) {
      this.#limbs[place] = limbOf(bytes, place);
    }
  }

  add(hash: Uint8Array): void {
    let carry = 0;
    for (let place = 0; place < this.#limbs.length; place += 1) {
      const sum = this.#limbs[place]! + limbOf(hash, place) + carry;
      this.#limbs[place] = sum;
      carry = sum < LIMB_RANGE ? 0 : 1;
    }
  }

  subtract(hash: Uint8Array): void {
    let borrow = 0;
    for (let place = 0; place < this.#limbs.length; place += 1) {
      const difference = this.#limbs[place]! - limbOf(hash, place) - borrow;
      this.#limbs[place] = difference;
      borrow = difference < 0 ? 1 : 0;
    }
  }

  /** A copy, little end first. */
  bytes(): Uint8Array {
    const bytes = new Uint8Array(BYTES);
    const view = new DataView(bytes.buffer);
    for (let place = 0; place < this.#limbs.length; place += 1) {
      view.setUint32(place * LIMB_BYTES, this.#limbs[place]!, true);
    }
    return bytes;
  }

  hex(): string {
    return Buffer.from(this.bytes()).toString('hex');
  }
}

/** Of bytes with their little end first, which may begin anywhere in memory. */
function limbOf(bytes: Uint8Array, place: number): number {
  const at = place * LIMB_BYTES;
  const low = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
  return low + bytes[at + 3]! * 2 ** 24;
}
