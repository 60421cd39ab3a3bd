// The primary's side of the feed, on every server: the one that leads the primary answers followers, every
// other tells where that one is. What a follower has acknowledged counts for majorities and for what may be
// trimmed; only the newest session of a datacenter acknowledges.

import { unreachable } from '../../base/unreachable.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import type { NetAddress } from '../../platform/net.ts';
import type { Random } from '../../platform/random.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { RpcCaller, RpcRequest, RpcServer } from '../../transport/transport.ts';
import type { EntrySource } from '../entry-source.ts';
import { positionText } from '../global-log.ts';
import { otherClusterText, requireNotRemoved } from '../refuse-outsiders.ts';
import { type AckLevel, type AckResult, AckWaiters, type AckWish } from './ack-waiters.ts';
import { type AheadFollower, AheadFollowers, type ToldPlace } from './ahead-followers.ts';
import {
  decodeAck,
  decodeHello,
  decodePull,
  encodeHelloAnswer,
  FEED_METHOD,
  type FeedHello,
  type FeedNews,
  type HelloAnswer,
} from './feed-frames.ts';
import { DEFAULT_FEED_LIMITS, type FeedLimits } from './feed-limits.ts';
import { FEED_REFUSAL, FeedSession } from './feed-session.ts';
import { Follower, type FollowerView } from './follower.ts';
import { FramePacker } from './frame-packer.ts';
import { allSeqOf, majoritySeqOf } from './majority.ts';
import { decodeReport, encodeReportAnswer } from './report-frames.ts';

/** Whether this server answers followers. */
export type FeedStanding =
  /** It leads the primary, and has applied what came before its reign. */
  | {
      readonly kind: 'primary';
      readonly federationId: string;
      readonly epoch: number;
      /** The first entry of this epoch. */
      readonly epochStartSeq: number;
      /** The level of what its log may say. */
      readonly level: number;
      /** The datacenters that count for majorities, as the log lists them, this one among them. */
      readonly voters: readonly string[];
      /** Those of them that have no objects. */
      readonly witnesses: readonly string[];
      /** Others that have a part in the federation, and are not listed yet. */
      readonly joining: readonly string[];
      /** Those that an operator has removed. */
      readonly removed: readonly string[];
    }
  /** Another one does: at these addresses, as far as is known. */
  | {
      readonly kind: 'elsewhere';
      readonly addresses: readonly NetAddress[];
      readonly says: string;
      /** It leads the primary of that reign, which a promise has ended, and has nothing of a later one. */
      readonly ended?: { readonly federationId: string; readonly epoch: number };
    };

export interface FeedServerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The own one. */
  readonly datacenter: string;
  readonly source: EntrySource;
  /** Asked at every call; `standingChanged` tells when it has changed. */
  readonly standing: () => FeedStanding;
  /** A follower knows of a later reign than this primary's: it must stop being primary. */
  readonly onNewerEpoch: (epoch: number) => void;
  readonly limits?: Partial<FeedLimits>;
}

/** By the own wall clock. */
export interface Refused {
  readonly says: string;
  readonly atMs: number;
}

