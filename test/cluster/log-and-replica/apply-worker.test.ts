// What the apply worker gives to the machine, and when; and what it makes of a snapshot that comes between.

import t from 'tap';
import { DurableLog } from '../../../cluster/log/durable-log.ts';
import type { LogWitness } from '../../../cluster/log/log-entry.ts';
import type { Entry } from '../../../cluster/raft/log/entry.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import { encodeMembershipChange } from '../../../cluster/raft/membership/membership-change.ts';
import type { Message, StorageApplyMessage } from '../../../cluster/raft/message.ts';
import { DEFAULT_GROUP_LIMITS } from '../../../cluster/replica/group-limits.ts';
import { EMPTY_GROUP, encodeGroupRecord } from '../../../cluster/replica/group-record.ts';
import type { AppliedEntry, Machine } from '../../../cluster/replica/replica.ts';
import { type Applied, ApplyWorker } from '../../../cluster/replica/workers/apply-worker.ts';
import { StoredLog } from '../../../cluster/replica/workers/stored-log.ts';
import { MemoryKv } from '../../support/memory-kv.ts';

const AUTOPILOT = { ...EMPTY_GROUP.autopilot, minQuorum: 3 };

function entry(index: number, given: Partial<Entry> = {}): Entry {
  return { index, term: 1, type: 'normal', data: Buffer.from(`${index}`), ...given };
}

/** A machine that applies when it is told to, and may come further by a snapshot. */
class HeldMachine implements Pick<Machine<number>, 'apply' | 'appliedEntry' | 'groupRecord'> {
  appliedEntry: LogWitness | undefined;
  groupRecord: Uint8Array | undefined;
  readonly calls: (readonly AppliedEntry[])[] = [];
  /** Ends the call that is in flight. */
  end: (outcomes?: number) => void = () => undefined;

  apply(entries: readonly AppliedEntry[]): Promise<readonly number[]> {
    this.calls.push(entries);
    return new Promise((resolve) => {
      this.end = (outcomes = entries.length) => {
        this.appliedEntry = entries.at(-1);
        resolve(entries.slice(0, outcomes).map(({ index }) => index));
      };
    });
  }

  get given(): readonly (readonly number[])[] {
    return this.calls.map((call) => call.map(({ index }) => index));
  }
}

/** A worker behind a log with these entries. */
async function aWorker(entries: readonly Entry[]) {
  const log = await DurableLog.open(new MemoryKv(), undefined);
  const limits = { ...DEFAULT_GROUP_LIMITS, batchCountMax: 2 };
  const snapshot = () => undefined;
  const stored = new StoredLog({ log, membership: NO_MEMBERS, appliedIndex: 0, snapshot, limits });
  const chained = stored.chained(entries);
  const hardState = { term: 1, vote: 1, commit: entries.length };
  await log.write({ entries: chained, hardState, trimThroughIndex: 0 });
  stored.written(chained);
  const machine = new HeldMachine();
  const done: Applied<number>[] = [];
  const failures: string[] = [];
  const worker = new ApplyWorker<number>({
    machine: machine as unknown as Machine<number>,
    stored,
    limits,
    onDone: (applied) => done.push(applied),
    onFailed: (error) => failures.push((error as Error).message),
  });
  const reply: Message = { type: 'storage-apply-reply', from: -2, to: 1, term: 0, entries: [] };
  const push = (...given: readonly Entry[]): void => {
    const message: StorageApplyMessage = {
      ...{ type: 'storage-apply', from: 1, to: -2, term: 0 },
      ...{ entries: given, replies: [reply] },
    };
    worker.push(message);
  };
  /** Ends a call of the machine, and begins the next as the loop does. */
  const endCall = async (): Promise<void> => {
    machine.end();
    await worker.idle();
    worker.start();
  };
  return { worker, machine, done, failures, push, endCall };
}

t.test('apply: one call at a time, with what fits of all that waits', async (test) => {
  const all = [1, 2, 3, 4].map((index) => entry(index));
  const { worker, machine, done, push, endCall } = await aWorker(all);
  for (const each of all) push(each);
  worker.start();
  worker.start();
  test.same(machine.given, [[1, 2]]);
  worker.onTick();
  test.equal(worker.applyingTicks, 1);
  await endCall();
  test.same(machine.given, [
    [1, 2],
    [3, 4],
  ]);
  test.equal(worker.applyingTicks, 0, 'of another call');
  await endCall();
  worker.onTick();
  test.same([worker.applyingTicks, worker.appliedIndex], [0, 4]);
  test.same(
    done.map(({ entries, replies }) => [entries.length, replies.length]),
    [
      [2, 2],
      [2, 2],
    ],
  );
});

t.test('apply: nothing begins while it is held, and a snapshot goes before', async (test) => {
  const change = encodeMembershipChange({
    transition: 'auto',
    changes: [{ kind: 'add-voter', node: 1 }],
    context: new Uint8Array(),
  });
  const all = [1, 2, 3].map((index) => entry(index));
  const behind = entry(4, { type: 'membership', data: change });
  const { worker, machine, done, failures, push } = await aWorker([...all, behind]);
  push(all[0]!);
  worker.start();
  push(all[1]!);
  push(all[2]!);
  let isHeld = false;
  const holding = worker.hold().then(() => {
    isHeld = true;
  });
  await new Promise(setImmediate);
  test.notOk(isHeld, 'while a call is in flight');
  machine.end();
  await holding;
  worker.start();
  test.same(machine.given, [[1]], 'no further one begins');
  // A snapshot has the rest, and another group record than was applied here.
  machine.appliedEntry = { ...all[2]!, hash: new Uint8Array(32) };
  machine.groupRecord = encodeGroupRecord({ ...EMPTY_GROUP, autopilot: AUTOPILOT });
  worker.release();
  worker.start();
  await worker.idle();
  test.same(machine.given, [[1]], 'what it brought is not applied once more');
  const { entries, replies } = done.at(-1)!;
  test.same([entries.length, replies.length], [0, 2], 'and raft hears that it is');
  push(all[2]!, behind);
  worker.start();
  machine.end();
  await worker.idle();
  test.same(machine.given, [[1], [4]]);
  const [{ record }] = done.at(-1)!.changes as [Applied<number>['changes'][number]];
  test.same([record.autopilot.minQuorum, record.membership.voters], [3, [1]]);
  test.same(machine.calls[1]![0]!.groupRecord, encodeGroupRecord(record));
  test.same(failures, []);
});

t.test('apply: what does not fit ends it before anybody is answered', async (test) => {
  const all = [1, 2].map((index) => entry(index));
  const gap = await aWorker(all);
  gap.push(all[1]!);
  gap.worker.start();
  await gap.worker.idle();
  test.same(gap.machine.calls, []);
  test.match(gap.failures, [/the machine goes on where it stands/]);
  const replaced = await aWorker(all);
  replaced.push(entry(1, { term: 2 }));
  replaced.worker.start();
  await replaced.worker.idle();
  test.match(replaced.failures, [/what is applied is what is on disk/]);
  const short = await aWorker(all);
  short.push(...all);
  short.worker.start();
  short.machine.end(1);
  await short.worker.idle();
  test.match(short.failures, [/one outcome an entry/]);
  const still = await aWorker(all);
  still.push(...all);
  still.worker.start();
  const { end } = still.machine;
  end();
  still.machine.appliedEntry = { ...all[0]!, hash: new Uint8Array(32) };
  await still.worker.idle();
  test.match(still.failures, [/the machine applied what it was given/]);
  for (const { done } of [gap, replaced, short, still]) test.same(done, []);
});
