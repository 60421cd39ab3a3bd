// Which datacenters there are, and whose federation they are: who may be removed and when, what that ends,
// and that nobody comes back by itself.

import t from 'tap';
import type { Change } from '../../../src/state/commands/commands.ts';
import { decodeHeader } from '../../../src/state/global-log/global-snapshot.ts';
import {
  clusterIdOf,
  type Datacenter,
  removedOf,
} from '../../../src/state/global-log/replication.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aPolicy } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';

const voter = (name: string) => ({ name, isVoter: true, isWitness: false });
const gone = (name: string) =>
  ({ name, isVoter: false, isWitness: false, isRemoved: true }) as const;

/** The primary dc1, where dc2 and dc3 have joined. */
async function aPrimary(): Promise<MachineHarness> {
  const dc1 = new MachineHarness(new MemoryKv());
  await dc1.one({ type: 'global-log.begin', datacenter: 'dc1', primary: 'dc1', isWitness: false });
  await dc1.one(BUILTINS);
  for (const names of [
    ['dc1', 'dc2'],
    ['dc1', 'dc2', 'dc3'],
  ]) {
    const datacenters = names.map(voter);
    await dc1.one({ type: 'datacenters.set', datacenters, majoritySeq: headOf(dc1) });
  }
  return dc1;
}

function headOf({ machine }: MachineHarness): number {
  return machine.replication()!.cursor.seq;
}

async function say(harness: MachineHarness, change: Change): Promise<string> {
  const outcome = await harness.one(change);
  if (outcome.kind === 'refused') return `${outcome.code}: ${outcome.message}`;
  const { answer } = outcome;
  if (answer.type === 'verdict') return answer.verdict;
  return answer.type === 'deleted' ? String(answer.existed) : answer.type;
}

function remove(name: string, majoritySeq: number, isForced = false): Change {
  return { type: 'datacenter.remove', name, majoritySeq, isForced };
}

t.test('removing: it needs the majority that every change of the voters needs', async (test) => {
  const dc1 = await aPrimary();
  const before = headOf(dc1);
  test.match(await say(dc1, remove('dc2', before - 1)), /^unavailable: Nothing was changed: a maj/);
  test.match(await say(dc1, remove('dc1', before)), /^invalid: .*dc1 is the primary/);
  test.equal(headOf(dc1), before, 'nothing was written');
  test.equal(await say(dc1, remove('dc2', before)), 'true');
  const { datacenters, datacentersSeq } = dc1.machine.replication()!;
  test.strictSame(datacenters, [voter('dc1'), gone('dc2'), voter('dc3')]);
  test.same([datacentersSeq, headOf(dc1)], [before + 1, before + 1], 'the log says so');
  test.equal(await say(dc1, remove('dc2', before)), 'false', 'once is enough');
  test.equal(
    await say(dc1, remove('dc3', 0, true)),
    'true',
    'an operator who knows that it is lost',
  );
  test.equal(await say(dc1, remove('dc9', headOf(dc1))), 'true', 'one that never got so far');
  test.same(removedOf(dc1.machine.replication()), ['dc2', 'dc3', 'dc9']);
  const compared = await dc1.one(remove('dc4', 0, true), { cas: 3 });
  test.equal(compared.kind, 'refused');
});

t.test(
  'voters: two are changed behind a majority that has an entry of this epoch',
  async (test) => {
    const dc1 = new MachineHarness(new MemoryKv());
    await dc1.one({
      type: 'global-log.begin',
      datacenter: 'dc1',
      primary: 'dc1',
      isWitness: false,
    });
    await dc1.one(BUILTINS);
    const set = (datacenters: readonly Datacenter[], majoritySeq: number): Promise<string> =>
      say(dc1, { type: 'datacenters.set', datacenters, majoritySeq });
    const two = ['dc1', 'dc2'].map(voter);
    test.equal(
      await set([{ ...voter('dc1'), isWitness: true }], 0),
      'not-allowed',
      'it has objects',
    );
    test.equal(await set(two, 0), 'applied', 'it was alone');
    const { datacentersSeq } = dc1.machine.replication()!;
    const three = [...two, voter('dc3')];
    test.equal(await set(three, datacentersSeq - 1), 'not-allowed', 'dc2 may not know of itself');
    const at = dc1.machine.replication()!.cursor;
    await dc1.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc1', at });
    const claim = { epoch: 2, promises: ['dc2'], isForced: false, isFromFork: false };
    test.equal(await say(dc1, { type: 'epoch.start', ...claim }), 'applied');
    test.equal(await set(three, datacentersSeq), 'not-allowed', 'what is of before can be lost');
    test.equal(await set(three, headOf(dc1)), 'applied');
  },
);

