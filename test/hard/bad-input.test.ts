// What no client should send, sent to every endpoint that there is (they are taken from src/api, so a
// new one is covered by being there): it is refused with the name of what is wrong, never with a
// 5xx, the server goes on, and the state is the one from before.

import fc from 'fast-check';
import t from 'tap';
import type { TSchema } from 'typebox';
import type { Endpoint } from '../../src/api/endpoints/endpoint.ts';
import { ENDPOINTS } from '../../src/api/endpoints/endpoints.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import {
  OPERATOR_ENDPOINTS,
  SNAPSHOT_ENDPOINTS,
} from '../../src/api/endpoints/endpoints-operator.ts';
import { NAMESPACE_PARAMETER, QUERY_BY_KIND } from '../../src/api/endpoints/query-parameters.ts';
import { runNode } from '../support/running/running-node.ts';
import {
  type Answer,
  type Asked,
  abandon,
  ask,
  askJson,
  MANAGEMENT,
  sendRaw,
  stateOf,
} from './asking.ts';
import { anyBody, bodiesWithText, HOSTILE_TEXTS, LONG_TEXTS, wrongBodies } from './wrong-bodies.ts';

const BODY_MAX = 256 * 1024;
/** Far above what any of these requests needs, below what the square of its size would need. */
const SLOW_MS = 20_000;
const UNKNOWN_ID = '99999999-9999-4999-8999-999999999999';

const { port } = await runNode(t, {
  'acl-tokens-initial-management': MANAGEMENT,
  'limits-body-max-bytes': String(BODY_MAX),
});
const ALL: readonly Endpoint[] = Object.values<Endpoint>({
  ...ENDPOINTS,
  ...NODE_ENDPOINTS,
  ...OPERATOR_ENDPOINTS,
  ...SNAPSHOT_ENDPOINTS,
});
const WITH_BODY = ALL.filter(({ body }) => body !== undefined);
const WITH_PARAMETER = ALL.filter(({ path }) => path.includes('/:'));

/** The path of an endpoint with its parameter filled in. */
function pathOf(endpoint: Endpoint, parameter = UNKNOWN_ID): string {
  return endpoint.path.replace(/:\w+/, parameter);
}

/** What is wrong with an answer to a request that must not go through; undefined: nothing. */
function faultOf(asked: Asked, { status, text }: Answer, culprit: string): string | undefined {
  const isRefused = status >= 400 && status < 500;
  const isNamed = culprit === '' || text.includes(culprit);
  if (isRefused && isNamed) return undefined;
  const body = JSON.stringify(asked.body ?? '').slice(0, 100);
  return `${asked.method} ${asked.path.slice(0, 100)} ${body}: ${status} ${text.slice(0, 200)}`;
}

interface Wrong {
  readonly asked: Asked;
  /** Must be in the text of the refusal. */
  readonly culprit?: string;
}

/** Sends requests that must all be refused; gives what was wrong with their answers. */
async function faultsOf(wrongs: Iterable<Wrong>): Promise<readonly string[]> {
  const faults: string[] = [];
  const before = await stateOf(port);
  const inTurn = wrongs[Symbol.iterator]();
  const sendSome = async (): Promise<void> => {
    for (let next = inTurn.next(); next.done !== true; next = inTurn.next()) {
      const { asked, culprit = '' } = next.value;
      const fault = faultOf(asked, await ask(port, asked), culprit);
      if (fault !== undefined) faults.push(fault);
    }
  };
  await Promise.all(Array.from({ length: 8 }, sendSome));
  if ((await stateOf(port)) !== before) faults.push('the state moved');
  return faults;
}

/** The state that no refusal may move; undefined while it is not known. */
let standing: string | undefined;
let grantedCount = 0;

