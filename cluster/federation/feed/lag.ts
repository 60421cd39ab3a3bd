// How far a follower is behind, in time: the age of the oldest news of the primary that it has not caught up
// with. By the own clock alone, so that clocks which differ do not matter.

import type { Clock } from '../../platform/clock.ts';

/** Behind for so long, a follower is not just waiting for what is on its way. */
const FAR_BEHIND_MS = 1_000;
/** An idle primary is heard so often at least. */
const HEARTBEAT_MAX_MS = 2_000;
const SAMPLES_MAX = 1_024;

interface Sample {
  /** The primary was known to have it. */
  headSeq: number;
  readonly heardAtMs: number;
}

export class Lag {
  readonly #clock: Clock;
  #heardAtMs: number | undefined;
  /** News that is not caught up with, the oldest first. */
  readonly #samples: Sample[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isFarBehind(): boolean {
    return (this.ms() ?? 0) > FAR_BEHIND_MS;
  }

  /** The primary was heard, or something was applied. */
  look({ headSeq, appliedSeq }: { readonly headSeq: number; readonly appliedSeq: number }): void {
    const nowMs = this.#clock.monotonicMs();
    this.#heardAtMs = nowMs;
    const last = this.#samples.at(-1);
    const isNew = headSeq > (last?.headSeq ?? appliedSeq);
    if (isNew && this.#samples.length < SAMPLES_MAX) {
      this.#samples.push({ headSeq, heardAtMs: nowMs });
    } else if (isNew && last !== undefined) {
      last.headSeq = headSeq;
    }
    const later = this.#samples.findIndex((sample) => sample.headSeq > appliedSeq);
    this.#samples.splice(0, later < 0 ? this.#samples.length : later);
  }

  /** Grows while nothing is heard. Undefined before the first time. */
  ms(): number | undefined {
    if (this.#heardAtMs === undefined) return undefined;
    const nowMs = this.#clock.monotonicMs();
    const [oldest] = this.#samples;
    if (oldest !== undefined) return nowMs - oldest.heardAtMs;
    const silentMs = nowMs - this.#heardAtMs;
    return silentMs > HEARTBEAT_MAX_MS ? silentMs : 0;
  }
}
