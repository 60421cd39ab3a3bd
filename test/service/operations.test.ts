// The use cases over the real state machine: texts and codes, redaction, namespaces, links, lists,
// idempotency. Who may do what is rights.test.ts.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { GLOBAL_MANAGEMENT_ID, type NamespaceName, type SecretId } from '../../src/acl/ids.ts';
import { OIDC_PENDING_MS, type OidcFlow, type PendingLogin } from '../../src/auth-methods/oidc.ts';
import type { AuthorizationItem } from '../../src/service/authorization-types.ts';
import { RULES_OF_METHOD_MAX } from '../../src/service/binding-rules.ts';
import { createOperations } from '../../src/service/create-operations.ts';
import type { ServiceDeps } from '../../src/service/deps.ts';
import {
  type DutyMemory,
  ensureBuiltins,
  REAP_BATCH_MAX,
  reapOnce,
} from '../../src/service/duties.ts';
import { VoidTokenRounds } from '../../src/service/void-token-rounds.ts';
import { RequestAges } from '../../src/service/request-ages.ts';
import type { OperationInput } from '../../src/service/operations.ts';
import { PendingLogins } from '../../src/service/pending-logins.ts';
import { POSITION_WAIT_MS } from '../../src/service/position-waiters.ts';
import { NEWEST_LEVEL } from '../../src/state/feature-levels.ts';
import type { Page } from '../../src/state/view.ts';
import { watchKey } from '../../src/state/watch.ts';
import {
  allOf,
  authMethods,
  CALL,
  createHarness,
  type Harness,
  newPolicy,
  newToken,
  refusalOf,
  ROOT,
  secretWith,
} from './harness.ts';

const NOBODY = 'ffffffff-0000-4000-8000-000000000000';
/** A template of binding rules. */
const ATTRIBUTE = ['$', '{value.name}'].join('');
const NO_METHOD = 'permission-denied: ACL not found: auth method "m" not found';
const NO_FILTER = {
  policy: undefined,
  role: undefined,
  serviceName: undefined,
  authMethod: undefined,
  authMethodNamespace: undefined,
  page: {},
};

function tokenList(
  harness: Harness,
  input: Partial<OperationInput<'token.list'>> = {},
  call: Parameters<Harness['run']>[2] = {},
) {
  return harness.run('token.list', { ...NO_FILTER, ...input }, call);
}

async function descriptions(running: ReturnType<typeof tokenList>): Promise<string[]> {
  return (await allOf(await running)).map(({ token }) => token.description).sort(byText);
}

function byText(left: string, right: string): number {
  return left < right ? -1 : 1;
}

function newMethod(harness: Harness, name: string, more: object = {}) {
  return harness.run('auth-method.create', {
    draft: { name, type: 'jwt', config: {}, ...more },
  });
}

function bind(harness: Harness, authMethod: string, bindType: string, bindName: string) {
  return harness.run('binding-rule.create', { draft: { authMethod, bindType, bindName } });
}

async function logIn(harness: Harness, authMethod: string, claims: object = { name: 'web' }) {
  const input = { authMethod, bearerToken: JSON.stringify(claims), meta: {}, namespace: undefined };
  return (await harness.run('login', input, { secret: undefined })).value.token;
}

t.test('secrets: what each kind of secret gives', async (t) => {
  const harness = await createHarness();
  const { clock } = harness;
  const expiring = await newToken(harness, { expirationTtlNs: 60_000_000_000n });
  const plain = await newToken(harness);
  const read = (secret: string | undefined) =>
    refusalOf(harness.run('policy.list', { page: {} }, { secret: secret as SecretId | undefined }));
  const anonymous =
    "permission-denied: Permission denied: anonymous token lacks permission 'acl:read'. The anonymous token is used implicitly when a request does not specify a token.";
  t.equal(await read(undefined), anonymous);
  t.equal(await read('anonymous'), anonymous);
  t.equal(await read(NOBODY), 'token-unknown: ACL not found');
  for (const word of ['allow', 'deny', 'manage']) {
    t.equal(await read(word), 'invalid: Cannot resolve root ACL', word);
  }
  const lacks = (accessorId: string) =>
    `permission-denied: Permission denied: token with AccessorID '${accessorId}' lacks permission 'acl:read'`;
  t.equal(await read(plain.secretId), lacks(plain.accessorId));
  t.equal(await read(expiring.secretId), lacks(expiring.accessorId));
  clock.advance(60_001);
  t.equal(await read(expiring.secretId), 'token-unknown: ACL not found', 'expired is unknown');
  t.equal(harness.counts.get('acl.denied permission-denied'), 4);
  t.equal(harness.counts.get('acl.denied token-unknown'), 2);
});

t.test('secrets: an unknown one before the bootstrap is told what is missing', async (t) => {
  const harness = await createHarness({ initialManagementSecret: undefined });
  t.equal(
    await refusalOf(harness.run('policy.list', { page: {} })),
    'token-unknown: ACL system must be bootstrapped before making any requests that require authorization: ACL not found',
  );
});

t.test('acl.enabled false: every operation is refused', async (t) => {
  const harness = await createHarness({ aclEnabled: false });
  for (const running of [
    harness.run('bootstrap', { secret: undefined }),
    harness.run('replication.status', {}),
    harness.run('policy.list', { page: {} }),
  ]) {
    t.equal(await refusalOf(running), 'acl-disabled: ACL support disabled');
  }
});

t.test('missing objects: reads, updates and deletes say which and how', async (t) => {
  const harness = await createHarness();
  const missing = (kind: string) => `not-found: Requested ${kind} does not exist: ACL not found`;
  const uuid = (kind: string) =>
    `invalid: failed acl ${kind} lookup: index error: UUID must be 36 characters`;
  const draft = { name: 'x' };
  const cases: readonly [string, Promise<unknown>, string][] = [
    ['policy', harness.run('policy.read', { id: NOBODY }), missing('policy')],
    ['policy id', harness.run('policy.read', { id: 'x' }), uuid('policy')],
    ['policy name', harness.run('policy.read-by-name', { name: 'x' }), missing('policy')],
    ['role', harness.run('role.read', { id: NOBODY }), missing('role')],
    ['role id', harness.run('role.read', { id: 'x' }), uuid('role')],
    ['role name', harness.run('role.read-by-name', { name: 'x' }), missing('role')],
    ['rule', harness.run('binding-rule.read', { id: NOBODY }), missing('binding rule')],
    ['rule id', harness.run('binding-rule.read', { id: 'x' }), uuid('binding rule')],
    ['method', harness.run('auth-method.read', { name: 'x' }), missing('auth method')],
    ['namespace', harness.run('namespace.read', { name: 'x' }), missing('namespace')],
    [
      'policy in ns',
      harness.run('policy.read', { id: NOBODY }, { namespaceParameter: 'default' }),
      'not-found: Requested policy not found in namespace default: ACL not found',
    ],
    [
      'token',
      harness.run('token.read', { accessorId: NOBODY, expanded: false }),
      'token-not-found: token does not exist: ACL not found',
    ],
    ['token id', harness.run('token.read', { accessorId: 'x', expanded: false }), uuid('token')],
    [
      'clone',
      harness.run('token.clone', {
        accessorId: NOBODY,
        description: undefined,
        namespace: undefined,
      }),
      'token-not-found: token does not exist: ACL not found',
    ],
    [
      'token update',
      harness.run('token.update', { accessorId: NOBODY, draft: {} }),
      `update-target-missing: Cannot find token "${NOBODY}"`,
    ],
    [
      'policy update',
      harness.run('policy.update', { id: NOBODY, draft }),
      `update-target-missing: cannot find policy ${NOBODY}`,
    ],
    [
      'role update',
      harness.run('role.update', { id: NOBODY, draft }),
      `update-target-missing: cannot find role ${NOBODY}`,
    ],
    [
      'rule update',
      harness.run('binding-rule.update', { id: NOBODY, draft: {} }),
      `update-target-missing: cannot find binding rule ${NOBODY}`,
    ],
    [
      'template',
      harness.run('templated-policy.read', { name: 'x' }),
      'malformed: Invalid templated policy Name: x',
    ],
    [
      'preview',
      harness.run('templated-policy.preview', { name: 'x', variables: { name: undefined } }),
      'malformed: templated policy "x" does not exist',
    ],
  ];
  for (const [what, running, expected] of cases) t.equal(await refusalOf(running), expected, what);
  const proposals = harness.proposals;
  for (const running of [
    harness.run('token.delete', { accessorId: NOBODY }),
    harness.run('policy.delete', { id: NOBODY }),
    harness.run('role.delete', { id: NOBODY }),
    harness.run('binding-rule.delete', { id: NOBODY }),
    harness.run('auth-method.delete', { name: 'x' }),
    harness.run('namespace.delete', { name: 'x' }),
  ]) {
    t.equal((await running).value, false, 'a delete of nothing is no failure');
  }
  t.equal(harness.proposals, proposals, 'and reaches no log');
});

