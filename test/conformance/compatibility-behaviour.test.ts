// compatibility.md, sections 6, 7.6 and 9, over HTTP against the real node: what calls do and not which there are:
// hashes, clones, hidden secrets, filters, routing, cascades, indexes, with the statuses of both dialects.

import { blake2b } from '@noble/hashes/blake2.js';
import t from 'tap';
import { jwtIssuer } from '../support/running/jwt-issuer.ts';
import { answers, Client, type Fields, ROOT, runNode } from '../support/running/running-node.ts';
import { INVALID, refuses } from './both-dialects.ts';
import { fresh, linkTo, makersOn, sorted } from './makers.ts';

const NO_ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
const ANONYMOUS = '00000000-0000-0000-0000-000000000002';
const GLOBAL_READ_ONLY = '00000000-0000-0000-0000-000000000002';

const node = await runNode(t);
const consul = new Client(node, 'X-Consul-');
const ISSUER = await jwtIssuer();
const { newPolicy, newRole, newToken, newMethod, newRule } = makersOn(consul, ISSUER.config);

t.test('6.1: hashes', async (t) => {
  const hashOf = (...parts: unknown[]): string =>
    Buffer.from(blake2b(Buffer.from(parts.join('')), { dkLen: 32 })).toString('base64');
  const root = new Client(
    await runNode(t, { 'acl-tokens-initial-management': '' }),
    'X-Consul-',
    '',
  );
  const bootstrap = await root.made('PUT', '/acl/bootstrap', {});
  t.equal(bootstrap.Hash, 'X2AgaFhnQGRhSSF/h0m6qpX1wj/HJWbyXcxkEM/5GrY=');

  const rules = 'acl = "read"';
  const draft = { Name: 'hashed', Description: 'déjà vu', Rules: rules, Datacenters: ['b', 'a'] };
  const policy = await newPolicy(draft);
  t.equal(policy.Hash, hashOf('hashed', 'déjà vu', rules, 'b', 'a'));
  const links = {
    Policies: [linkTo(policy)],
    ServiceIdentities: [{ ServiceName: 'web', Datacenters: ['a'] }],
    NodeIdentities: [{ NodeName: 'n', Datacenter: 'dc1' }],
    TemplatedPolicies: [{ TemplateName: 'builtin/service', TemplateVariables: { name: 'x' } }],
  };
  const identities = ['web', 'a', 'n', 'dc1', '00000000-0000-0000-0000-000000000003'];
  const tail = [...identities, 'builtin/service', 'x'];
  const role = await newRole({ Name: 'hashed', Description: 'd', ...links });
  t.equal(role.Hash, hashOf('hashed', 'd', policy.ID, ...tail));
  const Roles = [linkTo(role)];
  const token = await newToken({ Description: 'd', ...links, Roles });
  t.equal(token.Hash, hashOf('d', 'global', policy.ID, role.ID, ...tail));
  const local = await newToken({ Description: 'd', Local: true, ExpirationTTL: '1h' });
  t.equal(local.Hash, hashOf('d', 'local'), 'neither secret nor expiry counts');
});

t.test('6.3: a clone copies everything but ids, times and description', async (t) => {
  const role = await newRole();
  const source = await newToken({
    Description: 'source',
    Policies: [linkTo(await newPolicy())],
    Roles: [linkTo(role)],
    ServiceIdentities: [{ ServiceName: 'web' }],
    NodeIdentities: [{ NodeName: 'n', Datacenter: 'dc1' }],
    TemplatedPolicies: [{ TemplateName: 'builtin/dns' }],
    Local: true,
    ExpirationTTL: '1h',
  });
  const path = `/acl/token/${source.AccessorID}/clone`;
  const ownFields = ['AccessorID', 'SecretID', 'CreateTime', 'CreateIndex', 'ModifyIndex'];
  const shared = (token: Fields): Fields =>
    Object.fromEntries(Object.entries(token).filter(([name]) => !ownFields.includes(name)));
  // Decisions 3: no body at all is fine.
  for (const body of [undefined, {}, { Description: '', Local: false, Policies: [] }]) {
    const clone = await consul.made('PUT', path, body);
    t.same(shared(clone), shared(source));
    for (const name of ['AccessorID', 'SecretID', 'ModifyIndex']) t.not(clone[name], source[name]);
  }
  t.equal((await consul.made('PUT', path, { description: 'other' })).Description, 'other');
});

