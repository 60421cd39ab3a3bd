// Three nodes with real sockets and disks are one datacenter: any of them takes writes and reads, what
// was answered is there for all, and it goes on while one of them is away.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { DurableLog } from '../../../cluster/log/durable-log.ts';
import { type LogEntry, nextEntry } from '../../../cluster/log/log-entry.ts';
import { openLevelKv } from '../../../src/platform-node/disk/level-kv.ts';
import { systemClock } from '../../../src/platform-node/system-clock.ts';
import { encodeCommand } from '../../../src/state/commands/command-codec.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { StateMachine } from '../../../src/state/machine.ts';
import { selfSigned } from '../../support/certificates.ts';
import { uuidNumbered } from '../../support/fake-random.ts';
import { freePorts } from '../../support/running/free-ports.ts';
import {
  allReady,
  joiningServer,
  leaderOf,
  runServers,
  ServerUnderTest,
  until,
} from '../../support/running/running-group.ts';
import { type Reply, send } from '../../support/running/running-node.ts';
import { aCommand, aToken } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS } from '../../support/state-and-service/machine-harness.ts';

/** A server that found no leader for so long may refuse; whose machine was that slow is not judged. */
const PATIENCE_MS = 4_900;

/** Writes and reads at these servers without a pause, until it is told to stop. */
class Traffic {
  readonly failures: string[] = [];
  readonly accessors: string[] = [];
  readCount = 0;
  #isOn = true;
  readonly #loops: Promise<void>[];

  constructor(servers: readonly ServerUnderTest[]) {
    this.#loops = servers.flatMap((server) => [this.#write(server), this.#read(server)]);
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
  }

  async #write(server: ServerUnderTest): Promise<void> {
    while (this.#isOn) {
      const startedMs = performance.now();
      const made = await server.client.put('/acl/token', { Description: 'traffic' });
      if (made.status !== 200) this.#failed('write', made, startedMs);
      else this.accessors.push(String(made.json.AccessorID));
    }
  }

  async #read(server: ServerUnderTest): Promise<void> {
    while (this.#isOn) {
      const accessor = this.accessors.at(-1);
      const path = accessor === undefined ? 'self' : accessor;
      const startedMs = performance.now();
      const read = await server.client.get(`/acl/token/${path}`);
      if (read.status !== 200) this.#failed('read', read, startedMs);
      else this.readCount += 1;
    }
  }

  #failed(what: string, { status, text }: Reply, startedMs: number): void {
    const tookMs = performance.now() - startedMs;
    if (status === 503 && tookMs > PATIENCE_MS) return;
    this.failures.push(`${what} after ${Math.round(tookMs)} ms: ${status} ${text}`);
  }
}

function others(
  servers: readonly ServerUnderTest[],
  server: ServerUnderTest,
): readonly ServerUnderTest[] {
  return servers.filter((each) => each !== server);
}

async function digestOf(server: ServerUnderTest): Promise<string> {
  const { Stats } = (await server.client.get('/agent/self')).json as {
    Stats: { state: { digest_all: string } };
  };
  return Stats.state.digest_all;
}

async function digestsMeet(servers: readonly ServerUnderTest[]): Promise<void> {
  await until('all servers hold the same', async () => {
    const digests = await Promise.all(servers.map(digestOf));
    return new Set(digests).size === 1;
  });
}

/** The same three for the tests below, one after the other. */
const servers = await runServers(t, 3);

