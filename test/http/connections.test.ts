// Connections of clients: requests in their turn, garbage, limits.

import { type AddressInfo, connect, type Socket } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { HeldRequests } from '../../src/http/limits/held-requests.ts';
import { LIMITS } from '../../src/http/settings.ts';
import { bytesOf, found, get, inTurn, listening, manyTokens, turn } from './connection-cases.ts';
import {
  listOf,
  policyView,
  readMeta,
  type Server,
  server,
  tokenView,
  WRITE_META,
} from './support.ts';

/** Sends text, and gives what came back until the server closed or `isEnough` says so. */
function exchange(
  port: number,
  text: string,
  isEnough?: (answer: string) => boolean,
): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    let answer = '';
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => {
      answer += part;
      if (isEnough?.(answer) === true) socket.destroy();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}

/** Whether no blocking query waits. */
function isQuiet({ metrics }: Server): boolean {
  return /blocking_queries\{listener="http"\} 0/.test(metrics.prometheus());
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
}

t.test('sockets: pipelined requests are answered in their order', async (t) => {
  const made = server({
    'policy.read': ({ id }) => {
      const result = { value: policyView({ name: id }), meta: readMeta(2) };
      return id === 'a' ? turn().then(() => result) : result;
    },
  });
  const port = await listening(t, made);
  const asks = ['a', 'b', 'c'].map((id) => `GET /v1/acl/policy/${id} HTTP/1.1\r\nHost: x\r\n\r\n`);
  const last = 'GET /v1/acl/policy/d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const answer = await exchange(port, asks.join('') + last);
  t.same(
    [...answer.matchAll(/"Name":"(\w)"/g)].map(([, name]) => name),
    ['a', 'b', 'c', 'd'],
  );
});

t.test('sockets: a request is begun when the answer before it is out', async (t) => {
  let end: () => void = () => undefined;
  const isDone = new Promise<void>((resolve) => {
    end = resolve;
  });
  const made = server({
    'policy.create': () => isDone.then(() => ({ value: policyView(), meta: WRITE_META })),
    'policy.read': ({ id }) => ({ value: policyView({ name: id }), meta: readMeta(2) }),
  });
  const port = await listening(t, made);
  const write = 'PUT /v1/acl/policy HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}';
  const read = 'GET /v1/acl/policy/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const answer = exchange(port, write + read);
  while (made.operations.calls.length === 0) await turn();
  const other = await get(port, '/v1/acl/policy/c');
  t.equal(other.statusCode, 200, 'other connections are served meanwhile');
  const names = () => made.operations.calls.map(({ name }) => name);
  t.same(names(), ['policy.create', 'policy.read']);
  end();
  t.match(await answer, /"Name":"reader"[\s\S]*"Name":"b"/);
  t.same(names(), ['policy.create', 'policy.read', 'policy.read']);
});

const BLOCKING = 'GET /v1/acl/policy/x?index=10 HTTP/1.1\r\nHost: x\r\n\r\n';

const SHORT = 'GET /livez HTTP/1.1\r\nHost:\r\n\r\n';

t.test('sockets: as many requests as may wait are all answered, again and again', async (t) => {
  const made = server({ 'policy.read': inTurn(found(10), found(11)) });
  const port = await listening(t, made);
  const long = SHORT.replace('Host:', `Host:\r\nA: ${'a'.repeat(3_000)}`);
  const asks = BLOCKING + long.repeat(LIMITS.sentAheadMax);
  const socket = connect(port, '127.0.0.1', () => socket.write(asks));
  (await made.operations.wait(1)).end();
  const perRound = LIMITS.sentAheadMax + 1;
  let answer = '';
  let rounds = 0;
  for await (const part of socket.setEncoding('latin1')) {
    answer += part;
    const count = [...answer.matchAll(/HTTP\/1.1 200 OK/g)].length;
    if (count < (rounds + 1) * perRound) continue;
    rounds += 1;
    if (rounds === 3) break;
    socket.write(asks);
  }
  t.equal(rounds, 3);
});

