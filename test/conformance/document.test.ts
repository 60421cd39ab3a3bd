// The interface document, over HTTP against the real node, as its own readers speak: the `X-Service-`
// headers and the `service` dialect. Its 18 operations with their access, fields, redaction, immutable
// fields, limits, list omissions, and where a namespace comes from.

import t from 'tap';
import { startLoopback } from '../auth-methods/loopback.ts';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import {
  answers,
  Client,
  type Fields,
  type Reply,
  runNode,
} from '../support/running/running-node.ts';
import { fresh, linkTo, makersOn } from './makers.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const GLOBAL_MANAGEMENT = '00000000-0000-0000-0000-000000000001';
const RULES = 'acl = "read"';

const node = await runNode(t);
const root = new Client(node, 'X-Service-');
const ISSUER = await jwtIssuer();
const CONFIG = ISSUER.config;
const { make, newPolicy, newRole, newToken, newMethod, newRule } = makersOn(root, CONFIG);

const later = (ms: number): string => new Date(Date.now() + ms).toISOString();

/** A client whose token has these rules. */
async function callerWith(rules: string): Promise<Client> {
  const { ID } = await newPolicy({ Rules: rules });
  return root.as((await newToken({ Policies: [{ ID }] })).SecretID);
}

type Checker = Pick<typeof t, 'equal' | 'ok'>;

function isUpdateOf(t: Checker, before: Fields, after: Fields): void {
  t.equal(after.CreateIndex, before.CreateIndex, 'CreateIndex stays');
  t.ok(Number(after.ModifyIndex) > Number(before.ModifyIndex), 'ModifyIndex moves');
}

t.test('access: what each operation requires', async (t) => {
  const nobody = await callerWith('');
  const reader = await callerWith('acl = "read"');
  const writer = await callerWith('acl = "write"');
  const policy = await newPolicy();
  const gone = await newPolicy();
  const token = await newToken();
  const method = await newMethod();
  const body = (name: string): Fields => ({ Name: name, Type: 'jwt', Config: CONFIG });
  const policyBody = { Name: policy.Name };
  const operations: readonly [access: 'read' | 'write', ask: string, body?: () => Fields][] = [
    ['write', 'PUT /acl/auth-method', () => body(fresh('method'))],
    ['read', `GET /acl/auth-method/${method.Name}`],
    ['write', `PUT /acl/auth-method/${method.Name}`, () => ({ Config: CONFIG })],
    ['read', 'GET /acl/auth-methods'],
    ['write', `DELETE /acl/auth-method/${method.Name}`],
    ['write', 'PUT /acl/token', () => ({})],
    ['read', `GET /acl/token/${token.AccessorID}`],
    ['write', `PUT /acl/token/${token.AccessorID}`, () => ({})],
    ['write', `PUT /acl/token/${token.AccessorID}/clone`, () => ({})],
    ['read', 'GET /acl/tokens'],
    ['write', `DELETE /acl/token/${token.AccessorID}`],
    ['write', 'PUT /acl/policy', () => ({ Name: fresh('policy') })],
    ['read', `GET /acl/policy/${policy.ID}`],
    ['read', `GET /acl/policy/name/${policy.Name}`],
    ['write', `PUT /acl/policy/${policy.ID}`, () => policyBody],
    ['read', 'GET /acl/policies'],
    ['write', `DELETE /acl/policy/${gone.ID}`],
  ];
  const ask = (client: Client, row: (typeof operations)[number]): Promise<Reply> => {
    const [method = '', path = ''] = row[1].split(' ');
    return client.send(method, path, { body: row[2]?.() });
  };
  for (const row of operations) {
    const [access, what] = row;
    const lacks = new RegExp(`^Permission denied: .* lacks permission 'acl:${access}'`);
    answers(t, await ask(nobody, row), 403, lacks);
    answers(t, await ask(root.as(''), row), 403, lacks);
    if (access === 'write') answers(t, await ask(reader, row), 403, lacks);
    else t.equal((await ask(reader, row)).status, 200, what);
    const reply = await ask(writer, row);
    t.equal(reply.status, 200, what);
    t.equal(reply.headers['content-type'], 'application/json', what);
  }
  t.equal((await nobody.get('/acl/token/self')).status, 200, 'read self needs no right');
});

