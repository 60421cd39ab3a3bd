// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how binding rules name attributes.
// What deployed clients send and must get back: every row of the table "request by request" of
// clients.md, under its own number, over HTTP against the real node. Where decisions.md answers
// otherwise, the test's name says so.

import t from 'tap';
import { startLoopback } from '../auth-methods/loopback.ts';
import { selfSigned } from '../support/certificates.ts';
import { jwtIssuer } from '../support/jwt-issuer.ts';
import { answers, Client, type Fields, type Reply, runNode } from '../support/running-node.ts';
import { fresh, linkTo, makersOn } from './makers.ts';

const ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const GLOBAL_MANAGEMENT = '00000000-0000-0000-0000-000000000001';
const DAY = '24h0m0s';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newPolicy, newRole, newToken, newMethod, newRule } = makersOn(consul, ISSUER.config);

t.test('D1: ACLs disabled answers 401 on every handler', async (t) => {
  const off = new Client(await runNode(t, { 'acl-enabled': 'false' }), 'X-Consul-', '');
  const handlers = [
    'PUT /acl/bootstrap',
    'GET /acl/replication',
    'POST /acl/login',
    'POST /acl/logout',
    'POST /internal/acl/authorize',
    'GET /acl/policies',
    'PUT /acl/policy',
    'GET /acl/policy/x',
    'PUT /acl/policy/x',
    'DELETE /acl/policy/x',
    'GET /acl/policy/name/x',
    'GET /acl/roles',
    'PUT /acl/role',
    'GET /acl/role/x',
    'PUT /acl/role/x',
    'DELETE /acl/role/x',
    'GET /acl/role/name/x',
    'GET /acl/tokens',
    'PUT /acl/token',
    'GET /acl/token/self',
    'GET /acl/token/x',
    'PUT /acl/token/x',
    'PUT /acl/token/x/clone',
    'DELETE /acl/token/x',
    'GET /acl/auth-methods',
    'PUT /acl/auth-method',
    'GET /acl/auth-method/x',
    'PUT /acl/auth-method/x',
    'DELETE /acl/auth-method/x',
    'GET /acl/binding-rules',
    'PUT /acl/binding-rule',
    'GET /acl/binding-rule/x',
    'PUT /acl/binding-rule/x',
    'DELETE /acl/binding-rule/x',
    'GET /acl/templated-policies',
    'GET /acl/templated-policy/name/builtin/service',
    'POST /acl/templated-policy/preview/builtin/service',
  ];
  for (const handler of handlers) {
    const [method = '', path = ''] = handler.split(' ');
    const reply = await off.send(method, path);
    t.same([reply.status, reply.text], [401, 'ACL support disabled'], handler);
  }
});

t.test('bootstrap', async (t) => {
  const bare = async () =>
    new Client(await runNode(t, { 'acl-tokens-initial-management': '' }), 'X-Consul-', '');

  await t.test('B1: the first bootstrap answers the token with its secret as ID', async (t) => {
    const reply = await (await bare()).put('/acl/bootstrap');
    t.equal(reply.status, 200);
    const token = reply.json;
    t.equal(token.ID, token.SecretID);
    t.match(token.SecretID, /^[0-9a-f-]{36}$/);
    t.match(token, {
      Description: 'Bootstrap Token (Global Management)',
      Policies: [{ ID: GLOBAL_MANAGEMENT, Name: 'global-management' }],
      Local: false,
    });
  });

  await t.test('B2: a second bootstrap is refused and names the reset index', async (t) => {
    const client = await bare();
    await client.put('/acl/bootstrap');
    const text = /^Permission denied: ACL bootstrap no longer allowed \(reset index: \d+\)$/;
    answers(t, await client.put('/acl/bootstrap'), 403, text);
  });

  await t.test(
    'B3: the caller may choose the secret; the body is optional, and JSON',
    async (t) => {
      const client = await bare();
      answers(t, await client.put('/acl/bootstrap', 'x'), 400, /^Request decoding failed: /);
      const secret = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757a';
      const token = await client.made('PUT', '/acl/bootstrap', { BootstrapSecret: secret });
      t.equal(token.SecretID, secret);
      t.equal((await client.as(secret).get('/acl/tokens')).status, 200);
    },
  );

  await t.test('B3: a null secret is no secret', async (t) => {
    const token = await (await bare()).made('PUT', '/acl/bootstrap', { BootstrapSecret: null });
    t.match(token.SecretID, /^[0-9a-f-]{36}$/);
  });
});

