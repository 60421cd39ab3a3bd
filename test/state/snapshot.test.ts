// Snapshots: a state that left and came in somewhere else is the same state, whatever happens under way;
// and as long as it is not there as a whole, the present one is as it was.

import fc from 'fast-check';
import t from 'tap';
import type { KvRange, KvRow } from '../../cluster/platform/kv.ts';
import { SNAPSHOT_CHUNK_MAX_BYTES as REPLICA_CHUNK_MAX_BYTES } from '../../cluster/replica/replica.ts';
import { CHECKPOINT_INTERVAL } from '../../src/state/rows/digest-checkpoints.ts';
import { pack } from '../../src/state/rows/layout/packing.ts';
import { META_KEY, ROW } from '../../src/state/rows/tables.ts';
import { RowParser } from '../../src/state/snapshot/row-parser.ts';
import {
  CHAIN_ORIGIN,
  CHUNK,
  chained,
  fieldsChunk,
  lengthSize,
  ROWS_CHUNK_BYTES,
  SNAPSHOT_CHUNK_MAX_BYTES,
  writeLength,
} from '../../src/state/snapshot/snapshot-format.ts';
import { SnapshotReader } from '../../src/state/snapshot/snapshot-reader.ts';
import { snapshotOf } from '../../src/state/snapshot/snapshot-writer.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  aCommand,
  accessorNumbered,
  aRole,
  policyIdNumbered,
} from '../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  MachineHarness,
  replaceableMachine,
} from '../support/state-and-service/machine-harness.ts';
import { GOLDEN_SNAPSHOT } from './golden-bytes.ts';
import { history } from './histories.ts';
import { requireSame } from './rows-from-nothing.ts';
import {
  chunksOf,
  dumpOf,
  factsOf,
  hex,
  installed,
  largeMachine,
  turn,
} from './snapshot-machines.ts';

t.test('snapshot: with the tail behind it, it is the whole history', async () => {
  await fc.assert(
    fc.asyncProperty(
      history,
      fc.integer({ min: 1, max: 9 }),
      fc.nat(),
      async (commands, groupSize, at) => {
        const cut = 1 + (at % (commands.length - 1));
        const whole = replaceableMachine();
        const sender = replaceableMachine();
        for (const each of commands) await whole.run(each);
        for (let from = 0; from < cut; from += groupSize) {
          await sender.run(...commands.slice(from, Math.min(cut, from + groupSize)));
        }
        const receiver = await installed(await chunksOf(sender.machine.snapshot()));
        await turn();
        requireSame('the rows that came in', dumpOf(receiver, 1), dumpOf(sender, 0));
        for (const each of commands.slice(cut)) await receiver.run(each);
        requireSame('the rows after the tail', dumpOf(receiver, 1), dumpOf(whole, 0));
        requireSame('the facts', factsOf(receiver.machine), factsOf(whole.machine));
      },
    ),
    { numRuns: 40 },
  );
});

t.test('snapshot: chunks are bounded, and rows of any size pass', async (test) => {
  const sender = await largeMachine(2000, 200_000);
  const chunks = await chunksOf(sender.machine.snapshot());
  test.equal(SNAPSHOT_CHUNK_MAX_BYTES, REPLICA_CHUNK_MAX_BYTES, 'both rooms mean the same');
  test.ok(chunks.length > 8, `${chunks.length} chunks`);
  test.ok(chunks.every(({ length }) => length > 0 && length <= SNAPSHOT_CHUNK_MAX_BYTES));
  const receiver = await installed(chunks);
  await turn();
  test.same(dumpOf(receiver, 1), dumpOf(sender, 0));
  test.same(factsOf(receiver.machine), factsOf(sender.machine));
  test.equal(Buffer.from(receiver.machine.groupRecord!).toString(), 'who belongs to the group');
  test.equal(receiver.machine.policy(policyIdNumbered(3))?.rules.length, 600_000);
});

