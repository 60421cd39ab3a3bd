// Who may do what: every operation against every kind of caller, and that no change of rights is ever
// noticed late. Placement, which decides nothing about rights, is at the end.

import fc from 'fast-check';
import t from 'tap';
import {
  ANONYMOUS_ACCESSOR,
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
  type SecretId,
} from '../../src/acl/ids.ts';
import { CallerResolver } from '../../src/service/caller-resolver.ts';
import { createOperations, type Door } from '../../src/service/create-operations.ts';
import { LinkNames } from '../../src/service/link-names.ts';
import { OPERATION_TABLE } from '../../src/service/operation-table.ts';
import type { OperationInput, OperationName } from '../../src/service/operations.ts';
import { requireMayAdd } from '../../src/service/lent-rights.ts';
import {
  dependencyOf,
  linkedPolicies,
  LINKS_MAX,
  type RightsOwner,
} from '../../src/service/linked-policies.ts';
import { RightsCache } from '../../src/service/rights-cache.ts';
import { placementOf } from '../../src/service/placement.ts';
import { Overtaken, untilNotOvertaken } from '../../src/service/under-way.ts';
import type { Call } from '../../src/service/call.ts';
import type { TableName } from '../../src/state/view.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { aCommand, aPolicy, aRole } from '../support/fixtures.ts';
import {
  CALL,
  createHarness,
  type Harness,
  newPolicy,
  newToken,
  refusalOf,
  ROOT,
  secretWith,
} from './harness.ts';

const ID = 'ffffffff-0000-4000-8000-000000000000';
const page = {};

/** An input for each operation, of which only the right to ask is of interest. */
const INPUTS: { readonly [Name in OperationName]: OperationInput<Name> } = {
  bootstrap: { secret: undefined },
  'token.create': { draft: {} },
  'token.read': { accessorId: ID, expanded: false },
  'token.read-self': {},
  'token.update': { accessorId: ID, draft: {} },
  'token.clone': { accessorId: ID, description: undefined, namespace: undefined },
  'token.delete': { accessorId: ID },
  'token.list': {
    policy: undefined,
    role: undefined,
    serviceName: undefined,
    authMethod: undefined,
    authMethodNamespace: undefined,
    page,
  },
  'policy.create': { draft: { name: 'p' } },
  'policy.read': { id: ID },
  'policy.read-by-name': { name: 'p' },
  'policy.update': { id: ID, draft: { name: 'p' } },
  'policy.delete': { id: ID },
  'policy.list': { page },
  'role.create': { draft: { name: 'r' } },
  'role.read': { id: ID },
  'role.read-by-name': { name: 'r' },
  'role.update': { id: ID, draft: { name: 'r' } },
  'role.delete': { id: ID },
  'role.list': { policy: undefined, page },
  'auth-method.create': { draft: { name: 'm', type: 'jwt', config: {} } },
  'auth-method.read': { name: 'm' },
  'auth-method.update': { name: 'm', draft: { type: 'jwt', config: {} } },
  'auth-method.delete': { name: 'none' },
  'auth-method.list': { page },
  'binding-rule.create': { draft: { authMethod: 'm', bindType: 'service', bindName: 'x' } },
  'binding-rule.read': { id: ID },
  'binding-rule.update': { id: ID, draft: {} },
  'binding-rule.delete': { id: ID },
  'binding-rule.list': { authMethod: undefined, page },
  'namespace.create': { draft: { name: 'n' } },
  'namespace.read': { name: 'default' },
  'namespace.update': { name: 'n', draft: {} },
  'namespace.delete': { name: 'none' },
  'namespace.list': { page },
  'templated-policy.list': {},
  'templated-policy.read': { name: 'builtin/dns' },
  'templated-policy.preview': { name: 'builtin/dns', variables: { name: undefined } },
  login: { authMethod: 'none', bearerToken: '{}', meta: {}, namespace: undefined },
  logout: {},
  'oidc.auth-url': {
    authMethod: 'none',
    redirectUri: '',
    clientNonce: '',
    meta: {},
    namespace: undefined,
  },
  'oidc.callback': {
    authMethod: 'none',
    state: '',
    code: '',
    clientNonce: '',
    namespace: undefined,
  },
  authorize: { items: [], explain: false },
  'token.authorize': { accessorId: ID, items: [], explain: false },
  'replication.status': {},
  'datacenter.remove': { name: 'none', isForced: false },
  'datacenter.allow': { name: 'none', isForced: false },
};

function ask(harness: Harness, name: OperationName, secret: SecretId | undefined): Promise<string> {
  return refusalOf(harness.run(name, INPUTS[name], { secret }));
}

/**
 * What the first of several answers is: a token is kept from its second use on, so the third comes from
 * memory, and the first after the next change would, too.
 */
