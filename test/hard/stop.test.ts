// A server that is told to stop while a disk hangs.

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { freePorts } from '../support/running/free-ports.ts';
import { ask } from './asking.ts';
import { hangingFile } from './hanging-file.ts';
import { startAndSignal, startServer, temporaryFolder } from './server-process.ts';

t.test('stop: a disk that hangs does not keep a process that is told to stop', async (t) => {
  const folder = temporaryFolder(t);
  const server = await startServer(t, {
    dataFolder: join(folder, 'data'),
    flags: { 'audit-file': hangingFile(t, folder) },
  });
  const names = Array.from({ length: 400 }, (_, place) => `p${place}`);
  const written = names.map((Name) =>
    ask(server.port, { method: 'PUT', path: '/v1/acl/policy', body: JSON.stringify({ Name }) }),
  );
  const statuses = new Set((await Promise.all(written)).map(({ status }) => status));
  t.same([...statuses], [200], 'nobody waits for a record that is not required');
  const { signal } = await server.end('SIGTERM');
  t.equal(signal, 'SIGKILL');
  t.match(server.output(), /"msg":"it does not stop: the process kills itself"/, 'in the log');
});

t.test(
  'stop: what is sent twice at once is meant once, and what comes later ends it',
  async (t) => {
    for (const [laterMs, again, ending] of [
      [10, 'SIGINT', { code: 0, signal: null }],
      [1_500, 'SIGINT', { code: null, signal: 'SIGINT' }],
      [1_500, 'SIGTERM', { code: null, signal: 'SIGTERM' }],
    ] as const) {
      const server = await startServer(t, { dataFolder: temporaryFolder(t) });
      // Whose request has not come to its end is waited for.
      const client = connect(server.port, '127.0.0.1');
      t.teardown(() => client.destroy());
      client.on('error', () => undefined);
      client.write('PUT /v1/acl/policy HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n');
      await ask(server.port, { path: '/v1/acl/policies' });
      const ended = server.end('SIGINT');
      await new Promise((resolve) => setTimeout(resolve, laterMs));
      void server.end(again);
      t.same(await ended, ending, `${again} ${laterMs} ms later`);
    }
  },
);

t.test('stop: one that is alone, and waits to be ready, waits no longer', async (t) => {
  const [nobodyThere] = await freePorts(1);
  const plan = {
    dataFolder: temporaryFolder(t),
    flags: { 'ports-cluster': '0', 'retry-join-wan': `127.0.0.1:${nobodyThere}` },
  };
  const at = { text: '"msg":"not ready"', signal: 'SIGTERM' } as const;
  const { ending, tookMs } = await startAndSignal(t, plan, at);
  t.same(ending, { code: 0, signal: null });
  t.ok(tookMs < 3_000, `${Math.round(tookMs)} ms, while it asks others for five seconds`);
});

t.test('stop: nor one that is told so while it starts', async (t) => {
  const dataFolder = temporaryFolder(t);
  const server = await startServer(t, { dataFolder });
  await server.end('SIGTERM');
  // To open a pipe that nobody writes to stands for a call to a disk that hangs.
  const current = join(dataFolder, 'log', 'level', 'CURRENT');
  rmSync(current);
  execFileSync('mkfifo', [current]);
  const at = { text: '"msg":"starting"', signal: 'SIGTERM' } as const;
  const { ending, output } = await startAndSignal(t, { dataFolder }, at);
  t.equal(ending.signal, 'SIGKILL');
  t.match(output, /it does not stop: the process kills itself/);
});
