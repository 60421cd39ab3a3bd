// Moving the primary: promises, epochs, fencing. Single steps, and random orders of all of them over two
// datacenters and a witness.

import fc from 'fast-check';
import t from 'tap';
import { must } from '../../cluster/base/assert.ts';
import type { Change } from '../../src/state/commands.ts';
import { decodeEntry } from '../../src/state/global-log/global-entry.ts';
import { NEWEST_LEVEL } from '../../src/state/feature-levels.ts';
import { mayPromise } from '../../src/state/global-log/election.ts';
import { forkOf, standingOf } from '../../src/state/global-log/chain.ts';
import type { GlobalSnapshot } from '../../src/state/global-log/global-snapshot.ts';
import {
  countIn,
  type EntryRange,
  isPrimary,
  type Replication,
} from '../../src/state/global-log/replication.ts';
import { DEFAULT_NAMESPACE } from '../../src/acl/ids.ts';
import { isVoid } from '../../src/state/standing.ts';
import { stillHolds } from '../../src/state/standing-outcome.ts';
import {
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aToken,
  FIXTURE_TIME_MS,
} from '../support/fixtures.ts';
import { BUILTINS, MachineHarness } from '../support/machine-harness.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { archived, commandsOf, type Server } from './restoring.ts';

const NAMES = ['dc1', 'dc2', 'w'] as const;
type Name = (typeof NAMES)[number];
const DATACENTERS = [
  { name: 'dc1', isVoter: true, isWitness: false },
  { name: 'dc2', isVoter: true, isWitness: false },
  { name: 'w', isVoter: true, isWitness: true },
];

/** Two datacenters and a witness, of which the first one is primary. */
class World {
  readonly machines: Readonly<Record<Name, MachineHarness>> = {
    dc1: new MachineHarness(new MemoryKv()),
    dc2: new MachineHarness(new MemoryKv()),
    w: new MachineHarness(new MemoryKv()),
  };
  #written = 0;

  static async open(): Promise<World> {
    const world = new World();
    for (const name of NAMES) {
      const begin = { datacenter: name, primary: 'dc1', isWitness: name === 'w' };
      await world.machines[name].one({ type: 'global-log.begin', ...begin });
    }
    await world.machines.dc1.one(BUILTINS);
    const two = [DATACENTERS[0]!, DATACENTERS[1]!];
    await world.say('dc1', { type: 'datacenters.set', datacenters: two, majoritySeq: 0 });
    await world.sync('dc1', 'dc2');
    const majoritySeq = world.at('dc1').cursor.seq;
    await world.say('dc1', { type: 'datacenters.set', datacenters: DATACENTERS, majoritySeq });
    await world.sync('dc1', 'dc2');
    await world.sync('dc1', 'w');
    return world;
  }

  at(name: Name): Replication {
    return this.machines[name].machine.replication()!;
  }

  async say(name: Name, change: Change): Promise<string> {
    const outcome = await this.machines[name].one(change);
    if (outcome.kind === 'refused') return outcome.code;
    return outcome.answer.type === 'verdict' ? outcome.answer.verdict : outcome.answer.type;
  }

