// From a request to its operation and back: routes, paths and methods, where the token and the namespace come
// from, headers, and both dialects of errors.

import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { AclError, type AclErrorCode } from '../../src/acl/error.ts';
import type { Endpoint } from '../../src/api/endpoint.ts';
import { ENDPOINTS } from '../../src/api/endpoints.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints-node.ts';
import { OPERATOR_ENDPOINTS, SNAPSHOT_ENDPOINTS } from '../../src/api/endpoints-operator.ts';
import { openApiDocument } from '../../src/api/openapi.ts';
import { descriptionOf } from '../../src/http/description.ts';
import { HEADER_PREFIXES } from '../../src/http/headers.ts';
import { LIMITS } from '../../src/http/settings.ts';
import { statusOf } from '../../src/http/status.ts';
import { targetPathOf } from '../../src/http/target-path.ts';
import { indexHeaders } from '../../src/http/exchange.ts';
import { newPolicy, newToken } from '../service/harness.ts';
import { operatorServer } from './operator-support.ts';
import { listOf, policyView, readMeta, server, tokenView, WRITE_META } from './support.ts';

const CONSUL = { 'x-consul-token': 's' };
/** Clients of others read no member that lacks one of these. */
const PROTOCOLS = {
  ...{ ProtocolMin: 1, ProtocolMax: 5, ProtocolCur: 2 },
  ...{ DelegateMin: 2, DelegateMax: 5, DelegateCur: 4 },
};
const readPolicy = () => ({ value: policyView(), meta: readMeta(10) });
const refuse =
  (code: AclErrorCode, message = 'no') =>
  () => {
    throw new AclError(code, message);
  };

t.test('routes: wrong methods, OPTIONS and unknown paths', async (t) => {
  const { app, operations } = server({});
  const unknown = 'Invalid URL path: not a recognized HTTP API endpoint\n';
  const far =
    "Invalid URL path: if attempting to use the HTTP API, ensure the path starts with '/v1/'\n";
  const cases: [string, string, number, string, string | undefined][] = [
    ['PUT', '/v1/acl/token/self', 405, 'method PUT not allowed', 'OPTIONS,GET'],
    ['DELETE', '/v1/acl/token/self', 405, 'method DELETE not allowed', 'OPTIONS,GET'],
    ['PUT', '/v1/acl/policy/name/x', 405, 'method PUT not allowed', 'OPTIONS,GET'],
    ['DELETE', '/v1/acl/role/name/x', 405, 'method DELETE not allowed', 'OPTIONS,GET'],
    ['POST', '/v1/acl/policy/x', 405, 'method POST not allowed', 'OPTIONS,GET,PUT,DELETE'],
    ['PATCH', '/v1/acl/policy/x', 405, 'method PATCH not allowed', 'OPTIONS,GET,PUT,DELETE'],
    ['PROPFIND', '/v1/acl/policy/x', 405, 'method PROPFIND not allowed', 'OPTIONS,GET,PUT,DELETE'],
    ['PROPFIND', '/v1/acl/policies', 405, 'method PROPFIND not allowed', 'OPTIONS,GET'],
    ['HEAD', '/v1/acl/policies', 405, '', 'OPTIONS,GET'],
    ['GET', '/v1/acl/login', 405, 'method GET not allowed', 'OPTIONS,POST'],
    ['GET', '/v1/acl/bootstrap', 405, 'method GET not allowed', 'OPTIONS,PUT'],
    ['GET', '/v1/acl/policy', 405, 'method GET not allowed', 'OPTIONS,PUT'],
    ['DELETE', '/v1/acl/tokens', 405, 'method DELETE not allowed', 'OPTIONS,GET'],
    ['OPTIONS', '/v1/acl/policy/x', 200, '', 'OPTIONS,GET,PUT,DELETE'],
    ['OPTIONS', '/v1/internal/acl/authorize', 200, '', 'OPTIONS,POST'],
    ['GET', '/v1/acl/nothing', 404, unknown, undefined],
    ['GET', '/v1/acl/policies/', 404, unknown, undefined],
    ['PUT', '/v1/acl/create', 404, unknown, undefined],
    ['QUERY', '/v1/acl/nothing', 404, unknown, undefined],
    ['GET', '/x/v1/y', 404, unknown, undefined],
    ['GET', '/ui', 404, far, undefined],
    ['PROPFIND', '/ui', 404, far, undefined],
    ['GET', '/v1/acl/policy/', 400, 'Missing policy ID', undefined],
    ['DELETE', '/v1/acl/policy/', 400, 'Missing policy ID', undefined],
    ['GET', '/v1/acl/policy/name/', 400, 'Missing policy Name', undefined],
    ['GET', '/v1/acl/role/', 400, 'Missing role ID', undefined],
    ['GET', '/v1/acl/role/name/', 400, 'Missing role Name', undefined],
    ['GET', '/v1/acl/binding-rule/', 400, 'Missing binding rule ID', undefined],
    ['GET', '/v1/acl/auth-method/', 400, 'Missing auth method name', undefined],
    ['GET', '/v1/acl/token/', 400, 'Missing token AccessorID', undefined],
    ['GET', '/v1/acl/templated-policy/name/', 400, 'Missing templated policy Name', undefined],
  ];
  for (const [method, url, status, body, allow] of cases) {
    const answer = await app.inject({
      method: method as 'GET',
      url,
      headers: { 'content-type': ';;' },
    });
    t.equal(answer.statusCode, status, `${method} ${url}`);
    t.equal(answer.body, body, `${method} ${url}`);
    t.equal(answer.headers.allow, allow, `${method} ${url}`);
    t.equal(answer.headers['content-type'], 'text/plain; charset=utf-8');
  }
  t.same(operations.calls, []);
});

t.test('routes: every endpoint reaches its operation with its parameter', async (t) => {
  for (const [name, endpoint] of Object.entries<Endpoint>(ENDPOINTS)) {
    const { app, operations } = server({ [name]: refuse('internal') });
    const url = endpoint.path.replace(/:\w+/, 'the-id');
    const empty = name.endsWith('authorize') ? '[]' : '{}';
    const payload = endpoint.body === undefined ? {} : { payload: empty };
    await app.inject({ method: endpoint.method, url, ...payload });
    t.equal(operations.calls[0]?.name, name, `${endpoint.method} ${url}`);
    const isNamed = endpoint.path.includes(':');
    t.equal(JSON.stringify(operations.calls[0]?.input).includes('the-id'), isNamed, name);
  }
});

