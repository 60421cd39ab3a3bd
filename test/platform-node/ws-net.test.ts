// The network of nodes over real sockets of this machine: frames of all sizes, whoever is not a node, floods,
// TLS with and without certificates, and two transports on it.

import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import t, { type Test } from 'tap';
import { WebSocket } from 'ws';
import type { Logger } from '../../cluster/platform/logger.ts';
import {
  type Conn,
  FRAME_MAX_BYTES,
  type Listening,
  type Net,
  STRANGER_MAX_BYTES,
} from '../../cluster/platform/net.ts';
import type { TlsTexts } from '../../cluster/platform/tls-in-use.ts';
import { openTransport } from '../../cluster/transport/open-transport.ts';
import type { Transport } from '../../cluster/transport/transport.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import {
  STRANGERS_MAX,
  STRANGERS_OF_ADDRESS_MAX,
} from '../../src/platform-node/net/stranger-sockets.ts';
import { systemRandom } from '../../src/platform-node/system-random.ts';
import { openWsNet } from '../../src/platform-node/net/ws-net.ts';
import { certify, makeAuthority } from '../support/certificates.ts';
import { RenewableTls } from '../support/renewable-tls.ts';

const HERE = { host: '127.0.0.1', port: 0 };
const TIMEOUT_MS = 60_000;

/** What a network wrote to its log. */
class Log {
  readonly lines: string[] = [];

  get logger(): Logger {
    const write = (fields: object): void => {
      this.lines.push(JSON.stringify(fields));
    };
    return { debug: write, info: write, warn: write, error: write };
  }
}

class End {
  readonly frames: Uint8Array[] = [];
  closedWhy: string | undefined;
  readonly conn: Conn;

  constructor(conn: Conn) {
    this.conn = conn;
    conn.handle({
      onFrame: (frame) => this.frames.push(frame),
      onClose: (why) => {
        this.closedWhy = why;
      },
    });
  }

  get texts(): readonly string[] {
    return this.frames.map((frame) => Buffer.from(frame).toString());
  }
}

interface Port {
  readonly net: Net;
  readonly log: Log;
  readonly listening: Listening;
  /** Those that were accepted, in order. */
  readonly ends: End[];
}

async function listen(
  test: Test,
  shown?: TlsTexts | RenewableTls,
  isTrusting = true,
): Promise<Port> {
  const log = new Log();
  const net = openWsNet({ tls: inUse(shown), clock: systemClock, logger: log.logger });
  const ends: End[] = [];
  const listening = await net.listen(HERE, (conn) => {
    if (isTrusting) conn.trust();
    ends.push(new End(conn));
  });
  test.teardown(async () => {
    for (const { conn } of ends) conn.close('the test is over');
    await listening.close();
  });
  return { net, log, listening, ends };
}

function inUse(shown: TlsTexts | RenewableTls | undefined): RenewableTls | undefined {
  if (shown === undefined || shown instanceof RenewableTls) return shown;
  return new RenewableTls(shown);
}

async function dial(test: Test, { net, listening }: Port, by = net): Promise<End> {
  const end = new End(await by.dial(listening.address, { timeoutMs: TIMEOUT_MS }));
  test.teardown(() => end.conn.close('the test is over'));
  return end;
}

