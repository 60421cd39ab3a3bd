// The audit log of a real server: what it holds when the server has ended, what `conclave audit check` says of it, and
// a file that is moved away while the server runs.

import { spawnSync } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ask, MANAGEMENT } from '../hard/asking.ts';
import { startRefused, startServer, temporaryFolder } from '../hard/server-process.ts';
import { until } from '../support/running/running-group.ts';

const CONCLAVE = join(import.meta.dirname, '..', '..', 'src', 'main.js');

function check(...paths: readonly string[]) {
  const words = [CONCLAVE, 'audit', 'check', '--format', 'json', ...paths];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, { encoding: 'utf8' });
  return { status, stdout, stderr };
}

function recordsIn(path: string): readonly Record<string, unknown>[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function server(t: Test, path: string, flags: Readonly<Record<string, string>> = {}) {
  const dataFolder = join(temporaryFolder(t), 'data');
  return startServer(t, { dataFolder, flags: { 'audit-file': path, ...flags } });
}

t.test('audit: a server leaves a log that fits, and one that was changed does not', async (t) => {
  const path = join(temporaryFolder(t), 'audit.log');
  const { port, end, pid } = await server(t, path);
  const policy = { method: 'PUT', path: '/v1/acl/policy', body: { Name: 'web' } };
  t.equal((await ask(port, policy)).status, 200);
  t.equal((await ask(port, { path: '/v1/acl/tokens', secret: 'nobody' })).status, 403);
  t.equal((await ask(port, { path: '/v1/agent/self', secret: '' })).status, 403);
  t.equal((await ask(port, { path: '/v1/agent/members', secret: 'nobody' })).status, 403);
  t.equal((await ask(port, { path: '/readyz?max_lag=1s', secret: 'nobody' })).status, 200);
  renameSync(path, `${path}.moved`);
  process.kill(pid, 'SIGHUP');
  await until('it goes on under its name', () => {
    try {
      return recordsIn(path).length > 0;
    } catch {
      return false;
    }
  });
  const metrics = (await ask(port, { path: '/v1/agent/metrics?format=prometheus' })).text;
  t.match(metrics, /^conclave_audit_records [45]$/m);
  t.match(metrics, /^conclave_audit_failing 0$/m);
  t.same(await end('SIGTERM'), { code: 0, signal: null });

  t.match(recordsIn(`${path}.moved`), [
    { event: 'begun', node: 'hard', at: 'dc1' },
    { operation: 'policy.create', outcome: 'done', client: '127.0.0.1', object: { name: 'web' } },
    { operation: 'token.list', outcome: 'refused', error: 'token-unknown' },
    { operation: 'agent.self', outcome: 'refused', error: 'permission-denied' },
    { operation: 'agent.members', outcome: 'refused', error: 'token-unknown' },
  ]);
  const good = check(`${path}.moved`, path);
  t.equal(good.status, 0, good.stderr);
  t.match(JSON.parse(good.stdout), { Records: 6, Lost: 0, Torn: 0, LinkedWith: '0'.repeat(64) });
  const text = readFileSync(`${path}.moved`, 'utf8');
  t.notMatch(text, MANAGEMENT);
  writeFileSync(`${path}.moved`, text.replace('"web"', '"wob"'));
  t.match(check(`${path}.moved`, path), {
    status: 1,
    stderr: /moved, line 2: it, or what stood before/,
  });
  t.match(check(join(path, 'none')), { status: 2, stderr: /cannot read / });
  t.match(check(), { status: 2, stderr: /say which one: a file/ });
});

t.test('audit: where it is required, changes are on disk before they are made', async (t) => {
  const path = join(temporaryFolder(t), 'audit.log');
  const { port, end } = await server(t, path, { 'audit-required': 'true' });
  t.equal(
    (await ask(port, { method: 'PUT', path: '/v1/acl/policy', body: { Name: 'web' } })).status,
    200,
  );
  await end('SIGTERM');
  t.match(
    recordsIn(path).map(({ event }) => event),
    ['begun', 'asked', 'answered'],
  );
  t.equal(check(path).status, 0);
});

t.test(
  'audit: a server on a full disk starts, and refuses changes where it is required',
  async (t) => {
    const { port, end } = await server(t, '/dev/full', { 'audit-required': 'true' });
    const put = await ask(port, { method: 'PUT', path: '/v1/acl/policy', body: { Name: 'web' } });
    t.match(put, {
      status: 503,
      text: /^nothing was done: the audit log cannot be written: ENOSPC/,
    });
    t.equal((await ask(port, { path: '/v1/acl/tokens' })).status, 200);
    const metrics = (await ask(port, { path: '/v1/agent/metrics?format=prometheus' })).text;
    t.match(metrics, /^conclave_audit_failing 1$/m);
    t.same(await end('SIGTERM'), { code: 0, signal: null });
  },
);

t.test(
  'audit: two servers do not write to one file, and one that was killed leaves it',
  async (t) => {
    const path = join(temporaryFolder(t), 'audit.log');
    const first = await server(t, path);
    const dataFolder = join(temporaryFolder(t), 'data');
    const refused = await startRefused(t, { dataFolder, flags: { 'audit-file': path } });
    t.equal(refused.ending.code, 2);
    t.ok(refused.output.includes(`audit.file: another server writes to ${path}`), refused.output);
    await first.end('SIGKILL');
    const next = await server(t, path);
    await next.end('SIGTERM');
    t.match(JSON.parse(check(path).stdout), { Records: 2, Torn: 0, Unfinished: 0 });
    writeFileSync(path, readFileSync(path, 'utf8').slice(0, -20));
    const unfinished = check(path);
    t.equal(unfinished.status, 0);
    t.match(JSON.parse(unfinished.stdout), { Records: 1, Unfinished: 1 });
  },
);

t.test('audit: a server does not start whose audit log cannot be one', async (t) => {
  const folder = temporaryFolder(t);
  const other = join(folder, 'letter');
  writeFileSync(other, 'dear reader\n');
  const cases: readonly (readonly [Readonly<Record<string, string>>, RegExp])[] = [
    [{ 'audit-file': join(folder, 'no', 'folder') }, /audit\.file: ENOENT/],
    [{ 'audit-file': other }, /audit\.file: the file holds something else than an audit log/],
    [{ 'audit-required': 'true' }, /audit\.required needs audit\.file/],
  ];
  for (const [flags, says] of cases) {
    const { ending, output } = await startRefused(t, { dataFolder: join(folder, 'data'), flags });
    t.equal(ending.code, 2);
    t.match(output, says);
  }
  t.equal(readFileSync(other, 'utf8'), 'dear reader\n');
});