t.test('group: any server takes writes, and every server has them at once', async (t) => {
  const leader = await leaderOf(servers);
  for (const server of servers) {
    const made = await server.client.put('/acl/token', { Description: server.name });
    t.equal(made.status, 200, `${server.name} ${made.text}`);
    const path = `/acl/token/${String(made.json.AccessorID)}`;
    for (const reader of servers) {
      const read = await reader.client.get(path);
      t.same([read.status, read.text], [200, made.text], `${server.name} -> ${reader.name}`);
      t.equal(read.headers['x-consul-knownleader'], 'true');
    }
    const stale = await server.client.get(`${path}?stale`);
    t.equal(stale.status, 200, 'a stale read where it was written finds it too');
    t.ok(Number(stale.headers['x-service-lastcontact']) < 60_000);
  }
  const found = await Promise.all(servers.map((server) => server.client.get('/status/leader')));
  t.same(new Set(found.map(({ text }) => text)), new Set([JSON.stringify(leader.clusterAddress)]));
  const peers = await leader.client.get('/status/peers');
  t.same([...peers.list].sort(), servers.map(({ clusterAddress }) => clusterAddress).sort());
  const members = (await leader.client.get('/agent/members')).list;
  t.same(members.map(({ Name }) => Name).sort(), ['node-1', 'node-2', 'node-3']);

  const [follower] = others(servers, leader);
  const request = { headers: { 'X-Service-Request-Id': 'once' } };
  const body = { Name: 'once', Rules: '' };
  const first = await follower!.client.put('/acl/policy', body, request);
  const again = await leader.client.put('/acl/policy', body, request);
  t.same([again.status, again.text], [200, first.text], 'one request id, whichever server');
  const refused = await follower!.client.put('/acl/policy', body);
  t.equal(refused.status, 409, refused.text);

  const waiting = follower!.client.get(`/acl/policies?index=${first.headers['x-service-index']}`);
  await leader.client.put('/acl/policy', { Name: 'news', Rules: '' });
  t.match((await waiting).text, /"news"/, 'a blocking query at a follower wakes');
  await digestsMeet(servers);
});

t.test('group: a leader that leaves is hardly missed, and comes back', async (t) => {
  for (let round = 0; round < 2; round += 1) {
    const leader = await leaderOf(servers);
    const rest = others(servers, leader);
    const traffic = new Traffic(rest);
    await until('there is traffic', () => traffic.accessors.length > 10);
    await leader.close();
    const writes = traffic.accessors.length;
    await until('writes go on', () => traffic.accessors.length > writes + 10);
    await traffic.stop();
    t.same(traffic.failures, [], 'nobody noticed');
    t.ok(traffic.readCount > 0);
    await leader.open();
    await allReady(servers);
    const newest = traffic.accessors.at(-1) ?? '';
    t.equal((await leader.client.get(`/acl/token/${newest}`)).status, 200, 'it has caught up');
  }
  await digestsMeet(servers);
});

t.test('group: without a quorum stale reads go on, and the rest is refused in time', async (t) => {
  const leader = await leaderOf(servers);
  const [first, second] = others(servers, leader);
  const made = await leader.client.put('/acl/token', { Description: 'kept' });
  const path = `/acl/token/${String(made.json.AccessorID)}`;
  await first!.close();
  await second!.close();
  await until('the last one knows', () => leader.node.info.leader() === undefined);
  const [read, write, stale, ready] = await Promise.all([
    leader.client.get(path),
    leader.client.put('/acl/token', { Description: 'lost' }),
    leader.client.get(`${path}?stale`),
    send(leader, { method: 'GET', path: '/readyz' }),
  ]);
  for (const refused of [read, write]) {
    t.same([refused.status, refused.text], [503, 'No cluster leader']);
    t.match(refused.headers['retry-after'], /^\d+$/);
  }
  t.same([stale.status, stale.text], [200, made.text]);
  t.equal(stale.headers['x-service-knownleader'], 'false');
  t.ok(Number(stale.headers['x-service-lastcontact']) >= 0);
  t.same([ready.status, ready.text], [503, 'no leader is known\n']);
  for (const told of ['/agent/self', '/agent/members', '/agent/metrics?format=prometheus']) {
    t.equal((await leader.client.get(told)).status, 200, `${told}: it tells of itself`);
  }
  await first!.open();
  await second!.open();
  await until('writes go through again', async () => {
    const again = await leader.client.put('/acl/token', { Description: 'again' });
    return again.status === 200;
  });
  await allReady(servers);
});

