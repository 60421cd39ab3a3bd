// Who may do what: each operation by its table, namespaces, identities, what is lent.

import t from 'tap';
import type { NamespaceName, PolicyId, RoleId, SecretId } from '../../../src/acl/ids.ts';
import { placementOf } from '../../../src/service/datacenters/placement.ts';
import { dependencyOf } from '../../../src/service/dependencies.ts';
import { OPERATION_TABLE } from '../../../src/service/operation-table.ts';
import type { OperationName } from '../../../src/service/operations.ts';
import { LinkRoom } from '../../../src/service/rights/link-room.ts';
import {
  LINKS_MAX,
  linkedPolicies,
  type RightsOwner,
} from '../../../src/service/rights/linked-policies.ts';
import { RightsCache } from '../../../src/service/rights/rights-cache.ts';
import { aCommand, aPolicy, aRole } from '../../support/state-and-service/fixtures.ts';
import { createHarness, newPolicy, newToken, ROOT, refusalOf, secretWith } from '../harness.ts';
import { ask, askOften, ID, NO_IDENTITIES, page } from './cases.ts';

t.test('every operation asks for the right that its table names, of every caller', async (t) => {
  const harness = await createHarness();
  const reader = await secretWith(harness, 'acl = "read"\noperator = "read"');
  const writer = await secretWith(harness, 'acl = "write"\noperator = "write"');
  const denied = await secretWith(
    harness,
    'acl = "deny"\noperator = "deny"\nkey_prefix "" { policy = "write" }',
  );
  const ttl = { expirationTtlNs: 60_000_000_000n, policies: [{ name: 'global-management' }] };
  const expired = (await newToken(harness, ttl)).secretId;
  harness.clock.advance(60_001);
  const names = Object.keys(OPERATION_TABLE) as OperationName[];
  for (const name of names) {
    const { permission } = OPERATION_TABLE[name];
    if (permission === 'none') continue;
    const lacks = /^permission-denied: Permission denied: .* lacks permission '/;
    t.match(await ask(harness, name, undefined), lacks, `${name} without a token`);
    t.match(await ask(harness, name, denied), lacks, `${name} with rights on other things`);
    t.equal(await ask(harness, name, expired), 'token-unknown: ACL not found', `${name}, expired`);
    t.equal(
      await ask(harness, name, ID as SecretId),
      'token-unknown: ACL not found',
      `${name}, unknown`,
    );
    const asReader = await ask(harness, name, reader);
    if (permission.endsWith(':read')) t.notMatch(asReader, lacks, `${name}, reader`);
    else t.match(asReader, lacks, `${name}, reader`);
    t.notMatch(await ask(harness, name, writer), lacks, `${name}, writer`);
  }
});

t.test('operations that ask for no right answer for themselves', async (t) => {
  const harness = await createHarness();
  const nobody = (name: OperationName) => ask(harness, name, undefined);
  t.equal(await nobody('authorize'), 'ok');
  t.equal(await nobody('replication.status'), 'ok');
  t.match(await nobody('bootstrap'), /no longer allowed/);
  t.match(await nobody('logout'), /^unauthenticated/);
  t.match(await nobody('token.read-self'), /^token-unknown/);
  for (const name of ['login', 'oidc.auth-url', 'oidc.callback'] as const) {
    t.match(await nobody(name), /ACL not found: auth method/);
  }
  t.equal(await ask(harness, 'authorize', ID as SecretId), 'token-unknown: ACL not found');
});

t.test('rights: an allowing default policy gives no rights over ACLs', async (t) => {
  const harness = await createHarness({ defaultPolicy: 'allow' });
  t.match(await ask(harness, 'policy.list', undefined), /^permission-denied/);
  t.match(await ask(harness, 'token.create', undefined), /^permission-denied/);
});

