// The durable log and the replica of a group of one: what a bad disk does is found, what was answered is
// there again, and nothing waits for ever.

import t from 'tap';
import {
  readClusterId,
  readPromise,
  writeClusterId,
  writeFounding,
  writePromise,
} from '../../cluster/log/cluster-identity.ts';
import { crc32c } from '../../cluster/log/crc32c.ts';
import { DurableLog, readGeneration, TRIM_BATCH_MAX } from '../../cluster/log/durable-log.ts';
import {
  CLUSTER_KEY,
  decodeEntry,
  decodeHardState,
  decodeWitness,
  encodeEntry,
  encodeHardState,
  encodeWitness,
  entryKey,
  GENERATION_KEY,
  HARD_STATE_KEY,
  LOG_ORIGIN,
  type LogEntry,
  type LogWitness,
  nextEntry,
} from '../../cluster/log/log-entry.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership.ts';
import {
  encodeMembershipChange,
  type MembershipChange,
} from '../../cluster/raft/membership-change.ts';
import type { GroupLimits } from '../../cluster/replica/group-limits.ts';
import {
  decodeGroupContext,
  decodeGroupRecord,
  DEFAULT_AUTOPILOT,
  EMPTY_GROUP,
  encodeGroupContext,
  encodeGroupRecord,
  type GroupRecord,
  type MemberRecord,
  nextGroupRecord,
} from '../../cluster/replica/group-record.ts';
import type { GroupReplica } from '../../cluster/replica/group-replica.ts';
import type { AppliedEntry, Machine } from '../../cluster/replica/replica.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { foundAlone, openLoneGroup } from '../support/lone-group.ts';
import { MemoryKv, textOf } from '../support/memory-kv.ts';
import { FIRST_RELEASE, GROUPS } from './golden-log-bytes.ts';

const HARD_STATE = { term: 1, vote: 1, commit: 0 };

/** Entries with small payloads behind what the log has. */
function entriesBehind(log: DurableLog, count: number, term = 1): readonly LogEntry[] {
  const entries: LogEntry[] = [];
  for (let each = 0; each < count; each += 1) {
    const previous = entries.at(-1) ?? log.last;
    entries.push(nextEntry(previous, term, Buffer.from(`payload ${previous.index + 1}`)));
  }
  return entries;
}

async function logOf(kv: MemoryKv, count: number): Promise<DurableLog> {
  const log = await DurableLog.open(kv, undefined);
  await log.write({ entries: entriesBehind(log, count), hardState: HARD_STATE });
  return log;
}

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
  await test.rejects(log.write({ entries: [nextEntry(log.entry(1), 2, fresh.payload)] }), {
    name: 'AssertionError',
    message: /what is committed stays/,
  });
});

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
  await log.write({ entries: [], trimThroughIndex: 5 });
  await test.rejects(DurableLog.open(kv, entry), {
    message: /applied entry 4, but the log begins at 6/,
  });
});

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'hex');

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
    const again = await DurableLog.open(kv.reopened(), start);
    test.equal(readGeneration(kv), 4);
    test.same([again.firstIndex, again.lastIndex], [index + 1, index]);
    test.same(again.hardState, hardState);
    await again.write({ entries: [nextEntry(again.last, 3, Buffer.from('next'))] });
    test.equal(again.leftoverCount, 0, 'what was left before the start is gone with a write');
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
    test.equal(reopened.dump().filter((row) => row.startsWith('01')).length, 1);
  },
);

const CLUSTER = '11111111-2222-4333-8444-000000000001';

t.test('cluster identity: a group begins in one batch, the same everywhere', async (test) => {
  const payloads = [1, 2, 3].map((node) => encodeMembershipChange(adding(node)));
  const stores = [new FailingKv(new MemoryKv()), new FailingKv(new MemoryKv())];
  for (const kv of stores) {
    await writePromise(kv, 'to a founder');
    test.equal(readPromise(kv), 'to a founder');
    const count = kv.writeCount;
    await writeFounding(kv, { clusterId: CLUSTER, payloads });
    test.equal(kv.writeCount, count + 1);
    test.equal(readPromise(kv), undefined, 'it is fulfilled');
  }
  const logs = await Promise.all(stores.map((kv) => DurableLog.open(kv, undefined)));
  test.same(logs[0]!.hardState, { term: 1, vote: 0, commit: 3 });
  test.equal(logs[0]!.lastIndex, 3);
  test.equal(logs[0]!.entry(2).type, 'membership');
  test.same(logs[0]!.last, logs[1]!.last);
  test.equal(readClusterId(stores[0]!), CLUSTER);
});

