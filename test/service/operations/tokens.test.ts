// Tokens, policies and secrets over the real state machine: texts and codes, redaction, what is missing. Who may do
// what is in service/rights.

import t from 'tap';
import { GLOBAL_MANAGEMENT_ID, type SecretId } from '../../../src/acl/ids.ts';
import type { Token } from '../../../src/acl/token.ts';
import { watchKey } from '../../../src/state/watch.ts';
import {
  allOf,
  createHarness,
  newPolicy,
  newToken,
  ROOT,
  refusalOf,
  secretWith,
} from '../harness.ts';
import { bind, descriptions, logIn, NOBODY, newMethod, tokenList } from './use-cases.ts';

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
      'template-not-found: Invalid templated policy Name: x',
    ],
    [
      'preview',
      harness.run('templated-policy.preview', { name: 'x', variables: { name: undefined } }),
      'template-not-found: templated policy "x" does not exist',
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
  const hides = async ({ accessorId, namespace }: Token, who: SecretId) => {
    const call = { secret: who, namespaceParameter: namespace };
    return (await harness.run('token.read', { accessorId, expanded: false }, call)).value
      ?.secretHidden;
  };
  t.equal(await hides(here, secret), true);
  t.equal(await hides(there, secret), false);
  t.equal(await hides(here, ROOT), false);
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
  const defaults = { policyDefaults: [{ id: byDefault }], roleDefaults: [{ name: 'r' }] };
  await harness.run('namespace.create', { draft: { name: 'team', ...defaults } });
  const { accessorId } = await newToken(harness, {
    namespace: 'team',
    policies: [{ id: policy }],
    roles: [{ name: 'r' }],
    nodeIdentities: [{ nodeName: 'n1', datacenter: 'dc1' }],
  });
  const inTeam = { namespaceParameter: 'team' };
  const read = await harness.run('token.read', { accessorId, expanded: true }, inTeam);
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
  t.same(expanded?.namespaceDefaultRoles, [{ id: role.value.role.id, name: 'r' }]);
  t.match(expanded, { defaultPolicy: 'deny', downPolicy: 'extend-cache', resolvedByNode: 'n1' });
});

t.test(
  'expanded: not of a token that leads to very much, which has no rights either',
  async (t) => {
    const harness = await createHarness();
    const description = 'x'.repeat(1_000_000);
    const policies: { id: string }[] = [];
    for (let number = 0; number < 9; number += 1) {
      policies.push({ id: await newPolicy(harness, `p${number}`, '') });
    }
    const { accessorId, secretId: secret } = await newToken(harness, { policies });
    for (const [number, { id }] of policies.entries()) {
      await harness.run('policy.update', { id, draft: { name: `p${number}`, description } });
    }
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

t.test('links: what is written leads to so much and no more, however it comes', async (t) => {
  const harness = await createHarness();
  const long = '#'.repeat(1_000_000);
  const names = Array.from({ length: 9 }, (_, place) => `long-${place}`);
  for (const name of names) await newPolicy(harness, name, long);
  const last = await newPolicy(harness, 'last', '');
  const linksTo = (all: readonly string[]) => all.map((name) => ({ name }));
  const eight = linksTo(names.slice(0, 8));
  const says =
    'the links lead to more than 16384 policies and roles, or to more than 8388608 characters of them';

  const policies = linksTo(names);
  t.equal(
    await refusalOf(harness.run('token.create', { draft: { policies } })),
    `invalid: ${says}`,
  );
  const role = { name: 'r', policies };
  t.equal(await refusalOf(harness.run('role.create', { draft: role })), `invalid: ${says}`);
  const namespace = { name: 'team', policyDefaults: policies };
  t.equal(
    await refusalOf(harness.run('namespace.create', { draft: namespace })),
    `invalid: ${says}`,
  );
  const twice = { policies: [...eight, ...eight] };
  t.equal(await refusalOf(harness.run('token.create', { draft: twice })), 'ok', 'each counts once');

  const draft = { policies: [...eight, { id: last }] };
  const { accessorId } = await newToken(harness, draft);
  await harness.run('policy.update', { id: last, draft: { name: 'last', rules: long } });
  const clone = { accessorId, description: '', namespace: undefined };
  t.equal(await refusalOf(harness.run('token.clone', clone)), `invalid: ${says}`);
  const update = (draft: object) => refusalOf(harness.run('token.update', { accessorId, draft }));
  t.equal(await update(draft), `invalid: ${says}`);
  t.equal(await update({ policies: eight }), 'ok', 'when it leads to less');

  await newMethod(harness, 'm');
  for (const name of names.slice(0, 8)) await bind(harness, 'm', 'policy', name);
  t.equal((await logIn(harness, 'm')).policies.length, 8);
  await bind(harness, 'm', 'policy', 'long-8');
  t.equal(await refusalOf(logIn(harness, 'm')), `login-refused: ${says}`);
});
