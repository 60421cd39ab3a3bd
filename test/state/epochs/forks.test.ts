// What a datacenter wrote that no other one has, once the primary is another one: set apart, done again, dropped, gone.

import t from 'tap';
import { must } from '../../../cluster/base/assert.ts';
import { DEFAULT_NAMESPACE } from '../../../src/acl/ids.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { standingOf } from '../../../src/state/global-log/chain.ts';
import {
  countIn,
  type EntryRange,
  isPrimary,
  type Replication,
} from '../../../src/state/global-log/replication.ts';
import { withPlace } from '../../../src/state/global-log/set-apart.ts';
import { isVoid } from '../../../src/state/reads/standing.ts';
import { stillHolds } from '../../../src/state/reads/standing-outcome.ts';
import {
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aToken,
  FIXTURE_TIME_MS,
} from '../../support/state-and-service/fixtures.ts';
import { archived, commandsOf, type Server } from '../archives/restoring.ts';
import { type Name, World } from './world.ts';

t.test(
  'a request of a fork that was left is done again, and one of a local token is not',
  async (test) => {
    const world = await World.open();
    const { dc1 } = world.machines;
    const mark = (byte: number) => ({
      key: new Uint8Array(32).fill(byte),
      fingerprint: new Uint8Array(32).fill(byte),
    });
    const shared = { type: 'policy.set', presence: 'create', policy: aPolicy(70) } as const;
    const local = {
      type: 'token.set',
      presence: 'create',
      token: aToken(70, { local: true }),
    } as const;
    await dc1.one(shared, { request: mark(1) });
    const own = await dc1.one(local, { request: mark(2) });
    await world.promise('w', 'dc2', 2);
    await world.promise('dc2', 'dc2', 2);
    await world.start('dc2', 2, ['w']);
    await world.fence('dc1', 'dc2');
    test.equal(await world.take('dc2', 'dc1'), 'applied');
    await world.sync('dc2', 'w');
    await world.promise('dc2', 'dc1', 3);
    await world.promise('dc1', 'dc1', 3);
    test.equal(await world.start('dc1', 3, ['dc2']), 'applied');
    test.match(await dc1.one(shared, { request: mark(1) }), { kind: 'applied', replayed: false });
    test.match(await dc1.one(shared, { request: mark(1) }), { kind: 'applied', replayed: true });
    test.same(await dc1.one(local, { request: mark(2) }), { ...own, replayed: true });
  },
);

t.test('divergent entries: one of several is dropped, and the others stay', async (test) => {
  const world = await World.open();
  for (let count = 0; count < 3; count += 1) await world.write('dc1');
  const last = world.at('dc1').cursor.seq;
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  const { machine } = world.machines.dc1;
  const drop = (seq: number, epoch = 1) => world.say('dc1', { type: 'divergent.drop', epoch, seq });
  const seqs = async () => (await machine.divergentEntries(10)).map(({ seq }) => seq);
  const rows = entryRowsOf(world);
  test.equal(await drop(last + 1), 'not-allowed');
  test.equal(await drop(last, 2), 'not-allowed', 'another epoch');
  test.equal(await drop(last - 1), 'applied', 'in the middle');
  test.same(await seqs(), [last - 2, last]);
  test.equal(machine.divergentEntry({ epoch: 1, seq: last - 1 }), undefined);
  test.equal(machine.divergentEntry({ epoch: 1, seq: last })?.seq, last);
  test.equal(await drop(last - 1), 'not-allowed', 'twice');
  for (const seq of [last - 2, last]) test.equal(await drop(seq), 'applied');
  test.same(world.at('dc1').divergent, []);
  test.equal(rows - entryRowsOf(world), 3, 'no row is left');
});

/** How many entries dc1 stores. */
function entryRowsOf({ machines }: World): number {
  return machines.dc1.kv.dump().filter((row) => row.startsWith('5d')).length;
}