t.test(
  'rights: a token with rules that cannot be read has none, not those of the others',
  async (t) => {
    for (const defaultPolicy of ['deny', 'allow'] as const) {
      const harness = await createHarness({ defaultPolicy });
      const readable = await newPolicy(
        harness,
        'readable',
        'acl = "write"\nkey_prefix "" { policy = "write" }',
      );
      const newer = aPolicy(7, {
        name: 'newer',
        rules: 'key_prefix "secret/" { policy = "some of it" }',
      });
      const stored = { type: 'policy.set', presence: 'create', policy: newer } as const;
      t.match(
        await harness.deps.propose(aCommand(stored)),
        { kind: 'applied' },
        'as a newer release',
      );
      const policies = [{ id: readable }, { id: newer.id }];
      const { secretId: secret } = await newToken(harness, { policies });
      const asked = { resource: 'key', access: 'read', segment: 'public/a' };
      const items = [{ ...asked, namespace: undefined }];
      const tries = {
        'the readable rules alone': () => harness.run('policy.list', { page }, { secret }),
        'a decision': () => harness.run('authorize', { items, explain: false }, { secret }),
        'an explained one': () => harness.run('authorize', { items, explain: true }, { secret }),
      };
      for (const [what, ask] of Object.entries(tries)) {
        const says = 'internal: the stored rules of policy "newer" cannot be read';
        t.equal(await refusalOf(ask()), says, `${defaultPolicy}: ${what}`);
        t.equal(await refusalOf(ask()), says, `${defaultPolicy}: ${what}, again`);
      }
      const without = await newToken(harness, { policies: [{ id: readable }] });
      const list = harness.run('policy.list', { page }, { secret: without.secretId });
      t.equal(await refusalOf(list), 'ok', 'other tokens go on');
    }
  },
);

t.test('rights: those of a namespace reach no other; its rules name the object', async (t) => {
  const harness = await createHarness();
  for (const name of ['team', 'other']) await harness.run('namespace.create', { draft: { name } });
  const policy = await newPolicy(harness, 'p', 'acl = "write"', 'team');
  const { secretId: secret, accessorId } = await newToken(harness, {
    namespace: 'team',
    policies: [{ id: policy }],
  });
  const list = (namespaceParameter: string | undefined) =>
    refusalOf(harness.run('policy.list', { page }, { secret, namespaceParameter }));
  t.equal(await list(undefined), 'ok', 'the own namespace');
  t.equal(await list('team'), 'ok');
  const lacks = (right: string): string =>
    `permission-denied: Permission denied: token with AccessorID '${accessorId}' lacks permission '${right}' outside its namespace "team"`;
  t.equal(await list('other'), lacks('acl:read'), 'whoever asks why is told where to ask');
  t.equal(await list('default'), lacks('acl:read'));
  const other = await newPolicy(harness, 'p', '', 'other');
  t.equal(
    await refusalOf(
      harness.run('policy.delete', { id: other }, { secret, namespaceParameter: 'other' }),
    ),
    lacks('acl:write'),
  );
  const unnamed = await harness.run('policy.delete', { id: other }, { secret });
  t.equal(unnamed.value, false, 'in its own there is no such policy');
  t.equal(
    await refusalOf(harness.run('namespace.read', { name: 'team' }, { secret })),
    `permission-denied: Permission denied: token with AccessorID '${accessorId}' lacks permission 'namespace:read' on "team"`,
  );
  const granted = await secretWith(harness, 'namespace "team" {\n  policy = "write"\n}\n');
  const read = harness.run('namespace.read', { name: 'team' }, { secret: granted });
  t.equal(await refusalOf(read), 'ok');
});

t.test('rights: who has none hears of no object of another namespace', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const { accessorId } = await newToken(harness, { namespace: 'team' });
  const policy = await newPolicy(harness, 'p', '', 'team');
  const items = [{ resource: 'key', access: 'read', segment: '', namespace: undefined }];
  const { secretId: powerless } = await newToken(harness, {});
  for (const secret of [undefined, powerless]) {
    const call = { secret };
    const asks: readonly (readonly [there: string, ask: (id: string) => Promise<unknown>])[] = [
      [accessorId, (id) => harness.run('token.read', { accessorId: id, expanded: false }, call)],
      [accessorId, (id) => harness.run('token.delete', { accessorId: id }, call)],
      [
        accessorId,
        (id) => harness.run('token.authorize', { accessorId: id, items, explain: true }, call),
      ],
      [policy, (id) => harness.run('policy.read', { id }, call)],
    ];
    for (const [there, ask] of asks) {
      const refusal = await refusalOf(ask(there));
      t.match(refusal, /^permission-denied: .* lacks permission 'acl:(?:read|write)'/);
      t.equal(refusal, await refusalOf(ask(ID)), 'as of an id that nothing has');
    }
  }
});

