// Places of calls between datacenters, at either end. Whoever has no token may read, too, and wait for what is read:
// however many do, writes find places, and revocations are among them.

export type CallKind = 'write' | 'read' | 'wait';

/** Of all places: so many are taken by calls of that kind at most. */
const SHARES: Readonly<Record<CallKind, number>> = { write: 1, read: 1 / 2, wait: 1 / 4 };

export class CallPlaces {
  readonly #countMax: number;
  readonly #taken: Record<CallKind, number> = { write: 0, read: 0, wait: 0 };

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Calls under way. */
  get count(): number {
    const { write, read, wait } = this.#taken;
    return write + read + wait;
  }

  /** Gives what gives the place back, to be called once; undefined where there is none. */
  take(kind: CallKind): (() => void) | undefined {
    const ofKindMax = Math.ceil(this.#countMax * SHARES[kind]);
    if (this.count >= this.#countMax || this.#taken[kind] >= ofKindMax) return undefined;
    this.#taken[kind] += 1;
    return () => {
      this.#taken[kind] -= 1;
    };
  }
}
