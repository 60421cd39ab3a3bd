// Requests that go past the router are answered as through it, and only those go past it that mean there
// what they say.

import { createServer, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect, type Server as NetServer } from 'node:net';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { Endpoint } from '../../src/api/endpoints/endpoint.ts';
import { ENDPOINTS } from '../../src/api/endpoints/endpoints.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import { OPERATOR_ENDPOINTS } from '../../src/api/endpoints/endpoints-operator.ts';
import { type Entrance, PlainLane } from '../../src/http/routes/plain-lane.ts';
import { serveInTurn } from '../../src/http/serving/serve-in-turn.ts';
import { LIMITS } from '../../src/http/settings.ts';
import type { RawRequest, RawResponse } from '../../src/http/wire/wire-types.ts';
import {
  listOf,
  policyView,
  readMeta,
  type Server,
  server,
  tokenView,
  WRITE_META,
} from './support.ts';

const SEED = 20_261_122;

/** A lane over these places, and what tells who took a request; undefined: it was left to the router. */
function laneOver(places: readonly (readonly [method: string, path: string])[]) {
  const lane = new PlainLane(100);
  const served: string[] = [];
  for (const [method, path] of places) {
    const entrance: Entrance = {
      admits: () => true,
      serve: (_raw, { parameter, body }) => {
        const read = body === undefined ? '' : ` ${body.length} bytes`;
        served.push(`${method} ${path} ${parameter}${read}`);
      },
    };
    lane.add({ method, path, hasBody: method !== 'GET' }, entrance);
  }
  const taken = (request: object): string | undefined => {
    const hasTaken = lane.take(request as RawRequest, {} as RawResponse);
    const by = served.pop();
    if (hasTaken !== (by !== undefined)) throw new Error('served, or left to the router');
    return by;
  };
  return { lane, taken };
}

t.test('lane: takes plain reads of its paths and nothing else', (t) => {
  const paths = ['/v1/acl/token/*', '/v1/acl/token/self', '/v1/acl/policy/name/*', '/livez'];
  const { lane, taken } = laneOver(paths.map((path) => ['GET', path]));
  const takes = (url: string, method = 'GET') =>
    taken({ method, url, headers: {} })?.replace(/^GET /, '');
  t.equal(takes('/v1/acl/token/a-B_1.~:+'), '/v1/acl/token/* a-B_1.~:+');
  t.equal(takes('/v1/acl/token/a?b=/c/'), '/v1/acl/token/* a');
  t.equal(takes('/v1/acl/token/self'), '/v1/acl/token/self ');
  t.equal(takes('/v1/acl/token/self?stale'), '/v1/acl/token/self ');
  t.equal(takes('/v1/acl/policy/name/a'), '/v1/acl/policy/name/* a');
  t.equal(takes('/livez'), '/livez ');
  for (const method of ['PUT', 'POST', 'DELETE', 'HEAD', 'OPTIONS']) {
    t.equal(takes('/v1/acl/token/a', method), undefined, method);
  }
  for (const url of [
    ...['/v1/acl/token/', '/v1/acl/token', '/v1/acl/token/a/', '/v1/acl/token/a/b', '/livez/'],
    ...['/v1/acl/token/.', '/v1/acl/token/..', '/v1/acl/token/.a', '/v1/acl/token//a', '//livez'],
    ...['/v1/acl/token/%61', '/v1/acl/token/a%2Fb', '/v1/acl/tok%65n/a', '/v1/acl/token/a%zz'],
    ...['/v1/acl/token/\u00e9', '/v1/acl/token/a b', '/v1/acl/token/*', '/v1/acl/policy/a'],
    ...[
      'http://host/livez',
      '*',
      '?',
      '',
      '/V1/acl/token/a',
      '/v1/acl/token/a;b',
      '/v1/acl/token/a#b',
    ],
  ]) {
    t.equal(takes(url), undefined, url);
  }
  const longest = '/v1/acl/token/'.padEnd(LIMITS.pathChars, 'a');
  t.ok(takes(`${longest}?stale`));
  t.equal(takes(`${longest}a`), undefined, 'longer paths are refused by the router');
  lane.close();
  t.equal(takes('/livez'), undefined, 'a server that closes tells its clients to leave');
  t.end();
});

