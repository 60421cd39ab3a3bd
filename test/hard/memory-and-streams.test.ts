// Long lists, slow readers, readers that go away, waiters by the hundred: what they cost, and that
// everything they held is given back.

import { type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import type { Kv, KvRange, KvReader, KvRow } from '../../cluster/platform/kv.ts';
import type { SecretId } from '../../src/acl/ids.ts';
import { openNode, type RunningNode } from '../../src/node/node.ts';
import { openSystemPlatform } from '../../src/platform-node/system-platform.ts';
import { type Call, PLAIN_CALL } from '../../src/service/call.ts';
import { ask, askJson, MANAGEMENT, sendRaw } from './asking.ts';
import { type Owner, startServer, temporaryFolder } from './server-process.ts';
import { settingsOn } from './settings-on.ts';

const TOKENS = 30_000;
const BUILT_IN_TOKENS = 2;
const DESCRIPTION = 'd'.repeat(600);
/** A token of the list is larger than its description. */
const LIST_BYTES_MIN = TOKENS * DESCRIPTION.length;
const SLOW_READERS = 6;

const CALL: Call = { ...PLAIN_CALL, secret: MANAGEMENT as SecretId };

/** What readers of the stores hold open at the moment. */
class Held {
  count = 0;

  /** The store, with everything that is opened on it counted. */
  over(kv: Kv): Kv {
    return {
      get: (key) => kv.get(key),
      rows: (range) => this.#rows(kv, range),
      write: (writes) => kv.write(writes),
      compact: (range) => kv.compact(range),
      close: () => kv.close(),
      snapshot: () => {
        const snapshot = kv.snapshot();
        this.count += 1;
        return {
          get: (key) => snapshot.get(key),
          rows: (range) => this.#rows(snapshot, range),
          close: async () => {
            await snapshot.close();
            this.count -= 1;
          },
        };
      },
    };
  }

  #rows(reader: KvReader, range: KvRange): AsyncIterable<readonly KvRow[]> {
    const held = this;
    // Counted from the call on: an iterator that nobody ever starts is never closed either.
    held.count += 1;
    const rows = reader.rows(range);
    return (async function* () {
      try {
        yield* rows;
      } finally {
        held.count -= 1;
      }
    })();
  }
}

async function openOn(dataFolder: string, held: Held): Promise<RunningNode> {
  const settings = settingsOn(dataFolder);
  const platform = openSystemPlatform(settings);
  const openKv: typeof platform.openKv = async (name, generation, onFatal) =>
    held.over(await platform.openKv(name, generation, onFatal));
  return openNode({ settings, platform: { ...platform, openKv }, version: 'test' });
}

/** Begins a request; resolves with the answer's head, its body unread. */
function begin(port: number, path: string): Promise<IncomingMessage> {
  const headers = { 'X-Service-Token': MANAGEMENT };
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, path, headers, agent: false }, resolve)
      .on('error', reject)
      .end();
  });
}

async function sizeOf(message: IncomingMessage): Promise<number> {
  let sizeBytes = 0;
  for await (const piece of message) sizeBytes += (piece as Buffer).length;
  return sizeBytes;
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits until `isSo`; gives up, with false, after a few seconds. */
async function soon(isSo: () => boolean | Promise<boolean>): Promise<boolean> {
  for (let turn = 0; turn < 1_200; turn += 1) {
    if (await isSo()) return true;
    await pause(50);
  }
  return false;
}

/** A folder with many tokens, made once for all tests. */
const filled = join(temporaryFolder(t), 'filled');
{
  const { operations, close } = await openOn(filled, new Held());
  let left = TOKENS;
  const createSome = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await operations.run('token.create', { draft: { description: DESCRIPTION } }, CALL);
    }
  };
  await Promise.all(Array.from({ length: 512 }, createSome));
  await close();
}

t.test('lists: slow readers of a long list cost next to nothing, and get all of it', async (t) => {
  // A heap without slack: what is held shows, what is garbage does not.
  const nodeOptions = ['--max-old-space-size=96', '--max-semi-space-size=2'];
  const server = await startServer(t, { dataFolder: filled, nodeOptions });
  const fastBytes = await sizeOf(await begin(server.port, '/v1/acl/tokens'));
  t.ok(fastBytes > LIST_BYTES_MIN, `${fastBytes} bytes`);
  const beforeMib = server.anonymousMib();
  const readers = await Promise.all(
    Array.from({ length: SLOW_READERS }, () => begin(server.port, '/v1/acl/tokens')),
  );
  await pause(1_000);
  const grownMib = server.anonymousMib() - beforeMib;
  const allMib = (SLOW_READERS * fastBytes) / 1024 / 1024;
  t.ok(grownMib < allMib / 4, `${SLOW_READERS} readers of ${allMib} MiB: ${grownMib} MiB`);
  const self = await ask(server.port, { path: '/v1/acl/token/self' });
  t.equal(self.status, 200, 'others are served meanwhile');
  // Each reader sees the tokens of its beginning, whatever happens before its end.
  await askJson(server.port, { method: 'PUT', path: '/v1/acl/token', body: {} });
  const first = readers.shift();
  first?.setEncoding('utf8');
  let text = '';
  for await (const piece of first ?? []) text += piece;
  t.equal((JSON.parse(text) as unknown[]).length, TOKENS + BUILT_IN_TOKENS);
  for (const reader of readers) t.equal(await sizeOf(reader), fastBytes);
  await server.end('SIGTERM');
});

