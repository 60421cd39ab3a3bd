// A multiset hash: the sum of the hashes of all rows, modulo 2^256. A row goes in or out in constant
// time, in any order, so two states are equal when two numbers are. It finds mistakes and damage; it
// is no proof against somebody who chooses rows in order to deceive it.

import { sha256 } from '../../cluster/platform/sha256.ts';

const BYTES = 32;

/** What a row adds to the digest. Keys of rows end by themselves, so no two rows look alike. */
export function rowHash(key: Uint8Array, value: Uint8Array): Uint8Array {
  const row = Buffer.allocUnsafe(key.length + value.length);
  row.set(key, 0);
  row.set(value, key.length);
  return sha256(row);
}

export class Digest {
  /** Little end first. */
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array = new Uint8Array(BYTES)) {
    this.#bytes = new Uint8Array(bytes);
  }

  add(hash: Uint8Array): void {
    let carry = 0;
    for (let place = 0; place < BYTES; place += 1) {
      const sum = this.#bytes[place]! + hash[place]! + carry;
      this.#bytes[place] = sum;
      carry = sum >> 8;
    }
  }

  subtract(hash: Uint8Array): void {
    let borrow = 0;
    for (let place = 0; place < BYTES; place += 1) {
      const difference = this.#bytes[place]! - hash[place]! - borrow;
      this.#bytes[place] = difference;
      borrow = difference < 0 ? 1 : 0;
    }
  }

  /** A copy. */
  bytes(): Uint8Array {
    return this.#bytes.slice();
  }

  hex(): string {
    return Buffer.from(this.#bytes).toString('hex');
  }
}