/** Sends a request that may go through or not; gives what was wrong with its answer. */
async function faultOfAny(asked: Asked): Promise<string | undefined> {
  standing ??= await stateOf(port);
  const startedMs = performance.now();
  const { status, text } = await ask(port, asked);
  const tookMs = performance.now() - startedMs;
  const says = `${asked.method} ${asked.path} ${JSON.stringify(asked.body)?.slice(0, 300)}`;
  if (tookMs > SLOW_MS && (await isSlowAgain(asked))) return `${says}: took ${tookMs} ms`;
  if (status >= 500) return `${says}: ${status} ${text.slice(0, 300)}`;
  if (status === 200) grantedCount += 1;
  const before = standing;
  standing = status === 200 ? undefined : await stateOf(port);
  return standing === undefined || standing === before ? undefined : `${says}: moved the state`;
}

/** A busy machine is slow once. */
async function isSlowAgain(asked: Asked): Promise<boolean> {
  const startedMs = performance.now();
  await ask(port, asked);
  return performance.now() - startedMs > SLOW_MS;
}

t.teardown(async () => {
  const { status } = await ask(port, { path: '/livez', secret: '' });
  if (status !== 200) throw new Error(`the server is not as before: ${status}`);
});

t.test('bodies: what is no JSON is refused with its place', async (t) => {
  const cases: readonly (readonly [body: string | Buffer, culprit: string])[] = [
    ['{', 'unexpected EOF'],
    ['{"a"', 'unexpected EOF'],
    ['[{"Resource":', 'unexpected EOF'],
    ['"', 'unexpected EOF'],
    ['{"a":tru', 'unexpected EOF'],
    ['{a:1}', "invalid character 'a'"],
    ["{'a':1}", "invalid character '''"],
    ['{"a":1,}', "invalid character '}'"],
    ['{"a":01}', "invalid character '1'"],
    ['{"a":+1}', "invalid character '+'"],
    ['nonsense', "invalid character 'o'"],
    ['<xml/>', "invalid character '<'"],
    ['\u0000', "invalid character '\\u0000'"],
    ['{"a":"\u0001"}', "invalid character '\\u0001'"],
    ['{"a":"\\x"}', "invalid character 'x'"],
    ['\ufeff{}', "invalid character '"],
    [Buffer.from('{"a":"\xff\xfe"}', 'latin1'), 'invalid UTF-8'],
    [Buffer.from('{"a":"\xed\xa0\x80"}', 'latin1'), 'invalid UTF-8'],
    [Buffer.from([0x80]), 'invalid UTF-8'],
    [Buffer.from('{}', 'utf16le'), "invalid character '\\u0000'"],
    ['['.repeat(BODY_MAX - 1), 'json: more than 64 levels'],
    ['{"a":'.repeat(40_000), 'json: more than 64 levels'],
    [`${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'json: more than 64 levels'],
    [`${'{"a":'.repeat(2_000)}7${'}'.repeat(2_000)}`, 'json: unknown field "a"'],
    ['true', 'json: cannot unmarshal bool into the body'],
    ['7', 'json: cannot unmarshal number into the body'],
    ['"text"', 'json: cannot unmarshal string into the body'],
  ];
  const wrongs = WITH_BODY.flatMap((endpoint) =>
    cases.map(([body, culprit]) => ({
      asked: { method: endpoint.method, path: pathOf(endpoint), body },
      // An array where an object is expected is refused for that, whatever is in it.
      culprit: isListSchema(endpoint.body?.schema) ? '' : culprit,
    })),
  );
  t.same(await faultsOf(wrongs), []);
  const empty = WITH_BODY.filter(({ body }) => body?.required === true).map((endpoint) => ({
    asked: { method: endpoint.method, path: pathOf(endpoint), body: '' },
    culprit: `${endpoint.body?.label}: EOF`,
  }));
  t.same(await faultsOf(empty), []);
});

t.test('bodies: a field of the wrong type is refused by its name', async (t) => {
  const wrongs = WITH_BODY.flatMap((endpoint) =>
    [...wrongBodies(endpoint.body?.schema as TSchema)].map(({ culprit, body }) => ({
      asked: { method: endpoint.method, path: pathOf(endpoint), body },
      culprit,
    })),
  );
  t.ok(wrongs.length > 500, `${wrongs.length} bodies`);
  t.same(await faultsOf(wrongs), []);
});

t.test('bodies: beyond the limit they are refused with 413, whoever asks', async (t) => {
  const body = `{"Description":"${'x'.repeat(BODY_MAX)}"}`;
  for (const endpoint of WITH_BODY) {
    for (const secret of [MANAGEMENT, 'unknown']) {
      const path = pathOf(endpoint);
      const answer = await ask(port, { method: endpoint.method, path, body, secret }).catch(String);
      // The server closes without reading the rest; the client may notice that first.
      if (typeof answer === 'string') t.match(answer, /EPIPE|ECONNRESET|hang up/);
      else t.match(answer, { status: 413, text: String(BODY_MAX) }, path);
    }
  }
  const head = `PUT /v1/acl/token HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${MANAGEMENT}\r\n`;
  t.match(await sendRaw(port, `${head}Content-Length: 99999999999999\r\n\r\n{`), 'HTTP/1.1 413');
  const chunk = `${(BODY_MAX + 1).toString(16)}\r\n${' '.repeat(BODY_MAX + 1)}\r\n`;
  t.match(await sendRaw(port, `${head}Transfer-Encoding: chunked\r\n\r\n${chunk}`), 'HTTP/1.1 413');
});

t.test('paths: ids that are none are refused, and nothing is reached through them', async (t) => {
  const parameters = [
    'a'.repeat(36),
    'a'.repeat(20_000),
    UNKNOWN_ID.slice(1),
    `${UNKNOWN_ID}0`,
    UNKNOWN_ID.replace('9', 'g'),
    '%F0%9F%92%A9',
    'a%20b',
    '%252e%252e%252f',
    "';--",
    '__proto__',
    'constructor',
    '*',
    '-',
    `${UNKNOWN_ID}/clone/clone`,
  ];
  const faults: string[] = [];
  const before = await stateOf(port);
  for (const endpoint of WITH_PARAMETER) {
    const { method } = endpoint;
    for (const parameter of parameters) {
      if (mayCreate(endpoint) && IS_LABEL.test(parameter)) continue;
      const asked = { method, path: pathOf(endpoint, parameter), ...bodyFor(endpoint) };
      const answer = await ask(port, asked);
      const isNothingDeleted = answer.status === 200 && answer.text === 'false';
      if (!isNothingDeleted) faults.push(...[faultOf(asked, answer, '')].filter(isText));
    }
    for (const parameter of ['%00', 'a%00b', '%ff', '%', '%zz', '%e2%80%8b', '%0d%0aX:%201']) {
      const { status, text } = await ask(port, { method, path: pathOf(endpoint, parameter) });
      if (status !== 400 || text !== '') faults.push(`${parameter}: ${status} ${text}`);
    }
    const empty = { method, path: pathOf(endpoint, ''), body: '[' };
    const { status } = await ask(port, empty);
    if (status < 300 || status >= 500) faults.push(`${method} ${empty.path}: ${status}`);
  }
  t.same(faults, []);
  t.equal(await stateOf(port), before);
});

const IS_LABEL = /^[a-z0-9][a-z0-9-]*[a-z0-9]$/;

/** A namespace is made by a PUT to its name. */
function mayCreate({ method, path }: Endpoint): boolean {
  return method === 'PUT' && path === '/v1/namespace/:name';
}

/** A body that says nothing, for endpoints that take one. */
function bodyFor({ body }: Endpoint): { readonly body?: unknown } {
  if (body === undefined) return {};
  return { body: isListSchema(body.schema) ? [] : {} };
}

function isListSchema(schema: TSchema | undefined): boolean {
  return schema !== undefined && 'items' in schema;
}

function isText(value: string | undefined): value is string {
  return value !== undefined;
}

t.test(
  'paths: other methods are refused with what is there, dots and slashes redirected',
  async (t) => {
    const methodsByPath = new Map<string, readonly string[]>();
    for (const endpoint of ALL.filter(({ path }) => !path.endsWith('/clone'))) {
      const path = pathOf(endpoint);
      methodsByPath.set(path, [...(methodsByPath.get(path) ?? []), endpoint.method]);
    }
    const faults: string[] = [];
    for (const [path, methods] of methodsByPath) {
      for (const method of [
        'GET',
        'PUT',
        'POST',
        'DELETE',
        'PATCH',
        'TRACE',
        'PROPFIND',
        'QUERY',
      ]) {
        if (methods.includes(method)) continue;
        const { status, headers, text } = await ask(port, { method, path, body: '{' });
        const isRight = status === 405 && methods.every((each) => headers.allow?.includes(each));
        if (!isRight || text !== `method ${method} not allowed`) {
          faults.push(`${method} ${path}: ${status} ${headers.allow} ${text}`);
        }
      }
      for (const unclean of [`/.${path}`, `/v1/..${path}`, path.replace('/', '//'), `//${path}`]) {
        const { status } = await ask(port, { path: unclean, secret: '' });
        if (status !== 301) faults.push(`${unclean}: ${status}`);
      }
    }
    t.same(faults, []);
  },
);

/** What else is said where there is nothing to do it to. */
const DONE_TO_NOTHING: Readonly<Record<string, string>> = {
  'PUT /v1/operator/datacenter/:name': 'false',
  'DELETE /v1/operator/divergence': 'true',
};

const QUERY_VALUES = ['%00', 'a'.repeat(2_000), '-1', '18446744073709551616', '*'];

t.test('queries: every parameter with values of every kind, and twice', async (t) => {
  const faults: string[] = [];
  const before = await stateOf(port);
  // Of restores there is one at a time, and here are eight: test/node/operator-group looks after them.
  for (const endpoint of ALL.filter(({ archive }) => archive !== 'body')) {
    const names = Object.keys({
      ...QUERY_BY_KIND[endpoint.kind],
      ...endpoint.query,
      ...NAMESPACE_PARAMETER,
      partition: '',
    });
    const perName = names.flatMap((name) => [
      ...QUERY_VALUES.map((value) => `${name}=${value}`),
      `${name}=1&${name}=2`,
      `${name}=&${name}`,
    ]);
    const queries = [...perName, 'a=%zz', 'a=%ff', '%=', '&&=&', 'a'.repeat(50_000)];
    const inTurn = queries.values();
    const sendSome = async (): Promise<void> => {
      for (const query of inTurn) {
        const { method } = endpoint;
        const path = `${pathOf(endpoint)}?${query}&wait=1ms`;
        const { status, text } = await ask(port, { method, path, body: '[' });
        const toNothing = DONE_TO_NOTHING[`${method} ${endpoint.path}`];
        const isDeleteOfNothing = method === 'DELETE' && text.trim() === 'false';
        const isDoneToNothing = isDeleteOfNothing || text.trim() === toNothing;
        const isRead = method === 'GET' && status === 200;
        const isRefused = status >= 400 && status < 500;
        if (!isRefused && !isRead && !isDoneToNothing) {
          faults.push(`${method} ${path.slice(0, 100)}: ${status} ${text.slice(0, 100)}`);
        }
      }
    };
    await Promise.all(Array.from({ length: 8 }, sendSome));
  }
  t.same(faults, []);
  t.equal(await stateOf(port), before);
});

t.test('queries: what cannot be read is refused by its name', async (t) => {
  const cases: readonly (readonly [query: string, kinds: string, culprit: string])[] = [
    ['index=x', 'read list', 'index'],
    ['index=-1', 'read list', 'index'],
    ['index=18446744073709551616', 'read list', 'index'],
    ['wait=5', 'read list', 'wait'],
    ['wait=1d', 'read list', 'wait'],
    ['max_stale=x', 'read list', 'max_stale'],
    ['stale&consistent', 'read list', 'consistent'],
    ['cached&consistent', 'read list', 'consistent'],
    ['min-position=1', 'read list', 'min-position'],
    ['min-position=', 'read list', 'min-position'],
    ['min-position=1.-1', 'read list', 'min-position'],
    ['limit=0', 'list', 'limit'],
    ['limit=x', 'list', 'limit'],
    ['next=%21', 'list', 'next'],
    ['cas=x', 'write', 'cas'],
    ['cas=', 'write', 'cas'],
    ['ack=some', 'write', 'ack'],
    ['ack=', 'write', 'ack'],
    ['ack_timeout=5', 'write', 'ack_timeout'],
    ['partition=p', 'read list write', 'partition'],
  ];
  const wrongs = Object.values<Endpoint>(ENDPOINTS).flatMap((endpoint) =>
    cases
      .filter(([query, kinds]) => {
        const isLookedAt = endpoint.namespaced || !query.startsWith('partition');
        return isLookedAt && kinds.split(' ').includes(endpoint.kind);
      })
      .map(([query, , culprit]) => ({
        asked: { method: endpoint.method, path: `${pathOf(endpoint)}?${query}`, body: '' },
        culprit,
      })),
  );
  t.ok(wrongs.length > 200, `${wrongs.length} queries`);
  t.same(await faultsOf(wrongs), []);
});

t.test('headers: odd ones are refused or mean nothing, on every endpoint', async (t) => {
  const oddities: readonly (readonly [name: string, value: string])[] = [
    ['Authorization', 'Bearer'],
    ['Authorization', `Basic ${'a'.repeat(10_000)}`],
    ['Accept', 'application/problem+json;;;=,\t'],
    ['Accept-Encoding', 'gzip;q=,;;'],
    ['Content-Type', 'multipart/form-data; boundary='],
    ['Content-Encoding', 'gzip'],
    ['X-Service-Namespace', '\u00ff\u00fe'],
    ['X-Service-Namespace', 'a'.repeat(10_000)],
    ['X-Service-Request-Id', 'a'.repeat(10_000)],
    ['X-Service-Request-Id', '\u00ff'],
    ['Cache-Control', 'max-age=soon'],
    ['X-HTTP-Method-Override', 'DELETE'],
    ['Upgrade', 'websocket'],
    ['Range', 'bytes=0-0'],
    ['If-None-Match', '*'],
    ['Cookie', 'a'.repeat(100_000)],
    ['Expect', '100-continue'],
  ];
  const faults: string[] = [];
  const before = await stateOf(port);
  for (const endpoint of ALL) {
    for (const [name, value] of oddities) {
      const { method } = endpoint;
      const asked = { method, path: pathOf(endpoint), headers: { [name]: value }, body: '[' };
      const { status, text } = await ask(port, asked);
      if (status >= 500) faults.push(`${method} ${asked.path} ${name}: ${status} ${text}`);
    }
  }
  t.same(faults, []);
  t.equal(await stateOf(port), before);
});

const CREATE = `PUT /v1/acl/token HTTP/1.1\r\nHost: x\r\nX-Service-Token: ${MANAGEMENT}\r\n`;

t.test('sockets: lying lengths, pipelined garbage and half a request change nothing', async (t) => {
  const before = await stateOf(port);
  const read = `GET /v1/agent/version HTTP/1.1\r\nHost: x\r\n\r\n`;
  const refused: readonly (readonly [says: string, bytes: string | Buffer])[] = [
    ['a length that is no number', `${CREATE}Content-Length: ten\r\n\r\n{}`],
    ['a negative length', `${CREATE}Content-Length: -2\r\n\r\n{}`],
    ['two lengths', `${CREATE}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `],
    [
      'a length and chunks',
      `${CREATE}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['an unknown encoding', `${CREATE}Transfer-Encoding: gzip\r\n\r\n{}`],
    ['a chunk of no size', `${CREATE}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}`],
    ['a bare line feed in a name', `${CREATE}X-A\n: b\r\n\r\n`],
    ['a blank before the colon', `${CREATE}X-A : b\r\n\r\n`],
    ['NUL in a header', `${CREATE}X-A: \0\r\n\r\n`],
    ['a folded header', `${CREATE}X-A: b\r\n c\r\n\r\n`],
    ['no host', 'GET /v1/agent/version HTTP/1.1\r\n\r\n'],
    ['another version', 'GET /v1/agent/version HTTP/3.7\r\nHost: x\r\n\r\n'],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a TLS hello', Buffer.from('16030100c8010000c40303', 'hex')],
    ['random bytes', Buffer.from(Array.from({ length: 4096 }, (_, at) => (at * 73) & 0xff))],
    ['an endless target', `GET /${'a'.repeat(2 * 1024 * 1024)}`],
    ['endless headers', `${CREATE}${'X-A: b\r\n'.repeat(300_000)}`],
  ];
  for (const [says, bytes] of refused) {
    const answer = await sendRaw(port, bytes);
    t.match(answer, /^(HTTP\/1\.1 (4\d\d|505) [\s\S]*)?$/, says);
    t.notMatch(answer, 'AccessorID', says);
  }
  const pipelined = await sendRaw(
    port,
    `${read}garbage\r\n\r\n${CREATE}Content-Length: 2\r\n\r\n{}`,
  );
  t.match(pipelined, /^(HTTP\/1\.1 200 OK[\s\S]*)?$/);
  t.notMatch(pipelined, 'AccessorID');
  // The length ends the body early, so what follows is garbage behind a whole request, which may be answered.
  const tooShort = await sendRaw(port, `${CREATE}Content-Length: 1\r\n\r\n{"Description":"x"}`);
  const afterIts = 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n';
  t.match(
    tooShort.replace(afterIts, ''),
    /^(HTTP\/1\.1 400 [\s\S]*Token decoding failed: unexpected EOF)?$/,
  );
  const tooLong = await sendRaw(port, `${CREATE}Content-Length: 50\r\n\r\n{}`, { isEnded: true });
  t.match(tooLong, /^(HTTP\/1\.1 400 [\s\S]*)?$/);
  for (let end = 1; end < CREATE.length; end += 16) await abandon(port, CREATE.slice(0, end));
  for (const body of ['', '{', '{"Description":"half']) {
    await abandon(port, `${CREATE}Content-Length: 100\r\n\r\n${body}`);
    await abandon(
      port,
      `${CREATE}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}`,
    );
  }
  t.equal(await stateOf(port), before);
});

t.test('sockets: garbage behind a whole write is never taken for its answer', async (t) => {
  const answer = await sendRaw(port, `${CREATE}Content-Length: 2\r\n\r\n{}garbage\r\n\r\n`);
  t.match(answer, /^(HTTP\/1\.1 200 [\s\S]*AccessorID[\s\S]*)?$/, 'its own answer or none');
});

t.test('sockets: a whole write whose client is gone is kept whole, or not begun', async (t) => {
  const count = async (): Promise<number> =>
    (await askJson<unknown[]>(port, { path: '/v1/acl/tokens' })).length;
  const before = await settled(count);
  for (let turn = 0; turn < 20; turn += 1) {
    await abandon(port, `${CREATE}Content-Length: 2\r\n\r\n{}`);
  }
  const after = await settled(count);
  t.ok(after >= before && after <= before + 20, `${after - before} of 20`);
});

/** What `ask` gives once it gives the same for a while: a write may outlive its client. */
async function settled(askOnce: () => Promise<number>): Promise<number> {
  for (let before = await askOnce(); ; ) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    const now = await askOnce();
    if (now === before) return now;
    before = now;
  }
}

t.test('bodies: hostile and long texts in every field do no harm', async (t) => {
  const faults: string[] = [];
  const seen = new Set<TSchema | undefined>();
  for (const endpoint of WITH_BODY) {
    const { method, body } = endpoint;
    // Updates share their schema with a create, which looks at more of the body.
    const longTexts = seen.has(body?.schema) ? [] : LONG_TEXTS;
    seen.add(body?.schema);
    for (const text of [...HOSTILE_TEXTS, ...longTexts]) {
      for (const { body: each } of bodiesWithText(body?.schema as TSchema, text)) {
        const fault = await faultOfAny({ method, path: pathOf(endpoint), body: each });
        if (fault !== undefined) faults.push(fault);
      }
    }
  }
  t.same(faults, []);
});

t.test(
  'fuzz: bodies by the schemas, ids that exist: no 5xx, and no refusal moves the state',
  async (_t) => {
    const known = await knownTexts();
    standing = undefined;
    grantedCount = 0;
    const anyRequest = fc.constantFrom(...WITH_BODY).chain((endpoint) =>
      fc.record({
        endpoint: fc.constant(endpoint),
        parameter: fc.constantFrom(...known.filter((text) => /^[\w-]+$/.test(text))),
        body: anyBody(endpoint.body?.schema as TSchema, known),
        ns: fc.constantFrom('', '', '', 'team', 'default', 'nowhere', '*'),
      }),
    );
    await fc.assert(
      fc.asyncProperty(anyRequest, async ({ endpoint, parameter, body, ns }) => {
        const path = `${pathOf(endpoint, parameter)}?ns=${ns}`;
        const fault = await faultOfAny({ method: endpoint.method, path, body });
        if (fault !== undefined) throw new Error(fault);
      }),
      { numRuns: 1_000 },
    );
    t.ok(grantedCount > 30, `${grantedCount} went through`);
  },
);

/** Makes one object of each kind; gives their names and ids, and words that mean something. */
async function knownTexts(): Promise<readonly string[]> {
  const put = async (path: string, body: unknown): Promise<Record<string, string>> =>
    askJson(port, { method: 'PUT', path, body });
  const rules = 'key "a" { policy = "write" }';
  const policy = await put('/v1/acl/policy', { Name: 'known', Rules: rules });
  const role = await put('/v1/acl/role', { Name: 'known', Policies: [{ Name: 'known' }] });
  await put('/v1/namespace', { Name: 'team' });
  const token = await put('/v1/acl/token', {
    Policies: [{ Name: 'known' }],
    Roles: [{ Name: 'known' }],
  });
  await put('/v1/acl/auth-method', {
    Name: 'known',
    Type: 'jwt',
    Config: { JWTValidationPubKeys: [PUBLIC_KEY] },
  });
  const rule = await put('/v1/acl/binding-rule', {
    AuthMethod: 'known',
    BindType: 'service',
    BindName: 'web',
  });
  const ids = [policy.ID, role.ID, token.AccessorID, token.SecretID, rule.ID];
  const words = 'team default jwt oidc kubernetes aws-iam local global service node role policy';
  const templates = 'templated-policy builtin/service builtin/node key operator read write';
  return [
    'known',
    ...ids.filter(isText),
    ...`${words} ${templates}`.split(' '),
    rules,
    'acl = "write"',
    'value.name == "x"',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: how a binding names an attribute
    '${value.name}',
    'a.b.c',
    'http://127.0.0.1:1/callback',
  ];
}

const PUBLIC_KEY = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEEVs/o5+uQbTjL3chynL4wXgUg2R9
q9UU8I5mEovUf86QZ7kOBIjJwqnzD1omageEHWwHdBO6B+dFabmdT9POxg==
-----END PUBLIC KEY-----
`;
