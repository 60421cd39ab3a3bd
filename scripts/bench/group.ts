// `npm run bench -- --servers N`: what a datacenter of several servers does under load, beside three
// bare processes that replicate bytes and nothing else; and what its clients see when the leader is
// killed, leaves or freezes, and while a new server is sent a snapshot.

import { cpus } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { Child } from './child.ts';
import { median, shown, table } from './figures.ts';
import {
  answering,
  freePort,
  type GroupPlan,
  leaderOf,
  portsOf,
  type Server,
  startChain,
  startServer,
  startServers,
  stopAll,
} from './group-processes.ts';
import type { Rounds } from './in-turn.ts';
import { asExpected, runLoad } from './load.ts';
import { type PulseFigures, startPulse } from './pulse.ts';
import { MANAGEMENT_SECRET } from './seed.ts';

export interface GroupBenchOptions extends GroupPlan, Rounds {}

const CLIENT_COUNTS = [1, 16, 64, 256];
const TOKEN_HEADER = `X-Service-Token: ${MANAGEMENT_SECRET}\r\n`;
const PULSE_CLIENTS = 8;
/** Before and after the event, so that its gap stands between quiet stretches. */
const PULSE_MARGIN_MS = 2_000;
const SNAPSHOT_TOKENS = 50_000;

interface Figures {
  readonly what: string;
  readonly clients: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly ratio?: number;
}

/** Prints tables and one JSON line. */
export async function benchGroup(options: GroupBenchOptions): Promise<void> {
  const load = await measureLoad(options);
  const stops = await measureStops(options);
  const joins = await measureJoins(options);
  process.stdout.write(
    table(
      ['', 'clients', 'per s', 'p50 ms', 'p99 ms', 'of the chain'],
      load.map((row) => [
        row.what,
        String(row.clients),
        shown(row.perSecond),
        shown(row.p50Ms),
        shown(row.p99Ms),
        row.ratio === undefined ? '-' : row.ratio.toFixed(2),
      ]),
    ),
  );
  process.stdout.write(
    `\n${table(
      ['the leader', 'no write for ms', 'no read for ms', 'reads', 'failed reads'],
      stops.map(({ what, writes, reads }) => [
        what,
        shown(writes.longestGapMs),
        shown(reads.longestGapMs),
        String(reads.goodCount),
        String(reads.failedCount),
      ]),
    )}`,
  );
  const left = leftBy(joins);
  process.stdout.write(
    `\na server joins by a snapshot of ${SNAPSHOT_TOKENS} tokens and more in ${shown(median(joins.joinedInMs))} ms; ` +
      `writes/s ${shown(median(joins.alone))} without, ${shown(median(joins.during))} meanwhile ` +
      `(${median(left).toFixed(2)} of those before and behind; each: ${left.map((each) => each.toFixed(2)).join(', ')})\n`,
  );
  const machine = { node: process.version, cores: cpus().length, ...options };
  process.stdout.write(`\n${JSON.stringify({ machine, load, stops, joins })}\n`);
}

// Load

async function measureLoad(options: GroupBenchOptions): Promise<readonly Figures[]> {
  const servers = await startServers(options, 'load');
  const chain = await startChain(options.workFolder);
  const all: Figures[] = [];
  try {
    const leader = await leaderOf(servers);
    const others = servers.filter((server) => server !== leader);
    const everywhere = portsOf(servers);
    for (const clients of CLIENT_COUNTS) {
      const [bare, ours] = await paired(options, [
        { ports: [chain.port], request: createRequest, clients },
        { ports: [leader.child.port], request: createRequest, clients },
      ]);
      all.push({ what: 'write, bare chain', clients, ...bare! });
      const ratio = ours!.perSecond / bare!.perSecond;
      all.push({ what: 'write at the leader', clients, ...ours!, ratio });
      const [spread] = await paired(options, [
        { ports: everywhere, request: createRequest, clients },
      ]);
      all.push({ what: 'write at any server', clients, ...spread! });
    }
    for (const [what, ports] of [
      ['linearizable read at the leader', [leader.child.port]],
      ['linearizable read at a follower', portsOf(others.slice(0, 1))],
      ['linearizable read at any server', everywhere],
    ] as const) {
      const [read] = await paired(options, [{ ports, request: readRequest, clients: 64 }]);
      all.push({ what, clients: 64, ...read! });
    }
  } finally {
    await chain.stop();
    await stopAll(servers);
  }
  return all;
}

const createBody = JSON.stringify({ Description: 'made by the benchmark'.padEnd(260, '.') });
const createRequest = (): string =>
  `PUT /v1/acl/token HTTP/1.1\r\nHost: bench\r\n${TOKEN_HEADER}` +
  `Content-Length: ${createBody.length}\r\n\r\n${createBody}`;
const readRequest = (): string =>
  `GET /v1/acl/token/self?consistent HTTP/1.1\r\nHost: bench\r\n${TOKEN_HEADER}\r\n`;

interface Load {
  readonly ports: readonly number[];
  readonly request: () => string;
  readonly clients: number;
}

type Measured = Pick<Figures, 'perSecond' | 'p50Ms' | 'p99Ms'>;

