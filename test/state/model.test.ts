// Random commands, against the simple model and against the state's own promises: lists and refusals
// as the model says, digests and index rows as they would be made from nothing, the same bytes however
// the commands were grouped, and the same state again after a crash at any write.

import fc from 'fast-check';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { DurableLog } from '../../cluster/log/durable-log.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import { openSoloReplica } from '../../cluster/replica/solo-replica.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../../src/acl/ids.ts';
import type { Instant } from '../../src/acl/instant.ts';
import type { Token } from '../../src/acl/token.ts';
import { openLevelKv } from '../../src/platform-node/level-kv.ts';
import { encodeCommand } from '../../src/state/command-codec.ts';
import type { Change, Command } from '../../src/state/commands.ts';
import { Digest, rowHash } from '../../src/state/digest.ts';
import { StateMachine } from '../../src/state/machine.ts';
import {
  AUTH_METHODS,
  BINDING_RULES,
  NAMESPACES,
  type ObjectTable,
  POLICIES,
  ROLES,
  TOKENS,
} from '../../src/state/objects.ts';
import type { Outcome } from '../../src/state/outcome.ts';
import { decodeRecord } from '../../src/state/record-codec.ts';
import { ROW } from '../../src/state/tables.ts';
import type { StateView } from '../../src/state/view.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { FakeClock } from '../support/fake-clock.ts';
import {
  aBindingRule,
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
} from '../support/fixtures.ts';
import { collect, MachineHarness } from '../support/machine-harness.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { Model } from './model.ts';

const NAMESPACE_NAMES = ['default', 'team', 'other'].map(aNamespaceName);
const MINUTE_MS = 60_000;

/** Undefined but for one time in so many. */
function rarely<T>(arbitrary: fc.Arbitrary<T>, times = 4): fc.Arbitrary<T | undefined> {
  return fc.oneof(
    { weight: times - 1, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary },
  );
}

const number = fc.integer({ min: 1, max: 5 });
const namespaceName = fc.oneof(
  { weight: 3, arbitrary: fc.constant(DEFAULT_NAMESPACE) },
  { weight: 1, arbitrary: fc.constantFrom(...NAMESPACE_NAMES) },
);
const policyIds = fc
  .uniqueArray(number, { maxLength: 2 })
  .map((all) => all.map((each) => policyIdNumbered(each)));
const roleIds = fc
  .uniqueArray(number, { maxLength: 1 })
  .map((all) => all.map((each) => roleIdNumbered(each)));
const presence = fc.constantFrom('create', 'create', 'update');
const methodName = fc.constantFrom('login', 'Login', 'other');
const minute = fc.integer({ min: 0, max: 30 });
const momentOf = (minutes: number): Instant =>
  new Date(FIXTURE_TIME_MS + minutes * MINUTE_MS).toISOString() as Instant;

const token = fc
  .record({
    number,
    secret: number,
    secretIsAccessor: fc.boolean(),
    namespace: namespaceName,
    policies: policyIds,
    roles: roleIds,
    local: rarely(fc.constant(true)).map((each) => each ?? false),
    expiry: rarely(minute),
    service: rarely(fc.constantFrom('web', 'api')),
    template: rarely(fc.constantFrom('builtin/service', 'builtin/node')),
    method: rarely(fc.record({ name: methodName, createIndex: fc.integer({ min: 6, max: 9 }) })),
  })
  .map((given) =>
    aToken(given.number, {
      secretId: (given.secretIsAccessor && given.secret === 5
        ? accessorNumbered(given.secret)
        : secretNumbered(given.secret)) as never,
      namespace: given.namespace,
      policies: given.policies,
      roles: given.roles,
      local: given.local,
      expirationTime: given.expiry === undefined ? undefined : momentOf(given.expiry),
      serviceIdentities:
        given.service === undefined ? [] : [{ serviceName: given.service, datacenters: [] }],
      templatedPolicies:
        given.template === undefined
          ? []
          : [
              {
                templateId: 'x',
                templateName: given.template,
                variables: { name: 'Web' },
                datacenters: [],
              },
            ],
      authMethod:
        given.method === undefined ? undefined : { ...given.method, namespace: DEFAULT_NAMESPACE },
    }),
  );

