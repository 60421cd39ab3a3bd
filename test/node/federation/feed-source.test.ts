// The global log as the feed reads it from a state, and what it makes of an entry that is damaged on the disk.

import t from 'tap';
import { feedSourceOf } from '../../../src/node/federation/ports/feed-source.ts';
import { entryKey } from '../../../src/state/global-log/global-log-writer.ts';
import type { StateMachine } from '../../../src/state/machine.ts';
import { ROW } from '../../../src/state/rows/tables.ts';
import { FailingKv } from '../../support/failing-kv.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aCommand, aPolicy } from '../../support/state-and-service/fixtures.ts';
import {
  BEGIN_AS_PRIMARY,
  BUILTINS,
  MachineHarness,
} from '../../support/state-and-service/machine-harness.ts';

const ALL_BYTES = 1 << 20;
const WALL_MS = 1_767_225_600_000;

async function primary() {
  const kv = new MemoryKv();
  const harness = new MachineHarness(kv);
  await harness.one(BEGIN_AS_PRIMARY);
  await harness.one(BUILTINS);
  for (const each of [1, 2, 3, 4]) {
    await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) });
  }
  const damaged: number[] = [];
  // One that has begun anew has nothing in memory.
  const { machine } = new MachineHarness(kv);
  const source = feedSourceOf(machine, (seq) => damaged.push(seq));
  return { kv, source, damaged, head: machine.cursor()!.seq };
}

t.test('feed source: entries lead from one to the next, and to the head', async (test) => {
  const { source, damaged, head } = await primary();
  const all = await source.read(0, ALL_BYTES);
  test.equal(all?.length, head);
  test.same(all?.at(-1)?.hash, source.head.hash);
  test.same(await source.read(head, ALL_BYTES), []);
  test.same(damaged, []);
});

t.test('feed source: who has more, or stands beside the chain, has left it', async (test) => {
  const { kv, source, head } = await primary();
  const more = { ...source.head, seq: head + 1 };
  test.same(source.locate(more), { kind: 'diverged', forkSeq: head }, 'and takes no snapshot');
  const harness = new MachineHarness(kv);
  const forced = { promises: [], isForced: true, isFromFork: false } as const;
  await harness.one({ type: 'epoch.start', epoch: 2, ...forced });
  const later = feedSourceOf(harness.machine, () => undefined);
  test.same(later.locate(source.head), { kind: 'kept' });
  const beside = { epoch: 1, seq: head + 1, hash: new Uint8Array(32) };
  test.same(later.locate(beside), { kind: 'diverged', forkSeq: head });
});

t.test('feed source: who wrote an entry knows without its disk when that was', async (test) => {
  let looks = 0;
  const kv = new (class extends FailingKv {
    override get(key: Uint8Array): Uint8Array | undefined {
      if (key[0] === ROW.globalEntry) looks += 1;
      return super.get(key);
    }
  })(new MemoryKv());
  const harness = new MachineHarness(kv);
  await harness.one(BEGIN_AS_PRIMARY);
  await harness.one(BUILTINS);
  const times = [11, 22, 33].map((each) => WALL_MS + each);
  for (const [place, timeMs] of times.entries()) {
    const change = { type: 'policy.set', presence: 'create', policy: aPolicy(place + 1) } as const;
    await harness.run({ ...aCommand(change), timeMs });
  }
  const { seq } = harness.machine.cursor()!;
  const timesAt = (machine: StateMachine) => {
    const source = feedSourceOf(machine, () => undefined);
    return [seq - 2, seq - 1, seq, seq + 1, 0].map((each) => source.writtenAtMs(each));
  };
  looks = 0;
  test.same(timesAt(harness.machine), [...times, undefined, undefined]);
  test.equal(looks, 0);
  test.same(
    timesAt(new MachineHarness(kv).machine),
    [...times, undefined, undefined],
    'as the disk says',
  );
  test.equal(looks, 3);
});

