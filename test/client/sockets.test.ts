// The client over real sockets: answers and bodies in pieces, and each way to get none.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import {
  type AddressInfo,
  createServer as createNetServer,
  type Server as NetServer,
} from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { ANSWER_BYTES_MAX } from '../../src/client/answer-text.ts';
import { httpTransport } from '../../src/platform-node/net/http-transport.ts';
import { selfSigned } from '../support/certificates.ts';
import { trustWhoever } from '../support/trust-whoever.ts';
import { failureOf, inPieces } from './answers.ts';

t.test(
  'over sockets: an answer of any status comes back, over TCP and a Unix socket',
  async (t) => {
    const echo = createServer((request, response) => {
      response.setHeader('X-Service-Next', 'x');
      response.statusCode = 418;
      request.pipe(response);
    });
    const expected = { status: 418, text: 'grüße', headers: { 'x-service-next': 'x' } };
    const request = { method: 'PUT', headers: { 'x-service-token': 's' }, body: 'grüße' };
    const port = await listen(t, echo);
    const tcp = httpTransport({ timeoutMs: 60_000 });
    t.match(await tcp.send({ ...request, url: `http://127.0.0.1:${port}/v1/x` }), expected);

    // A socket's path may be 107 bytes long at most.
    const folder = mkdtempSync(join(tmpdir(), 'conclave-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    const socketPath = join(folder, 'http.sock');
    const local = createServer(echo.listeners('request')[0] as () => void);
    t.teardown(() => local.close());
    await new Promise<void>((resolve) => local.listen(socketPath, resolve));
    const unix = httpTransport({ timeoutMs: 60_000, socketPath });
    t.match(await unix.send({ ...request, url: 'http://localhost/v1/x' }), expected);
  },
);

t.test('over sockets: each way to get no answer has its name', async (t) => {
  const request = { method: 'GET', headers: {}, body: undefined };
  const failure = (url: string, timeoutMs = 60_000) =>
    failureOf(httpTransport({ timeoutMs }).send({ ...request, url }));
  const silent = await listen(
    t,
    createServer(() => undefined),
  );
  t.equal(await failure(`http://127.0.0.1:${silent}/`, 100), 'timeout');
  t.equal(await failure(`https://127.0.0.1:${silent}/`), 'tls');
  const rude = createNetServer((socket) => socket.destroy());
  t.equal(await failure(`http://127.0.0.1:${await listen(t, rude)}/`), 'broken');
  const half = createServer((_, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('only this', () => response.destroy());
  });
  t.equal(await failure(`http://127.0.0.1:${await listen(t, half)}/`), 'broken');
  const says = (text: string) =>
    createNetServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.end(text));
    });
  const upgrades = says(
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
  );
  t.equal(await failure(`http://127.0.0.1:${await listen(t, upgrades)}/`), 'unreadable');
  const overflows = says(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`);
  t.equal(await failure(`http://127.0.0.1:${await listen(t, overflows)}/`), 'unreadable');
  const cut = says('HTTP/1.1 200 OK\r\nx: y');
  t.equal(await failure(`http://127.0.0.1:${await listen(t, cut)}/`), 'broken');
  const closed = createNetServer();
  const port = await listen(t, closed);
  await new Promise((resolve) => closed.close(resolve));
  t.equal(await failure(`http://127.0.0.1:${port}/`), 'refused');
});

t.test(
  'over sockets: no variable of the environment has a token sent to whoever answers',
  async (t) => {
    const own = selfSigned();
    let asked = 0;
    const stranger = createTlsServer(own, (_, response) => {
      asked += 1;
      response.end('true');
    });
    const url = `https://127.0.0.1:${await listen(t, stranger)}/`;
    trustWhoever(t);
    const request = { method: 'GET', headers: { 'x-service-token': 's' }, body: undefined, url };
    for (const tls of [{}, { ca: own.cert }]) {
      t.equal(await failureOf(httpTransport({ timeoutMs: 60_000, tls }).send(request)), 'tls');
    }
    t.equal(asked, 0);
  },
);

t.test('over sockets: an answer without end is no answer', async (t) => {
  const request = { method: 'GET', headers: {}, body: undefined };
  let sentBytes = 0;
  const endless = createServer((_, response) => {
    const piece = Buffer.alloc(1024 * 1024, ' ');
    const writeOn = (): void => {
      do sentBytes += piece.length;
      while (response.write(piece));
    };
    response.on('drain', writeOn);
    writeOn();
  });
  const url = `http://127.0.0.1:${await listen(t, endless)}/`;
  const transport = httpTransport({ timeoutMs: 60_000 });
  t.equal(await failureOf(transport.send({ ...request, url })), 'unreadable');
  t.ok(sentBytes < 2 * ANSWER_BYTES_MAX, `${sentBytes} bytes were taken`);
  const slow = createServer((_, response) => {
    const timer = setInterval(() => response.write(' '), 20);
    response.on('close', () => clearInterval(timer));
  });
  const heads = createNetServer((socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20);
    socket.on('error', () => undefined).on('close', () => clearInterval(timer));
  });
  for (const server of [slow, heads]) {
    const hurried = httpTransport({ timeoutMs: 60_000, wholeMs: 300 });
    const at = `http://127.0.0.1:${await listen(t, server)}/`;
    t.equal(await failureOf(hurried.send({ ...request, url: at })), 'timeout');
  }
});