t.test('snapshot: a row may begin at any of the last bytes of a chunk', async (test) => {
  const { kv } = replaceableMachine();
  for (let left = 0; left < 8; left += 1) {
    // Behind the kind of the chunk, and the lengths and the key of the first row.
    const value = new Uint8Array(ROWS_CHUNK_BYTES - 1 - 4 - 1 - left);
    const rows = [value, new Uint8Array(300), new Uint8Array(3)].map((each, place) => {
      return { key: Uint8Array.of(ROW.token + place), value: each.fill(place + 1) };
    });
    let isRead = false;
    const reader = {
      ...kv.snapshot(),
      rows: async function* () {
        if (!isRead) yield rows;
        isRead = true;
      },
    };
    const chunks = await chunksOf(snapshotOf({ snapshot: () => reader }));
    test.equal(chunks.length, 4);
    const parser = new RowParser((says) => new Error(says));
    const found = chunks.slice(1, -1).flatMap((chunk) => parser.take(chunk.subarray(1)));
    const told = (each: readonly KvRow[]) => each.map(({ key, value: of }) => hex(key) + hex(of));
    if (told(found).join() !== told(rows).join()) test.fail(`with ${left} bytes left`);
    test.equal(parser.begunBytes, 0);
  }
});

t.test('snapshot: is as of its moment, while writes go on', async (test) => {
  const sender = await largeMachine(1000, 50_000);
  const before = factsOf(sender.machine);
  const dump = dumpOf(sender, 0);
  const snapshot = sender.machine.snapshot();
  await sender.one({ type: 'token.delete', accessorId: accessorNumbered(1) });
  const chunks: Uint8Array[] = [];
  let next = 2;
  for await (const chunk of snapshot.chunks()) {
    chunks.push(Uint8Array.from(chunk));
    await sender.one({ type: 'token.delete', accessorId: accessorNumbered(next) });
    await sender.one({
      type: 'role.set',
      presence: 'create',
      role: aRole(next, { name: `r${next}` }),
    });
    next += 1;
  }
  await snapshot.close();
  await snapshot.close();
  const receiver = await installed(chunks);
  await turn();
  test.same(factsOf(receiver.machine), before);
  test.same(dumpOf(receiver, 1), dump);
  test.not(sender.machine.digests().all, receiver.machine.digests().all);
});

t.test('snapshot: what old releases sent is taken in', async (test) => {
  const sender = replaceableMachine();
  await sender.one(BUILTINS);
  await sender.group(Uint8Array.of(1, 2, 3));
  await sender.one({ type: 'role.set', presence: 'create', role: aRole(1) });
  const chunks = await chunksOf(sender.machine.snapshot());
  test.same(chunks.map(hex), GOLDEN_SNAPSHOT, 'is sent so');
  const receiver = await installed(GOLDEN_SNAPSHOT.map((text) => Buffer.from(text, 'hex')));
  await turn();
  test.same(dumpOf(receiver, 1), dumpOf(sender, 0), 'is read so');
});

/** Takes in what must be refused; gives the words of the refusal, or undefined. */
async function refusalOf(chunks: readonly Uint8Array[]): Promise<string | undefined> {
  const reader = new SnapshotReader();
  try {
    for (const chunk of chunks) reader.take(chunk);
    reader.content();
    return undefined;
  } catch (error) {
    if ((error as Error).name !== 'SnapshotDamage') throw error;
    return (error as Error).message;
  }
}

