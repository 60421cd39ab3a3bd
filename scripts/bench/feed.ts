// `npm run bench -- --feed`: the feed of the global log between two datacenters over loopback: how fast a
// follower catches up, how fast a snapshot crosses, how long an entry takes at a steady rate, and how long
// a hand-over takes. The logs are in memory and applying costs nothing: what is measured is the feed. Both
// sides are this one process.

import { Gossip } from '../../cluster/federation/directory/gossip.ts';
import { FeedServer, type FeedStanding } from '../../cluster/federation/feed/feed-server.ts';
import { Subscriber } from '../../cluster/federation/feed/subscriber.ts';
import type { GlobalEntry } from '../../cluster/federation/global-log.ts';
import { Slots } from '../../cluster/federation/slots/slots.ts';
import { SnapshotLender } from '../../cluster/federation/snapshot/snapshot-lender.ts';
import type { NetAddress } from '../../cluster/platform/net.ts';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import { RpcRefusal } from '../../cluster/transport/calls/rpc-error.ts';
import { openTransport } from '../../cluster/transport/open-transport.ts';
import type { RpcServer, Transport } from '../../cluster/transport/transport.ts';
import { systemSha256 } from '../../src/platform-node/hashes/system-sha256.ts';
import { openWsNet } from '../../src/platform-node/net/ws-net.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { systemRandom } from '../../src/platform-node/system-random.ts';
import { MemoryLog } from '../../test/cluster/federation/memory-log.ts';
import { SecondaryState } from '../../test/cluster/federation/secondary-state.ts';
import { median, shown, table } from './figures.ts';
import { handOverMs } from './hand-over.ts';

export interface FeedOptions {
  readonly secondsEach: number;
  readonly rounds: number;
}

const CATCH_UP_ENTRIES = 100_000;
const ENTRY_BYTES = 300;
const SNAPSHOT_BYTES = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const RATE_PER_SECOND = 1_000;
/** As the node looks what may be trimmed. */
const REVIEW_MS = 1_000;
const FEDERATION = 'bench';
const silent = (): void => undefined;
const logger = { debug: silent, info: silent, warn: silent, error: silent };

interface Round {
  readonly entriesPerSecond: number;
  readonly snapshotMibPerSecond: number;
  readonly lagsMs: readonly number[];
}

export async function benchFeed({ secondsEach, rounds }: FeedOptions): Promise<void> {
  adoptSha256(systemSha256);
  const all: Round[] = [];
  for (let round = 0; round < rounds; round += 1) all.push(await oneRound(secondsEach));
  const lagsMs = all.flatMap((round) => round.lagsMs).sort((left, right) => left - right);
  const lagAt = (part: number): number => lagsMs[Math.floor(lagsMs.length * part)] ?? Number.NaN;
  const middle = (of: (round: Round) => number): number => median(all.map(of));
  const figures = {
    catchUpEntriesPerSecond: middle((round) => round.entriesPerSecond),
    snapshotMibPerSecond: middle((round) => round.snapshotMibPerSecond),
    lagP50Ms: lagAt(0.5),
    lagP99Ms: lagAt(0.99),
    handOverMs: await handOverMs(open),
  };
  const rows = Object.entries(figures).map(([name, value]) => [name, shown(value)]);
  process.stdout.write(`${table(['feed over loopback', 'figure'], rows)}\n`);
  process.stdout.write(`${JSON.stringify(figures)}\n`);
}

async function oneRound(secondsEach: number): Promise<Round> {
  const log = new MemoryLog(() => systemClock.wallMs());
  const standing: FeedStanding = {
    kind: 'primary',
    federationId: FEDERATION,
    epoch: 1,
    epochStartSeq: 1,
    level: 1,
    voters: ['dc1', 'dc2'],
    witnesses: [],
    joining: [],
    removed: [],
  };
  const parts = { clock: systemClock, random: systemRandom, logger, standing: () => standing };
  const feed = new FeedServer({ ...parts, datacenter: 'dc1', source: log, onNewerEpoch: silent });
  const lender = new SnapshotLender({
    ...parts,
    open: async () => ({ cursor: log.head, chunks: manyChunks, close: async () => undefined }),
    onAsked: (datacenter) => feed.heard(datacenter),
  });
  const gossip = newGossip('dc1', () => primary);
  const handlers = { ...feed.handlers, ...lender.handlers, ...gossip.handlers };
  const primary: Transport = await open('dc1', handlers);
  const secondary = await open('dc2', {});
  const slots = new Slots({
    clock: systemClock,
    logger,
    datacenter: 'dc1',
    source: log,
    datacenters: () => ['dc1', 'dc2'],
    followers: () => feed.followers(),
    pinnedSeq: () => lender.pinnedSeq,
    majoritySeq: () => feed.acknowledgedSeq('majority'),
    unusedTimeMs: () => undefined,
    reviewMs: REVIEW_MS,
    trim: async (upToSeq) => {
      log.trimmedSeq = upToSeq;
    },
  });
  slots.start();
  try {
    return await measure(log, primary, secondary, secondsEach);
  } finally {
    slots.stop();
    feed.close();
    await lender.close();
    await Promise.all([primary.close(), secondary.close()]);
  }
}

