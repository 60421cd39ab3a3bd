// The durable log: what it holds after opening, what it refuses to open, what is cut off and trimmed.

import t from 'tap';
import { readClusterId } from '../../../cluster/log/cluster-identity.ts';
import { crc32c } from '../../../cluster/log/crc32c.ts';
import { DurableLog, readGeneration, TRIM_BATCH_MAX } from '../../../cluster/log/durable-log.ts';
import {
  CLUSTER_KEY,
  decodeEntry,
  decodeWitness,
  ENTRY_KEYS_END,
  encodeEntry,
  encodeHardState,
  encodeWitness,
  entryKey,
  GENERATION_KEY,
  HARD_STATE_KEY,
  indexOfKey,
  LOG_ORIGIN,
  type LogWitness,
  nextEntry,
} from '../../../cluster/log/log-entry.ts';
import { FailingKv } from '../../support/failing-kv.ts';
import { MemoryKv, textOf } from '../../support/memory-kv.ts';
import { bytesOf, entriesBehind, HARD_STATE, hex, logOf } from './cases.ts';
import { FIRST_RELEASE, GROUPS } from './golden-log-bytes.ts';

/** The definition, bit by bit. */
function obviousCrc32c(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return (crc ^ 0xffffffff) >>> 0;
}

t.test(
  'crc32c: texts of any length, wherever they begin, have the checksum of the definition',
  async (test) => {
    const bytes = Uint8Array.from(
      { length: 1_200 },
      (_, place) => (place * 167 + (place >> 3)) & 0xff,
    );
    for (let from = 0; from < 9; from += 1) {
      for (const shortest of [0, 500, 1_020]) {
        for (let size = shortest; size < shortest + 40; size += 1) {
          const text = bytes.subarray(from, from + size);
          const expected = obviousCrc32c(text);
          if (crc32c(text) !== expected) test.fail(`from ${from}, ${size} bytes`);
          const ofPart = crc32c(bytes, from, from + size);
          if (ofPart !== expected) test.fail(`${size} bytes at ${from}`);
        }
      }
    }
    test.equal(crc32c(bytes), obviousCrc32c(bytes));
  },
);

t.test('crc32c: gives the check value of its standard', async (test) => {
  test.equal(crc32c(Buffer.from('123456789')), 0xe3069283);
});

t.test('log: has its entries, hard state and start again after opening', async (test) => {
  const kv = new MemoryKv();
  const log = await logOf(kv, 10);
  await log.write({ entries: [], hardState: { term: 3, vote: 2, commit: 7 }, trimThroughIndex: 4 });
  const again = await DurableLog.open(kv.reopened(), log.last);
  test.equal(again.firstIndex, 5);
  test.equal(again.lastIndex, 10);
  test.same(again.hardState, { term: 3, vote: 2, commit: 7 });
  test.equal(Buffer.from(again.entry(5).payload).toString(), 'payload 5');
  test.same(again.last, log.last);
});

t.test('log: an entry at a taken index cuts off what was there', async (test) => {
  const kv = new MemoryKv();
  const log = await logOf(kv, 5);
  const fresh = nextEntry(log.entry(2), 2, Buffer.from('other 3'));
  await log.write({ entries: [fresh], hardState: { term: 2, vote: 1, commit: 0 } });
  const again = await DurableLog.open(kv.reopened(), undefined);
  test.equal(again.lastIndex, 3);
  test.equal(Buffer.from(again.entry(3).payload).toString(), 'other 3');
  await log.write({ entries: [], hardState: { term: 2, vote: 1, commit: 3 } });
  for (const before of [1, 2]) {
    await test.rejects(log.write({ entries: [nextEntry(log.entry(before), 2, fresh.payload)] }), {
      name: 'AssertionError',
      message: /what is committed stays/,
    });
  }
});