t.test('damage: no changed, lost, doubled or swapped byte passes', async (test) => {
  const sender = await largeMachine(20, 100_000);
  const chunks = await chunksOf(sender.machine.snapshot());
  test.equal(await refusalOf(chunks), undefined);
  const without = (place: number): readonly Uint8Array[] => chunks.toSpliced(place, 1);
  const doubled = (place: number): readonly Uint8Array[] =>
    chunks.toSpliced(place, 0, chunks[place]!);
  for (const place of chunks.keys()) {
    test.ok(await refusalOf(without(place)), `without chunk ${place + 1}`);
    test.ok(await refusalOf(doubled(place)), `with chunk ${place + 1} twice`);
    const [left, right] = [chunks[place]!, chunks[(place + 1) % chunks.length]!];
    const swapped = chunks.with(place, right).with((place + 1) % chunks.length, left);
    test.ok(await refusalOf(swapped), `with chunk ${place + 1} behind the next one`);
    for (const at of placesIn(chunks[place]!)) {
      const bad = Uint8Array.from(chunks[place]!);
      bad[at]! ^= 1 << (at % 8);
      const says = await refusalOf(chunks.with(place, bad));
      if (says === undefined) test.fail(`byte ${at} of chunk ${place + 1} was changed unseen`);
      test.match(says, /^the snapshot is damaged: (?:chunk \d+: |it ends behind chunk)/);
    }
    test.ok(await refusalOf(chunks.with(place, chunks[place]!.subarray(0, -1))), 'cut off');
    test.ok(await refusalOf(chunks.slice(0, place)), 'ended early');
  }
  test.match(await refusalOf([...chunks, chunks[1]!]), /more follows/);
  const empty = fieldsChunk(CHUNK.trailer, [0, CHAIN_ORIGIN]);
  test.match(await refusalOf([empty]), /it has no beginning/);
  test.match(await refusalOf([new Uint8Array()]), /it has 0 bytes/);
  // Whole but for the beginning of a row that nobody has sent the end of.
  const begun = chunks.with(-2, Buffer.concat([chunks.at(-2)!, Uint8Array.of(9)]));
  const chain = begun.slice(0, -1).reduce(chained, CHAIN_ORIGIN);
  const { rowCount } = rowsOf(chunks);
  const told = (count: number) => begun.with(-1, fieldsChunk(CHUNK.trailer, [count, chain]));
  test.match(await refusalOf(told(rowCount)), /row \d+ is cut off behind 1 bytes/);
  const long = packedLengths(3, 17 * 1024 * 1024);
  const large = chunks.with(-2, Buffer.concat([chunks.at(-2)!, long]));
  test.match(await refusalOf(large.slice(0, -1)), /has a key of 3 and a value of 17825792 bytes/);
  const tooLarge = Buffer.alloc(SNAPSHOT_CHUNK_MAX_BYTES + 1, 2);
  test.match(await refusalOf([chunks[0]!, tooLarge]), /it has 262145 bytes/);
  test.match(await refusalOf(chunks.slice(0, 2)), /ends behind chunk 2/);
});

/** The rows of all chunks, counted. */
function rowsOf(chunks: readonly Uint8Array[]): RowParser {
  const parser = new RowParser((says) => new Error(says));
  for (const chunk of chunks.slice(1, -1)) parser.take(chunk.subarray(1));
  return parser;
}

/** The beginning of a row with a key and a value of so many bytes. */
function packedLengths(key: number, value: number): Uint8Array {
  const lengths = new Uint8Array(lengthSize(key) + lengthSize(value));
  writeLength(lengths, value, writeLength(lengths, key, 0));
  return lengths;
}

/** All places of a small chunk; of a large one some, both ends among them. */
function placesIn(chunk: Uint8Array): readonly number[] {
  const step = Math.max(1, Math.floor(chunk.length / 41));
  const places: number[] = [];
  for (let at = 0; at < chunk.length; at += step) places.push(at);
  return [...places, chunk.length - 1];
}

/** A snapshot of rows that somebody made up, whole in itself. */
async function chunksOfRows(change: (rows: Map<string, Uint8Array>) => void) {
  const sender = replaceableMachine();
  await sender.one(BUILTINS);
  await sender.one({ type: 'role.set', presence: 'create', role: aRole(1) });
  sender.kv.tamper(change);
  return chunksOf(sender.machine.snapshot());
}

t.test('damage: a state that is not what it says of itself is refused', async (test) => {
  const keyOf = (rows: Map<string, Uint8Array>, kind: number): string =>
    [...rows.keys()].find((key) => key.charCodeAt(0) === kind)!;
  const changed = await chunksOfRows((rows) => {
    const key = keyOf(rows, 30);
    const value = Uint8Array.from(rows.get(key)!);
    value[value.length - 1]! ^= 1;
    rows.set(key, value);
  });
  test.match(await refusalOf(changed), /its objects have the digest .*, and it says/);
  const lost = await chunksOfRows((rows) => void rows.delete(keyOf(rows, 30)));
  test.match(await refusalOf(lost), /it has 0 rows of kind 30, and says 1/);
  const unknown = await chunksOfRows((rows) => void rows.set('\x59', new Uint8Array()));
  test.match(await refusalOf(unknown), /of a kind \(89\) that is not known here/);
  const { kv } = await largeMachine(3);
  const disordered = { ...kv.snapshot(), rows: (range: KvRange) => backwards(kv.rows(range)) };
  const backward = await chunksOf(snapshotOf({ snapshot: () => disordered }));
  test.match(await refusalOf(backward), /row 2 is not behind the one before it/);
  const doubled = { ...kv.snapshot(), rows: (range: KvRange) => twice(kv.rows(range)) };
  const repeated = await chunksOf(snapshotOf({ snapshot: () => doubled }));
  test.match(await refusalOf(repeated), /row 2 is not behind the one before it/);
  const foreign = await chunksOfRows((rows) => void rows.set('\x5b\x0a', new Uint8Array()));
  await test.rejects(installed(foreign), /rows of a restore that is not under way/);
  const newer = await chunksOfRows((rows) => {
    rows.set(Buffer.from(META_KEY).toString('latin1'), pack([99]));
  }).catch((error: Error) => error);
  test.match(newer, { name: 'AssertionError' }, 'a state that cannot be read is not sent');
  const empty = await chunksOf(replaceableMachine().machine.snapshot());
  test.match(await refusalOf(empty), /of a state without any entry/);
  test.match(
    await refusalOf([Buffer.concat([Uint8Array.of(1), pack([2, new Uint8Array(1)])])]),
    /its format is 2, known here is 1/,
  );
});