async function askOften(harness: Harness, secret: SecretId): Promise<string> {
  const first = await ask(harness, 'policy.list', secret);
  for (let again = 0; again < 2; again += 1) {
    const later = await ask(harness, 'policy.list', secret);
    if (later !== first) return `first ${first}, then ${later}`;
  }
  return first;
}

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
    if (permission.endsWith(':read')) t.notMatch(asReader, /^permission-denied/, `${name}, reader`);
    else t.match(asReader, lacks, `${name}, reader`);
    t.notMatch(await ask(harness, name, writer), /^permission-denied/, `${name}, writer`);
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
  t.match(await list('other'), /lacks permission 'acl:read'/);
  t.match(await list('default'), /lacks permission 'acl:read'/);
  const other = await newPolicy(harness, 'p', '', 'other');
  t.match(
    await refusalOf(harness.run('policy.delete', { id: other }, { secret })),
    /lacks permission 'acl:write'/,
    'by id the namespace of the object counts',
  );
  t.equal(
    await refusalOf(harness.run('namespace.read', { name: 'team' }, { secret })),
    `permission-denied: Permission denied: token with AccessorID '${accessorId}' lacks permission 'namespace:read' on "team"`,
  );
  const granted = await secretWith(harness, 'namespace "team" {\n  policy = "write"\n}\n');
  const read = harness.run('namespace.read', { name: 'team' }, { secret: granted });
  t.equal(await refusalOf(read), 'ok');
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
  const admin = await newToken(harness, {
    namespace: 'team',
    policies: [{ id: await newPolicy(harness, 'admin', 'acl = "write"', 'team') }],
  });
  const { secretId: secret } = admin;
  const management = [{ id: '00000000-0000-0000-0000-000000000001' }];
  const rulesOwner = await secretWith(harness, 'namespace "team" { policy = "write" }');
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

  const lent = await newToken(harness, { namespace: 'team', policies: management });
  const keeps = { accessorId: lent.accessorId, draft: { description: 'd', policies: management } };
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
  t.equal(await refusalOf(harness.run('token.clone', copy)), 'ok', 'who may lend may copy');
  const ofAdmin = { ...copy, accessorId: admin.accessorId };
  t.equal(
    await refusalOf(harness.run('token.clone', ofAdmin, { secret })),
    'ok',
    'nothing is lent',
  );
});

t.test(
  'rights: what is taken away does not come back by an update that was under way',
  async (t) => {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    const policies = [{ id: await newPolicy(harness, 'admin', 'acl = "write"', 'team') }];
    const { secretId: secret } = await newToken(harness, { namespace: 'team', policies });
    const rulesOwner = await secretWith(harness, 'namespace "team" { policy = "write" }');
    const lent = [{ id: '00000000-0000-0000-0000-000000000001' }];
    const { accessorId } = await newToken(harness, { namespace: 'team', policies: lent });
    const { value: made } = await harness.run('role.create', {
      draft: { name: 'lent', namespace: 'team', policies: lent },
    });
    const { id } = made.role;
    const { machine } = harness;
    const cases = {
      token: {
        take: () => harness.run('token.update', { accessorId, draft: { policies: [] } }),
        keep: (cas: number | undefined) =>
          harness.run('token.update', { accessorId, draft: { policies: lent } }, { secret, cas }),
        lend: () => harness.run('token.update', { accessorId, draft: { policies: lent } }),
        held: () => machine.token(accessorId)!,
        policies: () => machine.token(accessorId)!.policies,
      },
      role: {
        take: () => harness.run('role.update', { id, draft: { name: 'lent', policies: [] } }),
        keep: (cas: number | undefined) =>
          harness.run(
            'role.update',
            { id, draft: { name: 'lent', policies: lent } },
            { secret, cas },
          ),
        lend: () => harness.run('role.update', { id, draft: { name: 'lent', policies: lent } }),
        held: () => machine.role(id)!,
        policies: () => machine.role(id)!.policies,
      },
      namespace: {
        take: () =>
          harness.run('namespace.update', { name: 'team', draft: { policyDefaults: [] } }),
        keep: (cas: number | undefined) =>
          harness.run(
            'namespace.update',
            { name: 'team', draft: { policyDefaults: lent } },
            { secret: rulesOwner, cas },
          ),
        lend: () =>
          harness.run('namespace.update', { name: 'team', draft: { policyDefaults: lent } }),
        held: () => machine.namespace('team' as NamespaceName)!,
        policies: () => machine.namespace('team' as NamespaceName)!.policyDefaults,
      },
    };
    for (const [what, { take, keep, lend, held, policies: linked }] of Object.entries(cases)) {
      await lend();
      const both = await Promise.all([keep(undefined), keep(undefined)].map(refusalOf));
      t.same(both, ['ok', 'ok'], `${what}: whom nobody takes it from goes on`);
      const named = keep(held().modifyIndex);
      t.equal(await refusalOf(named), 'ok', `${what}: the client may name what it saw`);
      for (const guess of [undefined, machine.index() + 1]) {
        const taken = refusalOf(take());
        // A client may guess which index the change gets that takes the link away.
        const overtaken = await refusalOf(keep(guess));
        t.equal(await taken, 'ok');
        const says = /^permission-denied: .* 'acl:write'/;
        t.match(overtaken, says, `${what}, cas ${guess}`);
        t.same(linked(), [], `${what}: it stays away`);
        await lend();
      }
    }
  },
);

t.test(
  'rights: a namespace that is deleted does not come back with what was lent to it',
  async (t) => {
    const harness = await createHarness();
    const lent = [{ id: '00000000-0000-0000-0000-000000000001' }];
    const draft = { policyDefaults: lent };
    await harness.run('namespace.create', { draft: { name: 'team', ...draft } });
    const secret = await secretWith(harness, 'namespace "team" { policy = "write" }');
    const keep = () =>
      refusalOf(harness.run('namespace.update', { name: 'team', draft }, { secret }));
    t.equal(await keep(), 'ok');
    const deleted = refusalOf(harness.run('namespace.delete', { name: 'team' }));
    const kept = keep();
    t.equal(await deleted, 'ok');
    t.match(await kept, /^permission-denied: /);
  },
);