t.test('auth methods: create, read, update, delete, list', async (t) => {
  const body = {
    Name: 'all-Fields_1',
    Type: 'jwt',
    Description: 'everything set',
    DisplayName: 'Everything',
    MaxTokenTTL: '60s',
    TokenLocality: 'global',
    Config: CONFIG,
    NamespaceRules: [{ Selector: '', BindNamespace: 'default' }],
  };
  const created = await make('auth-method', body);
  t.match(created, { ...body, MaxTokenTTL: '1m0s' });
  t.ok(Number(created.CreateIndex) > 0);
  const path = `/acl/auth-method/${body.Name}`;
  t.same((await root.get(path)).json, created);
  t.equal((await root.get('/acl/auth-method/none')).status, 404);

  const updated = await root.made('PUT', path, { Config: CONFIG, Description: 'less' });
  t.match(updated, { Name: body.Name, Type: 'jwt', Description: 'less', Config: CONFIG });
  t.notOk('MaxTokenTTL' in updated);
  isUpdateOf(t, created, updated);
  const immutable: readonly [Fields, string][] = [
    [{ Name: 'other' }, 'AuthMethod Name in URL and payload do not match'],
    [{ Type: 'kubernetes' }, 'the Type field of an Auth Method is immutable'],
  ];
  for (const [change, text] of immutable) {
    answers(t, await root.put(path, { Config: CONFIG, ...change }), 400, text);
  }
  t.equal((await root.put(path, { ...body, Type: 'jwt' })).status, 200, 'the same again');
  t.equal((await root.put(path, { Type: 'jwt' })).status, 400, 'Config is required');

  const { list } = await root.get('/acl/auth-methods');
  const entry = list.find(({ Name }) => Name === body.Name);
  t.match(entry, { Type: 'jwt', Description: body.Description, CreateIndex: created.CreateIndex });
  t.notOk('Config' in (entry ?? {}));
  answers(t, await root.delete(path), 200, 'true');
  answers(t, await root.delete(path), 200, 'false');
});

t.test('auth methods: what is required, and the bounds', async (t) => {
  const body = { Name: 'bounds', Type: 'jwt', Config: CONFIG };
  const bad: readonly [Fields, RegExp][] = [
    [{ ...body, Name: undefined }, /no Name is set/],
    [{ ...body, Name: 'a b' }, /invalid Name/],
    [{ ...body, Type: undefined }, /Type should be one of/],
    [{ ...body, MaxTokenTTL: '59s' }, /^MaxTokenTTL 59s cannot be less than 1m0s$/],
    [{ ...body, MaxTokenTTL: '24h0m1s' }, /^MaxTokenTTL 24h0m1s cannot be more than 24h0m0s$/],
    [{ ...body, MaxTokenTTL: 'soon' }, /^AuthMethod decoding failed: /],
    [{ ...body, TokenLocality: 'everywhere' }, /TokenLocality should be one of/],
    [{ ...body, Type: 'oidc' }, /MaxTokenTTL must be set for type "oidc"/],
    [{ ...body, NamespaceRules: [{ Selector: '' }] }, /no BindNamespace set/],
  ];
  for (const [draft, text] of bad) answers(t, await root.put('/acl/auth-method', draft), 400, text);
  for (const MaxTokenTTL of ['60s', '1m', '24h']) {
    t.equal((await root.put('/acl/auth-method', { ...body, MaxTokenTTL })).status, 200);
  }
});