t.test('tokens: made, read, changed, cloned, deleted', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'reader', 'acl = "read"');
  const created = await harness.run('token.create', {
    draft: { description: 'one', policies: [{ name: 'READER' }] },
  });
  const { token, policies, secretHidden } = created.value;
  t.same(policies, [{ id: policy, name: 'reader' }]);
  t.equal(secretHidden, false);
  t.equal(token.modifyIndex, created.meta.index);
  t.equal(created.meta.ack, 'primary');
  const { accessorId } = token;
  const read = await harness.run('token.read', {
    accessorId: accessorId.toUpperCase(),
    expanded: false,
  });
  t.same(read.value?.token, token);
  t.same(read.meta.watch, { table: 'tokens', object: watchKey({ id: accessorId }) });
  const updated = await harness.run('token.update', { accessorId, draft: { description: 'two' } });
  t.same(updated.value.policies, [], 'an update replaces the links');
  t.equal(updated.value.token.secretId, token.secretId);
  const clone = await harness.run('token.clone', {
    accessorId,
    description: '',
    namespace: undefined,
  });
  t.equal(clone.value.token.description, 'two');
  t.not(clone.value.token.secretId, token.secretId);
  t.equal((await harness.run('token.delete', { accessorId })).value, true);
  t.equal((await harness.run('token.delete', { accessorId })).value, false);
  t.equal(harness.counts.get('acl.token.upsert'), 2);
});

t.test('tokens: refusals of deletes, clones and expired ones', async (t) => {
  const harness = await createHarness();
  const secret = await secretWith(harness, 'acl = "write"');
  const own = (await harness.run('token.read-self', {}, { secret })).value?.token;
  const remove = (accessorId: string) =>
    refusalOf(harness.run('token.delete', { accessorId }, { secret }));
  t.equal(
    await remove(own?.accessorId ?? ''),
    "invalid: Deletion of the request's authorization token is not permitted",
  );
  t.equal(
    await remove('00000000-0000-0000-0000-000000000002'),
    'invalid: Delete operation not permitted on the anonymous token',
  );
  t.equal(await remove('x'), 'invalid: Accessor ID is missing or an invalid UUID');
  const draft = { description: 'brief', expirationTtlNs: 60_000_000_000n };
  const { accessorId, secretId } = await newToken(harness, draft);
  harness.clock.advance(60_001);
  t.equal(
    await refusalOf(harness.run('token.read', { accessorId, expanded: false })),
    'token-not-found: token has expired: ACL not found',
  );
  t.equal(
    await refusalOf(
      harness.run('token.clone', { accessorId, description: '', namespace: undefined }),
    ),
    'token-not-found: token is expired: ACL not found',
  );
  t.equal(
    await refusalOf(harness.run('token.update', { accessorId, draft: {} })),
    `update-target-missing: Cannot find token "${accessorId}"`,
  );
  t.equal(
    await refusalOf(harness.run('token.read-self', {}, { secret: secretId })),
    'token-unknown: token has expired: ACL not found',
  );
  t.notOk((await descriptions(tokenList(harness))).includes('brief'), 'lists leave it out');
  t.equal((await harness.run('token.delete', { accessorId })).value, true, 'it can be deleted');
});

t.test('token self: shows the real secret to whoever has it, and needs no right', async (t) => {
  const harness = await createHarness();
  const token = await newToken(harness);
  const self = await harness.run('token.read-self', {}, { secret: token.secretId });
  t.equal(self.value?.secretHidden, false);
  t.same(self.value?.token, token);
  const unknown = 'token-unknown: token does not exist: ACL not found';
  const none = harness.run('token.read-self', {}, { secret: undefined });
  t.equal(await refusalOf(none), unknown);
  t.equal(
    await refusalOf(harness.run('token.read-self', {}, { secret: NOBODY as SecretId })),
    unknown,
  );
  const anonymous = harness.run('token.read-self', {}, { secret: 'anonymous' as SecretId });
  t.equal((await anonymous).value?.token.description, 'Anonymous Token');
});

t.test('redaction: secrets are hidden from whoever may only read, in that namespace', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const there = await newToken(harness, { namespace: 'team' });
  const here = await newToken(harness);
  const secret = await secretWith(
    harness,
    'acl = "read"\nnamespace "team" {\n  acl = "write"\n}\n',
  );
  const hides = async (accessorId: string, who: SecretId) =>
    (await harness.run('token.read', { accessorId, expanded: false }, { secret: who })).value
      ?.secretHidden;
  t.equal(await hides(here.accessorId, secret), true);
  t.equal(await hides(there.accessorId, secret), false);
  t.equal(await hides(here.accessorId, ROOT), false);
  const all = await allOf(await tokenList(harness, {}, { secret, namespaceParameter: '*' }));
  for (const { token, secretHidden } of all) {
    t.equal(secretHidden, token.namespace !== 'team', token.accessorId);
  }
});

t.test('expanded: names everything that gives rights, and what the node adds', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'direct', '');
  const viaRole = await newPolicy(harness, 'via-role', '');
  const role = await harness.run('role.create', {
    draft: { name: 'r', policies: [{ id: viaRole }], nodeIdentities: [] },
  });
  const byDefault = await newPolicy(harness, 'by-default', '');
  await harness.run('namespace.create', {
    draft: { name: 'team', policyDefaults: [{ id: byDefault }] },
  });
  const { accessorId } = await newToken(harness, {
    namespace: 'team',
    policies: [{ id: policy }],
    roles: [{ name: 'r' }],
    nodeIdentities: [{ nodeName: 'n1', datacenter: 'dc1' }],
  });
  const read = await harness.run('token.read', { accessorId, expanded: true });
  const expanded = read.value?.expanded;
  t.same(
    expanded?.policies.map(({ name }) => name.slice(0, 16)),
    ['direct', 'synthetic-policy', 'via-role', 'by-default'],
  );
  t.same(
    expanded?.roles.map((each) => each.role.id),
    [role.value.role.id],
  );
  t.same(expanded?.namespaceDefaultPolicies, [{ id: byDefault, name: 'by-default' }]);
  t.equal(expanded?.namespaceDefaultRoles, undefined);
  t.match(expanded, { defaultPolicy: 'deny', downPolicy: 'extend-cache', resolvedByNode: 'n1' });
});

t.test(
  'expanded: not of a token that leads to very much, which has no rights either',
  async (t) => {
    const harness = await createHarness();
    const description = 'x'.repeat(1_000_000);
    const policies: { id: string }[] = [];
    for (let number = 0; number < 9; number += 1) {
      const draft = { name: `p${number}`, description };
      policies.push({ id: (await harness.run('policy.create', { draft })).value.policy.id });
    }
    const { accessorId, secretId: secret } = await newToken(harness, { policies });
    const expanded = () => refusalOf(harness.run('token.read', { accessorId, expanded: true }));
    t.match(await expanded(), /^invalid: it cannot be expanded: the links of the token, /);
    const asked = { items: [], explain: false };
    const authorize = () => refusalOf(harness.run('authorize', asked, { secret }));
    t.match(await authorize(), /^permission-denied: Permission denied: the links of the token, /);
    t.equal(await refusalOf(harness.run('token.read', { accessorId, expanded: false })), 'ok');
    t.equal(await refusalOf(harness.run('token.read-self', {}, { secret })), 'ok');
    await harness.run('policy.delete', { id: policies[0]!.id });
    t.equal(await authorize(), 'ok');
    t.equal(await expanded(), 'ok');
  },
);

