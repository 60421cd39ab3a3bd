// What a write has to wait for: whatever changes what it was checked against, however it comes into the log.

import t from 'tap';
import { LOG_START } from '../../cluster/federation/global-log.ts';
import type { BindingRule } from '../../src/acl/binding-rule.ts';
import {
  BOOTSTRAP_DEPENDENCY,
  dependencyOf,
  methodDependency,
} from '../../src/service/dependencies.ts';
import { Overtaken, UnderWay } from '../../src/service/writes/under-way.ts';
import type { Change } from '../../src/state/commands/commands.ts';
import {
  aBindingRule,
  aNamespace,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
} from '../support/state-and-service/fixtures.ts';
import { createHarness, type Harness, newPolicy, newToken } from './harness.ts';

const NOWHERE = { bindingRule: () => undefined };

/** A datacenter that is the primary of a global log. */
async function primary(): Promise<Harness> {
  const harness = await createHarness();
  const begin = {
    type: 'global-log.begin',
    datacenter: 'dc1',
    primary: 'dc1',
    isWitness: false,
  } as const;
  await harness.deps.propose({ change: begin, timeMs: 0, cas: undefined, request: undefined });
  return harness;
}

/** The last entry of its log, as another datacenter takes it in. */
async function lastEntry({ machine }: Harness): Promise<Change> {
  const seq = machine.replication()!.cursor.seq;
  const entries = (await machine.globalEntries(seq - 1, 1 << 20))!;
  return { type: 'global-log.apply', epoch: 1, from: LOG_START, entries, to: LOG_START };
}

function isBusy(underWay: UnderWay, key: string): Promise<void> | undefined {
  try {
    underWay.requireQuiet(() => [key]);
    return undefined;
  } catch (error) {
    if (error instanceof Overtaken) return error.ended;
    throw error;
  }
}

t.test('under way: entries of the primary are what they change, until they are in', async (t) => {
  const harness = await primary();
  const id = await newPolicy(harness, 'p', '');
  const { accessorId } = await newToken(harness, {});
  const { value: role } = await harness.run('role.create', { draft: { name: 'r' } });
  const roleId = role.role.id;
  await harness.run('namespace.create', { draft: { name: 'team' } });
  const method = { name: 'm', type: 'jwt', config: {} };
  await harness.run('auth-method.create', { draft: method });
  const rule = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  const { value: made } = await harness.run('binding-rule.create', { draft: rule });
  const ruleId = made.rule.id;
  const view = { bindingRule: () => made.rule as BindingRule };
  const ofMethod = methodDependency('default', 'm');
  const steps: readonly (readonly [string, () => Promise<unknown>, string])[] = [
    [
      'a token',
      () => harness.run('token.update', { accessorId, draft: {} }),
      dependencyOf('tokens', accessorId),
    ],
    [
      'its end',
      () => harness.run('token.delete', { accessorId }),
      dependencyOf('tokens', accessorId),
    ],
    [
      'a policy',
      () => harness.run('policy.update', { id, draft: { name: 'q' } }),
      dependencyOf('policies', id),
    ],
    ['its end', () => harness.run('policy.delete', { id }), dependencyOf('policies', id)],
    [
      'a role',
      () => harness.run('role.update', { id: roleId, draft: { name: 's' } }),
      dependencyOf('roles', roleId),
    ],
    ['its end', () => harness.run('role.delete', { id: roleId }), dependencyOf('roles', roleId)],
    [
      'a namespace',
      () => harness.run('namespace.update', { name: 'team', draft: { description: 'd' } }),
      dependencyOf('namespaces', 'team'),
    ],
    [
      'its end',
      () => harness.run('namespace.delete', { name: 'team' }),
      dependencyOf('namespaces', 'team'),
    ],
    [
      'a rule',
      () => harness.run('binding-rule.update', { id: ruleId, draft: { ...rule, bindName: 'api' } }),
      ofMethod,
    ],
    ['its end', () => harness.run('binding-rule.delete', { id: ruleId }), ofMethod],
    [
      'a method',
      () =>
        harness.run('auth-method.update', { name: 'm', draft: { ...method, description: 'd' } }),
      ofMethod,
    ],
    ['its end', () => harness.run('auth-method.delete', { name: 'm' }), ofMethod],
  ];
  for (const [what, step, key] of steps) {
    await step();
    const underWay = new UnderWay(view);
    let land = (): void => undefined;
    const landed = new Promise<void>((resolve) => {
      land = resolve;
    });
    const proposed = underWay.during(await lastEntry(harness), () => landed);
    const ended = isBusy(underWay, key);
    t.ok(ended, what);
    t.notOk(isBusy(underWay, dependencyOf('tokens', 'another')), `${what}: nobody else waits`);
    land();
    await Promise.all([proposed, ended]);
    t.notOk(isBusy(underWay, key), `${what}: it is over`);
  }
});