t.test('cluster identity: a node belongs to one cluster for good', async (test) => {
  const payloads = [encodeMembershipChange(adding(1))];
  const joined = new MemoryKv();
  await writeClusterId(joined, CLUSTER);
  await test.rejects(writeClusterId(joined, CLUSTER), /one cluster for good/);
  await test.rejects(writeFounding(joined, { clusterId: 'other', payloads }), /one cluster/);
  const used = new MemoryKv();
  await logOf(used, 1);
  await test.rejects(writeFounding(used, { clusterId: CLUSTER, payloads }), /an empty log/);
  const voted = new MemoryKv();
  const hardState = { term: 7, vote: 3, commit: 0 };
  await voted.write([{ type: 'put', key: HARD_STATE_KEY, value: encodeHardState(hardState) }]);
  await writeFounding(voted, { clusterId: CLUSTER, payloads });
  const kept = decodeHardState(voted.get(HARD_STATE_KEY)!);
  test.same(kept, { term: 7, vote: 3, commit: 1 }, 'a vote that was cast stays');
  const emptied = new MemoryKv();
  const begun = encodeHardState({ ...hardState, commit: 4 });
  await emptied.write([{ type: 'put', key: HARD_STATE_KEY, value: begun }]);
  const again = writeFounding(emptied, { clusterId: CLUSTER, payloads });
  await test.rejects(again, /no entries, but 4 was committed/, 'what began once is not begun anew');
  test.same(emptied.get(HARD_STATE_KEY), begun);
});

const NODE = 0xabcdef012345;

function memberOf(number: number): MemberRecord {
  return {
    node: NODE + number,
    id: `11111111-2222-4333-8444-00000000000${number}`,
    name: `node-${number}`,
    address: { host: `10.0.0.${number}`, port: 8300 },
    httpAddress: number === 1 ? '' : `10.0.0.${number}:8500`,
    version: '0.1.0',
  };
}

t.test('group record: is written as it always was', async (test) => {
  const [first, second] = [memberOf(1), memberOf(2)];
  const record: GroupRecord = {
    membership: { ...NO_MEMBERS, voters: [first.node], learners: [second.node] },
    members: [first, second],
    autopilot: DEFAULT_AUTOPILOT,
    autopilotIndex: 3,
  };
  test.equal(hex(encodeGroupRecord(record)), GROUPS.groupRecord);
  test.same(decodeGroupRecord(bytesOf(GROUPS.groupRecord)), record);
  test.equal(hex(encodeGroupContext({ members: [first] })), GROUPS.membersContext);
  test.same(decodeGroupContext(bytesOf(GROUPS.membersContext)), { members: [first] });
  const autopilot = { autopilot: DEFAULT_AUTOPILOT };
  test.equal(hex(encodeGroupContext(autopilot)), GROUPS.autopilotContext);
  test.same(decodeGroupContext(bytesOf(GROUPS.autopilotContext)), autopilot);
  test.same(decodeGroupContext(encodeGroupContext({})), {});
  const newer = bytesOf(GROUPS.groupRecord);
  newer[1] = 2;
  test.throws(() => decodeGroupRecord(newer), { name: 'AssertionError', message: /format/ });
});

t.test(
  'group record: follows from the changes, and a change that does not fit leaves it as it is',
  async (test) => {
    const changed = (record: GroupRecord, ...changes: readonly MembershipChange[]): GroupRecord =>
      changes.reduce(nextGroupRecord, record);
    const two = changed(EMPTY_GROUP, adding(1), adding(2));
    test.same(two.membership.voters, [1, 2]);
    test.same(
      two.members.map(({ name }) => name),
      ['n1', 'n2'],
    );
    const moved = { ...memberRecord(2), address: { host: 'elsewhere', port: 1 } };
    const context = encodeGroupContext({ members: [moved] });
    const update: MembershipChange = {
      transition: 'auto',
      changes: [{ kind: 'update', node: 2 }],
      context,
    };
    test.same(changed(two, update).members, [memberRecord(1), moved]);
    const set = { ...DEFAULT_AUTOPILOT, minQuorum: 3 };
    const settings = { ...update, context: encodeGroupContext({ autopilot: set }) };
    const twice = changed(two, settings, settings);
    test.same([twice.autopilot, twice.autopilotIndex], [set, 2]);
    const none: MembershipChange = {
      ...settings,
      changes: [
        { kind: 'remove', node: 1 },
        { kind: 'remove', node: 2 },
      ],
    };
    test.equal(changed(two, none), two, 'its settings do not count either');
    const gone = changed(two, { ...adding(2), changes: [{ kind: 'remove', node: 2 }] });
    test.same(gone.members, [memberRecord(1)], 'who is in no list is forgotten');
    const stranger = { ...adding(1), context: encodeGroupContext({ members: [memberRecord(9)] }) };
    test.same(changed(two, stranger).members, two.members, 'who is in no list is not noted');
  },
);

