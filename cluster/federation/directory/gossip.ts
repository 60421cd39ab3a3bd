// Spreads what is known of the datacenters: every server exchanges it with one other at a time, drawn from
// the own datacenter, from those that it knows of, and from the addresses that it was told at the start. Who
// hears news passes it on to a few others soon: so it is nearly everywhere after a few short steps, and not after
// a few beats, which reach whoever is left out.

import { messageOf } from '../../base/message-of.ts';
import type { Timer } from '../../platform/clock.ts';
import { addressText, type NetAddress } from '../../platform/net.ts';
import type { Random } from '../../platform/random.ts';
import type { RpcCall, RpcRequest, RpcServer } from '../../transport/transport.ts';
import { Directory, type DirectoryOptions, type OwnRecord } from './directory.ts';
import {
  DIRECTORY_METHOD,
  type DirectoryRecord,
  decodeRecords,
  encodeRecords,
} from './directory-frames.ts';

export interface GossipTiming {
  /** Between two exchanges, with as much again at random. */
  readonly everyMs: number;
  /** The same, while there is news to pass on. */
  readonly newsMs: number;
  readonly callMs: number;
  /** A datacenter of which nothing new is heard for so long is forgotten. */
  readonly forgetAfterMs: number;
}

const DEFAULT_GOSSIP_TIMING: GossipTiming = {
  everyMs: 1_000,
  newsMs: 100,
  callMs: 3_000,
  forgetAfterMs: 24 * 3_600_000,
};

/** To so many others, drawn one by one, news is passed on at once: with fewer it often ends before all have it. */
const HURRIED_COUNT = 3;

/** Besides what the directory needs. */
export interface GossipOptions extends Omit<DirectoryOptions, 'forgetAfterMs'> {
  /** That one has in its log who was removed: it is told what they say, and nobody else is. */
  readonly knowsRemoved: (datacenter: string) => boolean;
  readonly random: Random;
  /** What the own datacenter is; undefined on every server but its leader. */
  readonly own: () => OwnRecord | undefined;
  /** `retry_join_wan`: where to ask while nothing is known, and now and then after that. */
  readonly seeds: readonly NetAddress[];
  /** The other servers of the own datacenter. */
  readonly neighbours: () => readonly NetAddress[];
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, request: RpcCall) => Promise<Uint8Array>;
  /** A datacenter is new, or says something else than before. */
  readonly onChanged: () => void;
  readonly timing?: Partial<GossipTiming>;
}

interface Address {
  readonly at: NetAddress;
  /** Undefined where it is one of the settings. */
  readonly datacenter?: string;
}

export class Gossip {
  readonly directory: Directory;
  /** To be served for all datacenters, by its method. */
  readonly handlers: Readonly<Record<string, RpcServer>> = {
    [DIRECTORY_METHOD]: async (request) => this.#onExchange(request),
  };
  readonly #options: GossipOptions;
  readonly #timing: GossipTiming;
  #timer: Timer | undefined;
  #isUnderWay = false;
  /** Exchanges that are still to come soon. */
  #hurriedLeft = 0;
  #isClosed = false;
  #lastFailure: string | undefined;

