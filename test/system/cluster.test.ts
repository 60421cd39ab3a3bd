// Three servers as their operators start them, each a process of its own: a leader that is killed while
// clients are at work, a signal that ends one in good order, settings that cannot be used together, and
// the command line at each of them.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';
import { type Answer, type Asked, ask, MANAGEMENT } from '../hard/asking.ts';
import { startRefused, startServer, temporaryFolder } from '../hard/server-process.ts';
import { freePorts } from '../support/running/free-ports.ts';
import { GROUP_KEY, until } from '../support/running/running-group.ts';
import { leaderOf, type Running, ready, start, startThree } from './three-servers.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.js');

async function digestOf({ process }: Running): Promise<string> {
  const { text } = await ask(process.port, { path: '/v1/agent/self' });
  const self = JSON.parse(text) as { Stats?: { state: { digest_all: string } } };
  return self.Stats?.state.digest_all ?? '';
}

/** What clients of two servers see without a pause. */
class Clients {
  readonly failedReads: string[] = [];
  readonly failedWrites: string[] = [];
  readonly written: string[] = [];
  readonly secrets: string[] = [];
  reads = 0;
  longestWriteMs = 0;
  #isOn = true;
  readonly #loops: readonly Promise<void>[];

  constructor(ports: readonly number[]) {
    this.#loops = ports.flatMap((port) => [this.#write(port), this.#read(port)]);
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    await Promise.all(this.#loops);
  }

  async #write(port: number): Promise<void> {
    while (this.#isOn) {
      const { status, text, tookMs } = await timed(port, {
        method: 'PUT',
        path: '/v1/acl/token',
        body: {},
      });
      if (status === 200) {
        const made = JSON.parse(text) as { AccessorID: string; SecretID: string };
        this.written.push(made.AccessorID);
        this.secrets.push(made.SecretID);
      } else if (isFault(status, tookMs)) this.failedWrites.push(`${status} ${text}`);
      this.longestWriteMs = Math.max(this.longestWriteMs, tookMs);
    }
  }

  async #read(port: number): Promise<void> {
    while (this.#isOn) {
      const accessor = this.written.at(-1) ?? 'self';
      const { status, text, tookMs } = await timed(port, { path: `/v1/acl/token/${accessor}` });
      if (status === 200) this.reads += 1;
      else if (isFault(status, tookMs)) this.failedReads.push(`${status} ${text}`);
    }
  }
}

async function timed(port: number, asked: Asked): Promise<Answer & { readonly tookMs: number }> {
  const startedMs = performance.now();
  const answer = await ask(port, asked);
  return { ...answer, tookMs: performance.now() - startedMs };
}

/** A server that found no leader for five seconds may refuse; whose machine is that slow is not judged. */
function isFault(status: number, tookMs: number): boolean {
  return status !== 503 || tookMs < 4_900;
}

