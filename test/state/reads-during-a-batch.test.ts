// A batch lands on the disk before the machine has heard of it. Whoever reads in between sees one state,
// the one from before, however many rows are read.

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import t from 'tap';
import type { KvWrite } from '../../cluster/platform/kv.ts';
import type { Command } from '../../src/state/commands/commands.ts';
import { idBytes } from '../../src/state/rows/objects/objects.ts';
import { RESTORE_KEY } from '../../src/state/rows/restore-progress.ts';
import { rowKey } from '../../src/state/rows/tables.ts';
import type { StateView } from '../../src/state/view.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  aCommand,
  accessorNumbered,
  aNamespace,
  aPolicy,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
  ruleIdNumbered,
  secretNumbered,
} from '../support/state-and-service/fixtures.ts';
import {
  BEGIN_AS_PRIMARY,
  BUILTINS,
  MachineHarness,
} from '../support/state-and-service/machine-harness.ts';
import { history, NAMESPACE_NAMES } from './histories.ts';
import { requireSame } from './rows-from-nothing.ts';

/** A store whose batches are on the disk for a while before it says so. */
class LandedKv extends FailingKv {
  onLanded: () => void = () => undefined;

  override async write(writes: readonly KvWrite[]): Promise<void> {
    await super.write(writes);
    this.onLanded();
    await new Promise((resolve) => setImmediate(resolve));
    this.onLanded();
  }
}

const NUMBERS = [1, 2, 3, 4, 5];
const NAMES = ['Policy-1', 'Policy-2', 'Policy-3', 'First', 'Second'];
const METHODS = ['login', 'other'];

/** All that single reads give, none of it from memory that a later read would change. */
function allReads(view: StateView): unknown {
  return {
    index: view.index(),
    position: view.position(),
    digests: view.digests(),
    tokens: NUMBERS.map((each) => view.token(accessorNumbered(each))),
    bySecret: NUMBERS.map((each) => view.tokenBySecret(secretNumbered(each))),
    inUse: NUMBERS.map((each) => view.idInUse(secretNumbered(each))),
    policies: NUMBERS.map((each) => view.policy(policyIdNumbered(each))),
    roles: NUMBERS.map((each) => view.role(roleIdNumbered(each))),
    rules: NUMBERS.map((each) => view.bindingRule(ruleIdNumbered(each))),
    namespaces: NAMESPACE_NAMES.map((name) => ({
      namespace: view.namespace(name),
      counts: view.counts(name),
      policies: NAMES.map((each) => view.policyByName(name, each)),
      roles: NUMBERS.map((each) => view.roleByName(name, `role-${each}`)),
      methods: METHODS.map((each) => view.authMethod(name, each)),
      rulesOf: METHODS.map((each) => [...view.bindingRulesOf(name, each)]),
    })),
  };
}

t.test(
  'reads: while a batch has landed and nobody was told, all are of the state before',
  async (test) => {
    let differed = 0;
    await fc.assert(
      fc.asyncProperty(history, fc.integer({ min: 1, max: 9 }), async (commands, groupSize) => {
        const kv = new LandedKv(new MemoryKv());
        const harness = new MachineHarness(kv);
        for (let at = 0; at < commands.length; at += groupSize) {
          const index = harness.machine.index();
          const before = allReads(harness.machine);
          kv.onLanded = () => requireSame(`reads at ${at}`, allReads(harness.machine), before);
          await harness.run(...commands.slice(at, at + groupSize));
          if (harness.machine.index() !== index) differed += 1;
        }
      }),
      { numRuns: 40, seed: 20_261_122 },
    );
    test.ok(differed > 200, `${differed} batches changed what is read`);
  },
);

t.test(
  'reads: the place in the global log is on disk, whether anybody asked before or not',
  async (test) => {
    const kv = new LandedKv(new MemoryKv());
    const first = new MachineHarness(kv);
    await first.one(BEGIN_AS_PRIMARY);
    await first.one(BUILTINS);
    const reopened = new MachineHarness(kv);
    let looks = 0;
    const { machine } = reopened;
    for (const number of [1, 2]) {
      const { seq } = machine.position();
      kv.onLanded = () => {
        looks += 1;
        test.equal(machine.replication()?.cursor.seq, seq, 'the batch is not told of yet');
      };
      const policy = aPolicy(number);
      await reopened.one({ type: 'policy.set', presence: 'create', policy });
      test.equal(machine.replication()?.cursor.seq, seq + 1);
    }
    test.equal(looks, 4);
  },
);

