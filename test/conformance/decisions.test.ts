// decisions.md, over HTTP against the real node: pairs of headers, the two dialects, where the document
// and deployed clients differ, expiry, indexes and positions, cas, request ids, explain.

import t from 'tap';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import {
  answers,
  Client,
  type Fields,
  type Reply,
  ROOT,
  runNode,
  send,
} from '../support/running/running-node.ts';
import { INVALID, MALFORMED, refuses } from './both-dialects.ts';
import { fresh, makersOn, mayRead } from './makers.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const GLOBAL_MANAGEMENT = '00000000-0000-0000-0000-000000000001';

const node = await runNode(t);
const root = new Client(node, 'X-Service-');
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { callerWith, make, newNamespace, newPolicy, newRole, newToken, newRule } = makersOn(
  root,
  ISSUER.config,
);

const pauseMs = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Takes ten seconds to be refused, so it is asked while the other tests run. */
const tooFar = root.get('/acl/policies?min-position=1.999999&stale');

t.test('headers: every one is sent under both prefixes', async (t) => {
  const replies: readonly Reply[] = [
    await root.get('/acl/policies'),
    await root.get('/acl/policies?limit=1'),
    await root.get(`/acl/policy/${NO_ID}`),
    await root.as(NO_ID).get('/acl/policies'),
    await root.put('/acl/token', {}),
    await root.get('/acl/replication'),
  ];
  for (const { headers } of replies) {
    const under = (prefix: string): Fields =>
      Object.fromEntries(
        Object.entries(headers)
          .filter(([name]) => name.startsWith(prefix))
          .map(([name, value]) => [name.slice(prefix.length), value]),
      );
    t.same(under('x-service-'), under('x-consul-'));
    t.match(under('x-service-'), { 'default-acl-policy': 'deny', position: /^1\.\d+$/ });
  }
  const [read, page, , , write] = replies;
  t.match(read?.headers, {
    'x-service-index': /^[1-9]/,
    'x-service-knownleader': 'true',
    'x-service-lastcontact': /^\d+$/,
  });
  t.match(page?.headers, { 'x-service-next': /./ });
  t.match(write?.headers, { 'x-service-index': /^[1-9]/, 'x-service-ack': 'primary' });
});

t.test('headers: every one is taken under both prefixes', async (t) => {
  const Namespace = await newNamespace();
  for (const prefix of ['X-Service-', 'X-Consul-']) {
    const id = fresh('request');
    const headers = {
      [`${prefix}Token`]: ROOT,
      [`${prefix}Namespace`]: Namespace,
      [`${prefix}Request-Id`]: id,
    };
    const ask = { method: 'PUT', path: '/v1/acl/token', headers, body: {} };
    const first = await send(node, ask);
    t.equal(first.json.Namespace, Namespace, prefix);
    t.equal((await send(node, ask)).text, first.text, prefix);
  }
});

t.test('dialects: chosen by the headers of the request, or by the settings', async (t) => {
  const statusesOn = async (settings: Readonly<Record<string, string>>): Promise<number[]> => {
    const server = await runNode(t, settings);
    const ask = { method: 'PUT', path: `/v1/acl/policy?token=${ROOT}`, body: { Name: 'x y' } };
    const replies = [
      await send(server, ask),
      await send(server, { ...ask, headers: { 'X-Consul-Anything': '' } }),
    ];
    t.equal(new Set(replies.map(({ text }) => text)).size, 1, 'one text');
    return replies.map(({ status }) => status);
  };
  t.same(await statusesOn({}), [400, 500]);
  t.same(await statusesOn({ 'http-dialect': 'service' }), [400, 400]);
  t.same(await statusesOn({ 'http-dialect': 'consul' }), [500, 500]);
});

t.test('dialects: problem details on request, with the same text and a stable code', async (t) => {
  const headers = { Accept: 'application/problem+json' };
  const text = 'Requested policy does not exist: ACL not found';
  const missing = await root.get(`/acl/policy/${NO_ID}`, { headers });
  t.equal(missing.headers['content-type'], 'application/problem+json');
  const problem = { type: 'about:blank', title: 'Not Found', status: 404, code: 'not-found' };
  t.match(missing.json, { ...problem, detail: text });
  const [one, other] = [
    await root.put('/acl/policy', { Name: 'x y' }, { headers }),
    await consul.put('/acl/policy', { Name: 'x y' }, { headers }),
  ];
  t.same([one.status, other.status], [400, 500]);
  t.equal(one.json.code, other.json.code);
  t.equal(one.json.detail, other.json.detail);
});

