// What the primary knows of one datacenter that follows it, in this reign.

import type { EntrySource } from '../entry-source.ts';
import type { GlobalCursor } from '../global-log.ts';
import { TAIL_ENTRIES_MAX } from './feed-limits.ts';
import { FEED_REFUSAL, type FeedSession } from './feed-session.ts';

/** How a follower was answered last. */
type Answered = 'following' | 'snapshot' | 'diverged';

export type FollowerState =
  /** It has everything, or nearly: what is missing is on its way. */
  | 'tail'
  | 'catching-up'
  | 'snapshot'
  | 'diverged'
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
  /** The age of the oldest entry that it has not; 0 when it has all. */
  readonly lagMs: number;
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
  #answered: Answered = 'snapshot';
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

  acknowledge(cursor: GlobalCursor): void {
    if (this.#acked === undefined || cursor.seq > this.#acked.seq) this.#acked = cursor;
  }

  view({ now, source, silentMs }: FollowerLook): FollowerView {
    const lastHeardMs = now.monotonicMs - this.#heardAtMs;
    const nextSeq = (this.#acked?.seq ?? 0) + 1;
    const lagEntries = source.head.seq + 1 - nextSeq;
    const oldestSeq = Math.max(nextSeq, source.kept.afterSeq + 1);
    const oldestAtMs = source.writtenAtMs(oldestSeq) ?? now.wallMs;
    return {
      datacenter: this.datacenter,
      clusterId: this.clusterId,
      node: this.#node,
      remote: this.#remote,
      state: this.#stateOf(lastHeardMs > silentMs, lagEntries),
      acked: this.#acked,
      lastHeardMs,
      lagEntries,
      lagMs: lagEntries === 0 ? 0 : Math.max(0, now.wallMs - oldestAtMs),
    };
  }

  #stateOf(isSilent: boolean, lagEntries: number): FollowerState {
    if (isSilent) return 'silent';
    if (this.#answered !== 'following') return this.#answered;
    return lagEntries > TAIL_ENTRIES_MAX ? 'catching-up' : 'tail';
  }
}