t.test(
  'routes: PUT with an empty id creates, and the clone suffix is known to PUT alone',
  async (t) => {
    const { app, operations } = server({});
    const cases: [string, string, string, string][] = [
      ['PUT', '/v1/acl/policy/', 'policy.create', 'draft'],
      ['PUT', '/v1/acl/token/', 'token.create', 'draft'],
      ['PUT', '/v1/acl/role/', 'role.create', 'draft'],
      ['PUT', '/v1/acl/binding-rule/', 'binding-rule.create', 'draft'],
      ['PUT', '/v1/acl/auth-method/', 'auth-method.create', 'draft'],
      ['PUT', '/v1/acl/token/x/clone', 'token.clone', '"accessorId":"x"'],
      ['PUT', '/v1/acl/token/clone', 'token.update', '"accessorId":"clone"'],
      ['GET', '/v1/acl/token/x/clone', 'token.read', '"accessorId":"x/clone"'],
      [
        'GET',
        '/v1/acl/policy/name/builtin%2Fglobal-read-only',
        'policy.read-by-name',
        '"name":"builtin/global-read-only"',
      ],
      ['GET', '/v1/acl/policy/name/builtin%252Fa+b', 'policy.read-by-name', '"name":"builtin/a b"'],
      ['GET', '/v1/acl/role/name/a+b', 'role.read-by-name', '"name":"a+b"'],
      ['GET', '/v1/acl/role/name/a%2Bb%25', 'role.read-by-name', '"name":"a+b%"'],
      ['GET', '/v1/acl/policy%2Fname/x', 'policy.read-by-name', '"name":"x"'],
      [
        'GET',
        '/v1/acl/templated-policy/name/builtin/service',
        'templated-policy.read',
        '"name":"builtin/service"',
      ],
      ['GET', `/v1/acl/role/name/${'n'.repeat(256)}`, 'role.read-by-name', 'nnn'],
      ['GET', '/v1/acl/policy/%C3%A9%3F%23', 'policy.read', '"id":"é?#"'],
    ];
    for (const [method, url, name, input] of cases) {
      operations.calls.length = 0;
      await app.inject({
        method: method as 'GET',
        url,
        ...(method === 'PUT' ? { payload: '{}' } : {}),
      });
      t.equal(operations.calls[0]?.name, name, url);
      t.match(JSON.stringify(operations.calls[0]?.input), input, url);
    }
  },
);

t.test('paths: cleaned, redirected or refused before they are routed', async (t) => {
  const cases: [string, unknown][] = [
    ['/v1/acl/policies?x', { kind: 'clean', path: '/v1/acl/policies' }],
    ['/v1//acl/policies', { kind: 'redirect', path: '/v1/acl/policies' }],
    ['//evil.example/%2e%2e', { kind: 'redirect', path: '/' }],
    ['/v1/./acl/../acl/policies', { kind: 'redirect', path: '/v1/acl/policies' }],
    ['/v1/acl/policy/a%2F%2Fb', { kind: 'redirect', path: '/v1/acl/policy/a/b' }],
    ['/v1/acl/policy/x/', { kind: 'clean', path: '/v1/acl/policy/x/' }],
    ['/..', { kind: 'redirect', path: '/' }],
    ['http://host/v1/acl/policies', { kind: 'clean', path: '/v1/acl/policies' }],
    ['/%00', { kind: 'refused' }],
    ['/%7F', { kind: 'refused' }],
    ['/%E2%80%AE', { kind: 'refused' }],
    ['/%zz', { kind: 'refused' }],
    ['/%ff', { kind: 'refused' }],
    ['*', { kind: 'refused' }],
  ];
  for (const [target, expected] of cases) t.same(targetPathOf(target), expected, target);
  const { app } = server({});
  const get = await app.inject('/v1/acl//policies?stale&x=1');
  t.equal(get.statusCode, 301);
  t.equal(get.headers.location, '/v1/acl/policies?stale&x=1');
  const put = await app.inject({ method: 'PUT', url: '/v1//acl/policy', payload: '{}' });
  t.equal(put.statusCode, 307, 'a write must not become a read');
  t.equal((await app.inject('/v1/%00')).statusCode, 400);
  t.equal((await app.inject('/v1/%00')).body, '');
});

t.test('paths: one of very many segments is answered as any other', async (t) => {
  const { app } = server({});
  const deep = 'a/'.repeat(LIMITS.pathChars / 2 - 100);
  for (const [url, status] of [
    [`/${deep}`, 404],
    [`/v1/${deep}`, 404],
    [`/v1/acl/policies/${deep}`, 404],
    [`/v1/acl/login/${deep}`, 404],
  ] as const) {
    t.equal((await app.inject({ method: 'GET', url })).statusCode, status);
  }
  const wrong = await app.inject({ method: 'POST', url: `/v1/acl/token/${deep}` });
  t.equal(wrong.statusCode, 405);
  t.equal(wrong.headers.allow, 'OPTIONS,GET,PUT,DELETE');
  await app.close();
});

t.test(
  'paths: one that is too long to mean anything is refused, whatever it is made of',
  async (t) => {
    const { app, operations } = server({
      'policy.read': () => ({ value: policyView(), meta: readMeta(5) }),
    });
    const { pathChars } = LIMITS;
    const longest = `/v1/acl/policy/${'a'.repeat(pathChars - '/v1/acl/policy/'.length)}`;
    t.equal((await app.inject(longest)).statusCode, 200);
    t.equal((await app.inject(`${longest}?stale`)).statusCode, 200, 'the query does not count');
    for (const part of ['a', '/', '%2e', '%41', '{', '/a']) {
      for (const start of ['/v1/acl/policy/', '/v1//acl', '/']) {
        const url = `${start}${part.repeat(pathChars)}?x`;
        const { statusCode, body, headers } = await app.inject(url);
        t.same([statusCode, body, headers.location], [400, '', undefined], `${start}${part}`);
      }
    }
    t.equal(operations.calls.length, 2);
    await app.close();
  },
);

t.test('token: sources in their order', async (t) => {
  const cases: [string, Record<string, string>, string | undefined, string | undefined][] = [
    ['?token=q', { 'x-service-token': 'h' }, 'd', 'q'],
    ['', { 'x-service-token': 'h', authorization: 'Bearer b' }, 'd', 'h'],
    ['', { 'x-consul-token': 'c', authorization: 'Bearer b' }, 'd', 'c'],
    ['?token=', { 'x-consul-token': 'c' }, 'd', 'c'],
    ['', { authorization: 'bEaReR b c' }, 'd', 'b'],
    ['', { authorization: 'Bearer   b c' }, 'd', 'b'],
    ['', { authorization: 'Bearerb' }, 'd', 'd'],
    ['', { authorization: 'Basic b' }, 'd', 'd'],
    ['', { authorization: 'Bearer' }, undefined, undefined],
    ['', {}, undefined, undefined],
  ];
  for (const [query, headers, defaultToken, expected] of cases) {
    const { app, operations, defaultToken: own } = server({ 'policy.read': readPolicy });
    own.set(defaultToken ?? '');
    await app.inject({ url: `/v1/acl/policy/x${query}`, headers });
    t.equal(operations.calls[0]?.call.secret, expected);
  }
});