t.test('limits: bodies that are too large, and clients that ask too often', async (t) => {
  const small = await runNode(t, { 'limits-body-max-bytes': '1024' });
  const body = { Name: 'x', Description: 'x'.repeat(2048) };
  t.equal((await new Client(small, 'X-Service-').put('/acl/policy', body)).status, 413);

  const slow = await runNode(t, {
    'limits-request-limits-mode': 'enforcing',
    'limits-request-limits-write-rate': '1',
  });
  const client = new Client(slow, 'X-Service-');
  const replies = [await client.put('/acl/token', {}), await client.put('/acl/token', {})];
  t.same(
    replies.map(({ status }) => status),
    [200, 429],
  );
  t.match(replies[1]?.headers['retry-after'], /^[1-9]/);
});

t.test('differences: bounds of a life are settings', async (t) => {
  const flags = { 'acl-token-max-ttl': '48h', 'acl-token-min-ttl': '10s' };
  const client = new Client(await runNode(t, flags), 'X-Service-');
  for (const [ExpirationTTL, status] of [
    ['9s', 400],
    ['10s', 200],
    ['48h', 200],
    ['48h1s', 400],
  ] as const) {
    t.equal((await client.put('/acl/token', { ExpirationTTL })).status, status, ExpirationTTL);
  }
});

t.test('differences: expanded is present, and neither false nor 0', async (t) => {
  const { AccessorID } = await newToken();
  for (const [query, isExpanded] of [
    ['expanded', true],
    ['expanded=true', true],
    ['expanded=x', true],
    ['expanded=false', false],
    ['expanded=0', false],
  ] as const) {
    const { json } = await root.get(`/acl/token/${AccessorID}?${query}`);
    t.equal('ExpandedPolicies' in json, isExpanded, query);
  }
});

t.test('differences: rules in any letter case, and as strict JSON', async (t) => {
  const client = await callerWith('Node "a" { Policy = "READ" }\nnode "a" { policy = "Deny" }');
  t.equal(await mayRead(client, { Resource: 'node', Segment: 'a' }), false, 'deny wins');
  const json = await callerWith('{"node":{"a":{"policy":"read"}}}');
  t.equal(await mayRead(json, { Resource: 'node', Segment: 'a' }), true);
  for (const Rules of ['{"acl":"read",}', "{'acl':'read'}", '{"acl":"read"} x', '{acl:"read"}']) {
    const text = /^Failed to parse ACL rules: /;
    answers(t, await root.put('/acl/policy', { Name: 'x', Rules }), 400, text);
  }
});

t.test('differences: an update that loses against a delete makes nothing anew', async (t) => {
  for (let round = 0; round < 10; round += 1) {
    const { AccessorID } = await newToken();
    const path = `/acl/token/${AccessorID}`;
    const [deleted, updated] = await Promise.all([root.delete(path), root.put(path, {})]);
    t.equal(deleted.text, 'true');
    t.ok([200, 404].includes(updated.status), String(updated.status));
    t.equal((await root.get(path)).status, 404);
  }
});

