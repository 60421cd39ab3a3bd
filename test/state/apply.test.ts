// Commands on the state: what each refuses and with which words, what it changes, and that a refusal
// changes nothing at all.

import t from 'tap';
import {
  ANONYMOUS_ACCESSOR,
  DEFAULT_NAMESPACE,
  GLOBAL_MANAGEMENT_ID,
  type SecretId,
} from '../../src/acl/ids.ts';
import type { Instant } from '../../src/acl/instant.ts';
import type { AuthMethodOrigin } from '../../src/acl/token.ts';
import type { Change, Command, RequestMark } from '../../src/state/commands.ts';
import { globalEffectsOf } from '../../src/state/global-effects.ts';
import { pageKeyOf } from '../../src/state/lists.ts';
import { isVoid } from '../../src/state/standing.ts';
import { watchKey } from '../../src/state/watch.ts';
import {
  aBindingRule,
  accessorNumbered,
  aCommand,
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  FIXTURE_TIME_MS,
  policyIdNumbered,
  roleIdNumbered,
  ruleIdNumbered,
  secretNumbered,
} from '../support/fixtures.ts';
import {
  BUILTINS,
  collect,
  expiredIn,
  MachineHarness,
  orphansIn,
  startedMachine,
} from '../support/machine-harness.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { MemoryKv } from '../support/memory-kv.ts';

const create = (token: ReturnType<typeof aToken>): Change => ({
  type: 'token.set',
  presence: 'create',
  token,
});
const createDrawn = (token: ReturnType<typeof aToken>): Change => ({
  type: 'token.set',
  presence: 'create-drawn',
  token,
});
const update = (token: ReturnType<typeof aToken>): Change => ({
  type: 'token.set',
  presence: 'update',
  token,
});
const policySet = (presence: 'create' | 'update', policy: ReturnType<typeof aPolicy>): Change => ({
  type: 'policy.set',
  presence,
  policy,
});
const roleSet = (presence: 'create' | 'update', role: ReturnType<typeof aRole>): Change => ({
  type: 'role.set',
  presence,
  role,
});
const methodSet = (method: ReturnType<typeof anAuthMethod>): Change => ({
  type: 'auth-method.set',
  presence: 'either',
  method,
});
const ruleSet = (presence: 'create' | 'update', rule: ReturnType<typeof aBindingRule>): Change => ({
  type: 'binding-rule.set',
  presence,
  rule,
});
const namespaceSet = (
  presence: 'create' | 'update' | 'either',
  namespace: ReturnType<typeof aNamespace>,
): Change => ({ type: 'namespace.set', presence, namespace });

const TEAM = aNamespaceName('team');
const OTHER = aNamespaceName('other');
const LATER = '2026-01-01T01:00:00Z' as Instant;
const MISSING = policyIdNumbered(99);

/**
 * The state that refusals are tried on: policies 1 (default), 2 (team), 3 (other); roles 1 (default)
 * and 2 (team); methods `login` and `Kept` with rule 1; tokens 1 (plain, linked), 2 (team), 3 (local),
 * 4 (expires in an hour), 5 (of method `login`).
 */
async function furnished(): Promise<MachineHarness> {
  const harness = await startedMachine();
  const setUp: Change[] = [
    namespaceSet('create', aNamespace('team')),
    namespaceSet('create', aNamespace('other')),
    policySet('create', aPolicy(1, { name: 'Ops' })),
    policySet('create', aPolicy(2, { namespace: TEAM })),
    policySet('create', aPolicy(3, { namespace: OTHER })),
    roleSet('create', aRole(1, { policies: [policyIdNumbered(1)] })),
    roleSet('create', aRole(2, { namespace: TEAM })),
    methodSet(anAuthMethod('login')),
    methodSet(anAuthMethod('Kept')),
    ruleSet('create', aBindingRule(1)),
    create(aToken(1, { policies: [policyIdNumbered(1)], roles: [roleIdNumbered(1)] })),
    create(aToken(2, { namespace: TEAM, policies: [policyIdNumbered(2)] })),
    create(aToken(3, { local: true })),
    create(aToken(4, { expirationTime: LATER })),
  ];
  for (const change of setUp) {
    const said = await harness.tell(change);
    if (said !== 'ok') throw new Error(said);
  }
  await harness.one(create(aToken(5, { authMethod: originOf(harness, 'login') })));
  return harness;
}

function originOf({ machine }: MachineHarness, name: string): AuthMethodOrigin {
  const { createIndex } = machine.authMethod(DEFAULT_NAMESPACE, name)!;
  return { name, namespace: DEFAULT_NAMESPACE, createIndex };
}

interface Refusal {
  readonly change: Change;
  readonly says: string;
  readonly given?: Partial<Command>;
}