t.test('sockets: who sends ahead without end is cut off', async (t) => {
  const head = `GET /livez HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(600 * 1024)}\r\n\r\n`;
  const text = 'a'.repeat(12_000);
  const login = `POST /v1/acl/login HTTP/1.1\r\nHost: x\r\nContent-Length: 12000\r\n\r\n${text}`;
  const expects = SHORT.replace('Host:', 'Host:\r\nExpect: x');
  const crumbs = `\r\n${'a:\r\n'.repeat(900)}\r\n`;
  const tooMany = LIMITS.sentAheadMax + 1;
  const cases: [says: string, sent: string][] = [
    ['one request more than may wait', BLOCKING + SHORT.repeat(tooMany)],
    ['heads that are too large together', BLOCKING + head.repeat(4)],
    ['bodies that are too large together', BLOCKING + login.repeat(200)],
    ['headers of a few characters', BLOCKING + SHORT.replace('\r\n\r\n', crumbs).repeat(40)],
    ['requests without Host', BLOCKING + 'GET / HTTP/1.1\r\n\r\n'.repeat(tooMany)],
    ['expectations that nobody meets', BLOCKING + expects.repeat(tooMany)],
    ['none is begun behind the end', BLOCKING.replace('?index=10', '').repeat(tooMany + 1)],
  ];
  for (const [says, sent] of cases) {
    const made = server({ 'policy.read': () => found(10) });
    const port = await listening(t, made);
    t.notMatch(await exchange(port, sent), /HTTP[\s\S]*HTTP/, says);
    t.equal(made.operations.calls.length, 1, says);
    t.match(made.logger.lines[0], { level: 'debug', message: 'too many requests sent ahead' });
    t.equal((await get(port, '/livez')).statusCode, 200, 'the server is as before');
  }
});

t.test('sockets: what cannot be met is refused in its turn', async (t) => {
  const made = server({ 'policy.read': inTurn(found(10), found(11)) });
  const port = await listening(t, made);
  const first = exchange(port, `${BLOCKING}GET /livez HTTP/1.1\r\n\r\n${SHORT}`);
  (await made.operations.wait(1)).end();
  t.match(await first, /^HTTP\/1.1 200 [\s\S]*"Name"[\s\S]*HTTP\/1.1 400 [\s\S]*Connection: close/);
  const expects = 'GET /livez HTTP/1.1\r\nHost: x\r\nExpect: x\r\n\r\n';
  const second = await exchange(port, SHORT + expects + SHORT);
  t.match(second, /^HTTP\/1.1 200 [\s\S]*ok\nHTTP\/1.1 417 [^{]*\r\n\r\n$/);
});

t.test('sockets: what a client has sent ahead is forgotten when it goes', async (t) => {
  const made = server({ 'policy.read': () => found(10), 'token.list': () => manyTokens(9).list() });
  const port = await listening(t, made);
  const list = 'GET /v1/acl/tokens HTTP/1.1\r\nHost: x\r\n\r\n';
  const half = 'POST /v1/acl/login HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{';
  for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
    const socket: Socket = connect(port, '127.0.0.1', () => {
      socket.write(BLOCKING.repeat(3) + list + half);
    });
    const before = made.operations.calls.length;
    await made.operations.wait(before + 1);
    const isClosed = new Promise((resolve) => socket.once('close', resolve));
    socket.resume()[leave]();
    await isClosed;
    while (!isQuiet(made)) await turn();
    await new Promise((resolve) => setTimeout(resolve, 20));
    t.equal(made.operations.calls.length, before + 1, leave);
    t.equal(made.clock.pending.size, 0, 'no answer waits for a reader');
  }
  t.same(made.logger.lines, [], 'and none of it is a fault of ours');
});