t.test('auth methods: oidc is a type, and needs a MaxTokenTTL', async (t) => {
  const provider = await startLoopback(t);
  provider.reply = () => ({
    body: {
      issuer: provider.url,
      jwks_uri: `${provider.url}/keys`,
      authorization_endpoint: `${provider.url}/authorize`,
      token_endpoint: `${provider.url}/token`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['ES256'],
      keys: [ISSUER.jwk],
    },
  });
  const Config = {
    OIDCDiscoveryURL: provider.url,
    OIDCClientID: 'us',
    OIDCClientSecret: 'secret',
    AllowedRedirectURIs: ['http://127.0.0.1:8550/oidc/callback'],
  };
  const body = { Name: 'by-browser', Type: 'oidc', Config };
  t.equal((await root.put('/acl/auth-method', { ...body, MaxTokenTTL: '0s' })).status, 400);
  t.equal((await make('auth-method', { ...body, MaxTokenTTL: '5m' })).Type, 'oidc');
});

t.test('auth methods: their tokens, and what is deleted with them', async (t) => {
  for (const TokenLocality of ['', 'local', 'global']) {
    const { Name: AuthMethod } = await newMethod({ TokenLocality, MaxTokenTTL: '10m' });
    const rule = { AuthMethod, BindType: 'service', BindName: 'web' };
    const { ID } = await make('binding-rule', rule);
    const login = { AuthMethod, BearerToken: await ISSUER.sign() };
    const token = await root.as('').made('POST', '/acl/login', login);
    t.match(token, { AuthMethod, Local: TokenLocality !== 'global' });
    const lifeMs = Date.parse(String(token.ExpirationTime)) - Date.parse(String(token.CreateTime));
    t.equal(lifeMs, 600_000, 'CreateTime plus MaxTokenTTL');
    const byMethod = await root.get(`/acl/tokens?authmethod=${AuthMethod}`);
    t.same(
      byMethod.list.map(({ AccessorID }) => AccessorID),
      [token.AccessorID],
    );
    await root.delete(`/acl/auth-method/${AuthMethod}`);
    t.equal((await root.get(`/acl/binding-rule/${ID}`)).status, 404);
    t.equal((await root.get(`/acl/token/${token.AccessorID}`)).status, 404);
    t.equal((await root.as(token.SecretID).get('/acl/token/self')).status, 403);
    answers(t, await root.get(`/acl/tokens?authmethod=${AuthMethod}`), 200, '[]');
    await newMethod({ Name: AuthMethod });
    t.equal((await root.as(token.SecretID).get('/acl/token/self')).status, 403, 'for ever');
  }
});

t.test('tokens: create, read, read self, update, clone, delete', async (t) => {
  const policy = await newPolicy({ Rules: RULES, Description: 'direct' });
  const behind = await newPolicy({ Rules: 'node "n" { policy = "read" }' });
  const role = await newRole({ Policies: [{ ID: behind.ID }] });
  const body = {
    AccessorID: '1aaaaaaa-0000-4000-8000-000000000001',
    SecretID: '1aaaaaaa-0000-4000-8000-000000000002',
    Description: 'everything set',
    ServiceIdentities: [{ ServiceName: 'web', Datacenters: ['dc1'] }],
    NodeIdentities: [{ NodeName: 'n', Datacenter: 'dc1' }],
    Local: false,
  };
  const names = { Policies: [{ Name: policy.Name }], Roles: [{ Name: role.Name }] };
  const TemplatedPolicies = [
    { TemplateName: 'builtin/service', TemplateVariables: { name: 'api' } },
  ];
  const token = await newToken({ ...body, ...names, TemplatedPolicies, ExpirationTTL: '5m' });
  t.match(token, {
    ...body,
    Policies: [linkTo(policy)],
    Roles: [linkTo(role)],
    TemplatedPolicies: [{ ...TemplatedPolicies[0], TemplateID: /^.{36}$/ }],
    CreateTime: /^\d{4}-\d\d-\d\dT[\d:.]+Z$/,
    Hash: /./,
  });
  t.notOk('ExpirationTTL' in token);
  t.equal(Date.parse(String(token.ExpirationTime)) - Date.parse(String(token.CreateTime)), 300_000);
  const path = `/acl/token/${token.AccessorID}`;
  t.same((await root.get(path)).json, token);
  t.same((await root.as(token.SecretID).get('/acl/token/self')).json, token);
  const byQuery = await root.as('').get(`/acl/token/self?token=${token.SecretID}`);
  t.same(byQuery.json, token);
  t.equal((await root.get(`/acl/token/${NO_ID}`)).status, 404);

  const { json: expanded } = await root.get(`${path}?expanded=true`);
  t.match(expanded, { ...token, AgentACLDefaultPolicy: 'deny', ResolvedByAgent: 'node-1' });
  const [direct, ...others] = expanded.ExpandedPolicies as readonly Fields[];
  t.same(direct, { ...policy, Datacenters: null });
  t.match(
    others.find(({ ID }) => ID === behind.ID),
    linkTo(behind),
    'through the role',
  );
  t.match(expanded.ExpandedRoles, [role]);
  t.notOk('ExpandedPolicies' in (await root.get(`${path}?expanded=false`)).json);

  const renamed = fresh('renamed');
  await root.put(`/acl/policy/${policy.ID}`, { Name: renamed });
  t.match((await root.get(path)).json, { Policies: [{ ID: policy.ID, Name: renamed }] });

  const updated = await root.made('PUT', path, { Description: 'less', Roles: [linkTo(role)] });
  isUpdateOf(t, token, updated);
  t.match(updated, { SecretID: token.SecretID, ExpirationTime: token.ExpirationTime });
  for (const name of ['Policies', 'ServiceIdentities', 'NodeIdentities', 'TemplatedPolicies']) {
    t.notOk(name in updated, `${name} are the desired set`);
  }

  const clone = await root.made('PUT', `${path}/clone`, { Description: 'clone' });
  t.match(clone, { Description: 'clone', Roles: [linkTo(role)] });
  for (const name of ['AccessorID', 'SecretID', 'CreateIndex']) t.not(clone[name], token[name]);
  t.equal(clone.CreateIndex, clone.ModifyIndex);

  answers(t, await root.delete(path), 200, 'true');
  answers(t, await root.delete(path), 200, 'false');
});

