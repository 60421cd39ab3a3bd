// A log, a state machine and a group of one on stores that can fail at any write, and the same on what is
// left of them: whichever write was the last one, what was answered must be there, and the rest must lead to
// the same state as if nothing had happened.

import type { Test } from 'tap';
import { DurableLog } from '../../cluster/log/durable-log.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import { encodeCommand } from '../../src/state/commands/command-codec.ts';
import type { Command } from '../../src/state/commands/commands.ts';
import type { Outcome } from '../../src/state/commands/outcome.ts';
import { StateMachine } from '../../src/state/machine.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { foundAlone, openLoneGroup } from '../support/simulated/lone-group.ts';

interface Stores {
  readonly log: Kv;
  readonly state: Kv;
}

export interface CrashPlan {
  readonly commands: readonly Command[];
  /** So many are under way at once. */
  readonly groupSize: number;
  /** Of the machine's batches; left out: all that are under way are one. */
  readonly batchBytes?: number;
  /** What must be the same, however it came to be. */
  readonly stateOf: (machine: StateMachine) => Promise<unknown>;
  /** What the state is when nothing crashes. */
  readonly expected: unknown;
  /** So many of those that are there are proposed once more, as a leader would that does not know of them. */
  readonly repeated?: number;
  /**
   * The last write is in the store although it is said to have failed: so it is when a sync fails, and
   * nobody can tell before the next start.
   */
  readonly lastWriteLands?: boolean;
}

/** Crashes at each write in turn; gives how many crashes that were. */
export async function crashAtEachWrite(test: Test, plan: CrashPlan): Promise<number> {
  const { commands, expected, stateOf, repeated = 0 } = plan;
  for (let lastWrite = 1; ; lastWrite += 1) {
    const stores = { log: new MemoryKv(), state: new MemoryKv() };
    await foundAlone(stores.log);
    const answered = await runUntilWrite(stores, plan, lastWrite);
    if (answered === commands.length) return lastWrite - 1;
    const after = { log: stores.log.reopened(), state: stores.state.reopened() };
    const again = await openNode(after, plan);
    const applied = appliedCommandCount(again.log, again.machine);
    test.ok(applied >= answered, `${answered} were answered, ${applied} are there`);
    for (const each of commands.slice(Math.max(0, applied - repeated))) {
      await again.replica.propose(encodeCommand(each));
    }
    const found = await stateOf(again.machine);
    const isSame = JSON.stringify(found) === JSON.stringify(expected);
    if (!isSame) test.same(found, expected, `crash at write ${lastWrite}: another state`);
    await again.replica.close();
  }
}

async function openNode(stores: Stores, { batchBytes }: Pick<CrashPlan, 'batchBytes'>) {
  const machine = StateMachine.open(stores.state, {
    clock: new FakeClock(),
    ...(batchBytes !== undefined && { batchBytes }),
  });
  const log = await DurableLog.open(stores.log, machine.appliedEntry);
  const replica = await openLoneGroup<Outcome>({
    log,
    machine,
    onFatal: () => undefined,
  });
  return { machine, replica, log };
}

/** Beside them the log has the founding and an empty entry a start. */
function appliedCommandCount(log: DurableLog, machine: StateMachine): number {
  let count = 0;
  for (let index = log.firstIndex; index <= machine.appliedIndex(); index += 1) {
    const { type, payload } = log.entry(index);
    if (type === 'normal' && payload.length > 0) count += 1;
  }
  return count;
}

/** Runs until the write of that number, on either store, fails; gives how many were answered. */
async function runUntilWrite(stores: Stores, plan: CrashPlan, lastWrite: number): Promise<number> {
  const { commands, groupSize, lastWriteLands = false } = plan;
  const failing = { log: new FailingKv(stores.log), state: new FailingKv(stores.state) };
  for (const kv of [failing.log, failing.state]) {
    const count = (): number => failing.log.writeCount + failing.state.writeCount;
    kv.beforeWrite = () => {
      if (count() > lastWrite) throw new Error('crash');
    };
    kv.afterWrite = () => {
      if (lastWriteLands && count() === lastWrite) throw new Error('the sync failed');
    };
  }
  const { replica } = await openNode(failing, plan);
  let answered = 0;
  for (let at = 0; at < commands.length; at += groupSize) {
    const results = await Promise.allSettled(
      commands.slice(at, at + groupSize).map((each) => replica.propose(encodeCommand(each))),
    );
    answered += results.filter(({ status }) => status === 'fulfilled').length;
  }
  return answered;
}
