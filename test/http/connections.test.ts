// What a connection is to the server: blocking queries that wait on it, lists that stream over it, requests that
// are sent ahead on it, bodies and heads that are wrong or slow.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { LIMITS } from '../../src/http/settings.ts';
import type { ListResult, PolicyView, ReadResult } from '../../src/service/views.ts';
import {
  listOf,
  policyView,
  readMeta,
  type Server,
  server,
  tokenView,
  WRITE_META,
} from './support.ts';

const found = (index: number, modifyIndex = index): ReadResult<PolicyView> => ({
  value: policyView({ modifyIndex }),
  meta: readMeta(index),
});
const missing = (index: number): ReadResult<PolicyView> => ({
  refusal: { code: 'not-found', message: 'Requested policy does not exist: ACL not found' },
  meta: readMeta(index),
});
/** Gives one answer after the other, and the last one for ever. */
function inTurn<T>(...answers: readonly T[]): () => T {
  let turn = 0;
  return () => answers[Math.min(turn++, answers.length - 1)] as T;
}

t.test('blocking: an answer that is newer than the index comes at once', async (t) => {
  const { app, operations } = server({ 'policy.read': () => found(10) });
  for (const index of ['0', '9', '']) {
    t.equal((await app.inject(`/v1/acl/policy/x?index=${index}`)).statusCode, 200);
  }
  t.equal(operations.waits.length, 0);
});

t.test(
  'blocking: waits for the object, runs the operation again, gives the new answer',
  async (t) => {
    const { app, operations } = server({
      'policy.read': inTurn(found(10), found(11, 10), found(12)),
    });
    const answer = app.inject('/v1/acl/policy/x?index=10&wait=16s');
    const first = await operations.wait(1);
    t.same(first.target, { table: 'policies', object: undefined });
    t.equal(first.index, 10);
    t.equal(first.timeoutMs, 16_500, 'half of a sixteenth is the jitter of this test');
    first.end();
    const second = await operations.wait(2);
    t.equal(second.index, 11, 'another object of the table changed: the wait goes on from there');
    second.end();
    const { statusCode, headers } = await answer;
    t.equal(statusCode, 200);
    t.equal(headers['x-consul-index'], '12');
    t.equal(operations.calls.length, 3);
  },
);

t.test('blocking: an index that is not reached yet is waited for', async (t) => {
  const { app, operations } = server({
    'policy.read': inTurn(found(10), found(15), found(21)),
  });
  const answer = app.inject('/v1/acl/policy/x?index=20&wait=16s');
  (await operations.wait(1)).end();
  (await operations.wait(2)).end();
  t.equal((await answer).headers['x-consul-index'], '21');
});

t.test('blocking: the wait is capped, and 0 means the default', async (t) => {
  const cases: [string, number][] = [
    ['', 300_000],
    ['&wait=0s', 300_000],
    ['&wait=-5s', 300_000],
    ['&wait=60000ms', 60_000],
    ['&wait=20m', 600_000],
  ];
  for (const [wait, ms] of cases) {
    const { app, operations } = server({ 'policy.list': () => listOf([]) });
    const answer = app.inject(`/v1/acl/policies?index=10${wait}`);
    const parked = await operations.wait(1);
    t.equal(parked.timeoutMs, ms * (1 + 0.5 / 16), wait);
    await app.close();
    await answer;
  }
});

t.test('blocking: when the time is over the current answer is given', async (t) => {
  const { app, operations, clock } = server({ 'policy.read': () => found(10) });
  const answer = app.inject('/v1/acl/policy/x?index=99&wait=1s');
  const parked = await operations.wait(1);
  clock.nowMs += parked.timeoutMs;
  parked.end();
  t.equal((await answer).statusCode, 200);
  t.equal((await answer).headers['x-service-index'], '10');
});