t.test('reads: what comes in is looked for again only once its row was written', async (test) => {
  let looks = 0;
  const kv = new (class extends FailingKv {
    override get(key: Uint8Array): Uint8Array | undefined {
      if (Buffer.compare(key, RESTORE_KEY) === 0) looks += 1;
      return super.get(key);
    }
  })(new MemoryKv());
  const harness = new MachineHarness(kv);
  const { machine } = harness;
  await harness.one(BUILTINS);
  for (const number of [1, 2, 3]) {
    test.equal(machine.restoreUnderWay(), undefined);
    test.equal(machine.importUnderWay(), undefined);
    await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(number) });
  }
  looks = 0;
  test.equal(machine.restoreUnderWay(), undefined);
  test.equal(looks, 0);
  for (const id of ['one', 'two']) {
    await harness.one({ type: 'restore.begin', id });
    test.equal(machine.restoreUnderWay()?.id, id);
    test.equal(machine.importUnderWay(), undefined, 'an archive is no snapshot of the primary');
    await harness.one({ type: 'restore.abandon', id });
    test.equal(machine.restoreUnderWay(), undefined);
  }
});

/** A store that counts what is read while a batch is under way. */
class BusyKv extends FailingKv {
  readsMeanwhile = 0;
  #isWriting = false;

