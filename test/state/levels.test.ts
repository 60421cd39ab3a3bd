// The feature level of the state: raised by a command, never back, kept by restarts and snapshots; and what
// is of a newer release ends a server before anything of it is applied.

import t from 'tap';
import { nextEntry } from '../../cluster/log/log-entry.ts';
import { encodeCommand } from '../../src/state/commands/command-codec.ts';
import type { Change } from '../../src/state/commands/commands.ts';
import {
  FIRST_LEVEL,
  levelOf,
  levelOfEntry,
  NEWEST_LEVEL,
  readableAt,
} from '../../src/state/commands/feature-levels.ts';
import type { Datacenter } from '../../src/state/global-log/replication.ts';
import { StateMachine } from '../../src/state/machine.ts';
import { unpack } from '../../src/state/rows/layout/packing.ts';
import { META_KEY } from '../../src/state/rows/tables.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { aCommand, aPolicy, aToken } from '../support/state-and-service/fixtures.ts';
import {
  MachineHarness,
  replaceableMachine,
} from '../support/state-and-service/machine-harness.ts';

const raise = (level: number): Change => ({ type: 'level.raise', level });

function metaFormat(kv: MemoryKv): unknown {
  return unpack(kv.get(META_KEY)!)[0];
}

t.test('levels: a command raises the level, and nothing lowers it', async (test) => {
  const kv = new MemoryKv();
  const harness = new MachineHarness(kv);
  await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  test.equal(harness.machine.usesLevel, FIRST_LEVEL);
  test.equal(metaFormat(kv), 2, 'an older release can go on with it');
  const { machine } = harness;
  const before = [machine.index(), machine.position(), machine.digests()];
  test.equal(await harness.tell(raise(2)), 'ok');
  test.equal(machine.usesLevel, 2);
  test.same([machine.index(), machine.position(), machine.digests()], before, 'users see nothing');
  test.equal(metaFormat(kv), 3, 'and now it cannot');
  test.equal(await harness.tell(raise(1)), 'ok');
  test.equal(machine.usesLevel, 2);
  test.equal(new MachineHarness(kv).machine.usesLevel, 2, 'after a restart, too');
});

t.test('levels: a snapshot brings the level with it, and a restore leaves it', async (test) => {
  const source = replaceableMachine();
  await source.one(raise(2));
  const target = replaceableMachine();
  const snapshot = source.machine.snapshot();
  const intake = await target.machine.beginInstall();
  for await (const chunk of snapshot.chunks()) await intake.add(chunk);
  await intake.complete();
  await intake.adopt();
  await snapshot.close();
  test.equal(target.machine.usesLevel, 2);
});

t.test('levels: a state of a higher level than the program reads is not opened', async (test) => {
  const kv = new MemoryKv();
  await new MachineHarness(kv).one(raise(2));
  const open = (): unknown => StateMachine.open(kv, { clock: new FakeClock(), reads: 1 });
  test.throws(open, {
    name: 'UnreadableState',
    message: /uses feature level 2, and this release reads up to 1/,
  });
});

t.test(
  'levels: an entry of a newer release ends the server, and nothing is applied',
  async (test) => {
    const drawn: Change = { type: 'token.set', presence: 'create-drawn', token: aToken(1) };
    const cases: readonly (readonly [string, Uint8Array, number, RegExp])[] = [
      ['a command', Buffer.from('960163cb4279b76daa800000c0c090', 'hex'), 2, /"number":99/],
      ['a format', Buffer.from('960201cb4279b76daa800000c0c090', 'hex'), 2, /"found":2/],
      ['a level', encodeCommand(aCommand(raise(3))), 2, /"level":3,"reads":2/],
      ['what came later', encodeCommand(aCommand(drawn)), 1, /"level":2,"reads":1/],
    ];
    for (const [what, payload, reads, says] of cases) {
      const kv = new MemoryKv();
      const machine = StateMachine.open(kv, { clock: new FakeClock(), reads });
      const known: Change = { type: 'policy.set', presence: 'create', policy: aPolicy(1) };
      const first = nextEntry(
        { index: 0, hash: new Uint8Array(32) },
        1,
        encodeCommand(aCommand(known)),
      );
      const second = nextEntry(first, 1, payload);
      const failed = await machine.apply([first, second]).catch((error: Error) => error);
      test.match(failed, { name: 'UnreadableEntry', message: says }, what);
      test.match(failed, { message: /entry 2 of the log is of a newer release/ }, what);
      test.equal(kv.get(META_KEY), undefined, `${what}: nothing is on disk`);
    }
  },
);

t.test('entries: one is left out by nobody, and none is applied twice', async (test) => {
  const say = (number: number): Uint8Array =>
    encodeCommand(aCommand({ type: 'policy.set', presence: 'create', policy: aPolicy(number) }));
  const first = nextEntry({ index: 0, hash: new Uint8Array(32) }, 1, say(1));
  const second = nextEntry(first, 1, say(2));
  const third = nextEntry(second, 1, say(3));
  for (const entries of [[first, third], [second], [first, first]]) {
    const machine = StateMachine.open(new MemoryKv(), { clock: new FakeClock() });
    await test.rejects(machine.apply(entries), { name: 'AssertionError', message: /in order/ });
  }
});

t.test('levels: what older words can say is said in them, the rest waits', async (test) => {
  const policy = aCommand({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  test.equal(readableAt(FIRST_LEVEL, policy), policy);
  const drawn = aCommand({ type: 'token.set', presence: 'create-drawn', token: aToken(1) });
  test.equal(readableAt(2, drawn), drawn);
  test.match(readableAt(1, drawn), { change: { type: 'token.set', presence: 'create' } });
  const waiting: Change = { type: 'global-log.trim', upTo: 3 };
  test.equal(levelOf(waiting), 2);
  test.equal(readableAt(1, aCommand(waiting)), undefined);
  const start = { type: 'epoch.start', epoch: 2, promises: [], isForced: false } as const;
  test.equal(levelOf({ ...start, isFromFork: false }), 2);
  test.equal(levelOf({ ...start, isFromFork: true }), 3);
  test.equal(readableAt(2, aCommand({ ...start, isFromFork: true })), undefined);
  const dc1 = { name: 'dc1', isVoter: true, isWitness: false };
  const listing = (datacenters: readonly Datacenter[]): Change => {
    return { type: 'datacenters.set', datacenters, majoritySeq: 0 };
  };
  test.equal(levelOf(listing([dc1])), 2);
  const named = listing([{ ...dc1, clusterId: 'one' }]);
  test.same([levelOf(named), readableAt(3, aCommand(named))], [4, undefined]);
  const listed = (datacenters: readonly Datacenter[]): number =>
    levelOfEntry({ body: { kind: 'datacenters', datacenters } });
  test.same([listed([dc1]), listed([{ ...dc1, clusterId: 'one' }])], [2, 4], 'so is its entry');
  for (const level of [1, NEWEST_LEVEL]) {
    for (const each of [policy, drawn]) {
      test.ok(levelOf(readableAt(level, each)!.change) <= level);
    }
  }
});
