// Random commands, against the simple model and against the state's own promises: lists and refusals
// as the model says, digests and index rows as they would be made from nothing, the same bytes however
// the commands were grouped, and the same state again after a crash at any write.

import { join } from 'node:path';
import fc from 'fast-check';
import t, { type Test } from 'tap';
import type { Kv } from '../../cluster/platform/kv.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../../src/acl/ids.ts';
import type { Token } from '../../src/acl/token.ts';
import { openLevelKv } from '../../src/platform-node/disk/level-kv.ts';
import type { Command } from '../../src/state/commands/commands.ts';
import type { Outcome } from '../../src/state/commands/outcome.ts';
import { StateMachine } from '../../src/state/machine.ts';
import type { StateView } from '../../src/state/view.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { policyIdNumbered, roleIdNumbered } from '../support/state-and-service/fixtures.ts';
import {
  collect,
  MachineHarness,
  orphansIn,
} from '../support/state-and-service/machine-harness.ts';
import { crashAtEachWrite } from './crashing-node.ts';
import { history, NAMESPACE_NAMES } from './histories.ts';
import { Model } from './model.ts';
import { byKey, inOrder, requireRowsFromNothing, requireSame } from './rows-from-nothing.ts';

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
    inOrder(await orphansIn(view)),
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
    const crashes = await crashAtEachWrite(test, {
      commands: commands!,
      groupSize: 2,
      stateOf: async (machine) => machine.digests().all,
      expected: whole.machine.digests().all,
    });
    test.ok(crashes > 20, `${crashes} crashes were tried`);
  },
);