export class FeedServer {
  /** To be served for all datacenters, by their methods. */
  readonly handlers: Readonly<Record<string, RpcServer>> = {
    [FEED_METHOD.hello]: async (request) => encodeHelloAnswer(this.#onHello(request)),
    [FEED_METHOD.pull]: (request) => this.#onPull(request),
    [FEED_METHOD.ack]: async (request) => this.#onAck(request),
    [FEED_METHOD.report]: async (request) => this.#onReport(request),
  };
  readonly #options: FeedServerOptions;
  readonly #limits: FeedLimits;
  readonly #packer: FramePacker;
  readonly #followers = new Map<string, Follower>();
  readonly #ahead: AheadFollowers;
  /** Datacenters that use too low a level to follow, as they asked last. */
  readonly #behind = new Map<string, Refused>();
  readonly #waiters: AckWaiters;
  readonly #stopListening: () => void;
  /** Of the reign in which what is known here was heard; undefined: no reign. */
  #epoch: number | undefined;
  /** Up to where so many have the log, as it was counted last in this reign. */
  #reached = NOTHING_REACHED;
  /** Nothing has changed since that it is counted of. */
  #isCounted = false;
  #lastSession: number;

  constructor(options: FeedServerOptions) {
    this.#options = options;
    const { clock, random, source } = options;
    this.#limits = { ...DEFAULT_FEED_LIMITS, ...options.limits };
    this.#packer = new FramePacker(source, this.#limits.packedMax);
    this.#ahead = new AheadFollowers({
      clock,
      headSeq: () => source.head.seq,
      silentMs: this.#limits.silentMs,
      countMax: this.#limits.followersMax,
    });
    this.#waiters = new AckWaiters({
      clock,
      waitersMax: this.#limits.waitersMax,
      reachedSeq: (level) => this.acknowledgedSeq(level),
    });
    // What a session of an earlier life was told, no session of this one is.
    this.#lastSession = Math.floor(random.fraction() * 2 ** 32);
    this.#stopListening = source.onMoved(() => this.#onMoved());
    this.standingChanged();
  }

  /** This server began or ended to lead the primary, an epoch began, or who counts has changed. */
  standingChanged(): void {
    const standing = this.#options.standing();
    const epoch = standing.kind === 'primary' ? standing.epoch : undefined;
    if (epoch !== this.#epoch) this.#endReign(epoch);
    const last = standing.kind === 'primary' ? standing.epoch : standing.ended?.epoch;
    this.#ahead.begin(last);
    this.#changed();
  }

  /** Every datacenter that was heard in this reign. */
  followers(): readonly FollowerView[] {
    const { clock, source } = this.#options;
    const now = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
    return [...this.#followers.values()].map((follower) =>
      follower.view({ now, source, silentMs: this.#limits.silentMs }),
    );
  }

  /** When that datacenter was last heard in this reign, by the monotonic clock. */
  heardAtMs(datacenter: string): number | undefined {
    return this.#followers.get(datacenter)?.heardAtMs;
  }

  /** The cluster that was heard under that name in this reign. */
  clusterIdOf(datacenter: string): string | undefined {
    return this.#followers.get(datacenter)?.clusterId;
  }

  /** Why a datacenter that is there does not follow; undefined where it was not refused of late. */
  refused(datacenter: string): Refused | undefined {
    const refused = this.#behind.get(datacenter);
    const { clock } = this.#options;
    const isLate = refused !== undefined && clock.wallMs() - refused.atMs <= REFUSED_SHOWN_MS;
    return isLate ? refused : undefined;
  }

  /**
   * Who has more of this reign than this primary, which wrote that and has lost it, or had when a promise of this
   * datacenter ended it; who has most first.
   */
  ahead(): readonly AheadFollower[] {
    return this.#ahead.having({ isBeyond: false });
  }

  /** The same of those that have something of a later reign, whosever that is. */
  beyond(): readonly AheadFollower[] {
    return this.#ahead.having({ isBeyond: true });
  }

  /** The latest epoch of which such a one ever had something, so that no other reign takes its number; 0: of none. */
  get begunEpoch(): number {
    return this.#ahead.begunEpoch;
  }

  /**
   * Some servers of one that was asked how far it is have answered, and others may yet: what it has more is known at
   * once. What it says when it asks for the log itself counts for more.
   */
  tells(datacenter: string, places: readonly ToldPlace[]): void {
    if (!this.#followers.has(datacenter)) this.#ahead.noteTelling(datacenter, places);
  }

  /** The same of all that will. */
  told(datacenter: string, places: readonly ToldPlace[]): void {
    if (!this.#followers.has(datacenter)) this.#ahead.noteTold(datacenter, places);
  }

  /** Whether it is known, of this reign, how far that datacenter is. */
  hasHeardOrAsked(datacenter: string): boolean {
    return this.#followers.has(datacenter) || this.#ahead.hasTold(datacenter);
  }

  /** It has asked for something else than the feed: a follower that takes a snapshot does. */
  heard(datacenter: string): void {
    this.#followers.get(datacenter)?.heard(this.#options.clock.monotonicMs());
  }

  /** Nothing is known of that datacenter any more; another cluster may take its name. */
  forget(datacenter: string): void {
    const follower = this.#followers.get(datacenter);
    follower?.session?.end(`an operator has made the primary forget ${datacenter}`);
    this.#followers.delete(datacenter);
    this.#ahead.forget(datacenter);
    this.#changed();
  }

  /** The last seq that so many datacenters are known to have; 0 while none is, in this reign. */
  acknowledgedSeq(level: AckLevel): number {
    return this.#counted()[level];
  }

  /** Waits until other datacenters have an entry of this reign. */
  awaitAck(wish: AckWish): Promise<AckResult> {
    return this.#epoch === undefined ? Promise.resolve('reign-over') : this.#waiters.wait(wish);
  }

  close(): void {
    this.#stopListening();
    this.#endReign(undefined);
  }

  #onHello({ from, payload }: RpcRequest): HelloAnswer {
    const standing = this.#options.standing();
    const hello = decodeHello(payload);
    this.#requireOther(from);
    if (standing.kind === 'elsewhere') {
      const { addresses, ended, says } = standing;
      if (ended?.federationId === hello.federationId) this.#noteAhead(from, hello, ended.epoch);
      return { kind: 'redirect', addresses, says };
    }
    const { epoch, federationId } = standing;
    const areKnown = hello.federationId !== '' && federationId !== '';
    if (areKnown && hello.federationId !== federationId) {
      const says = `${from.datacenter} is of federation ${hello.federationId}, ${this.#options.datacenter} of ${federationId}`;
      throw new RpcRefusal(FEED_REFUSAL.stranger, says);
    }
    const newest = Math.max(hello.maxEpoch, hello.cursor?.epoch ?? 0);
    if (newest > epoch) {
      this.#noteAhead(from, hello, epoch);
      return this.#yieldTo(newest, from);
    }
    requireNotRemoved(from, standing);
    this.#requireLevel(hello, from, standing.level);
    const follower = this.#admit(from, hello);
    this.#noteAhead(from, hello, epoch);
    const answer = this.#begin(follower, from, hello, standing);
    this.#options.logger.info(
      { datacenter: from.datacenter, node: from.name, answer: answer.kind },
      'a datacenter asks for the global log',
    );
    this.#changed();
    return answer;
  }

  #begin(
    follower: Follower,
    { name, remote }: RpcCaller,
    hello: FeedHello,
    { federationId, epoch }: Extract<FeedStanding, { readonly kind: 'primary' }>,
  ): HelloAnswer {
    const { clock, logger, source } = this.#options;
    const { cursor, term } = hello;
    follower.begin({ term, name, remote, atMs: clock.monotonicMs() });
    if (cursor === undefined) {
      follower.stands('snapshot');
      return { kind: 'snapshot-needed', federationId, epoch };
    }
    const location = source.locate(cursor);
    switch (location.kind) {
      case 'trimmed':
        follower.stands('snapshot');
        return { kind: 'snapshot-needed', federationId, epoch };
      case 'diverged':
        follower.stands('diverged');
        follower.failed({
          text: `it has what the primary has not, behind entry ${location.forkSeq}`,
          atMs: clock.wallMs(),
        });
        return { kind: 'diverged', epoch, forkSeq: location.forkSeq };
      case 'kept': {
        this.#lastSession += 1;
        const session = new FeedSession({
          clock,
          logger,
          packer: this.#packer,
          session: this.#lastSession,
          term,
          after: cursor,
          pullsMax: this.#limits.pullsMax,
          paceMs: this.#limits.paceMs,
          heartbeatMs: this.#limits.heartbeatMs,
          headSeq: () => source.head.seq,
          news: () => this.#news(epoch),
        });
        follower.follow(session, cursor);
        return { kind: 'tail', session: session.session, federationId, news: this.#news(epoch) };
      }
      default:
        return unreachable(location);
    }
  }

  #onPull({ from, payload }: RpcRequest): Promise<Uint8Array> {
    const { session, number } = decodePull(payload);
    return this.#sessionOf(from, session).pull(number);
  }

  #onAck({ from, payload }: RpcRequest): Uint8Array {
    const { session: number, cursor } = decodeAck(payload);
    const session = this.#sessionOf(from, number);
    if (cursor.seq > session.sentSeq) {
      const says = `${cursor.seq} is acknowledged, and ${session.sentSeq} was sent`;
      session.end(says);
      throw new RpcRefusal(FEED_REFUSAL.over, says);
    }
    this.#followers.get(from.datacenter)?.acknowledge(cursor);
    this.#changed();
    return NOTHING;
  }

  #onReport({ from, payload }: RpcRequest): Uint8Array {
    const { source, clock, logger } = this.#options;
    const { session, cursor, digest: theirs, error } = decodeReport(payload);
    this.#sessionOf(from, session);
    const follower = this.#followers.get(from.datacenter);
    follower?.failed(error && { text: error.text, atMs: clock.wallMs() - error.ageMs });
    const digest = source.digestAt(cursor);
    if (theirs !== undefined && digest !== undefined) {
      const hasBegun = follower?.compared(Buffer.compare(theirs, digest) === 0) === true;
      const fields = { datacenter: from.datacenter, position: positionText(cursor) };
      if (hasBegun) logger.error(fields, 'what a datacenter has is not what the primary has');
    }
    const answer = { digest, lagBytes: source.sizeAfter(cursor.seq), headSeq: source.head.seq };
    return encodeReportAnswer({ ...answer, figures: source.figures() });
  }

  /** Of the datacenter that asks, and its newest. Throws RpcRefusal. */
  #sessionOf(from: RpcCaller, number: number): FeedSession {
    const follower = this.#followers.get(from.datacenter);
    const { session } = follower ?? {};
    if (session === undefined || session.session !== number || session.isOver) {
      const says = `session ${number} of ${from.datacenter} is over`;
      throw new RpcRefusal(FEED_REFUSAL.over, says);
    }
    follower?.heard(this.#options.clock.monotonicMs());
    return session;
  }

  #requireOther({ datacenter, name }: RpcCaller): void {
    if (datacenter !== this.#options.datacenter) return;
    const says = `${name} is of ${datacenter} itself: the feed is for other datacenters`;
    throw new RpcRefusal(FEED_REFUSAL.stranger, says);
  }

  /** What its servers cannot read would end them, one after the other. */
  #requireLevel({ level }: FeedHello, { datacenter }: RpcCaller, uses: number): void {
    this.#behind.delete(datacenter);
    if (level >= uses) return;
    const says =
      `the servers of ${datacenter} read the log up to feature level ${level}, and the primary uses ` +
      `${uses}: upgrade all servers of ${datacenter}, and replace those that are gone for good`;
    if (this.#behind.size < this.#limits.followersMax) {
      this.#behind.set(datacenter, { says, atMs: this.#options.clock.wallMs() });
    }
    throw new RpcRefusal(FEED_REFUSAL.tooOld, says);
  }

  /** Who is of no federation yet has objects of its own. */
  #noteAhead({ datacenter }: RpcCaller, hello: FeedHello, epoch: number): void {
    const { cursor, federationId, term } = hello;
    this.#ahead.begin(epoch);
    this.#ahead.note(datacenter, term, federationId === '' ? undefined : cursor);
  }

  #yieldTo(epoch: number, { datacenter }: RpcCaller): HelloAnswer {
    this.#options.logger.warn(
      { datacenter, epoch, ownEpoch: this.#epoch },
      'another datacenter knows of a later reign',
    );
    this.#options.onNewerEpoch(epoch);
    return { kind: 'fenced', epoch };
  }

  /** Throws RpcRefusal. */
  #admit({ datacenter }: RpcCaller, { clusterId, term }: FeedHello): Follower {
    const { followersMax } = this.#limits;
    const known = this.#followers.get(datacenter);
    if (known === undefined) {
      if (this.#followers.size >= followersMax) {
        throw new RpcRefusal(FEED_REFUSAL.busy, `${followersMax} datacenters follow already`);
      }
      const follower = new Follower(datacenter, clusterId);
      this.#followers.set(datacenter, follower);
      return follower;
    }
    if (known.clusterId !== clusterId) {
      const says = otherClusterText({ datacenter, clusterId, known: known.clusterId });
      throw new RpcRefusal(FEED_REFUSAL.stranger, says);
    }
    if (this.#ahead.hasLaterLeader(known, term)) {
      const says = `${datacenter} has a later leader, of term ${known.term}`;
      throw new RpcRefusal(FEED_REFUSAL.superseded, says);
    }
    return known;
  }

  #news(epoch: number): FeedNews {
    const { clock, source } = this.#options;
    const { seq } = source.head;
    return {
      epoch,
      headSeq: seq,
      headAtMs: source.writtenAtMs(seq) ?? 0,
      nowMs: Math.floor(clock.wallMs()),
      majoritySeq: this.acknowledgedSeq('majority'),
    };
  }

  #onMoved(): void {
    if (this.#epoch === undefined) return;
    this.#changed();
    for (const { session } of this.#followers.values()) session?.onMoved();
  }

  /** Something has changed of what it is counted of: whoever asks next gets a new count, and whoever waits does now. */
  #changed(): void {
    this.#isCounted = false;
    this.#waiters.onAcknowledged();
  }

  /** What is known of the other datacenters grows, and never shrinks within a reign. */
  #counted(): Readonly<Record<AckLevel, number>> {
    if (this.#isCounted || this.#epoch === undefined) return this.#reached;
    const standing = this.#options.standing();
    if (standing.kind !== 'primary' || standing.epoch !== this.#epoch) return this.#reached;
    const { datacenter, source } = this.#options;
    const { head, restoredSeq } = source;
    const acknowledged = {
      ...standing,
      ...{ datacenter, headSeq: head.seq, restoredSeq },
      ackedSeqOf: (each: string) => this.#followers.get(each)?.acked?.seq,
    };
    this.#reached = {
      majority: Math.max(this.#reached.majority, majoritySeqOf(acknowledged)),
      all: Math.max(this.#reached.all, allSeqOf(acknowledged)),
    };
    this.#isCounted = true;
    return this.#reached;
  }

  #endReign(epoch: number | undefined): void {
    const says = 'the primary has changed, or who leads it';
    for (const { session } of this.#followers.values()) session?.end(says);
    this.#followers.clear();
    this.#behind.clear();
    this.#packer.clear();
    this.#epoch = epoch;
    this.#reached = NOTHING_REACHED;
    this.#isCounted = false;
    this.#waiters.onReignOver();
  }
}

const NOTHING = new Uint8Array(0);
const NOTHING_REACHED: Readonly<Record<AckLevel, number>> = { majority: 0, all: 0 };
/** Whoever is refused asks again every few seconds. */
const REFUSED_SHOWN_MS = 60_000;