t.test('sockets: garbage, aborted uploads and lying lengths do no harm', async (t) => {
  const made = server({ 'policy.list': () => listOf([]) });
  const port = await listening(t, made);
  t.match(await exchange(port, 'hello\r\n\r\n'), 'HTTP/1.1 400 Bad Request');
  t.match(await exchange(port, 'GET /\u0001 HTTP/1.1\r\nHost: x\r\n\r\n'), 'HTTP/1.1 400');
  t.match(await exchange(port, 'GET /v1/acl/policies HTTP/1.1\r\n\r\n'), 'HTTP/1.1 400', 'no Host');
  const huge = `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(1100 * 1024)}\r\n\r\n`;
  t.match(await exchange(port, huge), 'HTTP/1.1 431');
  await new Promise<void>((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(
        'PUT /v1/acl/policy HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"Name"',
        () => socket.destroy(),
      );
    });
    socket.on('close', () => resolve());
  });
  const chunked =
    'PUT /v1/acl/policy HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
  t.match(await exchange(port, chunked), 'HTTP/1.1 400');
  const waiting = await listening(t, server({ 'policy.read': () => found(10) }));
  const behind = await exchange(waiting, `${BLOCKING}hello\r\n\r\n`);
  t.equal(behind, '', 'a refusal would be read as the answer to what came before');
  t.equal(made.app.server.requestTimeout, LIMITS.requestTimeoutMs, 'nor does who sends slowly');
  t.equal((await get(port, '/v1/acl/policies')).statusCode, 200, 'the server is as before');
  t.same(
    made.operations.calls.map(({ name }) => name),
    ['policy.list'],
  );
  t.same(made.logger.lines, []);
});

t.test(
  'sockets: a method that the router has never heard of is refused as any other',
  async (t) => {
    const made = server({});
    const port = await listening(t, made);
    t.match(await exchange(port, 'PRI /x\r\n\r\n'), /^HTTP\/1.1 404 [\s\S]*Invalid URL path/);
    const known = await exchange(port, 'PRI /v1/acl/tokens\r\n\r\n');
    t.match(known, /^HTTP\/1.1 405 [\s\S]*Allow: OPTIONS,GET\r\n[\s\S]*method PRI not allowed/);
    t.same(made.logger.lines, []);
  },
);

t.test('sockets: a body beyond the limit is refused with 413', async (t) => {
  const made = server({}, { bodyMaxBytes: 1000 });
  const port = await listening(t, made);
  const head = 'PUT /v1/acl/policy HTTP/1.1\r\nHost: x\r\n';
  const known = await exchange(port, `${head}Content-Length: 1001\r\n\r\n{`);
  t.match(known, 'HTTP/1.1 413');
  t.match(known, 'the body is larger than 1000 bytes');
  const part = `3e9\r\n${'x'.repeat(1001)}\r\n`;
  t.match(await exchange(port, `${head}Transfer-Encoding: chunked\r\n\r\n${part}`), 'HTTP/1.1 413');
  t.same(made.operations.calls, []);
});

t.test('sockets: a client that goes away ends its wait', async (t) => {
  const made = server({ 'policy.read': () => found(10) });
  const port = await listening(t, made);
  const socket: Socket = connect(port, '127.0.0.1', () => {
    socket.write('GET /v1/acl/policy/x?index=10 HTTP/1.1\r\nHost: x\r\n\r\n');
  });
  await made.operations.wait(1);
  t.notOk(isQuiet(made));
  socket.destroy();
  while (!isQuiet(made)) await turn();
  t.equal(made.operations.calls.length, 1, 'nobody is there to be answered');
});