t.test('policies', async (t) => {
  const RULES = 'acl = "read"';

  await t.test('P1: a create answers ID, equal indexes and Hash', async (t) => {
    const body = { Name: 'p1', Description: 'one', Rules: RULES, Datacenters: ['dc1'] };
    const policy = await consul.made('PUT', '/acl/policy', body);
    t.match(policy, { ...body, ID: /^.{36}$/, Hash: /^[A-Za-z0-9+/]{43}=$/ });
    t.ok(Number(policy.CreateIndex) > 0);
    t.equal(policy.CreateIndex, policy.ModifyIndex);
  });

  await t.test('P2: name and rules are enough, and there are no datacenters', async (t) => {
    const policy = await consul.made('PUT', '/acl/policy', { Name: 'p2', Rules: RULES });
    t.notOk('Datacenters' in policy);
  });

  await t.test('P3: letters, digits, - and _, up to 128', async (t) => {
    for (const Name of ['read-all_nodes-012', 'x'.repeat(128)]) {
      t.equal((await consul.put('/acl/policy', { Name })).status, 200, Name);
    }
  });

  await t.test('P4: another ID in the body than in the path', async (t) => {
    const { ID: id } = await newPolicy();
    const reply = await consul.put(`/acl/policy/${id}`, { ID, Name: 'p4' });
    answers(t, reply, 400, 'Policy ID in URL and payload do not match');
  });

  await t.test('P5: no id, no name', async (t) => {
    answers(t, await consul.get('/acl/policy/'), 400, 'Missing policy ID');
    answers(t, await consul.get('/acl/policy/name/'), 400, 'Missing policy Name');
  });

  await t.test('P6: an update without ID in the body may rename', async (t) => {
    const { ID: id } = await newPolicy();
    const renamed = await consul.made('PUT', `/acl/policy/${id}`, { Name: 'p6-renamed' });
    t.match(renamed, { ID: id, Name: 'p6-renamed' });
    t.ok(Number(renamed.ModifyIndex) > Number(renamed.CreateIndex));
  });

  await t.test('P7: an ID on create', async (t) => {
    const reply = await consul.put('/acl/policy', { ID, Name: 'p7' });
    answers(t, reply, 400, 'Cannot specify the ID when creating a new policy');
  });

  await t.test('P8: bodies that are no JSON', async (t) => {
    const labels = {
      policy: 'Policy',
      token: 'Token',
      role: 'Role',
      'binding-rule': 'BindingRule',
      'auth-method': 'AuthMethod',
    };
    for (const [path, label] of Object.entries(labels)) {
      const text = `${label} decoding failed: invalid character 'a' looking for beginning of value`;
      answers(t, await consul.put(`/acl/${path}`, 'a'), 400, text);
    }
  });

  await t.test('P9: a delete answers true; of what is gone false (decisions 2)', async (t) => {
    const { ID: id } = await newPolicy();
    answers(t, await consul.delete(`/acl/policy/${id}`), 200, 'true');
    answers(t, await consul.delete(`/acl/policy/${id}`), 200, 'false');
  });

  await t.test(
    'P10: the list shows built-ins and the hashes and indexes of the objects',
    async (t) => {
      const policy = await newPolicy({ Rules: RULES });
      const { list } = await consul.get('/acl/policies');
      const { Rules: _rules, ...stub } = policy;
      t.same(
        list.find((entry) => entry.ID === policy.ID),
        { ...stub, Datacenters: null },
      );
      const builtIns = list.filter(({ ID: id }) => String(id).startsWith('00000000-'));
      t.same(
        builtIns.map(({ Name }) => Name),
        ['builtin/global-read-only', 'global-management'],
      );
    },
  );

  await t.test('P11: reads by id and by name equal what was written', async (t) => {
    const { ID: id } = await newPolicy();
    const body = { Name: 'p11', Description: 'again', Rules: RULES, Datacenters: ['dc2', 'dc1'] };
    const written = await consul.made('PUT', `/acl/policy/${id}`, body);
    t.same((await consul.get(`/acl/policy/${id}`)).json, written);
    t.same((await consul.get('/acl/policy/name/p11')).json, written);
  });
});