  /** A new policy; whether it was written. */
  async write(name: Name): Promise<boolean> {
    this.#written += 1;
    const policy = aPolicy(this.#written);
    return (await this.say(name, { type: 'policy.set', presence: 'create', policy })) === 'policy';
  }

  /** Entries of one, applied by the other. */
  async sync(from: Name, to: Name, countMax = 1000): Promise<string> {
    const [source, target] = [this.at(from), this.at(to)];
    const { machine } = this.machines[from];
    const found = await machine.globalEntries(target.cursor.seq, 1 << 20);
    if (found === undefined || source.isDiverged) return 'not-kept';
    const entries = found.slice(0, countMax);
    const last = entries.at(-1);
    if (last === undefined) return 'nothing';
    const { epoch: lastEpoch, seq } = decodeEntry(last);
    const hash = machine.globalHashAt(seq)!;
    const { epoch } = source.epochs.at(-1)!;
    const change = { epoch, from: target.cursor, entries, to: { epoch: lastEpoch, seq, hash } };
    return await this.say(to, { type: 'global-log.apply', ...change });
  }

  promise(voter: Name, candidate: Name, epoch: number): Promise<string> {
    const at = this.at(candidate).cursor;
    return this.say(voter, { type: 'epoch.promise', epoch, candidate, at });
  }

  start(name: Name, epoch: number, promises: readonly Name[], isForced = false): Promise<string> {
    const isFromFork = this.at(name).isDiverged;
    return this.say(name, { type: 'epoch.start', epoch, promises, isForced, isFromFork });
  }

  fence(name: Name, by: Name): Promise<string> {
    return this.say(name, { type: 'epoch.fence', epochs: this.at(by).epochs });
  }

  /** All objects of one, taken in by the other. */
  async take(from: Name, to: Name): Promise<string> {
    const snapshot = await this.machines[from].machine.globalSnapshot();
    return snapshot === undefined ? 'not-kept' : await this.takeIn(snapshot, to);
  }

  async takeIn(snapshot: GlobalSnapshot, to: Name): Promise<string> {
    const { header } = snapshot;
    const id = 'one';
    let verdict = await this.say(to, { type: 'global-snapshot.begin', id, header });
    let number = 0;
    for await (const rows of snapshot.pieces()) {
      number += 1;
      if (verdict !== 'applied' || to === 'w') break;
      verdict = await this.say(to, { type: 'global-snapshot.chunk', id, number, rows });
    }
    await snapshot.close();
    if (verdict !== 'applied') return verdict;
    const carry = { type: 'global-snapshot.carry', id } as const;
    await this.say(to, { ...carry, number: 1, keys: [], isLast: false });
    const keys = await this.machines[to].machine.localRows(undefined, 1000);
    await this.say(to, { ...carry, number: 2, keys, isLast: true });
    return await this.say(to, { type: 'global-snapshot.commit', id });
  }

  async entriesOf(name: Name): Promise<readonly { readonly id: string; readonly hash: string }[]> {
    const { machine } = this.machines[name];
    const kept = machine.keptEntries();
    if (kept === undefined) return [];
    const entries = (await machine.globalEntries(kept.first - 1, 1 << 24))!;
    return entries.map((bytes) => {
      const { epoch, seq } = decodeEntry(bytes);
      return { id: `${epoch}.${seq}`, hash: hexOf(machine.globalHashAt(seq)!) };
    });
  }
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

t.test(
  'election: a majority of promises makes the next primary, and ends the last one',
  async (test) => {
    const world = await World.open();
    await world.write('dc1');
    test.equal(await world.promise('w', 'dc2', 2), 'granted');
    test.equal(await world.promise('w', 'dc1', 2), 'not-granted', 'one promise an epoch');
    test.equal(await world.promise('w', 'dc2', 2), 'granted', 'the same promise twice is one');
    test.equal(await world.promise('w', 'w', 3), 'not-granted', 'a witness is no candidate');
    const stranger = { epoch: 3, candidate: 'nobody', at: { epoch: 9, seq: 9 } };
    test.equal(await world.say('w', { type: 'epoch.promise', ...stranger }), 'not-granted');
    test.equal(await world.start('dc2', 2, ['w']), 'not-allowed', 'without its own promise');
    test.equal(await world.promise('dc2', 'dc2', 2), 'granted');
    test.equal(await world.start('dc2', 2, []), 'not-allowed', 'one of three is no majority');
    test.equal(await world.start('dc2', 3, ['w']), 'not-allowed', 'another epoch');
    test.equal(await world.start('dc2', 2, ['w']), 'applied');
    test.ok(isPrimary(world.at('dc2')));
    test.ok(await world.write('dc2'));
    test.same(
      world.at('dc2').epochs.map(({ primary }) => primary),
      ['dc1', 'dc2'],
    );
    test.ok(await world.write('dc1'), 'who heard of nothing goes on');
    test.equal(await world.sync('dc1', 'w'), 'fenced', 'but nobody takes it');
    test.equal(await world.sync('dc2', 'w'), 'applied');
    test.equal(await world.fence('dc1', 'dc2'), 'applied');
    test.notOk(await world.write('dc1'), 'until it is told');
    const { divergent, isDiverged, cursor } = world.at('dc1');
    test.ok(isDiverged);
    test.same(divergent, [{ epoch: 1, first: cursor.seq - 1, last: cursor.seq }]);
    const own = await world.machines.dc1.machine.divergentEntries(10);
    test.same(
      own.map(({ seq }) => seq),
      [cursor.seq - 1, cursor.seq],
    );
    test.equal((await world.machines.dc1.machine.divergentEntries(1)).length, 1);
    test.equal(
      await world.machines.dc1.machine.globalEntries(0, 1000),
      undefined,
      'it sends nothing',
    );
    await world.write('dc2');
    test.equal(await world.sync('dc2', 'dc1'), 'reset', 'and takes nothing but a snapshot');
    test.equal(await world.take('dc2', 'dc1'), 'applied');
    test.same(
      world.machines.dc1.machine.digests().global,
      world.machines.dc2.machine.digests().global,
    );
    test.same(
      await world.machines.dc1.machine.divergentEntries(10),
      own,
      'they stay to be looked at',
    );
    test.ok(await world.write('dc2'));
    test.equal(await world.sync('dc2', 'dc1'), 'applied');
    const [range] = divergent;
    const discard = { type: 'divergent.discard', epoch: 1 } as const;
    test.equal(await world.say('dc1', { ...discard, upTo: range!.first }), 'applied');
    test.same(world.at('dc1').divergent, [{ ...range!, first: range!.last }]);
    test.equal(await world.say('dc1', { ...discard, upTo: range!.last }), 'applied');
    test.same(world.at('dc1').divergent, []);
    await world.say('dc1', { type: 'global-log.trim', upTo: 0 });
    test.same(world.at('dc1').unused, [], 'what is of no use is dropped');
  },
);

t.test(
  'election: whoever lacks an entry that a voter has gets no promise from it',
  async (test) => {
    const world = await World.open();
    await world.write('dc1');
    await world.sync('dc1', 'w');
    test.equal(await world.promise('w', 'dc2', 2), 'not-granted');
    await world.sync('dc1', 'dc2');
    test.equal(await world.promise('w', 'dc2', 2), 'granted');
  },
);

t.test(
  'hand-over: the primary promises to whoever has all, and writes nothing after it',
  async (test) => {
    const world = await World.open();
    await world.write('dc1');
    test.equal(await world.promise('dc1', 'dc2', 2), 'not-granted', 'entries are missing');
    test.ok(await world.write('dc1'), 'so it goes on');
    await world.sync('dc1', 'dc2');
    test.equal(await world.promise('dc1', 'dc2', 2), 'granted');
    test.equal(await world.say('dc1', { type: 'policy.delete', id: aPolicy(1).id }), 'not-primary');
    await world.promise('dc2', 'dc2', 2);
    test.equal(await world.start('dc2', 2, ['dc1']), 'applied');
    test.equal(await world.sync('dc2', 'dc1'), 'applied', 'nothing diverged: entries lead on');
    test.same(world.at('dc1').divergent, []);
    test.notOk(isPrimary(world.at('dc1')));
  },
);

t.test('promises: none to itself of a witness that is not listed as one', async (test) => {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one({ type: 'global-log.begin', datacenter: 'w', primary: 'dc1', isWitness: true });
  const listed = harness.machine.replication()!;
  const datacenters = DATACENTERS.map((each) => ({ ...each, isWitness: false }));
  const unmarked = { ...listed, datacenters };
  const at = listed.cursor;
  test.notOk(mayPromise(unmarked, { epoch: 2, candidate: 'w', at }));
  test.ok(mayPromise(unmarked, { epoch: 2, candidate: 'dc2', at }), 'to others as ever');
});

t.test('force: it needs no promise, and is told in the log', async (test) => {
  const world = await World.open();
  test.equal(await world.start('dc2', 1, [], true), 'not-allowed', 'an epoch that is over');
  test.equal(await world.start('w', 2, [], true), 'not-allowed', 'a witness has no objects');
  await world.promise('dc2', 'dc1', 2);
  test.equal(
    await world.start('dc2', 2, [], true),
    'not-allowed',
    'an epoch that is promised away',
  );
  test.equal(await world.start('dc2', 3, [], true), 'applied');
  const entries = await world.machines.dc2.machine.globalEntries(
    world.at('dc2').cursor.seq - 1,
    1000,
  );
  test.match(decodeEntry(entries![0]!).body, {
    kind: 'epoch-start',
    primary: 'dc2',
    isForced: true,
  });
  await world.write('dc1');
  await world.fence('dc1', 'dc2');
  const blind = { epoch: 9, promises: [], isForced: true, isFromFork: false } as const;
  test.equal(
    await world.say('dc1', { type: 'epoch.start', ...blind }),
    'not-allowed',
    'who does not know that it stands on a fork',
  );
});

t.test('a snapshot: does not wipe out what was written here alone', async (test) => {
  const world = await World.open();
  await world.write('dc1');
  await world.promise('w', 'dc2', 2);
  await world.promise('dc2', 'dc2', 2);
  await world.start('dc2', 2, ['w']);
  test.equal(await world.take('dc2', 'dc1'), 'primary');
  test.equal(
    await world.promise('dc1', 'dc2', 2),
    'granted',
    'it heard of the epoch, but not of the fork',
  );
  test.equal(await world.take('dc2', 'dc1'), 'not-allowed');
  test.equal(await world.fence('dc1', 'dc2'), 'applied');
  test.equal(await world.take('dc2', 'dc1'), 'applied');
  test.equal((await world.machines.dc1.machine.divergentEntries(10)).length, 1);
});

t.test('fence: a log of another system is not listened to', async (test) => {
  const [world, other] = [await World.open(), await World.open()];
  await other.start('dc2', 7, [], true);
  const strange = other
    .at('dc2')
    .epochs.map((each) => ({ ...each, startHash: new Uint8Array(32) }));
  test.equal(await world.say('dc1', { type: 'epoch.fence', epochs: strange }), 'not-allowed');
  test.equal(await world.say('dc1', { type: 'epoch.fence', epochs: [] }), 'not-allowed');
  test.equal(await world.fence('dc1', 'dc2'), 'not-allowed', 'nor one that is not later');
  test.ok(isPrimary(world.at('dc1')));
});

t.test('fence: nobody need know whose the first epoch was', async (test) => {
  const world = await World.open();
  await world.write('dc1');
  await world.start('dc2', 2, [], true);
  await world.write('dc2');
  // Of one that joined when dc2 was the primary, and was told so by its settings.
  const [first, ...later] = world.at('dc2').epochs;
  const epochs = [{ ...first!, primary: 'dc2' }, ...later];
  test.same(forkOf(world.at('dc1'), epochs), forkOf(world.at('dc1'), world.at('dc2').epochs));
  test.equal(await world.say('dc1', { type: 'epoch.fence', epochs }), 'applied');
  test.equal(countIn(world.at('dc1').divergent), 1, 'what it wrote itself is its own');
  const another = later.map((each) => ({ ...each, primary: 'w' }));
  test.equal(forkOf(world.at('dc2'), another), undefined, 'of any other epoch an entry says it');
});

t.test('datacenters: one at a time, and behind a majority', async (test) => {
  const world = await World.open();
  const { seq } = world.at('dc1').cursor;
  const say = (datacenters: typeof DATACENTERS, majoritySeq = seq): Promise<string> =>
    world.say('dc1', { type: 'datacenters.set', datacenters, majoritySeq });
  const [dc1, dc2, w] = DATACENTERS as [
    (typeof DATACENTERS)[0],
    (typeof DATACENTERS)[0],
    (typeof DATACENTERS)[0],
  ];
  const dc3 = { name: 'dc3', isVoter: true, isWitness: false };
  test.equal(await say([dc1, dc3, w]), 'not-allowed', 'two changes');
  test.equal(await say([dc2, w]), 'not-allowed', 'without the primary');
  test.equal(
    await say([{ ...dc1, isVoter: false }, dc2, w]),
    'not-allowed',
    'the primary has a vote',
  );
  test.equal(await say([dc1, w, dc2]), 'not-allowed', 'not in order');
  test.equal(
    await say([dc1, dc2, dc3, w], seq - 1),
    'not-allowed',
    'the last change is not everywhere',
  );
  test.equal(
    await say([dc1, dc2, dc3, w], seq + 9),
    'not-allowed',
    'a majority of what is not there',
  );
  test.equal(await say([dc1, dc2, w]), 'applied', 'no change');
  test.equal(world.at('dc1').cursor.seq, seq);
  test.equal(await say([dc1, dc2, dc3, w]), 'applied');
  test.equal(world.at('dc1').datacentersSeq, seq + 1);
  await world.sync('dc1', 'dc2');
  test.same(world.at('dc2').datacenters, world.at('dc1').datacenters);
  test.equal(
    await world.say('dc2', { type: 'datacenters.set', datacenters: [dc2], majoritySeq: 0 }),
    'not-primary',
  );
});

t.test('places: what became of one is told by the epochs', async (test) => {
  const world = await World.open();
  const before = world.at('dc1').cursor;
  await world.write('dc1');
  const lost = world.at('dc1').cursor;
  await world.promise('w', 'dc2', 2);
  await world.promise('dc2', 'dc2', 2);
  await world.start('dc2', 2, ['w']);
  const at = world.at('dc2');
  test.equal(standingOf(at, before), 'replicated');
  test.equal(standingOf(at, lost), 'lost');
  test.equal(standingOf(at, at.cursor), 'replicated');
  test.equal(standingOf(at, { epoch: 2, seq: at.cursor.seq + 1 }), 'pending');
  test.same(forkOf(world.at('dc1'), at.epochs), { ...before, epoch: 1 });
});

t.test('places: an epoch that the chain passed over left nothing on it', async (test) => {
  const world = await World.open();
  await world.start('dc2', 2, [], true);
  const request = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(1) };
  const policy = { type: 'policy.set', presence: 'create', policy: aPolicy(80) } as const;
  await world.machines.dc2.one(policy, { request });
  const lost = world.at('dc2').cursor;
  // The other one goes further in its own epoch before it begins a later one.
  for (let count = 0; count < 5; count += 1) await world.write('dc1');
  await world.start('dc1', 3, [], true);
  const at = world.at('dc1');
  test.ok(lost.seq < at.epochs.at(-1)!.startSeq);
  test.equal(standingOf(at, lost), 'lost');
  test.equal(standingOf(at, { epoch: 1, seq: lost.seq }), 'replicated');
  test.equal(standingOf(at, { epoch: 0, seq: 0 }), 'replicated', 'from before the log');
  test.equal(await world.fence('dc2', 'dc1'), 'applied');
  test.equal(await world.take('dc1', 'dc2'), 'applied');
  await world.promise('dc1', 'dc2', 4);
  await world.start('dc2', 4, [], true);
  const again = await world.machines.dc2.one(policy, { request });
  test.match(again, { kind: 'applied', replayed: false }, 'what was remembered of it is forgotten');
});

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
  test.equal(await drop(last + 1), 'not-allowed');
  test.equal(await drop(last, 2), 'not-allowed', 'another epoch');
  test.equal(await drop(last - 1), 'applied', 'in the middle');
  test.same(await seqs(), [last - 2, last]);
  test.equal(machine.divergentEntry({ epoch: 1, seq: last - 1 }), undefined);
  test.equal(machine.divergentEntry({ epoch: 1, seq: last })?.seq, last);
  test.equal(await drop(last - 1), 'not-allowed', 'twice');
  for (const seq of [last - 2, last]) test.equal(await drop(seq), 'applied');
  test.same(world.at('dc1').divergent, []);
});