t.test('sockets: of a write it can be asked whether its client is gone', async (t) => {
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const made = server({
    'policy.delete': async () => {
      await held;
      return { value: true, meta: WRITE_META };
    },
  });
  const port = await listening(t, made);
  const socket: Socket = connect(port, '127.0.0.1', () => {
    socket.write(
      'DELETE /v1/acl/policy/61cd10ca-7a94-47d8-b245-b7d78c1826a8 HTTP/1.1\r\nHost: x\r\n\r\n',
    );
  });
  await until(() => made.operations.calls.length === 1);
  const [{ isGone } = {}] = made.operations.calls;
  t.equal(isGone?.(), false);
  socket.destroy();
  await until(() => isGone?.() === true);
  release();
});

t.test('sockets: one client may hold so many connections', async (t) => {
  const made = server({ 'policy.list': () => listOf([]) }, { connectionsPerClientMax: 2 });
  const port = await listening(t, made);
  const ask = 'GET /v1/acl/policies HTTP/1.1\r\nHost: x\r\n\r\n';
  const held = [1, 2].map(() => connect(port, '127.0.0.1'));
  await Promise.all(
    held.map((socket) => new Promise((resolve) => socket.once('connect', resolve))),
  );
  const other = await listening(t, { ...made, app: made.another() });
  for (const each of [port, other])
    t.match(await exchange(each, ''), 'HTTP/1.1 429 Too Many Requests');
  const why = '2 of this address are open (limits.http_max_conns_per_client)';
  const told = made.logger.lines.filter((line) => line.fields.why === why);
  t.match(told, [{ level: 'warn', fields: { remote: /^127\.0\.0\.1:\d+$/ } }]);
  for (const each of [port, other, port]) await exchange(each, ask);
  t.same(made.operations.calls, [], 'what they ask for is not begun');
  held[0]?.destroy();
  const isAnswered = (answer: string) => answer.endsWith('[]');
  for (;;) {
    const answer = await exchange(port, ask, isAnswered);
    if (answer.includes('HTTP/1.1 200')) break;
    t.match(answer, /^(HTTP\/1.1 429|$)/);
  }
  held[1]?.destroy();
});

t.test('headers: of one that comes several times the first line counts', async (t) => {
  const { app, operations } = server({ 'policy.read': () => found(10) });
  await app.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const secretOf = async (headers: Record<string, string | string[]>): Promise<unknown> => {
    await bytesOf(await get(port, '/v1/acl/policy/x', headers));
    return operations.calls.at(-1)?.call.secret;
  };
  t.equal(await secretOf({ 'X-Consul-Token': ['one', 'other'] }), 'one');
  t.equal(await secretOf({ 'X-Service-Token': ['same', 'same'], 'X-Consul-Token': 'c' }), 'same');
  t.equal(await secretOf({ 'X-Consul-Token': ['', 'other'], Authorization: 'Bearer b' }), 'b');
  t.equal(await secretOf({ 'X-Consul-Token': 'with, a comma' }), 'with, a comma');
});