t.test(
  'log: its first entry can be replaced, behind its origin, what was trimmed, and a snapshot',
  async (test) => {
    for (const behind of ['origin', 'trimmed', 'snapshot']) {
      const kv = new MemoryKv();
      const log = await logOf(kv, 6);
      if (behind === 'trimmed') await log.write({ entries: [], trimThroughIndex: 4 });
      if (behind === 'snapshot') {
        const start = { index: 20, term: 1, hash: new Uint8Array(32).fill(9) };
        await log.reset({ start, hardState: { ...HARD_STATE, commit: 20 }, generation: 1 });
        await log.write({ entries: entriesBehind(log, 3) });
      }
      const other = nextEntry(log.start, 2, Buffer.from('other'));
      await log.write({ entries: [other], hardState: { ...log.hardState, term: 2 } });
      const again = await DurableLog.open(kv.reopened(), log.start);
      test.same([again.firstIndex, again.lastIndex], [other.index, other.index], behind);
      test.same(again.last.hash, other.hash);
    }
  },
);

t.test(
  'log: takes no entry behind a gap or of an earlier term, and commits none that it has not',
  async (test) => {
    const log = await logOf(new MemoryKv(), 2);
    const [third, fourth] = entriesBehind(log, 2, 2);
    await test.rejects(
      log.write({ entries: [third!, { ...fourth!, index: 5 }] }),
      /entries follow/,
    );
    await test.rejects(log.write({ entries: [third!, { ...fourth!, term: 1 }] }), /entries follow/);
    const ahead = { entries: [third!], hardState: { term: 2, vote: 0, commit: 4 } };
    await test.rejects(log.write(ahead), /only what is in the log is committed/);
    await log.write({ entries: [third!, fourth!] });
    test.equal(log.lastIndex, 4);
  },
);

t.test('log: refuses to open on any damage, and says where it is', async (test) => {
  const name = (index: number): string => textOf(entryKey(index));
  const damages: Readonly<
    Record<string, { change(rows: Map<string, Uint8Array>): void; says: RegExp }>
  > = {
    'a row is missing': { change: (rows) => rows.delete(name(5)), says: /entry 5 is missing/ },
    'the first row is missing': {
      change: (rows) => rows.delete(name(1)),
      says: /entry 1 is missing, the next one is 2/,
    },
    'the end is missing': {
      change: (rows) => {
        rows.delete(name(9));
        rows.delete(name(10));
      },
      says: /ends at entry 8, but 10 was applied/,
    },
    'everything is missing': { change: (rows) => rows.clear(), says: /ends at entry 0/ },
    'two rows changed places': {
      change: (rows) => {
        const [five, six] = [rows.get(name(5))!, rows.get(name(6))!];
        rows.set(name(5), six);
        rows.set(name(6), five);
      },
      says: /the row of entry 5 holds entry 6/,
    },
    'a row is from another log': {
      change: (rows) => rows.set(name(5), foreign),
      says: /entry 5 does not follow/,
    },
    'a row is empty': {
      change: (rows) => rows.set(name(5), new Uint8Array()),
      says: /entry 5 has 0 bytes/,
    },
    'a row is of a format that is not known here': {
      change: (rows) => {
        const value = Uint8Array.from(rows.get(name(5))!);
        // The format is in the checksum: this one is right.
        value[0] = 3;
        value[4]! ^= 3 - 1;
        rows.set(name(5), value);
      },
      says: /entry 5 has the format 3/,
    },
    'the hard state is missing': {
      change: (rows) => rows.delete('\x02'),
      says: /no hard state/,
    },
  };
  const otherKv = new MemoryKv();
  const other = await DurableLog.open(otherKv, undefined);
  const [first, ...rest] = entriesBehind(other, 5, 2);
  await other.write({
    entries: [first!, ...rest],
    hardState: { term: 2, vote: 1, commit: 0 },
  });
  const foreign = otherKv.get(entryKey(5))!;
  for (const [what, { change, says }] of Object.entries(damages)) {
    const kv = new MemoryKv();
    const log = await logOf(kv, 10);
    kv.tamper(change);
    await test.rejects(
      DurableLog.open(kv, log.last),
      { name: 'LogDamage', code: 'quarantine', message: says },
      what,
    );
  }
});

