// Simulated time and reproducible draws. Events run one by one, each with all that it sets off at once.

/** A reproducible stream of numbers in [0, 1). */
export function streamOf(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class World {
  nowMs = 0;
  #events: { readonly atMs: number; readonly action: () => void }[] = [];

  after(delayMs: number, action: () => void): void {
    const atMs = this.nowMs + delayMs;
    let place = this.#events.length;
    while (place > 0 && this.#events[place - 1]!.atMs > atMs) place -= 1;
    this.#events.splice(place, 0, { atMs, action });
  }

  async run(forMs: number): Promise<void> {
    const untilMs = this.nowMs + forMs;
    // What the caller has begun goes on before time does.
    await settled();
    for (let next = this.#events[0]; next !== undefined; next = this.#events[0]) {
      if (next.atMs > untilMs) break;
      this.#events.shift();
      this.nowMs = next.atMs;
      next.action();
      await settled();
    }
    this.nowMs = untilMs;
  }
}

/** All that can go on without time has gone on. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
