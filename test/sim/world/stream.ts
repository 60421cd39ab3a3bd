// Reproducible randomness: one seed, and from it as many independent streams as there are names. A
// stream that is drawn from more or less often changes no other one, so a fault that is left out of a
// run changes little else.

/** A stream of numbers that follows from a seed and a name. */
export class Stream {
  #state: number;
  readonly #identity: number;

  constructor(seed: number, name = '') {
    this.#identity = mixed(hashOf(name) ^ mixed(seed));
    this.#state = this.#identity;
  }

  /** A stream of its own; drawing from it leaves this one as it is. */
  fork(name: string): Stream {
    return new Stream(this.#identity, name);
  }

  /** 32 random bits. */
  bits(): number {
    this.#state = (this.#state + 0x9e3779b9) | 0;
    return mixed(this.#state) >>> 0;
  }

  /** A number in [0, 1). */
  fraction(): number {
    return this.bits() / 2 ** 32;
  }

  /** A whole number from 0 to `limit - 1`. */
  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  between(least: number, most: number): number {
    return least + this.fraction() * (most - least);
  }

  /** Between both, each power of ten as likely as the next. */
  spread(least: number, most: number): number {
    return least * (most / least) ** this.fraction();
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  /** At least `least`, most draws near it, a few far out; `mean` is the mean of what is beyond it. */
  exponential(least: number, mean: number): number {
    return least - mean * Math.log(1 - this.fraction());
  }

  shuffled<T>(items: readonly T[]): readonly T[] {
    const rest = [...items];
    return items.map(() => rest.splice(this.below(rest.length), 1)[0]!);
  }

  bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let place = 0; place < count; place += 1) bytes[place] = this.below(256);
    return bytes;
  }

  uuid(): string {
    const hex = Buffer.from(this.bytes(16)).toString('hex');
    const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 3) | 8).toString(16);
    const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`];
    return [...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20)].join('-');
  }
}

function mixed(value: number): number {
  let bits = Math.imul(value ^ (value >>> 16), 0x21f0aaad);
  bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97);
  return bits ^ (bits >>> 15);
}

function hashOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let place = 0; place < name.length; place += 1) {
    hash = Math.imul(hash ^ name.charCodeAt(place), 0x01000193);
  }
  return hash;
}
