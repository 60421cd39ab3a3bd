// The follower's side of the feed, on the leader of a secondary: finds the primary, begins a session at the
// cursor of its own group, applies what comes, and begins again after whatever goes wrong. Exactly once is
// not its matter: the group's log takes a batch only behind the cursor that the batch names.

import { messageOf } from '../../base/message-of.ts';
import { unreachable } from '../../base/unreachable.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { addressText, type NetAddress } from '../../platform/net.ts';
import type { Random } from '../../platform/random.ts';
import { RpcError } from '../../transport/calls/rpc-error.ts';
import type { RpcCall } from '../../transport/transport.ts';
import { type GlobalCursor, positionText } from '../global-log.ts';
import { REMOVED_REFUSAL } from '../refuse-outsiders.ts';
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
import { type DigestedPlace, Reporter } from './reporter.ts';
import { SubscriberRecord, type SubscriberState } from './subscriber-record.ts';

export interface SubscriberOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** To servers of other datacenters. Rejects with RpcError. */
  readonly call: (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;
  /** Of the primary, or of whoever may know it; asked at every try. */
  readonly addresses: () => readonly NetAddress[];
  /** The latest reign that anybody says has begun; 0 while nobody does. */
  readonly toldEpoch: () => number;
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
  /** Resolves when all that `apply` was given is decided: until then `cursor` says too little. */
  readonly settled: () => Promise<void>;
  readonly limits?: Partial<SubscriberLimits>;
}

/** A session that stood for so long, or brought something, was a good one: the next try comes soon. */
const GOOD_AFTER_MS = 5_000;
/**
 * What an operator must look at is asked again no oftener; with as much again at random still so often that a primary
 * which has just begun hears in time that it lacks what is here, and takes this datacenter for none that is away.
 */
const STUCK_RETRY_MS = 1_000;
/** A primary that was fenced has a successor soon. */
const FENCED_RETRY_MS = 500;

const INTERRUPTED = 'the primary asks how far this datacenter is, and is followed anew';

/** One reign of the own leader. */
interface Reign {
  readonly term: number;
  readonly addresses: AddressChoice;
  readonly lag: Lag;
  reader: FeedReader | undefined;
  /** Whatever the cursor says. */
  wantsSnapshot: boolean;
  /** What came in this try is taken no further. */
  isInterrupted: boolean;
  /** Something was applied in this try, or staged. */
  hasProgress: boolean;
  isOver: boolean;
  wake: () => void;
}

export class Subscriber {
  readonly #options: SubscriberOptions;
  readonly #limits: SubscriberLimits;
  readonly #record: SubscriberRecord;
  #reign: Reign | undefined;

  constructor(options: SubscriberOptions) {
    this.#options = options;
    this.#limits = { ...DEFAULT_SUBSCRIBER_LIMITS, ...options.limits };
    this.#record = new SubscriberRecord(options);
  }

  /** This server leads its datacenter, in that term of its Raft group, and the datacenter is a secondary. */
  start(term: number): void {
    this.stop();
    const { clock, addresses, toldEpoch } = this.#options;
    const reign: Reign = {
      term,
      addresses: new AddressChoice({ addresses, toldEpoch }, this.#limits.redirectsMax),
      lag: new Lag(clock),
      reader: undefined,
      wantsSnapshot: false,
      isInterrupted: false,
      hasProgress: false,
      isOver: false,
      wake: () => undefined,
    };
    this.#reign = reign;
    this.#record.beginReign(() => reign.lag.ms());
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
    this.#record.endReign();
  }

  /**
   * What has come is taken no further: how far the own log is, and what is under way, is told anew. For a primary
   * that may have been put back, so that nothing lands behind that which it had sent before.
   */
  beginAnew(): void {
    const reign = this.#reign;
    if (reign === undefined) return;
    reign.isInterrupted = true;
    reign.reader?.stop(new FeedOver(INTERRUPTED));
  }

  state(): SubscriberState {
    return this.#record.state();
  }

  async #run(reign: Reign): Promise<void> {
    let retryMs = this.#limits.retryBaseMs;
    while (!reign.isOver) {
      const beganAtMs = this.#options.clock.monotonicMs();
      reign.hasProgress = false;
      reign.isInterrupted = false;
      let waitMs = retryMs;
      try {
        waitMs = await this.#tryOnce(reign);
      } catch (error) {
        if (reign.isOver) return;
        if (error instanceof SnapshotNeeded) reign.wantsSnapshot = true;
        if (error instanceof Difference) this.#record.differs(error.message);
        this.#record.failed(messageOf(error), isRefusal(error));
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
    await this.#options.settled();
    if (reign.isOver) return 0;
    const address = reign.addresses.next();
    if (address === undefined) {
      throw new FeedOver(
        'no address of the primary is known: retry_join_wan has none to ask for it',
      );
    }
    this.#record.source = addressText(address);
    const answer = await this.#hello(reign, address);
    this.#record.sawReign(begunEpochOf(answer));
    if (reign.isOver) return 0;
    switch (answer.kind) {
      case 'tail':
        return this.#follow(reign, address, answer);
      case 'snapshot-needed':
        this.#requireReign(answer);
        await this.#adopt(answer);
        if (reign.isOver) return 0;
        this.#record.become('snapshot');
        await this.#takeSnapshot(reign, address);
        reign.wantsSnapshot = false;
        return this.#limits.retryBaseMs;
      case 'redirect': {
        if (reign.addresses.redirected(answer.addresses)) return 0;
        throw new FeedOver(`${this.#record.source} is not the one to ask: ${answer.says}`);
      }
      case 'diverged':
        this.#record.diverged(answer.forkSeq);
        // Where it is the one to ask by then is looked at anew.
        reign.addresses.failed();
        return STUCK_RETRY_MS;
      case 'fenced':
        this.#record.fencedBy(
          answer.epoch,
          `${this.#record.source} has learnt of epoch ${answer.epoch}`,
        );
        reign.addresses.failed();
        return FENCED_RETRY_MS;
      default:
        return unreachable(answer);
    }
  }

  /**
   * Whoever wants a snapshot says first where it stands, as everybody does: a primary that has lost what is here, or
   * that a later reign has outrun, would not know that, write on, and have that taken in the place of what is here.
   */
  async #hello(reign: Reign, address: NetAddress): Promise<HelloAnswer> {
    const answer = await this.#helloFrom(reign, address, this.#options.cursor());
    const isToFollow = answer.kind === 'tail' && reign.wantsSnapshot;
    return isToFollow ? this.#helloFrom(reign, address, undefined) : answer;
  }

