// Places of calls between servers, at either end. Whoever has no token may read, too, and wait for what is read, and
// log in, for as long as a provider takes; and whoever may write anything may have other datacenters waited for, for
// minutes while one is away: however many do all of that, writes find places, and revocations are among them.

/**
 * `late`: a write that waits for other datacenters because its caller says so, or for as long as that one says;
 * `outside`: one that asks an identity provider.
 */
export type CallKind = 'write' | 'late' | 'outside' | 'read' | 'wait';

/**
 * Of all places: so many are taken by calls of that kind at most, and one in any case. From eight places on all kinds
 * but writes leave an eighth together.
 */
const SHARES: Readonly<Record<CallKind, number>> = {
  write: 1,
  late: 1 / 4,
  outside: 1 / 8,
  read: 1 / 4,
  wait: 1 / 4,
};

/** What refusals call them. */
const NAMES: Readonly<Record<CallKind, string>> = {
  write: 'writes',
  late: 'writes with an ack of their own',
  outside: 'logins and writes of auth methods',
  read: 'reads',
  wait: 'waiting reads',
};

export class CallPlaces {
  readonly #countMax: number;
  readonly #taken: Record<CallKind, number> = { write: 0, late: 0, outside: 0, read: 0, wait: 0 };

  constructor(countMax: number) {
    this.#countMax = countMax;
  }

  /** Calls under way. */
  get count(): number {
    const { write, late, outside, read, wait } = this.#taken;
    return write + late + outside + read + wait;
  }

  /** Gives what gives the place back, to be called once; undefined where there is none. */
  take(kind: CallKind): (() => void) | undefined {
    if (this.count >= this.#countMax || this.#hasItsShare(kind)) return undefined;
    this.#taken[kind] += 1;
    return () => {
      this.#taken[kind] -= 1;
    };
  }

  /** Who has the places that a call of that kind did not get: `512 reads`, or `4096 calls` of any kind. */
  takenFrom(kind: CallKind): string {
    if (this.#hasItsShare(kind)) return `${this.#taken[kind]} ${NAMES[kind]}`;
    return `${this.count} calls`;
  }

  #hasItsShare(kind: CallKind): boolean {
    return this.#taken[kind] >= Math.max(1, Math.floor(this.#countMax * SHARES[kind]));
  }
}