t.test('streams: what is long comes and goes in pieces', async (t) => {
  const counting = createServer((request, response) => {
    let sizeBytes = 0;
    request.on('data', (part: Buffer) => {
      sizeBytes += part.length;
    });
    request.on('end', () => {
      response.statusCode = 201;
      response.end(Buffer.alloc(sizeBytes));
    });
  });
  const url = `http://127.0.0.1:${await listen(t, counting)}/`;
  const transport = httpTransport({ timeoutMs: 60_000 });
  const body = inPieces(100, 100_000);
  const answer = await transport.stream({ method: 'PUT', url, headers: {}, body });
  t.equal(answer.status, 201);
  let sizeBytes = 0;
  for await (const chunk of answer.body) sizeBytes += chunk.length;
  t.equal(sizeBytes, 10_000_000);
});

t.test('streams: no more is taken from a body than the server reads', async (t) => {
  let resume = (): void => undefined;
  const slow = createServer((request, response) => {
    request.pause();
    resume = () => void request.resume().on('end', () => response.end());
  });
  const url = `http://127.0.0.1:${await listen(t, slow)}/`;
  const taken = { count: 0 };
  const body = inPieces(1_000, 100_000, taken);
  const transport = httpTransport({ timeoutMs: 60_000 });
  const answer = transport.stream({ method: 'PUT', url, headers: {}, body });
  let before = -1;
  while (before !== taken.count || before === 0) {
    before = taken.count;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  t.ok(taken.count < 500, `${taken.count} of 1000 pieces wait in sockets`);
  resume();
  t.equal((await answer).status, 200);
  t.equal(taken.count, 1_000);
});

t.test(
  'streams: a refusal in the middle of a body is heard, and the rest is not sent',
  async (t) => {
    const refusing = createServer((request, response) => {
      response.statusCode = 403;
      response.write('Permission ');
      request.resume();
      setTimeout(() => response.end('denied'), 200);
    });
    const url = `http://127.0.0.1:${await listen(t, refusing)}/`;
    const taken = { count: 0 };
    const body = inPieces(100_000, 100_000, taken);
    const transport = httpTransport({ timeoutMs: 60_000 });
    const answer = await transport.stream({ method: 'PUT', url, headers: {}, body });
    const before = taken.count;
    const parts: Uint8Array[] = [];
    for await (const part of answer.body) parts.push(part);
    t.same([answer.status, Buffer.concat(parts).toString()], [403, 'Permission denied']);
    t.ok(taken.count <= before + 1, `${taken.count - before} pieces were taken behind the answer`);
  },
);

t.test('over sockets: behind a refusal nobody waits for the rest of a body to go', async (t) => {
  const bytes = 32 * 1024 * 1024;
  let taken = 0;
  let readOn = (): void => undefined;
  let ended = (): void => undefined;
  const isOver = new Promise<void>((resolve) => {
    ended = resolve;
  });
  const refusing = createNetServer((socket) => {
    socket.on('error', () => undefined).on('close', ended);
    readOn = () =>
      void socket.on('data', (piece) => {
        taken += piece.length;
        if (taken >= bytes) ended();
      });
    socket.write('HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\ntoo large');
  });
  const url = `http://127.0.0.1:${await listen(t, refusing)}/`;
  const transport = httpTransport({ timeoutMs: 60_000 });
  const answer = await transport.send({ method: 'PUT', url, headers: {}, body: 'a'.repeat(bytes) });
  t.equal(answer.text, 'too large');
  readOn();
  await isOver;
  t.ok(taken < bytes, `${taken} bytes were sent`);
});

t.test('streams: a body that fails is not sent as if it were whole', async (t) => {
  let isWhole: boolean | undefined;
  let begun = (): void => undefined;
  const hasBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const reading = createServer((request) => {
    begun();
    request.on('error', () => undefined);
    request.on('close', () => {
      isWhole = request.complete;
    });
    request.resume();
  });
  const url = `http://127.0.0.1:${await listen(t, reading)}/`;
  async function* failing(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('half');
    await hasBegun;
    throw new Error('the file is damaged');
  }
  const transport = httpTransport({ timeoutMs: 60_000 });
  const answer = transport.stream({ method: 'PUT', url, headers: {}, body: failing() });
  await t.rejects(answer, { message: 'the file is damaged' });
  while (isWhole === undefined) await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(isWhole, false);
});

t.test('streams: an answer that breaks off, or stops, is no answer', async (t) => {
  const half = createServer((_, response) => {
    response.write('only this', () => response.destroy());
  });
  const silent = createServer((_, response) => void response.write('only this'));
  t.teardown(() => silent.closeAllConnections());
  const failure = async (listener: Server, timeoutMs: number) => {
    const transport = httpTransport({ timeoutMs });
    const url = `http://127.0.0.1:${await listen(t, listener)}/`;
    const request = { method: 'GET', url, headers: {}, body: undefined };
    const { body } = await transport.stream(request);
    const reading = async () => {
      for await (const part of body) t.equal(Buffer.from(part).toString(), 'only this');
    };
    return failureOf(reading());
  };
  t.equal(await failure(half, 60_000), 'broken');
  t.equal(await failure(silent, 2_000), 'timeout');
});

async function listen(t: { teardown(end: () => unknown): unknown }, listener: Server | NetServer) {
  await new Promise<void>((resolve) => {
    listener.listen(0, '127.0.0.1', resolve);
  });
  t.teardown(() => listener.close());
  return (listener.address() as AddressInfo).port;
}