t.test('blocking: a missing object is waited for, its creation ends the wait', async (t) => {
  const { app, operations } = server({
    'policy.read': inTurn(missing(10), missing(11), found(12)),
  });
  const answer = app.inject('/v1/acl/policy/x?index=10');
  (await operations.wait(1)).end();
  (await operations.wait(2)).end();
  t.equal((await answer).statusCode, 200);
  const at = server({ 'policy.read': () => missing(11) });
  const atOnce = await at.app.inject('/v1/acl/policy/x?index=10');
  t.equal(atOnce.statusCode, 404, 'the table is beyond the index already');
  t.equal(atOnce.headers['x-consul-index'], '11');
});

t.test('blocking: a deletion ends the wait with 404', async (t) => {
  const { app, operations } = server({ 'policy.read': inTurn(found(10), missing(11)) });
  const answer = app.inject('/v1/acl/policy/x?index=10');
  (await operations.wait(1)).end();
  t.equal((await answer).statusCode, 404);
});

t.test('blocking: a missing token is refused at once', async (t) => {
  const { app, operations } = server({
    'token.read': () => ({
      refusal: { code: 'token-not-found', message: 'token does not exist: ACL not found' },
      meta: readMeta(10),
    }),
  });
  const headers = { 'x-consul-token': 's' };
  const answer = await app.inject({ url: '/v1/acl/token/x?index=10', headers });
  t.equal(answer.statusCode, 403);
  t.equal(answer.body, 'token does not exist: ACL not found');
  t.equal(operations.waits.length, 0);
});

t.test('blocking: a state that went back ends every wait', async (t) => {
  const { app, operations } = server({
    'policy.list': inTurn(listOf([], { index: 10 }), listOf([], { index: 4 })),
  });
  const answer = app.inject('/v1/acl/policies?index=10');
  (await operations.wait(1)).end();
  t.equal((await answer).headers['x-consul-index'], '4');
});

t.test('blocking: a token that was revoked meanwhile ends the wait with 403', async (t) => {
  let isRevoked = false;
  const { app, operations } = server({
    'policy.read': () => {
      if (isRevoked) throw new AclError('token-unknown', 'ACL not found');
      return found(10);
    },
  });
  const answer = app.inject('/v1/acl/policy/x?index=10');
  const parked = await operations.wait(1);
  isRevoked = true;
  parked.end();
  t.equal((await answer).statusCode, 403);
  t.equal((await answer).body, 'ACL not found');
});

t.test('blocking: closing the server answers everyone who waits', async (t) => {
  const { app, operations } = server({ 'policy.list': () => listOf([[policyView()]]) });
  const answer = app.inject('/v1/acl/policies?index=10');
  await operations.wait(1);
  await app.close();
  t.equal((await answer).statusCode, 200);
  t.equal((await answer).json<unknown[]>().length, 1);
});

/** A list that says when it is let go, also where nothing of it was read. */
function listHeld(onReturn: () => void): ListResult<PolicyView> {
  const list = listOf([[policyView()]]);
  const slices: AsyncIterable<readonly PolicyView[]> = {
    [Symbol.asyncIterator]: () => {
      const inner = list.slices[Symbol.asyncIterator]();
      return {
        next: () => inner.next(),
        return: async () => {
          onReturn();
          return { done: true, value: undefined };
        },
      };
    },
  };
  return { ...list, slices };
}

t.test('blocking: lists that are not given let go of what they hold', async (t) => {
  let returned = 0;
  const { app, operations } = server({
    'policy.list': () =>
      listHeld(() => {
        returned += 1;
      }),
  });
  const answer = app.inject('/v1/acl/policies?index=10');
  const first = await operations.wait(1);
  t.equal(returned, 1);
  first.end();
  await operations.wait(2);
  t.equal(returned, 2, 'one that brings nothing new');
  await app.close();
  await answer;
  t.equal(returned, 3);
});

