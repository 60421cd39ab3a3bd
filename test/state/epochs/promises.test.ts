// Moving the primary step by step: promises, elections, hand-overs, force, fences, and where each epoch ends.

import t from 'tap';
import { forkOf, standingOf } from '../../../src/state/global-log/chain.ts';
import { isRenewingIn, mayPromise, successorIn } from '../../../src/state/global-log/election.ts';
import { decodeEntry } from '../../../src/state/global-log/global-entry.ts';
import { countIn, isPrimary } from '../../../src/state/global-log/replication.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aPolicy } from '../../support/state-and-service/fixtures.ts';
import { MachineHarness } from '../../support/state-and-service/machine-harness.ts';
import { DATACENTERS, World } from './world.ts';

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
  'epochs: what is known of one holds nothing of the command that told of it',
  async (test) => {
    const world = await World.open();
    await world.promise('w', 'dc2', 2);
    await world.promise('dc2', 'dc2', 2);
    await world.start('dc2', 2, ['w']);
    const policy = aPolicy(1, { description: 'long'.repeat(25_000) });
    await world.say('dc2', { type: 'policy.set', presence: 'create', policy });
    test.equal(await world.sync('dc2', 'w'), 'applied', 'in one command');
    const { epoch, startHash } = world.at('w').epochs.at(-1)!;
    test.equal(epoch, 2);
    test.ok(startHash.buffer.byteLength < 10_000, `${startHash.buffer.byteLength} bytes`);
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
    test.equal(await world.start('dc2', 2, ['dc1']), 'not-allowed', 'a reign begins once');
    test.equal(await world.sync('dc2', 'dc1'), 'applied', 'nothing diverged: entries lead on');
    test.same(world.at('dc1').divergent, []);
    test.notOk(isPrimary(world.at('dc1')));
  },
);

t.test(
  'promises: a primary that gave one has a successor, or is to renew its reign',
  async (test) => {
    const next = (world: World, name: 'dc1' | 'dc2') => {
      const standing = world.at(name);
      const onFork = { ...standing, isDiverged: true };
      test.same([successorIn(onFork), isRenewingIn(onFork)], [undefined, false], 'none on a fork');
      return [successorIn(standing), isRenewingIn(standing)];
    };
    const given = await World.open();
    await given.sync('dc1', 'dc2');
    test.same(next(given, 'dc1'), [undefined, false]);
    await given.promise('dc1', 'dc2', 2);
    await given.promise('dc2', 'dc2', 2);
    test.same(next(given, 'dc1'), ['dc2', false]);
    test.same(next(given, 'dc2'), [undefined, false], 'it was no primary');
    const own = await World.open();
    await own.promise('dc1', 'dc1', 2);
    test.same(next(own, 'dc1'), [undefined, true]);
    await own.promise('dc2', 'dc1', 2);
    test.same(next(own, 'dc2'), [undefined, false], 'nor here');
    await own.start('dc1', 2, ['dc2']);
    test.same(next(own, 'dc1'), [undefined, false], 'it has begun');
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

t.test('promises: none is forgotten for what came of earlier reigns', async (test) => {
  const world = await World.open();
  // A change of the list, a reign, and a write of it: what w alone has.
  const majoritySeq = world.at('dc1').cursor.seq;
  const datacenters = [...DATACENTERS, { name: 'dc4', isVoter: true, isWitness: false }];
  await world.say('dc1', { type: 'datacenters.set', datacenters, majoritySeq });
  await world.start('dc1', 2, [], true);
  await world.write('dc1');
  await world.sync('dc1', 'w');
  test.equal(await world.promise('dc2', 'dc2', 5), 'granted');
  const { machine } = world.machines.w;
  const [from, to] = [world.at('dc2').cursor, world.at('w').cursor];
  const entries = (await machine.globalEntries(from.seq, 1 << 20))!;
  const taken = { type: 'global-log.apply', epoch: 5, from, entries, to } as const;
  test.equal(await world.say('dc2', taken), 'applied', 'in the name of its own epoch');
  test.same(world.at('dc2').cursor, to);
  test.match(world.at('dc2'), { maxEpochPromised: 5, votedFor: 'dc2' });
  test.equal(await world.promise('dc2', 'dc1', 4), 'not-granted');
  test.equal(await world.promise('dc2', 'dc1', 5), 'not-granted');
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

t.test('fence: a reign before the one that was promised takes no promise back', async (test) => {
  const world = await World.open();
  await world.write('dc1');
  test.equal(await world.promise('w', 'dc1', 5), 'granted');
  test.equal(await world.promise('dc1', 'dc1', 5), 'granted');
  await world.start('dc2', 3, [], true);
  for (const name of ['dc1', 'w'] as const) {
    test.equal(await world.fence(name, 'dc2'), 'fenced', name);
    test.match(world.at(name), { maxEpochPromised: 5, votedFor: 'dc1', isDiverged: false });
  }
  test.equal(await world.start('dc1', 5, ['w']), 'applied');
  test.equal(await world.fence('dc2', 'dc1'), 'applied', 'and of the promised one it is heard');
  test.match(world.at('dc2'), { maxEpochPromised: 5, votedFor: undefined, isDiverged: true });
});

t.test(
  'fence: whoever was promised an epoch before has no promise of the one heard of',
  async (test) => {
    const world = await World.open();
    test.equal(await world.promise('w', 'dc1', 2), 'granted');
    await world.start('dc2', 3, [], true);
    test.equal(await world.fence('w', 'dc2'), 'applied');
    test.equal(await world.promise('w', 'dc1', 3), 'not-granted');
  },
);

t.test(
  'fence: whoever was promised the epoch that is heard of has the promise still',
  async (test) => {
    const world = await World.open();
    for (const voter of ['dc1', 'dc2'] as const) await world.promise(voter, 'dc2', 2);
    test.equal(await world.start('dc2', 2, ['dc1']), 'applied');
    test.equal(await world.fence('dc1', 'dc2'), 'applied');
    test.match(world.at('dc1'), { maxEpochPromised: 2, votedFor: 'dc2' });
    test.equal(await world.promise('dc1', 'dc2', 2), 'granted', 'the same one once more');
  },
);

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
  test.equal(await say([dc1, dc2, dc2, w]), 'not-allowed', 'one of them twice');
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
