// What a subscriber knows of its session, of its primary and of itself, for those who look at it. Every change
// of how it stands is logged and told, with why; a moment without a session keeps why the last one ended.

import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { GlobalCursor } from '../global-log.ts';
import type { FeedNews } from './feed-frames.ts';
import type { ReportAnswer } from './report-frames.ts';

export type SubscriberKind =
  /** This server does not lead its datacenter, or its datacenter is the primary. */
  | 'idle'
  | 'connecting'
  | 'catching-up'
  /** It has what the primary has, or what is missing is on its way. */
  | 'tail'
  | 'snapshot'
  /** The own group has entries that the primary has not. */
  | 'diverged'
  /** Who answers is no primary any more, or not the one of the latest reign. */
  | 'fenced'
  /** The primary does not take this datacenter for a part of its federation, until somebody acts. */
  | 'refused';

export interface SubscriberState {
  readonly kind: SubscriberKind;
  /** `host:port` of the server of the primary that is asked, or was last. */
  readonly source: string | undefined;
  /** Why the last session ended, or why there is none; kept until another one takes its place. */
  readonly lastError: { readonly text: string; readonly atMs: number } | undefined;
  /** When something was last applied, by the own wall clock. */
  readonly lastAppliedAtMs: number | undefined;
  readonly applied: GlobalCursor | undefined;
  /** The primary's, as it said last. */
  readonly news: FeedNews | undefined;
  /** The latest reign in which anybody has ever answered as its primary; 0: in none. */
  readonly begunEpoch: number;
  /** Of what the primary is known to have. Undefined while it has not been heard. */
  readonly lagEntries: number | undefined;
  /** Since this datacenter last had everything that the primary was known to have. */
  readonly lagMs: number | undefined;
  /** The same in bytes, as the primary said last. */
  readonly lagBytes: number | undefined;
  /** Numbers that the primary's state had when it was where this one has come to by now. */
  readonly figures: readonly number[] | undefined;
  /** How often the own objects were found not to be those of the primary at the same place. */
  readonly differenceCount: number;
  /** With 'diverged': up to there the chains are the same. */
  readonly forkSeq: number | undefined;
  /** With 'fenced': the later epoch. */
  readonly laterEpoch: number | undefined;
  readonly sessionCount: number;
}

export interface SubscriberRecordOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Of the own state, on this leader. */
  readonly cursor: () => GlobalCursor | undefined;
}

export class SubscriberRecord {
  /** `host:port`. */
  source: string | undefined;
  readonly #options: SubscriberRecordOptions;
  #kind: SubscriberKind = 'idle';
  /** Of the reign that lasts; undefined: of none. */
  #lagMs: (() => number | undefined) | undefined;
  #lastError: SubscriberState['lastError'];
  #lastAppliedAtMs: number | undefined;
  #news: FeedNews | undefined;
  #begunEpoch = 0;
  #forkSeq: number | undefined;
  #laterEpoch: number | undefined;
  #sessionCount = 0;
  #differenceCount = 0;
  /** What the primary said of itself last. */
  #told: ReportAnswer | undefined;
  #figures: readonly number[] | undefined;

  constructor(options: SubscriberRecordOptions) {
    this.#options = options;
  }

  get kind(): SubscriberKind {
    return this.#kind;
  }

  get lastError(): SubscriberState['lastError'] {
    return this.#lastError;
  }

  /** Of the primary, as it said last; 0 while it has not been heard. */
  get headSeq(): number {
    return this.#news?.headSeq ?? 0;
  }

  state(): SubscriberState {
    const applied = this.#lagMs === undefined ? undefined : this.#options.cursor();
    const headSeq = this.#news?.headSeq;
    const isKnown = headSeq !== undefined && applied !== undefined;
    return {
      kind: this.#kind,
      source: this.source,
      lastError: this.#lastError,
      lastAppliedAtMs: this.#lastAppliedAtMs,
      applied,
      news: this.#news,
      begunEpoch: this.#begunEpoch,
      lagEntries: isKnown ? Math.max(0, headSeq - applied.seq) : undefined,
      lagMs: this.#lagMs?.(),
      lagBytes: isKnown && headSeq <= applied.seq ? 0 : this.#told?.lagBytes,
      figures: this.#figures,
      differenceCount: this.#differenceCount,
      forkSeq: this.#kind === 'diverged' ? this.#forkSeq : undefined,
      laterEpoch: this.#kind === 'fenced' ? this.#laterEpoch : undefined,
      sessionCount: this.#sessionCount,
    };
  }

  beginReign(lagMs: () => number | undefined): void {
    this.#lagMs = lagMs;
    this.become('connecting');
  }

  /** What the primary said counts no more. */
  endReign(): void {
    this.#lagMs = undefined;
    this.#news = undefined;
    this.#told = undefined;
    this.#figures = undefined;
    this.become('idle');
  }

  beginSession(): void {
    this.#sessionCount += 1;
  }

  /** The primary of that reign has answered, whatever comes of it. */
  sawReign(epoch: number): void {
    this.#begunEpoch = Math.max(this.#begunEpoch, epoch);
  }

  sawNews(news: FeedNews): void {
    this.#news = news;
  }

  sawReport(told: ReportAnswer): void {
    this.#told = told;
    this.#noteFigures();
  }

  appliedEntries(): void {
    this.#lastAppliedAtMs = this.#options.clock.wallMs();
    this.#noteFigures();
  }

  appliedSnapshot(): void {
    this.#lastAppliedAtMs = this.#options.clock.wallMs();
  }

  /** A snapshot of the primary mends it; that it came to this must be looked into all the same. */
  differs(message: string): void {
    this.#differenceCount += 1;
    this.#options.logger.error({ source: this.source }, message);
  }

  diverged(forkSeq: number): void {
    this.#forkSeq = forkSeq;
    const says = `the primary has not what this datacenter has behind entry ${forkSeq}`;
    this.become('diverged', says);
  }

  fencedBy(epoch: number, says: string): void {
    this.#laterEpoch = epoch;
    this.become('fenced', says);
  }

  /** `isRefusal`: only an operator can do something about it. */
  failed(text: string, isRefusal: boolean): void {
    const isStuck = this.#kind === 'diverged' || this.#kind === 'fenced';
    if (isRefusal) this.become('refused', text);
    else this.become(isStuck ? this.#kind : 'connecting', text);
  }

  become(kind: SubscriberKind, errorText?: string): void {
    const isNewError = errorText !== undefined && errorText !== this.#lastError?.text;
    if (errorText !== undefined) {
      this.#lastError = { text: errorText, atMs: this.#options.clock.wallMs() };
    }
    if (kind === this.#kind && !isNewError) return;
    this.#kind = kind;
    const fields = { kind, source: this.source, ...(isNewError && { why: errorText }) };
    this.#options.logger[isNewError ? 'warn' : 'info'](fields, 'the feed stands');
  }

  /** What the primary said of itself at a head holds here as soon as this datacenter has that head. */
  #noteFigures(): void {
    const appliedSeq = this.#options.cursor()?.seq ?? 0;
    if (this.#told !== undefined && appliedSeq >= this.#told.headSeq) {
      this.#figures = this.#told.figures;
    }
  }
}