t.test('roles', async (t) => {
  await t.test('R1: policy links and a node identity', async (t) => {
    const links = [linkTo(await newPolicy()), linkTo(await newPolicy())];
    const NodeIdentities = [{ NodeName: 'web-node', Datacenter: 'dc1' }];
    const role = await newRole({ Policies: links, NodeIdentities });
    t.match(role, { ID: /^.{36}$/, Policies: links, NodeIdentities, Hash: /.{44}/ });
    t.equal(role.CreateIndex, role.ModifyIndex);
  });

  await t.test('R2: a service identity alone', async (t) => {
    const role = await newRole({ ServiceIdentities: [{ ServiceName: 'web', Datacenters: ['d'] }] });
    t.match(role, { ServiceIdentities: [{ ServiceName: 'web', Datacenters: ['d'] }] });
    t.notOk('Policies' in role);
  });

  await t.test('R3: another ID in the body than in the path', async (t) => {
    const { ID: id } = await newRole();
    const reply = await consul.put(`/acl/role/${id}`, { ID, Name: 'r3' });
    answers(t, reply, 400, 'Role ID in URL and payload do not match');
  });

  await t.test('R4: an ID on create', async (t) => {
    const reply = await consul.put('/acl/role', { ID, Name: 'r4' });
    answers(t, reply, 400, 'Role ID in URL and payload do not match');
  });

  await t.test('R5: no id', async (t) => {
    answers(t, await consul.get('/acl/role/'), 400, 'Missing role ID');
  });

  await t.test('R6: an update replaces policies by identities', async (t) => {
    const role = await newRole({ Policies: [linkTo(await newPolicy())] });
    const { ID: id, Name } = role;
    const ServiceIdentities = [{ ServiceName: 'web' }];
    const updated = await consul.made('PUT', `/acl/role/${id}`, { Name, ServiceIdentities });
    t.notOk('Policies' in updated);
    t.match(updated, { ServiceIdentities, CreateIndex: role.CreateIndex });
  });

  await t.test('R7: the list holds full roles, filtered by policy, [] when none', async (t) => {
    const policy = await newPolicy();
    const unused = await newPolicy();
    const role = await newRole({ Policies: [linkTo(policy)] });
    const { list } = await consul.get('/acl/roles');
    t.same(
      list.find((entry) => entry.ID === role.ID),
      role,
    );
    t.same((await consul.get(`/acl/roles?policy=${policy.ID}`)).json, [role]);
    t.equal((await consul.get(`/acl/roles?policy=${unused.ID}`)).text, '[]');
  });
});

t.test('tokens', async (t) => {
  const policies = [await newPolicy(), await newPolicy()];
  const body = {
    Description: 'a token',
    Policies: policies.map(linkTo),
    NodeIdentities: [{ NodeName: 'node-x', Datacenter: 'dc1' }],
  };

  await t.test('T1: a create answers accessor and secret', async (t) => {
    const token = await newToken(body);
    t.match(token, { ...body, AccessorID: /^.{36}$/, SecretID: /^.{36}$/, Local: false });
  });

  await t.test('T2: a local token', async (t) => {
    t.equal((await newToken({ ...body, Local: true })).Local, true);
  });

  await t.test('T3: a read equals the answer of the create', async (t) => {
    const token = await newToken(body);
    t.same((await consul.get(`/acl/token/${token.AccessorID}`)).json, token);
  });

  await t.test('T4: expanded, a bare parameter, adds policies and synthetic ones', async (t) => {
    const token = await newToken(body);
    const { json } = await consul.get(`/acl/token/${token.AccessorID}?expanded`);
    t.match(json, token);
    const expanded = json.ExpandedPolicies as readonly Fields[];
    t.equal(expanded.length, 3);
    t.same(expanded.slice(0, 2).map(linkTo), body.Policies);
    t.match(expanded[2], { Name: /^synthetic-policy-/, Rules: /node "node-x"/, ModifyIndex: 0 });
  });

  await t.test('T5: self, by the own secret', async (t) => {
    const token = await newToken(body);
    t.same((await consul.as(token.SecretID).get('/acl/token/self')).json, token);
  });

  await t.test('T6: a clone has new ids, equal policies and the given description', async (t) => {
    const token = await newToken(body);
    const clone = (Description: string): Promise<Fields> =>
      consul.made('PUT', `/acl/token/${token.AccessorID}/clone`, { Description });
    const cloned = await clone('cloned');
    t.not(cloned.AccessorID, token.AccessorID);
    t.not(cloned.SecretID, token.SecretID);
    t.match(cloned, { Description: 'cloned', Policies: body.Policies });
    t.equal((await clone('')).Description, body.Description);
  });

  await t.test('T7: an update with AccessorID fills in the secret', async (t) => {
    const token = await newToken(body);
    const { AccessorID } = token;
    const update = { AccessorID, Description: 'updated', Policies: body.Policies };
    const updated = await consul.made('PUT', `/acl/token/${AccessorID}`, update);
    t.match(updated, { ...update, SecretID: token.SecretID });
    t.not(updated.Hash, token.Hash);
    t.ok(Number(updated.ModifyIndex) > Number(token.ModifyIndex));
  });

  await t.test('T8: an update without AccessorID', async (t) => {
    const { AccessorID } = await newToken(body);
    const updated = await consul.made('PUT', `/acl/token/${AccessorID}`, { Description: 'again' });
    t.match(updated, { AccessorID, Description: 'again' });
    t.notOk('Policies' in updated);
  });

  await t.test('T9: no id', async (t) => {
    answers(t, await consul.get('/acl/token/'), 400, 'Missing token AccessorID');
  });

  await t.test('T10: another AccessorID in the body than in the path', async (t) => {
    const { AccessorID } = await newToken();
    const reply = await consul.put(`/acl/token/${AccessorID}`, { AccessorID: ID });
    answers(t, reply, 400, 'Token Accessor ID in URL and payload do not match');
  });

  await t.test('T11: a delete answers true; of what is gone false (decisions 2)', async (t) => {
    const { AccessorID } = await newToken();
    answers(t, await consul.delete(`/acl/token/${AccessorID}`), 200, 'true');
    answers(t, await consul.delete(`/acl/token/${AccessorID}`), 200, 'false');
  });

  await t.test('T12: the list is the live tokens and the two built-in ones', async (t) => {
    const other = new Client(await runNode(t), 'X-Consul-');
    const kept = await other.made('PUT', '/acl/token', { Description: 'kept' });
    const gone = await other.made('PUT', '/acl/token', {});
    await other.delete(`/acl/token/${gone.AccessorID}`);
    const { list } = await other.get('/acl/tokens');
    const descriptions = list.map(({ Description }) => Description).sort();
    t.same(descriptions, ['Anonymous Token', 'Initial Management Token', kept.Description]);
  });

  await t.test('T13: of global-management there is the initial management token', async (t) => {
    const { list } = await consul.get(`/acl/tokens?policy=${GLOBAL_MANAGEMENT}`);
    t.same(
      list.map(({ Description }) => Description),
      ['Initial Management Token'],
    );
  });

  await t.test('T14: ids that the caller chose are kept, letter case included', async (t) => {
    const [one, two] = ['DEADBEEF-0000-4000-8000-00000000000A', ID];
    t.match(await newToken({ AccessorID: one }), { AccessorID: one, SecretID: /^.{36}$/ });
    t.match(await newToken({ SecretID: two }), { AccessorID: /^.{36}$/, SecretID: two });
    const both = {
      AccessorID: 'deadbeef-0000-4000-8000-00000000000b',
      SecretID: 'deadbeef-0000-4000-8000-00000000000c',
    };
    t.match(await newToken(both), both);
  });

  await t.test('T15: no id is used twice, neither as accessor nor as secret', async (t) => {
    const { AccessorID, SecretID } = await newToken();
    const tries: readonly [Fields, string][] = [
      [{ AccessorID }, 'AccessorID'],
      [{ SecretID: AccessorID }, 'SecretID'],
      [{ SecretID }, 'SecretID'],
      [{ AccessorID: SecretID }, 'AccessorID'],
      [{ AccessorID: String(AccessorID).toUpperCase() }, 'AccessorID'],
    ];
    for (const [draft, field] of tries) {
      const reply = await consul.put('/acl/token', draft);
      answers(t, reply, 500, `Invalid Token: ${field} is already in use`);
    }
  });

  await t.test('T16: reserved ids', async (t) => {
    const prefix = '00000000-0000-0000-0000-0000000000';
    for (const field of ['AccessorID', 'SecretID']) {
      const reply = await consul.put('/acl/token', { [field]: `${prefix}aa` });
      const text = `Invalid Token: ${field} - UUIDs with the prefix "${prefix}" are reserved`;
      answers(t, reply, 500, text);
    }
  });

  await t.test('T17: capital letters in identities', async (t) => {
    const drafts = [
      { NodeIdentities: [{ NodeName: 'FOO', Datacenter: 'dc1' }] },
      { ServiceIdentities: [{ ServiceName: 'FOO' }] },
    ];
    for (const draft of drafts) {
      answers(t, await consul.put('/acl/token', draft), 500, /Only lowercase alphanumeric/);
    }
  });
});

