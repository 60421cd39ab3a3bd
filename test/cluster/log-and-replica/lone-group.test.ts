// A replica that is its own group: batches, answers, failures, trimming.

import t from 'tap';
import { DurableLog } from '../../../cluster/log/durable-log.ts';
import { type LogWitness, nextEntry } from '../../../cluster/log/log-entry.ts';
import type { MembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type { GroupLimits } from '../../../cluster/replica/group-limits.ts';
import { EMPTY_GROUP } from '../../../cluster/replica/group-record.ts';
import type { GroupReplica } from '../../../cluster/replica/group-replica.ts';
import type { AppliedEntry, Machine } from '../../../cluster/replica/replica.ts';
import { FailingKv } from '../../support/failing-kv.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { foundAlone, openLoneGroup } from '../../support/simulated/lone-group.ts';
import { adding, entriesBehind, memberRecord, payload } from './cases.ts';

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