const change: fc.Arbitrary<Change> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ type: fc.constant('token.set' as const), presence, token }),
  },
  number.map((each) => ({ type: 'token.delete', accessorId: accessorNumbered(each) }) as const),
  fc.constant({ type: 'token.reap', accessorIds: [1, 2, 3, 4, 5].map(accessorNumbered) } as const),
  {
    weight: 3,
    arbitrary: fc
      .record({ presence, number, name: number, namespace: namespaceName })
      .map(({ name, ...rest }) => ({
        type: 'policy.set' as const,
        presence: rest.presence,
        policy: aPolicy(rest.number, { name: `Policy-${name}`, namespace: rest.namespace }),
      })),
  },
  number.map((each) => ({ type: 'policy.delete', id: policyIdNumbered(each) }) as const),
  {
    weight: 2,
    arbitrary: fc
      .record({ presence, number, name: number, namespace: namespaceName, policies: policyIds })
      .map(({ name, ...rest }) => ({
        type: 'role.set' as const,
        presence: rest.presence,
        role: aRole(rest.number, {
          name: `role-${name}`,
          namespace: rest.namespace,
          policies: rest.policies,
        }),
      })),
  },
  number.map((each) => ({ type: 'role.delete', id: roleIdNumbered(each) }) as const),
  {
    weight: 2,
    arbitrary: fc
      .record({ name: methodName, namespace: namespaceName, isOidc: fc.boolean() })
      .map(({ name, namespace, isOidc }) => ({
        type: 'auth-method.set' as const,
        presence: 'either' as const,
        method: anAuthMethod(name, { namespace, type: isOidc ? 'oidc' : 'jwt' }),
      })),
  },
  fc
    .record({ name: methodName, namespace: namespaceName })
    .map((address) => ({ type: 'auth-method.delete' as const, ...address })),
  {
    weight: 2,
    arbitrary: fc
      .record({ presence, number, authMethod: methodName, namespace: namespaceName })
      .map(({ presence: on, number: each, ...rest }) => ({
        type: 'binding-rule.set' as const,
        presence: on,
        rule: aBindingRule(each, rest),
      })),
  },
  number.map((each) => ({ type: 'binding-rule.delete', id: ruleIdNumbered(each) }) as const),
  {
    weight: 2,
    arbitrary: fc
      .record({
        presence: fc.constantFrom('create', 'update', 'either'),
        name: fc.constantFrom(...NAMESPACE_NAMES),
        policyDefaults: policyIds,
      })
      .map(({ presence: on, name, policyDefaults }) => ({
        type: 'namespace.set' as const,
        presence: on,
        namespace: aNamespace(name, { policyDefaults }),
      })),
  },
  fc.constantFrom(...NAMESPACE_NAMES).map((name) => ({ type: 'namespace.delete', name }) as const),
) as fc.Arbitrary<Change>;

const command: fc.Arbitrary<Command> = fc.record({
  change,
  timeMs: minute.map((each) => FIXTURE_TIME_MS + each * MINUTE_MS),
  cas: rarely(fc.integer({ min: 0, max: 12 }), 8),
  request: fc.constant(undefined),
});

/** Every run begins with what tokens and rules need, so that most commands have something to do. */
const OPENING: readonly Command[] = [
  { type: 'namespace.set', presence: 'either', namespace: aNamespace('default') } as const,
  { type: 'namespace.set', presence: 'either', namespace: aNamespace('team') } as const,
  { type: 'policy.set', presence: 'create', policy: aPolicy(1, { name: 'First' }) } as const,
  { type: 'policy.set', presence: 'create', policy: aPolicy(2, { name: 'Second' }) } as const,
  { type: 'role.set', presence: 'create', role: aRole(1, { name: 'first' }) } as const,
  { type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') } as const,
].map((each) => ({ change: each, timeMs: FIXTURE_TIME_MS, cas: undefined, request: undefined }));

const history = fc
  .array(command, { minLength: 20, maxLength: 80, size: 'max' })
  .map((commands) => [...OPENING, ...commands]);

const saidBy = (outcome: Outcome): string => (outcome.kind === 'applied' ? 'ok' : outcome.code);

t.test(
  'model: random commands come to what the model says, and leave the state it says',
  async (test) => {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(history, fc.integer({ min: 1, max: 9 }), async (commands, groupSize) => {
        const model = new Model();
        const { machine, kv, ...harness } = await runInGroups(commands, groupSize);
        const expected = commands.map((each) => model.apply(each));
        harness.outcomes.forEach((outcome, place) => {
          const { change: tried } = commands[place]!;
          const said = saidBy(outcome);
          if (said !== expected[place]) {
            throw new Error(`${place}: ${JSON.stringify(tried)}: ${said}, not ${expected[place]}`);
          }
          const what = `${tried.type} ${said}`;
          seen.set(what, (seen.get(what) ?? 0) + 1);
        });
        requireSame('index', machine.index(), Math.max(1, model.index));
        requireSame('seq', machine.position().seq, model.seq);
        await requireSameLists(machine, model);
        requireRowsFromNothing(kv, machine);
      }),
      { numRuns: 150 },
    );
    // The random commands must reach what they are meant to try.
    for (const what of [
      'token.set ok',
      'token.set duplicate',
      'token.set invalid',
      'role.set ok',
    ]) {
      test.ok((seen.get(what) ?? 0) > 20, `${what} was reached`);
    }
    for (const type of ['token.set', 'policy.set', 'binding-rule.set', 'namespace.set']) {
      test.ok((seen.get(`${type} update-target-missing`) ?? 0) > 3, `${type} update was reached`);
    }
  },
);