t.test('rights: nobody puts back the rights that are taken from them in that moment', async (t) => {
  const admin = 'acl = "write"';
  const kinds: readonly TableName[] = ['tokens', 'roles', 'policies', 'namespaces'];
  for (const kind of kinds) {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    const id = await newPolicy(harness, 'admin', admin, 'team');
    const policies = [{ id }];
    const operator = await newPolicy(harness, 'operator', 'operator = "write"');
    const role = { name: 'r', namespace: 'team', policies };
    const { value: made } = await harness.run('role.create', { draft: role });
    const roleId = made.role.id;
    const { accessorId, secretId: secret } = await newToken(harness, {
      namespace: 'team',
      ...(kind === 'tokens' && { policies }),
      ...(kind === 'roles' && { roles: [{ id: roleId }] }),
      ...(kind === 'policies' && { policies }),
      ...(kind === 'namespaces' && { policies: [{ id: operator }] }),
    });
    const name = 'team';
    const withDefaults = (links: readonly { readonly id: string }[]) => ({
      name,
      draft: { policyDefaults: links },
    });
    if (kind === 'namespaces') await harness.run('namespace.update', withDefaults(policies));
    const write = (isGiven: boolean, call: Partial<Call>): Promise<unknown> => {
      const links = isGiven ? policies : [];
      switch (kind) {
        case 'tokens':
          return harness.run('token.update', { accessorId, draft: { policies: links } }, call);
        case 'roles':
          return harness.run(
            'role.update',
            { id: roleId, draft: { name: 'r', policies: links } },
            call,
          );
        case 'policies': {
          const rules = isGiven ? admin : '';
          return harness.run('policy.update', { id, draft: { name: 'admin', rules } }, call);
        }
        default:
          return harness.run('namespace.update', withDefaults(links), call);
      }
    };
    t.equal(
      await refusalOf(write(true, { secret })),
      'ok',
      `${kind}: it may, as long as it has them`,
    );
    const taken = refusalOf(write(false, {}));
    const givenBack = refusalOf(write(true, { secret }));
    t.equal(await taken, 'ok', kind);
    t.match(await givenBack, /^permission-denied: /, kind);
    t.match(await refusalOf(write(true, { secret })), /^permission-denied: /, kind);
  }
});

t.test('rights: whoever comes without a token keeps nothing, either', async (t) => {
  const harness = await createHarness();
  const policies = [{ id: await newPolicy(harness, 'admin', 'acl = "write"') }];
  const call = { secret: undefined };
  const accessorId = ANONYMOUS_ACCESSOR;
  const write = (isGiven: boolean, by: Partial<Call>) =>
    refusalOf(harness.run('token.update', { accessorId, draft: isGiven ? { policies } : {} }, by));
  t.equal(await write(true, {}), 'ok');
  t.equal(await write(true, call), 'ok', 'it may, as long as it has them');
  const taken = write(false, {});
  const givenBack = write(true, call);
  t.equal(await taken, 'ok');
  t.match(await givenBack, /^permission-denied: /);
});