  async #helloFrom(
    reign: Reign,
    address: NetAddress,
    cursor: GlobalCursor | undefined,
  ): Promise<HelloAnswer> {
    const { clusterId, federationId, maxEpoch, level, isWitness } = this.#options;
    const payload = encodeHello({
      federationId: federationId(),
      clusterId: clusterId(),
      term: reign.term,
      cursor,
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
    this.#record.beginSession();
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
      { source: this.#record.source, after: positionText(after), headSeq: news.headSeq },
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
    }
  }

  #newReporter(reader: FeedReader, address: NetAddress, session: number): Reporter {
    const { clock, place } = this.#options;
    const { callMs, reportMs: everyMs } = this.#limits;
    return new Reporter({
      ...{ clock, session, everyMs, callMs, place },
      call: (method, payload, deadlineMs) => this.#call(address, method, payload, deadlineMs),
      error: () => {
        const { text, atMs } = this.#record.lastError ?? {};
        return text === undefined || atMs === undefined
          ? undefined
          : { text, ageMs: clock.wallMs() - atMs };
      },
      onAnswer: (answer) => this.#record.sawReport(answer),
      onDifference: (at) => reader.stop(new Difference(at)),
    });
  }

  /** Before the first thing that comes from there. */
  async #adopt({ federationId }: { readonly federationId: string }): Promise<void> {
    if (federationId === '' || this.#options.federationId() !== '') return;
    await this.#options.adopt(federationId);
  }

  async #takeSnapshot(reign: Reign, address: NetAddress): Promise<void> {
    const { clock, federationId, logger, maxEpoch, sink } = this.#options;
    const isInPlace = await borrowSnapshot({
      clock,
      logger,
      sink,
      federationId: federationId(),
      epochMin: maxEpoch(),
      call: (method, payload, deadlineMs) => this.#call(address, method, payload, deadlineMs),
      isOver: () => reign.isOver || reign.isInterrupted,
      onStaged: () => {
        reign.hasProgress = true;
      },
    });
    if (!isInPlace) throw new FeedOver(INTERRUPTED);
    this.#record.appliedSnapshot();
  }

  #onNews(reign: Reign, news: FeedNews): void {
    if (reign.isOver) return;
    this.#requireReign({ federationId: undefined, epoch: news.epoch });
    this.#record.sawNews(news);
    this.#look(reign);
  }

  #onApplied(reign: Reign): void {
    reign.hasProgress = true;
    this.#record.appliedEntries();
    if (!reign.isOver) this.#look(reign);
  }

  #look(reign: Reign): void {
    const { headSeq } = this.#record;
    const appliedSeq = this.#options.cursor()?.seq ?? 0;
    reign.lag.look({ headSeq, appliedSeq });
    const isNear = headSeq - appliedSeq <= TAIL_ENTRIES_MAX && !reign.lag.isFarBehind;
    this.#record.become(isNear ? 'tail' : 'catching-up');
  }

  /** Throws FeedOver when whoever answers is of another federation, or of a reign that is over. */
  #requireReign(answer: {
    readonly federationId: string | undefined;
    readonly epoch: number;
  }): void {
    const own = this.#options.federationId();
    const { epoch, federationId = own } = answer;
    if (own !== '' && federationId !== '' && federationId !== own) {
      throw new FeedOver(`${this.#record.source} is of federation ${federationId}, not of ${own}`);
    }
    const maxEpoch = this.#options.maxEpoch();
    if (epoch >= maxEpoch) return;
    const says = `${this.#record.source} is primary of epoch ${epoch}, and epoch ${maxEpoch} is promised here`;
    this.#record.fencedBy(maxEpoch, says);
    throw new FeedOver(says);
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
      const wake = (): void => {
        timer.cancel();
        resolve();
      };
      reign.wake = wake;
    });
  }
}

/** Of the reign that it is primary of; 0 where it is of none any more, or never was. */
function begunEpochOf(answer: HelloAnswer): number {
  switch (answer.kind) {
    case 'tail':
      return answer.news.epoch;
    case 'snapshot-needed':
    case 'diverged':
      return answer.epoch;
    case 'redirect':
    case 'fenced':
      return 0;
    default:
      return unreachable(answer);
  }
}

/** Nothing but an operator's decision changes what is answered. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof RpcError)) return false;
  const code = error.refusal?.code;
  return code === REMOVED_REFUSAL || code === FEED_REFUSAL.stranger;
}