const JWT_CONFIG = ISSUER.config;
const CLAIMS = {
  first_name: 'jeff2',
  org: { primary: 'engineering' },
  'https://groups.test/groups': ['foo', 'bar'],
};

t.test('auth methods', async (t) => {
  await t.test('M1: a create answers with Config', async (t) => {
    const body = { Name: 'm1', Type: 'jwt', Description: 'one', Config: JWT_CONFIG };
    t.match(await consul.made('PUT', '/acl/auth-method', body), body);
  });

  await t.test('M1: Config may hold any JSON value of a known key (decisions 3)', async (t) => {
    const Config = { ...JWT_CONFIG, ClockSkewLeeway: '5', BoundAudiences: ['a', 'b'] };
    t.same((await newMethod({ Config })).Config, Config);
    const Name = 'm1-unknown';
    const body = { Name, Type: 'jwt', Config: { ...JWT_CONFIG, Bogus: [1] } };
    const text = /^Invalid Auth Method: error decoding config: .*Bogus/;
    answers(t, await consul.put('/acl/auth-method', body), 500, text);
  });

  await t.test(
    'M: what newer command lines send unasked is taken, another wish is not',
    async (t) => {
      const body = { Name: 'm-format', Type: 'jwt', Config: JWT_CONFIG };
      const asked = (TokenNameFormat: string) => ({ ...body, TokenNameFormat });
      const made = await consul.made(
        'PUT',
        '/acl/auth-method',
        asked('${auth_method_type}-${auth_method_name}'),
      );
      t.notOk('TokenNameFormat' in made);
      for (const path of ['/acl/auth-method', '/acl/auth-method/m-format']) {
        t.equal((await consul.put(path, asked(''))).status, 200);
        const text = /^Invalid Auth Method: TokenNameFormat cannot be chosen/;
        answers(t, await consul.put(path, asked('ci-${value.name}')), 500, text);
      }
    },
  );

  await t.test('M2: global locality, and a TTL in nanoseconds', async (t) => {
    const body = { TokenLocality: 'global', MaxTokenTTL: 500_000_000_000 };
    t.match(await newMethod(body), { TokenLocality: 'global', MaxTokenTTL: '8m20s' });
  });

  await t.test('M3: an unknown datacenter', async (t) => {
    const body = { Name: 'm3', Type: 'jwt', Config: JWT_CONFIG };
    const reply = await consul.put('/acl/auth-method?dc=remote', body);
    answers(t, reply, 500, 'No path to datacenter');
    t.equal((await consul.put('/acl/auth-method?dc=dc1', body)).status, 200);
  });

  await t.test('M4: another Name in the body than in the path', async (t) => {
    const body = { Name: 'test', Type: 'jwt', Config: JWT_CONFIG };
    const reply = await consul.put('/acl/auth-method/not-test', body);
    answers(t, reply, 400, 'AuthMethod Name in URL and payload do not match');
  });

  await t.test('M5: an update, on either path (decisions 3: an upsert)', async (t) => {
    const first = await newMethod();
    const { Name, CreateIndex } = first;
    let before = first;
    for (const path of [`/acl/auth-method/${Name}`, '/acl/auth-method']) {
      const body = { Name, Description: path, Config: JWT_CONFIG };
      const after = await consul.made('PUT', path, body);
      t.match(after, { Type: 'jwt', Description: path, CreateIndex });
      t.ok(Number(after.ModifyIndex) > Number(before.ModifyIndex));
      before = after;
    }
  });

  await t.test('M6: the list shows TTL and locality, and never Config', async (t) => {
    const body = { Description: 'd', MaxTokenTTL: '5m', TokenLocality: 'global' };
    const { Config: _config, ...entry } = await newMethod(body);
    const { list } = await consul.get('/acl/auth-methods');
    t.same(
      list.find(({ Name }) => Name === entry.Name),
      entry,
    );
    t.notOk(list.some((method) => 'Config' in method));
  });

  await t.test('M7: read and delete; decisions 2: false when there is none', async (t) => {
    const method = await newMethod();
    const path = `/acl/auth-method/${method.Name}`;
    t.same((await consul.get(path)).json, method);
    answers(t, await consul.delete(path), 200, 'true');
    const text = 'Requested auth method does not exist: ACL not found';
    answers(t, await consul.get(path), 404, text);
    answers(t, await consul.delete(path), 200, 'false');
  });
});

