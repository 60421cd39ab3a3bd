// Whose word counts of what a write would pass over.

import t from 'tap';
import type { AheadFollower } from '../../../cluster/federation/feed/ahead-followers.ts';
import { OtherReigns } from '../../../src/node/federation/gate/other-reigns.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';

t.test('other reigns: who was removed before it answered says nothing any more', async (test) => {
  const harness = new MachineHarness(new MemoryKv());
  const begin = { datacenter: 'dc1', primary: 'dc1', isWitness: false };
  await harness.one({ type: 'global-log.begin', ...begin });
  await harness.one(BUILTINS);
  const { machine } = harness;
  const { cursor } = machine.replication()!;
  const removed: string[] = [];
  const told = { ahead: [] as AheadFollower[], beyond: [] as AheadFollower[] };
  const nothing = () => undefined;
  const reigns = new OtherReigns({
    ...{ datacenter: 'dc1', machine, isReigning: () => true },
    hearing: { awaits: nothing, refusal: nothing },
    heard: () => ({
      directory: {
        ...{ followersBehind: () => [], latestEpoch: () => 0 },
        ...{ forgottenReign: nothing, rivalOf: nothing },
      },
      view: {
        isRemoved: (each) => removed.includes(each),
        primary: () => ({ datacenter: 'dc1', epoch: 1 }),
      },
      feed: { ahead: () => told.ahead, beyond: () => told.beyond, begunEpoch: 0 },
      promotion: { outrunBy: nothing },
      subscriber: { state: () => ({ begunEpoch: 0 }) as never },
    }),
  });
  const answers = {
    ahead: { ...cursor, seq: cursor.seq + 5 },
    beyond: { ...cursor, epoch: cursor.epoch + 1, seq: cursor.seq + 5 },
  };
  for (const kind of ['ahead', 'beyond'] as const) {
    removed.length = 0;
    told[kind] = [{ datacenter: 'dc3', cursor: answers[kind] }];
    test.match(reigns.passedOverText(), /dc3 has/, kind);
    test.same(
      ['dc2', 'dc3'].map((each) => reigns.mayForceOut(each)),
      [false, true],
      kind,
    );
    removed.push('dc3');
    test.equal(reigns.passedOverText(), undefined, kind);
    test.equal(reigns.mayForceOut('dc2'), true, kind);
    told[kind] = [];
  }
});