t.test('6.4: secrets are hidden from those who may only read', async (t) => {
  const reader = await newToken({ Policies: [{ ID: GLOBAL_READ_ONLY }] });
  const client = consul.as(reader.SecretID);
  const token = await newToken();
  const path = `/acl/token/${token.AccessorID}`;
  t.equal((await client.get(path)).json.SecretID, '<hidden>');
  t.equal((await client.get(`${path}?expanded`)).json.SecretID, '<hidden>');
  const { list } = await client.get('/acl/tokens');
  t.ok(list.length > 2);
  t.ok(list.every(({ SecretID }) => SecretID === '<hidden>'));
  t.equal((await client.get('/acl/token/self')).json.SecretID, reader.SecretID);
  t.equal((await consul.get(path)).json.SecretID, token.SecretID);
});

t.test('6.5: filters of the list of tokens', async (t) => {
  const policy = await newPolicy();
  const role = await newRole({ ServiceIdentities: [{ ServiceName: 'through-role' }] });
  const { Name: AuthMethod } = await newMethod({ Name: 'Filtered' });
  await newRule({ AuthMethod });
  const login = { AuthMethod, BearerToken: await ISSUER.sign() };
  const ids = {
    policy: (await newToken({ Policies: [linkTo(policy)] })).AccessorID,
    role: (await newToken({ Roles: [linkTo(role)] })).AccessorID,
    identity: (await newToken({ ServiceIdentities: [{ ServiceName: 'filtered' }] })).AccessorID,
    template: (
      await newToken({
        TemplatedPolicies: [
          { TemplateName: 'builtin/service', TemplateVariables: { name: 'filtered' } },
        ],
      })
    ).AccessorID,
    login: (await consul.made('POST', '/acl/login', login)).AccessorID,
  };
  const cases: readonly [string, unknown[]][] = [
    [`policy=${policy.ID}`, [ids.policy]],
    [`policy=${String(policy.ID).toUpperCase()}`, [ids.policy]],
    [`role=${role.ID}`, [ids.role]],
    ['servicename=filtered', [ids.identity, ids.template]],
    ['servicename=FILTERED', [ids.identity, ids.template]],
    ['servicename=through-role', []],
    ['authmethod=filtered', [ids.login]],
    ['authmethod=filtered&authmethod-ns=default', [ids.login]],
    [`policy=${NO_ID}`, []],
    ['authmethod=none', []],
  ];
  for (const [query, wanted] of cases) {
    const { list } = await consul.get(`/acl/tokens?${query}`);
    t.same(
      list.map(({ AccessorID }) => AccessorID),
      sorted(wanted.map(String)),
      query,
    );
  }
  const { list } = await consul.get('/acl/tokens');
  const all = list.map(({ AccessorID }) => String(AccessorID));
  t.same(all, sorted(all), 'decisions 3: ordered by AccessorID');
  const one = 'can only filter by one of policy, role, serviceName, or methodName at a time';
  const lookup = 'failed acl token lookup: index error: UUID must be 36 characters';
  await refuses(t, node, [
    { ask: `GET /acl/tokens?policy=${NO_ID}&role=${NO_ID}`, statuses: INVALID, text: one },
    { ask: 'GET /acl/tokens?policy=x', statuses: INVALID, text: lookup },
    { ask: 'GET /acl/tokens?role=x', statuses: INVALID, text: lookup },
  ]);
});

t.test('6.6: which calls look at dc', async (t) => {
  const { AccessorID } = await newToken();
  const { ID } = await newPolicy();
  const ignored: readonly [string, string, unknown][] = [
    ['PUT', '/acl/token', {}],
    ['PUT', `/acl/token/${AccessorID}`, {}],
    ['PUT', `/acl/token/${AccessorID}/clone`, {}],
    ['DELETE', `/acl/token/${AccessorID}`, undefined],
    ['PUT', '/acl/policy', { Name: fresh('dc') }],
    ['PUT', `/acl/policy/${ID}`, { Name: fresh('dc') }],
    ['DELETE', `/acl/policy/${ID}`, undefined],
    ['PUT', '/acl/role', { Name: fresh('dc') }],
  ];
  for (const [method, path, body] of ignored) {
    const { status } = await consul.send(method, `${path}?dc=none`, { body });
    t.equal(status, 200, `${method} ${path}`);
  }
  const method = { Name: fresh('dc'), Type: 'jwt', Config: ISSUER.config };
  const honoured: readonly [string, unknown?][] = [
    ...READS.map((path): [string] => [`GET ${path}`]),
    ['PUT /acl/auth-method', method],
    ['DELETE /acl/auth-method/none'],
    ['GET /acl/binding-rules'],
    ['POST /acl/login', { AuthMethod: 'none' }],
    ['POST /acl/logout'],
    ['GET /acl/replication'],
  ];
  await refuses(
    t,
    node,
    honoured.map(([ask, body]) => ({
      ask: `${ask}?dc=none`,
      body,
      statuses: [500, 400],
      text: 'No path to datacenter',
    })),
  );
});

