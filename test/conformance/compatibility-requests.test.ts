// compatibility.md, section 1, over HTTP against the real node: routes and methods, where the secret comes from,
// texts and statuses of both dialects, bodies. Where decisions.md answers otherwise, the test's name says so.

import t from 'tap';
import { selfSigned } from '../support/certificates.ts';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import {
  answers,
  Client,
  type Fields,
  ROOT,
  runNode,
  send,
} from '../support/running/running-node.ts';
import {
  DENIED,
  INVALID,
  MALFORMED,
  MISSING,
  type Refusal,
  refuses,
  TOKEN_MISSING,
} from './both-dialects.ts';
import { makersOn } from './makers.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const ANONYMOUS = '00000000-0000-0000-0000-000000000002';
const UNKNOWN_ENDPOINT = 'Invalid URL path: not a recognized HTTP API endpoint\n';
const UNKNOWN_PATH =
  "Invalid URL path: if attempting to use the HTTP API, ensure the path starts with '/v1/'\n";

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const service = new Client(node, 'X-Service-');
const ISSUER = await jwtIssuer();
const { newPolicy, newToken, newMethod, newRule } = makersOn(consul, ISSUER.config);

/** A token with these rules alone. */
async function tokenWith(rules: string): Promise<Fields> {
  const { ID } = await newPolicy({ Rules: rules });
  return newToken({ Policies: [{ ID }] });
}

t.test('1.1: each path has its methods, and says so', async (t) => {
  const OBJECTS = ['policy', 'role', 'binding-rule', 'auth-method', 'token'];
  const LISTS = ['policies', 'roles', 'binding-rules', 'auth-methods', 'tokens'];
  const methodsByPath: Readonly<Record<string, string>> = {
    '/acl/bootstrap': 'PUT',
    '/acl/login': 'POST',
    '/acl/logout': 'POST',
    '/acl/replication': 'GET',
    '/acl/templated-policies': 'GET',
    '/acl/policy/name/x': 'GET',
    '/acl/role/name/x': 'GET',
    '/acl/token/self': 'GET',
    '/acl/templated-policy/name/x/y': 'GET',
    '/acl/templated-policy/preview/x/y': 'POST',
    '/internal/acl/authorize': 'POST',
    ...Object.fromEntries(LISTS.map((name) => [`/acl/${name}`, 'GET'])),
    ...Object.fromEntries(OBJECTS.map((name) => [`/acl/${name}`, 'PUT'])),
    ...Object.fromEntries(OBJECTS.map((name) => [`/acl/${name}/x`, 'GET,PUT,DELETE'])),
  };
  const off = new Client(await runNode(t, { 'acl-enabled': 'false' }), 'X-Service-', '');
  for (const [path, methods] of Object.entries(methodsByPath)) {
    const allow = `OPTIONS,${methods}`;
    const asked = await consul.as('').send('OPTIONS', path);
    t.same([asked.status, asked.text, asked.headers.allow], [200, '', allow], path);
    // Before anything is asked about the token, or whether ACLs are on.
    for (const client of [consul.as(''), service, off]) {
      const wrong = await client.send('PATCH', path);
      t.same(
        [wrong.status, wrong.text, wrong.headers.allow],
        [405, 'method PATCH not allowed', allow],
        path,
      );
    }
    const head = await consul.send('HEAD', path);
    t.same([head.status, head.headers.allow], [405, allow], path);
  }
});

t.test('1.1: the longest path wins; clone is a suffix of PUT alone', async (t) => {
  const { AccessorID } = await newToken();
  const badId = 'failed acl token lookup: index error: UUID must be 36 characters';
  const wrong = (method: string): Pick<Refusal, 'statuses' | 'text'> => ({
    statuses: [405, 405],
    text: `method ${method} not allowed`,
  });
  await refuses(t, node, [
    { ask: 'PUT /acl/token/self', ...wrong('PUT') },
    { ask: 'DELETE /acl/token/self', ...wrong('DELETE') },
    { ask: 'PUT /acl/policy/name/x', ...wrong('PUT') },
    { ask: 'DELETE /acl/role/name/x', ...wrong('DELETE') },
    { ask: `GET /acl/token/${AccessorID}/clone`, statuses: INVALID, text: badId },
  ]);
});