t.test('what was trimmed before the fork was known is counted as gone', async (test) => {
  const world = await World.open();
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

/** One that is left behind at the last two of its five entries, and hears of a reign that has the first alone. */
async function leftBehindTwice(level = NEWEST_LEVEL) {
  const world = await World.open();
  await world.say('dc1', { type: 'level.raise', level });
  const { epochs, cursor } = world.at('dc1');
  const fork = cursor.seq;
  for (let count = 0; count < 5; count += 1) await world.write('dc1');
  await world.sync('dc1', 'dc2', 3);
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
  readonly level?: number;
}

/** Whether a local token that was made on a fork is still good when the next reign's objects have come. */
async function outlasts({ before = [], fork, next, token, level = 3 }: Hanging): Promise<boolean> {
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
    const authMethod = { name: 'login', namespace: DEFAULT_NAMESPACE, createIndex: 0 };
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
        'a method of both, as older releases apply it',
        true,
        { fork: [methodSaying('one')], next: [methodSaying('two')], token: logged, level: 2 },
      ],
    ];
    for (const [name, isGood, hanging] of cases) test.equal(await outlasts(hanging), isGood, name);
  },
);

type Step =
  | { readonly do: 'write'; readonly at: Name }
  | { readonly do: 'trim'; readonly at: Name; readonly kept: number }
  | {
      readonly do: 'sync' | 'fence' | 'take';
      readonly from: Name;
      readonly to: Name;
      readonly count: number;
    }
  | { readonly do: 'campaign'; readonly at: Name; readonly hears: readonly Name[] }
  | { readonly do: 'local'; readonly at: Name };

