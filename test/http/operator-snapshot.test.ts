// Archives over real sockets: out at the pace of the reader, in at the pace of the server, and what
// becomes of both when one side fails, lingers or goes away.

import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { mayTakeItsTime } from '../../src/http/limits/slow-body.ts';
import { LIMITS } from '../../src/http/settings.ts';
import {
  type OperatorServer,
  type OperatorServerOptions,
  operatorServer,
} from './operator-support.ts';

interface Owner {
  teardown(action: () => Promise<unknown>): unknown;
}

async function listening(
  owner: Owner,
  options: OperatorServerOptions = {},
): Promise<OperatorServer & { readonly port: number }> {
  const server = await operatorServer(options);
  await server.app.listen({ host: '127.0.0.1', port: 0 });
  owner.teardown(async () => {
    server.app.server.closeAllConnections();
    await server.app.close();
  });
  return Object.assign(server, { port: (server.app.server.address() as AddressInfo).port });
}

const TOKEN = { 'X-Consul-Token': 'root-secret' };

function ask(port: number, method: string, headers: Record<string, string> = {}) {
  const options = { host: '127.0.0.1', port, method, path: '/v1/snapshot', agent: false as const };
  const request = httpRequest({ ...options, headers: { ...TOKEN, ...headers } });
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
  });
  answer.catch(() => undefined);
  return { request, answer };
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const part of incoming) text += String(part);
  return text;
}

/** Looks until it is so; a test that waits in vain is ended by its runner. */
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 5));
}

t.test('clients.md: snapshot save is a stream with its type, index and leader', async (t) => {
  const server = await listening(t);
  const { request, answer } = ask(server.port, 'GET');
  request.end();
  const incoming = await answer;
  t.equal(incoming.statusCode, 200);
  t.match(incoming.headers, {
    'content-type': 'application/x-gzip',
    'x-consul-index': String(server.harness.machine.index()),
    'x-consul-knownleader': 'true',
    'x-consul-lastcontact': '0',
    'x-service-position': /^\d+\.\d+$/,
  });
  t.notOk('content-encoding' in incoming.headers, 'it is compressed already');
  t.equal(await textOf(incoming), 'whole archive');
  await until(() => server.archives.events.includes('close'));
  t.same(server.archives.events, ['save', 'close']);
  t.match(server.metrics.prometheus(), 'method="GET",route="/v1/snapshot",status="200"} 1');
});

