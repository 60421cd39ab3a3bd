// decisions.md on namespaces, over HTTP against the real node: their endpoints, what is unique in one, where links and
// rules reach, their defaults, and where logins are.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: that is how namespace rules name attributes.

import t from 'tap';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import {
  answers,
  Client,
  type Fields,
  type Reply,
  runNode,
} from '../support/running/running-node.ts';
import { fresh, makersOn, mayRead } from './makers.ts';

const node = await runNode(t);
const root = new Client(node, 'X-Service-');
const ISSUER = await jwtIssuer();
const { callerWith, make, newNamespace, newPolicy, newRole, newToken, newRule } = makersOn(
  root,
  ISSUER.config,
);

t.test('namespaces: their own endpoints', async (t) => {
  const policy = await newPolicy();
  const role = await newRole();
  const body = {
    Name: 'team-a',
    Description: 'd',
    ACLs: {
      PolicyDefaults: [{ ID: policy.ID, Name: policy.Name }],
      RoleDefaults: [{ ID: role.ID, Name: role.Name }],
    },
    Meta: { owner: 'us' },
  };
  const made = await root.made('PUT', '/namespace', body);
  const names = 'Name Description ACLs Meta CreateIndex ModifyIndex';
  t.same(Object.keys(made), names.split(' '));
  t.match(made, body);
  t.same((await root.get('/namespace/team-a')).json, made);
  t.equal((await root.put('/namespace', body)).status, 409);
  const updated = await root.made('PUT', '/namespace/team-a', { Description: 'less' });
  t.same(Object.keys(updated), ['Name', 'Description', 'ACLs', 'CreateIndex', 'ModifyIndex']);
  t.same(updated.ACLs, {});
  t.equal(updated.CreateIndex, made.CreateIndex);
  const { list } = await root.get('/namespaces');
  const listed = list.map(({ Name }) => String(Name));
  t.ok(listed.includes('default') && listed.includes('team-a'));
  for (const Name of ['', 'Team', 'a_b', '-a', 'x'.repeat(64)]) {
    t.equal((await root.put('/namespace', { Name })).status, 400, Name);
  }
  answers(t, await root.put('/namespace/team-a', { Name: 'b' }), 400, /do not match$/);
  await newToken({ Namespace: 'team-a' });
  answers(t, await root.delete('/namespace/team-a'), 400, /^Namespace "team-a" is not empty/);
  answers(t, await root.delete('/namespace/default'), 400, /not permitted/);
  answers(t, await root.delete('/namespace/none'), 200, 'false');
  answers(t, await root.delete(`/namespace/${await newNamespace()}`), 200, 'true');
});

t.test('namespaces: who may see and change them', async (t) => {
  const [mine, other] = [await newNamespace(), await newNamespace()];
  const cases: readonly [rules: string, mayRead: boolean, mayWrite: boolean, listed: number][] = [
    ['operator = "write"', true, true, 3],
    ['operator = "read"', true, false, 3],
    [`namespace "${mine}" { policy = "write" }`, true, true, 1],
    [`namespace_prefix "ns-" { policy = "read" }`, true, false, 2],
    [`namespace "${other}" { policy = "write" }`, false, false, 1],
    ['acl = "write"', false, false, 0],
  ];
  for (const [rules, isReadable, isWritable, count] of cases) {
    const caller = await callerWith(rules);
    const read = await caller.get(`/namespace/${mine}`);
    t.equal(read.status, isReadable ? 200 : 403, rules);
    t.equal((await caller.put(`/namespace/${mine}`, {})).status, isWritable ? 200 : 403, rules);
    const list = await caller.get('/namespaces');
    if (count === 0) t.equal(list.status, 403, rules);
    else t.ok(list.list.length >= count, rules);
    t.equal(list.text.includes(`"${mine}"`), isReadable, rules);
  }
});

