// compatibility.md, section 2 and what all answers have in common, over HTTP against the real node: headers,
// parameters of reads, blocking queries.

import t from 'tap';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import { until } from '../support/running/running-group.ts';
import { answers, Client, ROOT, runNode } from '../support/running/running-node.ts';
import { MALFORMED, type Refusal, refuses } from './both-dialects.ts';
import { makersOn } from './makers.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const service = new Client(node, 'X-Service-');
const ISSUER = await jwtIssuer();
const { newPolicy, newToken } = makersOn(consul, ISSUER.config);

const INDEX_HEADERS = ['Index', 'KnownLeader', 'LastContact', 'Query-Backend'];
const READS = [
  '/acl/policies',
  '/acl/roles',
  '/acl/binding-rules',
  '/acl/auth-methods',
  '/acl/tokens',
  '/acl/token/self',
  `/acl/policy/${NO_ID}`,
  '/acl/policy/name/none',
  `/acl/role/${NO_ID}`,
  '/acl/role/name/none',
  `/acl/binding-rule/${NO_ID}`,
  '/acl/auth-method/none',
];

t.test('2.1: which answers have index headers', async (t) => {
  await newPolicy();
  const { headers: policies } = await consul.get('/acl/policies');
  const wanted: Readonly<Record<string, RegExp>> = {
    Index: /^[1-9]\d*$/,
    KnownLeader: /^true$/,
    LastContact: /^\d+$/,
    'Query-Backend': /^blocking-query$/,
  };
  for (const path of READS) {
    const { headers } = await service.get(path);
    for (const [name, value] of Object.entries(wanted)) {
      for (const prefix of ['x-consul-', 'x-service-']) {
        t.match(headers[prefix + name.toLowerCase()], value, `${path} ${prefix}${name}`);
      }
    }
  }
  const missing = await consul.get(`/acl/policy/${NO_ID}`);
  t.equal(missing.headers['x-consul-index'], policies['x-consul-index'], 'the table of a 404');
  for (const path of ['/acl/replication', '/acl/templated-policies']) {
    const { headers } = await consul.get(path);
    for (const name of INDEX_HEADERS) t.notOk(`x-consul-${name.toLowerCase()}` in headers, path);
  }
  for (const path of READS.filter((read) => read !== '/acl/token/self')) {
    const { status, headers } = await consul.as('anonymous').get(path);
    const found = INDEX_HEADERS.map((name) => headers[`x-consul-${name.toLowerCase()}`]);
    t.same([status, ...found.slice(0, 3)], [403, '1', 'false', '0'], path);
  }
});

t.test('0: headers of every answer; gzip for long ones', async (t) => {
  for (const path of ['/acl/policies', '/acl/policy/', '/acl/templated-policies']) {
    const { headers } = await consul.get(path);
    t.equal(headers.vary, 'Accept-Encoding', path);
    t.equal(headers['x-consul-default-acl-policy'], 'deny', path);
    t.equal(headers['x-service-default-acl-policy'], 'deny', path);
  }
  const plain = await consul.get('/acl/templated-policies');
  t.notOk('content-encoding' in plain.headers);
  const { port } = node;
  const url = `http://127.0.0.1:${port}/v1/acl/templated-policies`;
  const asked = { headers: { 'X-Consul-Token': ROOT, 'Accept-Encoding': 'gzip' } };
  const zipped = await fetch(url, asked);
  t.equal(zipped.headers.get('content-encoding'), 'gzip');
  t.equal(await zipped.text(), plain.text);
});

t.test('2.2: parameters of reads that are refused, in this order', async (t) => {
  const bad = (query: string, text: string, headers = {}): Refusal => ({
    ask: `GET /acl/policies?${query}`,
    headers,
    statuses: MALFORMED,
    text,
  });
  const conflict = 'conflicting semantics.';
  const stale = `Cannot specify ?stale with ?consistent, ${conflict}`;
  const noCache = { 'Cache-Control': 'max-age=x' };
  await refuses(t, node, [
    bad('index=x', 'Invalid index'),
    bad('index=-1', 'Invalid index'),
    bad('index=18446744073709551616', 'Invalid index'),
    bad('wait=x', 'Invalid wait time'),
    bad('wait=10', 'Invalid wait time'),
    bad('max_stale=x', 'Invalid max_stale value "x"'),
    bad('stale&consistent', stale),
    bad('stale=false&consistent=false', stale),
    bad('max_stale=1s&consistent', stale),
    bad('cached&consistent', `Cannot specify ?cached with ?consistent, ${conflict}`),
    bad('', 'Invalid Cache-Control header.', noCache),
    bad('stale&consistent&wait=x&index=x', stale, noCache),
    bad('wait=x&index=x', 'Invalid Cache-Control header.', noCache),
    bad('wait=x&index=x', 'Invalid wait time'),
    { ask: 'GET /acl/policies?dc=none', statuses: [500, 400], text: 'No path to datacenter' },
    {
      ask: 'GET /acl/policies?datacenter=none&dc=dc1',
      statuses: [500, 400],
      text: 'No path to datacenter',
    },
  ]);
});

