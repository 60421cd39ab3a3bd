// What the primary knows of one datacenter that follows it, in this reign.

import type { EntrySource } from '../entry-source.ts';
import type { GlobalCursor } from '../global-log.ts';
import { TAIL_ENTRIES_MAX } from './feed-limits.ts';
import { FEED_REFUSAL, type FeedSession } from './feed-session.ts';

/** What is on its way takes no longer, but on the longest lines. */
const FAR_BEHIND_MS = 5_000;

/** How a follower was answered last. */
type Answered = 'following' | 'snapshot' | 'diverged';

export type FollowerState =
  /** It has everything, or nearly: what is missing is on its way. */
  | 'tail'
  | 'catching-up'
  | 'snapshot'
  | 'diverged'
  /** What it has is not what the primary has at the same place. */
  | 'differs'
  /** It was not heard for some time. */
  | 'silent';

export interface FollowerView {
  readonly datacenter: string;
  readonly clusterId: string;
  /** The server that asks for it. */
  readonly node: string;
  readonly remote: string;
  readonly state: FollowerState;
  /** Undefined while it has acknowledged nothing that is on this chain. */
  readonly acked: GlobalCursor | undefined;
  readonly lastHeardMs: number;
  readonly lagEntries: number;
  /** Undefined while it has acknowledged nothing that is on this chain. */
  readonly lagBytes: number | undefined;
  /** The age of the oldest entry that it has not, as far as it is known; 0 when it has all. */
  readonly lagMs: number;
  /** What went wrong there last, by the own wall clock; undefined: nothing that it told of. */
  readonly lastError: { readonly text: string; readonly atMs: number } | undefined;
  /** How often what it has was not what the primary has at the same place. */
  readonly differenceCount: number;
}

export interface FollowerLook {
  readonly now: { readonly monotonicMs: number; readonly wallMs: number };
  readonly source: EntrySource;
  readonly silentMs: number;
}

export class Follower {
  readonly datacenter: string;
  readonly clusterId: string;
  #session: FeedSession | undefined;
  #acked: GlobalCursor | undefined;
  /**
   * When the first entry was written that it has not, by the own wall clock, as a look has found it: the entry
   * may be trimmed since. Undefined: nobody has looked since it took something.
   */
  #lacksSinceMs: number | undefined;
  #answered: Answered = 'snapshot';
  #lastError: FollowerView['lastError'];
  #differenceCount = 0;
  #differs = false;
  #heardAtMs = 0;
  #term = 0;
  #node = '';
  #remote = '';

  constructor(datacenter: string, clusterId: string) {
    this.datacenter = datacenter;
    this.clusterId = clusterId;
  }

  get session(): FeedSession | undefined {
    return this.#session;
  }

  get acked(): GlobalCursor | undefined {
    return this.#acked;
  }

  /** Of the leader that asked last. */
  get term(): number {
    return this.#term;
  }

  /** A new leader, or the same one again: what was before is over. */
  begin(asking: {
    readonly term: number;
    readonly name: string;
    readonly remote: string;
    readonly atMs: number;
  }): void {
    this.#session?.end('a newer session of the same datacenter has begun', FEED_REFUSAL.superseded);
    this.#session = undefined;
    this.#acked = undefined;
    this.#term = asking.term;
    this.#node = asking.name;
    this.#remote = asking.remote;
    this.heard(asking.atMs);
  }

  /** It has everything up to `cursor`, on this chain. */
  follow(session: FeedSession, cursor: GlobalCursor): void {
    this.#session = session;
    this.#acked = cursor;
    this.#lacksSinceMs = undefined;
    this.#answered = 'following';
  }

  stands(answered: Exclude<Answered, 'following'>): void {
    this.#answered = answered;
  }

  /** By the own monotonic clock. */
  get heardAtMs(): number {
    return this.#heardAtMs;
  }

  heard(atMs: number): void {
    this.#heardAtMs = atMs;
  }

  /** What its leader says went wrong; whatever it says now, it said last. */
  failed(lastError: FollowerView['lastError']): void {
    this.#lastError = lastError;
  }

  /** Its digest was compared with the primary's, at one place. Whether it has begun to differ. */
  compared(isSame: boolean): boolean {
    const hasBegun = !isSame && !this.#differs;
    this.#differs = !isSame;
    if (hasBegun) this.#differenceCount += 1;
    return hasBegun;
  }

  acknowledge(cursor: GlobalCursor): void {
    if (this.#acked !== undefined && cursor.seq <= this.#acked.seq) return;
    this.#acked = cursor;
    this.#lacksSinceMs = undefined;
  }

  view({ now, source, silentMs }: FollowerLook): FollowerView {
    const lastHeardMs = now.monotonicMs - this.#heardAtMs;
    const nextSeq = (this.#acked?.seq ?? 0) + 1;
    const lagEntries = source.head.seq + 1 - nextSeq;
    const lagMs = lagEntries === 0 ? 0 : this.#lagMs(nextSeq, { now, source });
    return {
      datacenter: this.datacenter,
      clusterId: this.clusterId,
      node: this.#node,
      remote: this.#remote,
      state: lastHeardMs > silentMs ? 'silent' : this.#stateOf(lagEntries, lagMs),
      acked: this.#acked,
      lastHeardMs,
      lagEntries,
      lagBytes: this.#acked && source.sizeAfter(this.#acked.seq),
      lagMs,
      lastError: this.#lastError,
      differenceCount: this.#differenceCount,
    };
  }

  #lagMs(nextSeq: number, { now, source }: Pick<FollowerLook, 'now' | 'source'>): number {
    const oldestSeq = Math.max(nextSeq, source.kept.afterSeq + 1);
    const writtenAtMs = source.writtenAtMs(oldestSeq) ?? now.wallMs;
    this.#lacksSinceMs = Math.min(this.#lacksSinceMs ?? writtenAtMs, writtenAtMs);
    return Math.max(0, now.wallMs - this.#lacksSinceMs);
  }

  #stateOf(lagEntries: number, lagMs: number): FollowerState {
    if (this.#answered === 'diverged') return this.#answered;
    if (this.#differs) return 'differs';
    if (this.#answered !== 'following') return this.#answered;
    const isFar = lagEntries > TAIL_ENTRIES_MAX || lagMs > FAR_BEHIND_MS;
    return isFar ? 'catching-up' : 'tail';
  }
}