t.test('links: resolve in the own namespace, then in default, and nowhere else', async (t) => {
  const harness = await createHarness();
  for (const name of ['team', 'other']) await harness.run('namespace.create', { draft: { name } });
  const shared = await newPolicy(harness, 'shared', '');
  const own = await newPolicy(harness, 'shared', '', 'team');
  const foreign = await newPolicy(harness, 'foreign', '', 'other');
  const linked = async (link: object) =>
    (await newToken(harness, { namespace: 'team', policies: [link] })).policies;
  t.same(await linked({ name: 'shared' }), [own]);
  t.same(await linked({ id: shared }), [shared]);
  t.same(await linked({ name: 'GLOBAL-management' }), [GLOBAL_MANAGEMENT_ID]);
  const refused = (draft: object) => refusalOf(newToken(harness, { namespace: 'team', ...draft }));
  t.equal(
    await refused({ policies: [{ name: 'foreign' }] }),
    'invalid: No such ACL policy with name "foreign"',
  );
  t.equal(
    await refused({ policies: [{ id: foreign }] }),
    `invalid: No such ACL policy with ID "${foreign}"`,
  );
  t.equal(await refused({ roles: [{ name: 'x' }] }), 'invalid: No such ACL role with name "x"');
  t.equal(
    await refused({ roles: [{ id: NOBODY }] }),
    `invalid: No such ACL role with ID "${NOBODY}"`,
  );
  t.equal(
    await refusalOf(
      harness.run('role.create', { draft: { name: 'r', policies: [{ id: NOBODY }] } }),
    ),
    `invalid: Failed to apply role upsert request: No such policy with ID: ${NOBODY}`,
  );
});

t.test('links: to what was deleted vanish from reads, and are not copied by a clone', async (t) => {
  const harness = await createHarness();
  const id = await newPolicy(harness, 'p', '');
  const { accessorId } = await newToken(harness, { policies: [{ id }] });
  await harness.run('policy.delete', { id });
  const read = await harness.run('token.read', { accessorId, expanded: false });
  t.same(read.value?.policies, []);
  const clone = await harness.run('token.clone', {
    accessorId,
    description: '',
    namespace: undefined,
  });
  t.same(clone.value.token.policies, []);
});

t.test('namespaces: body, parameter, header, own token, default, in this order', async (t) => {
  const harness = await createHarness();
  for (const name of ['a', 'b', 'c', 'd'])
    await harness.run('namespace.create', { draft: { name } });
  const { secretId } = await newToken(harness, {
    namespace: 'd',
    policies: [{ id: GLOBAL_MANAGEMENT_ID }],
  });
  const place = async (body: string, parameter: string, header: string, secret: SecretId) => {
    const call = { namespaceParameter: parameter, namespaceHeader: header, secret };
    const name = `p-${harness.proposals}`;
    const made = await harness.run('policy.create', { draft: { name, namespace: body } }, call);
    return made.value.policy.namespace;
  };
  t.equal(await place('a', 'b', 'c', secretId), 'a');
  t.equal(await place('', 'b', 'c', secretId), 'b');
  t.equal(await place('', '', 'c', secretId), 'c');
  t.equal(await place('', '', '', secretId), 'd');
  t.equal(await place('', '', '', ROOT), 'default');
  const nowhere = harness.run('policy.create', { draft: { name: 'x', namespace: 'nowhere' } });
  t.equal(await refusalOf(nowhere), 'invalid: Namespace "nowhere" does not exist');
  const everywhere = harness.run('policy.read-by-name', { name: 'x' }, { namespaceParameter: '*' });
  t.equal(await refusalOf(everywhere), 'malformed: Only lists can be asked for all namespaces');
});

t.test('namespaces: an object of another one than the request names is not there', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const id = await newPolicy(harness, 'p', '', 'team');
  const { accessorId } = await newToken(harness, { namespace: 'team' });
  t.equal(await refusalOf(harness.run('policy.read', { id })), 'ok', 'unless it names none');
  const call = { namespaceParameter: 'default' };
  t.equal(
    await refusalOf(harness.run('policy.read', { id }, call)),
    'not-found: Requested policy not found in namespace default: ACL not found',
  );
  t.equal(
    await refusalOf(harness.run('token.read', { accessorId, expanded: false }, call)),
    'token-not-found: token does not exist: ACL not found',
  );
  t.equal((await harness.run('policy.delete', { id }, call)).value, false);
  t.ok(harness.machine.policy(id));
});

t.test('namespaces disabled: each way of naming one is refused', async (t) => {
  const harness = await createHarness({ namespacesEnabled: false });
  const list = (call: object) => refusalOf(harness.run('policy.list', { page: {} }, call));
  t.equal(await list({}), 'ok');
  t.equal(
    await list({ namespaceParameter: 'default' }),
    'malformed: Invalid query parameter: "ns" - Namespaces are not enabled',
  );
  t.equal(
    await list({ namespaceHeader: 'default' }),
    'malformed: Invalid header: "X-Service-Namespace" - Namespaces are not enabled',
  );
  t.equal(
    await refusalOf(newToken(harness, { namespace: 'a' })),
    'malformed: Token decoding failed: json: unknown field "Namespace" - Namespaces are not enabled',
  );
  t.equal(
    await refusalOf(tokenList(harness, { authMethod: 'm', authMethodNamespace: 'a' })),
    'malformed: Invalid query parameter: "authmethod-ns" - Namespaces are not enabled',
  );
  t.equal(
    await refusalOf(harness.run('namespace.list', { page: {} })),
    'malformed: Namespaces are not enabled',
  );
});

t.test('lists: filters, one at a time, and pages that fit together', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'p', '');
  const role = (await harness.run('role.create', { draft: { name: 'r' } })).value.role.id;
  await newToken(harness, { description: 'by policy', policies: [{ id: policy }] });
  await newToken(harness, { description: 'by role', roles: [{ id: role }] });
  await newToken(harness, {
    description: 'by service',
    serviceIdentities: [{ serviceName: 'web' }],
  });
  const dns = { templateName: 'builtin/service', variables: { name: 'web' } };
  await newToken(harness, { description: 'by template', templatedPolicies: [dns] });
  await newMethod(harness, 'login');
  await bind(harness, 'login', 'service', 'api');
  await logIn(harness, 'LOGIN');
  t.same(await descriptions(tokenList(harness, { policy })), ['by policy']);
  t.same(await descriptions(tokenList(harness, { role: role.toUpperCase() })), ['by role']);
  t.same(await descriptions(tokenList(harness, { serviceName: 'WEB' })), [
    'by service',
    'by template',
  ]);
  t.same(await descriptions(tokenList(harness, { authMethod: 'Login' })), [
    'token created via login',
  ]);
  t.same(await descriptions(tokenList(harness, { policy: NOBODY })), []);
  t.equal(
    await refusalOf(tokenList(harness, { policy, role })),
    'invalid: can only filter by one of policy, role, serviceName, or methodName at a time',
  );
  t.equal(
    await refusalOf(tokenList(harness, { policy: 'x' })),
    'invalid: failed acl token lookup: index error: UUID must be 36 characters',
  );
  for (const authMethodNamespace of ['BAD', '*', '-']) {
    t.equal(
      await refusalOf(tokenList(harness, { authMethod: 'login', authMethodNamespace })),
      `malformed: Invalid namespace "${authMethodNamespace}": no namespace has such a name`,
    );
  }
  const whole = (await allOf(await tokenList(harness))).map(({ token }) => token.accessorId);
  t.equal(whole.length, 7);
  t.same(whole, [...whole].sort());
  const paged: string[] = [];
  for (let after: string | undefined, turn = 0; turn < 10; turn += 1) {
    const page = await tokenList(harness, { page: { limit: 2, after } });
    paged.push(...(await allOf(page)).map(({ token }) => token.accessorId));
    after = page.next();
    if (after === undefined) break;
  }
  t.same(paged, whole);
});

t.test(
  'lists: pages of names go on behind the last one, in one namespace and in all',
  async (t) => {
    const harness = await createHarness();
    await harness.run('namespace.create', { draft: { name: 'team' } });
    for (const name of ['Bb', 'aa', 'cc']) await newPolicy(harness, name, '');
    await newPolicy(harness, 'aa', '', 'team');
    for (const call of [{}, { namespaceParameter: '*' }]) {
      const names = (policies: { policy: { namespace: string; name: string } }[]) =>
        policies.map(({ policy }) => `${policy.namespace}/${policy.name}`);
      const whole = names(await allOf(await harness.run('policy.list', { page: {} }, call)));
      const paged: string[] = [];
      for (let after: string | undefined, turn = 0; turn < 10; turn += 1) {
        const page = await harness.run('policy.list', { page: { limit: 1, after } }, call);
        paged.push(...names(await allOf(page)));
        after = page.next();
        if (after === undefined) break;
      }
      t.same(paged, whole);
      t.equal(whole[0], 'default/aa');
    }
  },
);