t.test('namespaces: names are unique within one, ids everywhere', async (t) => {
  const [one, two] = [await newNamespace(), await newNamespace()];
  const jwt = { Type: 'jwt', Config: ISSUER.config };
  for (const [path, body] of [
    ['policy', {}],
    ['role', {}],
    ['auth-method', jwt],
  ] as const) {
    const Name = fresh('everywhere');
    for (const Namespace of ['default', one, two]) {
      const { status } = await root.put(`/acl/${path}`, { ...body, Name, Namespace });
      t.equal(status, 200, `${path} in ${Namespace}`);
    }
    if (path === 'auth-method') continue;
    t.equal((await root.put(`/acl/${path}`, { Name, Namespace: one })).status, 409);
  }
  const { AccessorID } = await newToken({ Namespace: one });
  t.equal((await root.put('/acl/token', { AccessorID, Namespace: two })).status, 409);
  answers(
    t,
    await root.put('/acl/policy', { Name: 'x', Namespace: 'none' }),
    400,
    'Namespace "none" does not exist',
  );
});

t.test('namespaces: a link resolves in the own one, then in default', async (t) => {
  const [mine, other] = [await newNamespace(), await newNamespace()];
  const Name = fresh('linked');
  const inDefault = await newPolicy({ Name });
  const link = { Policies: [{ Name }], Namespace: mine };
  t.match(await newToken(link), { Policies: [{ ID: inDefault.ID }] });
  const inMine = await newPolicy({ Name, Namespace: mine });
  t.match(await newToken(link), { Policies: [{ ID: inMine.ID }] });
  t.match(await newToken({ Policies: [{ Name }] }), { Policies: [{ ID: inDefault.ID }] });
  const elsewhere = await newPolicy({ Namespace: other });
  for (const Policies of [[{ Name: elsewhere.Name }], [{ ID: elsewhere.ID }]]) {
    answers(t, await root.put('/acl/token', { Policies, Namespace: mine }), 400, /^No such ACL/);
  }
});

t.test('namespaces: ns=* shows what the caller may read', async (t) => {
  const [mine, other] = [await newNamespace(), await newNamespace()];
  for (const Namespace of [mine, other]) await newPolicy({ Namespace });
  const spaces = async (caller: Client): Promise<Set<unknown>> =>
    new Set((await caller.get('/acl/policies?ns=*')).list.map(({ Namespace }) => Namespace));
  const one = await callerWith(`namespace "${mine}" { acl = "read" }`);
  t.same([...(await spaces(one))], [mine]);
  t.ok((await spaces(root)).has(other));
  const none = await (await callerWith('')).get('/acl/policies?ns=*');
  t.equal(none.status, 403);
  const inside = await callerWith('acl = "write"', mine);
  t.equal((await inside.get('/acl/tokens')).list[0]?.Namespace, mine);
  t.equal((await inside.get('/acl/tokens?ns=default')).status, 403);
});

t.test('namespaces: what rules reach', async (t) => {
  const [mine, other] = [await newNamespace(), await newNamespace()];
  const blocks = await callerWith(`
    namespace "${mine}" { acl = "read" node "n" { policy = "read" } }
    namespace_prefix "${other}" { service_prefix "" { policy = "read" } }`);
  const cases: readonly [Fields, boolean][] = [
    [{ Resource: 'acl', Namespace: mine }, true],
    [{ Resource: 'acl', Namespace: other }, false],
    [{ Resource: 'acl' }, false],
    [{ Resource: 'node', Segment: 'n', Namespace: mine }, true],
    [{ Resource: 'node', Segment: 'n' }, false],
    [{ Resource: 'service', Segment: 's', Namespace: other }, true],
  ];
  for (const [item, wanted] of cases) t.equal(await mayRead(blocks, item), wanted);
  const inside = await callerWith('key_prefix "" { policy = "read" }', mine);
  const key = { Resource: 'key', Segment: 'k' };
  t.equal(await mayRead(inside, key), true, 'its own namespace is meant');
  t.equal(await mayRead(inside, { ...key, Namespace: other }), false);
  t.equal(await mayRead(inside, { ...key, Namespace: 'default' }), false);
  for (const Rules of [
    ...['operator = "read"', 'keyring = "read"', 'event "e" { policy = "read" }'],
    ...['query_prefix "" { policy = "read" }', 'namespace "x" { acl = "read" }'],
  ]) {
    const draft = { Name: 'x', Rules };
    t.equal((await root.put(`/acl/policy?ns=${mine}`, draft)).status, 400, Rules);
    t.equal((await root.put('/acl/policy', { ...draft, Name: fresh('ok') })).status, 200, Rules);
  }
});