t.test('lane: takes bodies that say their length, and nothing else', (t) => {
  const { lane, taken } = laneOver([
    ['POST', '/v1/acl/login'],
    ['PUT', '/v1/acl/token'],
    ['PUT', '/v1/acl/token/*'],
    ['PUT', '/v1/acl/token/:accessorId/clone'],
  ]);
  const takes = (method: string, url: string, headers: object) => {
    const { 'content-length': length = '0' } = headers as Record<string, string>;
    const on = (_event: 'data', listener: (piece: Buffer) => void): void => {
      for (const size of [2, Number(length) - 2]) listener(Buffer.alloc(size));
    };
    return taken({ method, url, headers, on });
  };
  const plain = { 'content-length': '3' };
  t.equal(takes('POST', '/v1/acl/login', plain), 'POST /v1/acl/login  3 bytes');
  t.equal(takes('PUT', '/v1/acl/token?pretty', plain), 'PUT /v1/acl/token  3 bytes');
  t.ok(takes('PUT', '/v1/acl/token', { ...plain, 'content-type': 'text/x' }), 'of any type');
  t.ok(takes('PUT', '/v1/acl/token', { 'content-length': '100' }));
  for (const headers of [
    ...[{}, { 'content-length': '0' }, { 'content-length': '101' }],
    ...[{ 'transfer-encoding': 'chunked' }, { ...plain, 'transfer-encoding': 'chunked' }],
    ...[{ ...plain, expect: '100-continue' }],
  ]) {
    t.equal(takes('PUT', '/v1/acl/token', headers), undefined, JSON.stringify(headers));
  }
  for (const url of [
    ...['/v1/acl/token/', '/v1/acl/token/a', '/v1/acl/token/a/clone', '/v1/acl'],
    ...['/v1/acl/token/*', '/v1/acl/token/:accessorId/clone'],
  ]) {
    t.equal(takes('PUT', url, plain), undefined, url);
  }
  for (const method of ['POST', 'GET', 'DELETE', 'PATCH']) {
    t.equal(takes(method, '/v1/acl/token', plain), undefined, method);
  }
  lane.close();
  t.equal(takes('PUT', '/v1/acl/token', plain), undefined);
  t.end();
});

const BODY_MAX_BYTES = 600;

/** A server that answers some of the operations, and refuses others. */
function answering(): Server {
  const script: Parameters<typeof server>[0] = {
    'token.read': ({ accessorId }) =>
      accessorId.startsWith('a')
        ? { value: tokenView({ description: accessorId.repeat(99) }), meta: readMeta(7) }
        : {
            refusal: { code: 'token-not-found', message: 'token does not exist' },
            meta: readMeta(7),
          },
    'token.read-self': async () => ({ value: tokenView(), meta: readMeta(8) }),
    'policy.read': () => ({ value: policyView(), meta: readMeta(9) }),
    'policy.list': () => listOf([[policyView()], [policyView()]]),
    'policy.create': async () => ({ value: policyView(), meta: WRITE_META }),
    authorize: ({ items }) =>
      items.map((item) => ({ ...item, allow: item.segment === 'a', explanation: undefined })),
  };
  return server(script, { bodyMaxBytes: BODY_MAX_BYTES });
}

interface Listening {
  readonly port: number;
  close(): Promise<unknown>;
}

/** A server of the router alone. */
function listening({ app, logger }: Server): Promise<Listening> {
  return new Promise((resolve) => {
    const { keepAliveTimeout } = app.server;
    const bare = createServer({ keepAliveTimeout, requireHostHeader: false }, app.routing);
    serveInTurn(bare, logger);
    bare.listen(0, '127.0.0.1', () => {
      const { port } = bare.address() as AddressInfo;
      resolve({ port, close: () => new Promise((closed) => bare.close(closed)) });
    });
  });
}

