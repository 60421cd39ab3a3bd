// The network of nodes over real sockets of this machine: frames of all sizes, whoever is not a node, and floods.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import { FRAME_MAX_BYTES, STRANGER_MAX_BYTES } from '../../cluster/platform/net.ts';
import { closed, listen, type Port, pair, TIMEOUT_MS, until } from './nodes-on-sockets.ts';

async function rawSocket(
  test: Test,
  { listening }: Port,
): Promise<Socket & { readonly heard: string[] }> {
  const socket = connect(listening.address.port, '127.0.0.1');
  test.teardown(() => socket.destroy());
  const heard: string[] = [];
  socket.on('data', (data) => heard.push(data.toString('latin1')));
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return Object.assign(socket, { heard });
}

t.test('ws-net: frames of any size go both ways, whole and in order', async (test) => {
  const [near, far] = await pair(test, await listen(test));
  const sizes = [1, 125, 126, 65_535, 65_536, 1_000_000, FRAME_MAX_BYTES];
  for (const [from, to] of [
    [near, far],
    [far, near],
  ] as const) {
    sizes.forEach((size, place) => {
      from.conn.send(new Uint8Array(size).fill(place + 1));
    });
    await until(() => to.frames.length === sizes.length);
    test.same(
      to.frames.map(({ length }) => length),
      sizes,
    );
    test.ok(to.frames.every((frame, place) => frame.every((byte) => byte === place + 1)));
  }
  await until(() => near.conn.bufferedBytes() === 0);
  test.ok(far.conn.receivedBytes() > FRAME_MAX_BYTES);
  test.match(near.conn.remote, /^127\.0\.0\.1:\d+$/);
  test.match(far.conn.remote, /^127\.0\.0\.1:\d+$/);
});

t.test(
  'ws-net: what waits to be sent is counted, and what was sent before closing arrives',
  async (test) => {
    const [near, far] = await pair(test, await listen(test));
    for (let count = 0; count < 64; count += 1) near.conn.send(new Uint8Array(1_000_000));
    test.ok(near.conn.bufferedBytes() > 10_000_000);
    await until(() => far.frames.length === 64);
    near.conn.send(Buffer.from('last words'));
    near.conn.close('that was all');
    near.conn.close('a second time');
    near.conn.send(Buffer.from('too late'));
    await until(() => near.closedWhy !== undefined && far.closedWhy !== undefined);
    test.same([near.closedWhy, far.closedWhy], ['that was all', 'that was all']);
    test.equal(far.texts.at(-1), 'last words');
  },
);

t.test(
  'ws-net: a frame that is too large ends its connection at both ends, unread',
  async (test) => {
    const port = await listen(test);
    const [near, far] = await pair(test, port);
    const [other, otherFar] = await pair(test, port);
    near.conn.send(new Uint8Array(FRAME_MAX_BYTES + 1));
    await until(() => near.closedWhy !== undefined && far.closedWhy !== undefined);
    test.match(far.closedWhy, /Max payload size exceeded/);
    test.same(far.frames, []);
    other.conn.send(Buffer.from('still here'));
    await until(() => otherFar.frames.length === 1);
  },
);

t.test(
  'ws-net: a text, a broken WebSocket, an end without words or a message in crumbs ends its connection',
  async (test) => {
    const port = await listen(test);
    const [, otherFar] = await pair(test, port);
    const { address } = port.listening;
    const client = new WebSocket(`ws://127.0.0.1:${address.port}/`);
    await once(client, 'open');
    client.send('a text');
    await once(client, 'close');
    await until(() => port.ends[1]?.closedWhy !== undefined);
    test.equal(port.ends[1]!.closedWhy, 'a text came, and frames are binary');
    const broken = new WebSocket(`ws://127.0.0.1:${address.port}/`);
    const upgraded = once(broken, 'upgrade');
    await once(broken, 'open');
    const [{ socket }] = (await upgraded) as [{ readonly socket: Socket }];
    socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff]));
    broken.on('error', () => undefined);
    await until(() => port.ends[2]?.closedWhy !== undefined);
    test.match(port.ends[2]!.closedWhy, /RSV/);
    const gone = new WebSocket(`ws://127.0.0.1:${address.port}/`);
    await once(gone, 'open');
    gone.terminate();
    await until(() => port.ends[3]?.closedWhy !== undefined);
    test.equal(port.ends[3]!.closedWhy, 'closed with 1006');
    const cut = new WebSocket(`ws://127.0.0.1:${address.port}/`);
    await once(cut, 'open');
    for (let piece = 0; piece < 100; piece += 1) cut.send(Buffer.from('x'), { fin: false });
    await until(() => port.ends[4]?.closedWhy !== undefined);
    test.match(port.ends[4]!.closedWhy, /Too many message fragments/);
    test.equal(otherFar.closedWhy, undefined);
  },
);

