// A primary and its secondaries on simulated time and a scripted network: transports, feed servers and
// subscribers are those of production, the states behind them are models.

import type { FeedLimits, SubscriberLimits } from '../../../cluster/federation/feed/feed-limits.ts';
import type { GlobalBatch } from '../../../cluster/federation/feed/feed-reader.ts';
import { FeedServer, type FeedStanding } from '../../../cluster/federation/feed/feed-server.ts';
import { Subscriber } from '../../../cluster/federation/feed/subscriber.ts';
import type { GlobalCursor } from '../../../cluster/federation/global-log.ts';
import { SnapshotLender } from '../../../cluster/federation/snapshot/snapshot-lender.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import type { Random } from '../../../cluster/platform/random.ts';
import { RpcRefusal } from '../../../cluster/transport/calls/rpc-error.ts';
import { openTransport } from '../../../cluster/transport/open-transport.ts';
import type { RpcCall, RpcServer, Transport } from '../../../cluster/transport/transport.ts';
import { ComingEntries } from '../../../src/node/federation/ports/coming-entries.ts';
import { FakeNet } from '../../support/fake-net.ts';
import { uuidNumbered } from '../../support/fake-random.ts';
import { settled, streamOf, World } from '../../support/simulated/simulated-world.ts';
import { digestOf, MemoryLog } from './memory-log.ts';
import { SecondaryState } from './secondary-state.ts';

export const FEDERATION = 'fedfedfe-2222-4333-8444-000000000001';
const KEY = new Uint8Array(32).fill(9);
const WALL_MS = 1_767_225_600_000;

export class FeedWorld {
  readonly time = new World();
  readonly draw: () => number;
  readonly clock: Clock;
  readonly net: FakeNet;
  readonly log: string[] = [];
  #nodeCount = 0;

  constructor(seed = 1) {
    this.draw = streamOf(seed);
    this.clock = {
      monotonicMs: () => this.time.nowMs,
      wallMs: () => WALL_MS + this.time.nowMs,
      after: (delayMs, action) => {
        let isCancelled = false;
        // A timer never fires in the turn that sets it.
        this.time.after(Math.max(delayMs, 0.01), () => {
          if (!isCancelled) action();
        });
        return {
          cancel: () => {
            isCancelled = true;
          },
        };
      },
    };
    this.net = new FakeNet(this.clock);
  }

  get random(): Random {
    return {
      uuid: () => uuidNumbered(Math.floor(this.draw() * 2 ** 40)),
      bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(this.draw() * 256)),
      fraction: () => this.draw(),
    };
  }

  logger(name: string): Logger {
    const line =
      (level: string) =>
      (fields: object, text: string): void => {
        this.log.push(
          `${this.time.nowMs.toFixed(0)} ${name} ${level} ${text} ${JSON.stringify(fields)}`,
        );
      };
    return { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
  }

  takeNumber(): number {
    this.#nodeCount += 1;
    return this.#nodeCount;
  }

  async run(forMs: number): Promise<void> {
    await this.time.run(forMs);
  }

  /** Throws when it does not come to it. */
  async until(what: string, condition: () => boolean, withinMs = 60_000): Promise<void> {
    const untilMs = this.time.nowMs + withinMs;
    while (!condition()) {
      if (this.time.nowMs >= untilMs) throw new Error(`not within ${withinMs} ms: ${what}`);
      await this.time.run(1);
    }
  }

  /** What a promise comes to, with as much time as it takes. */
  async result<T>(promise: Promise<T>): Promise<T> {
    let isDone = false;
    const done = (): void => {
      isDone = true;
    };
    promise.then(done, done);
    await settled();
    await this.until('a promise settles', () => isDone);
    return promise;
  }
}

/** A node of some datacenter, with its transport. */
export class WorldNode {
  readonly world: FeedWorld;
  readonly name: string;
  readonly datacenter: string;
  transport!: Transport;
  handlers: Readonly<Record<string, RpcServer>> = {};

  constructor(world: FeedWorld, datacenter: string, name: string) {
    this.world = world;
    this.datacenter = datacenter;
    this.name = name;
  }

  get address(): NetAddress {
    return this.transport.address;
  }

  async open(federationId: () => string | undefined): Promise<void> {
    const { world, name, datacenter } = this;
    const node = world.takeNumber();
    this.transport = await openTransport({
      net: world.net.host(name),
      clock: world.clock,
      random: world.random,
      logger: world.logger(name),
      self: { node, id: uuidNumbered(node), name, datacenter, version: '1', reads: 1 },
      uses: () => 1,
      clusterId: () => `cluster of ${datacenter}`,
      federationId,
      clusterKey: KEY,
      listen: { host: name, port: 0 },
      onMessage: () => undefined,
      onLinkClosed: () => undefined,
      serve: (request) => {
        const handler = this.handlers[request.method];
        if (handler === undefined) throw new RpcRefusal('unknown-method', request.method);
        return handler(request);
      },
    });
  }
}