t.test('binding rules', async (t) => {
  const { Name: AuthMethod } = await newMethod();
  const full = {
    AuthMethod,
    Description: 'd',
    Selector: 'value.name == jeff2',
    BindType: 'role',
    BindName: 'jeff',
  };

  await t.test('L1: a create answers an ID', async (t) => {
    t.match(await newRule(full), { ...full, ID: /^.{36}$/ });
  });

  await t.test('L2: an update with a template in BindName', async (t) => {
    const { ID: id } = await newRule(full);
    const body = { ...full, BindName: '${value.name}' };
    t.match(await consul.made('PUT', `/acl/binding-rule/${id}`, body), body);
  });

  await t.test('L3: an ID on create', async (t) => {
    const reply = await consul.put('/acl/binding-rule', { ...full, ID });
    answers(t, reply, 400, 'BindingRule ID in URL and payload do not match');
  });

  await t.test('L4: no id', async (t) => {
    answers(t, await consul.get('/acl/binding-rule/'), 400, 'Missing binding rule ID');
  });

  await t.test('L5: list by method, read, delete', async (t) => {
    const { Name: other } = await newMethod();
    const list = `/acl/binding-rules?authmethod=${other}`;
    t.equal((await consul.get(list)).text, '[]');
    const rule = await newRule({ ...full, AuthMethod: other });
    t.same((await consul.get(list)).json, [rule]);
    t.same((await consul.get(`/acl/binding-rule/${rule.ID}`)).json, rule);
    answers(t, await consul.delete(`/acl/binding-rule/${rule.ID}`), 200, 'true');
    t.equal((await consul.get(list)).text, '[]');
    const text = 'Requested binding rule does not exist: ACL not found';
    answers(t, await consul.get(`/acl/binding-rule/${rule.ID}`), 404, text);
  });
});

