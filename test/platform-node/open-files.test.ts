// Who gets how many of the files that a process may have open, and what becomes of connections beyond that.

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import t from 'tap';
import {
  fileSharesOf,
  openFilesIn,
  openFilesMax,
} from '../../src/platform-node/disk/open-files.ts';
import { ConnectionRoom } from '../../src/platform-node/net/connection-room.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { FakeLogger } from '../http/support.ts';

t.test('open files: connections leave the databases half of them, or four thousand', async (t) => {
  for (const [filesMax, clientsMax, strangersMax] of [
    [300, 150, 37],
    [1_024, 512, 128],
    [4_096, 2_048, 512],
    [8_192, 4_096, 1_024],
    [65_536, 61_440, 8_192],
  ] as const) {
    t.same(fileSharesOf(filesMax), { clientsMax, strangersMax }, String(filesMax));
  }
  t.same(fileSharesOf(undefined), { clientsMax: Infinity, strangersMax: Infinity });
});

t.test('open files: the limit is the soft one that Linux tells', async (t) => {
  const limits = [
    'Limit                     Soft Limit           Hard Limit           Units     ',
    'Max processes             31722                31722                processes ',
    'Max open files            1024                 4096                 files     ',
  ].join('\n');
  t.equal(openFilesIn(limits), 1_024);
  t.equal(openFilesIn('something else'), undefined);
  if (process.platform === 'linux') t.ok((openFilesMax() ?? 0) > 0);
});

t.test('connections: one more than there is room for is closed at once', async (t) => {
  const logger = new FakeLogger();
  const room = new ConnectionRoom({ max: 2, clock: systemClock, logger });
  const accepted: Socket[] = [];
  const ports: number[] = [];
  for (let count = 0; count < 2; count += 1) {
    const server = createServer((socket) => accepted.push(socket));
    room.watch(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    ports.push((server.address() as AddressInfo).port);
  }
  const open = async (place: number) => {
    const socket = connect(ports[place] as number, '127.0.0.1');
    t.teardown(() => socket.destroy());
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  const first = await open(0);
  await open(1);
  while (accepted.length < 2) await new Promise((resolve) => setImmediate(resolve));
  for (let count = 0; count < 3; count += 1) {
    const beyond = await open(count % 2);
    if (!beyond.closed) await once(beyond, 'close');
  }
  t.match(logger.lines, [
    {
      level: 'warn',
      message: 'a connection was refused',
      fields: { why: '2 are open, and more would leave the databases without files' },
    },
  ]);
  t.equal(logger.lines.length, 1, 'it is said once');
  first.destroy();
  const [former] = accepted;
  while (former?.closed !== true) await new Promise((resolve) => setImmediate(resolve));
  const next = await open(1);
  await new Promise((resolve) => setTimeout(resolve, 100));
  t.notOk(next.closed, 'and then there is room again');
});