t.test('tokens: what an update may not change', async (t) => {
  const token = await newToken({ ExpirationTTL: '1h' });
  const { AccessorID, SecretID, ExpirationTime } = token;
  const path = `/acl/token/${AccessorID}`;
  const bad: readonly [Fields, string][] = [
    [{ AccessorID: NO_ID }, 'Token Accessor ID in URL and payload do not match'],
    [{ SecretID: NO_ID }, "Changing a token's SecretID is not permitted"],
    [{ Local: true }, `Cannot toggle local mode of ${AccessorID}`],
    [{ AuthMethod: 'other' }, `Cannot change AuthMethod of ${AccessorID}`],
    [{ ExpirationTime: later(120_000) }, `Cannot change expiration time of ${AccessorID}`],
  ];
  for (const [change, text] of bad) answers(t, await root.put(path, change), 400, text);
  const same = { AccessorID, SecretID, ExpirationTime, Local: false, Description: 'fine' };
  t.match(await root.made('PUT', path, same), same);
  t.equal((await root.put(`/acl/token/${NO_ID}`, {})).status, 404);
});

t.test('tokens: bounds', async (t) => {
  const service = (ServiceName: string): Fields => ({ ServiceIdentities: [{ ServiceName }] });
  const nodeNamed = (NodeName: string): Fields => ({
    NodeIdentities: [{ NodeName, Datacenter: 'dc1' }],
  });
  const bad: readonly Fields[] = [
    { ExpirationTTL: '59s' },
    { ExpirationTTL: '24h0m1s' },
    { ExpirationTTL: '-1h' },
    { ExpirationTime: later(55_000) },
    { ExpirationTime: later(25 * 3_600_000) },
    { ExpirationTime: later(-1) },
    { AccessorID: 'x' },
    { SecretID: 'x' },
    { NodeIdentities: [{ NodeName: 'n' }] },
    ...['', 'A', '-a', 'a-', 'a.b', 'x'.repeat(257)].flatMap((name) => [
      service(name),
      nodeNamed(name),
    ]),
    { TemplatedPolicies: [{ TemplateVariables: { name: 'x' } }] },
  ];
  for (const draft of bad) {
    t.equal((await root.put('/acl/token', draft)).status, 400, JSON.stringify(draft).slice(0, 80));
  }
  const good: readonly Fields[] = [
    { ExpirationTTL: '60s' },
    { ExpirationTTL: '1m' },
    { ExpirationTTL: '24h' },
    { ExpirationTime: later(65_000) },
    { ExpirationTime: later(24 * 3_600_000 - 5_000) },
    service('x'.repeat(256)),
    nodeNamed('a_b-0'),
  ];
  for (const draft of good) {
    t.equal((await root.put('/acl/token', draft)).status, 200, JSON.stringify(draft).slice(0, 80));
  }
});