t.test('expiry: a token is void for every reader the moment its time passes', async (t) => {
  const short = await runNode(t, { 'acl-token-min-ttl': '1s' });
  const client = new Client(short, 'X-Service-');
  const policy = await client.made('PUT', '/acl/policy', { Name: 'p', Rules: 'acl = "read"' });
  const draft = { Policies: [{ ID: policy.ID }], ExpirationTTL: '1s' };
  const token = await client.made('PUT', '/acl/token', draft);
  const method = { Name: 'm', Type: 'jwt', Config: ISSUER.config, MaxTokenTTL: '1s' };
  await client.made('PUT', '/acl/auth-method', method);
  const rule = { AuthMethod: 'm', BindType: 'policy', BindName: 'p' };
  await client.made('PUT', '/acl/binding-rule', rule);
  const bearer = { AuthMethod: 'm', BearerToken: await ISSUER.sign() };
  const login = await client.made('POST', '/acl/login', bearer);

  for (const { SecretID, ExpirationTime } of [token, login]) {
    const expiryMs = Date.parse(String(ExpirationTime));
    for (;;) {
      const sentMs = Date.now();
      const { status, text } = await client.as(SecretID).get('/acl/policies');
      if (status === 200) {
        if (sentMs > expiryMs) t.fail('it was served after its time');
        await pauseMs(15);
        continue;
      }
      t.same([status, text], [403, 'ACL not found']);
      t.ok(Date.now() > expiryMs, 'and not before its time');
      break;
    }
  }
  // The leader may have deleted it by now: then it is no longer known that it has expired.
  const { AccessorID, SecretID } = token;
  const gone = /^token (has expired|is expired|does not exist): ACL not found$/;
  const path = `/acl/token/${AccessorID}`;
  answers(t, await client.get(path), 404, gone);
  answers(t, await client.get(`${path}?expanded`), 404, gone);
  answers(t, await client.as(SecretID).get('/acl/token/self'), 403, gone);
  answers(t, await client.put(`${path}/clone`, {}), 404, gone);
  answers(t, await client.put(path, {}), 404, `Cannot find token "${AccessorID}"`);
  for (const query of ['', `?policy=${policy.ID}`, '?authmethod=m']) {
    const { text } = await client.get(`/acl/tokens${query}`);
    t.notOk(text.includes(String(AccessorID)) || text.includes(String(login.AccessorID)), query);
  }
  // Deleted through the log: its id can be used again.
  for (let tries = 0; ; tries += 1) {
    const { status } = await client.put('/acl/token', { AccessorID });
    if (status === 200) break;
    t.same(status, 409);
    if (tries > 1_000) throw new Error('it was never deleted');
    await pauseMs(50);
  }
});

t.test('pages: each object comes once, and all of them, whatever its id', async (t) => {
  const { ID } = await newPolicy();
  const jwt = { Name: fresh('m'), Type: 'jwt', Config: ISSUER.config };
  const { Name: AuthMethod } = await make('auth-method', jwt);
  const bytes = ['01', '7f', '80', 'bf', 'c3', 'fe', 'ff'];
  for (const first of bytes) {
    for (const last of bytes) {
      const AccessorID = `${first}${NO_ID.slice(2, -2)}${last}`;
      await root.made('PUT', '/acl/token', { AccessorID, Policies: [{ ID }] });
      await newRule({ AuthMethod, BindName: `b-${first}${last}` });
    }
  }
  const lists = ['tokens?ns=default', 'tokens?ns=*', `tokens?policy=${ID}`, 'policies?ns=default'];
  for (const list of [...lists, 'binding-rules?ns=default', 'binding-rules?ns=*', 'roles?ns=*']) {
    const whole = (await root.get(`/acl/${list}`)).list;
    const paged: Fields[] = [];
    let next: string | undefined = '';
    for (let page = 0; page <= whole.length && next !== undefined; page += 1) {
      const reply: Reply = await root.get(`/acl/${list}&limit=5&next=${next}`);
      paged.push(...reply.list);
      next = reply.headers['x-service-next'] as string | undefined;
    }
    const idOf = ({ AccessorID, ID }: Fields) => AccessorID ?? ID;
    t.same(paged.map(idOf), whole.map(idOf), list);
  }
});

t.test('positions: a global write moves it by one, a local one does not', async (t) => {
  const at = ({ headers }: Reply): number => {
    const [epoch, seq] = String(headers['x-service-position']).split('.').map(Number);
    t.equal(epoch, 1);
    return seq ?? Number.NaN;
  };
  const start = at(await root.get('/acl/policies'));
  const write = await root.put('/acl/token', {});
  t.equal(at(write), start + 1);
  t.equal(at(await root.put('/acl/token', { Local: true })), start + 1);
  t.equal(at(await root.delete(`/acl/token/${NO_ID}`)), start + 1, 'nothing was deleted');
  t.equal(at(await root.put('/acl/policy', { Name: 'x y' })), start + 1, 'a refusal');
  t.equal(at(await root.get('/acl/tokens')), start + 1);

  const waiting = root.get(`/acl/policies?min-position=1.${start + 2}&stale`);
  await pauseMs(40);
  const { Name } = await newPolicy();
  t.ok(
    (await waiting).list.some((policy) => policy.Name === Name),
    'never silently older',
  );
  t.equal((await root.get('/acl/policies?min-position=1.1')).status, 200);
  await refuses(
    t,
    node,
    ['1', 'x', '1.-1', '1.2.3'].map((value) => ({
      ask: `GET /acl/policies?min-position=${value}`,
      statuses: MALFORMED,
      text: 'Invalid min-position',
    })),
  );
});