t.test('rights: a write that is overtaken all the time gives up in time', async (t) => {
  const clock = new FakeClock();
  let count = 0;
  const run = (): Promise<never> => {
    count += 1;
    clock.advance(1_000);
    return Promise.reject(new Overtaken(Promise.resolve()));
  };
  const running = untilNotOvertaken({ clock, limitMs: 5_000 }, run);
  t.match(await refusalOf(running), /^unavailable: nothing was written: /);
  t.equal(count, 5);
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
  t.match(await refusalOf(harness.run('login', login)), /permission-denied/, 'nothing is bound');
  await newPolicy(harness, 'global-management', 'acl = "read"', 'team');
  const { value } = await harness.run('login', login);
  t.equal(value.policies.length, 1, 'a policy of its own of that name is bound');
  t.not(value.policies[0]?.id, '00000000-0000-0000-0000-000000000001');
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

t.test('rights: the very next request sees every change of them', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'p', 'acl = "read"');
  const role = async (name: string) =>
    (await harness.run('role.create', { draft: { name, policies: [{ id: policy }] } })).value.role
      .id;
  const may = async (secret: SecretId) => (await askOften(harness, secret)) === 'ok';
  const secretOf = async (draft: object) => (await newToken(harness, draft)).secretId;
  const reading = { name: 'p', rules: 'acl = "read"' };

  const direct = await secretOf({ policies: [{ id: policy }] });
  const roleId = await role('r');
  const viaRole = await secretOf({ roles: [{ id: roleId }] });
  t.ok((await may(direct)) && (await may(viaRole)));
  await harness.run('policy.update', { id: policy, draft: { name: 'p', rules: '' } });
  t.notOk((await may(direct)) || (await may(viaRole)), 'a policy changed');
  await harness.run('policy.update', { id: policy, draft: reading });
  t.ok((await may(direct)) && (await may(viaRole)), 'and changed back');

  await harness.run('role.update', { id: roleId, draft: { name: 'r' } });
  t.notOk(await may(viaRole), 'a role changed');
  await harness.run('role.update', {
    id: roleId,
    draft: { name: 'r', policies: [{ id: policy }] },
  });
  t.ok(await may(viaRole));
  await harness.run('role.delete', { id: roleId });
  t.notOk(await may(viaRole), 'a role deleted');

  const changing = await newToken(harness, { policies: [{ id: policy }] });
  const { accessorId } = changing;
  t.ok(await may(changing.secretId));
  await harness.run('token.update', { accessorId, draft: {} });
  t.notOk(await may(changing.secretId), 'a token changed');
  await harness.run('token.update', { accessorId, draft: { policies: [{ id: policy }] } });
  t.ok(await may(changing.secretId));
  await harness.run('token.delete', { accessorId });
  t.equal(await ask(harness, 'policy.list', changing.secretId), 'token-unknown: ACL not found');
  await newToken(harness, {
    secretId: changing.secretId,
    policies: [{ id: policy }],
  });
  t.ok(await may(changing.secretId), 'a secret is known at once, though it was unknown before');

  const ttl = { expirationTtlNs: 60_000_000_000n, policies: [{ id: policy }] };
  const expiring = await secretOf(ttl);
  t.ok(await may(expiring));
  harness.clock.advance(60_000);
  t.ok(await may(expiring), 'its last millisecond');
  harness.clock.advance(1);
  t.notOk(await may(expiring), 'a token expired');

  await harness.run('policy.delete', { id: policy });
  t.notOk(await may(direct), 'a policy deleted');
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

t.test(
  'rights: a login token ends with its method, and a new method does not revive it',
  async (t) => {
    const harness = await createHarness();
    const make = () =>
      harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
    await make();
    await newPolicy(harness, 'reading', 'acl = "read"');
    const draft = { authMethod: 'm', bindType: 'policy', bindName: 'reading' };
    await harness.run('binding-rule.create', { draft });
    const input = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace: undefined };
    const { secretId } = (await harness.run('login', input, { secret: undefined })).value.token;
    t.equal(await askOften(harness, secretId), 'ok');
    t.equal(await ask(harness, 'token.read-self', secretId), 'ok');
    await harness.run('auth-method.delete', { name: 'm' });
    for (const name of ['policy.list', 'token.read-self'] as const)
      t.match(await ask(harness, name, secretId), /^token-unknown/, name);
    await make();
    for (const name of ['policy.list', 'token.read-self'] as const)
      t.match(await ask(harness, name, secretId), /^token-unknown/, name);
  },
);

t.test('rights: a login does not outlast the method that it was begun with', async (t) => {
  const harness = await createHarness();
  const method = { name: 'm', type: 'jwt', config: { key: 'old' } };
  await harness.run('auth-method.create', { draft: method });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await harness.run('binding-rule.create', { draft: rule });
  let meanwhile = async (): Promise<unknown> => undefined;
  const door = slowDoor(harness, () => meanwhile());
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  const login = (): Promise<string> => refusalOf(door.run('login', input, CALL));
  t.equal(await login(), 'ok');
  meanwhile = () =>
    harness.run('auth-method.update', { name: 'm', draft: { ...method, config: { key: 'new' } } });
  t.equal(
    await login(),
    'login-refused: auth method "m" was changed during the login, log in again',
    'who was let in by the keys of before is not let in any more',
  );
  meanwhile = async () => undefined;
  t.equal(await login(), 'ok', 'by those of now');
});

/** A door to the harness whose auth methods ask outside, which takes as long as this says. */
function slowDoor(harness: Harness, outside: () => Promise<unknown>): Door {
  const { authMethods } = harness.deps;
  const { jwt } = authMethods.types;
  const slow: typeof jwt = {
    ...jwt,
    checkConfig: async (...given) => {
      await outside();
      return jwt.checkConfig(...given);
    },
    validate: async (...given) => {
      const identity = await jwt.validate(...given);
      await outside();
      return identity;
    },
  };
  const types = { ...authMethods.types, jwt: slow };
  return createOperations({ ...harness.deps, authMethods: { ...authMethods, types } });
}

t.test('rights: a login waits for a change of its method that is under way', async (t) => {
  const harness = await createHarness();
  const method = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: method });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await harness.run('binding-rule.create', { draft: rule });
  let count = 0;
  const door = slowDoor(harness, async () => {
    count += 1;
    if (count > 1) return;
    const { proposals } = harness;
    void harness.run('auth-method.update', { name: 'm', draft: { ...method, description: 'new' } });
    while (harness.proposals === proposals) await Promise.resolve();
  });
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  t.equal(await refusalOf(door.run('login', input, CALL)), 'ok');
  t.equal(count, 2, 'the identity is judged anew, by the method as it is now');
});

