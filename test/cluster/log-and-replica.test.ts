// The durable log and the replica of one: what a bad disk does is found, what was answered is there
// again, and nothing waits for ever.

import t from 'tap';
import { DurableLog } from '../../cluster/log/durable-log.ts';
import {
  entryKey,
  type LogEntry,
  type LogWitness,
  nextEntry,
} from '../../cluster/log/log-entry.ts';
import type { Machine, Replica } from '../../cluster/replica/replica.ts';
import { openSoloReplica, type ReplicaLimits } from '../../cluster/replica/solo-replica.ts';
import { crc32c } from '../../cluster/log/crc32c.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { MemoryKv, textOf } from '../support/memory-kv.ts';

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

/** Remembers what it was given; its own "disk" is a list that survives it. */
class ListMachine implements Machine<string> {
  readonly applied: LogEntry[];
  readonly batchSizes: number[] = [];
  beforeApply: () => Promise<void> | void = () => undefined;

  constructor(applied: LogEntry[] = []) {
    this.applied = applied;
  }

  get appliedEntry(): LogWitness | undefined {
    return this.applied.at(-1);
  }

  async apply(entries: readonly LogEntry[]): Promise<readonly string[]> {
    this.batchSizes.push(entries.length);
    await this.beforeApply();
    this.applied.push(...entries);
    return entries.map(({ payload }) => `applied ${Buffer.from(payload).toString()}`);
  }
}

interface Opened {
  readonly replica: Replica<string>;
  readonly machine: ListMachine;
  readonly log: DurableLog;
  readonly failures: Error[];
}

async function openReplica(
  kv: FailingKv | MemoryKv,
  given: { readonly machine?: ListMachine; readonly limits?: Partial<ReplicaLimits> } = {},
): Promise<Opened> {
  const { machine = new ListMachine(), limits = {} } = given;
  const failures: Error[] = [];
  const log = await DurableLog.open(kv, machine.appliedEntry);
  const onFatal = (cause: Error): void => void failures.push(cause);
  const replica = await openSoloReplica<string>({ log, machine, onFatal, limits });
  return { replica, machine, log, failures };
}

const payload = (text: string | number): Uint8Array => Buffer.from(String(text));
const never = (): Promise<void> => new Promise(() => undefined);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test(
  'replica: answers each proposal with its own outcome, in the order they came',
  async (test) => {
    const { replica, machine } = await openReplica(new MemoryKv());
    const numbers = Array.from({ length: 100 }, (_, each) => each);
    const outcomes = await Promise.all(numbers.map((each) => replica.propose(payload(each))));
    test.same(
      outcomes,
      numbers.map((each) => `applied ${each}`),
    );
    test.same(
      machine.applied.map(({ index }) => index),
      numbers.map((each) => each + 1),
    );
    await replica.readBarrier();
    const { commitIndex, appliedIndex, lastIndex, standing, pendingBytes } = replica.status();
    test.same([commitIndex, appliedIndex, lastIndex], [100, 100, 100]);
    test.equal(standing, 'leader');
    test.equal(pendingBytes, 0);
    await replica.close();
    await test.rejects(replica.propose(payload('late')), { code: 'closed' });
  },
);

t.test('replica: what queues while a batch is written shares the next one', async (test) => {
  const kv = new FailingKv(new MemoryKv());
  const { replica } = await openReplica(kv);
  const before = kv.writeCount;
  const first = replica.propose(payload('first'));
  await Promise.resolve();
  await Promise.resolve();
  const others = Array.from({ length: 50 }, (_, each) => replica.propose(payload(each)));
  await Promise.all([first, ...others]);
  test.equal(kv.writeCount - before, 2);
});

t.test('replica: batches are bounded by count and by bytes', async (test) => {
  const { replica, machine } = await openReplica(new MemoryKv(), {
    limits: { batchCountMax: 10, batchBytesMax: 25 },
  });
  const texts = ['0123456789', '0123456789', '0123456789', 'x'.repeat(100), ...'abcdefghijkl'];
  await Promise.all(texts.map((text) => replica.propose(payload(text))));
  test.same(machine.batchSizes, [2, 1, 1, 10, 2]);
});

t.test('replica: a full queue refuses at once, and takes proposals again later', async (test) => {
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
});

t.test('replica: the log writes on while the machine is busy', async (test) => {
  const { replica, machine } = await openReplica(new MemoryKv());
  machine.beforeApply = never;
  void replica.propose(payload(1));
  for (let turns = 0; turns < 5; turns += 1) await turn();
  void replica.propose(payload(2));
  for (let turns = 0; turns < 5; turns += 1) await turn();
  const { commitIndex, appliedIndex, unappliedCount } = replica.status();
  test.same([commitIndex, appliedIndex, unappliedCount], [2, 0, 2]);
});

t.test(
  'replica: what is in the log and not in the machine is applied at the next start',
  async (test) => {
    const kv = new MemoryKv();
    const crashed = await openReplica(kv);
    await crashed.replica.propose(payload('answered'));
    crashed.machine.beforeApply = never;
    void crashed.replica.propose(payload('in the log'));
    for (let turns = 0; turns < 5; turns += 1) await turn();
    const machine = new ListMachine([...crashed.machine.applied]);
    const { replica, log } = await openReplica(kv.reopened(), { machine });
    test.same(
      machine.applied.map((entry) => Buffer.from(entry.payload).toString()),
      ['answered', 'in the log'],
    );
    test.equal(replica.status().term, 2, 'a start is a new term');
    test.equal(await replica.propose(payload('next')), 'applied next');
    test.equal(log.entry(3).term, 2);
  },
);

t.test('replica: the first failed write ends it, and nobody is left waiting', async (test) => {
  const kv = new FailingKv(new MemoryKv());
  const { replica, failures } = await openReplica(kv);
  const full = new Error('no space left on device');
  kv.beforeWrite = () => Promise.reject(full);
  const underWay = replica.propose(payload('under way'));
  await Promise.resolve();
  await Promise.resolve();
  const queued = replica.propose(payload('queued'));
  await test.rejects(underWay, { code: 'outcome-unknown' });
  await test.rejects(queued, { code: 'closed' });
  kv.beforeWrite = () => undefined;
  await test.rejects(replica.propose(payload('later')), { code: 'closed' });
  await test.rejects(replica.readBarrier(), { code: 'closed' });
  test.same(failures, [full]);
});

t.test('replica: a machine that fails ends it too', async (test) => {
  const { replica, machine, failures } = await openReplica(new MemoryKv());
  machine.beforeApply = () => Promise.reject(new Error('no space left on device'));
  await test.rejects(replica.propose(payload(1)), { code: 'outcome-unknown' });
  test.equal(failures.length, 1);
});

t.test(
  'replica: trims what is applied, but for the newest, and opens on the rest',
  async (test) => {
    const kv = new MemoryKv();
    const { replica, machine, log } = await openReplica(kv, { limits: { keptCount: 100 } });
    for (let round = 0; round < 20; round += 1) {
      const batch = Array.from({ length: 100 }, (_, each) => replica.propose(payload(each)));
      await Promise.all(batch);
    }
    test.equal(log.lastIndex, 2000);
    test.ok(log.firstIndex > 1700, `first is ${log.firstIndex}`);
    await replica.close();
    const again = await DurableLog.open(kv.reopened(), machine.appliedEntry);
    test.equal(again.firstIndex, log.firstIndex);
  },
);