t.test('1.1: PUT with an empty id creates', async (t) => {
  const { config: Config } = ISSUER;
  const bodies: Readonly<Record<string, Fields>> = {
    policy: { Name: 'empty-id' },
    role: { Name: 'empty-id' },
    token: {},
    'auth-method': { Name: 'empty-id', Type: 'jwt', Config },
    'binding-rule': { AuthMethod: 'empty-id', BindType: 'service', BindName: 'web' },
  };
  for (const [path, body] of Object.entries(bodies)) {
    t.equal((await consul.put(`/acl/${path}/`, body)).status, 200, path);
  }
});

t.test('1.1, 4.8: unknown paths, the legacy ones among them', async (t) => {
  const cases: readonly [string, string][] = [
    ['/v1/acl/nothing', UNKNOWN_ENDPOINT],
    ['/v1/acl/create', UNKNOWN_ENDPOINT],
    ['/v1/acl/info/x', UNKNOWN_ENDPOINT],
    ['/v1/acl/rules/translate', UNKNOWN_ENDPOINT],
    ['/v1/acl/authorize', UNKNOWN_ENDPOINT],
    ['/other', UNKNOWN_PATH],
  ];
  for (const [path, text] of cases) {
    for (const method of ['GET', 'PUT']) {
      answers(t, await send(node, { method, path }), 404, text);
    }
  }
});

t.test('1.1: paths are decoded, cleaned, or refused', async (t) => {
  const readOnly = 'builtin/global-read-only';
  const encodings = [readOnly, 'builtin%2Fglobal-read-only', 'builtin%252Fglobal-read-only'];
  for (const name of encodings) {
    const { status, json } = await consul.get(`/acl/policy/name/${name}`);
    t.same([status, json.Name], [200, readOnly], name);
  }
  await consul.put('/acl/role', { Name: 'decoded' });
  t.equal((await consul.get('/acl/role/name/%64ecoded')).status, 200);
  t.equal((await consul.get('/acl/role/name/%2564ecoded')).status, 404);

  const redirects: readonly [string, string, number, string][] = [
    ['GET', '/v1//acl/policies?stale', 301, '/v1/acl/policies?stale'],
    ['GET', '/v1/acl/x/../policies', 301, '/v1/acl/policies'],
    ['PUT', '/v1/acl/./policy', 307, '/v1/acl/policy'],
  ];
  for (const [method, path, status, location] of redirects) {
    const reply = await send(node, { method, path });
    t.same([reply.status, reply.headers.location], [status, location], path);
  }
  answers(t, await consul.get('/acl/policy/%00'), 400, '');
  for (const [client, status] of [[consul, 500] as const, [service, 400] as const]) {
    const reply = await client.get('/acl/policies?ns=%zz');
    answers(t, reply, status, '');
    t.equal(reply.headers['content-type'], 'text/plain; charset=utf-8');
  }
  const long = 'x'.repeat(256 * 1024);
  t.equal((await consul.get('/acl/policies', { headers: { 'X-Long': long } })).status, 200);
});