t.test('token in the query: a warning without the secret, not for every request', async (t) => {
  const secret = '99999999-8888-7777-6666-555555555555';
  const failing = () => {
    throw new Error('broken');
  };
  const { app, logger, clock } = server({ 'policy.read': readPolicy, 'role.read': failing });
  for (let turn = 0; turn < 3; turn += 1) await app.inject(`/v1/acl/policy/x?token=${secret}`);
  t.equal(logger.lines.filter((line) => line.level === 'warn').length, 1);
  clock.nowMs += 10_000;
  await app.inject(`/v1/acl/policy/x?token=${secret}`);
  t.equal(logger.lines.at(-1)?.fields.requests, 3);
  const failed = await app.inject({
    url: `/v1/acl/role/x?token=${secret}`,
    headers: { 'x-service-token': secret, authorization: `Bearer ${secret}` },
  });
  t.equal(failed.statusCode, 500);
  t.equal(failed.body, 'internal error, see deadbeef in the log of the server');
  t.match(logger.lines.at(-1)?.fields.cause, 'broken');
  t.notMatch(JSON.stringify(logger.lines), secret);
  const metrics = await server({ authorize: () => [{ allow: true }] as never }).app.inject(
    '/v1/agent/metrics',
  );
  t.notMatch(metrics.body, secret);
});

t.test('headers: both prefixes on every answer, by the kind of the endpoint', async (t) => {
  const { app } = server({
    'policy.read': readPolicy,
    'policy.list': () => listOf([[policyView()]], { index: 0 }),
    'policy.delete': () => ({ value: true, meta: WRITE_META }),
    'role.read': () => ({
      refusal: { code: 'not-found', message: 'Requested role does not exist: ACL not found' },
      meta: readMeta(12),
    }),
    'binding-rule.read': refuse('permission-denied'),
    'templated-policy.list': () => [],
    'token.read': refuse('malformed'),
  });
  const none = undefined;
  const cases: [string, string, number, Record<string, string | undefined>][] = [
    [
      'GET',
      '/v1/acl/policy/x',
      200,
      {
        Index: '10',
        KnownLeader: 'true',
        LastContact: '0',
        'Query-Backend': 'blocking-query',
        Position: '1.10',
        'Default-ACL-Policy': 'deny',
        Ack: none,
      },
    ],
    [
      'GET',
      '/v1/acl/policies',
      200,
      { Index: '1', KnownLeader: 'true', LastContact: '0', Position: '1.0' },
    ],
    [
      'DELETE',
      '/v1/acl/policy/x',
      200,
      { Index: '9', Position: '1.9', Ack: 'majority', KnownLeader: none, 'Query-Backend': none },
    ],
    [
      'GET',
      '/v1/acl/role/x',
      404,
      { Index: '12', KnownLeader: 'true', LastContact: '0', 'Default-ACL-Policy': 'deny' },
    ],
    ['GET', '/v1/acl/binding-rule/x', 403, { Index: '1', KnownLeader: 'false', LastContact: '0' }],
    ['GET', '/v1/acl/binding-rule/x?index=z', 400, { Index: none, 'Default-ACL-Policy': 'deny' }],
    ['GET', '/v1/acl/templated-policies', 200, { Index: none, Position: '1.7' }],
    ['POST', '/v1/acl/policies', 405, { 'Default-ACL-Policy': 'deny', Index: none }],
  ];
  for (const [method, url, status, expected] of cases) {
    const answer = await app.inject({ method: method as 'GET', url });
    t.equal(answer.statusCode, status, url);
    t.equal(answer.headers.vary, 'Accept-Encoding');
    for (const prefix of HEADER_PREFIXES) {
      for (const [name, value] of Object.entries(expected)) {
        t.equal(answer.headers[(prefix + name).toLowerCase()], value, `${url} ${prefix}${name}`);
      }
    }
  }
});

t.test(
  'status: each dialect answers each refusal with its own code and the same text',
  async (t) => {
    const expected: Record<AclErrorCode, [number, number]> = {
      malformed: [400, 400],
      invalid: [400, 500],
      'id-mismatch': [400, 400],
      'acl-disabled': [401, 401],
      unauthenticated: [401, 401],
      'permission-denied': [403, 403],
      'token-unknown': [403, 403],
      'not-found': [404, 404],
      'token-not-found': [404, 403],
      'update-target-missing': [404, 500],
      duplicate: [409, 500],
      'cas-mismatch': [409, 409],
      'login-refused': [403, 500],
      'method-not-allowed': [405, 405],
      'body-too-large': [413, 413],
      'rate-limited': [429, 429],
      unavailable: [503, 500],
      'not-primary': [503, 500],
      'outcome-unknown': [504, 500],
      'wait-timeout': [504, 504],
      'no-such-datacenter': [400, 500],
      'no-such-endpoint': [404, 404],
      internal: [500, 500],
    };
    for (const [code, [service, consul]] of Object.entries(expected)) {
      const { app } = server({ 'policy.read': refuse(code as AclErrorCode, `text of ${code}`) });
      const plain = await app.inject('/v1/acl/policy/x');
      t.equal(plain.statusCode, service, code);
      const deployed = await app.inject({
        url: '/v1/acl/policy/x',
        headers: { 'x-consul-index': '' },
      });
      t.equal(deployed.statusCode, consul, code);
      t.equal(plain.body, `text of ${code}`);
      t.equal(deployed.body, plain.body);
      t.equal(plain.headers['retry-after'], service === 503 || service === 429 ? '1' : undefined);
      t.equal(statusOf(code as AclErrorCode, 'service'), service);
    }
  },
);

t.test('errors: when not even a refusal can be written, the connection is closed', async (t) => {
  const made = server({ 'policy.read': refuse('internal') });
  made.operations.meta = () => {
    throw new Error('the state is closed');
  };
  await t.rejects(made.app.inject('/v1/acl/policy/x'), /destroyed before completion/);
  t.match(made.logger.lines, [{ level: 'error', message: 'answer failed' }]);
});

t.test('status: the setting goes before the headers', async (t) => {
  const script = { 'policy.read': refuse('duplicate') };
  const consul = server(script, { dialect: 'consul' });
  t.equal((await consul.app.inject('/v1/acl/policy/x')).statusCode, 500);
  const service = server(script, { dialect: 'service' });
  const answer = await service.app.inject({ url: '/v1/acl/policy/x', headers: CONSUL });
  t.equal(answer.statusCode, 409);
});