t.test('divergent entries: a command discards so many, and the next one the rest', async (test) => {
  const world = await World.open();
  const fork = world.at('dc1').cursor.seq;
  for (let count = 0; count < 1_030; count += 1) await world.write('dc1');
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  const discard = { type: 'divergent.discard', epoch: 1, upTo: fork + 1_030 } as const;
  const entries = async (): Promise<number> =>
    (await world.machines.dc1.machine.divergentEntries(9_999)).length;
  const rows = (): number => entryRowsOf(world);
  test.equal(await entries(), 1_030);
  const before = rows();
  await world.say('dc1', discard);
  test.equal(rows(), before - 1_024);
  test.same(world.at('dc1').divergent, [{ epoch: 1, first: fork + 1_025, last: fork + 1_030 }]);
  test.equal(await entries(), 6);
  await world.say('dc1', discard);
  test.same([world.at('dc1').divergent, await entries(), rows()], [[], 0, before - 1_030]);
});

t.test('a reign that left nothing is forgotten with the entry that comes in its place', (test) => {
  const startHash = new Uint8Array(32);
  const epochs = [1, 2].map((epoch) => ({ epoch, startSeq: epoch * 4, startHash, primary: 'dc1' }));
  const nothing = { divergent: [], gone: [], unused: [] };
  const replication = { epochs, ...nothing } as unknown as Replication;
  const epochsBehind = (epoch: number, level = NEWEST_LEVEL) =>
    withPlace({ level }, replication, { epoch, seq: 8 }).epochs.map((each) => each.epoch);
  test.same(epochsBehind(1), [1], 'what it had beside that is settled, and listed nowhere');
  test.same(epochsBehind(2), [1, 2]);
  test.same(epochsBehind(3), [1, 2]);
  test.same(epochsBehind(1, 2), [1, 2], 'as servers of an earlier release do');
  test.end();
});

t.test('what was trimmed before the fork was known is counted as gone', async (test) => {
  const world = await World.open();
  await world.say('dc1', { type: 'level.raise', level: NEWEST_LEVEL });
  const fork = world.at('dc1').cursor.seq;
  for (let count = 0; count < 5; count += 1) await world.write('dc1');
  test.equal(await world.say('dc1', { type: 'global-log.trim', upTo: fork + 3 }), 'done');
  test.same(world.at('dc1').gone, [], 'nothing is gone that others may have');
  await world.start('dc2', 2, [], true);
  test.equal(await world.fence('dc1', 'dc2'), 'applied');
  test.same(world.at('dc1').gone, [{ epoch: 1, first: fork + 1, last: fork + 3 }]);
  test.same(world.at('dc1').divergent, [{ epoch: 1, first: fork + 4, last: fork + 5 }]);
  test.equal(await world.take('dc2', 'dc1'), 'applied');
  test.equal(countIn(world.at('dc1').gone), 3, 'it is known behind the snapshot, too');
  const drop = { type: 'divergent.drop', epoch: 1 } as const;
  test.equal(await world.say('dc1', { ...drop, seq: fork + 2 }), 'not-allowed');
  for (const seq of [fork + 4, fork + 5]) await world.say('dc1', { ...drop, seq });
  test.same([countIn(world.at('dc1').divergent), countIn(world.at('dc1').gone)], [0, 3]);
  const discard = { type: 'divergent.discard', epoch: 1 } as const;
  await world.say('dc1', { ...discard, epoch: 2, upTo: fork + 9 });
  test.equal(countIn(world.at('dc1').gone), 3, 'another epoch');
  await world.say('dc1', { ...discard, upTo: fork + 1 });
  test.same(world.at('dc1').gone, [{ epoch: 1, first: fork + 2, last: fork + 3 }]);
  await world.say('dc1', { ...discard, upTo: fork + 3 });
  test.same(world.at('dc1').gone, []);
});