t.test('logins', async (t) => {
  const anybody = consul.as('');
  const { Name: AuthMethod } = await newMethod();
  await newRule({ AuthMethod, BindName: 'demo' });
  await newRule({ AuthMethod, BindType: 'role', BindName: 'no-such-role' });
  const BearerToken = await ISSUER.sign(CLAIMS);
  const login = (body: Fields = {}): Promise<Reply> =>
    anybody.post('/acl/login', { AuthMethod, BearerToken, ...body });

  const isGranted = (
    t: Pick<typeof import('tap').default, 'equal' | 'match' | 'same'>,
    { status, json }: Reply,
  ): void => {
    t.equal(status, 200);
    t.match(json, {
      Description: 'token created via login: {"foo":"bar"}',
      Local: true,
      ServiceIdentities: [{ ServiceName: 'demo' }],
    });
    t.same(json.Policies, undefined);
    t.same(json.Roles, undefined);
  };

  await t.test('G1: a login gives what the rules bind; a missing role is skipped', async (t) => {
    const reply = await login({ Meta: { foo: 'bar' } });
    isGranted(t, reply);
    t.equal(reply.json.AuthMethod, AuthMethod);
    t.equal((await login()).json.Description, 'token created via login');
  });

  const TLS = selfSigned();
  await t.test('G1: the same through a cluster that reviews the bearer', async (t) => {
    const cluster = await startLoopback(t, TLS);
    const user = { username: 'system:serviceaccount:default:demo', uid: 'u' };
    cluster.reply = ({ path }) =>
      path.startsWith('/apis/')
        ? { status: 201, body: { status: { authenticated: true, user } } }
        : { body: {} };
    const bearer = await ISSUER.sign({});
    const Config = { Host: cluster.url, CACert: TLS.cert, ServiceAccountJWT: bearer };
    const { Name } = await newMethod({ Type: 'kubernetes', Config });
    await newRule({
      AuthMethod: Name,
      Selector: 'serviceaccount.namespace==default',
      BindName: '${serviceaccount.name}',
    });
    await newRule({ AuthMethod: Name, BindType: 'role', BindName: 'no-such-role' });
    isGranted(t, await login({ AuthMethod: Name, BearerToken: bearer, Meta: { foo: 'bar' } }));
  });

  await t.test('G2: the list by method', async (t) => {
    const { Name: busy } = await newMethod();
    const { Name: idle } = await newMethod();
    await newRule({ AuthMethod: busy });
    for (let count = 0; count < 2; count += 1) await login({ AuthMethod: busy });
    t.equal((await consul.get(`/acl/tokens?authmethod=${idle}`)).text, '[]');
    t.equal((await consul.get(`/acl/tokens?authmethod=${busy}`)).list.length, 2);
  });

  await t.test('G3: a logout ends the token', async (t) => {
    const { SecretID, AccessorID } = (await login()).json;
    answers(t, await consul.as(SecretID).post('/acl/logout'), 200, 'true');
    // Compatibility 3.4: reads of a missing token are 403, for these clients.
    answers(t, await consul.get(`/acl/token/${AccessorID}`), 403, /ACL not found/);
    answers(t, await consul.as(SecretID).get('/acl/token/self'), 403, /ACL not found/);
  });

  await t.test('G4: logouts without a token, and of tokens that no login made', async (t) => {
    answers(t, await anybody.post('/acl/logout'), 401, 'Supplied token does not exist');
    const text = "Permission denied: token wasn't created via login";
    answers(t, await consul.post('/acl/logout'), 403, text);
    answers(t, await consul.as(ID.replace('7', '8')).post('/acl/logout'), 403, 'ACL not found');
  });

  await t.test('J1: static keys, JWKS and discovery; an invalid bearer', async (t) => {
    const servers = [await startLoopback(t), await startLoopback(t, TLS)];
    const { JWTValidationPubKeys, BoundIssuer, ...mappings } = JWT_CONFIG;
    const configs: Fields[] = [{ ...mappings, JWTValidationPubKeys, BoundIssuer }];
    for (const server of servers) {
      server.reply = ({ path }) =>
        path === '/keys'
          ? { body: { keys: [ISSUER.jwk] } }
          : {
              body: {
                issuer: server.url,
                jwks_uri: `${server.url}/keys`,
                authorization_endpoint: `${server.url}/authorize`,
                token_endpoint: `${server.url}/token`,
                response_types_supported: ['code'],
                subject_types_supported: ['public'],
                id_token_signing_alg_values_supported: ['ES256'],
              },
            };
      const isTls = server.url.startsWith('https:');
      configs.push(
        { ...mappings, JWKSURL: `${server.url}/keys`, ...(isTls && { JWKSCACert: TLS.cert }) },
        {
          ...mappings,
          OIDCDiscoveryURL: server.url,
          JWTSupportedAlgs: ['ES256'],
          ...(isTls && { OIDCDiscoveryCACert: TLS.cert }),
        },
      );
    }
    const stranger = await jwtIssuer();
    for (const Config of configs) {
      const what = Object.keys(Config).slice(3).join();
      const { Name } = await newMethod({ Config });
      await newRule({ AuthMethod: Name });
      const iss = Config.OIDCDiscoveryURL;
      const claims = { ...CLAIMS, ...(iss === undefined ? {} : { iss }) };
      const good = await login({ AuthMethod: Name, BearerToken: await ISSUER.sign(claims) });
      t.equal(good.status, 200, `${what}: ${good.text}`);
      const forged = await login({ AuthMethod: Name, BearerToken: await stranger.sign(claims) });
      t.equal(forged.status, 500, what);
      t.equal((await login({ AuthMethod: Name, BearerToken: 'invalid' })).status, 500, what);
    }
  });

  await t.test('J2: a good bearer, and no rule', async (t) => {
    const { Name } = await newMethod();
    answers(t, await login({ AuthMethod: Name }), 403, 'Permission denied');
  });

  await t.test('J3: selectors over mapped claims, and names made of them', async (t) => {
    const { Name } = await newMethod();
    await newRule({
      AuthMethod: Name,
      Selector: 'value.name == jeff2 and value.primary_org == engineering and foo in list.groups',
      BindName: 'test--${value.name}--${value.primary_org}',
    });
    const { status, json } = await login({ AuthMethod: Name });
    t.equal(status, 200);
    t.match(json, { ServiceIdentities: [{ ServiceName: 'test--jeff2--engineering' }] });
    const other = await ISSUER.sign({ ...CLAIMS, 'https://groups.test/groups': ['bar'] });
    answers(t, await login({ AuthMethod: Name, BearerToken: other }), 403, 'Permission denied');
  });
});