t.test('errors: RFC 9457 for those who accept it', async (t) => {
  const { app } = server({ 'policy.read': refuse('duplicate', 'A "x" exists') });
  const answer = await app.inject({
    url: '/v1/acl/policy/x',
    headers: { accept: 'application/problem+json, */*' },
  });
  t.equal(answer.headers['content-type'], 'application/problem+json');
  t.same(answer.json(), {
    type: 'about:blank',
    title: 'Conflict',
    status: 409,
    detail: 'A "x" exists',
    code: 'duplicate',
  });
  const text = [
    'application/problem+json;q=0, text/plain',
    'application/problem+json; charset=utf-8; Q=0.0',
    'application/problem+jsonx',
    `application/problem+json${','.repeat(5000)}`,
  ];
  for (const accept of text) {
    const { headers } = await app.inject({ url: '/v1/acl/policy/x', headers: { accept } });
    t.match(headers['content-type'], /^text\/plain/, accept.slice(0, 50));
  }
});

t.test('ACLs off: every operation is refused, health is not', async (t) => {
  const { app } = server({}, { aclEnabled: false });
  for (const [name, endpoint] of Object.entries<Endpoint>(ENDPOINTS)) {
    const url = endpoint.path.replace(/:\w+/, 'x');
    const answer = await app.inject({ method: endpoint.method, url, payload: 'not json' });
    t.equal(answer.statusCode, 401, name);
    t.equal(answer.body, 'ACL support disabled');
    const nameless = url.replace(/x$/, '');
    const answered = await app.inject({ method: endpoint.method, url: nameless, payload: '{}' });
    t.equal(answered.body, 'ACL support disabled', `${name} of nothing`);
  }
  t.equal((await app.inject('/v1/agent/self')).statusCode, 200);
  const wrong = await app.inject({ method: 'POST', url: '/v1/acl/policies' });
  t.equal(wrong.statusCode, 405, 'the method is checked first');
});

t.test('query: values that cannot be read are refused in the order of the checks', async (t) => {
  const { app, operations } = server({
    'policy.list': () => listOf([]),
    'policy.delete': () => ({ value: true, meta: WRITE_META }),
  });
  const list = '/v1/acl/policies';
  const one = '/v1/acl/policy/x';
  const stale = 'Cannot specify ?stale with ?consistent, conflicting semantics.';
  const long = 'a'.repeat(16 * 1024);
  const longHead = 'a blocking query may have 16384 characters of path, query and headers';
  const cases: [string, string, Record<string, string>, string][] = [
    ['GET', `${list}?stale&consistent&index=x`, {}, stale],
    ['GET', `${list}?max_stale=5s&consistent`, {}, stale],
    [
      'GET',
      `${list}?cached&consistent`,
      {},
      'Cannot specify ?cached with ?consistent, conflicting semantics.',
    ],
    ['GET', `${list}?max_stale=x`, {}, 'Invalid max_stale value "x"'],
    ['GET', `${list}?wait=x`, { 'cache-control': 'max-age=x' }, 'Invalid Cache-Control header.'],
    ['GET', `${list}?wait=60&index=x`, {}, 'Invalid wait time'],
    ['GET', `${list}?index=-1`, {}, 'Invalid index'],
    ['GET', `${list}?index=18446744073709551616`, {}, 'Invalid index'],
    [
      'GET',
      `${list}?index=1&partition=p`,
      {},
      'Invalid query parameter: "partition" - Partitions are not enabled',
    ],
    [
      'GET',
      list,
      { 'x-service-partition': 'p' },
      'Invalid header: "X-Service-Partition" - Partitions are not enabled',
    ],
    [
      'DELETE',
      '/v1/namespace/team',
      { 'x-service-partition': 'p' },
      'Invalid header: "X-Service-Partition" - Partitions are not enabled',
    ],
    ['GET', `${list}?min-position=1`, {}, 'Invalid min-position'],
    ['GET', `${list}?min-position=`, {}, 'Invalid min-position'],
    ['GET', `${list}?limit=0`, {}, 'Invalid limit'],
    ['GET', `${list}?limit=x`, {}, 'Invalid limit'],
    ['GET', `${list}?limit`, {}, 'Invalid limit'],
    ['GET', `${list}?next=%21`, {}, 'Invalid next'],
    ['DELETE', `${one}?cas=x`, {}, 'Invalid cas'],
    ['DELETE', `${one}?cas=`, {}, 'Invalid cas'],
    ['DELETE', `${one}?cas`, {}, 'Invalid cas'],
    ['DELETE', `${one}?ack=some`, {}, 'Invalid ack'],
    ['DELETE', `${one}?ack=`, {}, 'Invalid ack'],
    ['DELETE', `${one}?ack_timeout=0s`, {}, 'Invalid ack_timeout'],
    ['DELETE', `${one}?ack_timeout=`, {}, 'Invalid ack_timeout'],
    ['DELETE', one, { 'idempotency-key': 'k'.repeat(129) }, 'Invalid request id'],
    ['GET', `${list}?index=1&a=${long}`, {}, longHead],
    ['GET', `${list}?index=1`, { 'x-a': long }, longHead],
    ['GET', `${list}?a${'&a'.repeat(100)}`, {}, 'the query has more than 100 parameters'],
    [
      'GET',
      `${list}?a=${'+'.repeat(LIMITS.queryChars)}`,
      {},
      'the query has more than 65536 characters',
    ],
    [
      'GET',
      `/v1//acl/tokens?${'&'.repeat(LIMITS.queryChars + 1)}`,
      {},
      'the query has more than 65536 characters',
    ],
    ['GET', list, { 'cache-control': 'a,'.repeat(100) }, 'Invalid Cache-Control header.'],
    ['GET', `${list}?wait=${'1s'.repeat(129)}`, {}, 'Invalid wait time'],
  ];
  for (const [method, url, headers, text] of cases) {
    const answer = await app.inject({ method: method as 'GET', url, headers });
    t.equal(answer.statusCode, 400, url.slice(0, 99));
    t.equal(answer.body, text, url.slice(0, 99));
  }
  t.same(operations.calls, []);
  for (const query of [`a${'&a'.repeat(99)}`, `index=0&a=${long}`, 'index=1&a=short']) {
    t.equal((await app.inject(`${list}?${query}`)).statusCode, 200, 'as much as may be');
  }
});