const name = fc.constantFrom(...NAMES);
const pair = fc.record({ from: name, to: name, count: fc.integer({ min: 1, max: 3 }) });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('write' as const), at: name }) },
  { weight: 8, arbitrary: pair.map((each) => ({ do: 'sync' as const, ...each })) },
  { weight: 2, arbitrary: pair.map((each) => ({ do: 'fence' as const, ...each })) },
  { weight: 2, arbitrary: pair.map((each) => ({ do: 'take' as const, ...each })) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('local' as const), at: name }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('trim' as const),
      at: name,
      kept: fc.integer({ min: 0, max: 2 }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('campaign' as const),
      at: fc.constantFrom('dc1' as const, 'dc2' as const),
      hears: fc.subarray([...NAMES]),
    }),
  },
);

/** What must hold of everything that happens in a world. */
class Checks {
  readonly #owners = new Map<number, Name>();
  readonly #hashes = new Map<string, string>();
  readonly #digests = new Map<string, string>();
  readonly #promised = new Map<Name, number>();
  /** Entries that more than half of the voters took under the epoch that they were written in. */
  readonly #durable = new Map<string, number>();
  readonly #written = new Map<string, Name>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async wrote(at: Name): Promise<void> {
    const { epoch, seq } = this.#world.at(at).cursor;
    this.#written.set(`${epoch}.${seq}`, at);
    await this.look();
  }

  /** G1: at most one datacenter begins an epoch. */
  started(epoch: number, at: Name): void {
    const owner = this.#owners.get(epoch);
    if (owner !== undefined) throw new Error(`G1: epoch ${epoch} is of ${owner} and of ${at}`);
    this.#owners.set(epoch, at);
    const { epochs } = this.#world.at(at);
    const { startSeq } = epochs.at(-1)!;
    for (const [id, seq] of this.#durable) {
      const isOn = seq < startSeq && standingOf(this.#world.at(at), placeOf(id)) === 'replicated';
      if (!isOn) throw new Error(`G4: ${id} was on a majority, and ${at} begins without it`);
    }
  }

  applied(from: Name, to: Name): void {
    const { epoch } = this.#world.at(from).epochs.at(-1)!;
    const promised = this.#promised.get(to) ?? 0;
    if (epoch < promised)
      throw new Error(`G6: ${to} took epoch ${epoch} after promising ${promised}`);
  }

  async look(): Promise<void> {
    for (const at of NAMES) {
      const { maxEpochPromised, cursor, isDiverged } = this.#world.at(at);
      const before = this.#promised.get(at) ?? 0;
      if (maxEpochPromised < before) throw new Error(`G6: ${at} took back a promise`);
      this.#promised.set(at, maxEpochPromised);
      for (const { id, hash } of await this.#world.entriesOf(at)) {
        const known = this.#hashes.get(id) ?? hash;
        if (known !== hash) throw new Error(`G2: ${id} is two entries`);
        this.#hashes.set(id, known);
      }
      if (at === 'w' || isDiverged) continue;
      const { global } = this.#world.machines[at].machine.digests();
      const place = hexOf(cursor.hash);
      const known = this.#digests.get(place) ?? global;
      if (known !== global) throw new Error(`G8: ${at} has other objects at ${cursor.seq}`);
      this.#digests.set(place, known);
    }
    await this.#noteDurable();
  }

  /** An entry of the epoch that is current for a majority, on that majority. */
  async #noteDurable(): Promise<void> {
    for (const at of NAMES) {
      const primary = this.#world.at(at);
      if (!isPrimary(primary)) continue;
      const start = primary.epochs.at(-1)!;
      const reached = NAMES.map((each) => {
        const { cursor, maxEpochPromised, isDiverged } = this.#world.at(each);
        const isWith = maxEpochPromised === start.epoch && !isDiverged;
        return isWith && cursor.epoch === start.epoch ? cursor.seq : 0;
      }).sort((left, right) => right - left);
      const majority = reached[1]!;
      if (majority < start.startSeq) continue;
      for (let seq = start.startSeq; seq <= majority; seq += 1) {
        this.#durable.set(`${start.epoch}.${seq}`, seq);
      }
    }
  }

  /** G5: what was written is on the chain, or kept apart where it was written, or said to be gone there. */
  async nothingLost(primary: Name): Promise<void> {
    const at = this.#world.at(primary);
    const missing = new Map(
      [...this.#written].filter(([id]) => standingOf(at, placeOf(id)) !== 'replicated'),
    );
    for (const name of NAMES) {
      const { machine } = this.#world.machines[name];
      const apart = await machine.divergentEntries(1000);
      const gone = this.#world.at(name).gone.flatMap(idsOf);
      note('gone', gone.length);
      for (const id of [...apart.map(({ epoch, seq }) => `${epoch}.${seq}`), ...gone]) {
        if (missing.get(id) !== name) throw new Error(`G5: ${name} says that ${id} is lost`);
        missing.delete(id);
      }
    }
    for (const [id, name] of missing) throw new Error(`G5: ${id} of ${name} is nowhere`);
  }
}

