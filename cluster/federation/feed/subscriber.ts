// The follower's side of the feed, on the leader of a secondary: finds the primary, begins a session at the
// cursor of its own group, applies what comes, and begins again after whatever goes wrong. Exactly once is
// not its matter: the group's log takes a batch only behind the cursor that the batch names.

import { unreachable } from '../../base/unreachable.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { NetAddress } from '../../platform/net.ts';
import type { Random } from '../../platform/random.ts';
import { RpcError } from '../../transport/rpc-error.ts';
import type { RpcCall } from '../../transport/transport.ts';
import { type GlobalCursor, positionText } from '../global-log.ts';
import { REMOVED_REFUSAL } from '../refuse-removed.ts';
import { borrowSnapshot } from '../snapshot/borrow-snapshot.ts';
import type { SnapshotSink } from '../snapshot/snapshot-sink.ts';
import { AddressChoice } from './address-choice.ts';
import {
  decodeHelloAnswer,
  encodeHello,
  FEED_METHOD,
  type FeedNews,
  type HelloAnswer,
} from './feed-frames.ts';
import {
  DEFAULT_SUBSCRIBER_LIMITS,
  type SubscriberLimits,
  TAIL_ENTRIES_MAX,
} from './feed-limits.ts';
import {
  Difference,
  FeedOver,
  FeedReader,
  type GlobalBatch,
  SnapshotNeeded,
} from './feed-reader.ts';
import { FEED_REFUSAL } from './feed-session.ts';
import { Lag } from './lag.ts';
import type { ReportAnswer } from './report-frames.ts';
import { type DigestedPlace, Reporter } from './reporter.ts';

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

export interface SubscriberOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** To servers of other datacenters. Rejects with RpcError. */
  readonly call: (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;
  /** Of the primary, or of whoever may know it; asked at every try. */
  readonly addresses: () => readonly NetAddress[];
  /** Of the own group; the primary knows a datacenter by it. */
  readonly clusterId: () => string;
  /** As the own state has it; empty while it has none. */
  readonly federationId: () => string;
  /**
   * The own datacenter is of that federation from now on, and knew of none. Resolves when its group has
   * that on its disks. Rejects when it is of another one by now, or this server cannot say.
   */
  readonly adopt: (federationId: string) => Promise<void>;
  /** Of the own state, on this leader; undefined: it is of no use, and a snapshot must take its place. */
  readonly cursor: () => GlobalCursor | undefined;
  /** The same with the digest of what it has there; asked at every report. */
  readonly place: () => DigestedPlace | undefined;
  /** The highest epoch that the own datacenter has promised, or has entries of. */
  readonly maxEpoch: () => number;
  /** The level of what the own log may say. */
  readonly level: () => number;
  /** Whether the own datacenter votes and has no objects. */
  readonly isWitness: () => boolean;
  /**
   * Through the own group's log. Resolves with the cursor that it has then: `batch.to`, or another one, when
   * not all of it fitted; or with the wish for a snapshot. Rejects when this server cannot say.
   */
  readonly apply: (batch: GlobalBatch) => Promise<GlobalCursor | 'snapshot-needed'>;
  readonly sink: SnapshotSink;
  /** Called when `kind` or the last error has changed. */
  readonly onState: (state: SubscriberState) => void;
  readonly limits?: Partial<SubscriberLimits>;
}

/** A session that stood for so long, or brought something, was a good one: the next try comes soon. */
const GOOD_AFTER_MS = 5_000;
/** What an operator must look at is asked again no oftener. */
const STUCK_RETRY_MS = 5_000;
/** A primary that was fenced has a successor soon. */
const FENCED_RETRY_MS = 500;

/** One reign of the own leader. */
interface Reign {
  readonly term: number;
  readonly addresses: AddressChoice;
  readonly lag: Lag;
  reader: FeedReader | undefined;
  /** Whatever the cursor says. */
  wantsSnapshot: boolean;
  /** Something was applied in this try, or staged. */
  hasProgress: boolean;
  isOver: boolean;
  wake: () => void;
}

