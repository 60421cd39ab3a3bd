// Waiting for a position: one that comes, one that comes without a change of any object, and one that no
// entry leads to any more.

import t from 'tap';
import { PositionWaiters } from '../../src/service/position-waiters.ts';
import type { Position } from '../../src/state/global-log/cursor.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { aPolicy } from '../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../support/state-and-service/machine-harness.ts';

interface World {
  readonly harness: MachineHarness;
  readonly clock: FakeClock;
  readonly waiters: PositionWaiters;
  /** What became of it, once something did. */
  asked(position: Position): { says: string };
}

/** A primary that has written three entries of epoch 1. */
async function aPrimary(): Promise<World> {
  const harness = new MachineHarness(new MemoryKv());
  const clock = new FakeClock();
  await harness.one({
    ...{ type: 'global-log.begin', datacenter: 'dc1', primary: 'dc1', isWitness: false },
  } as const);
  await harness.one(BUILTINS);
  for (const number of [1, 2]) {
    await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(number) });
  }
  const waiters = new PositionWaiters(harness.machine, clock);
  harness.machine.watch.onApplied(() => waiters.onApplied());
  const asked = (position: Position): { says: string } => {
    const result = { says: 'waits' };
    waiters.reached(position).then(
      () => {
        result.says = 'reached';
      },
      (error: Error) => {
        result.says = error.message;
      },
    );
    return result;
  };
  return { harness, clock, waiters, asked };
}

async function settled(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
}

const PLAIN = { isForced: false, isFromFork: false } as const;

async function nextEpoch({ harness }: World): Promise<void> {
  const at = harness.machine.position();
  await harness.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc1', at });
  await harness.one({ type: 'epoch.start', epoch: 2, promises: [], ...PLAIN });
}

t.test('positions: one is waited for until it is there, or the time is over', async (t) => {
  const world = await aPrimary();
  const { harness, clock } = world;
  const { seq } = harness.machine.position();
  const there = world.asked({ epoch: 1, seq });
  const next = world.asked({ epoch: 1, seq: seq + 1 });
  const late = world.asked({ epoch: 1, seq: seq + 2 });
  await settled();
  t.same([there.says, next.says, late.says], ['reached', 'waits', 'waits']);
  await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(3) });
  await settled();
  t.same([next.says, late.says], ['reached', 'waits']);
  clock.advance(10_000);
  await settled();
  t.equal(
    late.says,
    `Position 1.${seq + 2} was not reached in time; this datacenter is at 1.${seq + 1}`,
  );
});

t.test('positions: one that changes no object is noticed', async (t) => {
  const world = await aPrimary();
  const { seq } = world.harness.machine.position();
  const start = world.asked({ epoch: 2, seq: seq + 1 });
  await settled();
  t.equal(start.says, 'waits');
  await nextEpoch(world);
  await settled();
  t.equal(start.says, 'reached');
});

t.test('positions: one of an epoch that ended before it is lost, and said to be', async (t) => {
  const world = await aPrimary();
  const { seq } = world.harness.machine.position();
  const waiting = world.asked({ epoch: 1, seq: seq + 1 });
  await settled();
  t.equal(waiting.says, 'waits');
  await nextEpoch(world);
  await settled();
  const says = `Position 1.${seq + 1} is not in the global log any more: dc1 began epoch 2 behind ${seq}; this datacenter is at 2.${seq + 1}`;
  t.equal(waiting.says, says, 'also by whoever waits already');
  const later = world.asked({ epoch: 1, seq: seq + 1 });
  const last = world.asked({ epoch: 1, seq });
  await settled();
  t.same([later.says, last.says], [says, 'reached']);
  t.equal(await world.waiters.arrives({ epoch: 1, seq: seq + 1 }, 1_000), false);
});