t.test('what was trimmed is gone where all of it was, and in each epoch', async (test) => {
  const world = await World.open();
  const fork = world.at('dc1').cursor.seq;
  await world.write('dc1');
  await world.start('dc1', 2, [], true);
  await world.write('dc1');
  await world.say('dc1', { type: 'global-log.trim', upTo: fork + 3 });
  await world.start('dc2', 3, [], true);
  test.equal(await world.fence('dc1', 'dc2'), 'applied');
  test.same(world.at('dc1').divergent, []);
  test.same(world.at('dc1').gone, [
    { epoch: 1, first: fork + 1, last: fork + 1 },
    { epoch: 2, first: fork + 2, last: fork + 3 },
  ]);
});

t.test('what another one wrote is not said to be gone where it was trimmed', async (test) => {
  const world = await World.open();
  const before = world.at('dc2');
  for (let count = 0; count < 3; count += 1) await world.write('dc1');
  test.equal(await world.sync('dc1', 'dc2'), 'applied');
  await world.say('dc2', { type: 'global-log.trim', upTo: before.cursor.seq + 2 });
  const { seq, hash } = before.cursor;
  const later = { epoch: 2, startSeq: seq + 1, startHash: hash, primary: 'dc3' };
  const fence = { type: 'epoch.fence', epochs: [...before.epochs, later] } as const;
  test.equal(await world.say('dc2', fence), 'applied');
  test.ok(world.at('dc2').isDiverged);
  test.same([world.at('dc2').divergent, world.at('dc2').gone], [[], []]);
});

t.test(
  'a fork: what was set apart is of the log again where it is elected with it',
  async (test) => {
    const world = await World.open();
    const fork = world.at('dc1').cursor.seq;
    for (let count = 0; count < 5; count += 1) await world.write('dc1');
    await world.say('dc1', { type: 'global-log.trim', upTo: fork + 2 });
    await world.start('dc2', 2, [], true);
    await world.write('dc2');
    test.equal(await world.fence('dc1', 'dc2'), 'applied');
    test.same(world.at('dc1').gone, [{ epoch: 1, first: fork + 1, last: fork + 2 }]);
    test.same(world.at('dc1').divergent, [{ epoch: 1, first: fork + 3, last: fork + 5 }]);
    await world.say('dc1', { type: 'divergent.drop', epoch: 1, seq: fork + 4 });

    // The witness has nothing of the second epoch, and dc2 is lost.
    test.equal(await world.promise('dc1', 'dc1', 3), 'granted');
    test.equal(await world.promise('w', 'dc1', 3), 'granted');
    const plain = { type: 'epoch.start', epoch: 3, promises: ['w'], isForced: false } as const;
    const blind = await world.say('dc1', { ...plain, isFromFork: false });
    test.equal(blind, 'not-allowed', 'who does not know of the fork');
    test.equal(await world.start('dc1', 3, ['w']), 'applied');
    test.ok(isPrimary(world.at('dc1')));
    test.same([world.at('dc1').divergent, world.at('dc1').gone], [[], []]);
    test.equal(await world.sync('dc1', 'w'), 'not-kept');
    test.equal(await world.take('dc1', 'w'), 'applied', 'others are sent a snapshot');
    test.ok(await world.write('dc1'));
    test.equal(await world.sync('dc1', 'w'), 'applied');
    await world.say('dc1', { type: 'global-log.trim', upTo: 0 });
    const place = { epoch: 1, seq: fork + 5 };
    test.equal(standingOf(world.at('dc1'), place), 'replicated');

    test.equal(await world.fence('dc2', 'dc1'), 'applied');
    test.same(world.at('dc2').divergent, [{ epoch: 2, first: fork + 1, last: fork + 2 }]);
    test.equal(await world.take('dc1', 'dc2'), 'applied');
    const digests = (['dc1', 'dc2'] as const).map(
      (name) => world.machines[name].machine.digests().global,
    );
    test.equal(digests[0], digests[1]);
    test.equal(countIn(world.at('dc2').divergent), 2, 'an older fork stays apart');
    await world.promise('dc2', 'dc2', 4);
    const twice = { ...plain, epoch: 4, promises: ['w', 'dc1'], isFromFork: true } as const;
    test.equal(await world.say('dc2', twice), 'not-allowed', 'it stands on none any more');
  },
);