t.test('rights: identities speak for the namespace of whoever holds them', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const held = {
    serviceIdentities: [{ serviceName: 'web' }],
    templatedPolicies: [{ templateName: 'builtin/service', variables: { name: 'api' } }],
  };
  const roleIn = async (namespace: string): Promise<string> => {
    const draft = { name: 'r', namespace, ...held };
    return (await harness.run('role.create', { draft })).value.role.id;
  };
  const cases: readonly (readonly [string, object, object])[] = [
    ['its own', held, { default: false, team: true }],
    ['of a role there', { roles: [{ id: await roleIn('team') }] }, { default: false, team: true }],
    [
      'of a role in default',
      { roles: [{ id: await roleIn('default') }] },
      { default: true, team: false },
    ],
  ];
  for (const [what, draft, expected] of cases) {
    const { secretId: secret } = await newToken(harness, { namespace: 'team', ...draft });
    for (const segment of ['web', 'api']) {
      const item = { resource: 'service', access: 'write', segment };
      const items = Object.keys(expected).map((namespace) => ({ ...item, namespace }));
      const answers = await harness.run('authorize', { items, explain: false }, { secret });
      const allowed = answers.map(({ namespace, allow }) => [namespace, allow]);
      t.same(Object.fromEntries(allowed), expected, `${what}: ${segment}`);
    }
  }
});

t.test('rights: nobody lends what lives in a namespace that they may not write', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const ofTeam = [{ id: await newPolicy(harness, 'admin', 'acl = "write"', 'team') }];
  const plain = await newToken(harness, { namespace: 'team', policies: ofTeam });
  // To read there is not enough.
  const reading = [{ id: await newPolicy(harness, 'reading', 'acl = "read"') }];
  const admin = await newToken(harness, { namespace: 'team', policies: [...ofTeam, ...reading] });
  const { secretId: secret } = admin;
  const management = [{ id: '00000000-0000-0000-0000-000000000001' }];
  const owning = 'acl = "read" namespace "team" { policy = "write" }';
  const rulesOwner = await secretWith(harness, owning);
  const refused = /permission-denied: .* lacks permission 'acl:write' on "namespace default"/;
  const draft = { name: 'r', policies: management };
  const { value: operators } = await harness.run('role.create', {
    draft: { name: 'operators', policies: management },
  });
  const { value: own } = await harness.run('role.create', { draft: { name: 'own' } }, { secret });
  const tries: Readonly<Record<string, Promise<unknown>>> = {
    'a new token': harness.run('token.create', { draft: { policies: management } }, { secret }),
    'a link by name': harness.run(
      'token.create',
      { draft: { policies: [{ name: 'global-management' }] } },
      { secret },
    ),
    'a role': harness.run(
      'token.create',
      { draft: { roles: [{ id: operators.role.id }] } },
      { secret },
    ),
    'its own token': harness.run(
      'token.update',
      { accessorId: admin.accessorId, draft: { policies: management } },
      { secret },
    ),
    'a role for its own token': harness.run(
      'token.update',
      { accessorId: admin.accessorId, draft: { roles: [{ id: operators.role.id }] } },
      { secret },
    ),
    'a new role': harness.run('role.create', { draft }, { secret }),
    'a role of its own': harness.run('role.update', { id: own.role.id, draft }, { secret }),
    'roles of the namespace': harness.run(
      'namespace.update',
      { name: 'team', draft: { roleDefaults: [{ id: operators.role.id }] } },
      { secret: rulesOwner },
    ),
    'defaults of the namespace': harness.run(
      'namespace.update',
      { name: 'team', draft: { policyDefaults: management } },
      { secret: rulesOwner },
    ),
  };
  for (const [what, trying] of Object.entries(tries))
    t.match(await refusalOf(trying), refused, what);

  const links = { policies: management, roles: [{ id: operators.role.id }] };
  const lent = await newToken(harness, { namespace: 'team', ...links });
  const keeps = { accessorId: lent.accessorId, draft: { description: 'd', ...links } };
  t.equal(
    await refusalOf(harness.run('token.update', keeps, { secret })),
    'ok',
    'a link that was there before may stay',
  );
  const copy = { accessorId: lent.accessorId, description: undefined, namespace: undefined };
  t.match(
    await refusalOf(harness.run('token.clone', copy, { secret })),
    refused,
    'a copy would outlive the token that they were lent to',
  );
  t.equal(
    await refusalOf(harness.run('token.clone', { ...copy, namespace: 'team' })),
    'ok',
    'who may lend may copy',
  );
  const ofPlain = { ...copy, accessorId: plain.accessorId };
  t.equal(
    await refusalOf(harness.run('token.clone', ofPlain, { secret })),
    'ok',
    'nothing is lent',
  );
});