t.test('1.2: the secret is the first that is there', async (t) => {
  const one = await newToken();
  const two = await newToken();
  const [secret, other] = [String(one.SecretID), String(two.SecretID)];
  const cases: readonly [string, Readonly<Record<string, string>>][] = [
    [`?token=${secret}`, { 'X-Consul-Token': other }],
    ['', { 'X-Consul-Token': secret, Authorization: `Bearer ${other}` }],
    ['', { 'X-Service-Token': secret, Authorization: `Bearer ${other}` }],
    ['?token=', { 'X-Consul-Token': '', Authorization: `Bearer ${secret}` }],
    ['', { Authorization: `bEaReR ${secret} and more` }],
  ];
  for (const [query, headers] of cases) {
    const path = `/v1/acl/token/self${query}`;
    const { json } = await send(node, { method: 'GET', path, headers });
    t.equal(json.AccessorID, one.AccessorID, JSON.stringify([query, headers]));
  }
  const basic = { Authorization: `Basic ${secret}` };
  const nobody = await send(node, { method: 'GET', path: '/v1/acl/policies', headers: basic });
  answers(t, nobody, 403, /^Permission denied: anonymous token lacks/);

  const withDefault = await runNode(t, { 'acl-tokens-default': ROOT });
  const path = '/v1/acl/policies';
  t.equal((await send(withDefault, { method: 'GET', path })).status, 200);
  t.equal((await send(withDefault, { method: 'GET', path, headers: basic })).status, 200);
});

t.test('1.2: login, bootstrap and replication look at no secret', async (t) => {
  const { Name: AuthMethod } = await newMethod();
  await newRule({ AuthMethod });
  const stranger = consul.as(NO_ID);
  const login = { AuthMethod, BearerToken: await ISSUER.sign() };
  t.equal((await stranger.post('/acl/login', login)).status, 200);
  t.equal((await stranger.get('/acl/replication')).status, 200);
  const bare = await runNode(t, { 'acl-tokens-initial-management': '' });
  t.equal((await new Client(bare, 'X-Consul-', NO_ID).put('/acl/bootstrap')).status, 200);
});

t.test('1.3: what each kind of secret gives', async (t) => {
  const lacks = (who: string, right: string) =>
    `Permission denied: ${who} lacks permission ${right}`;
  const hint = '. The anonymous token is used implicitly when a request does not specify a token.';
  const reader = await tokenWith('acl = "read"');
  const nobody = await newToken();
  const named = (token: Fields) => `token with AccessorID '${token.AccessorID}'`;
  const list = 'GET /acl/policies';
  const create = 'PUT /acl/policy';
  const body = { Name: 'never' };
  const cases: readonly [string, readonly Refusal[]][] = [
    ['', [{ ask: list, statuses: DENIED, text: lacks('anonymous token', "'acl:read'") + hint }]],
    [
      'anonymous',
      [
        { ask: list, statuses: DENIED, text: lacks('anonymous token', "'acl:read'") + hint },
        {
          ask: create,
          body,
          statuses: DENIED,
          text: lacks('anonymous token', "'acl:write'") + hint,
        },
      ],
    ],
    [NO_ID, [{ ask: list, statuses: DENIED, text: 'ACL not found' }]],
    [
      String(reader.SecretID),
      [{ ask: create, body, statuses: DENIED, text: lacks(named(reader), "'acl:write'") }],
    ],
    [
      String(nobody.SecretID),
      [
        { ask: list, statuses: DENIED, text: lacks(named(nobody), "'acl:read'") },
        { ask: create, body, statuses: DENIED, text: lacks(named(nobody), "'acl:write'") },
        {
          ask: 'GET /namespace/default',
          statuses: DENIED,
          text: lacks(named(nobody), `'namespace:read' on "default"`),
        },
      ],
    ],
    ...['allow', 'deny', 'manage'].map((word): [string, readonly Refusal[]] => [
      word,
      [{ ask: list, statuses: INVALID, text: 'Cannot resolve root ACL' }],
    ]),
  ];
  for (const [secret, refusals] of cases) await refuses(t, node, refusals, secret);
  const { json } = await consul.as('anonymous').get('/acl/token/self');
  t.match(json, { AccessorID: ANONYMOUS, SecretID: 'anonymous', Description: 'Anonymous Token' });

  const bare = await runNode(t, { 'acl-tokens-initial-management': '' });
  const text =
    'ACL system must be bootstrapped before making any requests that require authorization: ACL not found';
  await refuses(t, bare, [{ ask: list, statuses: DENIED, text }], NO_ID);
});