t.test(
  'blocking: so many may wait, and who finds no place is told so and holds nothing',
  async (t) => {
    let returned = 0;
    const onReturn = () => {
      returned += 1;
    };
    const { app, operations } = server(
      {
        'policy.list': () => listHeld(onReturn),
        'policy.read': () => found(10),
      },
      { blockingQueriesMax: 2 },
    );
    const waiting = [
      app.inject('/v1/acl/policy/x?index=10'),
      app.inject('/v1/acl/policy/x?index=10'),
    ];
    await operations.wait(2);
    const url = '/v1/acl/policies?index=10';
    const refused = await app.inject(url);
    t.equal(refused.statusCode, 503);
    t.equal(refused.body, '2 blocking queries wait already');
    t.equal(refused.headers['retry-after'], '1');
    t.equal((await app.inject({ url, headers: { 'x-consul-token': 's' } })).statusCode, 500);
    t.equal(returned, 2, 'their lists are let go');
    t.equal((await app.inject('/v1/acl/policies?index=9')).statusCode, 200, 'need not wait');
    t.equal(operations.waits.length, 2);
    await app.close();
    for (const answer of await Promise.all(waiting)) t.equal(answer.statusCode, 200);
  },
);

t.test('blocking: whoever has fewer takes a place of whoever has most', async (t) => {
  const { app, operations, metrics } = server(
    { 'policy.read': () => found(10) },
    { blockingQueriesMax: 4 },
  );
  const from = (remoteAddress: string) =>
    app.inject({ url: '/v1/acl/policy/x?index=10', remoteAddress });
  const greedy = [from('10.0.0.1'), from('10.0.0.1'), from('10.0.0.1'), from('10.0.0.1')];
  await operations.wait(4);
  t.equal((await from('10.0.0.1')).body, '4 blocking queries wait already');
  const modest = [from('10.0.0.2'), from('10.0.0.2')];
  const given = await Promise.all(greedy.slice(0, 2));
  for (const answer of given) {
    t.equal(answer.statusCode, 503, 'the oldest give way');
    t.match(answer.body, /^too many blocking queries wait, and most of them are of this client$/);
    t.equal(answer.headers['retry-after'], '1');
  }
  t.equal((await from('10.0.0.2')).statusCode, 503, 'nobody has more than these by two');
  t.match(metrics.prometheus(), /blocking_queries\{listener="http"\} 4/);
  await app.close();
  for (const answer of await Promise.all([...greedy.slice(2), ...modest])) {
    t.equal(answer.statusCode, 200);
  }
  t.match(metrics.prometheus(), /blocking_queries\{listener="http"\} 0/);
});

t.test('blocking: one that wakes for nothing keeps its place', async (t) => {
  let wake: () => void = () => undefined;
  const isAwake = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const { app, operations } = server(
    {
      'policy.read': inTurn<ReturnType<typeof found> | Promise<ReturnType<typeof found>>>(
        found(10),
        isAwake.then(() => found(11, 10)),
        found(12),
      ),
      'role.read': () => ({ refusal: { code: 'not-found', message: '' }, meta: readMeta(10) }),
    },
    { blockingQueriesMax: 1 },
  );
  const first = app.inject('/v1/acl/policy/x?index=10');
  (await operations.wait(1)).end();
  const other = () => app.inject('/v1/acl/role/x?index=10');
  t.equal((await other()).statusCode, 503);
  wake();
  (await operations.wait(2)).end();
  t.equal((await first).headers['x-service-index'], '12');
  const next = other();
  (await operations.wait(3)).end();
  await app.close();
  t.equal((await next).statusCode, 404, 'and then it is free');
});

async function listening(
  t: { teardown(action: () => Promise<void>): void },
  made: Server,
): Promise<number> {
  await made.app.listen({ port: 0, host: '127.0.0.1' });
  t.teardown(async () => {
    await made.app.close();
  });
  return (made.app.server.address() as AddressInfo).port;
}

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

function get(
  port: number,
  path: string,
  headers: Record<string, string | string[]> = {},
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest({ port, path, headers, host: '127.0.0.1', agent: false }, resolve)
      .on('error', reject)
      .end();
  });
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of message) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