t.test('query: broken escapes are refused everywhere, before all else', async (t) => {
  const { app, operations, logger } = server(
    {},
    { aclEnabled: false },
    { notReadyReasons: () => ['no'] },
  );
  const all: readonly Endpoint[] = [
    ...Object.values<Endpoint>(ENDPOINTS),
    ...Object.values<Endpoint>(NODE_ENDPOINTS),
    ...Object.values<Endpoint>(OPERATOR_ENDPOINTS),
    ...Object.values<Endpoint>(SNAPSHOT_ENDPOINTS),
  ];
  const asked: (readonly [method: string, path: string])[] = [
    ...all.map(({ method, path }) => [method, path.replace(/:\w+/, 'x')] as const),
    ['GET', '/v1/acl/policy/'],
    ['DELETE', '/v1/acl/tokens'],
    ['OPTIONS', '/v1/acl/tokens'],
    ['GET', '/v1/foo'],
    ['GET', '/foo'],
  ];
  for (const [method, path] of asked.filter(([, path]) => path !== '/livez')) {
    for (const query of ['%zz', 'a=%ff', 'pretty&%']) {
      const ask = { method: method as 'GET', url: `${path}?${query}` };
      const answer = await app.inject(ask);
      t.equal(answer.statusCode, 400, `${method} ${ask.url}`);
      t.equal(answer.body, '', ask.url);
      const deployed = await app.inject({ ...ask, headers: CONSUL });
      t.equal(deployed.statusCode, 500, 'deployed servers answer so');
      t.equal(deployed.body, '', ask.url);
    }
  }
  t.equal((await app.inject('/livez?%zz')).statusCode, 200, 'asks for nothing');
  t.same(operations.calls, []);
  t.same(logger.lines, []);
});

t.test('query: what is asked arrives in the call', async (t) => {
  const { app, operations } = server({
    'policy.read': readPolicy,
    'policy.delete': () => ({ value: true, meta: WRITE_META }),
    'token.list': () => listOf([]),
  });
  await app.inject('/v1/acl/policy/x?max_stale=1ms&dc=a&datacenter=b&ns=n&min-position=2.30');
  await app.inject({
    url: '/v1/acl/policy/x?consistent=false',
    headers: { 'x-consul-namespace': 'h' },
  });
  await app.inject({
    method: 'DELETE',
    url: '/v1/acl/policy/x?cas=5&ack=all&ack_timeout=1.5s&leader',
    headers: { 'x-service-request-id': 'r', 'idempotency-key': 'k' },
  });
  await app.inject({
    method: 'DELETE',
    url: '/v1/acl/policy/x',
    headers: { 'idempotency-key': 'k' },
  });
  const calls = operations.calls.map(({ call }) => call);
  t.match(calls[0], {
    consistency: 'stale',
    datacenter: 'b',
    namespaceParameter: 'n',
    minPosition: { epoch: 2, seq: 30 },
    cas: undefined,
  });
  t.match(calls[1], { consistency: 'consistent', namespaceHeader: 'h' });
  t.match(calls[2], {
    cas: 5,
    ack: 'all',
    ackTimeoutMs: 1500,
    requestId: 'r',
    consistency: 'default',
  });
  t.match(calls[3], { requestId: 'k', cas: undefined, ack: undefined });
  await app.inject(
    '/v1/acl/tokens?policy=p&role=r&servicename=s&authmethod=m&authmethod-ns=n&limit=5000',
  );
  t.same(operations.calls[4]?.input, {
    policy: 'p',
    role: 'r',
    serviceName: 's',
    authMethod: 'm',
    authMethodNamespace: 'n',
    page: { limit: 1000, after: undefined },
  });
});

t.test('namespaces off: parameters and headers are refused where they would count', async (t) => {
  const { app } = server(
    { 'token.read-self': () => ({ value: tokenView(), meta: readMeta(2) }) },
    { namespaces: false },
  );
  const off = '- Namespaces are not enabled';
  const cases: [string, Record<string, string>, number, string][] = [
    ['/v1/acl/policies?ns=x', {}, 400, `Invalid query parameter: "ns" ${off}`],
    [
      '/v1/acl/policies',
      { 'x-consul-namespace': 'x' },
      400,
      `Invalid header: "X-Consul-Namespace" ${off}`,
    ],
    ['/v1/acl/tokens?authmethod-ns=x', {}, 400, `Invalid query parameter: "authmethod-ns" ${off}`],
    ['/v1/acl/token/self?ns=x', { 'x-service-namespace': 'x' }, 200, ''],
  ];
  for (const [url, headers, status, text] of cases) {
    const answer = await app.inject({ url, headers });
    t.equal(answer.statusCode, status, url);
    if (text !== '') t.equal(answer.body, text);
    else t.notMatch(answer.body, 'Namespace');
  }
});

t.test('bodies: decoding failures carry the label of the endpoint', async (t) => {
  const { app } = server({});
  const cases: [string, string, string, string][] = [
    ['PUT', '/v1/acl/policy', 'x', 'Policy decoding failed'],
    ['PUT', '/v1/acl/policy/i', 'x', 'Policy decoding failed'],
    ['PUT', '/v1/acl/token', 'x', 'Token decoding failed'],
    ['PUT', '/v1/acl/token/i/clone', 'x', 'Token decoding failed'],
    ['PUT', '/v1/acl/role', 'x', 'Role decoding failed'],
    ['PUT', '/v1/acl/binding-rule', 'x', 'BindingRule decoding failed'],
    ['PUT', '/v1/acl/auth-method', 'x', 'AuthMethod decoding failed'],
    ['PUT', '/v1/acl/bootstrap', 'x', 'Request decoding failed'],
    ['POST', '/v1/acl/login', 'x', 'Failed to decode request body'],
    ['POST', '/v1/internal/acl/authorize', 'x', 'Failed to decode request body'],
    ['POST', '/v1/acl/templated-policy/preview/n', 'x', 'Failed to decode request body'],
  ];
  for (const [method, url, payload, label] of cases) {
    const answer = await app.inject({ method: method as 'PUT', url, payload });
    t.equal(answer.statusCode, 400, url);
    t.equal(answer.body, `${label}: invalid character 'x' looking for beginning of value`, url);
  }
  const empty = await app.inject({ method: 'PUT', url: '/v1/acl/policy' });
  t.equal(empty.body, 'Policy decoding failed: EOF');
});

t.test('bodies: any content type is JSON, and bootstrap and clone need none', async (t) => {
  const { app, operations } = server({});
  const types = [
    'application/json',
    'application/x-www-form-urlencoded',
    'text/plain',
    ';;',
    'a/b;c',
  ];
  for (const type of types) {
    const headers = { 'content-type': type };
    await app.inject({ method: 'PUT', url: '/v1/acl/policy', headers, payload: '{"Name":"x"}' });
    t.match(
      operations.calls.at(-1),
      { name: 'policy.create', input: { draft: { name: 'x' } } },
      type,
    );
  }
  await app.inject({ method: 'PUT', url: '/v1/acl/policy', payload: Buffer.from('{"Name":"y"}') });
  t.match(operations.calls.at(-1)?.input, { draft: { name: 'y' } }, 'no content type');
  for (const url of ['/v1/acl/bootstrap', '/v1/acl/token/x/clone']) {
    const before = operations.calls.length;
    await app.inject({ method: 'PUT', url, headers: { 'content-type': 'application/json' } });
    t.equal(operations.calls.length, before + 1, url);
  }
  await app.inject({
    method: 'DELETE',
    url: '/v1/acl/policy/x',
    headers: { 'content-type': 'application/json' },
  });
  t.equal(operations.calls.at(-1)?.name, 'policy.delete');
});