t.test('a fork: all that nobody wants is dropped where it is elected with it', async (test) => {
  const world = await World.open();
  const { first, cursor } = world.at('dc1');
  for (let count = 0; count < 2; count += 1) await world.write('dc1');
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  test.equal(await world.start('dc1', 3, [], true), 'applied');
  test.same(world.at('dc1').unused, [
    { epoch: 1, first, last: cursor.seq },
    { epoch: 1, first: cursor.seq + 1, last: cursor.seq + 2 },
  ]);
});

t.test(
  'a fork: what was done on it to local tokens is still done, and the rest is not',
  async (test) => {
    const world = await World.open();
    await world.say('dc1', { type: 'level.raise', level: NEWEST_LEVEL });
    const { machine } = world.machines.dc1;
    const mark = (fill: number) => ({
      key: new Uint8Array(32).fill(fill),
      fingerprint: new Uint8Array(32),
    });
    for (const [number, local] of [
      [70, true],
      [71, false],
    ] as const) {
      const token = aToken(number, { local });
      const { accessorId } = token;
      await world.machines.dc1.one({ type: 'token.set', presence: 'create', token });
      const change = { type: 'token.delete', accessorId } as const;
      await world.machines.dc1.one(change, { request: mark(number) });
    }
    const outcomeOf = (number: number) => machine.request(mark(number).key)?.outcome;
    const holds = (name: Name) =>
      [70, 71].map((number) => {
        return stillHolds(world.at(name), must(outcomeOf(number), 'an outcome'));
      });
    test.same(holds('dc1'), [true, true]);
    await world.start('dc2', 2, [], true);
    test.same(holds('dc2'), [true, false], 'as the later reign sees it');
    await world.fence('dc1', 'dc2');
    test.same(holds('dc1'), [true, false], 'also while it waits for the objects of that reign');
    test.equal(await world.take('dc2', 'dc1'), 'applied');
    test.ok(outcomeOf(70));
    test.equal(outcomeOf(71), undefined);
  },
);

t.test('a fork: an older one stays set apart where it is elected on a later one', async (test) => {
  const world = await World.open();
  await world.write('dc1');
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  const [older] = world.at('dc1').divergent;
  test.equal(await world.take('dc2', 'dc1'), 'applied');
  await world.start('dc1', 3, [], true);
  await world.write('dc1');
  await world.start('dc2', 4, [], true);
  test.equal(await world.fence('dc1', 'dc2'), 'applied');
  test.equal(world.at('dc1').divergent.length, 2);
  test.equal(await world.start('dc1', 5, [], true), 'applied', 'an operator may force it, too');
  test.same(world.at('dc1').divergent, [older]);
});

t.test('divergent entries: of two forks each is settled by itself', async (test) => {
  const world = await World.open();
  for (let count = 0; count < 2; count += 1) await world.write('dc1');
  const { seq } = world.at('dc1').cursor;
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  await world.take('dc2', 'dc1');
  await world.start('dc1', 3, [], true);
  await world.write('dc1');
  await world.start('dc2', 4, [], true);
  await world.fence('dc1', 'dc2');
  const entries = async () => {
    const found = await world.machines.dc1.machine.divergentEntries(10);
    return found.map((each) => `${each.epoch}.${each.seq}`);
  };
  const older = [`1.${seq - 1}`, `1.${seq}`];
  test.same(await entries(), [...older, `3.${seq}`, `3.${seq + 1}`]);
  await world.say('dc1', { type: 'divergent.drop', epoch: 3, seq });
  test.same(await entries(), [...older, `3.${seq + 1}`], 'one of that number alone');
  await world.say('dc1', { type: 'divergent.discard', epoch: 3, upTo: seq + 9 });
  test.same(await entries(), older);
  await world.say('dc1', { type: 'divergent.discard', epoch: 1, upTo: seq - 1 });
  test.same(await entries(), [`1.${seq}`]);
});