t.test('ns=*: shows only what lies where the caller may read', async (t) => {
  const harness = await createHarness();
  for (const name of ['a', 'b']) {
    await harness.run('namespace.create', { draft: { name } });
    await newPolicy(harness, `in-${name}`, '', name);
  }
  const list = async (secret: SecretId, limit?: number) => {
    const call = { secret, namespaceParameter: '*' };
    const result = await harness.run('policy.list', { page: { limit } }, call);
    return (await allOf(result)).map(({ policy }) => policy.name);
  };
  const ofB = await secretWith(harness, 'namespace "b" {\n  acl = "read"\n}\n');
  t.same(await list(ofB), ['in-b']);
  t.same(await list(ofB, 1), ['in-b'], 'a page is full of what may be seen');
  t.ok((await list(ROOT)).includes('in-a'));
  const ofNone = await newToken(harness);
  t.match(await refusalOf(list(ofNone.secretId)), /lacks permission 'acl:read'/);
  for (const namespace of ['a', 'b']) {
    await newToken(harness, { namespace });
    const inIt = { namespaceParameter: namespace };
    await harness.run('role.create', { draft: { name: 'r' } }, inIt);
    const method = { name: 'm', type: 'jwt', config: {} };
    await harness.run('auth-method.create', { draft: method }, inIt);
    const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
    await harness.run('binding-rule.create', { draft: rule }, inIt);
  }
  const all = { secret: ofB, namespaceParameter: '*' };
  const ofMethod = { authMethod: 'M', page: {} };
  const shown = {
    tokens: (await allOf(await tokenList(harness, {}, all))).map(({ token }) => token),
    roles: (await allOf(await harness.run('role.list', { policy: undefined, page: {} }, all))).map(
      ({ role }) => role,
    ),
    methods: (await allOf(await harness.run('auth-method.list', { page: {} }, all))).map(
      ({ method }) => method,
    ),
    rules: (await allOf(await harness.run('binding-rule.list', ofMethod, all))).map(
      ({ rule }) => rule,
    ),
  };
  for (const [what, objects] of Object.entries(shown)) {
    t.same(
      objects.map(({ namespace }) => namespace),
      ['b'],
      what,
    );
  }
  const rulesOfB = await secretWith(harness, 'namespace "b" { policy = "read" }');
  const namespaces = await harness.run('namespace.list', { page: {} }, { secret: rulesOfB });
  t.same(
    (await allOf(namespaces)).map(({ namespace }) => namespace.name),
    ['b'],
  );
});

t.test('ns=*: goes by the rights that the caller has behind the names', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const everywhere = (level: string) =>
    `acl = "${level}" namespace_prefix "" { acl = "${level}" policy = "${level}" }`;
  const id = await newPolicy(harness, 'admin', everywhere('write'));
  const { secretId: secret } = await newToken(harness, { policies: [{ id }] });
  const now = (rules: string) =>
    harness.run('policy.update', { id, draft: { name: 'admin', rules } });
  const { machine } = harness;
  const namespaces = machine.namespaces.bind(machine);
  let then = everywhere('write');
  Object.assign(machine, {
    namespaces: async function* (given: Page) {
      yield* namespaces(given);
      await now(then);
    },
  });
  const all = { secret, namespaceParameter: '*' };
  const method = { authMethod: undefined, page: {} };
  const asks = {
    tokens: () => tokenList(harness, {}, all),
    policies: () => harness.run('policy.list', { page: {} }, all),
    roles: () => harness.run('role.list', { policy: undefined, page: {} }, all),
    methods: () => harness.run('auth-method.list', { page: {} }, all),
    rules: () => harness.run('binding-rule.list', method, all),
    namespaces: () => harness.run('namespace.list', { page: {} }, all),
  };
  for (const [what, ask] of Object.entries(asks)) {
    then = '';
    t.match(await refusalOf(ask()), /^permission-denied: /, what);
    await now(everywhere('write'));
  }
  then = everywhere('read');
  const tokens = await allOf(await asks.tokens());
  t.ok(tokens.length > 1);
  t.ok(tokens.every(({ secretHidden }) => secretHidden));
});

t.test('cas: a write happens only on the state that the caller has seen', async (t) => {
  const harness = await createHarness();
  const id = await newPolicy(harness, 'p', '');
  const { modifyIndex } = (await harness.run('policy.read', { id })).value!.policy;
  const draft = { name: 'p', description: 'new' };
  t.match(
    await refusalOf(harness.run('policy.update', { id, draft }, { cas: modifyIndex - 1 })),
    /^cas-mismatch/,
  );
  t.equal(await refusalOf(harness.run('policy.update', { id, draft }, { cas: modifyIndex })), 'ok');
  t.match(
    await refusalOf(harness.run('policy.delete', { id }, { cas: modifyIndex })),
    /^cas-mismatch/,
  );
});

t.test('tokens: of two creates at once with one chosen id, one is made', async (t) => {
  const harness = await createHarness();
  const fields = ['accessorId', 'secretId'] as const;
  const pairs = fields.flatMap((first) => fields.map((second) => [first, second] as const));
  for (const [place, [first, second]] of pairs.entries()) {
    const id = NOBODY.replace('f', `${place}`);
    const make = (field: string) =>
      refusalOf(harness.run('token.create', { draft: { [field]: id } }));
    const [one, two] = await Promise.all([make(first), make(second)]);
    t.equal(one, 'ok', `${first}, then ${second}`);
    t.match(two, /^duplicate/, `${first}, then ${second}`);
  }
});

t.test('request ids: a repeat gets the first answer and changes nothing', async (t) => {
  const harness = await createHarness();
  const call = { requestId: 'r1' };
  const draft = { description: 'once', expirationTtlNs: 60_000_000_000n };
  const first = await harness.run('token.create', { draft }, call);
  const proposals = harness.proposals;
  harness.clock.advance(1000);
  const again = await harness.run('token.create', { draft }, call);
  t.equal(harness.proposals, proposals, 'nothing is done again');
  t.equal(again.meta.replayed, true);
  t.same(again.value.token, first.value.token, 'the secret included');
  t.equal(
    await refusalOf(harness.run('token.create', { draft: { description: 'other' } }, call)),
    'invalid: The request id was used before, for another request',
  );
  for (const more of [{ cas: 0 }, { namespaceParameter: 'default' }, { namespaceHeader: 'a' }]) {
    t.equal(
      await refusalOf(harness.run('token.create', { draft }, { ...call, ...more })),
      'invalid: The request id was used before, for another request',
      Object.keys(more).join(),
    );
  }
  const { accessorId } = first.value.token;
  t.equal((await harness.run('token.delete', { accessorId }, { requestId: 'd' })).value, true);
  t.equal((await harness.run('token.delete', { accessorId }, { requestId: 'd' })).value, true);
  harness.clock.advance(600_000);
  const later = await harness.run('token.create', { draft: { description: 'other' } }, call);
  t.equal(later.meta.replayed, false, 'after ten minutes the id is free');
});

t.test('request ids: two at once make one token', async (t) => {
  const harness = await createHarness();
  const make = () => harness.run('token.create', { draft: {} }, { requestId: 'r' });
  const [one, two] = await Promise.all([make(), make()]);
  t.same(one.value.token, two.value.token);
  t.same([one.meta.replayed, two.meta.replayed].sort(), [false, true]);
});

t.test(
  "request ids: nobody gets another caller's answer, nor one after losing rights",
  async (t) => {
    const harness = await createHarness();
    const call = { requestId: 'r' };
    const first = await harness.run('token.create', { draft: {} }, call);
    const secret = await secretWith(harness, 'acl = "write"');
    const other = await harness.run('token.create', { draft: {} }, { ...call, secret });
    t.not(other.value.token.secretId, first.value.token.secretId);
    const { accessorId } = (await harness.run('token.read-self', {}, { secret })).value!.token;
    await harness.run('token.update', { accessorId, draft: {} });
    t.match(
      await refusalOf(harness.run('token.create', { draft: {} }, { ...call, secret })),
      /lacks permission 'acl:write'/,
    );
  },
);