/** A node of the primary. */
export class PrimaryNode extends WorldNode {
  readonly source: MemoryLog;
  standing: FeedStanding;
  readonly newerEpochs: number[] = [];
  feed!: FeedServer;
  lender!: SnapshotLender;
  chunkBytes = 64;
  /** That cannot be read. */
  brokenChunk = Number.NaN;
  /** Of what is lent. */
  openSnapshots = 0;
  /** What opening one waits for. */
  opening: Promise<void> = Promise.resolve();

  constructor(world: FeedWorld, name: string, source: MemoryLog) {
    super(world, 'dc1', name);
    this.source = source;
    this.standing = primaryStanding();
  }

  async start(limits: Partial<FeedLimits> = {}): Promise<this> {
    await this.open(() => FEDERATION);
    this.serve(limits);
    return this;
  }

  /** A new life of its process: what the one before knew is gone. */
  serve(limits: Partial<FeedLimits> = {}): void {
    const { clock, random } = this.world;
    const parts = { clock, random, logger: this.world.logger(this.name) };
    const standing = (): FeedStanding => this.standing;
    this.feed = new FeedServer({
      ...parts,
      datacenter: this.datacenter,
      source: this.source,
      standing,
      onNewerEpoch: (epoch) => this.newerEpochs.push(epoch),
      limits,
    });
    const open = async () => {
      await this.opening;
      return this.#snapshot();
    };
    const onAsked = (each: string): void => this.feed.heard(each);
    this.lender = new SnapshotLender({ ...parts, standing, open, onAsked });
    this.handlers = { ...this.feed.handlers, ...this.lender.handlers };
  }

  become(standing: FeedStanding): void {
    this.standing = standing;
    this.feed.standingChanged();
    void this.lender.standingChanged();
  }

  #snapshot() {
    const { brokenChunk, chunkBytes, source } = this;
    const cursor = source.head;
    const texts = source.entries.map(({ bytes }) => Buffer.from(bytes).toString());
    const all = Buffer.from(texts.join('\n'));
    this.openSnapshots += 1;
    return {
      cursor,
      chunks: async function* (): AsyncGenerator<Uint8Array> {
        for (let at = 0; at < all.length; at += chunkBytes) {
          if (at === brokenChunk * chunkBytes) throw new Error('the disk does not give it');
          yield all.subarray(at, at + chunkBytes);
        }
      },
      close: async () => {
        this.openSnapshots -= 1;
      },
    };
  }
}

export function primaryStanding(
  given: Partial<Extract<FeedStanding, { readonly kind: 'primary' }>> = {},
): FeedStanding {
  return {
    kind: 'primary',
    federationId: FEDERATION,
    epoch: 1,
    epochStartSeq: 1,
    level: 1,
    voters: ['dc1', 'dc2', 'dc3'],
    witnesses: [],
    joining: [],
    removed: [],
    ...given,
  };
}

/** A node of a secondary that may lead it. */
export class SecondaryNode extends WorldNode {
  readonly state: SecondaryState;
  subscriber!: Subscriber;
  addresses: readonly NetAddress[] = [];
  maxEpoch = 0;
  /** That its datacenter uses. */
  level = 1;
  /** How long the own group takes for a command. */
  applyMs: () => number = () => 2;
  /** What the own group does with a command besides; the default: nothing. */
  onApply: () => 'done' | 'unknown' = () => 'done';
  /** What its objects are, at that place. */
  digest: (cursor: GlobalCursor) => Uint8Array = digestOf;
  beforeApply: (batch: GlobalBatch) => void = () => undefined;
  /** In place of applying. */
  answersApply: (() => 'snapshot-needed') | undefined;
  /** What has come over the feed of this node and is not applied. */
  onHeld: (bytes: number) => void = () => undefined;
  #heldBytes = 0;
  /** When the last command of the own group is done: each is done after those before it. */
  #doneMs = 0;
  #coming = new ComingEntries();

  constructor(world: FeedWorld, datacenter: string, name: string, state: SecondaryState) {
    super(world, datacenter, name);
    this.state = state;
  }

  async start(limits: Partial<SubscriberLimits> = {}): Promise<this> {
    await this.open(() => (this.state.federationId === '' ? undefined : this.state.federationId));
    this.subscribe(limits);
    return this;
  }