t.test('under way: a rule of an entry counts once a batch before has brought it', async (t) => {
  const harness = await primary();
  await harness.run('auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const draft = { authMethod: 'm', bindType: 'service', bindName: 'web' };
  const { value: made } = await harness.run('binding-rule.create', { draft });
  const { id } = made.rule;
  const creation = await lastEntry(harness);
  await harness.run('binding-rule.update', { id, draft: { ...draft, selector: 'value.x == y' } });
  const narrowing = await lastEntry(harness);
  await harness.run('binding-rule.delete', { id });
  const deletion = await lastEntry(harness);
  const ofMethod = methodDependency('default', 'm');
  for (const change of [narrowing, deletion]) {
    let isHere = false;
    const underWay = new UnderWay({
      bindingRule: () => (isHere ? (made.rule as BindingRule) : undefined),
    });
    const lands: (() => void)[] = [];
    const landing = () => new Promise<void>((resolve) => lands.push(resolve));
    const proposed = [creation, change].map((each) => underWay.during(each, landing));
    t.notOk(isBusy(underWay, ofMethod), 'nobody is bound by it yet');
    isHere = true;
    lands[0]?.();
    await proposed[0];
    t.ok(isBusy(underWay, ofMethod), 'who logs in now is');
    lands[1]?.();
    await Promise.all([proposed[1], isBusy(underWay, ofMethod)]);
    t.notOk(isBusy(underWay, ofMethod), 'it is over');
  }
});

t.test('under way: what this datacenter proposes is what it changes', async (t) => {
  const rule = { ...aBindingRule(1), createIndex: 1, modifyIndex: 1 };
  const view = { bindingRule: (id: string) => (id === rule.id ? rule : undefined) };
  const ofRule = methodDependency('default', 'login');
  const [token, policy, role] = [aToken(1), aPolicy(1), aRole(1)];
  const [method, namespace] = [anAuthMethod('Login'), aNamespace('team')];
  const [presence, deleted] = ['update', 'login'] as const;
  const { accessorId } = token;
  const cases: readonly (readonly [Change, string])[] = [
    [{ type: 'bootstrap', token, resetIndex: undefined }, BOOTSTRAP_DEPENDENCY],
    [{ type: 'token.set', presence, token }, dependencyOf('tokens', accessorId)],
    [{ type: 'token.delete', accessorId }, dependencyOf('tokens', accessorId)],
    [{ type: 'policy.set', presence, policy }, dependencyOf('policies', policy.id)],
    [{ type: 'policy.delete', id: policy.id }, dependencyOf('policies', policy.id)],
    [{ type: 'role.set', presence, role }, dependencyOf('roles', role.id)],
    [{ type: 'role.delete', id: role.id }, dependencyOf('roles', role.id)],
    [{ type: 'namespace.set', presence, namespace }, dependencyOf('namespaces', 'team')],
    [{ type: 'namespace.delete', name: namespace.name }, dependencyOf('namespaces', 'team')],
    [{ type: 'auth-method.set', presence: 'either', method }, ofRule],
    [{ type: 'auth-method.delete', namespace: method.namespace, name: deleted }, ofRule],
    [{ type: 'binding-rule.set', presence, rule }, ofRule],
    [{ type: 'binding-rule.delete', id: rule.id }, ofRule],
  ];
  for (const [change, key] of cases) {
    const underWay = new UnderWay(view);
    let land = (): void => undefined;
    const landed = new Promise<void>((resolve) => {
      land = resolve;
    });
    const proposed = underWay.during(change, () => landed);
    const ended = isBusy(underWay, key);
    t.ok(ended, change.type);
    t.notOk(
      isBusy(underWay, dependencyOf('tokens', 'another')),
      `${change.type}: nobody else waits`,
    );
    land();
    await Promise.all([proposed, ended]);
    t.notOk(isBusy(underWay, key), `${change.type}: it is over`);
  }
});

t.test('under way: of two changes of one thing at once each has to end', async (t) => {
  for (const order of [
    [0, 1],
    [1, 0],
  ] as const) {
    const underWay = new UnderWay(NOWHERE);
    const change = { type: 'policy.delete', id: aPolicy(1).id } as const;
    const key = dependencyOf('policies', change.id);
    const land: (() => void)[] = [];
    const proposed = [0, 1].map(() =>
      underWay.during(change, () => new Promise<void>((resolve) => land.push(resolve))),
    );
    let isOver = false;
    const both = isBusy(underWay, key)?.then(() => {
      isOver = true;
    });
    const [first, last] = order;
    land[first]?.();
    await proposed[first];
    await new Promise(setImmediate);
    t.notOk(isOver, `${order}: whoever waits for both waits on`);
    const ended = isBusy(underWay, key);
    t.ok(ended, `${order}: the other one is under way`);
    land[last]?.();
    await Promise.all([proposed[last], ended, both]);
    t.notOk(isBusy(underWay, key), `${order}: it is over`);
  }
});

t.test('under way: another state is a change of everything', async (t) => {
  const changes: readonly Change[] = [
    {
      type: 'restore.commit',
      id: 'i',
      chunkCount: 0,
      chain: LOG_START.hash,
      metaRow: LOG_START.hash,
    },
    { type: 'global-snapshot.commit', id: 'i' },
  ];
  for (const change of changes) {
    const underWay = new UnderWay(NOWHERE);
    const proposed = underWay.during(change, () => Promise.reject(new Error('the leader is gone')));
    const ended = isBusy(underWay, 'any');
    t.ok(ended, change.type);
    await t.rejects(proposed, /gone/);
    await ended;
    t.notOk(isBusy(underWay, 'any'), 'however it ends');
  }
});

t.test('under way: an entry that cannot be read may change anything', async (t) => {
  const underWay = new UnderWay(NOWHERE);
  const entries = [Uint8Array.of(0xc1)];
  const apply = { type: 'global-log.apply', epoch: 1, from: LOG_START, entries, to: LOG_START };
  const proposed = underWay.during(apply as Change, () => Promise.resolve());
  t.ok(isBusy(underWay, 'any'), 'the log refuses it');
  await proposed;
});