t.test('tokens: ids and names that are taken are 409', async (t) => {
  const { AccessorID, SecretID } = await newToken();
  for (const draft of [{ AccessorID }, { SecretID }, { SecretID: AccessorID }]) {
    t.equal((await root.put('/acl/token', draft)).status, 409);
  }
});

t.test('tokens: the list, its built-ins, its filters, and hidden secrets', async (t) => {
  const other = new Client(await runNode(t), 'X-Service-');
  const { list: builtIns } = await other.get('/acl/tokens');
  t.match(
    builtIns.find(({ AccessorID }) => AccessorID === '00000000-0000-0000-0000-000000000002'),
    { Description: 'Anonymous Token', Policies: null },
  );
  t.ok(
    builtIns.some(({ Policies }) => {
      const links = (Policies ?? []) as readonly Fields[];
      return links.some(({ Name }) => Name === 'global-management');
    }),
  );
  const policy = await newPolicy();
  const role = await newRole();
  const cases: readonly [string, Fields][] = [
    [`policy=${policy.ID}`, { Policies: [{ ID: policy.ID }] }],
    [`role=${role.ID}`, { Roles: [{ ID: role.ID }] }],
    ['servicename=listed', { ServiceIdentities: [{ ServiceName: 'listed' }] }],
  ];
  const reader = await callerWith(RULES);
  for (const [query, draft] of cases) {
    const token = await newToken(draft);
    t.match((await root.get(`/acl/tokens?${query}`)).json, [token]);
    const { list } = await reader.get(`/acl/tokens?${query}`);
    t.match(list, [{ AccessorID: token.AccessorID, SecretID: '<hidden>' }]);
    const { json } = await reader.get(`/acl/token/${token.AccessorID}`);
    t.equal(json.SecretID, '<hidden>');
  }
});

t.test('policies: create, read, read by name, update, delete, list', async (t) => {
  const body = { Name: 'all-Fields_2', Description: 'd', Rules: RULES, Datacenters: ['dc1'] };
  const policy = await make('policy', body);
  t.match(policy, { ...body, ID: /^.{36}$/, Hash: /./ });
  const path = `/acl/policy/${policy.ID}`;
  t.same((await root.get(path)).json, policy);
  t.same((await root.get(`/acl/policy/name/${body.Name}`)).json, policy);
  const updated = await root.made('PUT', path, { ID: policy.ID, Name: 'renamed' });
  isUpdateOf(t, policy, updated);
  t.match(updated, { Name: 'renamed', Description: '', Rules: '' });
  t.not(updated.Hash, policy.Hash);
  t.equal((await root.get(`/acl/policy/name/${body.Name}`)).status, 404);
  const bad: readonly [string, Fields, number][] = [
    [path, { ID: NO_ID, Name: 'x' }, 400],
    [path, { Name: '' }, 400],
    [path, { Name: 'global-management' }, 409],
    [`/acl/policy/${NO_ID}`, { Name: 'x' }, 404],
    ['/acl/policy', { Name: 'renamed' }, 409],
    ['/acl/policy', { Name: 'a b' }, 400],
    ['/acl/policy', {}, 400],
    ['/acl/policy', { Name: 'x', Rules: 'acl = "maybe"' }, 400],
  ];
  for (const [where, draft, status] of bad) {
    t.equal((await root.put(where, draft)).status, status, JSON.stringify(draft));
  }
  const { list } = await root.get('/acl/policies');
  t.notOk(list.some((entry) => 'Rules' in entry));
  t.match(
    list.find(({ ID }) => ID === GLOBAL_MANAGEMENT),
    { Name: 'global-management' },
  );
  const { Rules: _rules, ...entry } = updated;
  t.match(
    list.find(({ ID }) => ID === policy.ID),
    { ...entry, Datacenters: null },
  );
  answers(t, await root.delete(path), 200, 'true');
  answers(t, await root.delete(path), 200, 'false');
  t.equal((await root.get(path)).status, 404);
});