async function* twice(slices: AsyncIterable<readonly KvRow[]>) {
  for await (const rows of slices) yield rows.flatMap((row) => [row, row]);
}

async function* backwards(slices: AsyncIterable<readonly KvRow[]>) {
  for await (const rows of slices) yield [...rows].reverse();
}

t.test('group record: moves with the applied entry and with nothing else', async (test) => {
  const harness = replaceableMachine();
  await harness.one(BUILTINS);
  test.equal(harness.machine.groupRecord, undefined);
  const facts = () => {
    const { machine } = harness;
    return [machine.index(), machine.position(), machine.digests(), machine.tableIndex('tokens')];
  };
  const before = facts();
  const heard: unknown[] = [];
  harness.machine.watch.onApplied((event) => heard.push(event));
  await harness.group(Uint8Array.of(7));
  test.same(facts(), before);
  test.same(heard, []);
  test.equal(harness.machine.appliedIndex(), 2);
  test.same([...(harness.machine.groupRecord ?? [])], [7]);
  await harness.one({ type: 'role.set', presence: 'create', role: aRole(1) });
  const again = new MachineHarness(harness.kv.reopened());
  test.same([...(again.machine.groupRecord ?? [])], [7], 'it is remembered');
  test.equal(again.machine.appliedIndex(), 3);
});

t.test(
  'checkpoints: are digests of the same places, however entries were grouped',
  async (test) => {
    const commands = Array.from({ length: 20 * CHECKPOINT_INTERVAL }, (_, number) =>
      aCommand({
        type: 'role.set',
        presence: 'create',
        role: aRole(number, { name: `r${number}` }),
      }),
    );
    const runs = [];
    for (const groupSize of [37, CHECKPOINT_INTERVAL, 1000]) {
      const harness = replaceableMachine();
      await harness.one(BUILTINS);
      test.equal(harness.machine.lastCheckpoint, undefined);
      for (let at = 0; at < commands.length; at += groupSize) {
        await harness.run(...commands.slice(at, at + groupSize));
      }
      runs.push(harness);
    }
    const places = Array.from({ length: 21 }, (_, each) => each * CHECKPOINT_INTERVAL);
    const [first, ...others] = runs.map(({ machine }) =>
      places.map((each) => machine.digestAt(each)),
    );
    for (const other of others) test.same(other, first);
    test.equal(first!.filter((digest) => digest !== undefined).length, 16, 'the newest are kept');
    test.equal(new Set(first).size, 17, 'each is another one');
    const [{ machine }] = runs as [ReturnType<typeof replaceableMachine>];
    const last = { index: 20 * CHECKPOINT_INTERVAL, digest: first!.at(-1) };
    test.same(machine.lastCheckpoint, last);
    test.equal(machine.digestAt(last.index + 1), undefined);

    const upTo = new MachineHarness(new MemoryKv());
    await upTo.run(aCommand(BUILTINS), ...commands.slice(0, last.index - 1));
    test.equal(upTo.machine.digests().all, last.digest, 'it is the digest of that very entry');
    await installed(await chunksOf(upTo.machine.snapshot()), runs[0]);
    test.equal(machine.lastCheckpoint, undefined, 'those of another state are not compared');
  },
);

t.test('a restore that is under way there is under way here, and none that was', async (test) => {
  const [there, here] = [replaceableMachine(), replaceableMachine()];
  const restoring = () => here.machine.restoreUnderWay()?.id;
  for (const [server, id] of [
    [there, 'there'],
    [here, 'here'],
  ] as const) {
    await server.one({ type: 'restore.begin', id });
  }
  test.equal(restoring(), 'here');
  await installed(await chunksOf(there.machine.snapshot()), here);
  test.equal(restoring(), 'there');
});
