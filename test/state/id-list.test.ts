// Rows that hold ids: what is in them, and that a long one is taken away within reason.

import fc from 'fast-check';
import t from 'tap';
import { idsOf, withId, withoutId } from '../../src/state/rows/layout/id-list.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  aBindingRule,
  aCommand,
  anAuthMethod,
  ruleIdNumbered,
} from '../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../support/state-and-service/machine-harness.ts';

/** Few of them, so that they meet. Some differ in their first byte alone, some in their last. */
const id = fc
  .record({ first: fc.integer({ min: 0, max: 3 }), last: fc.integer({ min: 0, max: 3 }) })
  .map(({ first, last }) => Buffer.from([first, ...new Uint8Array(14), last]));

t.test('a list of ids: ascending, each once, whatever came and went', async (test) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), id), { maxLength: 40 }), (steps) => {
      const model = new Set<string>();
      let list: Uint8Array = new Uint8Array(0);
      for (const [isAdded, each] of steps) {
        // Lists come from the store as views of something larger.
        list = Buffer.concat([Buffer.from([7]), list]).subarray(1);
        list = isAdded ? withId(list, each) : withoutId(list, each);
        if (isAdded) model.add(each.toString('hex'));
        else model.delete(each.toString('hex'));
        const found = idsOf(list).map((one) => Buffer.from(one).toString('hex'));
        if (found.join() !== [...model].sort().join()) return false;
      }
      return true;
    }),
    { numRuns: 300, seed: 20_261_126 },
  );
  test.same(idsOf(undefined), []);
});

/** Of an auth method that has so many rules, in milliseconds. */
async function deletionMs(harness: MachineHarness, name: string, count: number): Promise<number> {
  await harness.one({ type: 'auth-method.set', presence: 'either', method: anAuthMethod(name) });
  const rules = Array.from({ length: count }, (_, number) =>
    aBindingRule(0, { id: ruleIdNumbered(number), authMethod: name }),
  );
  await harness.run(
    ...rules.map((rule) => aCommand({ type: 'binding-rule.set', presence: 'create', rule })),
  );
  const beganAtMs = performance.now();
  await harness.one({ type: 'auth-method.delete', namespace: rules[0]!.namespace, name });
  return performance.now() - beganAtMs;
}

t.test('an auth method with all rules that it may have is deleted at once', async (test) => {
  const harness = new MachineHarness(new MemoryKv());
  await harness.run(aCommand(BUILTINS));
  const fewMs: number[] = [];
  for (const name of ['one', 'two', 'three', 'four', 'five']) {
    fewMs.push(await deletionMs(harness, name, 256));
  }
  fewMs.sort((one, other) => one - other);
  const manyMs = await deletionMs(harness, 'many', 4096);
  const ratio = manyMs / fewMs[2]!;
  test.ok(ratio < 40, `sixteen times as many rules take ${ratio.toFixed(1)} times as long`);
});
