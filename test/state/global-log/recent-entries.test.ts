// Entries that a primary wrote lately, from memory: they are those on its disk, or there are none.

import fc from 'fast-check';
import t from 'tap';
import { feedSourceOf } from '../../../src/node/federation/ports/feed-source.ts';
import type { ChangeOf } from '../../../src/state/commands/commands.ts';
import { linksAtHead } from '../../../src/state/global-log/entry-head.ts';
import { entryHash, entryLinks, linksOf } from '../../../src/state/global-log/global-entry.ts';
import { RecentEntries, type WrittenEntry } from '../../../src/state/global-log/recent-entries.ts';
import { type Fields, pack, unpack } from '../../../src/state/rows/layout/packing.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aCommand, aPolicy } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';
import { history } from '../histories.ts';

const BEGIN: ChangeOf<'global-log.begin'> = {
  type: 'global-log.begin',
  datacenter: 'dc1',
  primary: 'dc1',
  isWitness: false,
};
const LIMIT = 1 << 20;

const hashOf = (seq: number, chain = 0): Uint8Array =>
  Uint8Array.from({ length: 32 }, () => seq % 256).fill(chain, 31);

/** Each named by its seq, on one of several chains. */
function written(seq: number, given: Partial<WrittenEntry> = {}): WrittenEntry {
  const bytes = new Uint8Array(100);
  return { epoch: 1, seq, prevHash: hashOf(seq - 1), hash: hashOf(seq), bytes, ...given };
}

const seqsOf = (entries: readonly WrittenEntry[] | undefined): readonly number[] | undefined =>
  entries?.map(({ seq }) => seq);

t.test('recent entries: what follows a place, up to so many bytes, one at least', async (test) => {
  const recent = new RecentEntries();
  test.equal(recent.after(0, written(1), LIMIT), undefined, 'there is nothing');
  recent.add([written(4), written(5)]);
  recent.add([written(6), written(7)]);
  const after = (seq: number, limit = LIMIT): readonly number[] | undefined =>
    seqsOf(recent.after(seq, written(7), limit));
  test.same(after(3), [4, 5, 6, 7]);
  test.same(after(5), [6, 7]);
  test.same(after(3, 250), [4, 5]);
  test.same(after(3, 1), [4]);
  test.equal(after(2), undefined, 'what came before is not held');
  test.equal(after(7), undefined, 'nothing follows the head');
});

t.test('recent entries: of another head, or behind a gap, they are none', async (test) => {
  const recent = new RecentEntries();
  recent.add([written(4), written(5)]);
  const other = { epoch: 1, seq: 5, hash: hashOf(5, 1) };
  test.equal(recent.after(3, other, LIMIT), undefined, 'the head is on another chain');
  test.equal(recent.after(3, written(6), LIMIT), undefined, 'the head is further');
  recent.add([written(7)]);
  test.same(seqsOf(recent.after(6, written(7), LIMIT)), [7]);
  test.equal(recent.after(4, written(7), LIMIT), undefined, 'entry 6 is missing');
  recent.add([written(8, { prevHash: hashOf(7, 1) })]);
  test.equal(recent.after(6, written(8), LIMIT), undefined, 'another entry 7 was before it');
  test.same(seqsOf(recent.after(7, written(8), LIMIT)), [8]);
});

t.test('recent entries: the oldest give way', async (test) => {
  const recent = new RecentEntries();
  const bytes = new Uint8Array(100 * 1024);
  for (let seq = 1; seq <= 50; seq += 1) recent.add([written(seq, { bytes })]);
  const head = written(50);
  test.equal(recent.after(38, head, LIMIT), undefined, 'a mebibyte is held at most');
  test.same(seqsOf(recent.after(46, head, LIMIT)), [47, 48, 49, 50]);
  recent.add([written(51, { bytes: new Uint8Array(2 * LIMIT) })]);
  test.same(seqsOf(recent.after(50, written(51), LIMIT)), [51], 'a large one is held alone');
});