async function measure(
  log: MemoryLog,
  primary: Transport,
  secondary: Transport,
  secondsEach: number,
): Promise<Round> {
  const finding = newGossip('dc2', () => secondary, [primary.address]);
  const follower = new Follower();
  const subscriber = subscriberOf(follower, { secondary, finding });
  finding.start();
  await until(() => finding.directory.primary() !== undefined);
  const beganAtMs = systemClock.monotonicMs();
  subscriber.start(1);
  try {
    await until(() => !follower.wantsSnapshot);
    const snapshotMs = systemClock.monotonicMs() - beganAtMs;
    const entriesPerSecond = await catchUp(log, follower.state);
    const lagsMs = await steady(log, secondsEach, follower);
    const snapshotMibPerSecond = follower.snapshotBytes / 1024 / 1024 / (snapshotMs / 1000);
    return { entriesPerSecond, snapshotMibPerSecond, lagsMs };
  } finally {
    subscriber.stop();
    finding.close();
  }
}

/** What a secondary has taken in. */
class Follower {
  readonly state = new SecondaryState();
  wantsSnapshot = true;
  snapshotBytes = 0;
  onEntries: (entries: readonly GlobalEntry[]) => void = silent;
}

function subscriberOf(
  follower: Follower,
  { secondary, finding }: { readonly secondary: Transport; readonly finding: Gossip },
): Subscriber {
  const { state } = follower;
  return new Subscriber({
    clock: systemClock,
    random: systemRandom,
    logger,
    call: (to, request) => secondary.call(to, request),
    addresses: () => finding.directory.primary()?.addresses ?? [],
    toldEpoch: () => finding.directory.primary()?.epoch ?? 0,
    clusterId: () => 'cluster of dc2',
    federationId: () => '',
    adopt: async () => undefined,
    cursor: () => (follower.wantsSnapshot ? undefined : state.cursor),
    place: () => undefined,
    level: () => 1,
    maxEpoch: () => 0,
    isWitness: () => false,
    apply: async (batch) => {
      state.cursor = batch.to;
      follower.onEntries(batch.entries);
      return batch.to;
    },
    settled: () => Promise.resolve(),
    sink: {
      staged: () => undefined,
      begin: async (offer) => {
        state.cursor = offer.cursor;
      },
      add: async ({ bytes }) => {
        follower.snapshotBytes += bytes.length;
      },
      commit: async () => {
        follower.wantsSnapshot = false;
      },
    },
  });
}

/** A follower finds the primary as it does in production. */
function newGossip(
  datacenter: string,
  transport: () => Transport,
  seeds: readonly NetAddress[] = [],
): Gossip {
  return new Gossip({
    clock: systemClock,
    random: systemRandom,
    logger,
    datacenter,
    clusterId: () => `cluster of ${datacenter}`,
    federationId: () => '',
    isRemoved: () => false,
    knowsRemoved: () => false,
    clusterIdOf: () => undefined,
    isFollowed: () => false,
    own: () => ({
      clusterId: `cluster of ${datacenter}`,
      federationId: '',
      addresses: [transport().address],
      primary: 'dc1',
      epoch: 1,
      term: 1,
      level: 1,
    }),
    seeds,
    neighbours: () => [],
    call: (to, request) => transport().call(to, request),
    onChanged: silent,
  });
}

async function catchUp(log: MemoryLog, state: SecondaryState): Promise<number> {
  const goal = log.head.seq + CATCH_UP_ENTRIES;
  // They are written in one turn: the follower sees all of them as the past.
  while (log.head.seq < goal) log.write(Buffer.alloc(ENTRY_BYTES, log.head.seq));
  const beganAtMs = systemClock.monotonicMs();
  await until(() => state.cursor?.seq === goal);
  return CATCH_UP_ENTRIES / ((systemClock.monotonicMs() - beganAtMs) / 1000);
}

/** From the write at the primary to the moment in which the secondary has it applied. */
async function steady(
  log: MemoryLog,
  seconds: number,
  follower: Follower,
): Promise<readonly number[]> {
  const lagsMs: number[] = [];
  const writtenAtMs = new Map<number, number>();
  follower.onEntries = (entries) => {
    for (const { seq } of entries) {
      const atMs = writtenAtMs.get(seq);
      if (atMs !== undefined) lagsMs.push(systemClock.monotonicMs() - atMs);
    }
  };
  const goal = seconds * RATE_PER_SECOND;
  const beganAtMs = systemClock.monotonicMs();
  for (let count = 0; count < goal; count += 1) {
    await until(() => systemClock.monotonicMs() >= beganAtMs + (count * 1000) / RATE_PER_SECOND);
    const { seq } = log.write(Buffer.alloc(ENTRY_BYTES, count));
    writtenAtMs.set(seq, systemClock.monotonicMs());
  }
  await until(() => lagsMs.length === goal);
  return lagsMs;
}

function open(
  datacenter: string,
  handlers: Readonly<Record<string, RpcServer>>,
): Promise<Transport> {
  return openTransport({
    net: openWsNet({ tls: undefined, clock: systemClock, logger }),
    clock: systemClock,
    random: systemRandom,
    logger,
    self: {
      node: datacenter === 'dc1' ? 1 : 2,
      id: systemRandom.uuid(),
      name: datacenter,
      datacenter,
      version: '0',
      reads: 1,
    },
    uses: () => 1,
    clusterId: () => `cluster of ${datacenter}`,
    clusterKey: undefined,
    listen: { host: '127.0.0.1', port: 0 },
    onMessage: silent,
    onLinkClosed: silent,
    serve: (request) => {
      const handler = handlers[request.method];
      if (handler === undefined) throw new RpcRefusal('unknown-method', request.method);
      return handler(request);
    },
  });
}

async function* manyChunks(): AsyncGenerator<Uint8Array> {
  const chunk = new Uint8Array(CHUNK_BYTES);
  for (let sent = 0; sent < SNAPSHOT_BYTES; sent += CHUNK_BYTES) yield chunk;
}

/** Lets everything else have its turn between two looks. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