t.test('rights: a login gives no longer life than the datacenter allows', async (t) => {
  const harness = await createHarness();
  const minuteNs = 60_000_000_000n;
  for (const [name, maxTokenTtlNs] of [
    ['short', 2n * minuteNs],
    ['long', 600n * minuteNs],
    ['endless', 0n],
  ] as const) {
    await harness.run('auth-method.create', {
      draft: { name, type: 'jwt', config: {}, maxTokenTtlNs },
    });
    const rule = { authMethod: name, bindType: 'service', bindName: 'web' };
    await harness.run('binding-rule.create', { draft: rule });
  }
  const tokenLimits = { minTtlNs: minuteNs, maxTtlNs: 60n * minuteNs };
  const settings = { ...harness.deps.settings, tokenLimits };
  const door = createOperations({ ...harness.deps, settings });
  const endOf = async (authMethod: string): Promise<string | undefined> => {
    const input = { authMethod, bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
    return (await door.run('login', input, CALL)).value.token.expirationTime;
  };
  t.equal(await endOf('short'), '2026-01-01T00:02:00.000Z');
  t.equal(await endOf('long'), '2026-01-01T01:00:00.000Z', 'the bound was lowered since');
  t.equal(await endOf('endless'), undefined);
});

t.test('rights: a login is not refused for what is deleted of what it binds', async (t) => {
  const harness = await createHarness();
  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const { value } = await harness.run('role.create', { draft: { name: 'ops' } });
  for (const rule of [
    { bindType: 'role', bindName: 'ops' },
    { bindType: 'service', bindName: 'web' },
  ]) {
    await harness.run('binding-rule.create', { draft: { ...rule, authMethod: 'm' } });
  }
  let isDeleted = false;
  const door = slowDoor(harness, async () => {
    if (isDeleted) return;
    isDeleted = true;
    const { proposals } = harness;
    void harness.run('role.delete', { id: value.role.id });
    while (harness.proposals === proposals) await Promise.resolve();
  });
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  const { token, roles } = (await door.run('login', input, CALL)).value;
  t.same(roles, []);
  t.match(token.serviceIdentities, [{ serviceName: 'web' }]);
});

t.test(
  'rights: a login by OpenID waits for its binding rules, though its state is used up',
  async (t) => {
    const harness = await createHarness();
    const method = { name: 'm', type: 'oidc', config: {}, maxTokenTtlNs: 60_000_000_000n };
    await harness.run('auth-method.create', { draft: method });
    const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
    const { value } = await harness.run('binding-rule.create', { draft: rule });
    const { authMethods } = harness.deps;
    const meanwhile = (): unknown =>
      harness.run('binding-rule.update', {
        id: value.rule.id,
        draft: { ...rule, bindName: 'less' },
      });
    const oidcFlow: typeof authMethods.oidcFlow = {
      ...authMethods.oidcFlow,
      callback: async (given) => {
        const identity = await authMethods.oidcFlow.callback(given);
        const { proposals } = harness;
        meanwhile();
        while (harness.proposals === proposals) await Promise.resolve();
        return identity;
      },
    };
    const door = createOperations({ ...harness.deps, authMethods: { ...authMethods, oidcFlow } });
    const common = { authMethod: 'm', clientNonce: 'n', namespace: undefined };
    const begin = () =>
      door.run('oidc.auth-url', { ...common, redirectUri: 'https://me', meta: {} }, CALL);
    const end = () =>
      door.run('oidc.callback', { ...common, state: 'state-1', code: '{"name":"eve"}' }, CALL);
    await begin();
    const { token } = (await end()).value;
    t.match(token.serviceIdentities, [{ serviceName: 'less' }], 'by the rule as it is then');
    t.equal(
      await refusalOf(end()),
      'login-refused: the login state is unknown or has expired',
      'a state works once',
    );
  },
);

t.test('rights: who is asked about an auth method cannot delay it past a revocation', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const policies = [{ id: await newPolicy(harness, 'admin', 'acl = "write"', 'team') }];
  const { accessorId, secretId } = await newToken(harness, { namespace: 'team', policies });
  const call = { ...CALL, secret: secretId, namespaceParameter: 'team' };
  const draft = { name: 'm', type: 'jwt', config: {} };
  let meanwhile: () => Promise<unknown> = async () => undefined;
  const door = slowDoor(harness, () => meanwhile());
  t.equal(await refusalOf(door.run('auth-method.create', { draft }, call)), 'ok');
  meanwhile = () => harness.run('token.update', { accessorId, draft: { policies: [] } });
  const late = door.run('auth-method.update', { name: 'm', draft }, call);
  t.match(await refusalOf(late), /^permission-denied: /);
});

t.test('rights: an auth method is checked as the type that it has in the end', async (t) => {
  const harness = await createHarness();
  const method = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: method });
  const { authMethods } = harness.deps;
  const { jwt } = authMethods.types;
  const checkConfig = async (): Promise<void> => {
    await harness.run('auth-method.delete', { name: 'm' });
    await harness.run('auth-method.create', { draft: { ...method, type: 'kubernetes' } });
  };
  const types = { ...authMethods.types, jwt: { ...jwt, checkConfig } };
  const door = createOperations({ ...harness.deps, authMethods: { ...authMethods, types } });
  const bad = { name: 'm', draft: { config: { bad: true } } };
  t.match(await refusalOf(door.run('auth-method.update', bad, CALL)), /^invalid: .* bad Config/);
});

t.test('rights: a login token does nothing behind the end of its method', async (t) => {
  const harness = await createHarness();
  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  await newPolicy(harness, 'admin', 'acl = "write"');
  const rule = { authMethod: 'm', bindType: 'policy', bindName: 'admin' };
  await harness.run('binding-rule.create', { draft: rule });
  const input = { authMethod: 'm', bearerToken: '{"name":"eve"}', meta: {}, namespace: undefined };
  const { value } = await harness.run('login', input);
  const secret = value.token.secretId;
  t.equal(await refusalOf(harness.run('token.create', { draft: {} }, { secret })), 'ok');
  const deleted = refusalOf(harness.run('auth-method.delete', { name: 'm' }));
  const behind = refusalOf(harness.run('token.create', { draft: {} }, { secret }));
  t.equal(await deleted, 'ok');
  t.match(await behind, /^token-unknown: /);
});

t.test('the cache: a token that was just read is read anew after every change', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'before', '');
  const ttl = { expirationTtlNs: 60_000_000_000n, policies: [{ id: policy }] };
  const { accessorId } = await newToken(harness, ttl);
  const read = async (id = accessorId): Promise<unknown> => {
    const { value, refusal } = await harness.run('token.read', { accessorId: id, expanded: false });
    if (value === undefined) return refusal.code;
    const { token, policies, roles } = value;
    return [token.description, ...[...policies, ...roles].map(({ name }) => name)];
  };
  const { id: role } = (await harness.run('role.create', { draft: { name: 'one' } })).value.role;
  const holder = (await newToken(harness, { roles: [{ id: role }] })).accessorId;
  t.same(await read(holder), ['', 'one']);
  await harness.run('role.update', { id: role, draft: { name: 'two' } });
  t.same(await read(holder), ['', 'two'], 'a role of it has another name');
  await harness.run('role.delete', { id: role });
  t.same(await read(holder), [''], 'a role of it is gone');
  t.same(await read(), ['', 'before']);
  await harness.run('policy.update', { id: policy, draft: { name: 'after', rules: '' } });
  t.same(await read(), ['', 'after'], 'a policy of it has another name');
  const draft = { description: 'changed', policies: [{ id: policy }] };
  await harness.run('token.update', { accessorId, draft });
  t.same(await read(), ['changed', 'after']);
  await harness.run('policy.delete', { id: policy });
  t.same(await read(), ['changed'], 'a policy of it is gone');
  harness.clock.advance(60_001);
  t.equal(await read(), 'token-not-found', 'its time has passed');

  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  await harness.run('binding-rule.create', { draft: rule });
  const login = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace: undefined };
  const made = (await harness.run('login', login, { secret: undefined })).value.token.accessorId;
  t.not(await read(made), 'token-not-found');
  await harness.run('auth-method.delete', { name: 'm' });
  t.equal(await read(made), 'token-not-found', 'its method is gone');

  const last = (await newToken(harness, { description: 'last' })).accessorId;
  t.same(await read(last), ['last']);
  await harness.run('token.delete', { accessorId: last });
  t.equal(await read(last), 'token-not-found');
});