t.test(
  'bootstrap: once, idempotent with its secret, again only with the reset index',
  async (t) => {
    const harness = await createHarness({ initialManagementSecret: undefined });
    const secret = '2b778dd9-f5f1-6f29-b4b4-9a5fa948757a';
    const boot = (given: string | undefined, call = {}) =>
      harness.run('bootstrap', { secret: given }, { secret: undefined, ...call });
    t.equal(await refusalOf(boot('x')), 'invalid: uuid string is wrong length');
    const first = await boot(secret);
    t.equal(first.value.token.secretId, secret);
    t.same(first.value.policies, [{ id: GLOBAL_MANAGEMENT_ID, name: 'global-management' }]);
    const again = await boot(secret);
    t.same(again.value.token, first.value.token);
    t.equal(again.meta.replayed, true);
    const index = first.value.token.createIndex;
    const refused = `permission-denied: Permission denied: ACL bootstrap no longer allowed (reset index: ${index})`;
    t.equal(await refusalOf(boot(undefined)), refused);
    harness.resetIndex = index + 1;
    t.equal(
      await refusalOf(boot(undefined)),
      `invalid: Invalid bootstrap reset index (specified ${index + 1}, reset index: ${index})`,
    );
    t.equal(harness.resetIndex, undefined, 'the reset is used up by the attempt');
    harness.resetIndex = index;
    t.not((await boot(undefined)).value.token.secretId, secret);
    t.match(await refusalOf(boot(secret)), /no longer allowed/, 'the older one is history');
    const self = harness.run('token.read-self', {}, { secret: secret as SecretId });
    t.equal(await refusalOf(self), 'ok', 'older tokens stay valid');
  },
);

t.test('bootstrap: a request id gives nobody the token a second time', async (t) => {
  const harness = await createHarness({ initialManagementSecret: undefined });
  const boot = () =>
    harness.run('bootstrap', { secret: undefined }, { secret: undefined, requestId: 'r' });
  t.equal(await refusalOf(boot()), 'ok');
  t.match(await refusalOf(boot()), /no longer allowed/);
});

t.test('login: binds, skips what is missing, refuses when nothing is left; logout', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'jwt', { maxTokenTtlNs: 120_000_000_000n });
  const login = (authMethod: string, claims: object | string) => {
    const bearerToken = typeof claims === 'string' ? claims : JSON.stringify(claims);
    const input = { authMethod, bearerToken, meta: { b: '1', a: '2' }, namespace: undefined };
    return harness.run('login', input, { secret: NOBODY as SecretId });
  };
  t.equal(await refusalOf(login('jwt', { name: 'x' })), 'permission-denied: Permission denied');
  t.equal(
    await refusalOf(login('none', {})),
    'permission-denied: ACL not found: auth method "none" not found',
  );
  t.equal(await refusalOf(login('jwt', 'junk')), 'login-refused: bad credential');
  await bind(harness, 'jwt', 'role', 'missing');
  await bind(harness, 'jwt', 'service', `svc-${ATTRIBUTE}`);
  const { value } = await login('JWT', { name: 'WEB' });
  t.match(value.token, {
    description: 'token created via login: {"a":"2","b":"1"}',
    local: true,
    roles: [],
    serviceIdentities: [{ serviceName: 'svc-web', datacenters: [] }],
    authMethod: { name: 'jwt' },
  });
  t.equal(value.token.expirationTime, '2026-01-01T00:02:00.000Z');
  t.equal(harness.counts.get('acl.login jwt granted'), 1);
  t.equal(harness.counts.get('acl.login jwt permission-denied'), 1);
  const out = (secret: SecretId | undefined) => harness.run('logout', {}, { secret });
  t.equal(await refusalOf(out(undefined)), 'unauthenticated: Supplied token does not exist');
  t.equal(await refusalOf(out(NOBODY as SecretId)), 'token-unknown: ACL not found');
  t.equal(
    await refusalOf(out(ROOT)),
    "permission-denied: Permission denied: token wasn't created via login",
  );
  harness.clock.advance(120_001);
  t.equal((await out(value.token.secretId)).value, true, 'also an expired token');
});

t.test('login by OIDC: a state works once, also when two come at once', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'idp', { type: 'oidc', maxTokenTtlNs: 60_000_000_000n });
  await bind(harness, 'idp', 'service', ATTRIBUTE);
  const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
  const url = await harness.run('oidc.auth-url', {
    ...common,
    redirectUri: 'https://me',
    meta: {},
  });
  t.equal(url.authUrl, 'https://idp/?state=state-1');
  const back = () =>
    harness.run('oidc.callback', { ...common, state: 'state-1', code: '{"name":"web"}' });
  const results = await Promise.all([refusalOf(back()), refusalOf(back())]);
  t.same(results.sort(), ['login-refused: the login state is unknown or has expired', 'ok']);
  t.same(await descriptions(tokenList(harness, { authMethod: 'idp' })), [
    'token created via OIDC login',
  ]);
});

interface Idp extends Harness {
  readonly begin: (authMethod?: string) => Promise<string>;
  readonly end: (state: string) => Promise<string>;
}

/** Two methods at a provider who gives each login a state of its own, `state-1` and so on. */
async function withIdp(more: Partial<ServiceDeps> = {}): Promise<Idp> {
  const harness = await createHarness();
  let count = 0;
  const oidcFlow: OidcFlow = {
    ...authMethods.oidcFlow,
    authUrl: async (request) => {
      const { pending } = await authMethods.oidcFlow.authUrl(request);
      count += 1;
      const state = `state-${count}`;
      const expiresAtMs = harness.clock.wallMs() + OIDC_PENDING_MS;
      return { authUrl: state, pending: { ...pending, state, expiresAtMs } };
    },
  };
  const types = { ...authMethods.types };
  const door = createOperations({ ...harness.deps, authMethods: { types, oidcFlow }, ...more });
  for (const name of ['idp', 'other']) {
    await newMethod(harness, name, { type: 'oidc', maxTokenTtlNs: 60_000_000_000n });
  }
  const common = { authMethod: 'idp', clientNonce: 'n', namespace: undefined };
  const begun = { ...common, redirectUri: 'https://me', meta: {} };
  const code = '{"name":"web"}';
  return {
    ...harness,
    begin: (authMethod = 'idp') =>
      refusalOf(door.run('oidc.auth-url', { ...begun, authMethod }, CALL)),
    end: (state) => refusalOf(door.run('oidc.callback', { ...common, state, code }, CALL)),
  };
}

const FULL_OF_METHOD =
  'unavailable: nothing was begun: 4096 logins of auth method "idp" wait for their end already, try again later';

t.test('login by OIDC: so many of one method wait for their end and no more', async (t) => {
  const { begin, end, clock } = await withIdp();
  for (let count = 0; count < 4096; count += 1) await begin();
  t.equal(await begin(), FULL_OF_METHOD);
  t.equal(await begin('other'), 'ok', 'others have room');
  await end('state-7');
  t.equal(await begin(), 'ok', 'in the place of one that ended');
  t.equal(await begin(), FULL_OF_METHOD);
  clock.advance(OIDC_PENDING_MS);
  t.equal(await begin(), 'ok', 'when their time is over');
});

t.test('login by OIDC: what could not be stored takes no room', async (t) => {
  const closing = new AclError('unavailable', 'the log is closing');
  const reigns = new Set<number | undefined>();
  const { begin } = await withIdp({
    propose: (_command, reign) => {
      reigns.add(reign);
      return Promise.reject(closing);
    },
  });
  for (let count = 0; count < 4096; count += 1) await begin();
  t.equal(await begin(), 'unavailable: the log is closing');
  t.same([...reigns], [1], 'each is for the reign in which it was counted');
});

t.test('login by OIDC: a new leader counts what earlier ones let in', async (t) => {
  const harness = await withIdp();
  for (const name of ['idp', 'idp', 'other']) await harness.begin(name);
  harness.clock.advance(OIDC_PENDING_MS - 1);
  await harness.begin('idp');
  const logins = new PendingLogins(harness.deps, { countMax: 6, methodCountMax: 4 });
  const login = (method: string, state: string): PendingLogin => ({
    method: { name: method, namespace: 'default', createIndex: 1 },
    state,
    nonce: '',
    pkceVerifier: '',
    redirectUri: '',
    clientNonce: '',
    meta: {},
    expiresAtMs: 0,
  });
  const begin = (method: string, state: string, reign = 1): Promise<string> =>
    refusalOf(logins.begin(login(method, state), reign));
  t.equal(await begin('idp', 'a'), 'ok');
  t.match(await begin('idp', 'b'), /^unavailable: .* 4 logins of auth method "idp" wait/);
  t.equal(await begin('other', 'c'), 'ok');
  t.match(await begin('other', 'd'), /^unavailable: .* 6 logins of OIDC wait/, 'in all');
  t.equal(await begin('other', 'e', 2), 'ok', 'the next reign reads the state');
  harness.clock.advance(1);
  t.equal(await begin('idp', 'f', 2), 'ok', 'each until its own time');
  t.equal(await begin('idp', 'g', 2), 'ok');
  t.equal(await begin('idp', 'h', 2), 'ok');
  t.match(await begin('idp', 'i', 2), /4 logins of auth method/, 'the later one is there still');
});