t.test('lists: everything that a reader holds is given back, however it ends', async (t) => {
  const held = new Held();
  const node = await openOn(filled, held);
  t.teardown(() => node.close());
  const port = node.addresses[0]?.port ?? 0;
  await askJson(port, { method: 'PUT', path: '/v1/acl/policy', body: { Name: 'p' } });
  const isFree = () => held.count === 0;
  t.ok(await soon(isFree), 'nothing is held at first');
  for (const path of ['/v1/acl/tokens', '/v1/acl/tokens?pretty', '/v1/acl/tokens?ns=*']) {
    const reader = await begin(port, path);
    await pause(100);
    t.ok(held.count > 0, `a reader of ${path} holds something`);
    reader.destroy();
    t.ok(await soon(isFree), `${held.count} held after it went away`);
  }
  const lists = ['tokens', 'policies', 'roles', 'auth-methods', 'binding-rules'];
  for (const path of [
    ...lists.map((name) => `/v1/acl/${name}?limit=1`),
    ...lists.map((name) => `/v1/acl/${name}?limit=1&ns=*`),
    ...lists.map((name) => `/v1/acl/${name}?index=99999999&wait=10ms&limit=3`),
    '/v1/acl/tokens?servicename=web',
    '/v1/acl/tokens?servicename=web&ns=*',
    '/v1/acl/roles?policy=00000000-0000-0000-0000-000000000001',
    '/v1/acl/binding-rules?authmethod=m&ns=*',
    '/v1/namespaces',
    '/v1/acl/tokens?limit=5&next=!',
    '/v1/acl/tokens?limit=5&next=YQ',
    '/v1/acl/tokens?ns=nowhere',
  ]) {
    await ask(port, { path });
    await ask(port, { path, secret: 'unknown' });
    t.ok(await soon(isFree), `${held.count} held after ${path}`);
  }
});

t.test(
  'waiters: one write wakes hundreds, each with an answer, and leaves none behind',
  async (t) => {
    const server = await startServer(t, {
      dataFolder: join(temporaryFolder(t), 'data'),
      flags: { 'limits-http-max-conns-per-client': '0' },
    });
    const { port } = server;
    const put = (Name: string): Promise<{ readonly ID: string; readonly ModifyIndex: number }> =>
      askJson(port, { method: 'PUT', path: '/v1/acl/policy', body: { Name } });
    const [watched, other] = [await put('watched'), await put('other')];
    const index = other.ModifyIndex;
    const waiting = async (): Promise<number> => {
      const { text } = await ask(port, { path: '/v1/agent/metrics?format=prometheus' });
      return Number(/^conclave_http_blocking_queries(?:\{.*\})? (\d+)/m.exec(text)?.[1]);
    };
    const wait = (path: string) => begin(port, `/v1/acl/${path}?index=${index}&wait=60s`);
    const lists = Array.from({ length: 300 }, () => wait('policies'));
    const singles = Array.from({ length: 200 }, () => wait(`policy/${watched.ID}`));
    const others = Array.from({ length: 50 }, () => wait(`policy/${other.ID}`));
    t.ok(await soon(async () => (await waiting()) === 550), `${await waiting()} wait`);
    const path = `/v1/acl/policy/${watched.ID}`;
    await askJson(port, { method: 'PUT', path, body: { Name: 'watched', Description: 'new' } });
    for (const answer of await Promise.all([...lists, ...singles])) {
      if (answer.statusCode !== 200) t.fail(`${answer.statusCode}`);
      if (Number(answer.headers['x-service-index']) <= index) t.fail('the index is new');
      await sizeOf(answer);
    }
    t.ok(await soon(async () => (await waiting()) === 50), 'who waits for another object goes on');
    const ending = server.end('SIGTERM');
    for (const answer of await Promise.all(others)) {
      t.equal(answer.statusCode, 200);
      await sizeOf(answer);
    }
    t.same(await ending, { code: 0, signal: null }, 'a stop answers all who still wait');
  },
);

function connected(owner: Owner, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket));
    socket.on('error', reject);
    owner.teardown(() => {
      socket.destroy();
      return undefined;
    });
  });
}