t.test('removing: nothing but an operator brings one back', async (test) => {
  const dc1 = await aPrimary();
  await dc1.one(remove('dc2', headOf(dc1)));
  const majoritySeq = headOf(dc1);
  const lists = [
    [voter('dc1'), voter('dc2'), voter('dc3')],
    [voter('dc1'), voter('dc3')],
  ];
  for (const datacenters of lists) {
    const change = { type: 'datacenters.set', datacenters, majoritySeq } as const;
    test.equal(await say(dc1, change), 'not-allowed');
  }
  test.equal(await say(dc1, { type: 'datacenter.allow', name: 'dc3' }), 'false');
  test.equal(await say(dc1, { type: 'datacenter.allow', name: 'dc2' }), 'true');
  test.strictSame(dc1.machine.replication()!.datacenters, [voter('dc1'), voter('dc3')]);
  const again = { type: 'datacenters.set', datacenters: lists[0]!, majoritySeq: headOf(dc1) };
  test.equal(await say(dc1, again as Change), 'applied');
});

t.test('removing: so many are remembered, and no more', async (test) => {
  const dc1 = await aPrimary();
  const remove = (number: number): Promise<string> =>
    dc1.tell({ type: 'datacenter.remove', name: `gone-${number}`, majoritySeq: 0, isForced: true });
  for (let each = 1; each <= 64; each += 1) test.equal(await remove(each), 'ok');
  test.match(await remove(65), /^invalid: 64 datacenters are removed already/);
  test.equal(await remove(64), 'ok', 'one that is removed already');
  await dc1.one({ type: 'datacenter.allow', name: 'gone-7' });
  test.equal(await remove(65), 'ok');
});

t.test('removing: it is promised nothing, and its promise counts no more', async (test) => {
  const dc1 = await aPrimary();
  await dc1.one(remove('dc2', headOf(dc1)));
  const at = { epoch: 9, seq: 9 };
  const promise = (candidate: string) =>
    say(dc1, { type: 'epoch.promise', epoch: 2, candidate, at });
  test.equal(await promise('dc2'), 'not-granted');
  test.equal(await promise('dc1'), 'granted');
  const start = (promises: readonly string[]) =>
    say(dc1, { type: 'epoch.start', epoch: 2, promises, isForced: false, isFromFork: false });
  test.equal(await start(['dc2']), 'not-allowed', 'dc1 alone is no majority of dc1 and dc3');
  test.equal(await start(['dc3']), 'applied');
});

t.test('removing: it is said in the primary alone, and known wherever its log is', async (test) => {
  const dc1 = await aPrimary();
  const dc3 = new MachineHarness(new MemoryKv());
  await dc3.one({ type: 'global-log.begin', datacenter: 'dc3', primary: 'dc1', isWitness: false });
  test.match(await say(dc3, remove('dc2', 0, true)), /^not-primary: /);
  test.match(await say(dc3, { type: 'datacenter.allow', name: 'dc2' }), /^not-primary: /);
  await dc1.one(remove('dc2', headOf(dc1)));
  const from = dc3.machine.replication()!.cursor;
  const entries = (await dc1.machine.globalEntries(from.seq, 1 << 20))!;
  const { cursor: to, datacenters } = dc1.machine.replication()!;
  test.equal(
    await say(dc3, { type: 'global-log.apply', epoch: to.epoch, from, entries, to }),
    'applied',
  );
  test.strictSame(dc3.machine.replication()!.datacenters, datacenters);
});