function placeOf(id: string): { readonly epoch: number; readonly seq: number } {
  const [epoch = 0, seq = 0] = id.split('.').map(Number);
  return { epoch, seq };
}

function idsOf({ epoch, first, last }: EntryRange): readonly string[] {
  return Array.from({ length: last - first + 1 }, (_, place) => `${epoch}.${first + place}`);
}

const reached = new Map<string, number>();

function note(what: string, count = 1): void {
  reached.set(what, (reached.get(what) ?? 0) + count);
}

async function run(steps: readonly Step[]): Promise<void> {
  const world = await World.open();
  const checks = new Checks(world);
  checks.started(1, 'dc1');
  let locals = 20;
  for (const each of steps) {
    const said = await runStep(world, checks, each, () => (locals += 1));
    note(`${each.do} ${said}`);
    await checks.look();
  }
  await settle(world, checks);
}

async function runStep(
  world: World,
  checks: Checks,
  each: Step,
  next: () => number,
): Promise<string> {
  switch (each.do) {
    case 'write': {
      const isWritten = await world.write(each.at);
      if (isWritten) await checks.wrote(each.at);
      return String(isWritten);
    }
    case 'local': {
      const token = aToken(next(), { local: true });
      return world.say(each.at, { type: 'token.set', presence: 'create', token });
    }
    case 'trim': {
      const upTo = world.at(each.at).cursor.seq - each.kept;
      return world.say(each.at, { type: 'global-log.trim', upTo });
    }
    case 'sync': {
      if (each.from === each.to) return 'same';
      const promised = world.at(each.to).maxEpochPromised;
      const said = await world.sync(each.from, each.to, each.count);
      if (said === 'applied' && promised > 0) checks.applied(each.from, each.to);
      return said;
    }
    case 'fence':
      return each.from === each.to ? 'same' : world.fence(each.to, each.from);
    case 'take':
      return each.from === each.to ? 'same' : world.take(each.from, each.to);
    case 'campaign':
      return campaign(world, checks, each.at, each.hears);
  }
}