t.test('indexes: never 0, never back, never behind an object', async (t) => {
  let last = 0;
  for (const path of ['token', 'policy', 'role', 'token']) {
    const body = path === 'token' ? {} : { Name: fresh('n') };
    const { headers, json } = await root.put(`/acl/${path}`, body);
    const index = Number(headers['x-service-index']);
    t.ok(index >= Number(json.ModifyIndex), path);
    t.ok(index > last, path);
    last = index;
  }
});

t.test('ack: the level that was reached', async (t) => {
  const ack = ({ status, headers }: Reply): unknown[] => [status, headers['x-service-ack']];
  t.same(ack(await root.put('/acl/token', {})), [200, 'primary']);
  for (const level of ['primary', 'majority', 'all']) {
    t.same(ack(await root.put(`/acl/token?ack=${level}&ack_timeout=1s`, {})), [200, level]);
  }
  t.same(ack(await root.put('/acl/token?ack=all', { Local: true })), [200, undefined]);
  const { AccessorID } = await newToken();
  t.same(ack(await root.delete(`/acl/token/${AccessorID}`)), [200, 'primary']);
  answers(t, await root.put('/acl/token?ack=most', {}), 400, 'Invalid ack');
  answers(t, await root.put('/acl/token?ack_timeout=x', {}), 400, 'Invalid ack_timeout');
});

t.test('cas: a write of one object as it is known, and only so', async (t) => {
  const jwt = { Type: 'jwt', Config: ISSUER.config };
  const objects: readonly [path: string, object: Fields, body: Fields][] = [];
  const add = (path: string, object: Fields, body: Fields = {}): void => {
    (objects as [string, Fields, Fields][]).push([path, object, body]);
  };
  const token = await newToken();
  add(`/acl/token/${token.AccessorID}`, token);
  const policy = await newPolicy();
  add(`/acl/policy/${policy.ID}`, policy, { Name: policy.Name });
  const role = await newRole();
  add(`/acl/role/${role.ID}`, role, { Name: role.Name });
  const kept = await make('auth-method', { ...jwt, Name: fresh('m') });
  const bound = { AuthMethod: kept.Name, BindType: 'service', BindName: 'web' };
  const rule = await make('binding-rule', bound);
  add(`/acl/binding-rule/${rule.ID}`, rule, bound);
  const method = await make('auth-method', { ...jwt, Name: fresh('m') });
  add(`/acl/auth-method/${method.Name}`, method, jwt);
  const namespace = await root.made('PUT', '/namespace', { Name: fresh('ns') });
  add(`/namespace/${namespace.Name}`, namespace);
  for (const [path, { ModifyIndex }, body] of objects) {
    const before = Number(ModifyIndex);
    for (const client of [root, consul]) {
      const text = new RegExp(`cas=${before + 1} .*ModifyIndex is ${before}$`);
      answers(t, await client.put(`${path}?cas=${before + 1}`, body), 409, text);
      answers(
        t,
        await client.delete(`${path}?cas=${before - 1}`),
        409,
        /^The object is not as cas=/,
      );
    }
    const updated = await root.put(`${path}?cas=${before}`, body);
    t.equal(updated.status, 200, path);
    t.equal((await root.delete(`${path}?cas=${before}`)).status, 409, path);
    answers(t, await root.delete(`${path}?cas=${updated.json.ModifyIndex}`), 200, 'true');
  }
  answers(t, await root.put('/acl/token?cas=x', {}), 400, 'Invalid cas');
  const Name = fresh('m');
  t.equal((await root.put(`/acl/auth-method/${Name}?cas=0`, jwt)).status, 200, '0: there is none');
  t.equal((await root.put(`/acl/auth-method/${Name}?cas=0`, jwt)).status, 409);
});

t.test('request ids: a repeat gets the first answer and changes nothing', async (t) => {
  for (const name of ['X-Service-Request-Id', 'X-Consul-Request-Id', 'Idempotency-Key']) {
    const headers = { [name]: fresh('id') };
    const first = await root.put('/acl/token', { Description: name }, { headers });
    const second = await root.put('/acl/token', { Description: name }, { headers });
    t.equal(second.text, first.text, name);
    t.equal(second.headers['x-service-position'], first.headers['x-service-position'], name);
    const path = `/acl/token/${first.json.AccessorID}`;
    const remove = { [name]: fresh('id') };
    answers(t, await root.delete(path, { headers: remove }), 200, 'true');
    answers(t, await root.delete(path, { headers: remove }), 200, 'true');
    answers(t, await root.delete(path), 200, 'false');
  }
});

