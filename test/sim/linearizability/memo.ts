// Lowe's memo: the pairs (set of placed operations, state set) that the search has been at.
// Promises exact answers, since pairs are compared and not only their hashes. Leaves the limit on
// its size to the caller.

interface Pair {
  readonly setId: number;
  readonly bits: Uint32Array;
  readonly next: Pair | undefined;
}

const pairSizeBytes = 200;

export class Memo {
  readonly bits: Uint32Array;
  readonly #pairsByHash = new Map<number, Pair>();
  #bitsHash = 0;
  #count = 0;

  constructor(operationCount: number) {
    this.bits = new Uint32Array(Math.ceil(operationCount / 32));
  }

  /** An estimate in bytes. */
  get sizeBytes(): number {
    return this.#count * (pairSizeBytes + this.bits.byteLength);
  }

  /** Puts an operation into the current set, or takes it out again. */
  flip(operation: number): void {
    this.bits[operation >>> 5]! ^= 1 << (operation & 31);
    this.#bitsHash ^= mix(operation + 1);
  }

  /** True when the current set was not yet here with these states; it is from now on. */
  addIfNew(setId: number): boolean {
    const hash = this.#bitsHash ^ Math.imul(setId + 1, 0x85ebca6b);
    const first = this.#pairsByHash.get(hash);
    for (let pair = first; pair !== undefined; pair = pair.next) {
      if (pair.setId === setId && equalBits(pair.bits, this.bits)) return false;
    }
    this.#pairsByHash.set(hash, { setId, bits: this.bits.slice(), next: first });
    this.#count += 1;
    return true;
  }
}

function equalBits(left: Uint32Array, right: Uint32Array): boolean {
  return left.every((word, i) => word === right[i]);
}

function mix(value: number): number {
  const spread = Math.imul(value, 0x9e3779b1);
  return Math.imul(spread ^ (spread >>> 15), 0x2c1b3c6d) ^ (spread << 7);
}
