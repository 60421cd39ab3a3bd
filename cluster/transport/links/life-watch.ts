// Whether two processes run under one node id, from copies of one data folder: each takes the link of the other.
// A process that has ended never comes back, so a life that returns after another one took its place is alive
// beside it. Pure.

/** So often must lives return: what a dead process had sent may come late once. */
const RETURNS_MIN = 2;
/** Earlier ones that are remembered; the oldest is forgotten. */
const EARLIER_MAX = 16;

export interface SeenLife {
  readonly life: string;
  /** `host:port` of its end of the connection. */
  readonly remote: string;
}

export class LifeWatch {
  #current: SeenLife | undefined;
  readonly #earlierLives = new Set<string>();
  #returnCount = 0;

  /** A link is up with this life: with whom else it takes turns, when that has become sure just now. */
  onUp(seen: SeenLife): SeenLife | undefined {
    const before = this.#current;
    this.#current = seen;
    if (before === undefined || before.life === seen.life) return undefined;
    this.#remember(before.life);
    // Whoever is seen for the first time was started just now: with it the count begins anew.
    this.#returnCount = this.#earlierLives.has(seen.life) ? this.#returnCount + 1 : 0;
    return this.#returnCount === RETURNS_MIN ? before : undefined;
  }

  #remember(life: string): void {
    const [oldest] = this.#earlierLives;
    if (this.#earlierLives.size >= EARLIER_MAX && oldest !== undefined) {
      this.#earlierLives.delete(oldest);
    }
    this.#earlierLives.add(life);
  }
}