const REFUSALS: Readonly<Record<string, Refusal>> = {
  'token in a missing namespace': {
    change: create(aToken(9, { namespace: aNamespaceName('gone') })),
    says: 'invalid: Namespace "gone" does not exist',
  },
  'token whose accessor id is taken': {
    change: create(aToken(9, { accessorId: accessorNumbered(1) })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose accessor id is taken in other letters': {
    change: create(aToken(9, { accessorId: aToken(1).accessorId.toUpperCase() as never })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose accessor id is a secret': {
    change: create(aToken(9, { accessorId: secretNumbered(1) as string as never })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose accessor id is a secret in other letters': {
    change: create(aToken(9, { accessorId: secretNumbered(1).toUpperCase() as never })),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'token whose secret is taken': {
    change: create(aToken(9, { secretId: secretNumbered(1) })),
    says: 'duplicate: Invalid Token: SecretID is already in use',
  },
  'token whose secret is an accessor id': {
    change: create(aToken(9, { secretId: accessorNumbered(1).toUpperCase() as SecretId })),
    says: 'duplicate: Invalid Token: SecretID is already in use',
  },
  'token whose secret is its own accessor id': {
    change: create(aToken(9, { secretId: accessorNumbered(9) as string as SecretId })),
    says: 'duplicate: Invalid Token: SecretID is already in use',
  },
  'token whose accessor id is no UUID': {
    change: create(aToken(9, { accessorId: 'no-uuid' as never })),
    says: 'invalid: Invalid Token: AccessorID - not a valid UUID',
  },
  'drawn token that is there already': {
    change: createDrawn(aToken(1)),
    says: 'duplicate: Invalid Token: AccessorID is already in use',
  },
  'drawn token in a missing namespace': {
    change: createDrawn(aToken(9, { namespace: aNamespaceName('gone') })),
    says: 'invalid: Namespace "gone" does not exist',
  },
  'drawn token with an unknown policy': {
    change: createDrawn(aToken(9, { policies: [MISSING] })),
    says: `invalid: No such ACL policy with ID "${MISSING}"`,
  },
  'token with an unknown policy': {
    change: create(aToken(9, { policies: [MISSING] })),
    says: `invalid: No such ACL policy with ID "${MISSING}"`,
  },
  "token with another namespace's policy": {
    change: create(aToken(9, { policies: [policyIdNumbered(2)] })),
    says: `invalid: No such ACL policy with ID "${policyIdNumbered(2)}"`,
  },
  'token with an unknown role': {
    change: create(aToken(9, { roles: [roleIdNumbered(99)] })),
    says: `invalid: No such ACL role with ID "${roleIdNumbered(99)}"`,
  },
  'token of a method that is gone': {
    change: create(
      aToken(9, { authMethod: { name: 'nope', namespace: DEFAULT_NAMESPACE, createIndex: 3 } }),
    ),
    says: 'invalid: Failed to apply token write request: No such auth method with Name: nope',
  },
  'token of an earlier method of the name': {
    change: create(
      aToken(9, { authMethod: { name: 'login', namespace: DEFAULT_NAMESPACE, createIndex: 1 } }),
    ),
    says: 'invalid: Failed to apply token write request: No such auth method with Name: login',
  },
  'update of a missing token': {
    change: update(aToken(9)),
    says: `update-target-missing: Cannot find token "${accessorNumbered(9)}"`,
  },
  'update of an expired token': {
    change: update(aToken(4, { expirationTime: LATER })),
    given: { timeMs: Date.parse(LATER) + 1 },
    says: `update-target-missing: Cannot find token "${accessorNumbered(4)}"`,
  },
  "update of another namespace's token": {
    change: update(aToken(2)),
    says: `update-target-missing: Cannot find token "${accessorNumbered(2)}"`,
  },
  'update of a secret': {
    change: update(aToken(1, { secretId: secretNumbered(9) })),
    says: "invalid: Changing a token's SecretID is not permitted",
  },
  'update of locality': {
    change: update(aToken(3)),
    says: `invalid: Cannot toggle local mode of ${accessorNumbered(3)}`,
  },
  'update of the auth method': {
    change: update(aToken(5)),
    says: `invalid: Cannot change AuthMethod of ${accessorNumbered(5)}`,
  },
  'update of the expiration time': {
    change: update(aToken(4, { expirationTime: '2026-01-01T02:00:00Z' as Instant })),
    says: `invalid: Cannot change expiration time of ${accessorNumbered(4)}`,
  },
  'update with cas of another index': {
    change: update(aToken(1)),
    given: { cas: 3 },
    says: 'cas-mismatch: The object is not as cas=3 expects: its ModifyIndex is 12',
  },
  'create with cas of an index': {
    change: create(aToken(9)),
    given: { cas: 3 },
    says: 'cas-mismatch: The object is not as cas=3 expects: it does not exist',
  },
  'delete with cas 0 of what is there': {
    change: { type: 'token.delete', accessorId: accessorNumbered(1) },
    given: { cas: 0 },
    says: 'cas-mismatch: The object is not as cas=0 expects: its ModifyIndex is 12',
  },
  'delete of the anonymous token': {
    change: { type: 'token.delete', accessorId: ANONYMOUS_ACCESSOR },
    says: 'invalid: Delete operation not permitted on the anonymous token',
  },
  'policy of a taken name, in any letter case': {
    change: policySet('create', aPolicy(9, { name: 'oPS' })),
    says: 'duplicate: Invalid Policy: A Policy with Name "oPS" already exists',
  },
  'policy renamed to a taken name': {
    change: policySet('update', aPolicy(1, { name: 'GLOBAL-management' })),
    says: 'duplicate: Invalid Policy: A policy with name "GLOBAL-management" already exists',
  },
  'policy of a taken id': {
    change: policySet('create', aPolicy(1)),
    says: 'duplicate: Invalid Policy: ID is already in use',
  },
  'update of a missing policy': {
    change: policySet('update', aPolicy(9)),
    says: `update-target-missing: cannot find policy ${policyIdNumbered(9)}`,
  },
  "update of another namespace's policy": {
    change: policySet('update', aPolicy(2)),
    says: `update-target-missing: cannot find policy ${policyIdNumbered(2)}`,
  },
  'update of built-in rules': {
    change: policySet(
      'update',
      aPolicy(1, { id: GLOBAL_MANAGEMENT_ID, name: 'global-management', rules: 'acl = "read"' }),
    ),
    says: 'invalid: Changing the Rules for the builtin global-management policy is not permitted',
  },
  'update of built-in datacenters': {
    change: policySet(
      'update',
      aPolicy(1, {
        id: GLOBAL_MANAGEMENT_ID,
        name: 'global-management',
        rules: 'acl = "write"',
        datacenters: ['dc2'],
      }),
    ),
    says: 'invalid: Changing the Datacenters of the global-management policy is not permitted',
  },
  'delete of a built-in policy': {
    change: { type: 'policy.delete', id: GLOBAL_MANAGEMENT_ID },
    says: 'invalid: Delete operation not permitted on the builtin global-management policy',
  },
  'role of a taken name': {
    change: roleSet('create', aRole(9, { name: 'ROLE-1' })),
    says: 'duplicate: Invalid Role: A Role with Name "ROLE-1" already exists',
  },
  'role with an unknown policy': {
    change: roleSet('create', aRole(9, { policies: [MISSING] })),
    says: `invalid: Failed to apply role upsert request: No such policy with ID: ${MISSING}`,
  },
  'token with a role of another namespace': {
    change: create(aToken(9, { roles: [roleIdNumbered(2)] })),
    says: `invalid: No such ACL role with ID "${roleIdNumbered(2)}"`,
  },
  "update of another namespace's rule": {
    change: ruleSet('update', aBindingRule(1, { namespace: TEAM })),
    says: `update-target-missing: cannot find binding rule ${ruleIdNumbered(1)}`,
  },
  'update of a missing role': {
    change: roleSet('update', aRole(9)),
    says: `update-target-missing: cannot find role ${roleIdNumbered(9)}`,
  },
  'method of another type': {
    change: methodSet(anAuthMethod('LOGIN', { type: 'oidc' })),
    says: 'invalid: the Type field of an Auth Method is immutable',
  },
  'method with cas 0 of what is there': {
    change: methodSet(anAuthMethod('login')),
    given: { cas: 0 },
    says: 'cas-mismatch: The object is not as cas=0 expects: its ModifyIndex is 9',
  },
  'rule of an unknown method': {
    change: ruleSet('create', aBindingRule(9, { authMethod: 'nope' })),
    says: 'invalid: cannot find auth method with name "nope"',
  },
  'rule moved to another method': {
    change: ruleSet('update', aBindingRule(1, { authMethod: 'kept' })),
    says: 'invalid: the AuthMethod field of an Binding Rule is immutable',
  },
  'update of a missing rule': {
    change: ruleSet('update', aBindingRule(9)),
    says: `update-target-missing: cannot find binding rule ${ruleIdNumbered(9)}`,
  },
  'namespace that exists': {
    change: namespaceSet('create', aNamespace('team')),
    says: 'duplicate: Namespace "team" already exists',
  },
  'update of a missing namespace': {
    change: namespaceSet('update', aNamespace('gone')),
    says: 'update-target-missing: cannot find namespace gone',
  },
  'namespace with unknown defaults': {
    change: namespaceSet('either', aNamespace('team', { policyDefaults: [policyIdNumbered(3)] })),
    says: `invalid: No such ACL policy with ID "${policyIdNumbered(3)}"`,
  },
  'delete of a namespace that holds something': {
    change: { type: 'namespace.delete', name: TEAM },
    says: 'invalid: Namespace "team" is not empty: it holds 1 token, 1 policy, 1 role',
  },
  'delete of the default namespace': {
    change: { type: 'namespace.delete', name: DEFAULT_NAMESPACE },
    says: 'invalid: Delete operation not permitted on the default namespace',
  },
};

t.test(
  'apply: refuses with these words, and a refusal changes nothing but the applied entry',
  async (test) => {
    const harness = await furnished();
    const { machine, kv } = harness;
    const stateRows = (): readonly string[] => kv.dump().filter((row) => !row.startsWith('01 '));
    const before = stateRows();
    const facts = (): unknown => [machine.index(), machine.position(), machine.digests()];
    const factsBefore = facts();
    for (const [what, { change, says, given }] of Object.entries(REFUSALS)) {
      const appliedIndex = machine.appliedIndex();
      test.equal(await harness.tell(change, given), says, what);
      test.equal(machine.appliedIndex(), appliedIndex + 1, `${what}: the log moves on`);
      if (stateRows().join() !== before.join()) test.fail(`${what}: changed rows`);
    }
    test.same(facts(), factsBefore);
  },
);

t.test('apply: a drawn create makes what a create makes, and its ids are taken', async (test) => {
  const [drawn, plain] = await Promise.all([startedMachine(), startedMachine()]);
  await drawn.one(createDrawn(aToken(1)));
  await plain.one(create(aToken(1)));
  test.same(drawn.machine.digests(), plain.machine.digests());
  const outcomes = await drawn.run(
    aCommand(createDrawn(aToken(1))),
    aCommand(create(aToken(2, { accessorId: secretNumbered(1) as string as never }))),
    aCommand(create(aToken(2, { secretId: secretNumbered(1) }))),
    aCommand(create(aToken(2, { secretId: accessorNumbered(1) as string as SecretId }))),
  );
  test.same(
    outcomes.map((outcome) => (outcome.kind === 'applied' ? 'ok' : outcome.code)),
    ['duplicate', 'duplicate', 'duplicate', 'duplicate'],
  );
});

t.test(
  'apply: the same refusals hold within one batch, against what the batch made',
  async (test) => {
    const harness = await startedMachine();
    const outcomes = await harness.run(
      aCommand(policySet('create', aPolicy(1))),
      aCommand(policySet('create', aPolicy(2, { name: 'POLICY-1' }))),
      aCommand(create(aToken(1, { policies: [policyIdNumbered(1)] }))),
      aCommand(create(aToken(2, { secretId: secretNumbered(1) }))),
      aCommand({ type: 'policy.delete', id: policyIdNumbered(1) }),
      aCommand(policySet('update', aPolicy(1, { description: 'lost against the delete' }))),
      aCommand(create(aToken(3, { policies: [policyIdNumbered(1)] }))),
      aCommand(policySet('create', aPolicy(2, { name: 'POLICY-1' }))),
    );
    test.same(
      outcomes.map((outcome) => (outcome.kind === 'applied' ? 'ok' : outcome.code)),
      ['ok', 'duplicate', 'ok', 'duplicate', 'ok', 'update-target-missing', 'invalid', 'ok'],
    );
    test.equal(harness.machine.policy(policyIdNumbered(1)), undefined, 'nothing is re-created');
  },
);

t.test(
  'index: one command is one index; the position counts what other datacenters must have',
  async (test) => {
    const harness = await startedMachine();
    const { machine } = harness;
    const start = machine.index();
    const seq = machine.position().seq;
    const [made, local] = await harness.run(
      aCommand(policySet('create', aPolicy(1))),
      aCommand(create(aToken(1, { local: true }))),
      aCommand(create(aToken(1))),
      aCommand({ type: 'policy.delete', id: MISSING }),
    );
    test.match(made, { index: start + 1, position: { epoch: 1, seq: seq + 1 }, replayed: false });
    test.match(local, { index: start + 2, position: { epoch: 1, seq: seq + 1 } });
    test.match(machine.token(accessorNumbered(1)), {
      createIndex: start + 2,
      modifyIndex: start + 2,
    });
    test.equal(machine.index(), start + 2, 'neither a refusal nor an empty delete moves it');
    test.equal(machine.tableIndex('policies'), start + 1);
    test.equal(machine.tableIndex('tokens'), start + 2);
    test.equal(machine.tableIndex('roles'), 1, 'a table that never changed is at 1');
    test.equal(new MachineHarness(new MemoryKv()).machine.index(), 1);
    await harness.one(policySet('update', aPolicy(1)));
    test.match(machine.policy(policyIdNumbered(1)), {
      createIndex: start + 1,
      modifyIndex: start + 3,
    });
  },
);

t.test(
  'digest: local tokens count in the digest of all and not in the global one',
  async (test) => {
    const harness = await startedMachine();
    const before = harness.machine.digests();
    await harness.one(create(aToken(1, { local: true })));
    const after = harness.machine.digests();
    test.equal(after.global, before.global);
    test.not(after.all, before.all);
    await harness.one({ type: 'token.delete', accessorId: accessorNumbered(1) });
    test.same(harness.machine.digests(), before);
  },
);

t.test('global effects: an effect on a local object is left out', async (test) => {
  const key = Uint8Array.of(1);
  const effects = [
    { key, value: key, isLocal: true },
    { key, value: undefined, isLocal: false },
  ];
  test.same(globalEffectsOf(effects), [effects[1]]);
});

t.test('cas: each kind is written as it was seen, or not at all', async (test) => {
  const harness = await furnished();
  const { machine } = harness;
  await harness.one(namespaceSet('create', aNamespace('empty')));
  const [namespace, name] = [DEFAULT_NAMESPACE, aNamespaceName('empty')];
  const kinds: Readonly<
    Record<string, readonly [Change, Change, () => { readonly modifyIndex: number } | undefined]>
  > = {
    token: [
      update(aToken(1)),
      { type: 'token.delete', accessorId: accessorNumbered(1) },
      () => machine.token(accessorNumbered(1)),
    ],
    role: [
      roleSet('update', aRole(1)),
      { type: 'role.delete', id: roleIdNumbered(1) },
      () => machine.role(roleIdNumbered(1)),
    ],
    policy: [
      policySet('update', aPolicy(1)),
      { type: 'policy.delete', id: policyIdNumbered(1) },
      () => machine.policy(policyIdNumbered(1)),
    ],
    rule: [
      ruleSet('update', aBindingRule(1)),
      { type: 'binding-rule.delete', id: ruleIdNumbered(1) },
      () => machine.bindingRule(ruleIdNumbered(1)),
    ],
    method: [
      methodSet(anAuthMethod('login')),
      { type: 'auth-method.delete', namespace, name: 'login' },
      () => machine.authMethod(namespace, 'login'),
    ],
    namespace: [
      namespaceSet('either', aNamespace('empty')),
      { type: 'namespace.delete', name },
      () => machine.namespace('empty'),
    ],
  };
  for (const [kind, [set, remove, held]] of Object.entries(kinds)) {
    for (const change of [set, remove]) {
      const { modifyIndex } = held()!;
      for (const cas of [0, modifyIndex - 1, modifyIndex + 1])
        test.match(await harness.tell(change, { cas }), /^cas-mismatch: /, `${kind}, cas ${cas}`);
      test.equal(held()?.modifyIndex, modifyIndex, kind);
      test.equal(await harness.tell(change, { cas: modifyIndex }), 'ok', kind);
    }
    test.equal(held(), undefined, kind);
    test.match(await harness.tell(remove, { cas: 1 }), /^cas-mismatch: /, `no ${kind}`);
    test.equal(await harness.tell(remove, { cas: 0 }), 'ok', `no ${kind}`);
  }
});

t.test('uuid: the letter case of an id survives, and any case finds it', async (test) => {
  const harness = await startedMachine();
  const accessorId = 'ABCDEF01-2222-4333-8444-00000000000a' as never;
  await harness.one(create(aToken(1, { accessorId })));
  const found = harness.machine.token('abcdef01-2222-4333-8444-00000000000A');
  test.equal(found?.accessorId, accessorId);
  await harness.one(update({ ...aToken(1), accessorId: found!.accessorId.toLowerCase() as never }));
  test.equal(harness.machine.token(accessorId)?.accessorId, accessorId);
  test.equal(harness.machine.totals().tokens, 2);
});

t.test(
  'names: a policy may change its letter case, and its old name is free after a rename',
  async (test) => {
    const harness = await startedMachine();
    const { machine } = harness;
    await harness.one(policySet('create', aPolicy(1, { name: 'one' })));
    test.equal(await harness.tell(policySet('update', aPolicy(1, { name: 'ONE' }))), 'ok');
    test.equal(machine.policyByName(DEFAULT_NAMESPACE, 'One')?.name, 'ONE');
    test.equal(await harness.tell(policySet('update', aPolicy(1, { name: 'two' }))), 'ok');
    test.equal(machine.policyByName(DEFAULT_NAMESPACE, 'one'), undefined);
    test.equal(await harness.tell(policySet('create', aPolicy(2, { name: 'one' }))), 'ok');
  },
);

t.test('auth method: a replacement keeps CreateIndex, name and type', async (test) => {
  const harness = await furnished();
  const before = harness.machine.authMethod(DEFAULT_NAMESPACE, 'login')!;
  await harness.one(methodSet(anAuthMethod('LOGIN', { description: 'new' })));
  const { createIndex, name, description } = harness.machine.authMethod(
    DEFAULT_NAMESPACE,
    'login',
  )!;
  test.same([createIndex, name, description], [before.createIndex, 'login', 'new']);
});

t.test(
  'auth method: deleting one deletes its rules at once, voids its tokens, and they are reaped',
  async (test) => {
    const harness = await furnished();
    const { machine } = harness;
    await harness.one(create(aToken(6, { authMethod: originOf(harness, 'login') })));
    await harness.one(create(aToken(7, { authMethod: originOf(harness, 'Kept') })));
    const outcome = await harness.one({
      type: 'auth-method.delete',
      namespace: DEFAULT_NAMESPACE,
      name: 'LOGIN',
    });
    test.match(outcome, { kind: 'applied', answer: { type: 'deleted', existed: true } });
    test.equal(machine.bindingRule(ruleIdNumbered(1)), undefined);
    test.equal(machine.tableIndex('binding-rules'), machine.tableIndex('auth-methods'));
    const hearsOfIt = 'whoever lists the tokens hears of it';
    test.equal(machine.tableIndex('tokens'), machine.tableIndex('auth-methods'), hearsOfIt);
    const token = machine.token(accessorNumbered(5))!;
    test.ok(isVoid(token, machine, FIXTURE_TIME_MS));

    await harness.one(methodSet(anAuthMethod('login')));
    test.ok(isVoid(token, machine, FIXTURE_TIME_MS), 'a new method of the name is another one');
    const listed = { by: 'auth-method', name: 'login', namespace: DEFAULT_NAMESPACE } as const;
    test.same(await collect(machine.tokens({ kind: 'all' }, listed, {})), []);
    test.match(
      await harness.tell(update(aToken(5, { authMethod: token.authMethod }))),
      /No such auth method with Name: login/,
    );

    const orphans = await orphansIn(machine);
    test.same(orphans, [accessorNumbered(5), accessorNumbered(6)]);
    test.equal((await orphansIn(machine, { limit: 1 })).length, 1);
    await harness.one({ type: 'token.reap', accessorIds: orphans.slice(0, 1) });
    test.same(await orphansIn(machine), orphans.slice(1), 'the rest is still found');
    const others = [accessorNumbered(7), accessorNumbered(1), ANONYMOUS_ACCESSOR];
    await harness.one({ type: 'token.reap', accessorIds: [...orphans, ...others] });
    test.equal(machine.token(accessorNumbered(5)), undefined);
    test.ok(machine.token(accessorNumbered(7)), 'only what is void is reaped');
    test.same(await orphansIn(machine), []);
    const retired = harness.kv.dump().filter((row) => row.startsWith('2a') || row.startsWith('29'));
    test.equal(retired.length, 1, 'only the method that lives has a count of tokens');
  },
);

t.test(
  'expiry: tokens are found once their time has passed, and reaped by the time of the command',
  async (test) => {
    const harness = await furnished();
    const { machine } = harness;
    const expiry = Date.parse(LATER);
    test.same(await expiredIn(machine, expiry), []);
    test.same(await expiredIn(machine, expiry + 1), [accessorNumbered(4)]);
    const reap: Change = { type: 'token.reap', accessorIds: [accessorNumbered(4)] };
    await harness.one(reap, { timeMs: expiry });
    test.ok(machine.token(accessorNumbered(4)));
    await harness.one(reap, { timeMs: expiry + 1 });
    test.equal(machine.token(accessorNumbered(4)), undefined);
    test.same(await expiredIn(machine, expiry + 1), []);
  },
);

t.test(
  'bootstrap: works once, and again only for who knows the index of the last time',
  async (test) => {
    const harness = await startedMachine();
    const bootstrap = (number: number, resetIndex?: number): Change => ({
      type: 'bootstrap',
      token: aToken(number, { policies: [GLOBAL_MANAGEMENT_ID] }),
      resetIndex,
    });
    test.equal(harness.machine.bootstrapIndex(), undefined);
    const first = await harness.one(bootstrap(1));
    const index = harness.machine.bootstrapIndex();
    test.match(first, { kind: 'applied', index, answer: { token: { createIndex: index } } });
    test.equal(
      await harness.tell(bootstrap(2)),
      `permission-denied: Permission denied: ACL bootstrap no longer allowed (reset index: ${index})`,
    );
    test.equal(
      await harness.tell(bootstrap(2, 1)),
      `invalid: Invalid bootstrap reset index (specified 1, reset index: ${index})`,
    );
    test.match(
      await harness.tell({
        ...bootstrap(2, index),
        token: aToken(2, { secretId: secretNumbered(1) }),
      } as Change),
      /a token with that secret already exists/,
    );
    test.equal(await harness.tell(bootstrap(2, index)), 'ok');
    test.ok(harness.machine.token(accessorNumbered(1)), 'older tokens stay');
    test.equal(harness.machine.bootstrapIndex(), harness.machine.index());
  },
);

t.test(
  'built-ins: making sure again changes nothing; new rules arrive under the kept name',
  async (test) => {
    const harness = await startedMachine();
    const { machine } = harness;
    const before = [machine.index(), machine.digests(), machine.position()];
    test.match(await harness.one(BUILTINS), { kind: 'applied', answer: { type: 'done' } });
    test.same([machine.index(), machine.digests(), machine.position()], before);
    const builtin = BUILTINS.policies[0]!;
    await harness.one(policySet('update', { ...builtin, name: 'root', description: 'ours' }));
    await harness.one({ ...BUILTINS, policies: [{ ...builtin, rules: 'acl = "read"' }] });
    const { name, description, rules } = machine.policy(GLOBAL_MANAGEMENT_ID)!;
    test.same([name, description, rules], ['root', 'ours', 'acl = "read"']);
    test.equal(machine.bootstrapIndex(), undefined);
    await harness.one({ ...BUILTINS, tokens: [...BUILTINS.tokens, aToken(1)] });
    test.equal(machine.bootstrapIndex(), machine.index(), 'a configured token is the bootstrap');
  },
);

for (const level of [6, 7]) {
  t.test(
    `built-ins: the configured token is made once from level 7 on, here ${level}`,
    async (test) => {
      const harness = await startedMachine();
      const { machine } = harness;
      await harness.one({ type: 'level.raise', level });
      const ensured: Change = { ...BUILTINS, tokens: [...BUILTINS.tokens, aToken(1)] };
      await harness.one(ensured);
      test.ok(machine.token(accessorNumbered(1)), 'where there was no bootstrap');
      const index = machine.bootstrapIndex();
      await harness.one({ type: 'token.delete', accessorId: accessorNumbered(1) });
      await harness.one(ensured);
      test.equal(machine.token(accessorNumbered(1)) === undefined, level === 7, 'it was deleted');
      test.equal(machine.bootstrapIndex(), index);
    },
  );
}

t.test(
  'request id: a repeat gets the first outcome and changes nothing, for ten minutes',
  async (test) => {
    const harness = await startedMachine();
    const { machine } = harness;
    const mark = (request: number, fingerprint = 1): RequestMark => ({
      key: new Uint8Array(32).fill(request),
      fingerprint: new Uint8Array(32).fill(fingerprint),
    });
    const request = mark(1);
    const first = await harness.one(create(aToken(1)), { request });
    const digests = machine.digests();
    const repeat = await harness.one(create(aToken(2)), { request, timeMs: FIXTURE_TIME_MS + 1 });
    test.same(repeat, { ...first, replayed: true });
    test.equal(machine.token(accessorNumbered(2)), undefined);
    test.same(machine.digests(), digests);
    test.match(machine.request(request.key), { outcome: { replayed: true } });
    test.equal(
      await harness.tell(create(aToken(2)), { request: mark(1, 2) }),
      'invalid: The request id was used before, for another request',
    );
    const refused = await harness.tell(create(aToken(1)), { request: mark(2) });
    test.match(refused, /duplicate/);
    test.equal(machine.request(mark(2).key), undefined, 'refusals are not remembered');

    const tenMinutes = FIXTURE_TIME_MS + 600_000;
    test.same(await machine.oldRequests(FIXTURE_TIME_MS, 10), []);
    const [due] = await machine.oldRequests(FIXTURE_TIME_MS + 1, 10);
    test.same(due, request.key);
    const trim: Change = { type: 'request-id.trim', keys: [request.key] };
    await harness.one(trim, { timeMs: tenMinutes - 1 });
    test.ok(machine.request(request.key));
    const later = await harness.one(create(aToken(2)), { request, timeMs: tenMinutes });
    test.match(later, { kind: 'applied', replayed: false }, 'too old: it is a new request');
    await harness.one(trim, { timeMs: tenMinutes + 600_000 });
    test.equal(machine.request(request.key), undefined);
    test.same(await machine.oldRequests(tenMinutes * 2, 10), []);
  },
);

t.test('pending logins: kept until deleted, found by their time', async (test) => {
  const harness = await startedMachine();
  const { machine } = harness;
  const digests = machine.digests();
  const login = { key: 'state-1', value: Uint8Array.of(1, 2), expiresMs: 5000 };
  await harness.one({ type: 'pending-login.set', ...login });
  test.match(machine.pendingLogin('state-1'), { expiresMs: 5000 });
  test.same(await machine.oldPendingLogins(5000, 10), []);
  test.same(await machine.oldPendingLogins(5001, 10), ['state-1']);
  await harness.one({ type: 'pending-login.delete', keys: ['state-1', 'never was'] });
  test.equal(machine.pendingLogin('state-1'), undefined);
  test.same(await machine.oldPendingLogins(9999, 10), []);
  test.same(machine.digests(), digests);
});

t.test('namespace: can go when it is empty again, counts included', async (test) => {
  const harness = await furnished();
  const { machine } = harness;
  const gone: Change[] = [
    { type: 'token.delete', accessorId: accessorNumbered(2) },
    { type: 'policy.delete', id: policyIdNumbered(2) },
    { type: 'role.delete', id: roleIdNumbered(2) },
  ];
  test.same(machine.counts(TEAM), {
    tokens: 1,
    policies: 1,
    roles: 1,
    authMethods: 0,
    bindingRules: 0,
  });
  for (const change of gone) test.equal(await harness.tell(change), 'ok');
  test.equal(await harness.tell({ type: 'namespace.delete', name: TEAM }), 'ok');
  test.equal(machine.namespace('team'), undefined);
  test.match(machine.totals(), { namespaces: 2, tokens: 5, localTokens: 1, policies: 3, roles: 1 });
});

t.test('lists: pages go on behind the key of the last object', async (test) => {
  const harness = await furnished();
  const { machine } = harness;
  const pages = async <T>(
    list: (after: string | undefined) => AsyncIterable<readonly T[]>,
    keyOf: (object: T) => string,
  ): Promise<readonly string[]> => {
    const seen: string[] = [];
    for (let after: string | undefined; ; ) {
      const [object] = await collect(list(after));
      if (object === undefined) return seen;
      after = keyOf(object);
      seen.push(after);
    }
  };
  const all = { kind: 'all' } as const;
  const one = { kind: 'one', name: TEAM } as const;
  test.same(await pages((after) => machine.policies(all, { after, limit: 1 }), pageKeyOf), [
    'default/global-management',
    'default/ops',
    'other/policy-3',
    'team/policy-2',
  ]);
  test.same(
    await pages(
      (after) => machine.policies(one, { after, limit: 1 }),
      ({ name }) => name,
    ),
    ['policy-2'],
  );
  test.same(await pages((after) => machine.namespaces({ after, limit: 1 }), pageKeyOf), [
    'default',
    'other',
    'team',
  ]);
  test.same(await pages((after) => machine.authMethods(all, { after, limit: 1 }), pageKeyOf), [
    'default/kept',
    'default/login',
  ]);
  test.equal(
    (await pages((after) => machine.tokens(all, undefined, { after, limit: 1 }), pageKeyOf)).length,
    6,
  );
  test.throws(() => machine.tokens(all, undefined, { after: 'nowhere' }), { name: 'AclError' });
});

t.test(
  'lists: tokens of all namespaces by a filter come in one order, page by page',
  async (test) => {
    const harness = await furnished();
    const { machine } = harness;
    const policies = [policyIdNumbered(1)];
    const wanted = [1];
    for (let each = 600; each < 1300; each += 1) {
      const namespace = [DEFAULT_NAMESPACE, TEAM, OTHER][(each * 7) % 3]!;
      await harness.one(create(aToken(each, { namespace, policies })));
      wanted.push(each);
    }
    const all = { kind: 'all' } as const;
    const filter = { by: 'policy', id: policyIdNumbered(1) } as const;
    const listed = async (after: string | undefined, limit?: number): Promise<readonly string[]> =>
      (await collect(machine.tokens(all, filter, { after, limit }))).map(pageKeyOf);
    const expected = wanted.map((each) => accessorNumbered(each));
    test.same(await listed(undefined), expected);
    test.same(await listed(expected[300], 300), expected.slice(301, 601));
    test.same(await listed(expected.at(-1)), []);
  },
);

t.test(
  'machine: nothing of a batch is seen, heard or answered before it is on disk',
  async (test) => {
    const kv = new FailingKv(new MemoryKv());
    const harness = new MachineHarness(kv);
    const { machine } = harness;
    await harness.one(BUILTINS);
    const facts = (): unknown => [
      machine.index(),
      machine.appliedIndex(),
      machine.totals(),
      machine.digests(),
    ];
    const before = facts();
    const heard: unknown[] = [];
    machine.watch.onApplied((event) => heard.push(event));
    let release = (): void => undefined;
    kv.beforeWrite = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    const made = harness.one(create(aToken(1)));
    await Promise.resolve();
    test.same(facts(), before);
    test.equal(machine.token(accessorNumbered(1)), undefined);
    test.same(heard, []);
    release();
    test.match(await made, { kind: 'applied' });
    test.equal(heard.length, 1);
    test.ok(machine.token(accessorNumbered(1)));

    const after = facts();
    kv.beforeWrite = () => Promise.reject(new Error('no space left on device'));
    await test.rejects(harness.one(create(aToken(2))));
    test.same(facts(), after, 'a failed batch leaves the state as it was');
    test.equal(heard.length, 1);
  },
);

t.test(
  'watch: wakes for the table and the object that changed, by id and by both names',
  async (test) => {
    const harness = await furnished();
    const { machine, clock } = harness;
    const { watch } = machine;
    const woken: string[] = [];
    const wait = (label: string, table: 'policies' | 'roles', object?: string): void => {
      const waiting = watch.waitFor({ table, object }, new AbortController().signal);
      waiting.then(() => woken.push(label)).catch(() => test.fail(label));
    };
    const policyName = (name: string): string => watchKey({ namespace: DEFAULT_NAMESPACE, name });
    wait('table', 'policies');
    wait('id', 'policies', watchKey({ id: policyIdNumbered(1).toUpperCase() }));
    wait('old name', 'policies', policyName('OPS'));
    wait('new name', 'policies', policyName('renamed'));
    wait('another policy', 'policies', watchKey({ id: policyIdNumbered(2) }));
    wait('another table', 'roles');
    const heard: unknown[] = [];
    const stop = watch.onApplied((event) => {
      heard.push(event, machine.policy(policyIdNumbered(1))?.name);
    });
    await harness.one(policySet('update', aPolicy(1, { name: 'renamed' })));
    const change = { table: 'policies', key: policyIdNumbered(1) };
    test.match(heard, [{ kind: 'changed', changes: [change] }, 'renamed']);
    test.same(woken, [], 'nobody is woken in the turn of the batch');
    clock.advance(0);
    await Promise.resolve();
    await Promise.resolve();
    test.same(new Set(woken), new Set(['id', 'new name', 'old name', 'table']));
    test.equal(watch.waitingCount, 2);
    stop();
    watch.releaseAll();
    clock.advance(0);
    test.equal(watch.waitingCount, 0);
  },
);

t.test('watch: wakes thousands in slices, and forgets those who gave up', async (test) => {
  const harness = await furnished();
  const { machine, clock } = harness;
  const { watch } = machine;
  const gaveUp = new AbortController();
  const abandoned = watch.waitFor({ table: 'tokens' }, gaveUp.signal);
  gaveUp.abort();
  await abandoned;
  test.equal(watch.waitingCount, 0);
  let wokenCount = 0;
  const waiting = Array.from({ length: 1000 }, async () => {
    await watch.waitFor({ table: 'tokens' }, new AbortController().signal);
    wokenCount += 1;
  });
  await harness.one({ type: 'token.delete', accessorId: accessorNumbered(1) });
  clock.advance(0);
  await new Promise((resolve) => setImmediate(resolve));
  test.equal(wokenCount, 256);
  test.equal(watch.waitingCount, 1000 - 256);
  for (let turns = 0; turns < 3; turns += 1) clock.advance(0);
  await Promise.all(waiting);
  test.equal(watch.waitingCount, 0);
});