const SPACES = ['from-body', 'from-query', 'from-header', 'from-token'] as const;

/** A client whose token lives in the last of the spaces, and may do everything. */
async function callerInNamespace(): Promise<Client> {
  for (const Name of SPACES) await root.put(`/namespace/${Name}`, {});
  const token = { Namespace: 'from-token', Policies: [{ ID: GLOBAL_MANAGEMENT }] };
  return root.as((await newToken(token)).SecretID);
}

/** What a request says about namespaces, and the one that it then means. */
const SOURCES: readonly [wanted: string, body: boolean, query: string, header: boolean][] = [
  ['from-body', true, '?ns=from-query', true],
  ['from-body', true, '', false],
  ['from-query', false, '?ns=from-query', true],
  ['from-header', false, '', true],
  ['from-header', false, '?ns=', true],
  ['from-token', false, '', false],
];

t.test('namespaces: the first of the five sources counts, on every operation', async (t) => {
  const caller = await callerInNamespace();
  const kinds = {
    policy: ['policies', 'ID', () => ({ Name: fresh('p') })],
    token: ['tokens', 'AccessorID', () => ({})],
    'auth-method': [
      'auth-methods',
      'Name',
      () => ({ Name: fresh('m'), Type: 'jwt', Config: CONFIG }),
    ],
  } as const;
  for (const [kind, [list, id, draft]] of Object.entries(kinds)) {
    for (const [wanted, inBody, query, inHeader] of SOURCES) {
      const what = `${kind} ${wanted} ${query}`;
      const headers = inHeader ? { 'X-Service-Namespace': 'from-header' } : {};
      const body = { ...draft(), ...(inBody && { Namespace: 'from-body' }) };
      const { json: made } = await caller.put(`/acl/${kind}${query}`, body, { headers });
      t.equal(made.Namespace, wanted, what);
      const { Name } = made;
      const again = { ...(Name === undefined ? {} : { Name }), Config: undefined };
      const update = { ...again, ...(kind === 'auth-method' && { Config: CONFIG }) };
      const path = `/acl/${kind}/${made[id]}`;
      const inNamespace = { ...update, ...(inBody && { Namespace: 'from-body' }) };
      const updated = await caller.put(`${path}${query}`, inNamespace, { headers });
      t.same([updated.status, updated.json.Namespace], [200, wanted], `update ${what}`);
      if (inBody) continue;
      const read = await caller.get(`${path}${query}`, { headers });
      t.same([read.status, read.json.Namespace], [200, wanted], `read ${what}`);
      const listed = await caller.get(`/acl/${list}${query}`, { headers });
      t.ok(
        listed.list.some((entry) => entry[id] === made[id]),
        `list ${what}`,
      );
      t.ok(
        listed.list.every(({ Namespace }) => Namespace === wanted),
        `list ${what}`,
      );
      const elsewhere = await caller.get(`${path}?ns=from-body`);
      t.equal(elsewhere.status, 404, `not elsewhere: ${what}`);
      answers(t, await caller.delete(`${path}?ns=from-body`), 200, 'false');
      answers(t, await caller.delete(`${path}${query}`, { headers }), 200, 'true');
    }
  }
  t.equal((await make('policy', { Name: fresh('p') })).Namespace, 'default', 'the last source');
});