/** Both ends of one connection. */
async function pair(test: Test, port: Port): Promise<readonly [End, End]> {
  const near = await dial(test, port);
  await until(() => port.ends.length > 0);
  return [near, port.ends.at(-1)!];
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = Date.now() + TIMEOUT_MS;
  while (!condition()) {
    if (Date.now() > endMs) throw new Error(`it did not come to it: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function closed(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

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
  'ws-net: a text, a broken WebSocket or an end without words ends its connection',
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
    let turn = 0;
    let isCounting = true;
    const countTurns = (): void => {
      turn += 1;
      if (isCounting) setImmediate(countTurns);
    };
    countTurns();
    const countByTurn = new Map<number, number>();
    const numbers: number[] = [];
    far.frames.push = (frame) => {
      countByTurn.set(turn, (countByTurn.get(turn) ?? 0) + 1);
      return numbers.push(Buffer.from(frame).readUInt32BE());
    };
    for (let number = 0; number < COUNT; number += 1) {
      const frame = Buffer.alloc(8);
      frame.writeUInt32BE(number);
      near.conn.send(frame);
    }
    await until(() => numbers.length === COUNT);
    isCounting = false;
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

const AUTHORITY = makeAuthority('the authority of the cluster');
const OTHER_AUTHORITY = makeAuthority('the authority of somebody else');
const MUTUAL: TlsTexts = { ...certify(AUTHORITY, 'node-1'), ca: AUTHORITY.cert };

function netWith(shown: TlsTexts | RenewableTls | undefined): Net {
  return openWsNet({ tls: inUse(shown), clock: systemClock, logger: new Log().logger });
}

t.test(
  'ws-net: in TLS with an authority, nodes that it has signed reach each other',
  async (test) => {
    const port = await listen(test, MUTUAL);
    const other = netWith({ ...certify(AUTHORITY, 'node-2'), ca: AUTHORITY.cert });
    const near = await dial(test, port, other);
    near.conn.send(Buffer.from('over TLS'));
    await until(() => port.ends[0]?.frames.length === 1);
    port.ends[0]!.conn.send(new Uint8Array(3_000_000).fill(7));
    await until(() => near.frames.length === 1);
    test.equal(near.frames[0]!.length, 3_000_000);
    near.conn.close('done');
    await until(() => port.ends[0]!.closedWhy !== undefined);
    test.equal(port.ends[0]!.closedWhy, 'done');
  },
);

t.test(
  'ws-net: in TLS with an authority, every stranger is refused and the others go on',
  async (test) => {
    const port = await listen(test, MUTUAL);
    const near = await dial(test, port);
    const strangers: readonly (readonly [string, Net])[] = [
      ['signed by another', netWith({ ...certify(OTHER_AUTHORITY, 'node-2'), ca: AUTHORITY.cert })],
      ['without TLS', netWith(undefined)],
    ];
    for (const [title, net] of strangers) {
      await test.rejects(net.dial(port.listening.address, { timeoutMs: TIMEOUT_MS }), title);
    }
    const bare = tlsConnect({
      port: port.listening.address.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
    });
    bare.on('error', () => undefined);
    bare.write('GET / HTTP/1.1\r\n\r\n');
    await closed(bare);
    const old = tlsConnect({
      ...MUTUAL,
      port: port.listening.address.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      maxVersion: 'TLSv1.2',
    });
    const [error] = (await once(old, 'error')) as [Error];
    test.match(error.message, /version/);
    await until(() => port.log.lines.length >= 4);
    const said = port.log.lines.join('\n');
    const by =
      /127\.0\.0\.1:\d+","why":"its certificate is not from the authority of this cluster: /;
    test.match(said, new RegExp(`${by.source}UNABLE_TO_VERIFY_LEAF_SIGNATURE`));
    test.match(said, by, 'who shows none');
    test.match(said, /what came is no node: unsupported protocol/);
    test.match(said, /what came is not TLS, which is spoken here: .*tls\.cluster/);
    near.conn.send(Buffer.from('all is well'));
    await until(() => port.ends[0]?.frames.length === 1);
    test.equal(port.ends.length, 1);
  },
);

t.test(
  'ws-net: where one of two speaks TLS and the other does not, both are told which setting to look at',
  async (test) => {
    const [plain, secured] = [await listen(test), await listen(test, MUTUAL)];
    const dialled = (net: Net, { listening }: Port) =>
      net.dial(listening.address, { timeoutMs: TIMEOUT_MS });
    await test.rejects(dialled(netWith(undefined), secured), /socket hang up .*tls\.cluster/);
    await test.rejects(dialled(netWith(MUTUAL), plain), /before secure TLS .*tls\.cluster/);
    await until(() => plain.log.lines.length > 0 && secured.log.lines.length > 0);
    test.match(plain.log.lines.join(), /what came is TLS, and none is spoken here/);
    test.match(secured.log.lines.join(), /what came is not TLS, which is spoken here/);
    test.same([...plain.ends, ...secured.ends], [], 'and nothing was taken for a node');
  },
);

t.test(
  'ws-net: in TLS with an authority, a resumed session does not stand for a certificate',
  async (test) => {
    const port = await listen(test, MUTUAL);
    const options = {
      port: port.listening.address.port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
    };
    let session: Buffer | undefined;
    const node = tlsConnect({ ...options, key: MUTUAL.key, cert: MUTUAL.cert });
    node.on('session', (given) => {
      session = given;
    });
    await until(() => session !== undefined);
    node.destroy();
    const heard: string[] = [];
    const second = tlsConnect({ ...options, session: session! }, () => {
      test.ok(second.isSessionReused());
      second.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    });
    second.on('data', (data) => heard.push(data.toString()));
    second.on('error', () => undefined);
    await closed(second);
    test.same(heard, []);
    test.match(port.log.lines.join('\n'), /it resumes a session instead of showing a certificate/);
  },
);

t.test(
  'ws-net: renewed certificates count for those who come later, on both sides of a line',
  async (test) => {
    const tls = new RenewableTls(MUTUAL);
    const port = await listen(test, tls);
    const before = await dial(test, port);
    const renewed = { ...certify(OTHER_AUTHORITY, 'node-1'), ca: OTHER_AUTHORITY.cert };
    tls.renew(renewed);
    await test.rejects(
      netWith(MUTUAL).dial(port.listening.address, { timeoutMs: TIMEOUT_MS }),
      'of the authority of before',
    );
    const after = await dial(test, port);
    const other = await listen(test, renewed);
    await dial(test, port, other.net);
    await dial(test, other, port.net);
    before.conn.send(Buffer.from('a line that stands is left alone'));
    after.conn.send(Buffer.from('and a new one works'));
    await until(() => port.ends.filter(({ frames }) => frames.length === 1).length === 2);
  },
);

t.test('ws-net: a dialled node must show a certificate that is trusted', async (test) => {
  const foreign = await listen(test, { ...certify(OTHER_AUTHORITY, 'node-1'), ca: undefined });
  await test.rejects(
    netWith(MUTUAL).dial(foreign.listening.address, { timeoutMs: TIMEOUT_MS }),
    /unable to verify|certificate/,
  );
  const own = await listen(test, { ...certify(AUTHORITY, 'node-1'), ca: undefined });
  const withoutAuthority = netWith({ ...certify(AUTHORITY, 'node-2'), ca: undefined });
  await test.rejects(
    withoutAuthority.dial(own.listening.address, { timeoutMs: TIMEOUT_MS }),
    /unable to verify|certificate/,
  );
  const plain = await listen(test);
  await test.rejects(
    netWith(MUTUAL).dial(plain.listening.address, { timeoutMs: TIMEOUT_MS }),
    /wrong version|EPROTO|hang up|ECONNRESET|disconnected/,
  );
});

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

interface RealNode {
  readonly log: Log;
  readonly transport: Transport;
  readonly closedLinks: number[];
}

async function openNode(
  test: Test,
  node: number,
  shown?: TlsTexts,
  datacenter = 'dc1',
): Promise<RealNode> {
  const log = new Log();
  const closedLinks: number[] = [];
  const transport = await openTransport({
    net: openWsNet({ tls: inUse(shown), clock: systemClock, logger: log.logger }),
    clock: systemClock,
    random: systemRandom,
    logger: log.logger,
    self: {
      node,
      id: systemRandom.uuid(),
      name: `node-${node}`,
      datacenter,
      version: '1.0.0',
      reads: 1,
    },
    uses: () => 1,
    clusterId: () => `cluster of ${datacenter}`,
    clusterKey: new Uint8Array(32).fill(9),
    listen: HERE,
    onMessage: () => undefined,
    onLinkClosed: (closed) => closedLinks.push(closed),
    serve: async ({ payload }) => payload,
  });
  test.teardown(() => transport.close());
  return { log, transport, closedLinks };
}

function isLinked({ transport }: RealNode): boolean {
  return transport.peers().every((peer) => peer.isLinked);
}

for (const tls of [undefined, MUTUAL]) {
  t.test(`transport: three nodes over real ${tls ? 'TLS' : 'sockets'}`, async (test) => {
    const nodes = await Promise.all([1, 2, 3].map((node) => openNode(test, node, tls)));
    const addresses = new Map(nodes.map(({ transport }, place) => [place + 1, transport.address]));
    for (const { transport } of nodes) transport.setPeers(addresses);
    await until(() => nodes.every(isLinked));
    const sizes = [0, 10, 100_000, 5_000_000];
    const answers = await Promise.all(
      nodes.flatMap(({ transport }, place) =>
        [1, 2, 3]
          .filter((to) => to !== place + 1)
          .flatMap((to) =>
            sizes.map((size) =>
              transport.call(to, {
                method: 'echo',
                payload: new Uint8Array(size),
                deadlineMs: TIMEOUT_MS,
                hops: 0,
              }),
            ),
          ),
      ),
    );
    test.same(
      answers.map(({ length }) => length),
      Array(6).fill(sizes).flat(),
    );
    // Garbage at the port of one.
    const { port } = nodes[0]!.transport.address;
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.end(Buffer.alloc(100_000, 0xfe));
    await closed(socket);
    test.ok(nodes.every(isLinked));
    await nodes[2]!.transport.close();
    await until(() => nodes[0]!.closedLinks.length + nodes[1]!.closedLinks.length === 2);
    test.same(
      nodes.map(({ closedLinks }) => closedLinks),
      [[3], [3], []],
    );
  });
}

for (const tls of [undefined, MUTUAL]) {
  t.test(`transport: two datacenters over real ${tls ? 'TLS' : 'sockets'}`, async (test) => {
    const near = await openNode(test, 1, tls);
    const far = await openNode(test, 2, tls, 'dc2');
    const payload = new Uint8Array(300_000).fill(7);
    const request = { method: 'echo', payload, deadlineMs: TIMEOUT_MS, hops: 0 };
    const answers = await Promise.all([
      near.transport.call(far.transport.address, request),
      far.transport.call(near.transport.address, request),
    ]);
    for (const answer of answers) test.equal(Buffer.compare(answer, payload), 0);
    test.same([near.transport.peers(), far.transport.peers()], [[], []], 'they do not link');
  });
}
