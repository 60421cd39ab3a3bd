// A primary whose data folders were put back to an earlier day does not know that. Whoever has more of its reign tells
// it, by asking for the global log, soon after it has begun. So behind a start what all share is not written before
// all that the log lists have been heard: writes wait for that, as for a leader, and not for long. A server that has
// seen some of it written since its start waits for nobody: whoever led then had heard the others, or waited for them.
// That somebody led proves nothing: it may have been told that it has lost what they have, and was closed.

import type { Clock } from '../../../cluster/platform/clock.ts';
import { LeaderAway } from '../../service/remote.ts';

export interface FirstHearingOptions {
  readonly clock: Clock;
  /** The own one. */
  readonly datacenter: string;
  /** Those that the log lists, where this server leads the primary, or may by itself begin a reign; else none. */
  readonly others: () => readonly string[];
  /** Whether it was heard in this reign. */
  readonly isHeard: (datacenter: string) => boolean;
  /** Where the global log ends at this server. */
  readonly headSeq: () => number;
  /** Whether this server has had, since its start, all that its leader began with: what comes later is new. */
  readonly hasCaughtUp: () => boolean;
}

/** Whoever is there asks again within two seconds. */
const WAIT_MS = 2_500;

export class FirstHearing {
  readonly #options: FirstHearingOptions;
  #headSeq: number;
  #untilMs = 0;
  #hasSeenWrites = false;

  constructor(options: FirstHearingOptions) {
    this.#options = options;
    this.#headSeq = options.headSeq();
  }

  /** To be told when the global log may have grown. */
  look(): void {
    const { hasCaughtUp, headSeq } = this.#options;
    const seq = headSeq();
    if (seq > this.#headSeq && hasCaughtUp()) this.#hasSeenWrites = true;
    this.#headSeq = seq;
  }

  /**
   * A reign of this server has begun, of the primary, or of a datacenter that was it and may be again by itself: what
   * came to that since the start of this server may be what others gave back.
   */
  begin({ isPrimary }: { readonly isPrimary: boolean }): void {
    const nowMs = this.#options.clock.monotonicMs();
    this.#untilMs = isPrimary && this.#hasSeenWrites ? nowMs : nowMs + WAIT_MS;
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