t.test('login by OIDC: a count that could not be read is read again', async (t) => {
  const harness = await withIdp();
  let reads = 0;
  const view = {
    pendingLogin: () => undefined,
    oldPendingLogins: async () => {
      reads += 1;
      if (reads === 1) throw new AclError('unavailable', 'the store does not answer');
      return [];
    },
  };
  const logins = new PendingLogins({ ...harness.deps, view });
  const method = { name: 'idp', namespace: 'default', createIndex: 1 };
  const texts = { nonce: '', pkceVerifier: '', redirectUri: '', clientNonce: '' };
  const begin = (state: string): Promise<string> =>
    refusalOf(logins.begin({ ...texts, method, state, meta: {}, expiresAtMs: 0 }, 1));
  t.equal(await begin('a'), 'unavailable: the store does not answer');
  t.equal(await begin('b'), 'ok');
  t.equal(await begin('c'), 'ok');
  t.equal(reads, 2);
});

t.test('login: its metadata is bounded, which all servers keep', async (t) => {
  const harness = await createHarness();
  await newMethod(harness, 'jwt');
  await bind(harness, 'jwt', 'service', 'x');
  const given = { authMethod: 'jwt', bearerToken: '{"name":"web"}', namespace: undefined };
  const withMeta = (length: number): Promise<string> =>
    refusalOf(harness.run('login', { ...given, meta: { ab: 'x'.repeat(length - 2) } }));
  t.equal(await withMeta(8192), 'ok');
  t.equal(await withMeta(8193), 'invalid: Meta may have at most 8192 characters, and has 8193');
});

t.test(
  'auth methods: an upsert; its rules speak of its attributes; deleting takes all',
  async (t) => {
    const harness = await createHarness();
    t.equal(
      await refusalOf(newMethod(harness, 'jwt', { config: { bad: true } })),
      'invalid: Invalid Auth Method: bad Config',
    );
    const first = await newMethod(harness, 'jwt');
    const second = await harness.run('auth-method.update', {
      name: 'JWT',
      draft: { description: 'new', config: {} },
    });
    t.equal(second.value.method.createIndex, first.value.method.createIndex);
    t.equal(second.value.method.name, 'jwt');
    t.match(
      await refusalOf(bind(harness, 'jwt', 'service', ATTRIBUTE.replace('name', 'nope'))),
      /^invalid: Invalid Binding Rule/,
    );
    t.equal(
      await refusalOf(bind(harness, 'none', 'service', 'x')),
      'invalid: cannot find auth method with name "none"',
    );
    await bind(harness, 'jwt', 'service', 'x');
    const token = await logIn(harness, 'jwt');
    t.equal((await harness.run('auth-method.delete', { name: 'jwt' })).value, true);
    const rules = await harness.run('binding-rule.list', { authMethod: undefined, page: {} });
    t.same(await allOf(rules), []);
    const { accessorId } = token;
    t.equal(
      await refusalOf(harness.run('token.read', { accessorId, expanded: false })),
      'token-not-found: token does not exist: ACL not found',
    );
    t.equal(
      await refusalOf(harness.run('token.update', { accessorId, draft: { local: true } })),
      'invalid: Failed to apply token write request: No such auth method with Name: jwt',
    );
  },
);

t.test('binding rules: listed by their method', async (t) => {
  const harness = await createHarness();
  for (const name of ['one', 'two']) {
    await newMethod(harness, name);
    await bind(harness, name, 'service', name);
  }
  const list = await harness.run('binding-rule.list', { authMethod: 'ONE', page: {} });
  t.same(
    (await allOf(list)).map(({ rule }) => rule.bindName),
    ['one'],
  );
  const first = await harness.run('binding-rule.list', {
    authMethod: undefined,
    page: { limit: 1 },
  });
  const [shown] = await allOf(first);
  t.equal(first.next(), shown?.rule.id);
  await bind(harness, 'one', 'service', 'more');
  for (const call of [{}, { namespaceParameter: '*' }]) {
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const input = { authMethod: 'one', page: { limit: 1, after } };
      const page = await harness.run('binding-rule.list', input, call);
      seen.push(...(await allOf(page)).map(({ rule }) => rule.bindName));
      after = page.next();
    } while (after !== undefined && seen.length < 9);
    t.same(seen, ['one', 'more'], 'page by page, each once');
  }
});

t.test('binding rules: so many of one method and no more', async (t) => {
  const harness = await createHarness();
  const { machine } = harness;
  const countOf = machine.bindingRuleCountOf.bind(machine);
  // As if each method had all but two of those that it may have.
  machine.bindingRuleCountOf = (...given) => countOf(...given) + RULES_OF_METHOD_MAX - 2;
  for (const name of ['m', 'other']) await newMethod(harness, name);
  for (const name of ['web', 'api']) await bind(harness, 'm', 'service', name);
  await t.rejects(bind(harness, 'M', 'service', 'web'), {
    code: 'invalid',
    message:
      'Invalid Binding Rule: an auth method may have at most 4096 binding rules, and "m" has 4096',
  });
  const { id } = (await bind(harness, 'other', 'service', 'web')).value.rule;
  const draft = { bindType: 'service', bindName: 'db' };
  await harness.run('binding-rule.update', { id, draft });
  t.equal((await logIn(harness, 'm')).serviceIdentities.length, 2);
  const list = await harness.run('binding-rule.list', { authMethod: 'm', page: { limit: 1 } });
  for (const { rule } of await allOf(list)) {
    await harness.run('binding-rule.delete', { id: rule.id });
  }
  await bind(harness, 'm', 'service', 'web');
  t.equal(countOf('default' as NamespaceName, 'm'), 2);
});

t.test('policies: names taken, rules unreadable, built-ins', async (t) => {
  const harness = await createHarness();
  await newPolicy(harness, 'taken', '');
  const create = (draft: object) => refusalOf(harness.run('policy.create', { draft }));
  t.equal(
    await create({ name: 'TAKEN' }),
    'duplicate: Invalid Policy: A Policy with Name "TAKEN" already exists',
  );
  t.match(
    await create({ name: 'x', rules: 'acl = "list"' }),
    /^invalid: Invalid acl policy: "list"/,
  );
  t.match(await create({ id: NOBODY, name: 'x' }), /^id-mismatch: Cannot specify the ID/);
  t.equal(
    await refusalOf(harness.run('policy.delete', { id: GLOBAL_MANAGEMENT_ID })),
    'invalid: Delete operation not permitted on the builtin global-management policy',
  );
  await harness.run('namespace.create', { draft: { name: 'team' } });
  t.match(
    await create({ name: 'x', rules: 'operator = "read"', namespace: 'team' }),
    /^invalid: Invalid operator policy/,
  );
});

t.test('namespaces: kept while something is in them', async (t) => {
  const harness = await createHarness();
  await harness.run('namespace.update', { name: 'team', draft: { description: 'made by path' } });
  t.match(
    await refusalOf(harness.run('namespace.create', { draft: { name: 'team' } })),
    /^duplicate: /,
  );
  const id = await newPolicy(harness, 'p', '', 'team');
  const remove = () => harness.run('namespace.delete', { name: 'team' });
  t.match(await refusalOf(remove()), /^invalid: Namespace "team" is not empty/);
  await harness.run('policy.delete', { id });
  t.equal((await remove()).value, true);
  t.match(
    await refusalOf(harness.run('namespace.delete', { name: 'default' })),
    /^invalid: Delete/,
  );
});

