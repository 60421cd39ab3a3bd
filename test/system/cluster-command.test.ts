// `npm run cluster` as a person uses it: commands of their own, a supervisor in the background, and nothing
// left behind, whoever was killed.

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { askNode } from '../../scripts/cluster/ask-node.ts';
import type { ClusterDescription } from '../../scripts/cluster/cluster-files.ts';
import { temporaryFolder } from '../hard/server-process.ts';
import { until } from '../support/running/running-group.ts';
import { endClusterWithProcess } from './cluster-folder.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'scripts', 'cluster', 'main.js');

t.setTimeout(120_000);

type Owner = Pick<typeof t, 'teardown'>;

interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

/** Commands on one folder. */
class Commands {
  readonly folder: string;

  constructor(owner: Owner) {
    this.folder = join(temporaryFolder(owner), 'cluster');
    endClusterWithProcess(this.folder);
    owner.teardown(async () => {
      if (existsSync(join(this.folder, 'plan.json'))) await this.run('down');
    });
  }

  start(...given: readonly string[]): {
    readonly child: ChildProcess;
    readonly ended: Promise<Ended>;
  } {
    const child = spawn(process.execPath, [MAIN, '--dir', this.folder, ...given], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // Where nobody looks, but colours are wished for by whoever shows logs: a pipe gets none.
      env: { ...process.env, CI: 'true' },
    });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      out += piece;
    });
    child.stderr.setEncoding('utf8').on('data', (piece: string) => {
      err += piece;
    });
    const ended = new Promise<Ended>((resolve) => {
      child.once('close', (status) => resolve({ status, out, err }));
    });
    return { child, ended };
  }

  run(...given: readonly string[]): Promise<Ended> {
    return this.start(...given).ended;
  }

  json<Content>(name: string): Content {
    return JSON.parse(readFileSync(join(this.folder, name), 'utf8')) as Content;
  }

  describe(): ClusterDescription {
    return this.json('cluster.json');
  }

  /** Of the servers and of the supervisor. */
  pids(): readonly number[] {
    const servers = this.describe().nodes.flatMap(({ pid }) => pid ?? []);
    return [...servers, this.json<{ readonly pid: number }>('supervisor.json').pid];
  }
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

t.test('cluster: from up to down, as a person goes through it', async (t) => {
  const commands = new Commands(t);
  const nothing = await commands.run('status');
  t.equal(nothing.status, 1);
  t.match(nothing.err, 'no cluster runs here\nNext: `npm run cluster -- up`');
  const up = await commands.run('up', '--datacenters', '1', '--servers', '1');
  t.equal(up.status, 0, up.err);
  t.match(up.out, /dc1-1 is ready \(1 of 1\)\n[\s\S]*\nNode +Datacenter +HTTP/);
  t.match(up.out, /\nNext:\n.*export CONCLAVE_HTTP_ADDR=/);

  const { management_token: secret, primary_datacenter, nodes } = commands.describe();
  t.equal(primary_datacenter, 'dc1');
  const [node] = nodes;
  t.strictSame(Object.keys(node!), [
    ...['name', 'datacenter', 'http', 'cluster', 'pid', 'data_dir', 'log'],
  ]);
  for (const name of ['cluster.json', 'plan.json', 'supervisor.json'])
    t.equal(
      statSync(join(commands.folder, name)).mode & 0o077,
      0,
      `${name} is for its owner alone`,
    );
  const { http } = node!;
  const own = await askNode({ http, path: '/v1/acl/token/self', secret, timeoutMs: 60_000 });
  t.equal(own.status, 200, 'the management token is good');
  t.notOk(readFileSync(node!.log, 'utf8').includes(secret), 'and is not in the log');
  const { port } = commands.json<{ readonly port: number }>('supervisor.json');
  const stranger = await askNode({
    ...{ http: `127.0.0.1:${port}`, path: '/', method: 'POST', timeoutMs: 60_000 },
    body: { kind: 'down' },
  });
  t.equal(stranger.status, 403, 'the supervisor obeys its owner alone');

  const status = await commands.run('status');
  t.match(
    status.out,
    /^dc1-1 +dc1 \(primary\) +\S+ +\d+ +leader +\d+ +\d+ +\d+ +\d+ +1\.\d+ +\d+ +ready$/m,
  );
  const logs = await commands.run('logs', 'dc1-1');
  t.match(logs.out, '"msg":"ready"');
  const unknown = await commands.run('kill', 'dc1-2');
  t.equal(unknown.status, 1);
  t.match(unknown.err, 'there is no "dc1-2" here; nodes: dc1-1; datacenters: dc1');
  t.equal((await commands.run('pause', 'dc1-1')).status, 0);
  t.match((await commands.run('status')).out, /^dc1-1 .* paused .* stands still$/m);
  t.equal((await commands.run('resume', 'dc1-1')).status, 0);
  t.equal((await commands.run('kill', 'dc1-1')).status, 0);
  t.equal(commands.describe().nodes[0]?.pid, null);
  t.match((await commands.run('status')).out, /^dc1-1 .* killed .* does not run$/m);
  t.match((await commands.run('kill', 'dc1-1')).err, '`restart dc1-1` starts it');
  t.match((await commands.run('restart', 'dc1-1')).out, 'dc1-1 is ready again');
  t.match((await commands.run('remove', 'dc1-1')).err, 'the last server of dc1; it stays');
  t.match((await commands.run('up', '--servers', '2')).err, 'a cluster of another shape');
  const alone = await commands.run('partition', 'dc1-1', 'dc1');
  t.match(alone.err, 'no line leads from dc1-1 to dc1: name two nodes or datacenters');

  const pids = commands.pids();
  const kept = await commands.run('down', '--keep');
  t.equal(kept.status, 0, kept.err);
  await until('nothing runs', () => !pids.some(runs));
  t.match((await commands.run('status')).err, 'the cluster is down, and its data is kept');
  t.equal((await commands.run('up')).status, 0);
  t.equal(
    (await askNode({ http, path: '/v1/acl/token/self', secret, timeoutMs: 60_000 })).status,
    200,
  );
  const again = commands.pids();
  t.match((await commands.run('down')).out, 'their data is gone');
  await until('nothing runs', () => !again.some(runs));
  t.notOk(existsSync(commands.folder));
});