t.test(
  'ws-net: whoever speaks something else is turned away, with the reason in the log',
  async (test) => {
    const port = await listen(test);
    const [near, far] = await pair(test, port);
    const said: readonly (readonly [string, RegExp, RegExp])[] = [
      [
        'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
        /^HTTP\/1\.1 426 .*This port is for the servers/s,
        /plain HTTP/,
      ],
      [
        '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
        /^$/,
        /what came is TLS, and none is spoken here: .*tls\.cluster/,
      ],
      ['\x00\x01\x02\xff\r\n\r\n', /^$/, /what came is no node/],
      [`GET / HTTP/1.1\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, /^$/, /what came is no node/],
      [
        'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
        /^HTTP\/1\.1 400/,
        /./,
      ],
      [
        'GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n',
        /^HTTP\/1\.1 (400|426)/,
        /./,
      ],
    ];
    for (const [bytes, answer, logged] of said) {
      const socket = await rawSocket(test, port);
      socket.write(Buffer.from(bytes, 'latin1'));
      await closed(socket);
      test.match(socket.heard.join(''), answer, bytes.slice(0, 40));
      test.match(port.log.lines.join('\n'), logged, bytes.slice(0, 40));
    }
    near.conn.send(Buffer.from('all is well'));
    await until(() => far.frames.length === 1);
    test.equal(port.ends.length, 1, 'none of them became a connection');
  },
);

t.test(
  'ws-net: a stranger may say only so much, a trusted node as much as it likes',
  async (test) => {
    const port = await listen(test, undefined, false);
    const [stranger, strangerFar] = await pair(test, port);
    const [node, nodeFar] = await pair(test, port);
    nodeFar.conn.trust();
    stranger.conn.send(new Uint8Array(STRANGER_MAX_BYTES * 3));
    node.conn.send(new Uint8Array(STRANGER_MAX_BYTES * 3));
    await until(() => stranger.closedWhy !== undefined && nodeFar.frames.length === 1);
    test.match(strangerFar.closedWhy, /more than 65536 bytes came before it was known from whom/);
    test.same(strangerFar.frames, []);
    test.equal(nodeFar.closedWhy, undefined);
  },
);

t.test(
  'ws-net: a flood comes in portions, and everything else has its turn between them',
  async (test) => {
    const port = await listen(test);
    const [near, far] = await pair(test, port);
    const COUNT = 20_000;
    const [LARGE_COUNT, LARGE_BYTES] = [400, 50_000];
    let turn = 0;
    let isCounting = true;
    const countTurns = (): void => {
      turn += 1;
      if (isCounting) setImmediate(countTurns);
    };
    countTurns();
    const countByTurn = new Map<number, number>();
    const bytesByTurn = new Map<number, number>();
    const numbers: number[] = [];
    far.frames.push = (frame) => {
      countByTurn.set(turn, (countByTurn.get(turn) ?? 0) + 1);
      bytesByTurn.set(turn, (bytesByTurn.get(turn) ?? 0) + frame.length);
      return numbers.push(Buffer.from(frame).readUInt32BE());
    };
    for (let number = 0; number < COUNT; number += 1) {
      const frame = Buffer.alloc(8);
      frame.writeUInt32BE(number);
      near.conn.send(frame);
    }
    await until(() => numbers.length === COUNT);
    for (let number = COUNT; number < COUNT + LARGE_COUNT; number += 1) {
      const frame = Buffer.alloc(LARGE_BYTES);
      frame.writeUInt32BE(number);
      near.conn.send(frame);
    }
    await until(() => numbers.length === COUNT + LARGE_COUNT);
    isCounting = false;
    const mostBytes = Math.max(...bytesByTurn.values());
    test.ok(mostBytes < 512 * 1024 + LARGE_BYTES, `${mostBytes} bytes in one turn`);
    test.ok(
      Math.max(...countByTurn.values()) <= 64,
      `${Math.max(...countByTurn.values())} in one turn`,
    );
    test.ok(
      numbers.every((number, place) => number === place),
      'in order',
    );
  },
);

t.test('ws-net: the last words of a flood arrive before its end', async (test) => {
  const [near, far] = await pair(test, await listen(test));
  for (let number = 0; number < 5_000; number += 1) near.conn.send(Buffer.from(`${number}`));
  near.conn.close('done');
  await until(() => far.closedWhy !== undefined);
  test.equal(far.frames.length, 5_000);
  test.equal(far.closedWhy, 'done');
});

t.test('ws-net: dialling and listening say what went wrong', async (test) => {
  const port = await listen(test);
  const { address } = port.listening;
  await test.rejects(
    port.net.listen(address, () => undefined),
    {
      message: new RegExp(`cannot listen at 127.0.0.1:${address.port}: .*EADDRINUSE`),
    },
  );
  await port.listening.close();
  await test.rejects(port.net.dial(address, { timeoutMs: TIMEOUT_MS }), /ECONNREFUSED/);
  await test.rejects(
    port.net.dial({ host: 'no such host', port: 1 }, { timeoutMs: 500 }),
    /Invalid URL/,
  );
  const again = await port.net.listen(address, () => undefined);
  await again.close();
  const mute = createServer((socket) => test.teardown(() => socket.destroy()));
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  test.teardown(() => mute.close());
  const { port: mutePort } = mute.address() as { readonly port: number };
  await test.rejects(
    port.net.dial({ host: '127.0.0.1', port: mutePort }, { timeoutMs: 50 }),
    /Opening handshake has timed out/,
  );
});
