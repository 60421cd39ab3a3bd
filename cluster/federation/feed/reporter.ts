// Tells the primary from time to time how a follower stands, and compares digests with it. Both are of the
// same place of the same chain, or they are not compared: a difference means that one of the two states is
// wrong, and never that one is behind.

import type { Clock, Timer } from '../../platform/clock.ts';
import type { GlobalCursor } from '../global-log.ts';
import { FEED_METHOD } from './feed-frames.ts';
import {
  decodeReportAnswer,
  encodeReport,
  type FeedReport,
  type ReportAnswer,
} from './report-frames.ts';

/** What the state has at one place of the log. */
export interface DigestedPlace {
  readonly cursor: GlobalCursor;
  /** Undefined: nothing of what the log speaks of is kept here. */
  readonly digest: Uint8Array | undefined;
}

export interface ReporterOptions {
  readonly clock: Clock;
  readonly session: number;
  readonly everyMs: number;
  readonly callMs: number;
  readonly call: (method: string, payload: Uint8Array, deadlineMs: number) => Promise<Uint8Array>;
  /** Of the own state, now. */
  readonly place: () => DigestedPlace | undefined;
  readonly error: () => FeedReport['error'];
  readonly onAnswer: (answer: ReportAnswer) => void;
  /** The own objects are not those of the primary. */
  readonly onDifference: (at: GlobalCursor) => void;
}

export class Reporter {
  readonly #options: ReporterOptions;
  #timer: Timer | undefined;
  #isOver = false;

  /** The first report leaves at once. */
  constructor(options: ReporterOptions) {
    this.#options = options;
    void this.#report();
  }

  /** Nobody is told of what is still answered. Stopping twice is harmless. */
  stop(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  async #report(): Promise<void> {
    const { clock, everyMs } = this.#options;
    try {
      await this.#ask();
    } catch {
      // The feed itself finds out what is wrong with the line.
    }
    if (!this.#isOver) this.#timer = clock.after(everyMs, () => void this.#report());
  }

  async #ask(): Promise<void> {
    const { call, callMs, error, onAnswer, onDifference, place, session } = this.#options;
    const held = place();
    if (held === undefined) return;
    const report = encodeReport({ session, ...held, error: error() });
    const answer = decodeReportAnswer(await call(FEED_METHOD.report, report, callMs));
    if (this.#isOver) return;
    onAnswer(answer);
    const { cursor, digest } = held;
    if (digest === undefined || answer.digest === undefined) return;
    if (Buffer.compare(digest, answer.digest) !== 0) onDifference(cursor);
  }
}