t.test(
  'feed source: what the first entry is does not hang on its bytes being sound',
  async (test) => {
    const { kv, source } = await primary();
    const key = entryKey(1, 1);
    const sound = kv.get(key)!;
    for (let place = 0; place < sound.length; place += 1) {
      const value = Uint8Array.from(sound, (byte, each) => (each === place ? byte ^ 4 : byte));
      await kv.write([{ type: 'put', key, value }]);
      // As a server finds it that has begun anew.
      const { machine } = new MachineHarness(kv);
      test.equal(feedSourceOf(machine, () => undefined).restoredSeq, 0, `byte ${place}`);
    }
    test.equal(source.restoredSeq, 0);
  },
);

t.test('feed source: no byte of a damaged entry is sent, wherever the damage is', async (test) => {
  for (const seq of [2, 4, 'head'] as const) {
    const { kv, source, head, damaged } = await primary();
    const at = seq === 'head' ? head : seq;
    const key = entryKey(1, at);
    const sound = kv.get(key)!;
    const [before] = (await source.read(at - 2, 1))!;
    for (let place = 0; place < sound.length; place += 1) {
      const value = Uint8Array.from(sound, (byte, each) => (each === place ? byte ^ 4 : byte));
      await kv.write([{ type: 'put', key, value }]);
      const read = (await source.read(0, ALL_BYTES)) ?? [];
      test.ok(read.length < at, `entry ${at}, byte ${place}`);
      test.notOk(read.some(({ bytes }) => Buffer.compare(bytes, value) === 0));
    }
    const gone = await source.read(at - 1, ALL_BYTES);
    test.equal(gone, undefined, 'as if it was not kept any more');
    const { epoch, hash } = before!;
    test.same(source.locate({ epoch, seq: at - 1, hash }), { kind: 'trimmed' });
    test.same(source.locate(source.head), { kind: 'kept' });
    test.ok(damaged.includes(at));
  }
});

t.test('feed source: who stands before a damaged entry has not left the chain', async (test) => {
  const { kv, source, damaged } = await primary();
  const [before] = (await source.read(2, 1))!;
  const place = { epoch: before!.epoch, seq: 3, hash: before!.hash };
  const key = entryKey(1, 4);
  const sound = kv.get(key)!;
  const prevHashAt = Buffer.from(sound).indexOf(place.hash);
  test.ok(prevHashAt > 0);
  const value = Uint8Array.from(sound, (byte, each) => (each === prevHashAt ? byte ^ 4 : byte));
  await kv.write([{ type: 'put', key, value }]);
  test.same(source.locate(place), { kind: 'trimmed' }, 'a snapshot leads on');
  test.same(damaged, [4], 'and it is said which one it is');
  const other = Uint8Array.from(place.hash, (byte) => byte ^ 1);
  const { source: asked } = await primary();
  test.same(asked.locate({ ...place, hash: other }), { kind: 'diverged', forkSeq: 0 });
});

t.test(
  'feed source: a damaged entry is in the way of nobody once its fork was left',
  async (test) => {
    const { kv, source: before, head } = await primary();
    // Where that chain left the first one, three entries before its end.
    const left = new MachineHarness(new MemoryKv());
    await left.one(BEGIN_AS_PRIMARY);
    await left.one(BUILTINS);
    await left.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
    const claim = { epoch: 2, promises: [], isForced: true, isFromFork: false } as const;
    await left.one({ type: 'epoch.start', ...claim });
    let { machine } = new MachineHarness(kv);
    const log = new Proxy({} as typeof machine, {
      get: (_, name) => (Reflect.get(machine, name) as () => unknown).bind(machine),
    });
    const source = feedSourceOf(log, () => undefined);
    await kv.write([{ type: 'put', key: entryKey(1, head), value: Uint8Array.of(1) }]);
    const [last] = (await before.read(head - 2, 1))!;
    test.equal(await source.read(head - 1, ALL_BYTES), undefined);
    test.same(source.locate({ epoch: 1, seq: head - 1, hash: last!.hash }), { kind: 'trimmed' });
    machine = left.machine;
    test.ok(source.head.seq < head);
    test.same(source.locate(source.head), { kind: 'kept' });
  },
);
