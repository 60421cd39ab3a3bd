// From the bytes of a request to the call: routes, paths, queries, tokens, bodies.

import t from 'tap';
import type { Endpoint } from '../../src/api/endpoints/endpoint.ts';
import { ENDPOINTS } from '../../src/api/endpoints/endpoints.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import {
  OPERATOR_ENDPOINTS,
  SNAPSHOT_ENDPOINTS,
} from '../../src/api/endpoints/endpoints-operator.ts';
import { targetPathOf } from '../../src/http/routes/target-path.ts';
import { LIMITS } from '../../src/http/settings.ts';
import { CONSUL, readPolicy, refuse } from './route-cases.ts';
import { listOf, policyView, readMeta, server, tokenView, WRITE_META } from './support.ts';

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
  const withSecret = await app.inject('/v1/acl//policies?token=s&stale&tok%65n=s&x=1&token');
  t.equal(withSecret.headers.location, '/v1/acl/policies?stale&x=1', 'no secret is repeated');
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
    ['?token=q&token=r', {}, 'd', 'q'],
    ['?token=&token=r', { 'x-consul-token': 'c' }, 'd', 'c'],
    ['', { authorization: 'bEaReR b c' }, 'd', 'b'],
    ['', { authorization: 'Bearer   b c' }, 'd', 'b'],
    ['', { authorization: 'Bearerb' }, 'd', 'd'],
    ['', { authorization: 'Basic b' }, 'd', 'd'],
    ['', { authorization: 'Other a, Bearer b' }, 'd', 'd'],
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
  const crumbs = Object.fromEntries(Array.from({ length: 250 }, (_, place) => [`x${place}`, '']));
  const longHead =
    'a blocking query may have 16384 characters of path, query and headers, and each name and value of a header counts for 48 besides';
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
    ['GET', `${list}?index=1`, crumbs, longHead],
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
    url: '/v1/acl/policy/x?ack_timeout=20m',
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
  t.equal(calls[3]?.ackTimeoutMs, 600_000, 'no longer than ten minutes');
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