t.test('the cache: agrees with a fresh one after any history', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(11), { minLength: 5, maxLength: 15 }), async (steps) => {
      const harness = await createHarness();
      const ids = [await newPolicy(harness, 'p0', ''), await newPolicy(harness, 'p1', '')];
      const role = (await harness.run('role.create', { draft: { name: 'r' } })).value.role.id;
      const tokens = [await newToken(harness), await newToken(harness, { roles: [{ id: role }] })];
      const levels = ['read', 'write', 'deny'];
      for (const [place, step] of steps.entries()) {
        const id = ids[step % 2]!;
        const { accessorId } = tokens[step % 2]!;
        const rules = `acl = "${levels[place % 3]}"`;
        const roles = place % 2 === 0 ? [{ id: role }] : [];
        if (step < 4) {
          await harness.run('policy.update', { id, draft: { name: `p${step % 2}`, rules } });
        } else if (step < 7) {
          await harness.run('role.update', { id: role, draft: { name: 'r', policies: [{ id }] } });
        } else {
          await harness.run('token.update', {
            accessorId,
            draft: { roles, policies: step > 9 ? [{ id }] : [] },
          });
        }
        for (const { secretId } of tokens) {
          const kept = (await askOften(harness, secretId)) === 'ok';
          const { view, clock, metrics, settings } = harness.deps;
          const fresh = new CallerResolver({ view, clock, metrics, settings });
          const query = {
            resource: 'acl',
            access: 'read',
            segment: '',
            namespace: tokens[0]!.namespace,
          } as const;
          const decided = fresh.resolve(secretId).authorizer.decide(query) === 'allow';
          if (kept !== decided) return false;
        }
      }
      return true;
    }),
    { numRuns: 5 },
  );
  t.pass();
});

t.test('the cache: tokens with the same links share one authorizer', async (t) => {
  const harness = await createHarness();
  const policies = [{ id: await newPolicy(harness, 'p', 'acl = "read"') }];
  const { view, clock, metrics, settings } = harness.deps;
  const resolver = new CallerResolver({ view, clock, metrics, settings });
  const resolve = async (draft: object) =>
    resolver.resolve((await newToken(harness, draft)).secretId);
  const [one, two] = [await resolve({ policies }), await resolve({ policies })];
  t.equal(one.authorizer, two.authorizer);
  t.not(one.token.accessorId, two.token.accessorId);
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const { value } = await harness.run('role.create', { draft: { name: 'r' } });
  const templatedPolicies = [{ templateName: 'builtin/service', variables: { name: 'web' } }];
  const others = {
    nothing: {},
    'a role': { policies, roles: [{ id: value.role.id }] },
    'a service': { policies, serviceIdentities: [{ serviceName: 'web' }] },
    'another service': { policies, serviceIdentities: [{ serviceName: 'api' }] },
    'a node': { policies, nodeIdentities: [{ nodeName: 'web', datacenter: 'dc1' }] },
    'a template': { policies, templatedPolicies },
    'another namespace': { policies, namespace: 'team' },
  };
  const seen = new Set([one.authorizer]);
  for (const [what, draft] of Object.entries(others)) {
    const { authorizer } = await resolve(draft);
    t.notOk(seen.has(authorizer), what);
    seen.add(authorizer);
  }
});

/** One that finds tokens by this. */
function resolverOver({ deps }: Harness, tokenBySecret: (secret: SecretId) => unknown) {
  const { view, clock, metrics, settings } = deps;
  const counting = new Proxy(view, {
    get: (state, name) => {
      if (name === 'tokenBySecret') return tokenBySecret;
      const value: unknown = Reflect.get(state, name, state);
      return typeof value === 'function' ? value.bind(state) : value;
    },
  });
  return new CallerResolver({ view: counting, clock, metrics, settings });
}

t.test('the cache: a token is kept; where there is no room, from its second use on', async (t) => {
  const harness = await createHarness();
  const { view } = harness.deps;
  const { secretId, accessorId } = await newToken(harness);
  const stored = view.tokenBySecret(secretId);
  let reads = 0;
  const read = (secret: SecretId) => {
    reads += 1;
    const other = { ...stored, secretId: secret, accessorId: secret };
    return secret.startsWith('other') ? other : view.tokenBySecret(secret);
  };
  const resolver = resolverOver(harness, read);
  const readsOf = (uses: number): number => {
    const before = reads;
    for (let use = 0; use < uses; use += 1) resolver.resolve(secretId);
    return reads - before;
  };
  const key = accessorId.toLowerCase();
  const change = { table: 'tokens', key, watchKeys: [key] } as const;
  t.equal(readsOf(3), 1);
  resolver.onApplied({ kind: 'changed', changes: [change] });
  t.equal(readsOf(3), 1, 'read anew when it was changed');
  resolver.onApplied({ kind: 'changed', changes: [change] });
  for (let other = 0; other < 20_000; other += 1) resolver.resolve(`other ${other}` as SecretId);
  t.equal(readsOf(3), 2);
  resolver.onApplied({ kind: 'changed', changes: [change] });
  t.equal(readsOf(1), 1, 'read anew when it was changed');
});

