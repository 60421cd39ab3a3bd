// Who follows becomes one of the datacenters that all know, one after the other, without an entry or a hello
// that would wake the leader.

import t from 'tap';
import { Enlisting } from '../../../src/node/federation/beginning/enlisting.ts';
import type { Command } from '../../../src/state/commands/commands.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { settled } from '../../support/simulated/simulated-world.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';

const RETRY_MS = 250;

async function aPrimary({ level = 2 } = {}) {
  const harness = new MachineHarness(new MemoryKv());
  const begin = { datacenter: 'dc1', primary: 'dc1', isWitness: false };
  await harness.one({ type: 'global-log.begin', ...begin });
  await harness.one(BUILTINS);
  await harness.one({ type: 'level.raise', level });
  const { clock, machine } = harness;
  const led = { isLed: true, majoritySeq: 0, isRefusing: false, proposed: 0, gone: [] as string[] };
  const clusters: Record<string, string> = { dc1: 'one' };
  const warned: string[] = [];
  const silent = (): void => undefined;
  const warn = (_fields: unknown, text: string): void => void warned.push(text);
  const enlisting = new Enlisting({
    ...{ machine, clock },
    logger: { debug: silent, info: silent, warn, error: silent },
    following: {
      wallMs: () => clock.wallMs(),
      propose: async ({ change }: Command) => {
        led.proposed += 1;
        if (led.isRefusing) throw new Error('another server leads');
        return await harness.one(change);
      },
    },
    // Whoever was added follows, though its cluster is not known.
    clusterIdOf: (each) => (led.gone.includes(each) ? undefined : (clusters[each] ?? '')),
    isLed: () => led.isLed,
    majoritySeq: () => led.majoritySeq,
  });
  const names = (): readonly string[] => machine.replication()!.datacenters.map(({ name }) => name);
  const retry = async (): Promise<void> => {
    clock.advance(RETRY_MS);
    await settled();
  };
  const named = (): readonly string[] =>
    machine.replication()!.datacenters.map(({ name, clusterId = '-' }) => `${name}: ${clusterId}`);
  return { harness, enlisting, led, clusters, machine, clock, names, named, retry, warned };
}

t.test('enlisting: what is not allowed yet is tried again until it is', async (test) => {
  const { enlisting, led, machine, clock, names, retry } = await aPrimary();
  enlisting.add('dc3', undefined);
  enlisting.add('dc2', undefined);
  await enlisting.look();
  test.same(names(), ['dc1', 'dc3'], 'one at a time');
  for (let tries = 0; tries < 5; tries += 1) await retry();
  test.same(names(), ['dc1', 'dc3'], 'a majority has not the last change');
  test.equal(led.proposed, 1, 'and the log is not filled with what it refuses');
  led.majoritySeq = machine.replication()!.cursor.seq;
  await retry();
  test.same(names(), ['dc1', 'dc2', 'dc3']);
  await retry();
  test.equal(clock.pendingCount, 0, 'all are there');
});

t.test('enlisting: who waits for a vote for long is told of, once', async (test) => {
  const { enlisting, led, machine, names, clock, retry, warned } = await aPrimary();
  const says =
    'a datacenter has no vote yet: a majority of those that have one lacks the last change';
  for (const each of ['dc2', 'dc3']) enlisting.add(each, undefined);
  await enlisting.look();
  await retry();
  clock.advance(59_000);
  await settled();
  test.same(warned, [], 'it may be on its way');
  for (let tries = 0; tries < 10; tries += 1) await retry();
  test.same(warned, [says]);
  led.majoritySeq = machine.replication()!.cursor.seq;
  await retry();
  test.same(names(), ['dc1', 'dc2', 'dc3']);
  enlisting.add('dc4', undefined);
  await enlisting.look();
  for (let tries = 0; tries < 10; tries += 1) await retry();
  test.same(warned, [says], 'the next one has not waited for long');
});

t.test('enlisting: nothing is tried again behind its end', async (test) => {
  const { enlisting, clock, names } = await aPrimary();
  enlisting.add('dc2', undefined);
  const looked = enlisting.look();
  enlisting.close();
  await looked;
  test.same([names(), clock.pendingCount], [['dc1', 'dc2'], 0]);
  enlisting.add('dc3', undefined);
  await enlisting.look();
  test.same([names(), clock.pendingCount], [['dc1', 'dc2'], 0]);
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

t.test('enlisting: that proposals fail is said once, until one does not', async (test) => {
  const { enlisting, led, machine, retry, warned } = await aPrimary();
  const says = 'a datacenter could not be enlisted yet';
  led.isRefusing = true;
  enlisting.add('dc2', undefined);
  await enlisting.look();
  for (let tries = 0; tries < 5; tries += 1) await retry();
  test.equal(led.proposed, 6);
  test.same(warned, [says]);
  led.isRefusing = false;
  await retry();
  led.isRefusing = true;
  led.majoritySeq = machine.replication()!.cursor.seq;
  enlisting.add('dc3', undefined);
  await retry();
  test.same(warned, [says, says]);
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

t.test('enlisting: the list says which cluster has each name, and that stays so', async (test) => {
  const { enlisting, led, clusters, machine, named, retry } = await aPrimary({ level: 4 });
  await enlisting.look();
  test.same(named(), ['dc1: -'], 'while nobody follows, nobody has to know');
  enlisting.add('dc2', undefined);
  clusters.dc2 = 'two';
  await enlisting.look();
  test.same(named(), ['dc1: one', 'dc2: two'], 'in one entry, and the own one, too');
  enlisting.add('dc3', undefined);
  await retry();
  test.same(named(), ['dc1: one', 'dc2: two'], 'a majority has not the last change');
  led.majoritySeq = machine.replication()!.cursor.seq;
  await retry();
  test.same(named(), ['dc1: one', 'dc2: two', 'dc3: -'], 'one that was not let in yet');
  clusters.dc2 = 'another';
  clusters.dc3 = 'three';
  led.majoritySeq = 0;
  enlisting.add('dc4', undefined);
  await enlisting.look();
  test.same(named(), ['dc1: one', 'dc2: two', 'dc3: three'], 'without the one that has to wait');
});

t.test('enlisting: those that are listed without their clusters get them', async (test) => {
  const { harness, enlisting, clusters, clock, named, retry } = await aPrimary({ level: 3 });
  enlisting.add('dc2', undefined);
  clusters.dc2 = 'two';
  await enlisting.look();
  await retry();
  test.same([named(), clock.pendingCount], [['dc1: -', 'dc2: -'], 0], 'not all would read that');
  await harness.one({ type: 'level.raise', level: 4 });
  await enlisting.look();
  test.same(named(), ['dc1: one', 'dc2: two']);
});

t.test('enlisting: who follows no more in a later reign is not about to join', async (test) => {
  const { enlisting, led, names } = await aPrimary();
  enlisting.add('dc2', undefined);
  enlisting.add('dc3', undefined);
  test.same(enlisting.followers, ['dc2', 'dc3']);
  led.gone = ['dc3'];
  test.same(enlisting.followers, ['dc2']);
  enlisting.forget('dc2');
  await enlisting.look();
  test.same([enlisting.followers, names()], [[], ['dc1']]);
  led.gone = [];
  test.same(enlisting.followers, ['dc3'], 'it is back');
});