t.test('save: takes no more from the state than the reader takes', async (t) => {
  const server = await listening(t);
  let given = 0;
  const chunkCount = 200;
  server.archives.chunks = async function* () {
    for (; given < chunkCount; given += 1) yield Buffer.alloc(256 * 1024, given);
  };
  const { request, answer } = ask(server.port, 'GET');
  request.end();
  const incoming = await answer;
  incoming.pause();
  let before = -1;
  while (before !== given) {
    before = given;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  t.ok(given < chunkCount / 2, `${given} of ${chunkCount} chunks wait in sockets`);
  let sizeBytes = 0;
  for await (const part of incoming) sizeBytes += (part as Buffer).length;
  t.equal(sizeBytes, chunkCount * 256 * 1024);
  t.equal(server.harness.clock.pendingCount, 0, 'no timer is left');
});

t.test('save: a reader that stops reading is cut off, and one that goes is noticed', async (t) => {
  for (const isSilent of [true, false]) {
    const server = await listening(t);
    let isReturned = false;
    server.archives.chunks = async function* () {
      try {
        for (;;) yield Buffer.alloc(256 * 1024);
      } finally {
        isReturned = true;
      }
    };
    const { request, answer } = ask(server.port, 'GET');
    request.end();
    const incoming = await answer;
    incoming.on('error', () => undefined);
    incoming.pause();
    await until(() => server.harness.clock.pendingCount > 0);
    if (isSilent) server.harness.clock.advance(LIMITS.stallMs);
    else incoming.destroy();
    await until(() => server.archives.events.includes('close'));
    t.ok(isReturned, 'the state is let go of');
    incoming.destroy();
  }
});

t.test('save: a failure before the first byte is a refusal', async (t) => {
  const server = await listening(t);
  // biome-ignore lint/correctness/useYield: it fails before there is anything to give.
  server.archives.chunks = async function* () {
    throw new AclError('unavailable', 'the state cannot be read');
  };
  const { request, answer } = ask(server.port, 'GET');
  request.end();
  const incoming = await answer;
  t.same([incoming.statusCode, await textOf(incoming)], [500, 'the state cannot be read']);
  t.same(server.archives.events, ['save', 'close']);
});

t.test('save: a failure in its middle breaks the connection off', async (t) => {
  const server = await listening(t);
  server.archives.chunks = async function* () {
    yield Buffer.from('half');
    throw new Error('the disk says no');
  };
  const { request, answer } = ask(server.port, 'GET');
  request.end();
  await t.rejects(answer.then(textOf), { code: 'ECONNRESET' });
  await until(() => server.archives.events.includes('close'));
  t.match(server.log.at(-1), { level: 'error', message: 'snapshot broken off' });
});

t.test('clients.md: snapshot restore takes the body chunk by chunk', async (t) => {
  const server = await listening(t, { http: { bodyMaxBytes: 1024 } });
  const { request, answer } = ask(server.port, 'PUT');
  request.write('a'.repeat(3_000));
  await until(() => Buffer.concat(server.archives.taken).length === 3_000);
  t.notOk(server.archives.events.includes('finish'), 'the rest is still to come');
  request.end('b');
  const incoming = await answer;
  t.same([incoming.statusCode, await textOf(incoming)], [200, '{"Index":42}']);
  t.equal(Buffer.concat(server.archives.taken).toString(), `${'a'.repeat(3_000)}b`);
  t.same(server.archives.events, ['begin', 'finish', 'abandon'], 'another one may begin');
  t.equal(server.harness.clock.pendingCount, 0, 'no timer is left');
});

t.test('restore: an archive that is too large is refused, announced or not', async (t) => {
  const server = await listening(t, { http: { snapshotMaxBytes: 10_000 } });
  const announced = ask(server.port, 'PUT', { 'Content-Length': '10001' });
  announced.request.flushHeaders();
  const refused = await announced.answer;
  t.same(
    [refused.statusCode, await textOf(refused)],
    [413, 'the archive is larger than 10000 bytes'],
  );
  t.same(server.archives.events, [], 'nothing was begun');
  announced.request.destroy();
  const counted = ask(server.port, 'PUT');
  counted.request.write('a'.repeat(10_000));
  counted.request.write('a');
  t.equal((await counted.answer).statusCode, 413);
  t.same(server.archives.events, ['begin', 'abandon']);
  counted.request.destroy();
});

t.test('restore: what is wrong with the archive is told while it is still sent', async (t) => {
  const server = await listening(t);
  server.archives.add = async () => {
    throw new AclError('malformed', 'this is no archive: it begins with other bytes');
  };
  const { request, answer } = ask(server.port, 'PUT');
  request.write('x'.repeat(100_000));
  const incoming = await answer;
  const text = 'this is no archive: it begins with other bytes';
  t.same([incoming.statusCode, await textOf(incoming)], [400, text]);
  t.same(server.archives.events, ['begin', 'abandon']);
  request.destroy();
});

t.test('restore: what is left of an archive that was refused is taken, for a while', async (t) => {
  const server = await listening(t);
  server.archives.add = async () => {
    throw new AclError('malformed', 'this is no archive: it begins with other bytes');
  };
  const connections = () =>
    new Promise<number>((resolve) =>
      server.app.server.getConnections((_, count) => void resolve(count)),
    );
  const half = 'x'.repeat(300_000);
  const head = 'PUT /v1/snapshot HTTP/1.1\r\nHost: x\r\nX-Consul-Token: root-secret\r\n';
  const begun = `${head}Content-Length: 600000\r\n\r\n${half}`;
  const answered = async (socket: Socket, text: string): Promise<void> => {
    socket.write(text);
    const [answer] = (await once(socket, 'data')) as [Buffer];
    t.match(String(answer), /^HTTP\/1.1 400/);
  };
  const refused = async (): Promise<Socket> => {
    const socket = connect(server.port, '127.0.0.1').on('error', () => undefined);
    await answered(socket, begun);
    return socket;
  };
  (await refused()).end(half);
  while ((await connections()) > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const more = await refused();
  await answered(more, `${half}${begun}`);
  more.write(half);
  await until(() => server.harness.clock.pendingCount === 0);
  more.destroy();
  const silent = await refused();
  const isClosed = new Promise((resolve) => silent.once('close', resolve));
  server.harness.clock.advance(LIMITS.stallMs);
  await isClosed;
});

t.test('restore: a refusal at the end keeps its status', async (t) => {
  const server = await listening(t);
  server.archives.finish = () =>
    Promise.reject(new AclError('outcome-unknown', 'whether it was restored is not known'));
  const { request, answer } = ask(server.port, 'PUT', { 'X-Service-Client': 'test' });
  request.removeHeader('X-Consul-Token');
  request.setHeader('X-Service-Token', 'root-secret');
  request.end('x');
  t.equal((await answer).statusCode, 504);
  t.same(server.archives.events, ['begin', 'finish', 'abandon']);
});

t.test('restore: a sender that goes, or sends no more, leaves everything as it was', async (t) => {
  for (const isSilent of [true, false]) {
    const server = await listening(t);
    const { request } = ask(server.port, 'PUT');
    request.write('half');
    await until(() => server.archives.taken.length > 0 && server.harness.clock.pendingCount > 0);
    if (isSilent) server.harness.clock.advance(LIMITS.stallMs);
    else request.destroy();
    await until(() => server.archives.events.includes('abandon'));
    t.same(server.archives.events, ['begin', 'abandon']);
    request.destroy();
  }
});

t.test('restore: the time limit of whole requests is not for archives', async (t) => {
  const server = await listening(t);
  const sockets: object[] = [];
  server.app.server.on('connection', (socket) => sockets.push(socket));
  const { request, answer } = ask(server.port, 'PUT');
  request.write('slow');
  await until(() => server.archives.taken.length > 0);
  // What Node's own watch over slow requests says to the server.
  const tooSlow = Object.assign(new Error('timeout'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
  server.app.server.emit('clientError', tooSlow, sockets[0]);
  request.end(' but whole');
  t.equal((await answer).statusCode, 200);
  t.equal(Buffer.concat(server.archives.taken).toString(), 'slow but whole');
  t.notOk(mayTakeItsTime(sockets[0] as object), 'behind it the connection has no more time');

  const other = httpRequest({
    host: '127.0.0.1',
    port: server.port,
    method: 'PUT',
    path: '/v1/acl/token',
  });
  const cut = new Promise((resolve) => {
    other.once('error', resolve);
    other.once('response', ({ statusCode }) => resolve(statusCode));
  });
  other.write('{');
  await until(() => sockets.length === 2);
  server.app.server.emit('clientError', tooSlow, sockets[1]);
  t.equal(await cut, 408, 'everything else keeps to it');
});

t.test('restore: without the right not a byte is taken', async (t) => {
  const server = await listening(t);
  const { request, answer } = ask(server.port, 'PUT', { 'X-Consul-Token': 'anonymous' });
  request.write('x'.repeat(100_000));
  t.equal((await answer).statusCode, 403);
  request.end('x');
  t.same([server.archives.events, server.archives.taken], [[], []]);
});