t.test('authorize: answers batches, refuses what cannot be asked, explains', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'web', 'service "web" {\n  policy = "write"\n}\n');
  const draft = { name: 'r', policies: [{ id: policy }] };
  const role = (await harness.run('role.create', { draft })).value.role.id;
  const { secretId: secret, accessorId } = await newToken(harness, { roles: [{ id: role }] });
  const ask = (items: { resource: string; access: string; segment: string }[], explain = false) =>
    harness.run(
      'authorize',
      { items: items.map((item) => ({ ...item, namespace: undefined })), explain },
      { secret },
    );
  const web = { resource: 'service', access: 'WRITE', segment: 'web' };
  const db = { resource: 'service', access: 'read', segment: 'db' };
  t.same(
    (await ask([web, db])).map(({ allow }) => allow),
    [true, false],
  );
  const [why, whyNot] = await ask([web, db], true);
  t.match(why?.explanation, {
    decision: 'allow',
    decidedBy: 'rule',
    token: { accessorId },
    role: { id: role, name: 'r' },
    policy: { id: policy, name: 'web', namespace: 'default' },
    rule: { line: 1, column: 1 },
    summary: 'Allowed by policy "web", line 1, through role "r".',
  });
  t.match(whyNot?.explanation, { decision: 'deny', decidedBy: 'default-policy', rule: undefined });
  t.equal(
    await refusalOf(ask(Array.from({ length: 65 }, () => web))),
    'malformed: Refusing to process more than 64 authorizations at once',
  );
  t.equal(
    await refusalOf(ask([{ ...web, resource: 'x' }])),
    'malformed: Invalid ACL resource requested: "x"',
  );
});

t.test('authorize: an explanation repeats of long texts as much as fits on a screen', async (t) => {
  const harness = await createHarness();
  const label = 'k'.repeat(500_000);
  const policies: { readonly id: string }[] = [];
  for (const level of ['deny', 'read']) {
    const rules = `key "${label}" { policy = "${level}" }`;
    policies.push({ id: await newPolicy(harness, level, rules) });
  }
  const description = 'd'.repeat(500_000);
  const { secretId: secret } = await newToken(harness, { policies, description });
  const question = { resource: 'key', access: 'write-prefix', segment: '', namespace: undefined };
  const items = Array.from({ length: 64 }, () => question);
  const answers = await harness.run('authorize', { items, explain: true }, { secret });
  const length = JSON.stringify(answers).length;
  t.ok(length < 100_000, `64 answers about rules of half a mebibyte: ${length} characters`);
  t.match(answers[0]?.explanation, {
    decision: 'deny',
    token: { description: /^d{200}…$/ },
    rule: { text: /^key "k{200}…" { policy = "deny" }$/ },
    overruled: [{ policy: 'read', rule: /^key "k{200}…" { policy = "read" }$/ }],
  });
});

t.test('authorize: an item that names a namespace is decided there', async (t) => {
  const harness = await createHarness();
  const policy = await newPolicy(harness, 'web', 'service "web" {\n  policy = "write"\n}\n');
  const { secretId: secret } = await newToken(harness, { policies: [{ id: policy }] });
  const web = { resource: 'service', access: 'write', segment: 'web' };
  const items = [undefined, 'default', 'elsewhere'].map((namespace) => ({ ...web, namespace }));
  const answers = await harness.run('authorize', { items, explain: false }, { secret });
  t.same(
    answers.map(({ allow }) => allow),
    [true, true, false],
  );
});

t.test('authorize: of a token that is named by its accessor id', async (t) => {
  const harness = await createHarness();
  const { clock } = harness;
  const policy = await newPolicy(harness, 'web', 'service "web" {\n  policy = "write"\n}\n');
  const links = { policies: [{ id: policy }] };
  const { secretId, accessorId } = await newToken(harness, links);
  const namespace = { name: 'team' };
  await harness.run('namespace.create', { draft: namespace });
  const inTeam = await newToken(harness, { namespace: 'team' });
  const short = await newToken(harness, { ...links, expirationTtlNs: 120_000_000_000n });
  const reader = await secretWith(harness, 'acl = "read"');
  const web: AuthorizationItem = {
    ...{ resource: 'service', access: 'write', segment: 'web' },
    namespace: undefined,
  };
  const ask = (id: string, secret: SecretId | undefined, items = [web]) =>
    harness.run('token.authorize', { accessorId: id, items, explain: true }, { secret });

  const [named] = await ask(accessorId, reader);
  t.match(named, { allow: true, explanation: { token: { accessorId } } }, 'not of who asks');
  const own = { items: [web], explain: true };
  t.same(
    [named],
    await harness.run('authorize', own, { secret: secretId }),
    'as it is told itself',
  );
  t.match(
    await refusalOf(ask(accessorId, secretId)),
    /^permission-denied: .*lacks permission 'acl:read'/,
    'nobody without the right to read the token',
  );
  t.match(
    await refusalOf(ask(inTeam.accessorId, reader)),
    /^permission-denied/,
    'nor its namespace',
  );

  const [[there], [here]] = [await ask(inTeam.accessorId, ROOT), await ask(accessorId, ROOT)];
  t.same([there?.allow, here?.allow], [false, true], 'each in its own namespace');
  const elsewhere = { ...web, namespace: 'team' };
  t.equal((await ask(accessorId, ROOT, [elsewhere]))[0]?.allow, false, 'or in that of the item');

  t.equal((await ask(short.accessorId, reader))[0]?.allow, true);
  clock.advance(120_001);
  t.match(await refusalOf(ask(short.accessorId, reader)), /^token-not-found: .*expired/);
  await newMethod(harness, 'jwt');
  await bind(harness, 'jwt', 'service', 'web');
  const orphan = await logIn(harness, 'jwt');
  t.equal((await ask(orphan.accessorId, reader))[0]?.allow, true);
  await harness.run('auth-method.delete', { name: 'jwt' });
  t.match(await refusalOf(ask(orphan.accessorId, reader)), /^token-not-found/, 'void');
  await harness.run('token.delete', { accessorId });
  const gone = await refusalOf(ask(accessorId, reader));
  t.match(gone, /^token-not-found/, 'what is gone may nothing, and is no default policy');
  t.match(await refusalOf(ask('x', reader)), /^malformed|^invalid/);
});

t.test('templated policies: catalogue, one, preview', async (t) => {
  const harness = await createHarness();
  t.equal((await harness.run('templated-policy.list', {})).length, 6);
  t.equal((await harness.run('templated-policy.read', { name: 'builtin/dns' })).schema, '');
  const input = { name: 'builtin/service', variables: { name: 'web' } };
  const { policy } = await harness.run('templated-policy.preview', input);
  t.match(policy.rules, /service "web"/);
});

t.test('datacenters: an unknown one is refused where one may be named', async (t) => {
  const harness = await createHarness();
  const call = { datacenter: 'dc9' };
  const refused = 'no-such-datacenter: No path to datacenter';
  t.equal(await refusalOf(harness.run('policy.list', { page: {} }, call)), refused);
  t.equal(await refusalOf(harness.run('policy.create', { draft: { name: 'p' } }, call)), 'ok');
});

t.test('freshness: barriers for all but stale reads, and a position waited for', async (t) => {
  const harness = await createHarness();
  const list = (call: object) => harness.run('policy.list', { page: {} }, call);
  for (const consistency of ['default', 'consistent', 'stale'] as const)
    await list({ consistency });
  t.equal(harness.barriers, 2);
  const { epoch, seq } = harness.machine.position();
  t.equal(await refusalOf(list({ minPosition: { epoch, seq } })), 'ok');
  const readBarrier = () => Promise.reject(new AclError('unavailable', 'no quorum'));
  const replaced = createOperations({ ...harness.deps, readBarrier });
  const both = replaced.run('policy.list', { page: {} }, { ...CALL, minPosition: { epoch, seq } });
  t.equal(await refusalOf(both), 'unavailable: no quorum', 'a position is no barrier');
  const login = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace: undefined };
  t.equal(await refusalOf(harness.run('login', login)), NO_METHOD);
  const unproven = await refusalOf(replaced.run('login', login, CALL));
  t.equal(unproven, 'unavailable: no quorum', 'nor is a login refused by what is not proven');
  const waiting = refusalOf(list({ minPosition: { epoch, seq: seq + 1 } }));
  await newToken(harness);
  t.equal(await waiting, 'ok');
  const late = refusalOf(list({ minPosition: { epoch, seq: seq + 9 } }));
  await new Promise((resolve) => setImmediate(resolve));
  harness.clock.advance(POSITION_WAIT_MS);
  t.match(await late, /^wait-timeout: Position \d+\.\d+ was not reached in time/);
});