const READS = [
  '/acl/tokens',
  '/acl/token/self',
  `/acl/token/${NO_ID}`,
  '/acl/policies',
  `/acl/policy/${NO_ID}`,
  '/acl/roles',
  `/acl/role/${NO_ID}`,
  '/acl/auth-methods',
];

t.test('6.7: a token of a login can be updated, and keeps its method', async (t) => {
  const { Name: AuthMethod } = await newMethod();
  await newRule({ AuthMethod });
  const login = { AuthMethod, BearerToken: await ISSUER.sign() };
  const token = await consul.made('POST', '/acl/login', login);
  const path = `/acl/token/${token.AccessorID}`;
  const body = { Description: 'changed', Local: true, AuthMethod };
  t.match(await consul.made('PUT', path, body), { Description: 'changed', AuthMethod });
});

t.test('7.6: deleting a method takes its rules and tokens along, under one index', async (t) => {
  const methods = [await newMethod(), await newMethod({ TokenLocality: 'global' })];
  for (const { Name: AuthMethod } of methods) {
    const rule = await newRule({ AuthMethod });
    const login = { AuthMethod, BearerToken: await ISSUER.sign() };
    const token = await consul.made('POST', '/acl/login', login);
    t.equal((await consul.delete(`/acl/auth-method/${AuthMethod}`)).text, 'true');
    answers(t, await consul.as(token.SecretID).get('/acl/policies'), 403, 'ACL not found');
    const paths = [
      [`/acl/token/${token.AccessorID}`, 403],
      [`/acl/binding-rule/${rule.ID}`, 404],
    ] as const;
    for (const [path, status] of paths) t.equal((await consul.get(path)).status, status, path);
    const indexes: number[] = [];
    for (const list of ['auth-methods', 'binding-rules', 'tokens']) {
      indexes.push(Number((await consul.get(`/acl/${list}`)).headers['x-consul-index']));
    }
    const [methodsIndex = 0, rulesIndex, tokensIndex = 0] = indexes;
    t.equal(rulesIndex, methodsIndex);
    // The reaper may have moved it on since: it deletes the rows of the void tokens.
    t.ok(tokensIndex >= methodsIndex, `the list of tokens changed with it: ${indexes.join()}`);
  }
});

t.test('9: indexes', async (t) => {
  const other = new Client(await runNode(t), 'X-Consul-', ROOT);
  const indexOf = async (path: string): Promise<number> =>
    Number((await other.get(path)).headers['x-consul-index']);
  t.equal(await indexOf('/acl/binding-rules'), 1, 'a table that was never written');
  let last = 0;
  for (const Description of ['a', 'a', 'b']) {
    const { ModifyIndex } = await other.made('PUT', `/acl/token/${ANONYMOUS}`, { Description });
    t.equal(await indexOf('/acl/tokens'), ModifyIndex);
    t.equal(await indexOf('/acl/token/self'), ModifyIndex, 'a single read tells the table');
    t.ok(Number(ModifyIndex) > last, 'an identical write counts');
    last = Number(ModifyIndex);
  }
  const role = await other.made('PUT', '/acl/role', { Name: 'r' });
  t.equal(role.CreateIndex, role.ModifyIndex);
  t.equal(await indexOf('/acl/roles'), role.ModifyIndex);
  t.equal(await indexOf('/acl/tokens'), last, 'another table');
  await other.delete(`/acl/role/${role.ID}`);
  t.ok((await indexOf('/acl/roles')) > Number(role.ModifyIndex), 'a delete counts');
  const before = await indexOf('/acl/roles');
  await other.delete(`/acl/role/${role.ID}`);
  t.equal(await indexOf('/acl/roles'), before, 'a delete of nothing does not');
});