t.test('rights: the binding rules of a namespace do not reach out of it', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const inTeam = { namespaceParameter: 'team' };
  const method = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: method }, inTeam);
  const rule = { authMethod: 'm', bindType: 'policy', bindName: 'global-management' };
  await harness.run('binding-rule.create', { draft: rule }, inTeam);
  const login = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: 'team' };
  await harness.run('role.create', { draft: { name: 'ops' } });
  const ofRole = { authMethod: 'm', bindType: 'role', bindName: 'ops' };
  await harness.run('binding-rule.create', { draft: ofRole }, inTeam);
  t.match(await refusalOf(harness.run('login', login)), /permission-denied/, 'nothing is bound');
  await newPolicy(harness, 'global-management', 'acl = "read"', 'team');
  const { value } = await harness.run('login', login);
  t.equal(value.policies.length, 1, 'a policy of its own of that name is bound');
  t.not(value.policies[0]?.id, '00000000-0000-0000-0000-000000000001');
  t.same(value.roles, []);
  const own = await harness.run('role.create', { draft: { name: 'ops' } }, inTeam);
  const { roles } = (await harness.run('login', login)).value;
  t.same(roles, [{ id: own.value.role.id, name: 'ops' }]);
});

t.test('rights: a policy counts only in its datacenters', async (t) => {
  const harness = await createHarness();
  const make = async (name: string, datacenter: string) => {
    const draft = { name, rules: 'acl = "read"', datacenters: [datacenter] };
    const { id } = (await harness.run('policy.create', { draft })).value.policy;
    return (await newToken(harness, { policies: [{ id }] })).secretId;
  };
  t.equal(await ask(harness, 'policy.list', await make('here', 'dc1')), 'ok');
  t.match(await ask(harness, 'policy.list', await make('there', 'dc2')), /^permission-denied/);
});

t.test(
  'rights: defaults of a namespace are seen at once, and only where nothing is said',
  async (t) => {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    const reading = await newPolicy(harness, 'reading', 'acl = "read"', 'team');
    const denying = await newPolicy(harness, 'denying', 'acl = "deny"', 'team');
    const plain = (await newToken(harness, { namespace: 'team' })).secretId;
    const policies = [{ id: denying }];
    const strict = (await newToken(harness, { namespace: 'team', policies })).secretId;
    const may = async (secret: SecretId) => (await askOften(harness, secret)) === 'ok';
    t.notOk(await may(plain));
    const draft = { policyDefaults: [{ id: reading }] };
    await harness.run('namespace.update', { name: 'team', draft });
    t.ok(await may(plain));
    t.notOk(await may(strict));
    await harness.run('namespace.update', { name: 'team', draft: {} });
    t.notOk(await may(plain));
  },
);

t.test('rights: a template of another release gives nothing, and takes nothing', async (t) => {
  const harness = await createHarness();
  const policies = [{ id: await newPolicy(harness, 'p', 'acl = "read"') }];
  const { createIndex: _c, modifyIndex: _m, ...token } = await newToken(harness, { policies });
  const gone = { templateId: `${'0'.repeat(8)}-0000-0000-0000-000000000007`, datacenters: [] };
  const templatedPolicies = [{ ...gone, templateName: 'builtin/gone', variables: undefined }];
  const change = { ...token, templatedPolicies };
  const command = { type: 'token.set', presence: 'update', token: change } as const;
  await harness.deps.propose({ change: command, timeMs: 0, cas: undefined, request: undefined });
  const { secretId, accessorId } = token;
  t.equal(await ask(harness, 'policy.list', secretId), 'ok');
  t.match(await ask(harness, 'policy.create', secretId), /^permission-denied/);
  const read = await harness.run('token.read', { accessorId, expanded: true });
  t.same(
    read.value?.expanded?.policies.map(({ name }) => name),
    ['p'],
  );
});

t.test('rights: what came through a role holds its id and name, and no copy of it', (t) => {
  const namespace = 'default' as NamespaceName;
  const role = {
    ...aRole(1, { serviceIdentities: [{ serviceName: 'web', datacenters: [] }] }),
    description: 'long',
  };
  const held = { ...role, policies: ['policy' as PolicyId] };
  const view = { policy: () => aPolicy(1), role: () => held, namespace: () => undefined };
  const owner = { namespace, policies: [], roles: [role.id], ...NO_IDENTITIES };
  const { own } = linkedPolicies(view as never, owner);
  const ref = { id: role.id, name: role.name };
  t.strictSame(
    own.map(({ via }) => 'role' in via && via.role),
    [ref, ref],
  );
  t.end();
});