t.test('authorize', async (t) => {
  const ask = (client: Client, body: unknown): Promise<Reply> =>
    client.post('/internal/acl/authorize', body);
  const question = (text: string): Fields => {
    const [Resource, Access, Segment = 'foo'] = text.split(' ');
    const isFlat = ['acl', 'keyring', 'mesh', 'operator', 'peering'].includes(Resource ?? '');
    return { Resource, Access, ...(isFlat ? {} : { Segment }) };
  };
  const RESOURCES = [
    ...['acl', 'agent', 'event', 'intention', 'key', 'keyring', 'mesh', 'node'],
    ...['operator', 'peering', 'query', 'service', 'session'],
  ];
  const everything = RESOURCES.flatMap((name) => [`${name} read`, `${name} write`]);

  await t.test('A1: management may do everything; questions are echoed', async (t) => {
    const questions = [...everything, 'key list', 'key write-prefix'].map(question);
    const { status, list } = await ask(consul, questions);
    t.equal(status, 200);
    t.same(
      list,
      questions.map((item) => ({ ...item, Allow: true })),
    );
  });

  await t.test('A2: what mixed rules allow', async (t) => {
    const rules = `acl = "read" operator = "write" service_prefix "" { policy = "read" }
      node_prefix "" { policy = "write" } key_prefix "/foo" { policy = "write" }`;
    const { SecretID } = await newToken({ Policies: [linkTo(await newPolicy({ Rules: rules }))] });
    const { list } = await ask(consul.as(SecretID), everything.map(question));
    const allowed = everything.filter((_, place) => list[place]?.Allow);
    t.same(allowed, [
      ...['acl read', 'intention read', 'mesh read', 'mesh write', 'node read', 'node write'],
      ...['operator read', 'operator write', 'peering read', 'peering write', 'service read'],
    ]);
  });

  await t.test('A3: more than 64 questions', async (t) => {
    const questions = (count: number) => Array.from({ length: count }, () => question('acl read'));
    const text = 'Refusing to process more than 64 authorizations at once';
    answers(t, await ask(consul, questions(100)), 400, text);
    t.equal((await ask(consul, questions(64))).list.length, 64);
  });

  await t.test('A4: an object instead of a list', async (t) => {
    answers(t, await ask(consul, question('acl read')), 400, /^Failed to decode request body: /);
  });

  await t.test('A5: an unknown secret', async (t) => {
    const unknown = consul.as('d908c0be-22e1-433e-84db-8718e1a019de');
    answers(t, await ask(unknown, [question('acl read')]), 403, 'ACL not found');
  });

  await t.test('A6: a local token in its own datacenter, by name', async (t) => {
    const { SecretID } = await newToken({ Local: true });
    const local = consul.as(SecretID);
    const reply = await local.post('/internal/acl/authorize?dc=dc1', [question('acl read')]);
    t.same([reply.status, reply.list[0]?.Allow], [200, false]);
    t.equal((await local.get('/acl/token/self?dc=dc1')).status, 200);
  });
});

t.test('S1: the state of replication needs no token', async (t) => {
  const reply = await consul.as('').get('/acl/replication');
  t.equal(reply.status, 200);
  t.equal(reply.json.Enabled, false);
});

