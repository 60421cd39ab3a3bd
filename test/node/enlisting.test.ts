// Who follows becomes one of the datacenters that all know, one after the other, without an entry or a hello
// that would wake the leader.

import t from 'tap';
import { Enlisting } from '../../src/node/enlisting.ts';
import type { Command } from '../../src/state/commands.ts';
import { BUILTINS, MachineHarness } from '../support/machine-harness.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { settled } from '../support/simulated-world.ts';

const RETRY_MS = 250;

async function aPrimary() {
  const harness = new MachineHarness(new MemoryKv());
  const begin = { datacenter: 'dc1', primary: 'dc1', isWitness: false };
  await harness.one({ type: 'global-log.begin', ...begin });
  await harness.one(BUILTINS);
  const { clock, machine } = harness;
  const led = { isLed: true, majoritySeq: 0, isRefusing: false, proposed: 0 };
  const silent = (): void => undefined;
  const enlisting = new Enlisting({
    ...{ machine, clock },
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    following: {
      wallMs: () => clock.wallMs(),
      propose: async ({ change }: Command) => {
        led.proposed += 1;
        if (led.isRefusing) throw new Error('another server leads');
        return await harness.one(change);
      },
    },
    isLed: () => led.isLed,
    majoritySeq: () => led.majoritySeq,
  });
  const names = (): readonly string[] => machine.replication()!.datacenters.map(({ name }) => name);
  const retry = async (): Promise<void> => {
    clock.advance(RETRY_MS);
    await settled();
  };
  return { enlisting, led, machine, clock, names, retry };
}

t.test('enlisting: what is not allowed yet is tried again until it is', async (test) => {
  const { enlisting, led, machine, clock, names, retry } = await aPrimary();
  enlisting.add('dc3', undefined);
  enlisting.add('dc2', undefined);
  await enlisting.look();
  test.same(names(), ['dc1', 'dc3'], 'one at a time');
  await retry();
  test.same(names(), ['dc1', 'dc3'], 'a majority has not the last change');
  led.majoritySeq = machine.replication()!.cursor.seq;
  await retry();
  test.same(names(), ['dc1', 'dc2', 'dc3']);
  await retry();
  test.equal(clock.pendingCount, 0, 'all are there');
});

t.test('enlisting: a proposal that fails is made again', async (test) => {
  const { enlisting, led, names, retry } = await aPrimary();
  led.isRefusing = true;
  enlisting.add('dc2', undefined);
  await enlisting.look();
  await retry();
  test.equal(led.proposed, 2);
  led.isRefusing = false;
  await retry();
  test.same(names(), ['dc1', 'dc2']);
});

t.test(
  'enlisting: nothing is tried where this server does not lead, or has closed',
  async (test) => {
    const { enlisting, led, clock, names, retry } = await aPrimary();
    led.isRefusing = true;
    enlisting.add('dc2', undefined);
    await enlisting.look();
    led.isLed = false;
    await retry();
    test.same([led.proposed, clock.pendingCount], [1, 0]);
    led.isLed = true;
    await enlisting.look();
    enlisting.close();
    enlisting.close();
    led.isRefusing = false;
    await retry();
    await enlisting.look();
    test.same([led.proposed, names()], [2, ['dc1']]);
  },
);

t.test('enlisting: a witness is listed as one, also where it was not before', async (test) => {
  const { enlisting, led, machine, retry } = await aPrimary();
  const witnesses = (): readonly string[] =>
    machine.replication()!.datacenters.flatMap(({ name, isWitness }) => (isWitness ? [name] : []));
  enlisting.add('dc2', false);
  enlisting.add('w', undefined);
  await enlisting.look();
  led.majoritySeq = machine.replication()!.cursor.seq;
  await retry();
  test.same(witnesses(), [], 'one of an earlier release does not say what it is');
  led.majoritySeq = 0;
  enlisting.add('w', true);
  await enlisting.look();
  test.same(witnesses(), ['w'], 'who votes does not change, so nobody need have it first');
  enlisting.add('w', undefined);
  await enlisting.look();
  await retry();
  test.same(witnesses(), ['w'], 'who says nothing changes nothing');
});