t.test('connections: who sends ahead and reads nothing costs next to nothing', async (t) => {
  const nodeOptions = ['--max-old-space-size=96', '--max-semi-space-size=2'];
  const dataFolder = join(temporaryFolder(t), 'data');
  const server = await startServer(t, { dataFolder, nodeOptions });
  const beforeMib = server.anonymousMib();
  for (const path of ['/v1/openapi.json', '/v1/acl/token/self?index=99999999', '/livez']) {
    const flooding = await Promise.all(Array.from({ length: 20 }, () => connected(t, server.port)));
    for (const socket of flooding) {
      // Who is cut off hears of it when he writes on.
      socket.on('error', () => undefined).pause();
      for (let turn = 0; turn < 3; turn += 1) {
        socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`.repeat(3_000));
      }
    }
    await pause(300);
    const self = await ask(server.port, { path: '/livez', secret: '' });
    t.equal(self.status, 200, 'others are served meanwhile');
    for (const socket of flooding) socket.destroy();
  }
  const grownMib = server.anonymousMib() - beforeMib;
  t.ok(grownMib < 96, `grown by ${grownMib} MiB`);
  await server.end('SIGTERM');
});

t.test('connections: a body costs its bytes, in however many pieces it comes', async (t) => {
  const nodeOptions = ['--max-old-space-size=96', '--max-semi-space-size=2'];
  const dataFolder = join(temporaryFolder(t), 'data');
  const server = await startServer(t, { dataFolder, nodeOptions });
  const beforeMib = server.anonymousMib();
  const head = (line: string) =>
    `${line} HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${MANAGEMENT}\r\n`;
  const begun = `${head('PUT /v1/acl/policy')}Transfer-Encoding: chunked\r\n\r\n`;
  // What waits for its turn behind a blocking query is held as well.
  const ahead = `${head('GET /v1/acl/policies?index=99999999&wait=60s')}\r\n${begun}`;
  const sockets: Socket[] = [];
  for (const first of [begun, begun, ahead, ahead]) {
    const socket = await connected(t, server.port);
    socket.on('error', () => undefined);
    socket.write(first);
    for (let turn = 0; turn < 30; turn += 1) socket.write('1\r\n \r\n'.repeat(10_000));
    sockets.push(socket);
  }
  await pause(500);
  t.equal((await ask(server.port, { path: '/livez', secret: '' })).status, 200);
  const grownMib = server.anonymousMib() - beforeMib;
  t.ok(grownMib < 64, `grown by ${grownMib} MiB`);
  const [ended] = sockets;
  const answer = new Promise<string>((resolve) => {
    ended?.once('data', (piece) => resolve(String(piece)));
  });
  for (const char of '{"Name": "in-pieces"}') ended?.write(`1\r\n${char}\r\n`);
  ended?.write('0\r\n\r\n');
  t.match(await answer, /^HTTP\/1\.1 200 [\s\S]*"Name":"in-pieces"/);
  for (const socket of sockets) socket.destroy();
  await server.end('SIGTERM');
});

t.test(
  'connections: bodies that are sent ahead cost their bytes, however many they are',
  async (t) => {
    const nodeOptions = ['--max-old-space-size=128', '--max-semi-space-size=2'];
    const server = await startServer(t, {
      dataFolder: join(temporaryFolder(t), 'data'),
      nodeOptions,
    });
    const beforeMib = server.anonymousMib();
    const trailers = Array.from({ length: 1_000 }, (_, place) => `${10 + (place % 90)}:\r\n`);
    const first = 'GET /v1/acl/token/self?min-position=1.99999999 HTTP/1.1\r\nHost: x\r\n\r\n';
    const head = 'PUT /v1/acl/policy HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
    const ahead = [
      `${head}${'1\r\n \r\n'.repeat(60)}0\r\n\r\n`.repeat(500),
      `${head}0\r\n${trailers.join('')}\r\n`.repeat(380),
    ];
    const sockets: Socket[] = [];
    for (let count = 0; count < 40; count += 1) {
      const socket = await connected(t, server.port);
      socket.on('error', () => undefined);
      socket.write(first + ahead[count % 2]);
      sockets.push(socket);
    }
    await pause(1_000);
    t.equal((await ask(server.port, { path: '/livez', secret: '' })).status, 200);
    const grownMib = server.anonymousMib() - beforeMib;
    t.ok(grownMib < 140, `grown by ${grownMib} MiB`);
    for (const socket of sockets) socket.destroy();
    await server.end('SIGTERM');
  },
);

t.test('connections: beyond the limit they are refused, and room is made again', async (t) => {
  const server = await startServer(t, { dataFolder: join(temporaryFolder(t), 'data') });
  const held = await Promise.all(Array.from({ length: 200 }, () => connected(t, server.port)));
  for (let turn = 0; turn < 50; turn += 1) {
    const answer = await sendRaw(server.port, 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n');
    t.match(answer, /^(HTTP\/1\.1 429 [\s\S]*too many connections|$)/);
  }
  held.pop()?.destroy();
  const isServed = async (): Promise<boolean> => {
    const bytes = 'GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    return (await sendRaw(server.port, bytes)).startsWith('HTTP/1.1 200');
  };
  t.ok(await soon(isServed), 'one that closes makes room for one');
  const half = await connected(t, server.port);
  half.write('PUT /v1/acl/token HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{');
  const ending = await server.end('SIGTERM');
  t.same(ending, { code: 0, signal: null }, 'silence and half a request do not hold a stop');
});
