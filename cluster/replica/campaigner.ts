// When a follower that lost the link to its leader campaigns: after a small random wait, so that two do
// not begin at once, and a few times more, since others may not have noticed yet and still hold to the
// leader. After that its timeout decides, as without it.

import type { Clock, Timer } from '../platform/clock.ts';
import type { Random } from '../platform/random.ts';

const ATTEMPTS_MAX = 3;

export interface CampaignerOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** The first attempt comes within so long; each later one may take that much longer. */
  readonly spreadMs: number;
  readonly onDue: () => void;
}

export class Campaigner {
  readonly #options: CampaignerOptions;
  #attemptCount = 0;
  #timer: Timer | undefined;

  constructor(options: CampaignerOptions) {
    this.#options = options;
  }

  begin(): void {
    this.#attemptCount = 0;
    this.#await();
  }

  /** The last attempt may have been too early. */
  again(): void {
    if (this.#timer !== undefined && this.#attemptCount < ATTEMPTS_MAX) this.#await();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #await(): void {
    const { clock, random, spreadMs, onDue } = this.#options;
    this.#attemptCount += 1;
    this.#timer?.cancel();
    this.#timer = clock.after(this.#attemptCount * spreadMs * random.fraction(), onDue);
  }
}