/** Two servers that answer alike: one takes what is plain past its router, the other takes nothing. */
async function bothWays(t: Test) {
  const [past, through] = [answering(), answering()];
  await through.app.ready();
  t.teardown(() => Promise.all([past.app.close(), through.app.close()]));
  await past.app.listen({ host: '127.0.0.1', port: 0 });
  const router = await listening(through);
  t.teardown(() => router.close());
  return { past, through, lane: portOf(past.app.server), router: router.port };
}

function portOf(listening: NetServer): number {
  return (listening.address() as AddressInfo).port;
}

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Status, headers and body of an answer, all as they came; the time of day left out. */
async function answerOf(port: number, asked: Asked): Promise<string> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request({ port, host: '127.0.0.1', agent: false, ...asked }, resolve)
      .on('error', reject)
      .end();
  });
  const body: Buffer[] = [];
  for await (const piece of answer) body.push(piece as Buffer);
  const { statusCode, rawHeaders } = answer;
  const head = rawHeaders.map((text, place) => (rawHeaders[place - 1] === 'Date' ? '' : text));
  return JSON.stringify([statusCode, head, Buffer.concat(body).toString('base64')]);
}

const endpoints: readonly Endpoint[] = [
  ...Object.values<Endpoint>(ENDPOINTS),
  ...Object.values<Endpoint>(NODE_ENDPOINTS),
  ...Object.values<Endpoint>(OPERATOR_ENDPOINTS),
];
const paths = endpoints.filter(({ method }) => method === 'GET').map(({ path }) => path);
const parameter = fc.constantFrom(
  ...['a', 'a-B_1.~:+', 'self', 'name', 'name/a', '', '.', '..', '.a', 'a/', 'a/b', '/a', 'a//b'],
  ...['%61', 'a%2Fb', '%2e%2e', 'a%zz', '%00', '%c3%a9', '*', ':a', "a'b", 'a;b'],
);
const query = fc.constantFrom(
  ...['', '', '', '?', '?pretty', '?stale', '?index=x', '?wait=1x', '?%zz', '?token=abc', '?ns='],
  ...['?stale&consistent', '?limit=1', '?limit=0', '?a=/b/c', '?expanded', '?partition=p'],
);
const headers = fc.constantFrom<Readonly<Record<string, string>>>(
  ...[{}, {}, { 'X-Service-Token': 'abc' }, { 'X-Consul-Token': 'abc' }],
  ...[{ 'Accept-Encoding': 'gzip' }, { Accept: 'application/problem+json' }],
  ...[{ 'Content-Type': 'text/x' }, { 'X-Consul-Namespace': 'team' }],
);

t.test('lane: every read is answered and counted as through the router', async (t) => {
  const { past, through, lane, router } = await bothWays(t);
  const asked = fc.record({
    method: fc.constantFrom('GET', 'GET', 'GET', 'GET', 'HEAD', 'PATCH'),
    path: fc
      .tuple(fc.constantFrom(...paths), parameter, query)
      .map(([path, value, rest]) => path.replace(/:\w+$/, value) + rest),
    headers,
  });
  await fc.assert(
    fc.asyncProperty(asked, async (each) => {
      const [short, long] = [await answerOf(lane, each), await answerOf(router, each)];
      if (short !== long) throw new Error(`${short}, through the router ${long}`);
    }),
    { numRuns: 600, seed: SEED },
  );
  t.equal(past.metrics.prometheus(), through.metrics.prometheus());
  t.same(past.operations.calls, through.operations.calls);
  t.ok(past.operations.calls.length > 50, 'and many came to their operations');
});