t.test(
  'waiting: ends with the object, at once when late, at the deadline, when cancelled',
  async (t) => {
    const harness = await createHarness();
    const { operations, clock } = harness;
    const id = await newPolicy(harness, 'p', '');
    const { meta } = await harness.run('policy.read', { id });
    const never = new AbortController().signal;
    let ended = false;
    const waiting = operations.waitForChange(meta.watch, meta.index, 60_000, never).then(() => {
      ended = true;
    });
    await newPolicy(harness, 'other', '');
    clock.advance(0);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(ended, false, 'another object does not end it');
    await harness.run('policy.update', { id, draft: { name: 'p2' } });
    clock.advance(0);
    await waiting;
    await operations.waitForChange(meta.watch, meta.index, 60_000, never);
    const { index } = (await harness.run('policy.read', { id })).meta;
    const timed = operations.waitForChange(meta.watch, index, 60_000, never);
    clock.advance(60_000);
    await timed;
    const stop = new AbortController();
    const cancelled = operations.waitForChange(meta.watch, index, 60_000, stop.signal);
    stop.abort();
    await cancelled;
    t.equal(clock.pendingCount, 0, 'no timer is left');
  },
);

const aMemory = (): DutyMemory => ({ ages: new RequestAges(), rounds: new VoidTokenRounds() });

t.test('duties: built-ins are made once, void tokens and old requests are deleted', async (t) => {
  const harness = await createHarness();
  const index = harness.machine.index();
  await ensureBuiltins(harness.deps);
  t.equal(harness.machine.index(), index);
  await newMethod(harness, 'jwt');
  await bind(harness, 'jwt', 'service', 'x');
  const orphan = await logIn(harness, 'jwt');
  await harness.run('auth-method.delete', { name: 'jwt' });
  const expired = await newToken(harness, { expirationTtlNs: 60_000_000_000n });
  const kept = await harness.run('token.create', { draft: {} }, { requestId: 'r' });
  harness.clock.advance(600_001);
  t.match(await reapOnce(harness.deps, aMemory()), {
    expiredTokens: 1,
    orphanedTokens: 1,
    oldRequests: 1,
  });
  for (const { accessorId } of [orphan, expired]) {
    t.equal(harness.machine.token(accessorId), undefined);
  }
  t.ok(harness.machine.token(kept.value.token.accessorId));
  t.equal(harness.counts.get('acl.token.reaped '), 2);
  const { proposals } = harness;
  t.match(await reapOnce(harness.deps, aMemory()), {
    expiredTokens: 0,
    orphanedTokens: 0,
    oldRequests: 0,
  });
  t.equal(harness.proposals, proposals);
});

t.test('duties: where the primary deletes, each expired token is come by once', async (t) => {
  const { clock, deps, machine, run } = await createHarness();
  const expiring = (count: number, local: boolean) => {
    const draft = { local, expirationTtlNs: 60_000_000_000n };
    return Promise.all(Array.from({ length: count }, () => run('token.create', { draft })));
  };
  await expiring(REAP_BATCH_MAX + 100, false);
  const read = machine.expiredTokens.bind(machine);
  let looked = 0;
  machine.expiredTokens = async (search) => {
    const found = await read(search);
    looked += found.looked;
    return found;
  };
  let [isPrimary, backMs] = [false, 0];
  const monotonicMs = () => clock.monotonicMs();
  const wrong = { monotonicMs, wallMs: () => clock.wallMs() - backMs } as typeof clock;
  const away = new AclError('not-primary', 'another datacenter is the primary');
  const federation = { ...deps.federation, closedBecause: () => (isPrimary ? undefined : away) };
  const memory = aMemory();
  const pass = async (): Promise<readonly unknown[]> => {
    looked = 0;
    const report = await reapOnce({ ...deps, clock: wrong, federation }, memory);
    return [looked, report.expiredTokens, report.isMore];
  };
  clock.advance(60_001);
  t.same(await pass(), [REAP_BATCH_MAX, 0, true]);
  t.same(await pass(), [100, 0, false]);
  t.same(await pass(), [0, 0, false]);
  await expiring(3, true);
  clock.advance(60_001);
  t.same(await pass(), [3, 3, false], 'what expires later stands behind');
  backMs = 30_000;
  t.same(await pass(), [REAP_BATCH_MAX, 0, true], 'a clock that goes back begins anew');
  backMs = 0;
  isPrimary = true;
  t.same(await pass(), [REAP_BATCH_MAX, REAP_BATCH_MAX, true]);
  t.same(await pass(), [100, 100, false]);
});

t.test('duties: of what is long little goes at a time', async (t) => {
  const harness = await createHarness();
  const { clock, deps } = harness;
  await deps.propose({
    change: { type: 'level.raise', level: NEWEST_LEVEL },
    timeMs: clock.wallMs(),
    cas: undefined,
    request: undefined,
  });
  const ages = new RequestAges();
  const description = 'x'.repeat(150_000);
  for (let each = 0; each < 8; each += 1) {
    const draft = { description, expirationTtlNs: 60_000_000_000n };
    await harness.run('token.create', { draft }, { requestId: `${each}` });
    clock.advance(1);
  }
  for (let each = 0; each < 8; each += 1) {
    const draft = { description: '', expirationTtlNs: 3_600_000_000_000n };
    await harness.run('token.create', { draft }, { requestId: `short ${each}` });
  }
  ages.note(clock.monotonicMs(), harness.machine.index() + 1);
  clock.advance(600_001);
  const commands: string[] = [];
  const propose: typeof deps.propose = (command) => {
    const { change } = command;
    if (change.type === 'token.reap') commands.push(`reap ${change.accessorIds.length}`);
    if (change.type === 'request-id.forget') commands.push(`forget ${change.keys.length}`);
    return deps.propose(command);
  };
  const report = await reapOnce({ ...deps, propose }, { ...aMemory(), ages });
  t.match(report, { expiredTokens: 8, oldRequests: 16 });
  const twos = (of: string): readonly string[] => Array.from({ length: 4 }, () => `${of} 2`);
  t.same(commands, [...twos('reap'), ...twos('forget'), 'forget 8']);
  t.same((await harness.machine.requestsBelow(ALL_REQUESTS)).keys, []);
});

const ALL_REQUESTS = {
  below: Number.MAX_SAFE_INTEGER,
  orBeforeMs: Number.MAX_SAFE_INTEGER,
  after: undefined,
  limit: 100,
};

t.test('acknowledgement: in one datacenter every level is reached with the write', async (t) => {
  const one = await createHarness();
  const made = await one.run('token.create', { draft: {} }, { ack: 'all' });
  t.equal(made.meta.ack, 'all');
  t.equal((await one.run('token.create', { draft: { local: true } })).meta.ack, undefined);
});

t.test('lists: a page reads about as many objects as it shows', async (test) => {
  const harness = await createHarness();
  const made = Array.from({ length: 80 }, () => harness.run('token.create', { draft: {} }));
  await Promise.all(made);
  const { machine } = harness;
  const read = machine.tokens.bind(machine);
  let readCount = 0;
  async function* counted(slices: ReturnType<typeof read>): ReturnType<typeof read> {
    for await (const slice of slices) {
      readCount += slice.length;
      yield slice;
    }
  }
  machine.tokens = (...asked) => counted(read(...asked));
  for (const [limit, readMax] of [
    [3, 32],
    [40, 40],
    [500, 82],
  ] as const) {
    readCount = 0;
    const shown = (await allOf(await tokenList(harness, { page: { limit } }))).length;
    test.equal(shown, Math.min(limit, 82), `shown of ${limit}`);
    test.ok(readCount <= readMax, `${readCount} read for ${limit}`);
  }
});

t.test(
  'lists: of long objects few are held at a time, and a page may be left early',
  async (test) => {
    const harness = await createHarness();
    const description = 'd'.repeat(100_000);
    const names = Array.from({ length: 8 }, (_, place) => `long-${place}`);
    for (const name of names) await harness.run('role.create', { draft: { name, description } });
    const asked = (after?: string) =>
      harness.run('role.list', { policy: undefined, page: { limit: 1000, after } });
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const list = await asked(after);
      for await (const slice of list.slices) {
        seen.push(...slice.map(({ role }) => role.name));
        test.ok(slice.length <= 3, `${slice.length} at a time`);
        break;
      }
      after = list.next();
    } while (after !== undefined);
    test.same(seen, names);
    const whole = await asked();
    await allOf(whole);
    test.equal(whole.next(), undefined);
  },
);