t.test('1.3: letter case counts in secrets, and not in accessors', async (t) => {
  const SecretID = 'abcdefab-0000-4000-8000-00000000abcd';
  const { AccessorID } = await newToken({ SecretID });
  const upper = consul.as(SecretID.toUpperCase());
  answers(t, await upper.get('/acl/policies'), 403, 'ACL not found');
  const { json } = await consul.get(`/acl/token/${String(AccessorID).toUpperCase()}`);
  t.equal(json.AccessorID, AccessorID);
});

t.test('1.3: the anonymous token may get rights; default allow gives none over ACLs', async (t) => {
  const other = await runNode(t, { 'acl-default-policy': 'allow' });
  const root = new Client(other, 'X-Consul-');
  const anonymous = root.as('');
  const reply = await anonymous.get('/acl/policies');
  t.equal(reply.status, 403);
  t.equal(reply.headers['x-consul-default-acl-policy'], 'allow');
  const questions = ['service', 'acl'].map((Resource) => ({ Resource, Access: 'read' }));
  const { list } = await anonymous.post('/internal/acl/authorize', questions);
  t.same(
    list.map(({ Allow }) => Allow),
    [true, false],
  );
  const policy = await root.made('PUT', '/acl/policy', { Name: 'r', Rules: 'acl = "read"' });
  const link = { Policies: [{ ID: policy.ID }] };
  await root.made('PUT', `/acl/token/${ANONYMOUS}`, link);
  t.equal((await anonymous.get('/acl/policies')).status, 200);
});

t.test('1.4: errors are bare text, answers are JSON, neither ends in a newline', async (t) => {
  const refusal = await consul.get(`/acl/policy/${NO_ID}`);
  t.equal(refusal.headers['content-type'], 'text/plain; charset=utf-8');
  t.notMatch(refusal.text, /\n$/);
  const reply = await consul.get('/acl/policies');
  t.equal(reply.headers['content-type'], 'application/json');
  t.notMatch(reply.text, /\n$/);
});