t.test('texts: the words that clients see, all with 500', async (t) => {
  const { Name: taken } = await newPolicy();
  const role = await consul.made('PUT', '/acl/role', { Name: fresh('role') });
  const { Name: method } = await newMethod();
  const { Name: otherMethod } = await newMethod();
  const rule = await newRule({ AuthMethod: method });
  await newRule({ AuthMethod: method });
  const bearer = await ISSUER.sign(CLAIMS);
  const login = await consul.made('POST', '/acl/login', {
    AuthMethod: method,
    BearerToken: bearer,
  });
  const self = await newToken({ Policies: [{ ID: GLOBAL_MANAGEMENT }] });
  const letters = "Only alphanumeric characters, '-' and '_' are allowed";
  const lowercase = "Only lowercase alphanumeric characters, '-' and '_' are allowed";
  const inAnHour = new Date(Date.now() + 3_600_000).toISOString();
  const rules = { AuthMethod: method, BindType: 'service', BindName: 'web' };
  const jwt = { Type: 'jwt', Config: JWT_CONFIG };
  const cases: readonly [string, Fields, string | RegExp][] = [
    ['policy', {}, 'Invalid Policy: no Name is set'],
    ['policy', { Name: 'a b' }, `Invalid Policy: invalid Name. ${letters}`],
    ['policy', { Name: 'a/b' }, `Invalid Policy: invalid Name. ${letters}`],
    ['policy', { Name: taken }, `Invalid Policy: A Policy with Name "${taken}" already exists`],
    [`policy/${ID}`, { Name: 'x' }, `cannot find policy ${ID}`],
    [
      `policy/${GLOBAL_MANAGEMENT}`,
      { Name: 'global-management', Rules: 'acl = "read"' },
      'Changing the Rules for the builtin global-management policy is not permitted',
    ],
    ['role', {}, 'Invalid Role: no Name is set'],
    ['role', { Name: 'a b' }, `Invalid Role: invalid Name. ${letters}`],
    ['role', { Name: role.Name }, `Invalid Role: A Role with Name "${role.Name}" already exists`],
    ['token', { Policies: [{ Name: 'none' }] }, 'No such ACL policy with name "none"'],
    [
      'token',
      { ServiceIdentities: [{ ServiceName: 'A' }] },
      `Service identity "A" has an invalid name. ${lowercase}`,
    ],
    [
      'role',
      { Name: 'n', NodeIdentities: [{ NodeName: 'n' }] },
      'Node identity is missing the datacenter field on this role',
    ],
    [`token/${login.AccessorID}/clone`, {}, 'Cannot clone a token created from an auth method'],
    ['token', { AuthMethod: method }, 'AuthMethod field is disallowed outside of login'],
    [
      'token',
      { ExpirationTTL: '1h', ExpirationTime: inAnHour },
      'Token Expiration TTL and Expiration Time cannot both be set',
    ],
    [
      'auth-method',
      { ...jwt, Name: 'n', MaxTokenTTL: '24h0m1s' },
      `MaxTokenTTL 24h0m1s cannot be more than ${DAY}`,
    ],
    [
      'auth-method',
      { ...jwt, Name: 'n', MaxTokenTTL: '59s' },
      'MaxTokenTTL 59s cannot be less than 1m0s',
    ],
    [
      'auth-method',
      { ...jwt, Name: method, Type: 'kubernetes' },
      'the Type field of an Auth Method is immutable',
    ],
    [
      'auth-method',
      { ...jwt, Name: 'n', Type: 'ldap' },
      'Invalid Auth Method: Type should be one of: [aws-iam jwt kubernetes oidc]',
    ],
    [
      `binding-rule/${rule.ID}`,
      { ...rules, AuthMethod: otherMethod },
      'the AuthMethod field of an Binding Rule is immutable',
    ],
    ['binding-rule', { ...rules, AuthMethod: 'none' }, 'cannot find auth method with name "none"'],
    [
      'binding-rule',
      { ...rules, Selector: 'value.name ==' },
      /^invalid Binding Rule: Selector is invalid: /,
    ],
    ['binding-rule', { ...rules, BindType: 'x' }, /: invalid Binding Rule: unknown BindType "x"$/],
    ['binding-rule', { ...rules, BindName: '${' }, /^Invalid Binding Rule: invalid BindName/],
  ];
  for (const [path, body, text] of cases) {
    answers(t, await consul.put(`/acl/${path}`, body), 500, text);
  }
  const deletes: readonly [Client, string, string][] = [
    [
      consul,
      `policy/${GLOBAL_MANAGEMENT}`,
      'Delete operation not permitted on the builtin global-management policy',
    ],
    [consul, 'token/x', 'Accessor ID is missing or an invalid UUID'],
    [
      consul,
      'token/00000000-0000-0000-0000-000000000002',
      'Delete operation not permitted on the anonymous token',
    ],
    [
      consul.as(self.SecretID),
      `token/${self.AccessorID}`,
      "Deletion of the request's authorization token is not permitted",
    ],
  ];
  for (const [client, path, text] of deletes) {
    answers(t, await client.delete(`/acl/${path}`), 500, text);
  }
});