/** One that is left behind at the last two of its five entries, and hears of a reign that has the first alone. */
async function leftBehindTwice(level = NEWEST_LEVEL, trimmed = 0) {
  const world = await World.open();
  await world.say('dc1', { type: 'level.raise', level });
  const { epochs, cursor } = world.at('dc1');
  const fork = cursor.seq;
  for (let count = 0; count < 5; count += 1) await world.write('dc1');
  await world.sync('dc1', 'dc2', 3);
  if (trimmed > 0) await world.say('dc1', { type: 'global-log.trim', upTo: fork + trimmed });
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  // Of what they have in common then, that one has the first alone.
  const startHash = world.machines.dc2.machine.globalHashAt(fork + 1)!;
  const later = { epoch: 3, startSeq: fork + 2, startHash, primary: 'dc3' };
  const fence = { type: 'epoch.fence', epochs: [...epochs, later] } as const;
  const apart = () => {
    const { divergent, gone } = world.at('dc1');
    return { divergent: seqsIn(divergent, fork), gone: seqsIn(gone, fork) };
  };
  return { world, fork, fence, apart };
}

/** Counted from behind the fork on. */
function seqsIn(ranges: readonly EntryRange[], fork: number): readonly number[] {
  return ranges.flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at - fork),
  );
}

t.test('a fork: a later reign that left the chain before it did finds more apart', async (test) => {
  const { world, fork, fence, apart } = await leftBehindTwice();
  const { machine } = world.machines.dc1;
  test.same(apart(), { divergent: [4, 5], gone: [] });
  test.ok(world.at('dc1').unused.length > 0);
  test.equal(machine.unusedTimeMs(), undefined, 'which is wanted as long as it waits');
  test.equal(await world.say('dc1', fence), 'applied');
  test.same(apart(), { divergent: [2, 3, 4, 5], gone: [] });
  const own = async () => (await machine.divergentEntries(10)).map(({ seq }) => seq - fork);
  test.same(await own(), [2, 3, 4, 5]);
  await world.say('dc1', { type: 'global-log.trim', upTo: 0 });
  test.same(world.at('dc1').unused, []);
  test.same(await own(), [2, 3, 4, 5], 'and they stay');
  await world.say('dc1', { type: 'divergent.drop', epoch: 1, seq: fork + 2 });
  test.equal(await world.say('dc1', fence), 'applied', 'it is told every second');
  test.same(apart(), { divergent: [3, 4, 5], gone: [] }, 'and nothing comes back');
});

t.test(
  'a fork: a later reign that went on with the lost one finds nothing more apart',
  async (test) => {
    const { world, fork, apart } = await leftBehindTwice();
    const startHash = Buffer.alloc(32, 3);
    const later = { epoch: 3, startSeq: fork + 9, startHash, primary: 'dc3' };
    const epochs = [...world.at('dc2').epochs, later];
    test.equal(await world.say('dc1', { type: 'epoch.fence', epochs }), 'applied');
    test.equal(world.at('dc1').maxEpochPromised, 3);
    test.same(apart(), { divergent: [4, 5], gone: [] });
  },
);

t.test('a fork: servers of an older release do the same as all', async (test) => {
  const { world, fence, apart } = await leftBehindTwice(2);
  test.equal(await world.say('dc1', fence), 'applied');
  test.same(apart(), { divergent: [4, 5], gone: [] });
});