t.test('headers: a request that has more than are looked at is refused', async (t) => {
  const made = server({
    'policy.read': () => found(10),
    'token.clone': () => Promise.resolve({ value: tokenView(), meta: WRITE_META }),
  });
  const port = await listening(t, made);
  const others = (count: number) => 'a: b\r\n'.repeat(count);
  const ask = (line: string, before: number, behind: string) =>
    `${line} HTTP/1.1\r\n${others(before)}${behind}\r\n`;
  const isAnswered = (answer: string) => /\r\n\r\n[\s\S]/.test(answer);
  const read = 'GET /v1/acl/policy/x';
  const last = 'Host: x\r\nX-Service-Token: secret\r\n';
  const most = await exchange(port, ask(read, LIMITS.headersMax - 2, last), isAnswered);
  t.match(most, /^HTTP\/1.1 200 /);
  t.equal(made.operations.calls.at(-1)?.call.secret, 'secret', 'the last one counts');
  const clone = 'PUT /v1/acl/token/x/clone';
  const body = '{"Description":"d"}';
  const length = `Host: x\r\nContent-Length: ${body.length}\r\n`;
  for (const before of [LIMITS.headersMax - 1, LIMITS.headersMax, LIMITS.headersMax * 3]) {
    for (const text of [ask(read, before, last), ask(clone, before, length) + body]) {
      t.match(await exchange(port, text), /^HTTP\/1.1 431 [^{]*Connection: close[^{]*\r\n\r\n$/);
    }
  }
  t.equal(made.operations.calls.length, 1, 'none of it is done without them');
  const ahead = await exchange(port, SHORT + ask(read, LIMITS.headersMax, last));
  t.match(ahead, /^HTTP\/1.1 200 [\s\S]*HTTP\/1.1 431 /, 'in its turn');
});

t.test('sockets: an answer of one text that nobody reads is cut off', async (t) => {
  const rules = 'r'.repeat(16 * 1024 * 1024);
  const made = server({
    'policy.read': () => ({ value: policyView({ rules }), meta: readMeta(10) }),
  });
  const port = await listening(t, made);
  let isCutOff = false;
  made.app.server.on('connection', (socket) => {
    socket.once('close', () => {
      isCutOff = true;
    });
  });
  const message = await get(port, '/v1/acl/policy/x');
  message.on('error', () => undefined);
  message.pause();
  const { pending } = made.clock;
  await until(() => pending.size > 0);
  const [first] = pending;
  let readBytes = 0;
  message.on('data', (part: Buffer) => {
    readBytes += part.length;
    if (readBytes >= 8 * 1024 * 1024) message.pause();
  });
  message.resume();
  await until(() => pending.size > 0 && !pending.has(first as () => void));
  t.notOk(isCutOff, 'whoever reads has time anew');
  for (const comesDue of pending) comesDue();
  await until(() => isCutOff);
  t.equal(pending.size, 0, 'no timer is left');
});

t.test('sockets: an answer of one text arrives whole, and leaves no timer', async (t) => {
  for (const rules of [
    'r'.repeat(3_000_000),
    '\u{1f600}'.repeat(500_000),
    'x',
    'r'.repeat(70_000),
  ]) {
    const made = server({
      'policy.read': () => ({ value: policyView({ rules }), meta: readMeta(10) }),
    });
    const port = await listening(t, made);
    const message = await get(port, '/v1/acl/policy/x');
    const bytes = await bytesOf(message);
    t.equal(String(bytes.length), message.headers['content-length']);
    t.ok((JSON.parse(bytes.toString()) as { Rules: string }).Rules === rules);
    t.equal(made.clock.pending.size, 0);
  }
});

t.test('fuzz: whatever a caller sends, the service dialect never answers 500', async (t) => {
  const made = server({
    'policy.list': () => listOf([]),
    'policy.read': () => found(10),
    'policy.update': () => ({ value: policyView(), meta: WRITE_META }),
    'token.create': () => ({ value: tokenView(), meta: WRITE_META }),
  });
  const answer = made.operations.answer.bind(made.operations);
  made.operations.answer = (name, input, call) => {
    if (made.operations.script[name] === undefined) throw new AclError('invalid', 'no');
    return answer(name, input, call);
  };
  const path = fc.oneof(
    fc.constantFrom('/v1/acl/policies', '/v1/acl/policy/x', '/v1/acl/policy', '/v1/acl/token'),
    fc.webPath().map((tail) => `/v1/acl/${tail}`),
    fc
      .string({ unit: fc.constantFrom('%', '/', '.', '2', 'F', 'f', 'z', '0', '\u00e9') })
      .map((s) => `/v1/${encodeURI(s).replaceAll('%25', '%')}`),
  );
  const query = fc.oneof(
    fc.constant(''),
    fc.webQueryParameters().map((text) => `?${text}`),
    fc
      .tuple(
        fc.constantFrom(
          'index',
          'wait',
          'ns',
          'limit',
          'next',
          'cas',
          'ack',
          'min-position',
          'max_stale',
          'token',
        ),
        fc.webQueryParameters(),
      )
      .map(([name, value]) => `?index=0&${name}=${value}`),
  );
  const payload = fc.oneof(
    fc.uint8Array({ maxLength: 50 }).map((bytes) => Buffer.from(bytes)),
    fc.json().map((text) => Buffer.from(text)),
    fc
      .record({ Name: fc.jsonValue(), Config: fc.jsonValue(), ExpirationTTL: fc.jsonValue() })
      .map((body) => Buffer.from(JSON.stringify(body))),
  );
  const method = fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS');
  await fc.assert(
    fc.asyncProperty(method, path, query, payload, async (verb, where, what, body) => {
      const answer = await made.app.inject({
        method: verb as 'GET',
        url: where + what,
        payload: body,
      });
      return answer.statusCode < 500;
    }),
    { numRuns: 300 },
  );
  t.same(
    made.logger.lines.filter(({ level }) => level === 'error'),
    [],
  );
});

t.test(
  'held: a head counts for what it takes in memory, its characters are the least of it',
  async (t) => {
    const held = new HeldRequests();
    const rawHeaders = Array.from({ length: 2_000 }, () => 'a');
    const exchange = { client: '10.0.0.1', target: '/', request: { rawHeaders } };
    let end: () => void = () => undefined;
    held.serve(
      exchange as never,
      Buffer.from('nobody'),
      () => new Promise((resolve) => (end = resolve)),
    );
    t.equal(held.bytes, 2_000 * 49 + 7);
    end();
    await turn();
    t.equal(held.bytes, 0);
    const read = '{"Policies":[{},{},{}],"Description":"a: [{},{}], \\"[{\\""}';
    held.serve({ ...exchange, request: { rawHeaders: [] } } as never, Buffer.from(read), () => {
      return new Promise((resolve) => (end = resolve));
    });
    t.equal(held.bytes, 1 + read.length + 10 * 40, 'and a body for what is read of it');
    end();
  },
);

t.test(
  'held: what requests that wait hold is bounded, and nobody fills it for others',
  async (t) => {
    const ends: (() => void)[] = [];
    const { app } = server({
      'policy.create': () =>
        new Promise((_resolve, reject) => {
          ends.push(() => reject(new AclError('unavailable', 'it is over')));
        }),
      'policy.read': () => found(10),
    });
    const body = JSON.stringify({ Name: 'p', Rules: ' '.repeat(1024 * 1024 - 1_000) });
    const send = (remoteAddress: string, payload = body) =>
      app.inject({ method: 'PUT', url: '/v1/acl/policy', payload, remoteAddress });
    const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));
    const sent = [];
    for (let count = 0; count < 64; count += 1) sent.push(send('10.0.0.1'), send('10.0.0.2', '{}'));
    // A client that goes lets go of nothing: what was begun goes on.
    while (ends.length < 128) await settled();
    sent.push(send('10.0.0.1'));
    while (ends.length < 129) await settled();
    const refused = await send('10.0.0.1');
    t.equal(refused.statusCode, 503);
    t.match(refused.body, /^nothing was done: .* hold 64 MiB, those of 10\.0\.0\.1 64 MiB of it: /);
    t.equal(refused.headers['retry-after'], '1');
    const read = { url: '/v1/acl/policy/x', remoteAddress: '10.0.0.1' };
    t.equal((await app.inject(read)).statusCode, 503, 'whatever it asks');
    const archive = await app.inject({ ...read, url: '/v1/snapshot' });
    t.match(archive.body, /^nothing was done: /, 'an archive, too');
    t.equal((await app.inject({ ...read, url: '/livez' })).statusCode, 200, 'but for its life');
    sent.push(send('10.0.0.2'), send('10.0.0.3'));
    while (ends.length < 131) await settled();
    for (const end of ends) end();
    for (const each of await Promise.all(sent)) t.equal(each.body, 'it is over');
    t.equal((await app.inject(read)).statusCode, 200, 'and then all are answered again');
  },
);