t.test(
  'cluster: a datacenter is killed whole, also where some of it is dead already',
  async (t) => {
    const commands = new Commands(t);
    t.equal((await commands.run('up', '--datacenters', '1', '--servers', '2')).status, 0);
    t.equal((await commands.run('kill', 'dc1-1')).status, 0);
    t.equal((await commands.run('kill', 'dc1')).status, 0);
    t.same(
      commands.describe().nodes.map(({ pid }) => pid),
      [null, null],
    );
    t.match((await commands.run('kill', 'dc1')).err, 'dc1-1 does not run');
    t.equal((await commands.run('down')).status, 0);
  },
);

t.test('cluster: of two servers one goes, the leader or not, and another one comes', async (t) => {
  const commands = new Commands(t);
  t.equal((await commands.run('up', '--datacenters', '1', '--servers', '2')).status, 0);
  const leader = /^(\S+) .* leader /m.exec((await commands.run('status')).out)?.[1];
  const other = leader === 'dc1-1' ? 'dc1-2' : 'dc1-1';
  const { data_dir: folder } = commands.describe().nodes.find(({ name }) => name === leader)!;
  const removed = await commands.run('remove', leader!);
  t.equal(removed.status, 0, removed.err);
  t.match(removed.out, `${leader} is gone, and its data`);
  t.notOk(existsSync(folder));
  await until('the other one leads', async () =>
    new RegExp(`^${other} .* leader .* ready$`, 'm').test((await commands.run('status')).out),
  );
  const added = await commands.run('add');
  t.match(added.out, /^dc1-\d is ready$/m, added.err);
  const [, joiner] = /^(dc1-\d) is ready$/m.exec(added.out) ?? [];
  const back = await commands.run('remove', joiner!);
  t.equal(back.status, 0, back.err);
  t.same(
    commands.describe().nodes.map(({ name }) => name),
    [other],
  );
  t.equal((await commands.run('down')).status, 0);
});

t.test('cluster: a server that comes leaves the lines of others as they are', async (t) => {
  const commands = new Commands(t);
  const shape = ['--datacenters', '2', '--servers', '1', '--wan-delay', '7'];
  t.equal((await commands.run('up', ...shape)).status, 0);
  t.equal((await commands.run('delay', 'dc1', 'dc2', '0')).status, 0);
  t.notMatch((await commands.run('status')).out, 'Lines:');
  const added = await commands.run('add', 'dc2');
  t.equal(added.status, 0, added.err);
  const [, lines = ''] = (await commands.run('status')).out.split('Lines:');
  t.match(lines, 'dc2-2');
  t.notMatch(lines, 'dc2-1');
  t.equal((await commands.run('down')).status, 0);
});

t.test('cluster: a supervisor that was killed is replaced, and its servers go on', async (t) => {
  const commands = new Commands(t);
  t.equal((await commands.run('up', '--datacenters', '1', '--servers', '1')).status, 0);
  const [server, supervisor] = commands.pids();
  process.kill(supervisor!, 'SIGKILL');
  await until('the supervisor is gone', () => !runs(supervisor!));
  const status = await commands.run('status');
  t.equal(status.status, 0, status.err);
  t.match(status.out, 'A new one has taken over 1 of 1 servers.');
  t.match(status.out, new RegExp(`^dc1-1 .* ${server} .* ready$`, 'm'), 'the same process serves');
  t.equal((await commands.run('down')).status, 0);
  await until('nothing runs', () => !runs(server!));
});

t.test('cluster: whoever interrupts its start, nothing of it is left', async (t) => {
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    const commands = new Commands(t);
    const { child, ended } = commands.start('up', '--datacenters', '1', '--servers', '3');
    await until('servers run', () => existsSync(join(commands.folder, 'nodes', 'dc1-1')));
    const pids = commands.pids();
    child.kill(signal);
    const { status } = await ended;
    t.equal(status, signal === 'SIGINT' ? 1 : null);
    await until('nothing is left', () => !pids.some(runs) && !existsSync(commands.folder));
  }
});

t.test('cluster: whoever interrupts a second start ends nothing that ran before', async (t) => {
  const commands = new Commands(t);
  t.equal((await commands.run('up', '--datacenters', '1', '--servers', '2')).status, 0);
  t.equal((await commands.run('pause', 'dc1-2')).status, 0);
  t.equal((await commands.run('kill', 'dc1-1')).status, 0);
  const before = commands.pids();
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    const { child, ended } = commands.start('up');
    // It waits: without the one that stands still there is no leader.
    await until('it starts the other one', () => commands.describe().nodes[0]?.pid !== null);
    child.kill(signal);
    const { status, err } = await ended;
    if (signal === 'SIGINT') t.match(err, 'interrupted; what runs goes on');
    t.equal(status, signal === 'SIGINT' ? 1 : null);
    t.equal((await commands.run('status')).status, 0);
    t.ok(
      before.every((pid) => runs(pid)),
      'all that ran run on',
    );
    t.equal((await commands.run('kill', 'dc1-1')).status, 0);
  }
  t.equal((await commands.run('resume', 'dc1-2')).status, 0);
  t.equal((await commands.run('up')).status, 0);
  t.equal((await commands.run('down')).status, 0);
});
