// Connections at the port between servers of which nobody knows whose they are: how many, and for how long.

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import {
  STRANGERS_MAX,
  STRANGERS_OF_ADDRESS_MAX,
} from '../../src/platform-node/net/stranger-sockets.ts';
import { closed, dial, listen, MUTUAL, type Port, pair, until } from './nodes-on-sockets.ts';

/** Sockets that say nothing, of one address of this machine, in the order of their coming. */
async function silentOnes(
  test: Test,
  { listening }: Port,
  { count, localAddress }: { readonly count: number; readonly localAddress: string },
): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (let each = 0; each < count; each += 1) {
    const socket = connect({ ...listening.address, localAddress });
    socket.on('error', () => undefined);
    test.teardown(() => socket.destroy());
    sockets.push(socket);
    await once(socket, 'connect');
  }
  return sockets;
}

function openCount(sockets: readonly Socket[]): number {
  return sockets.filter(({ closed }) => !closed).length;
}

for (const tls of [undefined, MUTUAL]) {
  t.test(
    `ws-net: strangers of one address use up its own room, and a node gets in (${tls ? 'TLS' : 'plain'})`,
    async (test) => {
      const port = await listen(test, tls);
      const [near, far] = await pair(test, port);
      const other = await silentOnes(test, port, { count: 1, localAddress: '127.0.0.2' });
      const count = STRANGERS_OF_ADDRESS_MAX + 50;
      const silent = await silentOnes(test, port, { count, localAddress: '127.0.0.1' });
      await until(() => openCount(silent) === STRANGERS_OF_ADDRESS_MAX);
      test.equal(openCount(silent.slice(0, 50)), 0, 'the oldest gave way');
      test.equal(openCount(other), 1, 'that of another address did not');
      await dial(test, port);
      await until(() => port.ends.length === 2);
      test.match(port.log.lines.join('\n'), /too many connections do not say who they are/);
      near.conn.send(Buffer.from('all is well'));
      await until(() => far.frames.length === 1);
    },
  );
}

t.test('ws-net: strangers of many addresses are bounded together', async (test) => {
  const port = await listen(test);
  const hosts = [2, 3, 4, 5, 6].map((host) => `127.0.0.${host}`);
  const silent: Socket[] = [];
  for (const localAddress of hosts) {
    const count = STRANGERS_OF_ADDRESS_MAX - 20;
    silent.push(...(await silentOnes(test, port, { count, localAddress })));
  }
  await until(() => openCount(silent) === STRANGERS_MAX);
  test.equal(openCount(silent.slice(-STRANGERS_MAX)), STRANGERS_MAX, 'the oldest gave way');
  await dial(test, port);
  await until(() => port.ends.length === 1);
});

t.test('ws-net: whoever became a WebSocket is a stranger until it is trusted', async (test) => {
  const port = await listen(test, undefined, false);
  const [trusted, trustedFar] = await pair(test, port);
  trustedFar.conn.trust();
  const [untrusted] = await pair(test, port);
  await silentOnes(test, port, { count: STRANGERS_OF_ADDRESS_MAX, localAddress: '127.0.0.1' });
  await until(() => untrusted.closedWhy !== undefined);
  test.equal(trusted.closedWhy, undefined);
});

t.test('ws-net: whoever says nothing is gone soon after its time', async (test) => {
  const port = await listen(test);
  // Away from the moments in which a check of every five seconds looks.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const startMs = Date.now();
  const [silent] = await silentOnes(test, port, { count: 1, localAddress: '127.0.0.1' });
  await closed(silent!);
  const tookMs = Date.now() - startMs;
  test.ok(tookMs > 4_000 && tookMs < 9_000, `${tookMs} ms`);
});

t.test('ws-net: no page in a browser becomes a node, whatever it would say', async (test) => {
  const port = await listen(test);
  const { host, port: number } = port.listening.address;
  const page = new WebSocket(`ws://${host}:${number}/`, { origin: 'https://elsewhere.example' });
  test.teardown(() => page.terminate());
  await test.rejects(once(page, 'open'), { message: /403/ });
  test.equal(port.ends.length, 0);
  test.match(port.log.lines.join('\n'), /a page of https:\/\/elsewhere\.example connects/);
  await dial(test, port);
  await until(() => port.ends.length === 1);
});