t.test('the cache: tokens with very long texts take turns', async (t) => {
  const harness = await createHarness();
  const { view } = harness.deps;
  const { secretId } = await newToken(harness);
  const stored = view.tokenBySecret(secretId);
  const long = 'd'.repeat(1_000_000);
  const datacenters = [long];
  const template = { templateId: 'id', templateName: 'builtin/dns', variables: undefined };
  for (const texts of [
    { description: long },
    { serviceIdentities: [{ serviceName: 'web', datacenters }] },
    { nodeIdentities: [{ nodeName: 'n1', datacenter: long }] },
    { templatedPolicies: [{ ...template, datacenters }] },
  ]) {
    let reads = 0;
    const read = (secret: SecretId) => {
      reads += 1;
      return { ...stored, secretId: secret, accessorId: secret, ...texts };
    };
    const resolver = resolverOver(harness, read);
    for (let other = 0; other < 100; other += 1) resolver.resolve(`other ${other}` as SecretId);
    const before = reads;
    for (let other = 0; other < 100; other += 1) resolver.tokenOf(`other ${other}` as SecretId);
    const names = Object.keys(texts).join();
    t.ok(reads - before > 80, `${names}: 16 or so are kept: ${reads - before} read again`);
  }
});

t.test('the cache: rights whose links are very long take turns', (t) => {
  const namespace = 'default' as NamespaceName;
  const nothing = () => undefined;
  const view = { policy: nothing, role: nothing, namespace: nothing };
  const cache = new RightsCache(view as never, { datacenter: 'dc1', defaultPolicy: 'deny' });
  const datacenters = ['d'.repeat(1_000_000)];
  const held = Array.from({ length: 100 }, (_, place) =>
    cache.rightsOf({
      ...{ namespace, policies: [], roles: [], ...NO_IDENTITIES },
      serviceIdentities: [{ serviceName: `s${place}`, datacenters }],
    }),
  );
  const kept = held.filter(({ isCurrent }) => isCurrent).length;
  t.ok(kept > 30 && kept < 42, `forty megabytes of them: ${kept}`);
  t.end();
});

t.test('the cache: very many rules take turns, and none is behind a change', async (t) => {
  const rules = Array.from({ length: 30_000 }, (_, place) => `key "${place}" { policy = "read" }`);
  const long = rules.join('\n');
  const policies = Array.from({ length: 70 }, (_, number) => aPolicy(number, { rules: long }));
  const state = new Map(policies.map((policy) => [policy.id, policy]));
  const namespace = 'default' as NamespaceName;
  const nothing = () => undefined;
  const role = { namespace, policies: [policies[0]!.id], ...NO_IDENTITIES };
  const policy = (id: PolicyId) => state.get(id);
  const view = { policy, role: (id: RoleId) => ({ ...role, id, name: id }), namespace: nothing };
  const cache = new RightsCache(view as never, { datacenter: 'dc1', defaultPolicy: 'deny' });
  const rightsOf = (
    serviceName: string,
    links: readonly { readonly id: PolicyId }[],
    roles: readonly RoleId[] = [],
  ) =>
    cache.rightsOf({
      namespace,
      policies: links.map(({ id }) => id),
      roles,
      serviceIdentities: [{ serviceName, datacenters: [] }],
      nodeIdentities: [],
      templatedPolicies: [],
    });
  const one = policies.slice(0, 1);
  const held = Array.from({ length: 100 }, (_, place) => rightsOf(`s${place}`, one));
  const kept = held.filter(({ isCurrent }) => isCurrent).length;
  t.ok(kept > 50 && kept < 70, `two million rules in all, of 30,000 each: ${kept}`);
  t.throws(() => held[0]?.authorizer, 'whoever holds what was dropped keeps nothing alive');
  t.equal(rightsOf('s0', one).isCurrent, true);
  const all = rightsOf(
    'all',
    [],
    policies.map((_, number) => `role ${number}` as RoleId),
  );
  t.equal(all.isCurrent, true, 'also what is larger than all may be together');
  const [first] = one;
  const changed = { ...first!, rules: 'key "1" { policy = "deny" }' };
  state.set(changed.id, changed);
  cache.forget(dependencyOf('policies', changed.id));
  t.equal(all.isCurrent, false, 'also that is told of a change');
  const query = { resource: 'key', access: 'read', segment: '1', namespace } as const;
  t.equal(rightsOf('all', one).authorizer.decide(query), 'deny');
});

t.test('links: those that are kept are told from new ones, however many there are', async (t) => {
  // Who looks through all of them for each of them does not end.
  const policies = Array.from({ length: 500_000 }, (_, place) => `policy ${place}` as PolicyId);
  const view = { policy: () => ({ namespace: 'team' }), role: () => undefined };
  const links = (ids: readonly PolicyId[]) => ({ policies: ids, roles: [] });
  const { deps } = await createHarness();
  const caller = new CallerResolver(deps).resolve(undefined);
  const change = { before: links(policies), after: links([...policies].reverse()), key: 'key' };
  t.strictSame(requireMayAdd(view as never, caller, change), ['key'], 'all of them are kept');
  const more = { ...change, after: links([...policies, 'another' as PolicyId]) };
  t.throws(() => requireMayAdd(view as never, caller, more), /namespace team/);
});

const NO_IDENTITIES = { serviceIdentities: [], nodeIdentities: [], templatedPolicies: [] };

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