async function runInGroups(
  commands: readonly Command[],
  groupSize: number,
): Promise<{ machine: StateMachine; kv: MemoryKv; outcomes: readonly Outcome[] }> {
  const harness = new MachineHarness(new MemoryKv());
  const outcomes: Outcome[] = [];
  for (let at = 0; at < commands.length; at += groupSize) {
    outcomes.push(...(await harness.run(...commands.slice(at, at + groupSize))));
  }
  return { machine: harness.machine, kv: harness.kv, outcomes };
}

function requireSame(what: string, found: unknown, expected: unknown): void {
  const [left, right] = [jsonOf(found), jsonOf(expected)];
  if (left !== right) throw new Error(`${what}: found ${left}, expected ${right}`);
}

function jsonOf(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'bigint' ? `${each}n` : each,
  );
}

const byKey =
  <T>(keyOf: (object: T) => string) =>
  (left: T, right: T): number =>
    keyOf(left) < keyOf(right) ? -1 : 1;

/** Texts in the order of their code units, as keys order. */
const inOrder = (texts: readonly string[]): readonly string[] =>
  [...texts].sort(byKey((text) => text));

async function requireSameLists(view: StateView, model: Model): Promise<void> {
  const scopes = [
    { scope: { kind: 'all' } as const, has: () => true },
    ...NAMESPACE_NAMES.map((name) => ({
      scope: { kind: 'one', name } as const,
      has: (namespace: NamespaceName) => namespace === name,
    })),
  ];
  for (const { scope, has } of scopes) {
    const where = JSON.stringify(scope);
    const tokens = [...model.tokens.values()]
      .filter(({ namespace }) => has(namespace))
      .sort(byKey(({ accessorId }) => accessorId));
    const listed = async (filter: Parameters<StateView['tokens']>[1]): Promise<unknown> =>
      (await collect(view.tokens(scope, filter, {}))).map(pick);
    requireSame(`tokens ${where}`, await listed(undefined), tokens.map(pick));
    for (const each of [1, 2, 3]) {
      const [policyId, roleId] = [policyIdNumbered(each), roleIdNumbered(each)];
      requireSame(
        `tokens of policy ${each} ${where}`,
        await listed({ by: 'policy', id: policyId }),
        tokens.filter(({ policies }) => policies.includes(policyId)).map(pick),
      );
      requireSame(
        `tokens of role ${each} ${where}`,
        await listed({ by: 'role', id: roleId }),
        tokens.filter(({ roles }) => roles.includes(roleId)).map(pick),
      );
      requireSame(
        `roles of policy ${each} ${where}`,
        (await collect(view.roles(scope, policyId, {}))).map(({ id }) => id),
        inOrder(
          [...model.roles.values()]
            .filter(({ namespace, policies }) => has(namespace) && policies.includes(policyId))
            .map(({ id }) => id),
        ),
      );
    }
    requireSame(
      `tokens of web ${where}`,
      await listed({ by: 'service-name', name: 'WEB' }),
      tokens.filter(namesWeb).map(pick),
    );
    const method = model.methods.get('default/login');
    requireSame(
      `tokens of login ${where}`,
      await listed({ by: 'auth-method', name: 'LOGIN', namespace: DEFAULT_NAMESPACE }),
      tokens
        .filter(
          ({ authMethod }) =>
            authMethod !== undefined &&
            authMethod.name.toLowerCase() === 'login' &&
            authMethod.createIndex === method?.createIndex,
        )
        .map(pick),
    );
    const named = <T extends { readonly namespace: NamespaceName; readonly name: string }>(
      objects: Iterable<T>,
    ): readonly T[] =>
      [...objects]
        .filter(({ namespace }) => has(namespace))
        .sort(byKey((each) => `${each.namespace}/${each.name.toLowerCase()}`));
    const { policies, roles, methods } = model;
    const json = async (slices: AsyncIterable<readonly object[]>): Promise<readonly unknown[]> =>
      (await collect(slices)).map(sorted);
    requireSame(
      'policies',
      await json(view.policies(scope, {})),
      named(policies.values()).map(sorted),
    );
    requireSame(
      'roles',
      await json(view.roles(scope, undefined, {})),
      named(roles.values()).map(sorted),
    );
    requireSame(
      'methods',
      await json(view.authMethods(scope, {})),
      named(methods.values()).map(sorted),
    );
    for (const authMethod of [undefined, 'LOGIN']) {
      requireSame(
        'binding rules',
        (await collect(view.bindingRules(scope, authMethod, {}))).map(({ id }) => id),
        inOrder(
          [...model.rules.values()]
            .filter(({ namespace }) => has(namespace))
            .filter((rule) => [undefined, rule.authMethod.toUpperCase()].includes(authMethod))
            .map(({ id }) => id),
        ),
      );
    }
  }
  requireSame(
    'namespaces',
    (await collect(view.namespaces({}))).map(sorted),
    [...model.namespaces.values()].sort(byKey(({ name }) => name)).map(sorted),
  );
  for (const name of NAMESPACE_NAMES) {
    const count = (objects: ReadonlyMap<string, { readonly namespace: NamespaceName }>): number =>
      [...objects.values()].filter(({ namespace }) => namespace === name).length;
    requireSame(`counts of ${name}`, view.counts(name), {
      tokens: count(model.tokens),
      policies: count(model.policies),
      roles: count(model.roles),
      authMethods: count(model.methods),
      bindingRules: count(model.rules),
    });
  }
  const orphans = [...model.tokens.values()].filter(
    ({ authMethod }) =>
      authMethod !== undefined &&
      model.methods.get(`default/${authMethod.name.toLowerCase()}`)?.createIndex !==
        authMethod.createIndex,
  );
  requireSame(
    'orphans',
    inOrder(await view.orphanedTokens(100)),
    inOrder(orphans.map(({ accessorId }) => accessorId)),
  );
}

