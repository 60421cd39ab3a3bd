// What commands change of the state, and what they leave as it is.

import t from 'tap';
import {
  ANONYMOUS_ACCESSOR,
  DEFAULT_NAMESPACE,
  GLOBAL_MANAGEMENT_ID,
  type SecretId,
} from '../../../src/acl/ids.ts';
import type { Change, RequestMark } from '../../../src/state/commands/commands.ts';
import { globalEffectsOf } from '../../../src/state/global-effects.ts';
import { isVoid } from '../../../src/state/reads/standing.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  aBindingRule,
  aCommand,
  accessorNumbered,
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
} from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  collect,
  expiredIn,
  MachineHarness,
  orphansIn,
  startedMachine,
} from '../../support/state-and-service/machine-harness.ts';
import {
  create,
  createDrawn,
  furnished,
  LATER,
  MISSING,
  methodSet,
  namespaceSet,
  originOf,
  policySet,
  roleSet,
  ruleSet,
  TEAM,
  update,
} from './cases.ts';

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
    await harness.one(policySet('update', aPolicy(1, { rules: 'acl = "deny"' })));
    test.match(machine.policy(policyIdNumbered(1)), {
      rules: 'acl = "deny"',
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

t.test('delete: of what is not there says so, and of what is there', async (test) => {
  const harness = await furnished();
  await harness.one(namespaceSet('create', aNamespace('empty')));
  const [namespace, name] = [DEFAULT_NAMESPACE, aNamespaceName('empty')];
  const deletes: readonly Change[] = [
    { type: 'token.delete', accessorId: accessorNumbered(1) },
    { type: 'role.delete', id: roleIdNumbered(1) },
    { type: 'policy.delete', id: policyIdNumbered(1) },
    { type: 'binding-rule.delete', id: ruleIdNumbered(1) },
    { type: 'auth-method.delete', namespace, name: 'login' },
    { type: 'namespace.delete', name },
  ];
  for (const change of deletes) {
    for (const existed of [true, false]) {
      test.match(await harness.one(change), { answer: { existed } }, change.type);
    }
    if (change.type !== 'binding-rule.delete') continue;
    test.equal(harness.machine.bindingRuleCountOf(namespace, 'login'), 0, 'the method has none');
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
    const { accessorId } = aToken(1);
    test.equal(
      await harness.tell({ ...bootstrap(2, index), token: aToken(2, { accessorId }) } as Change),
      'duplicate: Invalid Token: AccessorID is already in use',
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