t.test('1.5: the fixed texts', async (t) => {
  const { ID } = await newPolicy();
  const { AccessorID } = await newToken();
  const missing = (ask: string, what: string): Refusal => ({
    ask,
    statuses: MALFORMED,
    text: `Missing ${what}`,
  });
  const undecodable = (ask: string, text: string): Refusal => ({
    ask,
    body: 'a',
    statuses: MALFORMED,
    text: `${text}: invalid character 'a' looking for beginning of value`,
  });
  const other = (ask: string, body: Fields, what: string): Refusal => ({
    ask,
    body,
    statuses: MALFORMED,
    text: `${what} in URL and payload do not match`,
  });
  const absent = (ask: string, what: string): Refusal => ({
    ask,
    statuses: MISSING,
    text: `Requested ${what}: ACL not found`,
  });
  await refuses(t, node, [
    ...['GET', 'DELETE'].flatMap((method) => [
      missing(`${method} /acl/policy/`, 'policy ID'),
      missing(`${method} /acl/role/`, 'role ID'),
      missing(`${method} /acl/binding-rule/`, 'binding rule ID'),
      missing(`${method} /acl/auth-method/`, 'auth method name'),
      missing(`${method} /acl/token/`, 'token AccessorID'),
    ]),
    missing('GET /acl/policy/name/', 'policy Name'),
    missing('GET /acl/role/name/', 'role Name'),
    missing('GET /acl/templated-policy/name/', 'templated policy Name'),
    missing('POST /acl/templated-policy/preview/', 'templated policy Name'),
    undecodable('PUT /acl/policy', 'Policy decoding failed'),
    undecodable(`PUT /acl/policy/${ID}`, 'Policy decoding failed'),
    undecodable('PUT /acl/token', 'Token decoding failed'),
    undecodable(`PUT /acl/token/${AccessorID}`, 'Token decoding failed'),
    undecodable(`PUT /acl/token/${AccessorID}/clone`, 'Token decoding failed'),
    undecodable('PUT /acl/role', 'Role decoding failed'),
    undecodable('PUT /acl/binding-rule', 'BindingRule decoding failed'),
    undecodable('PUT /acl/auth-method', 'AuthMethod decoding failed'),
    undecodable('PUT /acl/bootstrap', 'Request decoding failed'),
    undecodable('POST /acl/login', 'Failed to decode request body'),
    undecodable('POST /internal/acl/authorize', 'Failed to decode request body'),
    undecodable(
      'POST /acl/templated-policy/preview/builtin/service',
      'Failed to decode request body',
    ),
    {
      ask: 'PUT /acl/policy',
      body: { ID: NO_ID, Name: 'x' },
      statuses: MALFORMED,
      text: 'Cannot specify the ID when creating a new policy',
    },
    other(`PUT /acl/policy/${ID}`, { ID: NO_ID, Name: 'x' }, 'Policy ID'),
    // The comparison is literal.
    other(`PUT /acl/policy/${ID}`, { ID: String(ID).toUpperCase(), Name: 'x' }, 'Policy ID'),
    other(`PUT /acl/token/${AccessorID}`, { AccessorID: NO_ID }, 'Token Accessor ID'),
    other('PUT /acl/role', { ID: NO_ID, Name: 'x' }, 'Role ID'),
    other(`PUT /acl/role/${NO_ID}`, { ID, Name: 'x' }, 'Role ID'),
    other('PUT /acl/binding-rule', { ID: NO_ID }, 'BindingRule ID'),
    other(`PUT /acl/binding-rule/${NO_ID}`, { ID }, 'BindingRule ID'),
    other('PUT /acl/auth-method/x', { Name: 'y' }, 'AuthMethod Name'),
    absent(`GET /acl/policy/${NO_ID}`, 'policy does not exist'),
    absent('GET /acl/policy/name/none', 'policy does not exist'),
    absent(`GET /acl/role/${NO_ID}`, 'role does not exist'),
    absent('GET /acl/role/name/none', 'role does not exist'),
    absent(`GET /acl/binding-rule/${NO_ID}`, 'binding rule does not exist'),
    absent('GET /acl/auth-method/none', 'auth method does not exist'),
    absent(`GET /acl/policy/${NO_ID}?ns=default`, 'policy not found in namespace default'),
    absent('GET /acl/auth-method/none?ns=x', 'auth method not found in namespace x'),
    {
      ask: `GET /acl/token/${NO_ID}`,
      statuses: TOKEN_MISSING,
      text: 'token does not exist: ACL not found',
    },
    {
      ask: `PUT /acl/token/${NO_ID}/clone`,
      body: {},
      statuses: TOKEN_MISSING,
      text: 'token does not exist: ACL not found',
    },
  ]);
  const logout: Refusal = {
    ask: 'POST /acl/logout',
    statuses: [401, 401],
    text: 'Supplied token does not exist',
  };
  await refuses(t, node, [logout], '');
});

t.test('1.5: a delete of what does not exist is 200 false (decisions 2)', async (t) => {
  const paths = ['policy', 'role', 'token', 'binding-rule', 'auth-method'];
  for (const path of paths) {
    for (const client of [consul, service]) {
      answers(t, await client.delete(`/acl/${path}/${NO_ID}`), 200, 'false');
      answers(t, await client.as(NO_ID).delete(`/acl/${path}/${NO_ID}`), 403, 'ACL not found');
    }
  }
});