t.test('log: a flipped bit anywhere in any row is found', async (test) => {
  const kv = new MemoryKv();
  const log = await logOf(kv, 4);
  await log.write({ entries: [], trimThroughIndex: 1, hardState: { ...HARD_STATE, commit: 4 } });
  const witness = log.last;
  let flips = 0;
  const names: string[] = [];
  kv.tamper((rows) => names.push(...rows.keys()));
  for (const name of names) {
    const size = kv.get(Buffer.from(name, 'latin1'))!.length;
    for (let place = 0; place < size; place += 1) {
      const bad = kv.reopened();
      bad.tamper((rows) => {
        const value = Uint8Array.from(rows.get(name)!);
        value[place] = value[place]! ^ (1 << (place % 8));
        rows.set(name, value);
      });
      const opened = await DurableLog.open(bad, witness).then(
        () => true,
        (error: Error) => error.name !== 'LogDamage',
      );
      if (opened) test.fail(`byte ${place} of row ${Buffer.from(name, 'latin1').toString('hex')}`);
      flips += 1;
    }
  }
  test.ok(flips > 250, 'every byte was tried');
});

t.test('log: refuses a state that is not of its own history', async (test) => {
  const kv = new MemoryKv();
  const log = await logOf(kv, 6);
  const entry = log.entry(4);
  const wrong = { ...entry, hash: new Uint8Array(32) };
  await test.rejects(DurableLog.open(kv, wrong), { message: /not the one that was applied/ });
  const start = log.entry(5);
  await log.write({ entries: [], trimThroughIndex: 5 });
  await test.rejects(DurableLog.open(kv, entry), {
    message: /applied entry 4, but the log begins at 6/,
  });
  await test.rejects(
    DurableLog.open(kv, { ...start, hash: new Uint8Array(32) }),
    { message: /entry 5 is not the one that was applied/ },
    'nor one that stands before its first entry',
  );
  test.equal((await DurableLog.open(kv, start)).firstIndex, 6);
});

t.test(
  'log: refuses to open without its end where that was committed, applied or not',
  async (test) => {
    const kv = new MemoryKv();
    const log = await logOf(kv, 6);
    await log.write({ entries: [], hardState: { ...HARD_STATE, commit: 6 } });
    const applied = log.entry(4);
    kv.tamper((rows) => rows.delete(textOf(entryKey(6))));
    await test.rejects(DurableLog.open(kv, applied), {
      name: 'LogDamage',
      message: /ends at entry 5, but 6 was committed/,
    });
  },
);

t.test('log: reads what the first release wrote, and writes the same today', async (test) => {
  const kv = new MemoryKv();
  await kv.write([
    ...FIRST_RELEASE.entries.map((value, place) => ({
      type: 'put' as const,
      key: entryKey(place + 1),
      value: bytesOf(value),
    })),
    { type: 'put', key: HARD_STATE_KEY, value: bytesOf(FIRST_RELEASE.hardState) },
  ]);
  const log = await DurableLog.open(kv, decodeWitness(bytesOf(FIRST_RELEASE.witness)));
  test.same(log.hardState, { term: 3, vote: 2, commit: 2 });
  test.equal(hex(log.last.hash), FIRST_RELEASE.lastHash);
  let previous: LogWitness = LOG_ORIGIN;
  for (const [place, text] of FIRST_RELEASE.payloads.entries()) {
    const entry = log.entry(place + 1);
    test.equal(entry.type, 'normal');
    test.equal(Buffer.from(entry.payload).toString(), text);
    test.equal(hex(encodeEntry(entry, previous.hash)), FIRST_RELEASE.entries[place]);
    previous = entry;
  }
  test.equal(hex(encodeHardState(log.hardState)), FIRST_RELEASE.hardState);
  test.equal(hex(encodeWitness(log.last)), FIRST_RELEASE.witness);
});

t.test('log: membership entries and the rows of a group are as they always were', async (test) => {
  const previous = decodeWitness(bytesOf(FIRST_RELEASE.witness));
  const payload = bytesOf(GROUPS.membershipPayload);
  const entry = nextEntry(previous, 4, payload, 'membership');
  test.equal(hex(entry.hash), GROUPS.membershipHash);
  test.equal(hex(encodeEntry(entry, previous.hash)), GROUPS.membershipEntry);
  test.match(decodeEntry(bytesOf(GROUPS.membershipEntry), 4).entry, entry);
  const kv = new MemoryKv();
  await kv.write([
    { type: 'put', key: GENERATION_KEY, value: bytesOf(GROUPS.generation7) },
    { type: 'put', key: CLUSTER_KEY, value: bytesOf(GROUPS.clusterId) },
  ]);
  test.equal(readGeneration(kv), 7);
  test.equal(readClusterId(kv), '11111111-2222-4333-8444-000000000001');
});