/** Each load in turn, round by round, so that all see the same noise; medians. */
async function paired(
  { rounds, secondsEach }: GroupBenchOptions,
  loads: readonly Load[],
): Promise<readonly Measured[]> {
  const results = loads.map((): Measured[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [place, { ports, request, clients }] of loads.entries()) {
      const result = asExpected(
        await runLoad({
          host: '127.0.0.1',
          ports,
          connections: clients,
          warmUpMs: 500,
          durationMs: secondsEach * 1_000,
          expectedStatus: 200,
          request,
        }),
      );
      results[place]?.push({
        perSecond: result.requestsPerSecond,
        p50Ms: result.p50Ms,
        p99Ms: result.p99Ms,
      });
    }
  }
  return results.map((each) => ({
    perSecond: median(each.map(({ perSecond }) => perSecond)),
    p50Ms: median(each.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(each.map(({ p99Ms }) => p99Ms)),
  }));
}

// Stops

interface Stop {
  readonly what: string;
  readonly writes: PulseFigures;
  readonly reads: PulseFigures;
}

/** Each with a group of its own; the figures are those of the run with the middle write gap. */
async function measureStops(options: GroupBenchOptions): Promise<readonly Stop[]> {
  const kinds = [
    ['is killed (-9)', (leader: Child) => leader.signal('SIGKILL')],
    ['leaves (SIGTERM)', (leader: Child) => leader.signal('SIGTERM')],
    ['is cut off (SIGSTOP)', (leader: Child) => leader.signal('SIGSTOP')],
  ] as const;
  const stops: Stop[] = [];
  for (const [what, stop] of kinds) {
    const runs: Stop[] = [];
    for (let round = 0; round < options.rounds; round += 1) {
      runs.push({ what, ...(await stopLeader(options, `${what[3]}-${round}`, stop)) });
    }
    runs.sort((a, b) => a.writes.longestGapMs - b.writes.longestGapMs);
    stops.push(runs[runs.length >> 1]!);
    process.stderr.write(`bench: the leader ${what}: ${gapsOf(runs)} ms without a write\n`);
  }
  return stops;
}

function gapsOf(runs: readonly Stop[]): string {
  return runs.map(({ writes }) => shown(writes.longestGapMs)).join(', ');
}

async function stopLeader(
  options: GroupBenchOptions,
  name: string,
  stop: (leader: Child) => void,
): Promise<Pick<Stop, 'writes' | 'reads'>> {
  const servers = await startServers(options, `stop-${name}`);
  try {
    const leader = await leaderOf(servers);
    const others = portsOf(servers.filter((server) => server !== leader));
    const headers = { 'X-Service-Token': MANAGEMENT_SECRET };
    const writes = startPulse({
      ports: others,
      clients: PULSE_CLIENTS,
      method: 'PUT',
      path: '/v1/acl/token',
      headers,
      body: createBody,
    });
    const reads = startPulse({
      ports: others,
      clients: PULSE_CLIENTS,
      method: 'GET',
      path: '/v1/acl/token/self?consistent',
      headers,
    });
    await pause(PULSE_MARGIN_MS);
    stop(leader.child);
    await pause(2 * PULSE_MARGIN_MS);
    return { writes: await writes.end(), reads: await reads.end() };
  } finally {
    await stopAll(servers);
  }
}

// Snapshot

interface Joins {
  /** Writes a second before each server joins, and behind the last one. */
  readonly alone: readonly number[];
  /** While each of them is sent its snapshot. */
  readonly during: readonly number[];
  readonly joinedInMs: readonly number[];
}

/** One server after the other joins, and is removed again. */
async function measureJoins(options: GroupBenchOptions): Promise<Joins> {
  const servers = await startServers(options, 'snapshot');
  try {
    const leader = await leaderOf(servers);
    const { port } = leader.child;
    const writes = (durationMs: number, clients: number): Promise<number> =>
      runLoad({
        host: '127.0.0.1',
        ports: [port],
        connections: clients,
        warmUpMs: 0,
        durationMs,
        expectedStatus: 200,
        request: createRequest,
      }).then((result) => asExpected(result).requestsPerSecond);
    const measured = (): Promise<number> => writes(options.secondsEach * 1_000, 16);
    for (let made = 0; made < SNAPSHOT_TOKENS; ) made += 2 * (await writes(2_000, 64));
    const alone = [await measured()];
    const during: number[] = [];
    const joinedInMs: number[] = [];
    for (let round = 0; round < options.rounds; round += 1) {
      const startedAt = performance.now();
      // Starting a process takes its share of the machine, and is no sending of a snapshot.
      const joiner = await startServer(options, 'snapshot', {
        name: `joiner-${round + 1}`,
        clusterPort: await freePort(),
        join: servers.map(({ clusterPort }) => clusterPort),
        expect: 1,
      });
      servers.push(joiner);
      const joined = answering(joiner.child.port, '/readyz').then(
        () => performance.now() - startedAt,
      );
      during.push(await measured());
      joinedInMs.push(await joined);
      await removeServer(port, joiner);
      servers.pop();
      alone.push(await measured());
    }
    return { alone, during, joinedInMs };
  } finally {
    await stopAll(servers);
  }
}

/** Of the writes before and behind each join: how many were left meanwhile. */
function leftBy({ alone, during }: Joins): readonly number[] {
  return during.map((writes, round) => (2 * writes) / (alone[round]! + alone[round + 1]!));
}

async function removeServer(leaderPort: number, server: Server): Promise<void> {
  await stopAll([server]);
  const at = `http://127.0.0.1:${leaderPort}/v1/operator/raft/peer`;
  const answer = await fetch(`${at}?address=127.0.0.1:${server.clusterPort}`, {
    method: 'DELETE',
    headers: { 'X-Service-Token': MANAGEMENT_SECRET },
  });
  if (answer.status !== 200) {
    throw new Error(`${server.name} is not removed: ${answer.status} ${await answer.text()}`);
  }
}