function memberRecord(node: number): MemberRecord {
  return { ...memberOf(1), node, name: `n${node}` };
}

function adding(node: number): MembershipChange {
  const context = encodeGroupContext({ members: [memberRecord(node)] });
  return { transition: 'auto', changes: [{ kind: 'add-voter', node }], context };
}

/** Remembers what it was given; its own "disk" is a list that survives it. */
class ListMachine implements Machine<string> {
  readonly applied: AppliedEntry[];
  readonly batchSizes: number[] = [];
  beforeApply: () => Promise<void> | void = () => undefined;

  constructor(applied: readonly AppliedEntry[] = []) {
    this.applied = [...applied];
  }

  get appliedEntry(): LogWitness | undefined {
    return this.applied.at(-1);
  }

  get groupRecord(): Uint8Array | undefined {
    return this.applied.findLast(({ groupRecord }) => groupRecord !== undefined)?.groupRecord;
  }

  /** Those that were proposed. */
  get texts(): readonly string[] {
    return this.applied
      .filter(({ type, payload: bytes }) => type === 'normal' && bytes.length > 0)
      .map(({ payload: bytes }) => Buffer.from(bytes).toString());
  }

  async apply(entries: readonly AppliedEntry[]): Promise<readonly string[]> {
    this.batchSizes.push(entries.length);
    await this.beforeApply();
    this.applied.push(...entries);
    return entries.map(({ payload: bytes }) => `applied ${Buffer.from(bytes).toString()}`);
  }

  snapshot(): never {
    throw new Error('nobody needs a snapshot here');
  }

  beginInstall(): never {
    throw new Error('nobody sends a snapshot here');
  }
}