t.test('1.6: bodies that are refused', async (t) => {
  const { AccessorID } = await newToken();
  const token = (body: unknown, why: string | RegExp): Refusal => ({
    ask: 'PUT /acl/token',
    body,
    statuses: MALFORMED,
    text: typeof why === 'string' ? `Token decoding failed: ${why}` : why,
  });
  await refuses(t, node, [
    token('', 'EOF'),
    token('  \n', 'EOF'),
    token('{"Description"', 'unexpected EOF'),
    token('{"Description":"a', 'unexpected EOF'),
    token('x', "invalid character 'x' looking for beginning of value"),
    token({ Bogus: 1 }, 'json: unknown field "Bogus"'),
    token({ Policies: [{ Bogus: 1 }] }, 'json: unknown field "Bogus" at Policies[0]'),
    token({ Partition: 'p' }, 'json: unknown field "Partition"'),
    token({ Rules: '' }, 'json: unknown field "Rules"'),
    token({ Type: 'client' }, 'json: unknown field "Type"'),
    token({ Legacy: true }, 'json: unknown field "Legacy"'),
    token({ TemplatedPolicies: [{ TemplateVariables: { Other: '' } }] }, /unknown field "Other"/),
    token([], /^Token decoding failed: json: cannot unmarshal array/),
    token({ Description: 1 }, /^Token decoding failed: json: cannot unmarshal number/),
    token({ Local: 'true' }, /^Token decoding failed: json: cannot unmarshal string/),
    token({ Policies: {} }, /^Token decoding failed: json: cannot unmarshal object/),
    token({ ExpirationTTL: '' }, /^Token decoding failed: time: invalid duration ""/),
    token({ ExpirationTTL: '60' }, /^Token decoding failed: time: invalid duration "60"/),
    token({ ExpirationTTL: '1d' }, /^Token decoding failed: time: invalid duration "1d"/),
    token({ ExpirationTTL: ' 1h' }, /^Token decoding failed: time: invalid duration " 1h"/),
    token({ ExpirationTime: 'soon' }, /^Token decoding failed: parsing time "soon"/),
    { ...token('{', 'unexpected EOF'), ask: `PUT /acl/token/${AccessorID}/clone` },
  ]);
});

t.test('1.6: bodies that are accepted', async (t) => {
  const { ID, Name } = await newPolicy();
  const token = (body: unknown): Promise<Fields> => consul.made('PUT', '/acl/token', body);
  const lower = { description: 'lower', POLICIES: [{ id: ID }], sErViCeIdEnTiTiEs: null };
  t.match(await token(lower), { Description: 'lower', Policies: [{ ID, Name }] });
  t.match(await token('null'), { AccessorID: /^.{36}$/ });
  const nulls = { Description: null, Policies: null, Local: null, ExpirationTTL: null };
  t.match(await token(nulls), { Description: '', Local: false });
  t.match(await token('{"Description":"first"}{"Description":"second"} x'), {
    Description: 'first',
  });
  const sentBack = await token({ Description: 'sent back' });
  t.match(await token({ ...sentBack, AccessorID: '', SecretID: '' }), { Description: 'sent back' });
  const zero = '0001-01-01T00:00:00Z';
  const hashes = { Hash: null, CreateIndex: 'x', CreateTime: zero, ExpirationTime: zero };
  t.notOk('ExpirationTime' in (await token(hashes)));
  const template = { TemplateName: 'builtin/service', TemplateVariables: { Name: 'web' } };
  t.match(await token({ TemplatedPolicies: [template] }), {
    TemplatedPolicies: [{ TemplateVariables: { name: 'web' } }],
  });
  for (const ExpirationTTL of [true, {}, [], null, 0]) {
    t.notOk('ExpirationTime' in (await token({ ExpirationTTL })), JSON.stringify(ExpirationTTL));
  }
  for (const ExpirationTTL of ['1h', '60m', '3600s', '.5h30m', 3_600_000_000_000]) {
    const { CreateTime, ExpirationTime } = await token({ ExpirationTTL });
    const lifeMs = Date.parse(String(ExpirationTime)) - Date.parse(String(CreateTime));
    t.equal(lifeMs, 3_600_000, String(ExpirationTTL));
  }
});

t.test('1.6: the type of a body is not looked at', async (t) => {
  for (const type of ['application/x-www-form-urlencoded', 'text/plain', ';;', undefined]) {
    const headers = type === undefined ? {} : { 'Content-Type': type };
    const reply = await consul.put('/acl/token', { Description: 'typed' }, { headers });
    t.equal(reply.status, 200, type ?? 'no type');
  }
  const headers = { 'Content-Type': 'application/json' };
  t.equal((await consul.delete(`/acl/token/${NO_ID}`, { headers })).status, 200);
});