/** What the feed gets of a place on, and what it should get. */
async function readsOf(harness: MachineHarness, afterSeq: number, limit: number) {
  const read = await feedSourceOf(harness.machine, () => undefined).read(afterSeq, limit);
  const bytes = await harness.machine.globalEntries(afterSeq, limit);
  const expected = bytes?.map((each) => {
    const { epoch, seq } = linksOf(unpack(each))!;
    return { epoch, seq, hash: entryHash(each), bytes: each };
  });
  const plain = (entries: typeof expected): unknown =>
    entries?.map(({ epoch, seq, hash, bytes: all }) => [epoch, seq, hexOf(hash), hexOf(all)]);
  return { read: plain(read as typeof expected), expected: plain(expected) };
}

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

t.test('the feed: reads the same from memory as from the disk', async (test) => {
  const [drawn] = fc.sample(history, { numRuns: 1, seed: 7 });
  const kv = new MemoryKv();
  const harness = new MachineHarness(kv);
  for (const each of [aCommand(BEGIN), ...drawn!]) await harness.run(each);
  await harness.one({ type: 'global-log.trim', upTo: 3 });
  const { seq: head } = harness.machine.cursor()!;
  test.ok(head > 10, 'there are entries');
  test.ok(harness.machine.recentEntries(head - 1, LIMIT), 'some of them in memory');
  const reopened = new MachineHarness(kv);
  test.equal(reopened.machine.recentEntries(head - 1, LIMIT), undefined, 'after a start, none');
  for (const each of [harness, reopened]) {
    for (let afterSeq = 0; afterSeq <= head; afterSeq += 1) {
      for (const limit of [1, 1000, LIMIT]) {
        const { read, expected } = await readsOf(each, afterSeq, limit);
        test.same(read, expected, `behind ${afterSeq}, ${limit} bytes`);
      }
    }
  }
});

t.test('the feed: what another epoch has cut off is not read from memory', async (test) => {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one(BEGIN);
  await harness.one(BUILTINS);
  for (const each of [1, 2, 3]) {
    await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) });
  }
  const { machine } = harness;
  const { epochs, cursor } = machine.replication()!;
  test.equal(machine.recentEntries(0, LIMIT)?.length, cursor.seq);
  const start = {
    epoch: 2,
    startSeq: cursor.seq,
    startHash: machine.globalHashAt(cursor.seq - 1)!,
  };
  await harness.one({ type: 'epoch.fence', epochs: [...epochs, { ...start, primary: 'dc2' }] });
  test.equal(machine.recentEntries(0, LIMIT), undefined);
  const { read, expected } = await readsOf(harness, 0, LIMIT);
  test.same(read, expected);
});

t.test('entries: what their head says is what their fields say', async (test) => {
  const number = fc.oneof(
    ...[7, 8, 16, 32, 53].map((bits) => fc.integer({ min: 0, max: 2 ** bits - 1 })),
  );
  const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 });
  const entry = fc.tuple(number, number, bytes, number, number);
  fc.assert(
    fc.property(entry, ([epoch, seq, prevHash, index, timeMs]) => {
      const rest: Fields = [1, [], prevHash, false, null, null];
      const packed = pack([1, epoch, seq, prevHash, index, timeMs, ...rest]);
      const links = linksAtHead(packed)!;
      const { prevHash: found, ...numbers } = links;
      test.same(numbers, { epoch, seq, timeMs });
      if (hexOf(found) !== hexOf(prevHash)) throw new Error('another hash');
    }),
    { numRuns: 300, seed: 20_261_122 },
  );
  for (const other of [pack([2, 1, 1]), pack([1, 'one', 1]), Uint8Array.of(0x9c, 1, 0xcd)]) {
    test.equal(linksAtHead(other), undefined, 'the codec is asked');
  }
  test.equal(entryLinks(Uint8Array.of(0x9c, 1)), undefined);
});
