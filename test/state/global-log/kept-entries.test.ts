// What is told of the entries that are kept: of the chain alone, and of nothing before or beside it.

import t from 'tap';
import { feedSourceOf } from '../../../src/node/federation/ports/feed-source.ts';
import { decodeEntry, entryHash } from '../../../src/state/global-log/global-entry.ts';
import { entryKey } from '../../../src/state/global-log/global-log-writer.ts';
import {
  divergentEntryAt,
  entryDigestAt,
  entryTimeMs,
  hashAt,
  keptSizeAfter,
} from '../../../src/state/global-log/kept-entries.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aCommand, aPolicy, FIXTURE_TIME_MS } from '../../support/state-and-service/fixtures.ts';
import {
  BEGIN_AS_PRIMARY,
  BUILTINS,
  MachineHarness,
  replaceableMachine,
} from '../../support/state-and-service/machine-harness.ts';
import { archived, commandsOf, furnished } from '../archives/restoring.ts';

/** Epoch 2 begins at seq 5, and its entries end at 7. */
async function twoEpochs() {
  const harness = new MachineHarness(new MemoryKv());
  const { kv, machine } = harness;
  await harness.one(BEGIN_AS_PRIMARY);
  await harness.one(BUILTINS);
  const make = (each: number, timeMs: number) =>
    harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) }, { timeMs });
  for (const each of [2, 3, 4]) await make(each, FIXTURE_TIME_MS + each);
  const at = { epoch: 2, promises: [], isForced: true, isFromFork: false } as const;
  await harness.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc1', at: machine.cursor()! });
  await harness.one({ type: 'epoch.start', ...at });
  for (const each of [6, 7]) await make(each, FIXTURE_TIME_MS + each);
  const replication = machine.replication()!;
  const rowOf = (seq: number): Uint8Array => kv.get(entryKey(seq < 5 ? 1 : 2, seq))!;
  return { harness, kv, replication, rowOf };
}

t.test(
  'kept: a hash is told of what is kept, of what comes before it, and of no fork',
  async (test) => {
    const { kv, replication, rowOf } = await twoEpochs();
    test.same(replication.cursor, { epoch: 2, seq: 7, hash: entryHash(rowOf(7)) });
    // What a restore leaves behind is dropped in its own time, and is not kept all the same.
    const view = { ...replication, first: 4 };
    const told = [1, 2, 3, 4, 5, 6, 7, 8].map((seq) => hashAt(kv, view, seq));
    const hashes = [3, 4, 5, 6, 7].map((seq) => entryHash(rowOf(seq)));
    test.same(told, [undefined, undefined, ...hashes, undefined]);
    for (const seq of [4, 7]) test.equal(hashAt(kv, { ...view, isDiverged: true }, seq), undefined);
    const lost = { get: () => undefined };
    test.equal(hashAt(lost, view, 5), undefined, 'nor where the disk has lost it');
  },
);

t.test(
  'kept: a digest is told of what is kept of the chain, and of nothing beside it',
  async (test) => {
    const { kv, replication, rowOf } = await twoEpochs();
    const digestAt = (epoch: number, seq: number, first = replication.first) => {
      const hash = entryHash(kv.get(entryKey(epoch, seq))!);
      return entryDigestAt(kv, { ...replication, first }, { epoch, seq, hash });
    };
    test.same(digestAt(1, 4), decodeEntry(rowOf(4)).digest);
    test.same(digestAt(2, 5), decodeEntry(rowOf(5)).digest);
    test.same(digestAt(1, 4, 4), digestAt(1, 4), 'the first one, too');
    test.equal(digestAt(1, 3, 4), undefined, 'what waits to be dropped is not kept');
    // Set apart by a later reign.
    await kv.write([{ type: 'put', key: entryKey(1, 5), value: rowOf(4) }]);
    test.equal(digestAt(1, 5), undefined);
  },
);