t.test('namespaces: reads by name and clones; lists of all', async (t) => {
  const caller = await callerInNamespace();
  const Name = fresh('same-name');
  const ids = new Map<string, unknown>();
  for (const Namespace of [...SPACES, 'default']) {
    const { ID } = await root.made('PUT', '/acl/policy', { Name, Namespace });
    ids.set(Namespace, ID);
    await newToken({ Namespace });
  }
  for (const [wanted, inBody, query, inHeader] of SOURCES) {
    if (inBody) continue;
    const headers = inHeader ? { 'X-Service-Namespace': 'from-header' } : {};
    const { json } = await caller.get(`/acl/policy/name/${Name}${query}`, { headers });
    t.equal(json.ID, ids.get(wanted), wanted);
  }
  const source = await caller.made('PUT', '/acl/token', {});
  const path = `/acl/token/${source.AccessorID}/clone`;
  t.equal((await caller.made('PUT', path, {})).Namespace, 'from-token');
  t.equal((await caller.put(path, { Namespace: 'from-body' })).status, 404);
  for (const list of ['policies', 'tokens', 'auth-methods']) {
    const all = (await root.get(`/acl/${list}?ns=*`)).list;
    const spaces = new Set(all.map(({ Namespace }) => Namespace));
    t.ok(spaces.has('default'), list);
    if (list !== 'auth-methods') for (const name of SPACES) t.ok(spaces.has(name), list);
  }
  t.equal((await root.put('/acl/policy?ns=*', { Name: 'x' })).status, 400);
});

t.test(
  'namespaces: an id, too, is looked for in the namespace that the request means',
  async (t) => {
    const caller = await callerInNamespace();
    const home = { Namespace: 'from-query' };
    const there = '?ns=from-query';
    const method = await newMethod(home);
    const policy = await newPolicy(home);
    const role = await newRole(home);
    const rule = await newRule({ ...home, AuthMethod: method.Name });
    const token = await newToken(home);
    const bindings = { BindType: 'service', BindName: 'web' };
    const objects: readonly [path: string, update: Fields][] = [
      [`/acl/policy/${policy.ID}`, { Name: policy.Name }],
      [`/acl/role/${role.ID}`, { Name: role.Name }],
      [`/acl/binding-rule/${rule.ID}`, bindings],
      [`/acl/token/${token.AccessorID}`, {}],
    ];
    // One lives in `from-token`, one in `default`, and both may do everything everywhere.
    for (const client of [caller, root]) {
      for (const [path, update] of objects) {
        answers(t, await client.get(path), 404, /ACL not found$/);
        answers(t, await client.put(path, update), 404, /^[Cc]annot find /);
        answers(t, await client.delete(path), 400, /lives in namespace "from-query": name it/);
        t.equal((await client.get(`${path}${there}`)).json.Namespace, 'from-query', path);
      }
      const source = `/acl/token/${token.AccessorID}`;
      answers(t, await client.put(`${source}/clone`, {}), 404, /ACL not found$/);
      answers(t, await client.get(`${source}?expanded`), 404, /ACL not found$/);
    }
    // Who has no right there is told what is told of nothing, and who names another one what is asked for.
    const stranger = await callerWith('acl = "write"');
    for (const [path] of objects) {
      answers(t, await stranger.delete(path), 200, 'false');
      answers(t, await root.delete(`${path}?ns=default`), 200, 'false');
    }
    for (const [path, update] of objects) {
      t.equal((await root.put(path, { ...update, ...home })).json.Namespace, 'from-query', path);
      answers(t, await root.delete(`${path}${there}`), 200, 'true');
    }
  },
);

t.test('namespaces: the auth method of a filter may live elsewhere', async (t) => {
  await root.put('/namespace/team', {});
  const NamespaceRules = [{ BindNamespace: 'team' }];
  const { Name: AuthMethod } = await newMethod({ NamespaceRules });
  await newRule({ AuthMethod });
  const login = { AuthMethod, BearerToken: await ISSUER.sign() };
  const token = await root.as('').made('POST', '/acl/login', login);
  t.equal(token.Namespace, 'team');
  const query = `/acl/tokens?ns=team&authmethod=${AuthMethod}`;
  answers(t, await root.get(query), 200, '[]');
  const { list } = await root.get(`${query}&authmethod-ns=default`);
  t.same(
    list.map(({ AccessorID }) => AccessorID),
    [token.AccessorID],
  );
});