export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #limits: SubscriberLimits;
  #reign: Reign | undefined;
  #kind: SubscriberKind = 'idle';
  #source: string | undefined;
  #lastError: SubscriberState['lastError'];
  #lastAppliedAtMs: number | undefined;
  #news: FeedNews | undefined;
  #forkSeq: number | undefined;
  #laterEpoch: number | undefined;
  #sessionCount = 0;
  #differenceCount = 0;
  /** What the primary said of itself last. */
  #told: ReportAnswer | undefined;
  #figures: readonly number[] | undefined;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_SUBSCRIBER_LIMITS, ...options.limits };
  }

  /** This server leads its datacenter, in that term of its Raft group, and the datacenter is a secondary. */
  start(term: number): void {
    this.stop();
    const { clock, addresses } = this.#options;
    const reign: Reign = {
      term,
      addresses: new AddressChoice(addresses, this.#limits.redirectsMax),
      lag: new Lag(clock),
      reader: undefined,
      wantsSnapshot: false,
      hasProgress: false,
      isOver: false,
      wake: () => undefined,
    };
    this.#reign = reign;
    this.#become('connecting');
    void this.#run(reign);
  }

  /** The reign is over. What is being applied comes to an end by itself. Stopping twice is harmless. */
  stop(): void {
    const reign = this.#reign;
    if (reign === undefined) return;
    this.#reign = undefined;
    reign.isOver = true;
    reign.reader?.stop(new FeedOver('this server does not lead its datacenter any more'));
    reign.wake();
    this.#news = undefined;
    this.#told = undefined;
    this.#figures = undefined;
    this.#become('idle');
  }

  state(): SubscriberState {
    const applied = this.#reign === undefined ? undefined : this.#options.cursor();
    const headSeq = this.#news?.headSeq;
    const isKnown = headSeq !== undefined && applied !== undefined;
    return {
      kind: this.#kind,
      source: this.#source,
      lastError: this.#lastError,
      lastAppliedAtMs: this.#lastAppliedAtMs,
      applied,
      news: this.#news,
      lagEntries: isKnown ? Math.max(0, headSeq - applied.seq) : undefined,
      lagMs: this.#reign?.lag.ms(),
      lagBytes: isKnown && headSeq <= applied.seq ? 0 : this.#told?.lagBytes,
      figures: this.#figures,
      differenceCount: this.#differenceCount,
      forkSeq: this.#kind === 'diverged' ? this.#forkSeq : undefined,
      laterEpoch: this.#kind === 'fenced' ? this.#laterEpoch : undefined,
      sessionCount: this.#sessionCount,
    };
  }

  async #run(reign: Reign): Promise<void> {
    let retryMs = this.#limits.retryBaseMs;
    while (!reign.isOver) {
      const beganAtMs = this.#options.clock.monotonicMs();
      reign.hasProgress = false;
      let waitMs = retryMs;
      try {
        waitMs = await this.#tryOnce(reign);
      } catch (error) {
        if (reign.isOver) return;
        if (error instanceof SnapshotNeeded) reign.wantsSnapshot = true;
        if (error instanceof Difference) this.#alarm(error);
        this.#noteError(error);
        const tookMs = this.#options.clock.monotonicMs() - beganAtMs;
        if (reign.hasProgress || tookMs >= GOOD_AFTER_MS) retryMs = this.#limits.retryBaseMs;
        waitMs = isRefusal(error) ? STUCK_RETRY_MS : retryMs;
        retryMs = Math.min(this.#limits.retryMaxMs, retryMs * 2);
        reign.addresses.failed();
      }
      if (!reign.isOver) await this.#rest(reign, waitMs);
    }
  }

  /** How long to wait before the next try. Rejects with whatever went wrong. */
  async #tryOnce(reign: Reign): Promise<number> {
    const address = reign.addresses.next();
    if (address === undefined) throw new FeedOver('no address of the primary is known');
    this.#source = `${address.host}:${address.port}`;
    const answer = await this.#hello(reign, address);
    if (reign.isOver) return 0;
    switch (answer.kind) {
      case 'tail':
        return this.#follow(reign, address, answer);
      case 'snapshot-needed':
        this.#requireReign(answer);
        await this.#adopt(answer);
        this.#become('snapshot');
        await this.#takeSnapshot(reign, address);
        reign.wantsSnapshot = false;
        return this.#limits.retryBaseMs;
      case 'redirect': {
        if (reign.addresses.redirected(answer.addresses)) return 0;
        throw new FeedOver(`${this.#source} is not the one to ask: ${answer.says}`);
      }
      case 'diverged': {
        this.#forkSeq = answer.forkSeq;
        const says = `the primary has not what this datacenter has behind entry ${answer.forkSeq}`;
        this.#become('diverged', says);
        return STUCK_RETRY_MS;
      }
      case 'fenced':
        this.#fencedBy(answer.epoch, `${this.#source} has learnt of epoch ${answer.epoch}`);
        reign.addresses.failed();
        return FENCED_RETRY_MS;
      default:
        return unreachable(answer);
    }
  }

  async #hello(reign: Reign, address: NetAddress): Promise<HelloAnswer> {
    const { clusterId, cursor, federationId, maxEpoch, level, isWitness } = this.#options;
    const payload = encodeHello({
      federationId: federationId(),
      clusterId: clusterId(),
      term: reign.term,
      cursor: reign.wantsSnapshot ? undefined : cursor(),
      maxEpoch: maxEpoch(),
      level: level(),
      isWitness: isWitness(),
    });
    const bytes = await this.#call(address, FEED_METHOD.hello, payload, this.#limits.callMs);
    return decodeHelloAnswer(bytes);
  }

  async #follow(
    reign: Reign,
    address: NetAddress,
    { session, federationId, news }: Extract<HelloAnswer, { readonly kind: 'tail' }>,
  ): Promise<number> {
    this.#requireReign({ federationId, epoch: news.epoch });
    await this.#adopt({ federationId });
    if (reign.isOver) return 0;
    const after = this.#options.cursor();
    if (after === undefined) throw new FeedOver('the own state has changed meanwhile');
    this.#sessionCount += 1;
    reign.addresses.worked();
    const reader = new FeedReader({
      clock: this.#options.clock,
      limits: this.#limits,
      federationId,
      session,
      epoch: news.epoch,
      after,
      call: (method, payload, deadlineMs) => this.#call(address, method, payload, deadlineMs),
      apply: (batch) => this.#options.apply(batch),
      onNews: (each) => this.#onNews(reign, each),
      onApplied: () => this.#onApplied(reign),
    });
    reign.reader = reader;
    this.#options.logger.info(
      { source: this.#source, after: positionText(after), headSeq: news.headSeq },
      'follows the global log',
    );
    this.#onNews(reign, news);
    reader.start();
    const reporter = this.#newReporter(reader, address, session);
    try {
      return await reader.over;
    } finally {
      reporter.stop();
      reign.reader = undefined;
      if (!reign.isOver) this.#become('connecting');
    }
  }

  /** A snapshot of the primary mends it; that it came to this must be looked into all the same. */
  #alarm({ message }: Difference): void {
    this.#differenceCount += 1;
    this.#options.logger.error({ source: this.#source }, message);
  }

  #newReporter(reader: FeedReader, address: NetAddress, session: number): Reporter {
    const { clock, place } = this.#options;
    const { callMs, reportMs: everyMs } = this.#limits;
    return new Reporter({
      ...{ clock, session, everyMs, callMs, place },
      call: (method, payload, deadlineMs) => this.#call(address, method, payload, deadlineMs),
      error: () => {
        const { text, atMs } = this.#lastError ?? {};
        return text === undefined || atMs === undefined
          ? undefined
          : { text, ageMs: clock.wallMs() - atMs };
      },
      onAnswer: (answer) => {
        this.#told = answer;
        this.#noteFigures();
      },
      onDifference: (at) => reader.stop(new Difference(at)),
    });
  }

  /** What the primary said of itself at a head holds here as soon as this datacenter has that head. */
  #noteFigures(): void {
    const appliedSeq = this.#options.cursor()?.seq ?? 0;
    if (this.#told !== undefined && appliedSeq >= this.#told.headSeq) {
      this.#figures = this.#told.figures;
    }
  }

  /** Before the first thing that comes from there. */
  async #adopt({ federationId }: { readonly federationId: string }): Promise<void> {
    if (federationId === '' || this.#options.federationId() !== '') return;
    await this.#options.adopt(federationId);
  }

  async #takeSnapshot(reign: Reign, address: NetAddress): Promise<void> {
    const { clock, federationId, logger, maxEpoch, sink } = this.#options;
    await borrowSnapshot({
      clock,
      logger,
      sink,
      federationId: federationId(),
      epochMin: maxEpoch(),
      call: (method, payload, deadlineMs) => this.#call(address, method, payload, deadlineMs),
      isOver: () => reign.isOver,
      onStaged: () => {
        reign.hasProgress = true;
      },
    });
    this.#lastAppliedAtMs = clock.wallMs();
  }

  #onNews(reign: Reign, news: FeedNews): void {
    if (reign.isOver) return;
    this.#requireReign({ federationId: undefined, epoch: news.epoch });
    this.#news = news;
    this.#look(reign);
  }

  #onApplied(reign: Reign): void {
    this.#lastAppliedAtMs = this.#options.clock.wallMs();
    reign.hasProgress = true;
    this.#noteFigures();
    if (!reign.isOver) this.#look(reign);
  }

  #look(reign: Reign): void {
    const headSeq = this.#news?.headSeq ?? 0;
    const appliedSeq = this.#options.cursor()?.seq ?? 0;
    reign.lag.look({ headSeq, appliedSeq });
    const isNear = headSeq - appliedSeq <= TAIL_ENTRIES_MAX && !reign.lag.isFarBehind;
    this.#become(isNear ? 'tail' : 'catching-up');
  }

  /** Throws FeedOver when whoever answers is of another federation, or of a reign that is over. */
  #requireReign(answer: {
    readonly federationId: string | undefined;
    readonly epoch: number;
  }): void {
    const own = this.#options.federationId();
    const { epoch, federationId = own } = answer;
    if (own !== '' && federationId !== '' && federationId !== own) {
      throw new FeedOver(`${this.#source} is of federation ${federationId}, not of ${own}`);
    }
    const maxEpoch = this.#options.maxEpoch();
    if (epoch >= maxEpoch) return;
    const says = `${this.#source} is primary of epoch ${epoch}, and epoch ${maxEpoch} is promised here`;
    this.#fencedBy(maxEpoch, says);
    throw new FeedOver(says);
  }

  #fencedBy(epoch: number, says: string): void {
    this.#laterEpoch = epoch;
    this.#become('fenced', says);
  }

  #call(
    address: NetAddress,
    method: string,
    payload: Uint8Array,
    deadlineMs: number,
  ): Promise<Uint8Array> {
    return this.#options.call(address, { method, payload, deadlineMs, hops: 0, isBulk: true });
  }

  #rest(reign: Reign, waitMs: number): Promise<void> {
    const { clock, random } = this.#options;
    return new Promise((resolve) => {
      const timer = clock.after(waitMs * (1 + random.fraction()), resolve);
      reign.wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }

  #noteError(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    const isStuck = this.#kind === 'diverged' || this.#kind === 'fenced';
    if (isRefusal(error)) this.#become('refused', text);
    else this.#become(isStuck ? this.#kind : 'connecting', text);
  }

  #become(kind: SubscriberKind, errorText?: string): void {
    const isNewError = errorText !== undefined && errorText !== this.#lastError?.text;
    if (errorText !== undefined) {
      this.#lastError = { text: errorText, atMs: this.#options.clock.wallMs() };
    }
    if (kind === this.#kind && !isNewError) return;
    this.#kind = kind;
    const fields = { kind, source: this.#source, ...(isNewError && { why: errorText }) };
    this.#options.logger[isNewError ? 'warn' : 'info'](fields, 'the feed stands');
    this.#options.onState(this.state());
  }
}

/** Nothing but an operator's decision changes what is answered. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof RpcError)) return false;
  const code = error.refusal?.code;
  return code === REMOVED_REFUSAL || code === FEED_REFUSAL.stranger;
}
