// Reads that go past the router are answered as through it, and only those go past it that mean there
// what they say.

import { createServer, type IncomingMessage, request, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints-node.ts';
import { OPERATOR_ENDPOINTS } from '../../src/api/endpoints-operator.ts';
import { ENDPOINTS } from '../../src/api/endpoints.ts';
import { ReadLane } from '../../src/http/read-lane.ts';
import type { RawRequest, RawResponse } from '../../src/http/wire-types.ts';
import { listOf, policyView, readMeta, type Server, server, tokenView } from './support.ts';

const SEED = 20_261_122;

t.test('lane: takes plain reads of its paths and nothing else', (t) => {
  const lane = new ReadLane();
  const served: string[] = [];
  for (const path of ['/v1/acl/token/*', '/v1/acl/token/self', '/v1/acl/policy/name/*', '/livez']) {
    lane.add(path, (_raw, parameter) => served.push(`${path} ${parameter}`));
  }
  const takes = (url: string, method = 'GET'): string | undefined => {
    const hasTaken = lane.take({ method, url } as RawRequest, {} as RawResponse);
    const by = served.pop();
    if (hasTaken !== (by !== undefined)) throw new Error('served, or left to the router');
    return by;
  };
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
  lane.close();
  t.equal(takes('/livez'), undefined, 'a server that closes tells its clients to leave');
  t.end();
});

/** A server that answers some of the operations, and refuses others. */
function answering(): Server {
  return server({
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
  });
}

interface Listening {
  readonly port: number;
  close(): Promise<unknown>;
}

function listening(listener: RequestListener): Promise<Listening> {
  return new Promise((resolve) => {
    const bare = createServer(listener);
    bare.listen(0, '127.0.0.1', () => {
      const { port } = bare.address() as AddressInfo;
      resolve({ port, close: () => new Promise((closed) => bare.close(closed)) });
    });
  });
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
  const [past, through] = [answering(), answering()];
  await through.app.ready();
  t.teardown(() => Promise.all([past.app.close(), through.app.close()]));
  await past.app.listen({ host: '127.0.0.1', port: 0 });
  const lane = (past.app.server.address() as AddressInfo).port;
  const router = await listening(through.app.routing);
  t.teardown(() => router.close());
  const asked = fc.record({
    method: fc.constantFrom('GET', 'GET', 'GET', 'GET', 'HEAD', 'PATCH'),
    path: fc
      .tuple(fc.constantFrom(...paths), parameter, query)
      .map(([path, value, rest]) => path.replace(/:\w+$/, value) + rest),
    headers,
  });
  await fc.assert(
    fc.asyncProperty(asked, async (each) => {
      const [short, long] = [await answerOf(lane, each), await answerOf(router.port, each)];
      if (short !== long) throw new Error(`${short}, through the router ${long}`);
    }),
    { numRuns: 600, seed: SEED },
  );
  t.equal(past.metrics.prometheus(), through.metrics.prometheus());
  t.same(past.operations.calls, through.operations.calls);
  t.ok(past.operations.calls.length > 50, 'and many came to their operations');
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
  t.equal(made.operations.calls.length, 2);
});