  subscribe(limits: Partial<SubscriberLimits> = {}): void {
    const { clock, random } = this.world;
    const { state } = this;
    this.#doneMs = 0;
    this.#coming = new ComingEntries();
    this.subscriber = new Subscriber({
      clock,
      random,
      logger: this.world.logger(this.name),
      call: (to, request) => this.#call(to, request),
      addresses: () => this.addresses,
      toldEpoch: () => 0,
      clusterId: () => `cluster of ${this.datacenter}`,
      federationId: () => state.federationId,
      adopt: (federationId) => this.#through(() => state.adopt(federationId)),
      cursor: () => state.cursor,
      place: () => state.cursor && { cursor: state.cursor, digest: this.digest(state.cursor) },
      maxEpoch: () => Math.max(this.maxEpoch, state.cursor?.epoch ?? 0),
      level: () => this.level,
      isWitness: () => false,
      apply: (batch) =>
        this.#coming.until(batch.to, () =>
          this.#through(() => {
            this.beforeApply(batch);
            for (const { bytes } of batch.entries) this.#heldBytes -= bytes.length;
            return this.answersApply?.() ?? state.apply(batch);
          }),
        ),
      settled: () => this.#coming.over(),
      sink: {
        staged: () =>
          state.staged === undefined
            ? undefined
            : {
                snapshotId: state.staged.offer.snapshotId,
                nextNumber: state.staged.pieces.length,
              },
        begin: (offer) => this.#through(() => state.stage(offer)),
        add: ({ snapshotId, number, bytes }) =>
          this.#through(() => state.add(snapshotId, number, Buffer.from(bytes))),
        commit: ({ snapshotId, pieceCount }) =>
          this.#through(() => state.commit(snapshotId, pieceCount)),
      },
      limits,
    });
  }

  async #call(to: NetAddress, request: RpcCall): Promise<Uint8Array> {
    if (request.method === 'feed.hello') this.#heldBytes = 0;
    const answer = await this.transport.call(to, request);
    if (request.method === 'feed.pull') this.#heldBytes += answer.length;
    this.onHeld(this.#heldBytes);
    return answer;
  }

  /** A command through the own group's log. */
  #through<T>(effect: () => T): Promise<T> {
    const { nowMs } = this.world.time;
    this.#doneMs = Math.max(this.#doneMs + 0.01, nowMs + this.applyMs());
    return new Promise((resolve, reject) => {
      this.world.clock.after(this.#doneMs - nowMs, () => {
        try {
          const result = effect();
          if (this.onApply() === 'done') resolve(result);
          else reject(new Error('the outcome is not known'));
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      });
    });
  }
}

/** One primary node, one secondary node of each name, which know each other. */
export async function twoDatacenters(seed = 1): Promise<{
  readonly world: FeedWorld;
  readonly log: MemoryLog;
  readonly primary: PrimaryNode;
  readonly secondary: SecondaryNode;
}> {
  const world = new FeedWorld(seed);
  const log = new MemoryLog(() => world.clock.wallMs());
  const primary = await new PrimaryNode(world, 'p1', log).start();
  const secondary = await aSecondary(world, 'dc2', 's1', [primary]);
  return { world, log, primary, secondary };
}

export async function aSecondary(
  world: FeedWorld,
  datacenter: string,
  name: string,
  primaries: readonly PrimaryNode[],
  limits: Partial<SubscriberLimits> = {},
): Promise<SecondaryNode> {
  const node = await new SecondaryNode(world, datacenter, name, new SecondaryState()).start(limits);
  node.addresses = primaries.map(({ address }) => address);
  return node;
}

/** What the secondary has is a prefix of the primary's chain, each entry once (G2, G3). */
export function chainViolations(log: MemoryLog, state: SecondaryState): readonly string[] {
  const found = [...state.violations];
  const { cursor, entries } = state;
  if (cursor === undefined) return found;
  const due = cursor.seq <= log.entries.length ? log.at(cursor.seq) : undefined;
  if (due === undefined || Buffer.compare(due.hash, cursor.hash) !== 0) {
    found.push(`G2: ${cursor.seq} is not on the primary's chain`);
  }
  if (entries.length !== cursor.seq) found.push(`G3: ${entries.length} effects at ${cursor.seq}`);
  const place = entries.findIndex(
    (text, at) => text !== Buffer.from(log.entries[at]?.bytes ?? []).toString(),
  );
  if (place >= 0) found.push(`G3: another effect at ${place + 1}`);
  return found;
}