/** Whether no blocking query waits. */
function isQuiet({ metrics }: Server): boolean {
  return /blocking_queries\{listener="http"\} 0/.test(metrics.prometheus());
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 10));
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

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
  const tooMany = LIMITS.sentAheadMax + 1;
  const cases: [says: string, sent: string][] = [
    ['one request more than may wait', BLOCKING + SHORT.repeat(tooMany)],
    ['heads that are too large together', BLOCKING + head.repeat(4)],
    ['bodies that are too large together', BLOCKING + login.repeat(200)],
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

t.test('sockets: one client may hold so many connections', async (t) => {
  const made = server({ 'policy.list': () => listOf([]) }, { connectionsPerClientMax: 2 });
  const port = await listening(t, made);
  const ask = 'GET /v1/acl/policies HTTP/1.1\r\nHost: x\r\n\r\n';
  const held = [1, 2].map(() => connect(port, '127.0.0.1'));
  await Promise.all(
    held.map((socket) => new Promise((resolve) => socket.once('connect', resolve))),
  );
  t.match(await exchange(port, ''), 'HTTP/1.1 429 Too Many Requests');
  held[0]?.destroy();
  const isAnswered = (answer: string) => answer.endsWith('[]');
  for (;;) {
    const answer = await exchange(port, ask, isAnswered);
    if (answer.includes('HTTP/1.1 200')) break;
    t.match(answer, /^(HTTP\/1.1 429|$)/);
  }
  held[1]?.destroy();
});

t.test('gzip: for those who accept it, from 1400 bytes on', async (t) => {
  const script = (rules: string) => ({
    'policy.read': () => ({ value: policyView({ rules }), meta: readMeta(2) }),
  });
  const long = server(script('x'.repeat(1400)));
  const cases: [string | undefined, boolean][] = [
    [undefined, false],
    ['gzip', true],
    ['deflate, GZIP;q=0.5', true],
    ['gzip;q=0', false],
    ['gzip;q=0.0, br', false],
    ['gzip;level=9;q=0', false],
    ['br, gzip ; q=1', true],
    ['notgzip', false],
  ];
  for (const [accepted, expected] of cases) {
    const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
    const answer = await long.app.inject({ url: '/v1/acl/policy/x', headers });
    t.equal(answer.headers['content-encoding'] === 'gzip', expected, String(accepted));
    t.equal(answer.headers.vary, 'Accept-Encoding');
    const body = expected ? gunzipSync(answer.rawPayload).toString() : answer.body;
    t.match(JSON.parse(body), { Name: 'reader' }, String(accepted));
  }
  const short = await server(script('x')).app.inject({
    url: '/v1/acl/policy/x',
    headers: { 'accept-encoding': 'gzip' },
  });
  t.equal(short.headers['content-encoding'], undefined);
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

/** Slices of tokens; counts how many were asked for. */
function manyTokens(slices: number, failAt = Number.POSITIVE_INFINITY) {
  const seen = { asked: 0, returned: false };
  const slice = Array.from({ length: 100 }, () => tokenView({ description: 'd'.repeat(200) }));
  async function* generate() {
    try {
      for (; seen.asked < slices; seen.asked += 1) {
        if (seen.asked === failAt) throw new Error('the disk is gone');
        yield slice;
      }
    } finally {
      seen.returned = true;
    }
  }
  return { seen, list: () => ({ ...listOf<never>([]), slices: generate() }) };
}

t.test('streaming: a long list arrives whole, plain, compressed and indented', async (t) => {
  const made = server({ 'token.list': () => manyTokens(20).list() });
  const port = await listening(t, made);
  for (const [path, headers] of [
    ['/v1/acl/tokens', {}],
    ['/v1/acl/tokens', { 'Accept-Encoding': 'gzip' }],
    ['/v1/acl/tokens?pretty', {}],
  ] as [string, Record<string, string>][]) {
    const message = await get(port, path, headers);
    t.equal(message.headers['transfer-encoding'], 'chunked');
    t.equal(message.headers['x-consul-index'], '10');
    const bytes = await bytesOf(message);
    const isGzip = message.headers['content-encoding'] === 'gzip';
    const text = (isGzip ? gunzipSync(bytes) : bytes).toString();
    const tokens = JSON.parse(text) as unknown[];
    t.equal(tokens.length, 2000);
    if (path.endsWith('pretty'))
      t.equal(
        text,
        `${JSON.stringify(tokens, null, 4).replace(/[<>&]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)}\n`,
      );
  }
});

t.test('streaming: others have their turn between the slices of a list', async (t) => {
  let turns = 0;
  async function* slices() {
    const count = (): void => {
      turns += 1;
      ticking = setImmediate(count);
    };
    let ticking = setImmediate(count);
    for (let place = 0; place < 50; place += 1) {
      made.clock.nowMs += sliceMs;
      yield [policyView({ description: 'd' })];
    }
    clearImmediate(ticking);
  }
  const made = server({ 'policy.list': () => ({ ...listOf([]), slices: slices() }) });
  let sliceMs = 10;
  const ask = async (): Promise<number> => {
    turns = 0;
    const answer = await made.app.inject('/v1/acl/policies');
    t.equal(answer.json<unknown[]>().length, 50);
    return turns;
  };
  t.ok((await ask()) >= 45, 'one behind each long slice');
  sliceMs = 1;
  const fewer = await ask();
  t.ok(fewer >= 4 && fewer < 20, `no more than are needed behind short ones: ${fewer}`);
});

t.test('streaming: the list is read no faster than the client reads', async (t) => {
  const many = manyTokens(20_000);
  const made = server({ 'token.list': () => many.list() });
  const port = await listening(t, made);
  const message = await get(port, '/v1/acl/tokens');
  message.pause();
  let before = -1;
  while (before !== many.seen.asked) {
    before = many.seen.asked;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  t.ok(many.seen.asked < 2_000, `read ${many.seen.asked} of 20000 slices`);
  message.destroy();
  while (!many.seen.returned) await new Promise((resolve) => setImmediate(resolve));
  t.pass('and the list is let go when the client goes');
});

t.test('streaming: a reader that stops reading is cut off', async (t) => {
  for (const headers of [{}, { 'Accept-Encoding': 'gzip' }] as Record<string, string>[]) {
    const many = manyTokens(200_000);
    const made = server({ 'token.list': () => many.list() });
    const port = await listening(t, made);
    const message = await get(port, '/v1/acl/tokens', headers);
    message.on('error', () => undefined);
    message.pause();
    const { pending } = made.clock;
    let before = -1;
    while (pending.size === 0 || before !== many.seen.asked) {
      before = many.seen.asked;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    for (const comesDue of pending) comesDue();
    while (!many.seen.returned) await new Promise((resolve) => setImmediate(resolve));
    t.equal(pending.size, 0, 'the list is let go, and no timer is left');
    message.destroy();
  }
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

t.test('streaming: a failure in the middle breaks the connection off', async (t) => {
  for (const headers of [{}, { 'Accept-Encoding': 'gzip' }] as Record<string, string>[]) {
    const made = server({ 'token.list': () => manyTokens(20, 10).list() });
    const port = await listening(t, made);
    const message = await get(port, '/v1/acl/tokens', headers);
    t.equal(message.statusCode, 200);
    await t.rejects(bytesOf(message), { code: 'ECONNRESET' });
    t.match(made.logger.lines, [{ message: 'list broken off', fields: { cause: /disk is gone/ } }]);
  }
  const early = server({ 'token.list': () => manyTokens(20, 0).list() });
  t.equal(
    (await early.app.inject('/v1/acl/tokens')).statusCode,
    500,
    'before the head it is a 500',
  );
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
    t.equal((await app.inject({ ...read, url: '/livez' })).statusCode, 200, 'but for its life');
    sent.push(send('10.0.0.2'), send('10.0.0.3'));
    while (ends.length < 131) await settled();
    for (const end of ends) end();
    for (const each of await Promise.all(sent)) t.equal(each.body, 'it is over');
    t.equal((await app.inject(read)).statusCode, 200, 'and then all are answered again');
  },
);