t.test('kept: when it was made is told of each that is kept', async (test) => {
  const { kv, replication } = await twoEpochs();
  const view = { ...replication, first: 3 };
  const times = [2, 3, 4, 6, 7, 8].map((seq) => entryTimeMs(kv, view, seq));
  const known = [3, 4, 6, 7].map((each) => FIXTURE_TIME_MS + each);
  test.same(times, [undefined, ...known, undefined]);
  test.equal(entryTimeMs({ get: () => undefined }, view, 3), undefined, 'not of a lost one');
});

t.test('kept: one that was set apart is told of in its own place alone', async (test) => {
  const { kv, replication, rowOf } = await twoEpochs();
  const divergent = [{ epoch: 1, first: 2, last: 3 }];
  const found = (epoch: number, seq: number) =>
    divergentEntryAt(kv, { ...replication, divergent }, { epoch, seq });
  for (const seq of [2, 3]) test.same(found(1, seq), decodeEntry(rowOf(seq)));
  for (const seq of [1, 4]) test.equal(found(1, seq), undefined, 'that is on the chain');
  await kv.write([{ type: 'put', key: entryKey(2, 3), value: rowOf(6) }]);
  test.equal(found(2, 3), undefined, 'and so may be one of another epoch');
});

t.test('kept: the size of few is what they have, and of many few are read', async (test) => {
  const { harness, kv } = await twoEpochs();
  const long = (seq: number) => ({ ...aPolicy(6), rules: `# ${'x'.repeat(seq * 100)}` });
  for (let seq = 8; seq <= 300; seq += 1) {
    const change = { type: 'policy.set', presence: 'update', policy: long(seq) } as const;
    await harness.run(aCommand(change));
  }
  const replication = harness.machine.replication()!;
  const { cursor, first, keptBytes } = replication;
  const sizeOf = (seq: number): number => kv.get(entryKey(seq < 5 ? 1 : 2, seq))!.length;
  let readCount = 0;
  const rows = {
    get: (key: Uint8Array) => {
      readCount += 1;
      return kv.get(key);
    },
  };
  const sizeAfter = (seq: number) => keptSizeAfter(rows, replication, seq);
  test.equal(sizeAfter(297), sizeOf(298) + sizeOf(299) + sizeOf(300));
  test.same([sizeAfter(300), sizeAfter(999)], [0, 0]);
  const short = { ...replication, cursor: { ...cursor, seq: 4 }, first: 2 };
  test.equal(keptSizeAfter(rows, short, 0), sizeOf(2) + sizeOf(3) + sizeOf(4), 'of what is kept');
  readCount = 0;
  test.equal(sizeAfter(0), Math.round((keptBytes * 300) / (300 + 1 - first)));
  test.equal(readCount, 0);
  const average = Math.round((keptBytes * 255) / (300 + 1 - first));
  test.ok(sizeAfter(45) >= average);
  test.ok(readCount > 0 && readCount < 255, 'nor all of those that are long');
});

t.test('kept: a restore is told of as long as it is the first that is kept', async (test) => {
  const harness = replaceableMachine();
  const { machine } = harness;
  await harness.one(BEGIN_AS_PRIMARY);
  await harness.one(BUILTINS);
  const source = feedSourceOf(machine, () => undefined);
  test.equal(source.restoredSeq, 0);
  for (const command of await commandsOf(await archived(await furnished()))) {
    await harness.run(command);
  }
  const { seq } = machine.cursor()!;
  test.equal(source.restoredSeq, seq, 'nothing follows it yet');
  await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(900) });
  test.same([machine.replication()!.first, source.restoredSeq], [seq, seq]);
  test.same(
    [seq - 1, seq, seq + 1, seq + 2].map((each) => machine.isRestoreAt(each)),
    [false, true, false, false],
  );
  await harness.one({ type: 'global-log.trim', upTo: seq });
  test.same([machine.replication()!.first, source.restoredSeq], [seq + 1, 0]);
  test.notOk(machine.isRestoreAt(seq));
});
