// The form of answers: headers, statuses of each dialect, refusals, pages, indentation.

import t from 'tap';
import type { AclErrorCode } from '../../src/acl/error.ts';
import { indexHeaders } from '../../src/http/wire/exchange.ts';
import { HEADER_PREFIXES } from '../../src/http/wire/headers.ts';
import { statusOf } from '../../src/http/wire/status.ts';
import { CONSUL, readPolicy, refuse } from './route-cases.ts';
import { listOf, policyView, readMeta, server, WRITE_META } from './support.ts';

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
    t.equal(answer.headers['cache-control'], 'no-store', 'no proxy gives it to somebody else');
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
      'template-not-found': [404, 400],
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

t.test('status: a code that only a later release has is that of a fault', async (t) => {
  const later = 'of-a-later-release' as AclErrorCode;
  const { app } = server({ 'policy.read': refuse(later, 'its words') });
  const answer = await app.inject('/v1/acl/policy/x');
  t.equal(answer.statusCode, 500);
  t.equal(answer.body, 'its words');
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