t.test('bodies: an id that disagrees with the path is refused', async (t) => {
  const { app, operations } = server({});
  const cases: [string, string, string][] = [
    ['/v1/acl/policy', '{"ID":"a"}', 'Cannot specify the ID when creating a new policy'],
    ['/v1/acl/policy/x', '{"ID":"a"}', 'Policy ID in URL and payload do not match'],
    ['/v1/acl/role', '{"ID":"a"}', 'Role ID in URL and payload do not match'],
    ['/v1/acl/role/x', '{"ID":"X"}', 'Role ID in URL and payload do not match'],
    ['/v1/acl/binding-rule', '{"ID":"a"}', 'BindingRule ID in URL and payload do not match'],
    ['/v1/acl/auth-method/x', '{"Name":"a"}', 'AuthMethod Name in URL and payload do not match'],
    ['/v1/acl/token/x', '{"AccessorID":"a"}', 'Token Accessor ID in URL and payload do not match'],
  ];
  for (const [url, payload, text] of cases) {
    const answer = await app.inject({ method: 'PUT', url, payload, headers: CONSUL });
    t.equal(answer.statusCode, 400, url);
    t.equal(answer.body, text, url);
  }
  t.same(operations.calls, []);
});

t.test('authorize: at most 64 questions, explanations on demand', async (t) => {
  const { app, operations } = server({
    authorize: ({ items }) =>
      items.map((item) => ({ ...item, allow: true, explanation: undefined })),
  });
  const ask = (count: number, query = '') =>
    app.inject({
      method: 'POST',
      url: `/v1/internal/acl/authorize${query}`,
      payload: JSON.stringify(Array(count).fill({ Resource: 'key', Access: 'read', Segment: 'a' })),
    });
  t.equal((await ask(65)).body, 'Refusing to process more than 64 authorizations at once');
  t.equal((await ask(65)).statusCode, 400);
  t.equal((await ask(1)).body, '[{"Resource":"key","Segment":"a","Access":"read","Allow":true}]');
  await ask(64, '?explain');
  t.match(operations.calls.at(-1)?.input, { explain: true });
});

t.test('node: what a server says about itself', async (t) => {
  const allow = ({ items }: { items: readonly object[] }) =>
    items.map((item) => ({ ...item, allow: true })) as never;
  const { app } = server({ authorize: allow });
  const json = async (url: string) => (await app.inject(url)).json() as unknown;
  t.equal(await json('/v1/status/leader'), '127.0.0.1:8300');
  t.same(await json('/v1/status/peers'), ['127.0.0.1:8300', '127.0.0.1:8301']);
  t.same(await json('/v1/catalog/datacenters'), ['dc1', 'dc2']);
  t.match(await json('/v1/agent/version'), { HumanVersion: '1.22.0', Conclave: '0.1.0' });
  t.match(await json('/v1/agent/self'), {
    Config: { Datacenter: 'dc1', NodeName: 'n1', Server: true, LogLevel: 'info' },
    Stats: {
      raft: { term: '3' },
      consul: { leader: 'false', leader_addr: '127.0.0.1:8300', known_datacenters: '2' },
    },
    Member: { Name: 'n1', Status: 1, ...PROTOCOLS },
  });
  t.same(await json('/v1/agent/members'), [
    {
      ...{ ...PROTOCOLS, Name: 'n1', Addr: '127.0.0.1', Port: 8300, Status: 1 },
      Tags: {
        ...{ role: 'consul', dc: 'dc1', id: 'id-1', build: '0.1.0', vsn: '2', voter: 'true' },
        reads_feature_level: '2',
      },
    },
    {
      ...{ ...PROTOCOLS, Name: 'n2', Addr: '127.0.0.1', Port: 8301, Status: 4 },
      Tags: { role: 'consul', dc: 'dc1', id: 'id-2', build: '0.0.9', vsn: '2', voter: 'true' },
    },
  ]);
  t.match(await json('/v1/openapi.json'), { openapi: '3.1.0' });
  t.match(await json('/v1/agent/metrics'), { Counters: [{ Name: 'conclave.http.requests' }] });
  const text = (await app.inject('/v1/agent/metrics?format=prometheus')).body;
  t.match(text, 'conclave_http_requests{method="GET",route="/v1/status/leader",status="200"} 1');
  t.match(
    text,
    'conclave_http_request_ms_bucket{method="GET",route="/v1/status/leader",le="+Inf"} 1',
  );
  t.equal((await app.inject('/livez')).body, 'ok\n');
  t.equal((await app.inject('/readyz')).statusCode, 200);
  const waiting = server({}, {}, { notReadyReasons: () => ['no leader'], leader: () => undefined });
  t.equal((await waiting.app.inject('/readyz')).statusCode, 503);
  t.equal((await waiting.app.inject('/readyz')).body, 'no leader\n');
  t.equal((await waiting.app.inject('/v1/status/leader')).body, '""');
  for (const endpoint of Object.values<Endpoint>(NODE_ENDPOINTS)) {
    if (endpoint.method !== 'GET') continue;
    t.equal((await app.inject(endpoint.path)).statusCode, 200, endpoint.path);
  }
});

t.test('node: the description is made once for each form, and says the same in all', async (t) => {
  const { app } = server({});
  const document: unknown = JSON.parse(JSON.stringify(openApiDocument('0.1.0')));
  const indented = `${JSON.stringify(document, null, 4)}\n`;
  const forms: [query: string, text: string, isPretty: boolean][] = [
    ['', JSON.stringify(document), false],
    ['?pretty', indented, true],
  ];
  for (const [query, text, isPretty] of forms) {
    const url = `/v1/openapi.json${query}`;
    const plain = await app.inject(url);
    t.equal(plain.body, text, url);
    t.equal(plain.headers['content-type'], 'application/json');
    t.equal(plain.headers['x-service-position'], '1.7');
    const gzipped = await app.inject({ url, headers: { 'accept-encoding': 'gzip' } });
    t.equal(gzipped.headers['content-encoding'], 'gzip');
    t.equal(gunzipSync(gzipped.rawPayload).toString(), text, url);
    const bytes = () => descriptionOf('0.1.0', { isPretty });
    t.equal(bytes().plain, bytes().plain, 'the same bytes');
    t.equal(bytes().gzipped, bytes().gzipped);
  }
  t.not(descriptionOf('0.1.0', { isPretty: false }), descriptionOf('2', { isPretty: false }));
});