  override get(key: Uint8Array): Uint8Array | undefined {
    if (this.#isWriting) this.readsMeanwhile += 1;
    return super.get(key);
  }

  override async write(writes: readonly KvWrite[]): Promise<void> {
    this.#isWriting = true;
    await super.write(writes);
    this.#isWriting = false;
  }
}

t.test('a large group: each batch stands on the one before it, and is seen alone', async (test) => {
  let batches = 0;
  const bound = fc.constantFrom({ batchBytes: 1 }, { touchedBytes: 0 });
  await fc.assert(
    fc.asyncProperty(history, bound, async (commands, limits) => {
      const oneByOne = new MachineHarness(new MemoryKv());
      const seen = [allReads(oneByOne.machine)];
      for (const each of commands) {
        await oneByOne.run(each);
        seen.push(allReads(oneByOne.machine));
      }
      const memory = new MemoryKv();
      const kv = new LandedKv(memory);
      const harness = new MachineHarness(kv, limits);
      let looks = 0;
      kv.onLanded = () => {
        // Each batch is looked at twice, and shown only then.
        const place = Math.floor(looks / 2);
        looks += 1;
        requireSame(`reads at ${place}`, allReads(harness.machine), seen[place]);
      };
      await harness.run(...commands);
      requireSame('reads in the end', allReads(harness.machine), seen.at(-1));
      requireSame('rows', memory.dump(), oneByOne.kv.dump());
      requireSame('batches', looks, 2 * commands.length);
      batches += commands.length;
    }),
    { numRuns: 30, seed: 20_261_122 },
  );
  test.ok(batches > 100, `${batches} batches`);
});

t.test('a large group: short commands about long objects are several batches', async (test) => {
  const kv = new LandedKv(new MemoryKv());
  const harness = new MachineHarness(kv);
  await harness.run(aCommand(BUILTINS));
  for (const each of NUMBERS) {
    const policy = { ...aPolicy(each), rules: '#'.repeat(1_100_000) };
    await harness.run(aCommand({ type: 'policy.set', presence: 'create', policy }));
  }
  let landed = 0;
  kv.onLanded = () => {
    landed += 1;
  };
  await harness.run(
    ...NUMBERS.map((each) => aCommand({ type: 'policy.delete', id: policyIdNumbered(each) })),
  );
  test.equal(landed / 2, 3, 'two, two and one of them');
  const left = NUMBERS.filter((each) => harness.machine.policy(policyIdNumbered(each)));
  test.same(left, []);
});

t.test('a large group: short commands about very many rows are several batches', async (test) => {
  const kv = new LandedKv(new MemoryKv());
  const harness = new MachineHarness(kv);
  await harness.run(aCommand(BUILTINS));
  const serviceIdentities = Array.from({ length: 8_000 }, (_, place) => ({
    serviceName: place.toString(36),
    datacenters: [],
  }));
  const all = [...NUMBERS, 6];
  for (const each of all) {
    const token = aToken(each, { serviceIdentities });
    await harness.run(aCommand({ type: 'token.set', presence: 'create', token }));
  }
  let landed = 0;
  kv.onLanded = () => {
    landed += 1;
  };
  await harness.run(
    ...all.map((each) => aCommand({ type: 'token.delete', accessorId: accessorNumbered(each) })),
  );
  test.equal(landed / 2, 2, 'three and three of them');
});

t.test('a large group: the next batch is worked out while one is on its way', async (test) => {
  const create = (each: number): Command =>
    aCommand({ type: 'token.set', presence: 'create', token: aToken(each) });
  const kv = new BusyKv(new MemoryKv());
  const alone = new MachineHarness(kv);
  await alone.run(aCommand(BUILTINS), create(1), create(2));
  test.equal(kv.readsMeanwhile, 0, 'a small group is one batch');
  const several = new MachineHarness(kv, { batchBytes: 1 });
  await several.run(create(3), create(4), create(5));
  test.ok(kv.readsMeanwhile > 0, 'the second and the third one are');
});

t.test(
  'a large group: a batch holds what the one before it read, and nothing older',
  async (test) => {
    const kv = new MemoryKv();
    const harness = new MachineHarness(kv, { touchedBytes: 0 });
    await harness.run(
      aCommand(BUILTINS),
      aCommand({ type: 'policy.set', presence: 'create', policy: aPolicy(1) }),
    );
    const policyRow = rowKey('policy', idBytes(policyIdNumbered(1)));
    let reads = 0;
    const get = kv.get.bind(kv);
    kv.get = (key) => {
      if (Buffer.compare(key, policyRow) === 0) reads += 1;
      return get(key);
    };
    const token = (each: number, policies = [policyIdNumbered(1)]): Command =>
      aCommand({ type: 'token.set', presence: 'create', token: aToken(each, { policies }) });
    await harness.run(token(1), token(2));
    test.equal(reads, 1, 'the second one finds it read');
    await harness.run(token(3), token(4, []), token(5, []), token(6));
    test.equal(reads, 3, 'the last one reads it again');
  },
);

t.test('reads: what is kept in memory is at once what the disk has', async (test) => {
  let differed = 0;
  await fc.assert(
    fc.asyncProperty(history, fc.integer({ min: 1, max: 9 }), async (commands, groupSize) => {
      const kv = new MemoryKv();
      const harness = new MachineHarness(kv);
      let fresh = allReads(harness.machine);
      for (let at = 0; at < commands.length; at += groupSize) {
        await harness.run(...commands.slice(at, at + groupSize));
        const before = fresh;
        fresh = allReads(new MachineHarness(kv).machine);
        requireSame(`reads after ${at}`, allReads(harness.machine), fresh);
        if (!isDeepStrictEqual(before, fresh)) differed += 1;
      }
    }),
    { numRuns: 15, seed: 20_261_122 },
  );
  test.ok(differed > 75, `${differed} batches changed what is read`);
});

t.test('reads: a right that no state gave is never seen', async (test) => {
  const kv = new LandedKv(new MemoryKv());
  const harness = new MachineHarness(kv);
  const command = (change: Command['change']): Command => aCommand(change);
  const weak = aPolicy(1, { name: 'p', rules: 'key_prefix "" { policy = "read" }' });
  const strong = aPolicy(1, { name: 'p', rules: 'key_prefix "" { policy = "write" }' });
  await harness.run(
    command({ type: 'namespace.set', presence: 'either', namespace: aNamespace('default') }),
    command({ type: 'policy.set', presence: 'create', policy: weak }),
    command({ type: 'token.set', presence: 'create', token: aToken(1, { policies: [weak.id] }) }),
  );
  const seen: string[] = [];
  const look = (): void => {
    const token = harness.machine.tokenBySecret(secretNumbered(1));
    const rules = token?.policies.map((id) => harness.machine.policy(id)?.rules) ?? [];
    seen.push(rules.join());
  };
  look();
  kv.onLanded = look;
  // First the token loses the policy, then the policy gains a right.
  await harness.run(
    command({ type: 'token.set', presence: 'update', token: aToken(1, { policies: [] }) }),
    command({ type: 'policy.set', presence: 'update', policy: strong }),
  );
  look();
  test.same(seen, [weak.rules, weak.rules, weak.rules, '']);
});