t.test(
  'the cache: a local token is void as soon as its namespace is known to be lost',
  async (t) => {
    const harness = await createHarness();
    const { view, clock, metrics, settings } = harness.deps;
    let lostUpTo = 0;
    const losing = new Proxy(view, {
      get: (state, name) => {
        if (name === 'namespaceLostUpTo') return () => lostUpTo;
        const value: unknown = Reflect.get(state, name, state);
        return typeof value === 'function' ? value.bind(state) : value;
      },
    });
    const resolver = new CallerResolver({ view: losing, clock, metrics, settings });
    const token = await newToken(harness, { local: true });
    for (let use = 0; use < 3; use += 1) {
      t.equal(resolver.resolve(token.secretId).token.accessorId, token.accessorId);
    }
    // As the entry that deletes it arrives from the primary.
    lostUpTo = token.createIndex;
    const change = { table: 'namespaces', key: 'default', watchKeys: ['default'] } as const;
    resolver.onApplied({ kind: 'changed', changes: [change] });
    t.throws(() => resolver.resolve(token.secretId), { code: 'token-unknown' });
    // And where a whole state came from the primary.
    lostUpTo = 0;
    resolver.onApplied({ kind: 'replaced' });
    t.equal(resolver.resolve(token.secretId).token.accessorId, token.accessorId);
    lostUpTo = token.createIndex;
    resolver.onApplied({ kind: 'replaced' });
    t.throws(() => resolver.resolve(token.secretId), { code: 'token-unknown' });
  },
);

t.test('the cache: nothing is left of a state when another one takes its place', async (t) => {
  // Two datacenters in which the same ids are drawn.
  const harnesses = [await createHarness(), await createHarness()] as const;
  const [before, after] = harnesses;
  const made = async (harness: Harness, rules: string) => {
    const policy = await newPolicy(harness, rules === '' ? 'empty' : 'reading', rules);
    const policies = [{ id: policy }];
    const { value } = await harness.run('role.create', {
      draft: { name: `${rules === '' ? 'empty' : 'reading'}-role`, policies },
    });
    const roles = [{ id: value.role.id }];
    return { policy, role: value.role.id, token: await newToken(harness, { roles }) };
  };
  const old = await made(before, 'acl = "read"');
  const fresh = await made(after, '');
  t.same([fresh.policy, fresh.role], [old.policy, old.role]);
  t.equal(fresh.token.secretId, old.token.secretId);
  const gone = await newToken(before, { description: 'gone' });
  let state = before.machine;
  const view = new Proxy(before.deps.view, {
    get: (_view, name) => {
      const value: unknown = Reflect.get(state, name, state);
      return typeof value === 'function' ? value.bind(state) : value;
    },
  });
  const { clock, metrics, settings } = before.deps;
  const resolver = new CallerResolver({ view, clock, metrics, settings });
  const names = new LinkNames(view);
  const namespace = DEFAULT_NAMESPACE;
  const query = { resource: 'acl', access: 'read', segment: '', namespace } as const;
  const decide = () => resolver.resolve(old.token.secretId).authorizer.decide(query);
  const shown = () => [...names.policies([old.policy as PolicyId]), ...names.roles([old.role])];
  t.equal(decide(), 'allow');
  t.equal(resolver.resolve(gone.secretId).token.description, 'gone');
  t.same(
    shown().map(({ name }) => name),
    ['reading', 'reading-role'],
  );
  state = after.machine;
  resolver.onApplied({ kind: 'replaced' });
  names.onApplied({ kind: 'replaced' });
  t.equal(decide(), 'deny', 'rights are those of the state as it is now');
  t.throws(() => resolver.resolve(gone.secretId), { code: 'token-unknown' });
  t.same(
    shown().map(({ name }) => name),
    ['empty', 'empty-role'],
  );
});

t.test('the cache: a token whose id was chosen in capitals ends with its deletion', async (t) => {
  const harness = await createHarness();
  const policies = [{ id: await newPolicy(harness, 'reading', 'acl = "read"') }];
  const accessorId = ID.toUpperCase();
  const { secretId } = await newToken(harness, { accessorId, policies });
  t.equal(await askOften(harness, secretId), 'ok');
  await harness.run('token.update', { accessorId: ID, draft: {} });
  t.match(await ask(harness, 'policy.list', secretId), /^permission-denied/);
  await harness.run('token.delete', { accessorId: ID });
  t.match(await ask(harness, 'policy.list', secretId), /^token-unknown/);
});

t.test('the cache: auth methods of one name in two namespaces are two', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const secrets: SecretId[] = [];
  for (const namespace of ['default', 'team']) {
    const draft = { name: 'm', type: 'jwt', config: {}, namespace };
    await harness.run('auth-method.create', { draft });
    const rule = { authMethod: 'm', bindType: 'service', bindName: 'web', namespace };
    await harness.run('binding-rule.create', { draft: rule });
    const login = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace };
    secrets.push((await harness.run('login', login, { secret: undefined })).value.token.secretId);
  }
  const [own, ofTeam] = secrets as [SecretId, SecretId];
  const isKnown = async (secret: SecretId) =>
    !/^token-unknown/.test(await ask(harness, 'policy.list', secret));
  t.same([await isKnown(own), await isKnown(ofTeam)], [true, true]);
  await harness.run('auth-method.delete', { name: 'm' }, { namespaceParameter: 'team' });
  t.same([await isKnown(own), await isKnown(ofTeam)], [true, false]);
});

t.test('placement: by scope, locality and where the leader is', async (t) => {
  const primary = { datacenter: 'dc1', primaryDatacenter: 'dc1', isLeader: true };
  const secondary = { datacenter: 'dc2', primaryDatacenter: 'dc1', isLeader: true };
  const here = { kind: 'here' };
  const atPrimary = { kind: 'datacenter', name: 'dc1' };
  const cases = [
    ['policy.create', undefined, primary, undefined, here],
    ['policy.create', undefined, secondary, undefined, atPrimary],
    ['policy.create', undefined, { ...primary, isLeader: false }, undefined, { kind: 'leader' }],
    ['policy.read', undefined, { ...secondary, isLeader: false }, undefined, here],
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