t.test('a fork: what was dropped before the later reign is counted as gone', async (test) => {
  const { world, fork, fence, apart } = await leftBehindTwice();
  await world.say('dc1', { type: 'global-log.trim', upTo: 0 });
  await world.say('dc1', { type: 'divergent.drop', epoch: 1, seq: fork + 5 });
  test.equal(await world.say('dc1', fence), 'applied');
  test.same(apart(), { divergent: [4], gone: [2, 3] });
});

t.test(
  'a fork: of what it finds apart later, too, what was trimmed by then is gone',
  async (test) => {
    const { fence, world, apart } = await leftBehindTwice(NEWEST_LEVEL, 2);
    test.equal(await world.say('dc1', fence), 'applied');
    test.same(apart(), { divergent: [3, 4, 5], gone: [2] });
  },
);

t.test('a fork: a snapshot of a reign that nobody told of sets more apart, too', async (test) => {
  const { world, fork, apart } = await leftBehindTwice();
  // It has nothing of what the other one was given.
  const third = await World.open();
  await third.start('dc2', 3, [], true);
  test.equal(third.at('dc2').epochs.at(-1)!.startSeq, fork + 1);
  const snapshot = (await third.machines.dc2.machine.globalSnapshot())!;
  test.equal(await world.takeIn(snapshot, 'dc1'), 'applied');
  test.notOk(world.at('dc1').isDiverged);
  test.same(apart(), { divergent: [1, 2, 3, 4, 5], gone: [] });
});

/** One that wrote two entries, restored an archive and wrote one more, none of which the next reign has. */
async function leftBehindByRestore(level: number, trims: readonly number[] = []) {
  const world = await World.open();
  const restore = await commandsOf(await archived(world.machines.dc1 as Server));
  await world.say('dc1', { type: 'level.raise', level });
  const fork = world.at('dc1').cursor.seq;
  for (let count = 0; count < 2; count += 1) await world.write('dc1');
  await world.machines.dc1.run(...restore);
  await world.write('dc1');
  for (const upTo of trims) await world.say('dc1', { type: 'global-log.trim', upTo });
  await world.start('dc2', 2, [], true);
  await world.fence('dc1', 'dc2');
  const { divergent, gone } = world.at('dc1');
  const there = await world.machines.dc1.machine.divergentEntries(10);
  const apart = { divergent: seqsIn(divergent, fork), gone: seqsIn(gone, fork) };
  return { world, apart, there: there.map(({ seq }) => seq - fork) };
}

t.test('a fork: what a restore left behind is set apart while it is there', async (test) => {
  const { world, apart, there } = await leftBehindByRestore(6);
  test.same(apart, { divergent: [1, 2, 3, 4], gone: [] });
  test.same(there, [1, 2, 3, 4]);
  test.equal(await world.take('dc2', 'dc1'), 'applied');
  await world.say('dc1', { type: 'global-log.trim', upTo: 0 });
  test.same(world.at('dc1').unused, []);
  const kept = await world.machines.dc1.machine.divergentEntries(10);
  test.equal(kept.length, 4, 'and stays, whatever else is dropped');
});

t.test('a fork: what a restore left behind and was dropped is gone', async (test) => {
  const { apart, there } = await leftBehindByRestore(6, [0]);
  test.same(apart, { divergent: [3, 4], gone: [1, 2] });
  test.same(there, [3, 4]);
});

t.test('a fork: before level 6 all that a restore left behind counts as gone', async (test) => {
  const { apart, there } = await leftBehindByRestore(5);
  test.same(apart, { divergent: [3, 4], gone: [1, 2] });
  test.same(there, [3, 4]);
});

interface Hanging {
  /** Before the fork, in the primary. */
  readonly before?: readonly Change[];
  /** On the fork, and then in the next reign. */
  readonly fork: readonly Change[];
  readonly next: readonly Change[];
  readonly token: Parameters<typeof aToken>[1];
  /** On the fork, behind the token. */
  readonly behind?: readonly Change[];
  readonly level?: number;
}

