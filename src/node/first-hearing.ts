// A primary whose data folders were put back to an earlier day does not know that. Whoever has more of its reign tells
// it, by asking for the global log, soon after it has begun. So behind a start what all share is not written before
// all that the log lists have been heard: writes wait for that, as for a leader, and not for long.

import type { Clock } from '../../cluster/platform/clock.ts';
import { LeaderAway } from '../service/remote.ts';

export interface FirstHearingOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  /** Those that the log lists, where this server leads the primary; else none. */
  readonly others: () => readonly string[];
  /** Whether it was heard in this reign. */
  readonly isHeard: (datacenter: string) => boolean;
}

/** Whoever is there asks again within two seconds. */
const WAIT_MS = 2_500;
/** A server that has run for longer has led since, or followed one that did. */
const YOUNG_MS = 60_000;

export class FirstHearing {
  readonly #options: FirstHearingOptions;
  readonly #openedAtMs: number;
  #untilMs = Number.NEGATIVE_INFINITY;

  constructor(options: FirstHearingOptions) {
    this.#options = options;
    this.#openedAtMs = options.clock.monotonicMs();
  }

  /** A reign of this server has begun, of a datacenter that was the primary before. */
  begin(): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#untilMs = nowMs - this.#openedAtMs <= YOUNG_MS ? nowMs + WAIT_MS : nowMs;
  }

  /** Why nothing global may be written yet; undefined when it may. Another try, soon, may work. */
  refusal(): LeaderAway | undefined {
    const { clock, datacenter, isHeard, others } = this.#options;
    if (clock.monotonicMs() >= this.#untilMs) return undefined;
    const awaited = others().filter((each) => !isHeard(each));
    if (awaited.length === 0) return undefined;
    const names = awaited.join(', ');
    const says = `Nothing was written: datacenter ${datacenter} has just begun, and waits a moment to hear ${names}`;
    return new LeaderAway({ says });
  }
}