const pick = ({ accessorId, secretId, createIndex, modifyIndex }: Token): readonly unknown[] => [
  accessorId,
  secretId,
  createIndex,
  modifyIndex,
];

const sorted = (object: object): unknown => Object.entries(object).sort(byKey(([key]) => key));

function namesWeb({ serviceIdentities, templatedPolicies }: Token): boolean {
  return (
    serviceIdentities.some(({ serviceName }) => serviceName === 'web') ||
    templatedPolicies.some(({ templateName }) => templateName === 'builtin/service')
  );
}

const DERIVED_KINDS: ReadonlySet<number> = new Set([
  ROW.tokenBySecret,
  ROW.tokenByNamespace,
  ROW.tokenByPolicy,
  ROW.tokenByRole,
  ROW.tokenByService,
  ROW.tokenByMethod,
  ROW.tokenByExpiry,
  ROW.policyByName,
  ROW.roleByName,
  ROW.roleByPolicy,
  ROW.ruleByNamespace,
]);

/** Digests, totals and index rows, made again from the rows of the objects alone. */
function requireRowsFromNothing(kv: MemoryKv, view: StateView): void {
  const rows = kv.dump().map((row) => {
    const [key = '', value = ''] = row.split(' ');
    return { row, key: Buffer.from(key, 'hex'), value: Buffer.from(value, 'hex') };
  });
  const [global, all] = [new Digest(), new Digest()];
  const derived = new Set<string>();
  let localTokens = 0;
  for (const { key, value } of rows) {
    const table = tableOf(key[0]!);
    if (table === undefined) continue;
    const object = decodeRecord(table.codec, value);
    const isLocal = table.isLocal(object);
    all.add(rowHash(key, value));
    if (!isLocal) global.add(rowHash(key, value));
    if (isLocal) localTokens += 1;
    for (const row of table.indexRowsOf(object)) {
      derived.add(`${hex(row.key)} ${hex(row.value)}`);
    }
  }
  requireSame('digests', view.digests(), { global: global.hex(), all: all.hex() });
  requireSame(
    'index rows',
    rows.filter(({ key }) => DERIVED_KINDS.has(key[0]!)).map(({ row }) => row),
    inOrder([...derived]),
  );
  requireSame('local tokens', view.totals().localTokens, localTokens);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

function tableOf(
  kind: number,
): ObjectTable<{ readonly createIndex: number; readonly modifyIndex: number }> | undefined {
  const tables: Readonly<Record<number, unknown>> = {
    [ROW.token]: TOKENS,
    [ROW.policy]: POLICIES,
    [ROW.role]: ROLES,
    [ROW.authMethod]: AUTH_METHODS,
    [ROW.bindingRule]: BINDING_RULES,
    [ROW.namespace]: NAMESPACES,
  };
  return tables[kind] as ReturnType<typeof tableOf>;
}

t.test('determinism: the same log gives the same bytes, however it was grouped', async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.integer({ min: 2, max: 50 }), async (commands, groupSize) => {
      const one = await runInGroups(commands, 1);
      const many = await runInGroups(commands, groupSize);
      requireSame('rows', many.kv.dump(), one.kv.dump());
      requireSame('outcomes', many.outcomes, one.outcomes);
    }),
    { numRuns: 40 },
  );
});