t.test(
  "clusters: a name is the cluster's that has it, until an operator says otherwise",
  async (test) => {
    const dc1 = await aPrimary();
    await dc1.one({ type: 'level.raise', level: 4 });
    const named = (name: string, clusterId = `cluster of ${name}`) => ({
      ...voter(name),
      clusterId,
    });
    const set = (datacenters: readonly Datacenter[]) =>
      say(dc1, { type: 'datacenters.set', datacenters, majoritySeq: 0 });
    const all = [named('dc1'), named('dc2'), named('dc3')];
    test.equal(await set([voter('dc1'), voter('dc2'), named('dc3')]), 'applied');
    test.equal(
      await set(all),
      'applied',
      'any number may become known at once, without a majority',
    );
    test.strictSame(dc1.machine.replication()!.datacenters, all);
    const before = headOf(dc1);
    test.equal(await set([...all.slice(0, 2), named('dc3', 'another')]), 'not-allowed');
    test.equal(await set([...all.slice(0, 2), voter('dc3')]), 'not-allowed', 'nor is it forgotten');
    const shorter = { type: 'datacenters.set', datacenters: all.slice(0, 2), majoritySeq: before };
    test.equal(await say(dc1, shorter as Change), 'not-allowed');
    test.equal(headOf(dc1), before);
    await dc1.one(remove('dc3', before));
    test.strictSame(dc1.machine.replication()!.datacenters, [...all.slice(0, 2), gone('dc3')]);
    await dc1.one({ type: 'datacenter.allow', name: 'dc3' });
    const again = [...all.slice(0, 2), named('dc3', 'another')];
    const majoritySeq = headOf(dc1);
    test.equal(
      await say(dc1, { type: 'datacenters.set', datacenters: again, majoritySeq }),
      'applied',
    );
  },
);

t.test('clusters: all datacenters know them, also those that take a snapshot', async (test) => {
  const dc1 = await aPrimary();
  await dc1.one({ type: 'level.raise', level: 4 });
  const datacenters = [voter('dc1'), voter('dc2'), { ...voter('dc3'), clusterId: 'three' }];
  await dc1.one({ type: 'datacenters.set', datacenters, majoritySeq: 0 });
  const snapshot = (await dc1.machine.globalSnapshot())!;
  test.strictSame(decodeHeader(snapshot.header).datacenters, datacenters);
  await snapshot.close();
  const dc2 = new MachineHarness(new MemoryKv());
  await dc2.one({ type: 'global-log.begin', datacenter: 'dc2', primary: 'dc1', isWitness: false });
  const from = dc2.machine.replication()!.cursor;
  const entries = (await dc1.machine.globalEntries(from.seq, 1 << 20))!;
  const { cursor: to } = dc1.machine.replication()!;
  await dc2.one({ type: 'global-log.apply', epoch: to.epoch, from, entries, to });
  test.equal(clusterIdOf(dc2.machine.replication(), 'dc3'), 'three');
  test.equal(clusterIdOf(dc2.machine.replication(), 'dc2'), undefined);
});

t.test('federation: it is adopted once, and is in every snapshot', async (test) => {
  const dc1 = await aPrimary();
  const adopt = (harness: MachineHarness, federationId: string) =>
    say(harness, { type: 'federation.adopt', federationId });
  test.equal(await adopt(new MachineHarness(new MemoryKv()), 'fed'), 'not-begun');
  test.equal(await adopt(dc1, 'fed'), 'applied');
  test.equal(await adopt(dc1, 'fed'), 'applied');
  test.equal(await adopt(dc1, 'other'), 'stranger');
  test.equal(await adopt(dc1, ''), 'applied', 'of whom nobody knows');
  test.equal(dc1.machine.replication()!.federationId, 'fed');
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  const snapshot = (await dc1.machine.globalSnapshot())!;
  const { header } = snapshot;
  const pieces: Uint8Array[] = [];
  for await (const rows of snapshot.pieces()) pieces.push(rows);
  await snapshot.close();
  for (const known of ['', 'fed', 'other']) {
    const dc2 = new MachineHarness(new MemoryKv());
    await dc2.one({
      type: 'global-log.begin',
      datacenter: 'dc2',
      primary: 'dc1',
      isWitness: false,
    });
    if (known !== '') await adopt(dc2, known);
    const begun = await say(dc2, { type: 'global-snapshot.begin', id: 'one', header });
    test.equal(begun, known === 'other' ? 'stranger' : 'applied', known);
    if (known === 'other') continue;
    for (const [place, rows] of pieces.entries()) {
      await dc2.one({ type: 'global-snapshot.chunk', id: 'one', number: place + 1, rows });
    }
    const carry = { type: 'global-snapshot.carry', id: 'one', keys: [] } as const;
    await dc2.one({ ...carry, number: 1, isLast: false });
    await dc2.one({ ...carry, number: 2, isLast: true });
    test.equal(await say(dc2, { type: 'global-snapshot.commit', id: 'one' }), 'applied');
    test.equal(dc2.machine.replication()!.federationId, 'fed');
  }
});
