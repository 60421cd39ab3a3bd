// What deployed clients send and must get back: the rows of the table "request by request" of clients.md,
// under their own numbers, over HTTP against the real node. Here: bootstrap, policies, roles. Where
// decisions.md answers otherwise, the test's name says so.

import t from 'tap';
import { jwtIssuer } from '../../support/running/jwt-issuer.ts';
import { answers, Client, runNode } from '../../support/running/running-node.ts';
import { linkTo, makersOn } from '../makers.ts';
import { GLOBAL_MANAGEMENT, ID } from './values.ts';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newPolicy, newRole } = makersOn(consul, ISSUER.config);

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

t.test('S1: the state of replication needs no token', async (t) => {
  const reply = await consul.as('').get('/acl/replication');
  t.equal(reply.status, 200);
  t.equal(reply.json.Enabled, false);
});