t.test('1.6: markup is escaped in JSON', async (t) => {
  const { AccessorID } = await newToken({ Description: '<b> & "c"' });
  const reader = await tokenWith('acl = "read"');
  const { text, json } = await consul.as(reader.SecretID).get(`/acl/token/${AccessorID}`);
  t.match(text, '"Description":"\\u003cb\\u003e \\u0026 \\"c\\""');
  t.match(text, '"SecretID":"\\u003chidden\\u003e"');
  t.match(json, { Description: '<b> & "c"', SecretID: '<hidden>' });
});

t.test('1.6: namespaces and partitions where they are off', async (t) => {
  const off = await runNode(t, { 'namespaces-enabled': 'false' });
  const why = 'Namespaces are not enabled';
  const cluster = {
    Host: 'https://k8s.test',
    CACert: selfSigned().cert,
    ServiceAccountJWT: await ISSUER.sign(),
  };
  const mapped = (MapNamespaces: boolean) => {
    return { Name: 'k', Type: 'kubernetes', Config: { ...cluster, MapNamespaces } };
  };
  await refuses(t, off, [
    {
      ask: 'GET /acl/policies?ns=x',
      statuses: MALFORMED,
      text: `Invalid query parameter: "ns" - ${why}`,
    },
    {
      ask: 'GET /acl/tokens?authmethod-ns=x',
      statuses: MALFORMED,
      text: `Invalid query parameter: "authmethod-ns" - ${why}`,
    },
    {
      ask: 'PUT /acl/policy',
      body: { Name: 'x', Namespace: 'x' },
      statuses: MALFORMED,
      text: `Policy decoding failed: json: unknown field "Namespace" - ${why}`,
    },
    {
      ask: 'PUT /acl/auth-method',
      body: { Name: 'm', Type: 'jwt', Config: {}, NamespaceRules: [{ BindNamespace: 'x' }] },
      statuses: MALFORMED,
      text: `AuthMethod decoding failed: json: unknown field "NamespaceRules" - ${why}`,
    },
    {
      ask: 'PUT /acl/auth-method',
      body: mapped(true),
      statuses: MALFORMED,
      text: `Invalid Auth Method: Config.MapNamespaces - ${why}`,
    },
    { ask: 'GET /namespaces', statuses: MALFORMED, text: why },
  ]);
  const plain = await new Client(off, 'X-Consul-').put('/acl/auth-method', mapped(false));
  t.equal(plain.status, 200, 'what says nothing of them is taken');
  for (const prefix of ['X-Consul-', 'X-Service-'] as const) {
    const client = new Client(off, prefix);
    for (const [name, whatIsOff] of [
      ['Namespace', 'Namespaces'],
      ['Partition', 'Partitions'],
    ] as const) {
      const headers = { [`${prefix}${name}`]: 'x' };
      const text = `Invalid header: "${prefix}${name}" - ${whatIsOff} are not enabled`;
      answers(t, await client.get('/acl/roles', { headers }), 400, text);
    }
    const ignoring = ['GET /acl/token/self', 'GET /acl/replication'];
    for (const ask of ignoring) {
      const [method = '', path = ''] = ask.split(' ');
      const headers = { [`${prefix}Namespace`]: 'x' };
      t.equal((await client.send(method, `${path}?ns=x`, { headers })).status, 200, ask);
    }
    const asked = await client.post('/internal/acl/authorize?ns=x', []);
    answers(t, asked, 200, '[]');
  }
  const partition = 'Invalid query parameter: "partition" - Partitions are not enabled';
  for (const path of ['/acl/roles', '/namespaces', '/namespace/default']) {
    answers(t, await consul.get(`${path}?partition=x`), 400, partition);
  }
});