t.test('group: a fourth server joins while the others serve', async (t) => {
  const traffic = new Traffic(servers);
  await until('there is traffic', () => traffic.accessors.length > 10);
  const fourth = await joiningServer(t, 'node-4', servers);
  await fourth.open();
  await allReady([fourth]);
  await traffic.stop();
  t.same(traffic.failures, []);
  const all = [...servers, fourth];
  const newest = traffic.accessors.at(-1) ?? '';
  t.equal((await fourth.client.get(`/acl/token/${newest}`)).status, 200);
  const made = await fourth.client.put('/acl/token', { Description: 'from the fourth' });
  t.equal(made.status, 200);
  for (const server of all) {
    const read = await server.client.get(`/acl/token/${String(made.json.AccessorID)}`);
    t.equal(read.status, 200, server.name);
  }
  const members = (await servers[0]!.client.get('/agent/members')).list;
  t.equal(members.length, 4);
  await digestsMeet(all);
});

/** As the release before several servers left it: a log without members, a state a little behind it. */
async function writeEarlierFolder(dataFolder: string): Promise<void> {
  writeFileSync(join(dataFolder, 'node-id'), `${uuidNumbered(1)}\n`);
  const failed = (cause: Error): void => {
    t.fail('a store failed', { cause });
  };
  const open = (name: 'log' | 'state') =>
    openLevelKv({ folder: join(dataFolder, name), name, onFatal: failed });
  const entries: LogEntry[] = [];
  for (const change of [BUILTINS, { type: 'token.set', presence: 'create', token: aToken(7) }]) {
    const payload = encodeCommand(aCommand(change as Change));
    entries.push(nextEntry(entries.at(-1) ?? { index: 0, hash: new Uint8Array(32) }, 3, payload));
  }
  const logKv = await open('log');
  const log = await DurableLog.open(logKv, undefined);
  await log.write({ entries, hardState: { term: 3, vote: 1, commit: 2 } });
  await logKv.close();
  const machine = StateMachine.open(await open('state'), { clock: systemClock });
  await machine.apply(entries.slice(0, 1));
  await machine.close();
}

t.test(
  'group: a folder of a release without groups opens alone, and others can join',
  async (t) => {
    const [clusterPort = 0] = await freePorts(1);
    const plan = { name: 'earlier', clusterPort, join: [], expect: 1 };
    const earlier = new ServerUnderTest(t, plan);
    await writeEarlierFolder(earlier.dataFolder);
    await earlier.open();
    const path = `/acl/token/${aToken(7).accessorId}`;
    const read = await earlier.client.get(path);
    t.equal(read.status, 200, read.text);
    t.equal(earlier.node.info.leader(), earlier.clusterAddress);
    const joined = await joiningServer(t, 'joined', [earlier]);
    await joined.open();
    await allReady([joined]);
    t.equal((await joined.client.get(path)).text, read.text);
    t.equal((await joined.client.put('/acl/token', {})).status, 200);
    await digestsMeet([earlier, joined]);
  },
);

t.test('group: with certificates in place of a key, and a link that nobody can read', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'group-tls-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const { key, cert } = selfSigned();
  const files = { key: join(folder, 'key.pem'), cert: join(folder, 'cert.pem') };
  writeFileSync(files.key, key);
  writeFileSync(files.cert, cert);
  const ports = await freePorts(2);
  const servers = ports.map((clusterPort, place) => {
    const other = ports[1 - place] ?? 0;
    const flags = {
      'cluster-key': '',
      'bind-addr': 'localhost',
      'retry-join': `localhost:${other}`,
      'tls-cluster-cert-file': files.cert,
      'tls-cluster-key-file': files.key,
      'tls-cluster-ca-file': files.cert,
    };
    const name = `tls-${place}`;
    return new ServerUnderTest(t, { name, clusterPort, join: [other], expect: 2, flags });
  });
  await Promise.all(servers.map((server) => server.open()));
  await allReady(servers);
  for (const server of servers) {
    t.equal((await server.client.put('/acl/token', {})).status, 200, server.name);
  }
  await digestsMeet(servers);
});