t.test('servers: the leader is killed, and no client of the others sees a failure', async (t) => {
  const servers = await startThree(t);
  const leader = await leaderOf(servers);
  const rest = servers.filter((server) => server !== leader);
  const clients = new Clients(rest.map(({ process }) => process.port));
  await until('clients are at work', () => clients.written.length > 20 && clients.reads > 20);
  await leader.process.end('SIGKILL');
  const before = clients.written.length;
  await until('writes go on', () => clients.written.length > before + 20);
  await clients.stop();
  t.same(clients.failedReads, [], 'no read failed');
  t.same(clients.failedWrites, [], 'no write failed');
  t.comment(`the longest write took ${Math.round(clients.longestWriteMs)} ms`);

  const back = { plan: leader.plan, process: await start(t, leader.plan) };
  await ready(back.process);
  const all = [...rest, back];
  for (const accessor of [clients.written[0], clients.written.at(-1)]) {
    for (const { process } of all) {
      const { status } = await ask(process.port, { path: `/v1/acl/token/${accessor}` });
      t.equal(status, 200, 'what was answered is there');
    }
  }
  await until('all hold the same', async () => {
    const digests = await Promise.all(all.map(digestOf));
    return digests[0] !== '' && new Set(digests).size === 1;
  });
  const tokens = await ask(back.process.port, { path: '/v1/acl/tokens' });
  const accessors = (JSON.parse(tokens.text) as { AccessorID: string }[]).map(
    (token) => token.AccessorID,
  );
  t.same(
    clients.written.filter((accessor) => !accessors.includes(accessor)),
    [],
    'nothing is lost',
  );
  t.equal(accessors.length, clients.written.length + 2, 'and nothing was written twice');

  for (const { process } of all) {
    const env = {
      CONCLAVE_HTTP_ADDR: `http://127.0.0.1:${process.port}`,
      CONCLAVE_TOKEN: MANAGEMENT,
    };
    const members = await command(['members'], env);
    t.equal(members.status, 0);
    t.equal([...members.out.matchAll(/server-\d/g)].length, 3, members.out);
    const policy = ['acl', 'policy', 'create', '--name', `at-${process.port}`];
    t.equal((await command(policy, env)).status, 0, 'the command line writes at any server');
  }

  for (const { process } of all) {
    const output = process.output();
    for (const secret of [MANAGEMENT, GROUP_KEY, ...clients.secrets]) {
      if (output.includes(secret)) t.fail(`a secret is in the log: ${secret}`);
    }
  }

  const next = await leaderOf(all);
  const ended = await next.process.end('SIGTERM');
  t.same(ended, { code: 0, signal: null }, 'a leader leaves in good order');
  const made = await ask((all.find((server) => server !== next) as Running).process.port, {
    method: 'PUT',
    path: '/v1/acl/token',
    body: {},
  });
  t.equal(made.status, 200, 'and the others go on at once');
});

t.test('servers: what cannot work is refused at the start, with what to do', async (t) => {
  const folder = temporaryFolder(t);
  const refused = async (flags: Readonly<Record<string, string>>): Promise<string> => {
    const { ending, output } = await startRefused(t, { dataFolder: join(folder, 'data'), flags });
    return `${ending.code} ${output}`;
  };
  const open = await refused({
    'bind-addr': '0.0.0.0',
    'advertise-addr': '127.0.0.1',
    'ports-cluster': '0',
  });
  t.match(open, /^2 /);
  t.match(open, 'advertise_addr needs a port of its own');
  t.match(await refused({ 'bind-addr': '10.1.2.3', 'ports-cluster': '8300' }), 'conclave keygen');
  const running = await startServer(t, {
    dataFolder: join(folder, 'first'),
    flags: { 'ports-cluster': '0' },
  });
  const [, port = ''] = /cluster +127\.0\.0\.1:(\d+)/.exec(running.output()) ?? [];
  t.match(port, /^\d+$/, 'it says where the others reach it');
  const taken = await refused({ 'ports-cluster': port });
  t.match(taken, `127.0.0.1:${port}`);
  t.match(taken, 'Next: another server uses ports.cluster');
  t.match(await refused({ 'client-addr': 'none.invalid' }), 'Next: bind_addr and client_addr must');
  await running.end('SIGTERM');
});

t.test(
  'servers: one that waits for others listens, says so, and leaves when told to',
  async (t) => {
    const [own = 0, other = 0] = await freePorts(2);
    const plan = {
      name: 'early',
      folder: join(temporaryFolder(t), 'early'),
      clusterPort: own,
      join: [other],
    };
    const early = await start(t, plan);
    t.match(early.output(), /node early of datacenter dc1 is not ready yet: /);
    for (const path of ['/readyz', '/v1/acl/tokens', '/v1/acl/tokens?stale']) {
      let refused = await ask(early.port, { path });
      await until('it says for whom it waits', async () => {
        refused = await ask(early.port, { path });
        return /waiting for 2 more of 3 servers/.test(refused.text);
      });
      t.equal(refused.status, 503, path);
      t.ok(path === '/readyz' || refused.headers['retry-after']);
    }
    t.equal((await ask(early.port, { path: '/livez' })).status, 200);
    t.same(await early.end('SIGTERM'), { code: 0, signal: null });
  },
);

function command(
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<{ readonly status: number | null; readonly out: string }> {
  const child = spawn(process.execPath, [MAIN, ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH, ...environment },
  });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    out += piece;
  });
  return new Promise((resolve) => child.once('close', (status) => resolve({ status, out })));
}