t.test('namespaces: defaults apply where the own policies say nothing', async (t) => {
  const rules = (policy: string): string => `key "k" { policy = "${policy}" }`;
  const byDefault = await newPolicy({ Rules: `${rules('deny')} node "n" { policy = "read" }` });
  const mine = await newNamespace();
  const allowing = await callerWith(rules('read'), mine);
  const silent = await callerWith('', mine);
  const roleRules = await newPolicy({ Rules: 'session "s" { policy = "read" }', Namespace: mine });
  const role = await make('role', {
    Name: 'by-default',
    Namespace: mine,
    Policies: [{ ID: roleRules.ID }],
  });
  const granting = await newPolicy({
    Rules: `namespace "${mine}" { ${rules('deny')} node "n" { policy = "read" } }`,
  });
  const ACLs = {
    PolicyDefaults: [{ ID: granting.ID }, { ID: byDefault.ID }],
    RoleDefaults: [{ ID: role.ID }],
  };
  await root.made('PUT', `/namespace/${mine}`, { ACLs });
  const key = { Resource: 'key', Segment: 'k' };
  const nodeN = { Resource: 'node', Segment: 'n' };
  t.equal(await mayRead(allowing, key), true, 'own rule before the default one');
  t.equal(await mayRead(allowing, nodeN), true);
  t.equal(await mayRead(silent, key), false);
  t.equal(await mayRead(silent, nodeN), true);
  t.equal(await mayRead(silent, { Resource: 'session', Segment: 's' }), true, 'through the role');
  const { json } = await silent.get('/acl/token/self');
  const expanded = (await root.get(`/acl/token/${json.AccessorID}?expanded&ns=${mine}`)).json;
  t.match(expanded, {
    NamespaceDefaultPolicyIDs: [granting.ID, byDefault.ID],
    NamespaceDefaultRoleIDs: [role.ID],
    NamespaceDefaultPolicies: [{ ID: granting.ID, Name: granting.Name }, { ID: byDefault.ID }],
    NamespaceDefaultRoles: [{ ID: role.ID, Name: 'by-default' }],
  });
});

t.test('namespaces: NamespaceRules decide where a login is', async (t) => {
  const [engineering, sales] = [await newNamespace(), await newNamespace()];
  const NamespaceRules = [
    { Selector: 'value.primary_org == nobody', BindNamespace: 'default' },
    { Selector: 'value.primary_org != sales and vip in list.groups', BindNamespace: engineering },
    { Selector: '', BindNamespace: '${value.primary_org}' },
  ];
  const body = { Type: 'jwt', Config: ISSUER.config, NamespaceRules };
  const { Name: AuthMethod } = await make('auth-method', { ...body, Name: fresh('m') });
  await newRule({ AuthMethod });
  const login = async (primary: string, groups: readonly string[] = []): Promise<Reply> => {
    const claims = { org: { primary }, 'https://groups.test/groups': groups };
    return root.post('/acl/login', { AuthMethod, BearerToken: await ISSUER.sign(claims) });
  };
  t.equal((await login('engineers', ['vip'])).json.Namespace, engineering);
  t.equal((await login(sales)).json.Namespace, sales, 'made from the identity');
  t.equal((await login('nobody', ['vip'])).json.Namespace, 'default', 'the first one wins');
  const missing = await login('no-such-namespace');
  answers(t, missing, 403, /namespace "no-such-namespace" does not exist/);
  const elsewhere = { ...body, Name: 'x', Namespace: sales };
  answers(t, await root.put('/acl/auth-method', elsewhere), 400, /can only be used in the default/);

  const inside = { ...body, NamespaceRules: [], Name: fresh('m'), Namespace: sales };
  const own = await make('auth-method', inside);
  const rule = { AuthMethod: own.Name, BindType: 'service', BindName: 'web', Namespace: sales };
  await make('binding-rule', rule);
  const bearer = { AuthMethod: own.Name, BearerToken: await ISSUER.sign() };
  const token = await root.made('POST', '/acl/login', { ...bearer, Namespace: sales });
  t.match(token, { Namespace: sales, AuthMethodNamespace: sales });
  t.equal((await root.post('/acl/login', bearer)).status, 403, 'no such method in default');
});