t.test('2.2, 2.4: parameters of reads that are accepted', async (t) => {
  const plain = await consul.get('/acl/policies');
  const queries = [
    ...['index=0', 'index=0&wait=1h', 'wait=0s', 'wait=60000ms', 'hash=x', 'stale', 'consistent'],
    ...['leader', 'cached', 'max_stale=0s', 'max_stale=5s', 'dc=dc1', 'datacenter=dc1&dc=none'],
    ...['filter=nonsense', 'near=_agent', 'node-meta=a:b', 'index=', 'wait=', 'unknown=1'],
  ];
  for (const query of queries) {
    answers(t, await consul.get(`/acl/policies?${query}`), 200, plain.text);
  }
  const cache = { 'Cache-Control': 'max-age=30, must-revalidate, stale-if-error=30' };
  t.equal((await consul.get('/acl/policies', { headers: cache })).status, 200);
  const pretty = await consul.get('/acl/policies?pretty=false');
  t.equal(pretty.text, `${JSON.stringify(JSON.parse(plain.text), null, 4)}\n`);
});

/** Long enough for an answer that was wrongly given to be here. */
const aMoment = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 60));

/** A read that waits, once it does, and whether its answer is there. */
async function waiting(path: string, index: unknown) {
  const state = { isOver: false };
  const reply = consul.get(`${path}?index=${index}&wait=60s`).finally(() => {
    state.isOver = true;
  });
  await until('it waits, or is answered', async () => state.isOver || (await waitingCount()) > 0);
  return { state, reply };
}

/** Blocking queries at the server; each test here has one at a time. */
async function waitingCount(): Promise<number> {
  const { text } = await consul.get('/agent/metrics?format=prometheus');
  return Number(/^conclave_http_blocking_queries(?:\{.*\})? (\d+)/m.exec(text)?.[1]);
}

const indexOf = async (path: string): Promise<string | undefined> =>
  (await consul.get(path)).headers['x-consul-index'];

t.test('2.3: a list waits for any change of its table', async (t) => {
  const { state, reply } = await waiting('/acl/policies', await indexOf('/acl/policies'));
  await newToken();
  await aMoment();
  t.notOk(state.isOver, 'another table');
  const { Name, ModifyIndex } = await newPolicy();
  const { headers, list } = await reply;
  t.equal(headers['x-consul-index'], String(ModifyIndex));
  t.ok(list.some((policy) => policy.Name === Name));
});

t.test('2.3: a single read waits for a change of its object alone', async (t) => {
  const { ID } = await newPolicy();
  const path = `/acl/policy/${ID}`;
  const { state, reply } = await waiting(path, await indexOf(path));
  const other = await newPolicy();
  await aMoment();
  t.notOk(state.isOver, 'another object');
  t.equal(await indexOf(path), String(other.ModifyIndex), 'the index is that of the table');
  await consul.put(path, { Name: 'watched' });
  t.equal((await reply).json.Name, 'watched');
});

t.test('2.3: a missing object is waited for; a missing token is not', async (t) => {
  const path = '/acl/policy/name/awaited';
  const { state, reply } = await waiting(path, await indexOf(path));
  await newPolicy();
  await aMoment();
  t.notOk(state.isOver);
  await newPolicy({ Name: 'awaited' });
  t.same([(await reply).status, (await reply).json.Name], [200, 'awaited']);
  const none = await consul.get('/acl/policy/name/never?index=1&wait=20s');
  t.equal(none.status, 404, 'at once when the table is beyond the index');
  const index = await indexOf('/acl/tokens');
  const token = await consul.get(`/acl/token/${NO_ID}?index=${index}&wait=20s`);
  answers(t, token, 403, 'token does not exist: ACL not found');
});

t.test('2.3: a token that is deleted while it is watched ends the wait with 403', async (t) => {
  const { AccessorID } = await newToken();
  const path = `/acl/token/${AccessorID}`;
  const { reply } = await waiting(path, await indexOf(path));
  await consul.delete(path);
  answers(t, await reply, 403, 'token does not exist: ACL not found');
});

t.test('2.3: the time of a wait ends with the present answer', async (t) => {
  const index = Number(await indexOf('/acl/roles'));
  for (const beyond of [0, 1_000]) {
    const startedAt = performance.now();
    const path = `/acl/roles?index=${index + beyond}&wait=80ms`;
    const { status, headers } = await consul.get(path);
    t.ok(performance.now() - startedAt >= 75, 'it waited');
    t.same([status, headers['x-consul-index']], [200, String(index)]);
  }
  const missing = `/acl/role/${NO_ID}?index=${index}&wait=10ms`;
  t.equal((await consul.get(missing)).status, 404);
});
