// What the leader of a secondary puts into its own log of a run of entries that came.

import t from 'tap';
import { SerialWork } from '../../cluster/base/serial-work.ts';
import type { GlobalEntry } from '../../cluster/federation/global-log.ts';
import { applyBatch } from '../../src/node/federation/follow-primary.ts';
import type { Change, ChangeOf } from '../../src/state/commands/commands.ts';
import { entryHash, entryLinks } from '../../src/state/global-log/global-entry.ts';
import { aPolicy, policyIdNumbered } from '../support/fixtures.ts';
import { BUILTINS, MachineHarness } from '../support/machine-harness.ts';
import { MemoryKv } from '../support/memory-kv.ts';

const BEGIN = { type: 'global-log.begin', primary: 'dc1', isWitness: false } as const;

async function harnessOf(datacenter: string): Promise<MachineHarness> {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one({ ...BEGIN, datacenter });
  return harness;
}

t.test(
  'follow: of long objects a command changes few, however short the entries are',
  async (t) => {
    const primary = await harnessOf('dc1');
    await primary.one(BUILTINS);
    const secondary = await harnessOf('dc2');
    const sizes: number[] = [];
    const inOrder = new SerialWork();
    const deps = {
      propose: ({ change }: { readonly change: Change }) => {
        sizes.push((change as ChangeOf<'global-log.apply'>).entries.length);
        return inOrder.run(() => secondary.one(change));
      },
      wallMs: () => 0,
      rowBytes: (key: Uint8Array) => secondary.machine.rowBytes(key),
    };
    const follow = async () => {
      const from = secondary.machine.cursor()!;
      const all = (await primary.machine.globalEntries(from.seq, 1 << 24)) ?? [];
      const entries: GlobalEntry[] = all.map((bytes) => {
        const { epoch, seq } = entryLinks(bytes)!;
        return { epoch, seq, hash: entryHash(bytes), bytes };
      });
      const to = primary.machine.cursor()!;
      sizes.length = 0;
      return {
        from,
        entries,
        to,
        reached: await applyBatch(deps, to.epoch, { from, entries, to }),
      };
    };
    const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
    for (const each of numbers) {
      const policy = aPolicy(each, { rules: '#'.repeat(each < 8 ? 100_000 : 10) });
      await primary.one({ type: 'policy.set', presence: 'create', policy });
    }
    t.same((await follow()).reached, primary.machine.cursor());
    t.same(sizes, [9], 'what is new replaces nothing');

    for (const each of numbers.slice(0, 4)) {
      await primary.one({ type: 'policy.set', presence: 'update', policy: aPolicy(each) });
    }
    t.same((await follow()).reached, primary.machine.cursor());
    t.same(sizes, [3, 1], 'long ones that become short');

    for (const each of numbers) {
      await primary.one({ type: 'policy.delete', id: policyIdNumbered(each) });
    }
    const { from, entries, to, reached } = await follow();
    t.same(sizes, [7, 1]);
    t.same(reached, to);
    t.equal(secondary.machine.digests().global, primary.machine.digests().global);

    t.same(await applyBatch(deps, to.epoch, { from, entries, to }), to, 'twice changes nothing');
  },
);