async function campaign(
  world: World,
  checks: Checks,
  at: Name,
  hears: readonly Name[],
): Promise<string> {
  const epoch = Math.max(...NAMES.map((each) => world.at(each).maxEpochPromised)) + 1;
  const promises: Name[] = [];
  for (const each of new Set([at, ...hears])) {
    if ((await world.promise(each, at, epoch)) === 'granted') promises.push(each);
  }
  const said = await world.start(at, epoch, promises);
  if (said === 'applied') {
    checks.started(epoch, at);
    await checks.wrote(at);
  }
  return said;
}

/** Everybody hears everybody: one primary is left, and all of them are where it is. */
async function settle(world: World, checks: Checks): Promise<void> {
  let primary: Name | undefined;
  for (let round = 0; round < 6 && primary === undefined; round += 1) {
    const newest = ['dc1', 'dc2'].sort(
      (left, right) => lastEpoch(world, right as Name) - lastEpoch(world, left as Name),
    ) as Name[];
    for (const at of NAMES) {
      if (lastEpoch(world, newest[0]!) > lastEpoch(world, at)) await world.fence(at, newest[0]!);
      if (world.at(at).isDiverged) await world.take(newest[0]!, at);
    }
    for (const at of newest) {
      if (primary === undefined && (await campaign(world, checks, at, NAMES)) === 'applied')
        primary = at;
    }
  }
  if (primary === undefined) throw new Error('G14: nobody becomes the primary');
  for (const at of NAMES) {
    if (at === primary) continue;
    await world.fence(at, primary);
    if ((await world.sync(primary, at)) !== 'applied') await world.take(primary, at);
    const [here, there] = [world.at(at), world.at(primary)];
    if (hexOf(here.cursor.hash) !== hexOf(there.cursor.hash))
      throw new Error(`G14: ${at} stays behind`);
  }
  await checks.look();
  await checks.nothingLost(primary);
}

const lastEpoch = (world: World, at: Name): number => world.at(at).epochs.at(-1)!.epoch;

t.test(
  'random orders: no promise is broken, no history has two forms, nothing is lost',
  async (test) => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), run), {
      numRuns: 80,
      seed: 20_261_122,
    });
    for (const what of [
      'campaign applied',
      'sync applied',
      'sync fenced',
      'fence applied',
      'take applied',
    ]) {
      test.ok((reached.get(what) ?? 0) > 5, `${what}: ${reached.get(what)}`);
    }
    test.ok((reached.get('gone') ?? 0) > 0, `gone: ${reached.get('gone')}`);
  },
);