/** Whether a local token that was made on a fork is still good when the next reign's objects have come. */
async function outlasts(hanging: Hanging): Promise<boolean> {
  const { before = [], fork, next, token, behind = [], level = 3 } = hanging;
  const world = await World.open();
  await world.say('dc1', { type: 'level.raise', level });
  for (const change of before) await world.say('dc1', change);
  await world.sync('dc1', 'dc2');
  for (const change of fork) await world.say('dc1', change);
  const presence = 'create';
  const { dc1 } = world.machines;
  const method = dc1.machine.authMethod(DEFAULT_NAMESPACE, 'login');
  const authMethod = token?.authMethod && { ...token.authMethod, ...method };
  const own = aToken(300, { local: true, ...token, authMethod });
  await dc1.one({ type: 'token.set', presence, token: own });
  for (const change of behind) await world.say('dc1', change);
  await world.start('dc2', 2, [], true);
  for (const change of next) await world.say('dc2', change);
  await world.fence('dc1', 'dc2');
  if ((await world.take('dc2', 'dc1')) !== 'applied') throw new Error('the snapshot is not taken');
  const found = dc1.machine.tokenBySecret(own.secretId);
  return found !== undefined && !isVoid(found, dc1.machine, FIXTURE_TIME_MS);
}

t.test(
  'a fork: what hangs on it ends with it, also where the next reign has the same name',
  async (test) => {
    const methodSaying = (description: string): Change => {
      const method = anAuthMethod('login', { description });
      return { type: 'auth-method.set', presence: 'either', method };
    };
    const spaceSaying = (description: string): Change => {
      const namespace = aNamespace('team', { description });
      return { type: 'namespace.set', presence: 'either', namespace };
    };
    const login = { name: 'login', namespace: DEFAULT_NAMESPACE };
    const noMethod: Change = { type: 'auth-method.delete', ...login };
    const authMethod = { ...login, createIndex: 0 };
    const logged = { authMethod };
    const housed = { namespace: aNamespaceName('team') };
    const cases: readonly (readonly [string, boolean, Hanging])[] = [
      [
        'a method of both',
        false,
        { fork: [methodSaying('one')], next: [methodSaying('two')], token: logged },
      ],
      [
        'a namespace of both',
        false,
        { fork: [spaceSaying('one')], next: [spaceSaying('two')], token: housed },
      ],
      ['a method of the fork', false, { fork: [methodSaying('one')], next: [], token: logged }],
      [
        'a method from before that was changed on one side',
        true,
        { before: [methodSaying('one')], fork: [], next: [methodSaying('two')], token: logged },
      ],
      [
        'a namespace from before that was changed on both',
        true,
        {
          before: [spaceSaying('one')],
          fork: [spaceSaying('two')],
          next: [spaceSaying('three')],
          token: housed,
        },
      ],
      ['nothing', true, { fork: [methodSaying('one')], next: [methodSaying('two')], token: {} }],
      [
        'a method of both that was deleted on the fork',
        false,
        {
          fork: [methodSaying('one')],
          next: [methodSaying('two')],
          token: logged,
          behind: [noMethod],
          level: 8,
        },
      ],
      [
        'the same, below level 8',
        true,
        {
          fork: [methodSaying('one')],
          next: [methodSaying('two')],
          token: logged,
          behind: [noMethod],
          level: 7,
        },
      ],
      [
        'a method from before that was deleted on the fork alone',
        true,
        {
          before: [methodSaying('one')],
          fork: [],
          next: [],
          token: logged,
          behind: [noMethod],
          level: 8,
        },
      ],
      [
        'a method of both, as older releases apply it',
        true,
        { fork: [methodSaying('one')], next: [methodSaying('two')], token: logged, level: 2 },
      ],
    ];
    for (const [name, isGood, hanging] of cases) test.equal(await outlasts(hanging), isGood, name);
  },
);
