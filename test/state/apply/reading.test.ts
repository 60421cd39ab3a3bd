// What is read of the state, and when: lists page by page, batches that become visible, those who wait for a change.

import t from 'tap';
import { DEFAULT_NAMESPACE } from '../../../src/acl/ids.ts';
import { pageKeyOf } from '../../../src/state/reads/lists.ts';
import { watchKey } from '../../../src/state/watch.ts';
import { FailingKv } from '../../support/failing-kv.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  accessorNumbered,
  aPolicy,
  aToken,
  policyIdNumbered,
} from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  collect,
  MachineHarness,
} from '../../support/state-and-service/machine-harness.ts';
import { create, furnished, OTHER, policySet, TEAM } from './cases.ts';

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
  test.same(await pages((after) => machine.policies(one, { after, limit: 1 }), pageKeyOf), [
    'team/policy-2',
  ]);
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