t.test('readyz: with max_lag only a datacenter that is near enough is ready', async (t) => {
  let enabled = true;
  let lagMs: number | undefined = 1_500;
  const status = () => ({ enabled, federation: { datacenters: [{ isSelf: true, lagMs }] } });
  const { app, operations } = server({ 'replication.status': status as never });
  const asked = async (query: string) => {
    const { statusCode, body } = await app.inject(`/readyz${query}`);
    return [statusCode, body];
  };
  t.same(await asked('?max_lag=2s'), [200, 'ok\n']);
  t.same(await asked('?max_lag=1500ms'), [200, 'ok\n']);
  t.same(await asked('?max_lag=1s'), [503, 'this datacenter is 1500 ms behind the primary\n']);
  t.same(await asked('?max_lag=0s'), [503, 'this datacenter is 1500 ms behind the primary\n']);
  t.same(await asked(''), [200, 'ok\n'], 'without it lag does not matter');
  for (const wrong of ['soon', '-1s', '10']) {
    t.same(await asked(`?max_lag=${wrong}`), [400, 'Invalid max_lag'], wrong);
  }
  lagMs = undefined;
  const unknown = 'how far this datacenter is behind the primary is not known\n';
  t.same(await asked('?max_lag=10s'), [503, unknown]);
  enabled = false;
  t.same(await asked('?max_lag=10s'), [200, 'ok\n'], 'the primary is never behind');
  t.ok(operations.calls.every(({ call }) => call.datacenter === undefined));
});

t.test('node: figures and members only for those who may see them', async (t) => {
  const accessorIds: Record<string, string> = {
    anonymous: '00000000-0000-0000-0000-000000000002',
    s: '33333333-3333-3333-3333-333333333333',
  };
  const { app } = server({
    authorize: ({ items, explain }, { secret = 'anonymous' }) => {
      const token = { accessorId: accessorIds[secret], description: '' };
      const explanation = explain ? { token } : undefined;
      return items.map((item) => ({
        ...item,
        allow: item.segment === 'n2',
        explanation,
      })) as never;
    },
  });
  const lacks = `lacks permission 'agent:read' on "n1"`;
  for (const url of ['/v1/agent/self', '/v1/agent/metrics']) {
    const named = await app.inject({ url, headers: CONSUL });
    t.equal(named.statusCode, 403, url);
    t.equal(named.body, `Permission denied: token with AccessorID '${accessorIds.s}' ${lacks}`);
    const anonymous = await app.inject(url);
    t.equal(anonymous.statusCode, 403, url);
    t.match(anonymous.body, `Permission denied: anonymous token ${lacks}. The anonymous token is`);
  }
  t.match((await app.inject('/v1/agent/members')).json(), [{ Name: 'n2' }]);
});

t.test(
  'node: a filter shows the members that it means, and no pattern is run for it',
  async (t) => {
    const { app } = server({
      authorize: ({ items }) =>
        items.map((item) => ({ ...item, allow: item.segment !== 'n3' })) as never,
    });
    const ask = (filter: string) =>
      app.inject({
        url: `/v1/agent/members?filter=${encodeURIComponent(filter)}`,
        headers: CONSUL,
      });
    const cases: readonly [filter: string, names: readonly string[]][] = [
      ['', ['n1', 'n2']],
      ['Name == n2', ['n2']],
      ['Tags.build != "0.1.0"', ['n2']],
      ['Status == 1 and Port == 8300', ['n1']],
      ['Addr == "127.0.0.1" and not (Tags["id"] == "id-1")', ['n2']],
      ['reads_feature_level in Tags', ['n1']],
      ['Tags.none == "x"', []],
    ];
    for (const [filter, names] of cases) {
      const members = (await ask(filter)).json() as readonly { readonly Name: string }[];
      t.same(
        members.map(({ Name }) => Name),
        names,
        filter,
      );
    }
    const bad: readonly [filter: string, text: RegExp][] = [
      ['Name ==', /^1:8: /],
      ['Meta.x == 1', /^1:1: there is no attribute "Meta.x"$/],
      ['Tags.build matches "(a?){199}"', /^1:1: "matches" cannot be used here$/],
      [`Name == "${'x'.repeat(8192)}"`, /^a selector may have at most 8192 characters$/],
    ];
    for (const [filter, text] of bad) {
      const answer = await ask(filter);
      t.equal(answer.statusCode, 500, filter.slice(0, 40));
      t.match(answer.body, text);
    }
  },
);

t.test('node: tokens of agents are taken where nobody would miss them', async (t) => {
  const { app, operations, defaultToken } = server({
    authorize: ({ items, explain }, { secret }) => {
      const token = { accessorId: 'a', description: '' };
      const explanation = explain ? { token } : undefined;
      return items.map((item) => ({ ...item, allow: secret === 'x', explanation })) as never;
    },
  });
  const put = (kind: string, payload = '{"Token":"s"}', secret = 'x') =>
    app.inject({
      method: 'PUT',
      url: `/v1/agent/token/${kind}`,
      headers: { 'x-consul-token': secret },
      payload,
    });
  for (const kind of ['agent', 'replication', 'dns', 'config_file_service_registration']) {
    const answer = await put(kind);
    t.same([answer.statusCode, answer.body], [200, 'true'], kind);
  }
  t.match(operations.calls.at(-1)?.input, {
    items: [{ resource: 'agent', access: 'write', segment: 'n1', namespace: 'default' }],
  });
  for (const [kind, secret] of [
    ['default', 'd'],
    ['acl_token', 'e'],
    ['default', ''],
  ] as const) {
    t.equal((await put(kind, JSON.stringify({ Token: secret }))).body, 'true');
    t.equal(defaultToken.secret, secret === '' ? undefined : secret);
  }
  t.equal((await put('default', '{"Token":"f"}', 'y')).statusCode, 403);
  t.equal(defaultToken.secret, undefined);
  const refusals: readonly [kind: string, status: number, text: string][] = [
    ['agent_recovery', 500, 'Servers have no recovery token: '],
    ['acl_agent_master_token', 500, 'Servers have no recovery token: '],
    ['nonsense', 404, 'Token "nonsense" is unknown'],
    ['', 404, 'Token "" is unknown'],
  ];
  for (const [kind, status, text] of refusals) {
    const answer = await put(kind);
    t.equal(answer.statusCode, status, kind);
    t.match(answer.body, text);
  }
  for (const payload of ['', '{', '{"Secret":"s"}']) {
    const answer = await put('agent', payload);
    t.equal(answer.statusCode, 400, payload);
    t.match(answer.body, 'Request decode failed: ');
  }
  for (const kind of ['agent', 'default', 'nonsense']) {
    const answer = await put(kind, '{', 'y');
    t.equal(answer.statusCode, 403, kind);
    t.match(answer.body, `lacks permission 'agent:write' on "n1"`);
  }
});

