// When a follower that lost the link to its leader campaigns: after a small random wait, so that two do
// not begin at once, and a few times more, since others may not have noticed yet and still hold to the
// leader, or may have split the votes with it. Whoever got this node's vote meanwhile has one attempt's
// time to win by it. After the last attempt the timeout decides, as without it.

import type { Clock, Timer } from '../../platform/clock.ts';
import type { Random } from '../../platform/random.ts';
import { NO_NODE } from '../../raft/node-id.ts';
import type { Status } from '../../raft/raw-node.ts';

const ATTEMPTS_MAX = 5;
/** Answers to an attempt have at least this part of the spread to come in. */
const ANSWER_PART = 1 / 2;

export interface CampaignerOptions {
  readonly clock: Clock;
  readonly random: Random;
  /** The first attempt comes within so long, each later one within so much longer than the one before it. */
  readonly spreadMs: number;
  readonly onDue: () => void;
}

export class Campaigner {
  readonly #options: CampaignerOptions;
  #attemptCount = 0;
  /** As of the beginning, or of the last attempt. */
  #term = 0;
  #timer: Timer | undefined;

  constructor(options: CampaignerOptions) {
    this.#options = options;
  }

  begin({ term }: Pick<Status, 'term'>): void {
    this.#attemptCount = 0;
    this.#term = term;
    this.#await(0);
  }

  /** Whether an attempt that is due would disturb nobody who may just be winning. */
  isTimely({ id, term, vote }: Pick<Status, 'id' | 'term' | 'vote'>): boolean {
    const isNewTerm = term > this.#term;
    this.#term = term;
    return !isNewTerm || vote === id || vote === NO_NODE;
  }

  /** The last attempt may come to nothing: too early, or half of the votes. */
  again(): void {
    if (this.#timer === undefined || this.#attemptCount >= ATTEMPTS_MAX) return;
    this.#await(ANSWER_PART * this.#options.spreadMs);
  }

  /** What is due comes later, not within `leastMs`, and counts as the same attempt. */
  putOff(leastMs = 0): void {
    if (this.#timer === undefined) return;
    this.#attemptCount -= 1;
    this.#await(Math.max(leastMs, ANSWER_PART * this.#options.spreadMs));
  }

  stop(): void {
    this.#timer?.cancel();
  }

  #await(leastMs: number): void {
    const { clock, random, spreadMs, onDue } = this.#options;
    this.#attemptCount += 1;
    this.#timer?.cancel();
    const spreadNowMs = this.#attemptCount * spreadMs;
    this.#timer = clock.after(leastMs + spreadNowMs * random.fraction(), onDue);
  }
}
