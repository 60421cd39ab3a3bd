// What a server says about itself over HTTP: health, members, figures, limits.

import { gunzipSync } from 'node:zlib';
import t from 'tap';
import type { Endpoint } from '../../src/api/endpoints/endpoint.ts';
import { NODE_ENDPOINTS } from '../../src/api/endpoints/endpoints-node.ts';
import { openApiDocument } from '../../src/api/endpoints/openapi.ts';
import { descriptionOf } from '../../src/http/wire/description.ts';
import { newPolicy, newToken } from '../service/harness.ts';
import { operatorServer } from './operator-support.ts';
import { CONSUL, readPolicy } from './route-cases.ts';
import { server, WRITE_META } from './support.ts';

/** Clients of others read no member that lacks one of these. */
const PROTOCOLS = {
  ...{ ProtocolMin: 1, ProtocolMax: 5, ProtocolCur: 2 },
  ...{ DelegateMin: 2, DelegateMax: 5, DelegateCur: 4 },
};

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
  for (const wrong of ['soon', '-1s', '10', '']) {
    t.same(await asked(`?max_lag=${wrong}`), [400, 'Invalid max_lag'], wrong);
  }
  lagMs = undefined;
  const unknown = 'how far this datacenter is behind the primary is not known\n';
  t.same(await asked('?max_lag=10s'), [503, unknown]);
  enabled = false;
  t.same(await asked('?max_lag=10s'), [200, 'ok\n'], 'the primary is never behind');
  t.ok(operations.calls.every(({ call }) => call.datacenter === undefined));
});

t.test('node: where nobody leads, what it knows itself says who may see it', async (t) => {
  let leader: string | undefined = '127.0.0.1:8300';
  const answers = {
    authorize: ({ items }: { items: readonly object[] }) =>
      items.map((item) => ({ ...item, allow: true })) as never,
  };
  const { app, operations } = server(answers, {}, { leader: () => leader });
  const asked = async (url: string, method: 'GET' | 'PUT' = 'GET') => {
    const payload = method === 'PUT' ? { Token: 's' } : undefined;
    t.equal((await app.inject({ url, method, ...(payload && { payload }) })).statusCode, 200, url);
    return operations.calls.at(-1)?.call.consistency;
  };
  const told = ['/v1/agent/self', '/v1/agent/metrics', '/v1/agent/members'];
  for (const url of told) t.equal(await asked(url), 'default', url);
  leader = undefined;
  for (const url of told) t.equal(await asked(url), 'stale', url);
  t.equal(await asked('/v1/agent/self?consistent'), 'consistent', 'who asks for more waits for it');
  t.equal(await asked('/v1/agent/token/default', 'PUT'), 'default', 'what changes something waits');
});

t.test('node: figures and members only for those who may see them', async (t) => {
  const accessorIds: Record<string, string> = {
    anonymous: '00000000-0000-0000-0000-000000000002',
    s: '33333333-3333-3333-3333-333333333333',
  };
  const { app } = server({
    authorize: ({ items, explain }, { secret = 'anonymous' }) => {
      const namespace = secret === 'of-team' ? 'team' : 'default';
      const token = { accessorId: accessorIds[secret] ?? secret, description: '', namespace };
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
  const ofTeam = await app.inject({
    url: '/v1/agent/self',
    headers: { 'x-consul-token': 'of-team' },
  });
  const elsewhere = 'outside its namespace "team"';
  t.equal(
    ofTeam.body,
    `Permission denied: token with AccessorID 'of-team' ${lacks} ${elsewhere}`,
    'the rules in default were asked',
  );
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
  const { app, another, clock } = server(script, limits('enforcing'));
  const get = async () => (await app.inject('/v1/acl/policy/x')).statusCode;
  t.same([await get(), await get(), await get()], [200, 200, 429]);
  const refused = await app.inject('/v1/acl/policy/x');
  t.match(refused.body, 'rate limit exceeded, try again later or against a different server');
  t.equal(refused.headers['retry-after'], '1');
  const elsewhere = await another().inject('/v1/acl/policy/x');
  t.equal(elsewhere.statusCode, 429, 'at whichever port of the server it asks');
  const write = await app.inject({ method: 'DELETE', url: '/v1/acl/policy/x' });
  t.equal(write.statusCode, 200, 'writes have a bucket of their own');
  t.equal((await app.inject('/v1/acl/policies')).statusCode, 429, 'whatever it reads');
  clock.nowMs += 500;
  t.same([await get(), await get()], [200, 429]);
  clock.nowMs += 60_000;
  t.same([await get(), await get(), await get()], [200, 200, 429], 'a quiet minute is no reserve');
  t.equal((await app.inject('/livez')).statusCode, 200);
  const fewWrites = { mode: 'enforcing', readRate: 100, writeRate: 1 } as const;
  const second = server(script, { requestLimits: fewWrites });
  await second.app.inject({ method: 'DELETE', url: '/v1/acl/policy/x' });
  for (const path of ['login', 'oidc/auth-url', 'oidc/callback', 'oidc/callback/explain']) {
    const asked = { method: 'POST', url: `/v1/acl/${path}`, payload: '{}' } as const;
    t.equal((await second.app.inject(asked)).statusCode, 429, `${path} is a write`);
  }
  const permissive = server(script, limits('permissive'));
  for (let turn = 0; turn < 4; turn += 1) {
    t.equal((await permissive.app.inject('/v1/acl/policy/x')).statusCode, 200);
  }
});