t.test('log: an entry of one type never passes for one of the other', async (test) => {
  const normal = nextEntry(LOG_ORIGIN, 1, bytesOf(GROUPS.membershipPayload));
  const change = nextEntry(LOG_ORIGIN, 1, normal.payload, 'membership');
  test.not(hex(normal.hash), hex(change.hash));
  for (const entry of [normal, change]) {
    const value = encodeEntry(entry, LOG_ORIGIN.hash);
    value[0] = value[0] === 1 ? 2 : 1;
    test.throws(() => decodeEntry(value, 1), { name: 'LogDamage', message: /checksum/ });
  }
});

/** The indexes of the entries that lie in a store. */
function entryRowsOf(kv: MemoryKv): readonly number[] {
  const keys = kv.dump().map((row) => bytesOf(row.split(' ')[0]!));
  return keys.filter(([kind]) => kind === ENTRY_KEYS_END[0]! - 1).map(indexOfKey);
}

/** A log of ten entries and the state of a snapshot that reaches to `index`, on another log. */
async function resettable(
  kv: FailingKv | MemoryKv,
  index: number,
): Promise<{ readonly log: DurableLog; readonly start: LogWitness }> {
  const log = await DurableLog.open(kv, undefined);
  await log.write({ entries: entriesBehind(log, 10), hardState: { ...HARD_STATE, commit: 4 } });
  return { log, start: { index, term: 2, hash: new Uint8Array(32).fill(9) } };
}

t.test('log: a snapshot takes the place of everything, with its generation', async (test) => {
  for (const index of [5, 10, 30]) {
    const kv = new MemoryKv();
    const { log, start } = await resettable(kv, index);
    const hardState = { term: 3, vote: 2, commit: index };
    await log.reset({ start, hardState, generation: 4 });
    test.same([log.firstIndex, log.lastIndex], [index + 1, index]);
    test.same(log.hardState, hardState);
    const reopened = kv.reopened();
    const again = await DurableLog.open(reopened, start);
    test.equal(readGeneration(kv), 4);
    test.same([again.firstIndex, again.lastIndex], [index + 1, index]);
    test.same(again.hardState, hardState);
    await again.write({ entries: [nextEntry(again.last, 3, Buffer.from('next'))] });
    test.equal(again.leftoverCount, 0, 'what was left before the start is gone with a write');
    test.same(entryRowsOf(reopened), [index + 1]);
    test.equal((await DurableLog.open(reopened, start)).leftoverCount, 0, 'and is not found again');
    await test.rejects(
      DurableLog.open(kv.reopened(), undefined),
      { name: 'LogDamage', message: /the state is empty, but the log begins at/ },
      'the state of another generation does not go with it',
    );
  }
});

t.test('log: the switch to a snapshot is one write, all or nothing', async (test) => {
  const inner = new MemoryKv();
  const kv = new FailingKv(inner);
  const { log, start } = await resettable(kv, 8);
  const before = inner.dump();
  kv.beforeWrite = () => Promise.reject(new Error('power is out'));
  const hardState = { term: 3, vote: 0, commit: 8 };
  await test.rejects(log.reset({ start, hardState, generation: 1 }), /power is out/);
  test.same(inner.dump(), before);
  kv.beforeWrite = () => undefined;
  const count = kv.writeCount;
  await log.reset({ start, hardState, generation: 1 });
  test.equal(kv.writeCount, count + 1);
});

