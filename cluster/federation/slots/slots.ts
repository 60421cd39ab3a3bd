// Keeps the primary's log for its datacenters, and no longer: in a reign, looks from time to time what may
// be trimmed, has it trimmed, and raises an alarm for a datacenter whose slot is dropped.

import type { Clock, Timer } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { EntrySource } from '../entry-source.ts';
import type { FollowerView } from '../feed/follower.ts';
import { DEFAULT_RETENTION, type RetentionLimits, retentionOf, type Slot } from './retention.ts';

export interface SlotsOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The own one has no slot. */
  readonly datacenter: string;
  readonly source: EntrySource;
  /** All that belong to the federation, whether they are heard or not. */
  readonly datacenters: () => readonly string[];
  readonly followers: () => readonly FollowerView[];
  readonly pinnedSeq: () => number | undefined;
  /** Up to here a majority of the datacenters is known to have the log. */
  readonly majoritySeq: () => number;
  /**
   * When the newest entry was made that nobody wants any more and that was not dropped, by the wall clock; undefined
   * where there is none.
   */
  readonly unusedTimeMs: () => number | undefined;
  /** With all that nobody wants. Through the own group's log. Rejects when this server does not lead any more. */
  readonly trim: (upToSeq: number) => Promise<void>;
  readonly limits?: Partial<RetentionLimits>;
  /** Between two looks. */
  readonly reviewMs: number;
}

export interface SlotAlarm {
  readonly datacenter: string;
  readonly says: string;
  /** Wall clock. */
  readonly sinceMs: number;
}

/** A command to trim is worth it for so many entries. */
const TRIM_LEAST = 100;

export class Slots {
  readonly #options: SlotsOptions;
  readonly #limits: RetentionLimits;
  readonly #alarms = new Map<string, SlotAlarm>();
  #timer: Timer | undefined;
  #reign = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_RETENTION, ...options.limits };
  }

  /** This server leads the primary. */
  start(): void {
    this.stop();
    this.#await(this.#reign);
  }

  /** It does not any more. Stopping twice is harmless. */
  stop(): void {
    this.#reign += 1;
    this.#timer?.cancel();
    this.#alarms.clear();
  }

  /** Datacenters whose slot was dropped, until they have what is kept again, or belong here no more. */
  alarms(): readonly SlotAlarm[] {
    const all = this.#options.datacenters();
    return [...this.#alarms.values()].filter(({ datacenter }) => all.includes(datacenter));
  }

  /** Looks now. Resolves when what may go is gone. Rejects when it could not be trimmed. */
  async review(): Promise<void> {
    const { clock, majoritySeq, pinnedSeq, source, trim, unusedTimeMs } = this.#options;
    const { head, kept } = source;
    const { trimSeq, dropped } = retentionOf({
      headSeq: head.seq,
      kept,
      slots: this.#slots(),
      pinnedSeq: pinnedSeq(),
      majoritySeq: majoritySeq(),
      nowMs: clock.wallMs(),
      writtenAtMs: (seq) => source.writtenAtMs(seq),
      limits: this.#limits,
    });
    this.#sound(dropped);
    const isWorthIt = trimSeq - kept.afterSeq >= TRIM_LEAST || dropped.length > 0;
    // Nothing is kept for longer because nobody wants it.
    const isLeftOver = clock.wallMs() - (unusedTimeMs() ?? Infinity) > this.#limits.maxAgeMs;
    if (isLeftOver || (isWorthIt && trimSeq > kept.afterSeq)) await trim(trimSeq);
  }

  /** Who takes a snapshot, or must, needs nothing of the log but what the snapshot pins. */
  #slots(): readonly Slot[] {
    const { datacenter, datacenters, followers } = this.#options;
    const views = new Map(followers().map((view) => [view.datacenter, view]));
    return datacenters()
      .filter((each) => each !== datacenter && !this.#alarms.has(each))
      .filter((each) => {
        const state = views.get(each)?.state;
        return state !== 'snapshot' && state !== 'diverged';
      })
      .map((each) => ({ datacenter: each, ackedSeq: views.get(each)?.acked?.seq }));
  }

  #sound(dropped: readonly { readonly datacenter: string; readonly says: string }[]): void {
    const { clock, datacenters, followers, logger, source } = this.#options;
    const all = datacenters();
    for (const datacenter of this.#alarms.keys()) {
      if (!all.includes(datacenter)) this.#alarms.delete(datacenter);
    }
    for (const { datacenter, acked } of followers()) {
      const isBack = acked !== undefined && acked.seq >= source.kept.afterSeq;
      if (isBack && this.#alarms.delete(datacenter)) {
        logger.info({ datacenter }, 'a datacenter follows again, its slot is back');
      }
    }
    for (const { datacenter, says } of dropped) {
      this.#alarms.set(datacenter, { datacenter, says, sinceMs: clock.wallMs() });
      logger.error({ datacenter }, says);
    }
  }

  #await(reign: number): void {
    const { clock, logger, reviewMs } = this.#options;
    this.#timer = clock.after(reviewMs, () => {
      void this.review()
        .catch((error: unknown) => {
          logger.warn({ cause: error }, 'the global log was not trimmed');
        })
        .then(() => {
          if (this.#reign === reign) this.#await(reign);
        });
    });
  }
}