t.test('request ids: belong to a caller and to one request', async (t) => {
  const headers = { 'X-Service-Request-Id': fresh('id') };
  const first = await root.put('/acl/token', { Description: 'a' }, { headers });
  const text = 'The request id was used before, for another request';
  await refuses(t, node, [
    { ask: 'PUT /acl/token', body: { Description: 'b' }, headers, statuses: INVALID, text },
    { ask: 'PUT /acl/policy', body: { Name: 'x' }, headers, statuses: INVALID, text },
  ]);
  const other = await newToken({ Policies: [{ ID: GLOBAL_MANAGEMENT }] });
  const theirs = await root.as(other.SecretID).put('/acl/token', { Description: 'a' }, { headers });
  t.equal(theirs.status, 200);
  t.not(theirs.json.SecretID, first.json.SecretID);
  const refused = { 'X-Service-Request-Id': fresh('id') };
  const bad = await root.put('/acl/policy', { Name: 'x y' }, { headers: refused });
  t.equal(bad.status, 400);
  const again = await root.put('/acl/policy', { Name: fresh('p') }, { headers: refused });
  t.equal(again.status, 200, 'a refusal is not remembered');
  const long = { 'X-Service-Request-Id': 'x'.repeat(129) };
  answers(t, await root.put('/acl/token', {}, { headers: long }), 400, 'Invalid request id');
});

t.test('explain: names what decided', async (t) => {
  const direct = await newPolicy({ Name: 'direct', Rules: '# first line\nacl = "read"' });
  const rules = 'key_prefix "" { policy = "write" }\nkey "k" { policy = "deny" }';
  const behind = await newPolicy({ Name: 'behind', Rules: rules });
  const role = await make('role', { Name: 'explained', Policies: [{ ID: behind.ID }] });
  const token = await newToken({
    Description: 'explained',
    Policies: [{ ID: direct.ID }],
    Roles: [{ ID: role.ID }],
    ServiceIdentities: [{ ServiceName: 'web' }],
  });
  const questions = [
    { Resource: 'acl', Access: 'read' },
    { Resource: 'key', Access: 'read', Segment: 'k' },
    { Resource: 'service', Access: 'write', Segment: 'web' },
    { Resource: 'agent', Access: 'read', Segment: 'a' },
  ];
  const caller = root.as(token.SecretID);
  const ask = async (query: string): Promise<readonly Fields[]> =>
    (await caller.post(`/internal/acl/authorize${query}`, questions)).list;
  t.notOk((await ask('')).some((answer) => 'Explanation' in answer));
  t.notOk((await ask('?explain=false')).some((answer) => 'Explanation' in answer));
  const [acl, key, service, agent] = await ask('?explain');
  const Token = { AccessorID: token.AccessorID, Description: 'explained' };
  t.match(acl, {
    Allow: true,
    Explanation: {
      Decision: 'allow',
      Summary: 'Allowed by policy "direct", line 2.',
      DecidedBy: 'rule',
      Token,
      Policy: { ID: direct.ID, Name: 'direct', Namespace: 'default' },
      Rule: { Text: 'acl = "read"', Line: 2, Column: 1 },
    },
  });
  t.match(key, {
    Allow: false,
    Explanation: {
      Decision: 'deny',
      Role: { ID: role.ID, Name: 'explained' },
      Policy: { ID: behind.ID },
      Rule: { Text: 'key "k" { policy = "deny" }', Line: 2 },
      Overruled: [{ Policy: 'behind', Rule: 'key_prefix "" { policy = "write" }' }],
    },
  });
  t.match(service, { Allow: true, Explanation: { Identity: 'service web' } });
  t.match(agent, {
    Allow: false,
    Explanation: { Decision: 'deny', DecidedBy: 'default-policy', Token },
  });
});

t.test('positions: one that is not reached in time is a 504 that says so', async (t) => {
  answers(t, await tooFar, 504, /^Position 1\.999999 was not reached in time; .* is at 1\.\d+$/);
});
