// The ceiling of a replicated write: three bare processes behind fastify. The head takes PUT bodies,
// packs all that wait into one LevelDB row and one WebSocket frame, and answers when its own sync and
// one of the two followers' are done. No terms, no state, no rights: what a log costs at least.
//
//   main.js follower FOLDER            prints its port
//   main.js head FOLDER PORT PORT      prints its HTTP port

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import fastify from 'fastify';
import { Packr } from 'msgpackr';
import { WebSocket, WebSocketServer } from 'ws';
import type { Kv } from '../../../cluster/platform/kv.ts';
import { openLevelKv } from '../../../src/platform-node/disk/level-kv.ts';

const packr = new Packr({ useRecords: false });
const [role, folder, ...followerPorts] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: main.js follower|head FOLDER [PORT…]');
const kv = await openLevelKv({
  folder,
  name: 'chain',
  onFatal: (cause) => {
    throw cause;
  },
});

type Batch = readonly [index: number, bodies: readonly Uint8Array[]];

function keyOf(index: number): Uint8Array {
  const key = Buffer.alloc(8);
  key.writeBigUInt64BE(BigInt(index));
  return key;
}

/** Rows in order, one batch in flight; what comes meanwhile shares the next one. */
class RowWriter {
  readonly #kv: Kv;
  readonly #onDurable: (index: number) => void;
  #queue: { readonly index: number; readonly value: Uint8Array }[] = [];
  #isWriting = false;

  constructor(store: Kv, onDurable: (index: number) => void) {
    this.#kv = store;
    this.#onDurable = onDurable;
  }

  add(index: number, value: Uint8Array): void {
    this.#queue.push({ index, value });
    if (!this.#isWriting) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isWriting = true;
    while (this.#queue.length > 0) {
      const rows = this.#queue;
      this.#queue = [];
      await this.#kv.write(
        rows.map(({ index, value }) => ({ type: 'put', key: keyOf(index), value })),
      );
      this.#onDurable(rows.at(-1)?.index ?? 0);
    }
    this.#isWriting = false;
  }
}

async function runFollower(): Promise<void> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0, perMessageDeflate: false });
  await once(server, 'listening');
  server.on('connection', (socket) => {
    const rows = new RowWriter(kv, (index) => socket.send(packr.pack(index)));
    socket.on('message', (frame: Buffer) => {
      const [index] = packr.unpack(frame) as Batch;
      rows.add(index, frame);
    });
  });
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
}

async function runHead(ports: readonly number[]): Promise<void> {
  const durableIndexes = [0, ...ports.map(() => 0)];
  let waiting: { readonly index: number; readonly resolve: () => void }[] = [];
  const onDurable = (place: number, index: number): void => {
    durableIndexes[place] = index;
    const [own = 0, ...others] = durableIndexes;
    const through = Math.min(own, Math.max(...others));
    while (waiting[0] !== undefined && waiting[0].index <= through) waiting.shift()?.resolve();
    if (waiting.length === 0) waiting = [];
  };
  const followers = ports.map((port, place) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false });
    socket.on('message', (frame: Buffer) => onDurable(place + 1, packr.unpack(frame) as number));
    return socket;
  });
  await Promise.all(followers.map((socket) => once(socket, 'open')));
  const rows = new RowWriter(kv, (index) => onDurable(0, index));

  let bodies: Uint8Array[] = [];
  let lastIndex = 0;
  const flush = (): void => {
    const frame = packr.pack([lastIndex, bodies] satisfies Batch);
    bodies = [];
    for (const socket of followers) socket.send(frame);
    rows.add(lastIndex, frame);
  };
  const append = (body: Uint8Array): Promise<void> => {
    if (bodies.length === 0) {
      lastIndex += 1;
      setImmediate(flush);
    }
    bodies.push(body);
    return new Promise((resolve) => waiting.push({ index: lastIndex, resolve }));
  };

  const app = fastify();
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.put('/*', async (request, reply) => {
    await append(request.body as Buffer);
    return reply.type('application/json').send('{"ok":true}');
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  process.stdout.write(`${(app.server.address() as AddressInfo).port}\n`);
}

if (role === 'head') await runHead(followerPorts.map(Number));
else await runFollower();