t.test('node: the rights are those that the token has here, whatever `dc` says', async (t) => {
  const { app, operations } = server({
    authorize: ({ items }, { datacenter }) =>
      items.map((item) => ({
        ...item,
        allow: datacenter === 'dc2',
        explanation: { token: { accessorId: 'a', description: '' } },
      })) as never,
  });
  for (const url of ['/v1/agent/self', '/v1/agent/metrics']) {
    for (const query of ['?dc=dc2', '?datacenter=dc2']) {
      t.equal((await app.inject(`${url}${query}`)).statusCode, 403, url + query);
    }
  }
  t.same((await app.inject('/v1/agent/members?dc=dc2')).json(), []);
  t.ok(operations.calls.every(({ call }) => call.datacenter === undefined));
});

t.test('node: of servers no rules of a namespace speak, wherever the token lives', async (t) => {
  const { app, harness } = await operatorServer();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const rules = 'node_prefix "" { policy = "read" }';
  const shownTo = async (home: string) => {
    const id = await newPolicy(harness, 'nodes', rules, home);
    const { secretId } = await newToken(harness, { namespace: 'team', policies: [{ id }] });
    const members = async (query: string): Promise<number> => {
      const url = `/v1/agent/members${query}`;
      const answer = await app.inject({ url, headers: { 'x-service-token': secretId } });
      return (answer.json() as unknown[]).length;
    };
    return [await members(''), await members('?ns=team'), await members('?ns=default')];
  };
  t.same(await shownTo('team'), [0, 0, 0], 'by a rule of the namespace');
  t.same(await shownTo('default'), [2, 2, 2], 'by one of `default`');
});

t.test('node: nobody is told of another datacenter what is so in this one', async (t) => {
  const { app } = server({});
  const headers = { 'x-consul-token': 'x' };
  for (const url of ['/v1/status/leader', '/v1/status/peers']) {
    const own = await app.inject({ url, headers });
    t.equal((await app.inject({ url: `${url}?dc=dc1`, headers })).body, own.body);
    t.equal((await app.inject({ url: `${url}?dc=`, headers })).body, own.body);
    const unknown = await app.inject({ url: `${url}?dc=nowhere`, headers });
    t.same([unknown.statusCode, unknown.body], [500, 'No path to datacenter'], url);
    const other = await app.inject(`${url}?dc=dc2`);
    t.same(
      [other.statusCode, other.body],
      [400, 'only a server of datacenter dc2 can do that: ask one'],
      url,
    );
  }
});

t.test('metrics: labels are templates, never what a caller wrote', async (t) => {
  const { app, metrics } = server({ 'policy.read': readPolicy });
  await app.inject('/v1/acl/policy/raw-id-of-a-caller');
  await app.inject('/raw-id-of-a-caller');
  await app.inject({ method: 'PROPFIND' as 'GET', url: '/v1/acl/policy/raw-id-of-a-caller' });
  t.match(metrics.prometheus(), 'route="/v1/acl/policy/:id",status="200"} 1');
  t.notMatch(metrics.prometheus(), 'raw-id-of-a-caller');
});

t.test('rate limit: refused when enforcing, let through when permissive', async (t) => {
  const limits = (mode: 'permissive' | 'enforcing') => ({
    requestLimits: { mode, readRate: 2, writeRate: 1 },
  });
  const script = {
    'policy.read': readPolicy,
    'policy.delete': () => ({ value: true, meta: WRITE_META }),
  };
  const { app, clock } = server(script, limits('enforcing'));
  const get = async () => (await app.inject('/v1/acl/policy/x')).statusCode;
  t.same([await get(), await get(), await get()], [200, 200, 429]);
  const refused = await app.inject('/v1/acl/policy/x');
  t.match(refused.body, 'rate limit exceeded, try again later or against a different server');
  t.equal(refused.headers['retry-after'], '1');
  const write = await app.inject({ method: 'DELETE', url: '/v1/acl/policy/x' });
  t.equal(write.statusCode, 200, 'writes have a bucket of their own');
  clock.nowMs += 500;
  t.same([await get(), await get()], [200, 429]);
  t.equal((await app.inject('/livez')).statusCode, 200);
  const permissive = server(script, limits('permissive'));
  for (let turn = 0; turn < 4; turn += 1) {
    t.equal((await permissive.app.inject('/v1/acl/policy/x')).statusCode, 200);
  }
});

t.test('pretty: four spaces and a newline, for objects and lists', async (t) => {
  const { app } = server({
    'policy.read': readPolicy,
    'templated-policy.list': () => [],
    'policy.list': () => listOf([[policyView({ rules: 'a "[{,:}]" \\' })], [policyView()]]),
  });
  for (const url of ['/v1/acl/policy/x', '/v1/acl/policies', '/v1/acl/templated-policies']) {
    const plain: unknown = (await app.inject(url)).json();
    const pretty = await app.inject(`${url}?pretty=false`);
    t.equal(pretty.body, `${JSON.stringify(plain, null, 4)}\n`, url);
  }
});

t.test('pages: bounded, with the way to go on in the header', async (t) => {
  const { app, operations } = server({
    'policy.list': ({ page }) =>
      listOf([[policyView()]], page.after === undefined ? { next: 'kéy/1' } : {}),
  });
  const first = await app.inject('/v1/acl/policies?limit=1');
  const next = first.headers['x-service-next'];
  t.equal(first.headers['x-consul-next'], next);
  const second = await app.inject(`/v1/acl/policies?limit=1&next=${String(next)}`);
  t.same(operations.calls.at(-1)?.input, { page: { limit: 1, after: 'kéy/1' } });
  t.equal(second.headers['x-service-next'], undefined);
  t.equal((await app.inject('/v1/acl/policies')).headers['x-service-next'], undefined);
});

t.test('pages: of long objects end before their limit, and say how to go on', async (t) => {
  let taken = 0;
  const description = 'd'.repeat(1024 * 1024);
  async function* slices() {
    for (; taken < 100; taken += 1) yield [policyView({ description })];
  }
  const { app } = server({
    'policy.list': () => ({ ...listOf([]), slices: slices(), next: () => `at ${taken}` }),
  });
  const page = await app.inject('/v1/acl/policies?limit=1000');
  t.equal(page.json<unknown[]>().length, 4);
  t.equal(page.headers['x-service-next'], Buffer.from('at 3').toString('base64url'));
});

t.test('headers of reads: each difference from the read before shows', (t) => {
  const cases = [
    [10, true, 0],
    [11, true, 0],
    [11, false, 0],
    [11, false, 25],
    [11, true, 25],
  ] as const;
  for (const [index, knownLeader, lastContactMs] of cases) {
    const flat = indexHeaders({ index, knownLeader, lastContactMs });
    const headerOf = (name: string) => flat[flat.indexOf(`X-Service-${name}`) + 1];
    const shown = [headerOf('Index'), headerOf('KnownLeader'), headerOf('LastContact')];
    t.same(shown, [String(index), String(knownLeader), String(lastContactMs)]);
  }
  t.end();
});