interface Opened {
  readonly replica: GroupReplica<string>;
  readonly machine: ListMachine;
  readonly log: DurableLog;
  readonly failures: Error[];
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A group of one, which leads; founded where the store is empty. */
async function openReplica(
  kv: FailingKv | MemoryKv,
  given: { readonly machine?: ListMachine; readonly limits?: Partial<GroupLimits> } = {},
): Promise<Opened> {
  const { machine = new ListMachine(), limits = {} } = given;
  await foundAlone(kv, adding(1).context);
  const failures: Error[] = [];
  const log = await DurableLog.open(kv, machine.appliedEntry);
  const onFatal = (cause: Error): void => void failures.push(cause);
  const replica = await openLoneGroup<string>({ log, machine, onFatal, limits });
  return { replica, machine, log, failures };
}

const payload = (text: string | number): Uint8Array => Buffer.from(String(text));
const never = (): Promise<void> => new Promise(() => undefined);

t.test(
  'lone group: answers each proposal with its own outcome, in the order they came',
  async (test) => {
    const { replica, machine } = await openReplica(new MemoryKv());
    const before = replica.status().lastIndex;
    const numbers = Array.from({ length: 100 }, (_, each) => each);
    const outcomes = await Promise.all(numbers.map((each) => replica.propose(payload(each))));
    test.same(
      outcomes,
      numbers.map((each) => `applied ${each}`),
    );
    test.same(machine.texts, numbers.map(String));
    await replica.readBarrier();
    const { commitIndex, appliedIndex, lastIndex, standing, pendingBytes } = replica.status();
    const end = before + 100;
    test.same([commitIndex, appliedIndex, lastIndex], [end, end, end]);
    test.equal(standing, 'leader');
    test.equal(pendingBytes, 0);
    await replica.close();
    await test.rejects(replica.propose(payload('late')), { code: 'closed' });
  },
);

t.test('lone group: what queues while a batch is written shares the next one', async (test) => {
  const kv = new FailingKv(new MemoryKv());
  const { replica } = await openReplica(kv);
  const before = kv.writeCount;
  let release = (): void => undefined;
  kv.beforeWrite = () => new Promise((resolve) => (release = resolve));
  const first = replica.propose(payload('first'));
  await turn();
  const others = Array.from({ length: 50 }, (_, each) => replica.propose(payload(each)));
  await turn();
  kv.beforeWrite = () => undefined;
  release();
  await Promise.all([first, ...others]);
  test.equal(kv.writeCount - before, 2);
});

t.test(
  'lone group: what is asked for in one turn of the event loop shares one batch',
  async (test) => {
    const kv = new FailingKv(new MemoryKv());
    const { replica, machine } = await openReplica(kv);
    const before = { writes: kv.writeCount, batches: machine.batchSizes.length };
    const asked: Promise<string>[] = [];
    // As the requests of many sockets come: each with all that it sets off before the next one.
    for (let each = 0; each < 50; each += 1) {
      asked.push(replica.propose(payload(each)));
      for (let hops = 0; hops < 5; hops += 1) await Promise.resolve();
    }
    await Promise.all(asked);
    test.equal(kv.writeCount - before.writes, 1);
    test.same(machine.batchSizes.slice(before.batches), [50]);
  },
);

t.test('lone group: batches are bounded by count and by bytes', async (test) => {
  const { replica, machine } = await openReplica(new MemoryKv(), {
    limits: { batchCountMax: 10, batchBytesMax: 25 },
  });
  const before = machine.batchSizes.length;
  const texts = ['0123456789', '0123456789', '0123456789', 'x'.repeat(100), ...'abcdefghijkl'];
  await Promise.all(texts.map((text) => replica.propose(payload(text))));
  for (const size of machine.batchSizes.slice(before)) test.ok(size <= 10, `${size} at once`);
  test.same(machine.texts, texts);
});

t.test(
  'lone group: a full queue refuses at once, and takes proposals again later',
  async (test) => {
    const { replica, machine } = await openReplica(new MemoryKv(), {
      limits: { pendingCountMax: 3, pendingBytesMax: 100, payloadBytesMax: 50 },
    });
    let release = (): void => undefined;
    machine.beforeApply = () => new Promise((resolve) => (release = resolve));
    const held = [1, 2, 3].map((each) => replica.propose(payload(each)));
    await test.rejects(replica.propose(payload(4)), { code: 'queue-full' });
    await test.rejects(replica.propose(payload('x'.repeat(51))), { code: 'too-large' });
    for (let turns = 0; turns < 5; turns += 1) await turn();
    machine.beforeApply = () => undefined;
    release();
    await Promise.all(held);
    test.equal(await replica.propose(payload(4)), 'applied 4');
  },
);

t.test('lone group: the log writes on while the machine is busy', async (test) => {
  const { replica, machine } = await openReplica(new MemoryKv());
  const before = replica.status().lastIndex;
  machine.beforeApply = never;
  void replica.propose(payload(1));
  for (let turns = 0; turns < 5; turns += 1) await turn();
  void replica.propose(payload(2));
  for (let turns = 0; turns < 5; turns += 1) await turn();
  const { commitIndex, appliedIndex, unappliedCount } = replica.status();
  test.same([commitIndex, appliedIndex, unappliedCount], [before + 2, before, 2]);
});

t.test(
  'lone group: what is in the log and not in the machine is applied at the next start',
  async (test) => {
    const kv = new MemoryKv();
    const crashed = await openReplica(kv);
    const { term } = crashed.replica.status();
    await crashed.replica.propose(payload('answered'));
    crashed.machine.beforeApply = never;
    void crashed.replica.propose(payload('in the log')).catch(() => undefined);
    for (let turns = 0; turns < 5; turns += 1) await turn();
    const machine = new ListMachine(crashed.machine.applied);
    const { replica, log } = await openReplica(kv.reopened(), { machine });
    test.same(machine.texts, ['answered', 'in the log']);
    test.equal(replica.status().term, term + 1, 'a start is a new term');
    test.equal(await replica.propose(payload('next')), 'applied next');
    test.equal(log.last.term, term + 1);
  },
);

t.test('lone group: the first failed write ends it, and nobody is left waiting', async (test) => {
  const kv = new FailingKv(new MemoryKv());
  const { replica, failures } = await openReplica(kv);
  const full = new Error('no space left on device');
  kv.beforeWrite = () => Promise.reject(full);
  const underWay = replica.propose(payload('under way'));
  await Promise.resolve();
  await Promise.resolve();
  const queued = replica.propose(payload('queued'));
  await test.rejects(underWay, { code: 'outcome-unknown' });
  await test.rejects(queued, { name: 'ReplicaError' });
  kv.beforeWrite = () => undefined;
  await test.rejects(replica.propose(payload('later')), { code: 'closed' });
  await test.rejects(replica.readBarrier(), { code: 'closed' });
  await test.rejects(replica.proposeMembership(adding(1)), { code: 'closed' });
  test.same(failures, [full]);
});

t.test('lone group: a machine that fails ends it too', async (test) => {
  const { replica, machine, failures } = await openReplica(new MemoryKv());
  machine.beforeApply = () => Promise.reject(new Error('no space left on device'));
  await test.rejects(replica.propose(payload(1)), { code: 'outcome-unknown' });
  test.equal(failures.length, 1);
});

t.test(
  'lone group: trims what is applied, but for the newest, and opens on the rest',
  async (test) => {
    const kv = new MemoryKv();
    const { replica, machine, log } = await openReplica(kv, { limits: { keptCount: 100 } });
    for (let round = 0; round < 20; round += 1) {
      const batch = Array.from({ length: 100 }, (_, each) => replica.propose(payload(each)));
      await Promise.all(batch);
    }
    test.equal(log.lastIndex, 2002);
    test.ok(log.firstIndex > 1600, `first is ${log.firstIndex}`);
    test.ok(log.lastIndex - log.firstIndex >= 100, 'the newest stay');
    await replica.close();
    const again = await DurableLog.open(kv.reopened(), machine.appliedEntry);
    test.equal(again.firstIndex, log.firstIndex);
  },
);

t.test('lone group: of large entries as many are kept as have no more bytes', async (test) => {
  const kv = new MemoryKv();
  const limits = { keptCount: 1_000, keptBytesMax: 100_000 };
  const { replica, machine, log } = await openReplica(kv, { limits });
  for (let round = 0; round < 40; round += 1) await replica.propose(new Uint8Array(10_000).fill(7));
  const kept = log.lastIndex - log.firstIndex + 1;
  test.ok(
    kept <= 11,
    `${kept} are kept: what is applied with the last write goes with the next one`,
  );
  test.ok(kept >= 9, `${kept} are kept`);
  for (let round = 0; round < 500; round += 1) await replica.propose(payload(round));
  test.ok(log.lastIndex - log.firstIndex > 500, 'small ones by their number');
  await replica.close();
  const again = await DurableLog.open(kv.reopened(), machine.appliedEntry);
  test.equal(again.firstIndex, log.firstIndex);
  test.equal(again.bytesBehind(0), log.bytesBehind(0), 'it is known again at the next start');
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

/** What a release that knew no groups left behind: entries, and a machine without a group record. */
async function legacyStore(appliedCount: number): Promise<{ kv: MemoryKv; machine: ListMachine }> {
  const kv = new MemoryKv();
  const log = await DurableLog.open(kv, undefined);
  const entries = entriesBehind(log, 5);
  await log.write({ entries, hardState: { term: 1, vote: 1, commit: 5 } });
  return { kv, machine: new ListMachine(entries.slice(0, appliedCount)) };
}

t.test('lone group: a folder without a group record is a group of its own node', async (test) => {
  for (const appliedCount of [0, 3, 5]) {
    const { kv, machine } = await legacyStore(appliedCount);
    const { replica } = await openReplica(kv, { machine });
    test.equal(await replica.propose(payload('more')), 'applied more');
    test.same(replica.groupRecord(), EMPTY_GROUP);
    test.ok(replica.groupStatus().isMember);
    const other: MembershipChange = { ...adding(2), changes: [{ kind: 'add-learner', node: 2 }] };
    await test.rejects(
      replica.proposeMembership(other),
      { name: 'GroupRefusal', code: 'refused', message: /begins with its own node/ },
      'others would make another record of it',
    );
    const record = await replica.proposeMembership(adding(1));
    test.same(record.membership.voters, [1]);
    test.same(record.members, [memberRecord(1)]);
    test.same((await replica.proposeMembership(other)).membership.learners, [2]);
    const again = await openReplica(kv.reopened(), { machine: new ListMachine(machine.applied) });
    test.same(again.replica.groupRecord().membership.learners, [2]);
    test.equal(machine.applied.length, again.machine.applied.length - 1);
  }
});

t.test('lone group: log and state of one node go together at every start', async (test) => {
  const { kv, machine } = await legacyStore(5);
  const ahead = nextEntry(machine.appliedEntry!, 1, payload('not in the log'));
  await test.rejects(DurableLog.open(kv, ahead), { code: 'quarantine' });
});