t.test('stores: the one on disk and the one in memory come to the same digests', async (test) => {
  const root = test.testdir();
  let folders = 0;
  await fc.assert(
    fc.asyncProperty(history, async (commands) => {
      folders += 1;
      const { machine } = await runInGroups(commands, 7);
      const kv = await openDiskStore(test, join(root, `run-${folders}`));
      const onDisk = new MachineHarness<Kv>(kv);
      for (let at = 0; at < commands.length; at += 13) {
        await onDisk.run(...commands.slice(at, at + 13));
      }
      requireSame('digests', onDisk.machine.digests(), machine.digests());
      const reopened = StateMachine.open(kv, { clock: new FakeClock() });
      requireSame('digests after opening', reopened.digests(), machine.digests());
      const scope = { kind: 'all' } as const;
      const [left, right] = [reopened, machine].map((each) => each.tokens(scope, undefined, {}));
      requireSame('tokens', await collect(left!), await collect(right!));
      await kv.close();
    }),
    { numRuns: 8 },
  );
});

function openDiskStore(test: Test, folder: string): Promise<Kv> {
  const onFatal = (cause: Error): void => void test.fail(cause.message);
  return openLevelKv({ folder, name: 'state', onFatal });
}

t.test(
  'crash: whichever write is the last one, starting again gives the same state',
  async (test) => {
    const [commands] = fc.sample(history, { numRuns: 1, seed: 7 });
    const whole = await runInGroups(commands!, 1);
    let crashes = 0;
    for (let lastWrite = 1; ; lastWrite += 1) {
      const stores = { log: new MemoryKv(), state: new MemoryKv() };
      const answered = await runUntilWrite(stores, commands!, lastWrite);
      if (answered === commands!.length) break;
      crashes += 1;
      const after = { log: stores.log.reopened(), state: stores.state.reopened() };
      const again = await openNode(after);
      const applied = again.machine.appliedIndex();
      test.ok(applied >= answered, `${answered} were answered, ${applied} are there`);
      for (const each of commands!.slice(applied)) await again.replica.propose(encodeCommand(each));
      if (again.machine.digests().all !== whole.machine.digests().all) {
        test.fail(`crash at write ${lastWrite}: another state`);
      }
      await again.replica.close();
    }
    test.ok(crashes > 20, `${crashes} crashes were tried`);
  },
);

interface Stores {
  readonly log: Kv;
  readonly state: Kv;
}

async function openNode(stores: Stores) {
  const machine = StateMachine.open(stores.state, { clock: new FakeClock() });
  const log = await DurableLog.open(stores.log, machine.appliedEntry);
  const replica = await openSoloReplica<Outcome>({
    log,
    machine,
    onFatal: () => undefined,
    limits: { batchCountMax: 2 },
  });
  return { machine, replica };
}

/** Runs until the write of that number, on either store, fails; gives how many were answered. */
async function runUntilWrite(
  stores: Stores,
  commands: readonly Command[],
  lastWrite: number,
): Promise<number> {
  const failing = { log: new FailingKv(stores.log), state: new FailingKv(stores.state) };
  for (const kv of [failing.log, failing.state]) {
    kv.beforeWrite = () => {
      if (failing.log.writeCount + failing.state.writeCount > lastWrite) throw new Error('crash');
    };
  }
  const { replica } = await openNode(failing);
  const results = await Promise.allSettled(
    commands.map((each) => replica.propose(encodeCommand(each))),
  );
  return results.filter(({ status }) => status === 'fulfilled').length;
}