/** What was logged, but for the ways by which it came to an unforeseen fault. */
function linesOf({ logger }: Server): readonly object[] {
  return logger.lines.map(({ fields: { cause: _, ...fields }, ...line }) => ({ ...line, fields }));
}

interface Posted {
  readonly path: string;
  readonly method: string;
  readonly body: Buffer;
  /** How the length of the body is said. */
  readonly framing: 'length' | 'chunks' | 'expect' | 'none';
  readonly headers: Readonly<Record<string, string>>;
}

function bytesOf({ path, method, body, framing, headers }: Posted, isLast: boolean): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: test'];
  lines.push(...Object.entries(headers).map(([name, value]) => `${name}: ${value}`));
  if (isLast) lines.push('Connection: close');
  if (framing === 'chunks') lines.push('Transfer-Encoding: chunked');
  else if (framing !== 'none') lines.push(`Content-Length: ${body.length}`);
  if (framing === 'expect') lines.push('Expect: 100-continue');
  const head = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`);
  if (framing === 'none') return head;
  if (framing !== 'chunks') return Buffer.concat([head, body]);
  const chunk = [Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n')];
  return Buffer.concat([head, ...(body.length === 0 ? [] : chunk), Buffer.from('0\r\n\r\n')]);
}

/** All that comes back for these pieces, each sent by itself, until the server closes; without the time. */
async function conversation(port: number, pieces: readonly Buffer[]): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  const received: Buffer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('data', (piece) => received.push(piece)).on('close', () => resolve());
    socket.on('error', reject);
  });
  for (const piece of pieces) {
    await new Promise<void>((resolve) => socket.write(piece, () => setImmediate(resolve)));
  }
  await ended;
  const text = Buffer.concat(received).toString('latin1');
  return text.replaceAll(/\r\nDate: [^\r]*/g, '');
}

/** Sends these bytes and goes away. Resolves when the server has seen both. */
async function gone(port: number, bytes: Buffer): Promise<void> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  const closed = new Promise((resolve) => socket.on('close', resolve));
  // The server has nothing to wait for, and ends its side.
  socket.resume().end(bytes);
  await closed;
}

const bodyPlaces = endpoints
  .filter(({ body, path }) => body !== undefined && !path.includes(':'))
  .map(({ method, path }) => ({ method, path }));
const AUTHORIZE = { method: 'POST', path: '/v1/internal/acl/authorize' };
const QUESTION = '{"Resource":"service","Access":"read","Segment":"a"}';
const QUESTIONS: Posted = {
  ...{ ...AUTHORIZE, framing: 'length', headers: {} },
  body: Buffer.from(`[${QUESTION}]`),
};
const body = fc
  .constantFrom(
    ...[`[${QUESTION}]`, `[${QUESTION},${QUESTION}]`, '[]', '{}', 'null', '[{"resource":"key"}]'],
    ...['', ' ', 'x', '[', `[${QUESTION}] and more`, `[${QUESTION}`, '[{"Segment":1}]', '[1]'],
    ...['{"Name":"a","Rules":""}', '{"Name":"\u00e9"}', '{"Unknown":true}', '"text"', '{"ID":"x"}'],
    ...['{"Name":"\\ud800"}', `[${QUESTION}]`.padEnd(BODY_MAX_BYTES), '\u0000', '\ufeff[]'],
    ...[`[${QUESTION}]`.padEnd(BODY_MAX_BYTES + 1), 'x'.repeat(BODY_MAX_BYTES * 2)],
  )
  .map((text) => Buffer.from(text));
const posted: fc.Arbitrary<Posted> = fc
  .record({
    place: fc.oneof(fc.constant(AUTHORIZE), fc.constantFrom(...bodyPlaces)),
    query: fc.constantFrom('', '', '?pretty', '?explain', '?%zz', '?stale', '?ns=a&token=abc'),
    framing: fc.constantFrom<Posted['framing']>(
      ...(['length', 'length', 'length', 'chunks', 'expect', 'none'] as const),
    ),
    body: fc.oneof(body, body, fc.constant(Buffer.from([0x22, 0xff, 0x22]))),
    headers,
  })
  .map(({ place: { method, path }, query, ...rest }) => ({ ...rest, method, path: path + query }));

t.test('lane: every body is read, answered and counted as through the router', async (t) => {
  const { past, through, lane, router } = await bothWays(t);
  const asked = fc.record({
    requests: fc.array(posted, { minLength: 1, maxLength: 3 }),
    cut: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  await fc.assert(
    fc.asyncProperty(asked, async ({ requests, cut }) => {
      const isLast = (place: number): boolean => place === requests.length - 1;
      const all = Buffer.concat(requests.map((each, place) => bytesOf(each, isLast(place))));
      // A server that refuses a body for its size reads no further, and resets what comes then.
      const isWhole = requests.some((each) => each.body.length > BODY_MAX_BYTES);
      const at = isWhole ? all.length : Math.round(all.length * cut);
      const pieces = [all.subarray(0, at), all.subarray(at)].filter(({ length }) => length > 0);
      const [short, long] = [await conversation(lane, pieces), await conversation(router, pieces)];
      if (short !== long) throw new Error(`${short}, through the router ${long}`);
    }),
    { numRuns: 600, seed: SEED },
  );
  t.equal(past.metrics.prometheus(), through.metrics.prometheus());
  t.same(past.operations.calls, through.operations.calls);
  t.same(linesOf(past), linesOf(through));
  const asks = past.operations.calls.filter(({ name }) => name === 'authorize');
  t.ok(asks.length > 50, 'and many came to their operations');
});

t.test('lane: who goes in the middle of a body is neither answered nor counted', async (t) => {
  const { past, through, lane, router } = await bothWays(t);
  const bytes = bytesOf(QUESTIONS, true);
  for (const port of [lane, router]) {
    await gone(port, bytes.subarray(0, -9));
    t.match(
      await conversation(port, [bytes.subarray(0, -9), bytes.subarray(-9)]),
      /^HTTP.1.1 200 /,
    );
  }
  t.equal(past.operations.calls.length, 1);
  t.equal(past.metrics.prometheus(), through.metrics.prometheus());
  t.same(linesOf(past), linesOf(through));
});

t.test('lane: the limits of requests are its limits', async (t) => {
  const limits = { mode: 'enforcing', readRate: 2, writeRate: 0 } as const;
  const made = server(
    { 'policy.read': () => ({ value: policyView(), meta: readMeta(9) }) },
    { requestLimits: limits },
  );
  t.teardown(() => made.app.close());
  await made.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = made.app.server.address() as AddressInfo;
  const ask = () => answerOf(port, { method: 'GET', path: '/v1/acl/policy/a', headers: {} });
  t.match(await ask(), /^\[200/);
  t.match(await ask(), /^\[200/);
  t.match(await ask(), /^\[429/);
  const whole = { method: 'GET', path: '/v1/acl/policies', headers: {} };
  t.match(await answerOf(port, whole), /^\[429/, 'of a path without a parameter, too');
  t.equal(made.operations.calls.length, 2);
});

t.test('lane: the limits of requests hold before a body is read', async (t) => {
  const limits = { mode: 'enforcing', readRate: 1, writeRate: 0 } as const;
  const made = server({ authorize: () => [] }, { requestLimits: limits });
  t.teardown(() => made.app.close());
  await made.app.listen({ host: '127.0.0.1', port: 0 });
  const port = portOf(made.app.server);
  const bytes = bytesOf(QUESTIONS, true);
  t.match(await conversation(port, [bytes]), /^HTTP.1.1 200 /);
  t.match(await conversation(port, [bytes.subarray(0, -9)]), /^HTTP.1.1 429 /);
  t.match(await conversation(port, [bytes]), /^HTTP.1.1 429 /);
  t.equal(made.operations.calls.length, 1, 'what is refused is not done, whole or not');
});
