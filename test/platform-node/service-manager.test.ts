// What systemd hears of a server: by the tool of the system where it is there, and by one that only writes down
// what it is told.

import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { tellServiceManager } from '../../src/platform-node/process/service-manager.ts';
import { ask } from '../hard/asking.ts';
import { startServer, temporaryFolder } from '../hard/server-process.ts';
import { until } from '../support/running/running-group.ts';

/** A folder with a tool that adds a line for each time it is called, and what those lines are. */
function writingTool(owner: Parameters<typeof temporaryFolder>[0], exitStatus: number) {
  const folder = temporaryFolder(owner);
  const told = join(folder, 'told');
  const tool = join(folder, 'bin', 'systemd-notify');
  mkdirSync(join(folder, 'bin'));
  const script = `#!/bin/sh\necho "$NOTIFY_SOCKET|$*" >> ${told}\necho "no such socket" >&2\nexit ${exitStatus}\n`;
  writeFileSync(tool, script);
  chmodSync(tool, 0o755);
  return {
    path: `${join(folder, 'bin')}:${process.env.PATH}`,
    lines: () => (existsSync(told) ? readFileSync(told, 'utf8').trimEnd().split('\n') : []),
  };
}

t.test('service manager: hears when a server listens and when it stops', async (t) => {
  const { path, lines } = writingTool(t, 0);
  const server = await startServer(t, {
    dataFolder: join(temporaryFolder(t), 'data'),
    environment: { PATH: path, NOTIFY_SOCKET: '/run/notify' },
  });
  await until('it was told', () => lines().length === 1);
  t.same(lines(), ['/run/notify|READY=1 STATUS=ready']);
  t.same(await server.end('SIGTERM'), { code: 0, signal: null });
  t.same(lines().slice(1), ['/run/notify|STOPPING=1 STATUS=stopping']);
});

t.test('service manager: a server that waits for others is up, and says for whom', async (t) => {
  const { path, lines } = writingTool(t, 0);
  const server = await startServer(t, {
    dataFolder: join(temporaryFolder(t), 'data'),
    flags: { 'ports-cluster': '0', 'bootstrap-expect': '2', 'retry-join': '127.0.0.1:9' },
    environment: { PATH: path, NOTIFY_SOCKET: '/run/notify' },
  });
  await until('it was told', () => lines().length === 1);
  t.match(lines()[0], /^\/run\/notify\|READY=1 STATUS=(?!ready$).+/);
  await server.end('SIGTERM');
});

t.test('service manager: nobody is told where none asks', async (t) => {
  const { path, lines } = writingTool(t, 0);
  await tellServiceManager({ state: 'ready', status: 'ready' }, { PATH: path });
  t.same(lines(), []);
});

t.test('service manager: a tool that fails is in the log, and the server serves', async (t) => {
  const { path } = writingTool(t, 1);
  const server = await startServer(t, {
    dataFolder: join(temporaryFolder(t), 'data'),
    environment: { PATH: path, NOTIFY_SOCKET: '/run/notify' },
  });
  await until('the log says so', () =>
    server.output().includes('the service manager could not be told'),
  );
  t.match(server.output(), 'systemd-notify ended with status 1: no such socket');
  t.equal((await ask(server.port, { path: '/livez' })).status, 200);
  await server.end('SIGTERM');
});

t.test(
  'service manager: the tool of this system takes what it is given',
  {
    skip:
      spawnSync('systemd-notify', ['--version']).status === 0
        ? false
        : 'systemd-notify is not installed: this system has no systemd to tell anything',
  },
  async (t) => {
    const folder = temporaryFolder(t);
    const news = { state: 'ready', status: 'ready' } as const;
    const environment = { PATH: process.env.PATH, NOTIFY_SOCKET: join(folder, 'nobody') };
    await t.rejects(tellServiceManager(news, environment), /systemd-notify ended with status 1/);
  },
);