  constructor(options: GossipOptions) {
    this.#options = options;
    this.#timing = { ...DEFAULT_GOSSIP_TIMING, ...options.timing };
    this.directory = new Directory({ ...options, forgetAfterMs: this.#timing.forgetAfterMs });
  }

  /** Whom the last exchange did not reach and why, for people; undefined when it did. */
  get lastFailure(): string | undefined {
    return this.#lastFailure;
  }

  /** The first exchange comes at once. */
  start(): void {
    this.#await(0);
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
  }

  /** The next exchanges come soon: there is something that others do not know. */
  hurry(): void {
    const isHurrying = this.#hurriedLeft > 0;
    this.#hurriedLeft = HURRIED_COUNT;
    if (!isHurrying && !this.#isUnderWay && this.#timer !== undefined) this.#awaitNext();
  }

  /** Remembers what a datacenter that is refused says of itself, and of nobody else. Throws WireDamage. */
  overhear({ from, method, payload }: RpcRequest): void {
    if (method !== DIRECTORY_METHOD) return;
    const records = decodeRecords(payload);
    this.directory.learn(records.filter(({ datacenter }) => datacenter === from.datacenter));
  }

  /**
   * Asks every server of every datacenter, so that the leaders, who know it best, are among them; and all others that
   * are known: behind a start nobody may be known but these. Never rejects.
   */
  async hearAll(): Promise<void> {
    const all = [...this.#told(), ...this.#near(), ...this.#far()];
    const byAddress = new Map(all.map((each) => [addressText(each.at), each]));
    await Promise.all([...byAddress.values()].map((to) => this.#exchange(to)));
  }

  /** Asks those that it was told at the start who there is. Undefined where there are none. Never rejects. */
  hearSeeds(): Promise<void> | undefined {
    const seeds = this.#told();
    if (seeds.length === 0) return undefined;
    return Promise.all(seeds.map((each) => this.#exchange(each))).then(() => undefined);
  }

  #onExchange({ from, payload }: RpcRequest): Uint8Array {
    this.#learn(payload);
    return this.#words(this.#removedFor(from.datacenter));
  }

  #await(delayMs: number): void {
    if (this.#isClosed) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(delayMs, () => void this.#beat());
  }

  #awaitNext(): void {
    const { everyMs, newsMs } = this.#timing;
    const leastMs = this.#hurriedLeft > 0 ? newsMs : everyMs;
    this.#await(leastMs * (1 + this.#options.random.fraction()));
  }

  async #beat(): Promise<void> {
    this.#hurriedLeft = Math.max(0, this.#hurriedLeft - 1);
    this.#isUnderWay = true;
    const to = this.#draw();
    if (to !== undefined) await this.#exchange(to);
    this.#isUnderWay = false;
    this.#awaitNext();
  }

  async #exchange({ at: to, datacenter }: Address): Promise<void> {
    const { call, logger } = this.#options;
    const { callMs } = this.#timing;
    const removed = this.#removedFor(datacenter);
    const request = {
      method: DIRECTORY_METHOD,
      payload: this.#words(removed),
      deadlineMs: callMs,
      hops: 0,
      // Another one may be at that address by now: it is not told.
      ...(removed.length > 0 && datacenter !== undefined && { datacenter }),
    };
    try {
      this.#learn(await call(to, request));
      this.#lastFailure = undefined;
    } catch (error) {
      const why = messageOf(error);
      this.#lastFailure = `${addressText(to)}: ${why}`;
      logger.debug({ to: addressText(to), why }, 'an exchange of datacenters failed');
    }
  }

  /** What is told of those that were removed: only to who knows that. */
  #removedFor(to: string | undefined): readonly DirectoryRecord[] {
    const isInformed = to !== undefined && this.#options.knowsRemoved(to);
    return isInformed ? this.directory.recordsOfRemoved() : [];
  }

  #words(removed: readonly DirectoryRecord[]): Uint8Array {
    const own = this.#options.own();
    if (own !== undefined) this.directory.write(own);
    return encodeRecords([...this.directory.records(), ...removed]);
  }

  #learn(bytes: Uint8Array): void {
    if (!this.directory.learn(decodeRecords(bytes)) || this.#isClosed) return;
    this.hurry();
    this.#options.onChanged();
  }

  /** Near, far and told each get their turn, as far as there are any. */
  #draw(): Address | undefined {
    const { random } = this.#options;
    const kinds = [this.#near(), this.#far(), this.#told()].filter((kind) => kind.length > 0);
    const kind = kinds[Math.floor(random.fraction() * kinds.length)] ?? [];
    return kind[Math.floor(random.fraction() * kind.length)];
  }

  #near(): readonly Address[] {
    const { datacenter, neighbours } = this.#options;
    return neighbours().map((at) => ({ at, datacenter }));
  }

  #told(): readonly Address[] {
    return this.#options.seeds.map((at) => ({ at }));
  }

  #far(): readonly Address[] {
    return this.directory
      .records()
      .filter((record) => record.datacenter !== this.#options.datacenter)
      .flatMap(({ addresses, datacenter }) => addresses.map((at) => ({ at, datacenter })));
  }
}