t.test('links: a token that leads to very much has no rights until it leads to less', async (t) => {
  const namespace = 'default' as NamespaceName;
  const policyIds = Array.from({ length: LINKS_MAX }, (_, place) => `policy ${place}` as PolicyId);
  const roleIds = Array.from({ length: 1_000_000 }, (_, place) => `role ${place}` as RoleId);
  let linked = policyIds;
  let rules = '';
  let reads = 0;
  const view = {
    policy: (id: PolicyId) => {
      reads += 1;
      return { ...aPolicy(1, { rules }), id };
    },
    role: (id: RoleId) => ({ id, name: id, namespace, policies: linked, ...NO_IDENTITIES }),
    namespace: () => undefined,
  };
  const cache = new RightsCache(view as never, { datacenter: 'dc1', defaultPolicy: 'allow' });
  const rightsOf = (owner: Partial<RightsOwner>) =>
    cache.rightsOf({ namespace, policies: [], roles: [], ...NO_IDENTITIES, ...owner });
  const query = { resource: 'key', access: 'read', segment: 'a', namespace } as const;
  const decided = (owner: Partial<RightsOwner>) => rightsOf(owner).authorizer.decide(query);
  const refusal = { code: 'permission-denied', message: /lead to more than 16384 policies/ };

  t.equal(decided({ policies: policyIds }), 'allow', 'as many as there may be');
  reads = 0;
  const many = { roles: roleIds };
  t.throws(() => decided(many), refusal, 'a million roles of so many policies');
  t.ok(reads <= LINKS_MAX, `no more than that is looked at: ${reads}`);
  t.throws(() => decided(many), refusal);
  t.ok(reads <= LINKS_MAX, 'nor again, while nothing changes');
  t.throws(() => decided({ policies: [...policyIds, 'one more' as PolicyId] }), refusal);
  const serviceIdentities = policyIds.map((id) => ({ serviceName: id, datacenters: [] }));
  t.throws(() => decided({ policies: policyIds, serviceIdentities }), refusal);

  const few = { roles: roleIds.slice(0, 2) };
  t.throws(() => decided(few), refusal);
  linked = [];
  cache.forget(dependencyOf('roles', 'role 0'));
  t.equal(decided(few), 'allow', 'when its roles have fewer');

  rules = '#'.repeat(1_000_000);
  const eight = policyIds.slice(0, 8);
  t.equal(decided({ policies: eight }), 'allow');
  t.throws(() => decided({ policies: policyIds.slice(0, 9) }), refusal, 'they are too long');
  linked = eight;
  t.equal(decided({ roles: roleIds.slice(0, 100) }), 'allow', 'by many ways, they count once');

  const identities = (count: number) => ({
    serviceIdentities: policyIds
      .slice(0, count)
      .map((id) => ({ serviceName: id, datacenters: [] })),
  });
  t.equal(decided(identities(2_000)), 'allow');
  t.throws(() => decided(identities(LINKS_MAX)), refusal, 'what they stand for is too long');
});

t.test('links: what is written leads to so many and no more, each counted once', (t) => {
  const room = new LinkRoom();
  for (let place = 0; place < LINKS_MAX; place += 1) room.take({ id: `${place}` });
  room.take({ id: '0' });
  const refusal = { code: 'invalid', message: /lead to more than 16384 policies/ };
  t.throws(() => room.take({ id: 'one more' }), refusal);
  t.end();
});

t.test('placement: by scope, locality and which datacenter is primary', async (t) => {
  const primary = { datacenter: 'dc1', primaryDatacenter: 'dc1' };
  const secondary = { datacenter: 'dc2', primaryDatacenter: 'dc1' };
  const here = { kind: 'here' };
  const atPrimary = { kind: 'datacenter', name: 'dc1' };
  const cases = [
    ['policy.create', undefined, primary, undefined, here],
    ['policy.create', undefined, secondary, undefined, atPrimary],
    ['policy.read', undefined, secondary, undefined, here],
    ['policy.read', undefined, secondary, 'dc1', atPrimary],
    ['token.create', true, secondary, undefined, here],
    ['token.create', false, secondary, undefined, atPrimary],
    ['token.delete', undefined, secondary, undefined, atPrimary],
    ['login', true, secondary, undefined, here],
  ] as const;
  for (const [name, isLocalToken, topology, datacenter, expected] of cases) {
    const question = { facts: OPERATION_TABLE[name], datacenter, isLocalToken, from: undefined };
    t.same(placementOf(question, topology), expected, `${name} ${JSON.stringify(topology)}`);
  }
  t.equal(
    await refusalOf((await createHarness()).run('policy.list', { page }, { secret: ROOT })),
    'ok',
  );
});