t.test('log: a snapshot takes nothing back, and no term', async (test) => {
  const { log, start } = await resettable(new MemoryKv(), 8);
  const hardState = { term: 3, vote: 0, commit: 8 };
  const reset = (given: object): Promise<void> =>
    log.reset({ start, hardState, generation: 1, ...given });
  await test.rejects(reset({ start: { ...start, index: 4 } }), /takes nothing back/);
  await test.rejects(reset({ hardState: { ...hardState, commit: 9 } }), /is what is committed/);
  await test.rejects(reset({ hardState: { ...hardState, term: 1 } }), /terms grow/);
});

t.test(
  'log: rows that a snapshot left behind go with the next writes, a bounded part each',
  async (test) => {
    const kv = new MemoryKv();
    const log = await logOf(kv, 2 * TRIM_BATCH_MAX + 10);
    const start = { index: 9000, term: 1, hash: new Uint8Array(32) };
    await log.reset({ start, hardState: { term: 1, vote: 1, commit: 9000 }, generation: 1 });
    test.equal(log.leftoverCount, 2 * TRIM_BATCH_MAX + 10);
    const reopened = kv.reopened();
    const again = await DurableLog.open(reopened, start);
    test.equal(again.leftoverCount, 2 * TRIM_BATCH_MAX + 10, 'they are found again');
    await again.write({ entries: entriesBehind(again, 3) });
    test.equal(again.leftoverCount, TRIM_BATCH_MAX + 10);
    test.equal(again.firstIndex, 9001);
    // Nothing is trimmed meanwhile: there is one hole, not two.
    await again.write({ entries: [], trimThroughIndex: 9002 });
    test.equal(again.firstIndex, 9001);
    await again.write({ entries: [] });
    test.equal(again.leftoverCount, 0);
    await again.write({ entries: [], trimThroughIndex: 9002 });
    test.equal(again.firstIndex, 9003);
    const rows = (await DurableLog.open(reopened.reopened(), again.last)).lastIndex;
    test.equal(rows, 9003);
    test.same(entryRowsOf(reopened), [9003]);
  },
);

t.test('log: what two snapshots left behind goes, without a start in between', async (test) => {
  const kv = new MemoryKv();
  const log = await logOf(kv, TRIM_BATCH_MAX + 10);
  const hash = new Uint8Array(32);
  const resetTo = (index: number, generation: number): Promise<void> => {
    const hardState = { ...HARD_STATE, commit: index };
    return log.reset({ start: { index, term: 1, hash }, hardState, generation });
  };
  await resetTo(5000, 1);
  await log.write({ entries: entriesBehind(log, 3) });
  await resetTo(9000, 2);
  while (log.leftoverCount > 0) await log.write({ entries: [] });
  test.same(entryRowsOf(kv), []);
});

t.test(
  'log: how large its entries are is known, whatever was cut, trimmed and reset',
  async (test) => {
    const kv = new MemoryKv();
    const log = await logOf(kv, 10);
    const bytes = (from: number, through: number): number => {
      let sum = 0;
      for (let index = from; index <= through; index += 1) sum += log.entry(index).payload.length;
      return sum;
    };
    await log.write({ entries: [], trimThroughIndex: 4 });
    test.equal(log.bytesBehind(4), bytes(5, 10));
    test.equal(log.bytesBehind(0), bytes(5, 10), 'what is gone does not count');
    test.equal(log.bytesBehind(10), 0);
    await log.write({ entries: [nextEntry(log.entry(7), 2, new Uint8Array(1_000))] });
    test.equal(log.bytesBehind(7), 1_000, 'an entry has taken the place of three');
    test.equal(log.lastBeyond(1_000), 7);
    test.equal(log.lastBeyond(999), 8);
    test.equal(log.lastBeyond(1_000_000), 4, 'all may stay');
    const again = await DurableLog.open(kv.reopened(), log.last);
    test.equal(again.bytesBehind(5), log.bytesBehind(5));
    const start = { index: 20, term: 2, hash: new Uint8Array(32) };
    await log.reset({ start, hardState: { term: 2, vote: 0, commit: 20 }, generation: 1 });
    test.equal(log.bytesBehind(0), 0);
    test.equal(log.lastBeyond(0), 20);
    await log.write({ entries: [nextEntry(log.last, 2, new Uint8Array(70))] });
    test.equal(log.bytesBehind(20), 70);
  },
);
