// Taking the state of a snapshot in beside the present one: which of the two is there, at any moment, behind any crash.

import t from 'tap';
import { DurableLog, readGeneration } from '../../cluster/log/durable-log.ts';
import { LOG_ORIGIN, type LogEntry, nextEntry } from '../../cluster/log/log-entry.ts';
import { DEFAULT_NAMESPACE } from '../../src/acl/ids.ts';
import { encodeCommand } from '../../src/state/commands/command-codec.ts';
import { StateMachine } from '../../src/state/machine.ts';
import { READERS_GRACE_MS } from '../../src/state/rows/store/state-store.ts';
import type { SnapshotIntake } from '../../src/state/snapshot/snapshot-intake.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import {
  aCommand,
  accessorNumbered,
  aPolicy,
  aRole,
  aToken,
  policyIdNumbered,
  roleIdNumbered,
} from '../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  MemoryGenerations,
  replaceableMachine,
} from '../support/state-and-service/machine-harness.ts';
import { requireSame } from './rows-from-nothing.ts';
import { chunksOf, dumpOf, factsOf, installed, largeMachine, turn } from './snapshot-machines.ts';

t.test('install: what is refused or given up leaves everything as it was', async (test) => {
  const chunks = await chunksOf((await largeMachine(50)).machine.snapshot());
  const receiver = replaceableMachine();
  await receiver.one(BUILTINS);
  const [facts, dump] = [factsOf(receiver.machine), receiver.kv.dump()];
  const damaged = await receiver.machine.beginInstall();
  for (const chunk of chunks.slice(0, 2)) await damaged.add(chunk);
  await test.rejects(damaged.add(chunks[0]!), { name: 'SnapshotDamage' });
  await test.rejects(damaged.add(chunks[2]!), { name: 'SnapshotDamage' }, 'and nothing more');
  await test.rejects(damaged.complete(), { name: 'SnapshotDamage' });
  await test.rejects(damaged.adopt(), { name: 'AssertionError' });
  await test.rejects(receiver.machine.beginInstall(), { name: 'AssertionError' }, 'one at a time');
  await damaged.abandon();
  await damaged.abandon();
  test.same([...receiver.generations.stores.keys()], [0]);

  const cutOff = await receiver.machine.beginInstall();
  for (const chunk of chunks.slice(0, -1)) await cutOff.add(chunk);
  await test.rejects(cutOff.complete(), /before its own end/);
  const abandoning = cutOff.abandon();
  const whole = await receiver.machine.beginInstall();
  await abandoning;
  for (const chunk of chunks) await whole.add(chunk);
  test.match(await whole.complete(), { generation: 1, appliedEntry: { index: 55 } });
  test.same([factsOf(receiver.machine), receiver.kv.dump()], [facts, dump], 'nothing has changed');
  await receiver.one({ type: 'role.set', presence: 'create', role: aRole(9) });
  await whole.abandon();
  test.equal(receiver.machine.role(roleIdNumbered(9))?.name, 'role-9', 'the old one goes on');
  test.same([...receiver.generations.stores.keys()], [0]);
});

t.test('install: the new state is served and written to from one moment on', async (test) => {
  const sender = await largeMachine(600);
  await sender.one({ type: 'policy.set', presence: 'update', policy: aPolicy(1, { name: 'new' }) });
  const begin = { type: 'global-log.begin', datacenter: 'dc1', primary: 'dc1' } as const;
  await sender.one({ ...begin, isWitness: false });
  const chunks = await chunksOf(sender.machine.snapshot());
  const receiver = replaceableMachine();
  await receiver.one(BUILTINS);
  await receiver.one({
    type: 'policy.set',
    presence: 'create',
    policy: aPolicy(1, { name: 'old' }),
  });
  const oldToken = aToken(1, { description: 'old' });
  await receiver.one({ type: 'token.set', presence: 'create', token: oldToken });
  const { machine, clock } = receiver;
  test.equal(machine.policy(policyIdNumbered(1))?.name, 'old', 'kept decoded');
  test.equal(machine.replication(), undefined);
  for (const what of ['read', 'kept decoded']) {
    test.equal(machine.token(accessorNumbered(1))?.description, 'old', what);
  }
  const heard: unknown[] = [];
  machine.watch.onApplied(({ kind }) => {
    const [token, policy] = [
      machine.token(accessorNumbered(1)),
      machine.policy(policyIdNumbered(1)),
    ];
    heard.push([kind, policy?.name, token?.description]);
  });
  const moves: unknown[] = [];
  machine.onGlobalLogMoved(() => moves.push(machine.replication()));
  let wokenCount = 0;
  for (const target of [{ table: 'roles' }, { table: 'tokens', object: 'no such' }] as const) {
    const waiting = machine.watch.waitFor(target, new AbortController().signal);
    waiting.then(() => (wokenCount += 1)).catch(() => test.fail());
  }
  const intake = await machine.beginInstall();
  for (const chunk of chunks) await intake.add(chunk);
  await intake.complete();
  test.equal(machine.policyByName(DEFAULT_NAMESPACE, 'old')?.name, 'old');
  const adopting = intake.adopt();
  test.same(heard, [['replaced', 'new', 'token 1']], 'whoever keeps something hears of it at once');
  test.same(moves, [sender.machine.replication()], 'and whoever follows the log of all');
  test.same(receiver.generations.adoptions, [1], 'and whoever opens it after a restart');
  test.equal(machine.policyByName(DEFAULT_NAMESPACE, 'old'), undefined);
  test.same(factsOf(machine), factsOf(sender.machine));
  test.same(machine.replication(), sender.machine.replication());
  await adopting;
  await intake.abandon();
  clock.advance(0);
  await turn();
  test.equal(wokenCount, 2, 'all who wait look again');
  test.same([...receiver.generations.stores.keys()], [1], 'the old store is gone');
  receiver.followMachine();
  await receiver.one({ type: 'policy.delete', id: policyIdNumbered(1) });
  await sender.one({ type: 'policy.delete', id: policyIdNumbered(1) });
  test.same(dumpOf(receiver, 1), dumpOf(sender, 0));
  await installed(chunks, receiver);
  await turn();
  test.same([...receiver.generations.stores.keys()], [2], 'and so it goes on');
});

t.test('install: nothing takes over while entries are applied', async (test) => {
  const chunks = await chunksOf((await largeMachine(5)).machine.snapshot());
  const receiver = replaceableMachine();
  const intake = await receiver.machine.beginInstall();
  for (const chunk of chunks) await intake.add(chunk);
  await intake.complete();
  const applying = receiver.one(BUILTINS);
  await test.rejects(intake.adopt(), /nothing is applied while another state takes over/);
  await applying;
});

t.test('readers: a list on a replaced state ends whole, or is refused', async (test) => {
  const chunks = await chunksOf((await largeMachine(5)).machine.snapshot());
  const scope = { kind: 'all' } as const;
  const begun = async (listed: number) => {
    const receiver = await largeMachine(listed);
    const list = receiver.machine.tokens(scope, undefined, {})[Symbol.asyncIterator]();
    const filter = { by: 'policy', id: policyIdNumbered(1) } as const;
    const joined = receiver.machine.tokens(scope, filter, {})[Symbol.asyncIterator]();
    const first = [await list.next(), await joined.next()];
    await installed(chunks, receiver);
    await turn();
    test.equal(receiver.generations.stores.size, 2, 'the old store waits for its readers');
    test.equal(receiver.machine.totals().tokens, 6, 'new readers have the new state');
    return { receiver, list, joined, first };
  };
  const patient = await begun(1000);
  const [all, some] = await Promise.all([restOf(patient.list), restOf(patient.joined)]);
  test.equal(all + sizeOf(patient.first[0]!), 1001);
  test.equal(some + sizeOf(patient.first[1]!), 333);
  await turn();
  test.same([...patient.receiver.generations.stores.keys()], [1], 'then it goes');

  const slow = await begun(1000);
  slow.receiver.clock.advance(READERS_GRACE_MS);
  await turn();
  test.same([...slow.receiver.generations.stores.keys()], [1]);
  await test.rejects(restOf(slow.list), { name: 'AclError', code: 'unavailable' });
  await test.rejects(restOf(slow.joined), { name: 'AclError', code: 'unavailable' });

  const closing = await begun(1000);
  const snapshot = closing.receiver.machine.snapshot();
  await closing.receiver.machine.close();
  await test.rejects(restOf(closing.list), { code: 'unavailable' });
  await snapshot.close();
  await closing.receiver.machine.close();
});

type Slice = IteratorResult<readonly unknown[]>;
const sizeOf = (slice: Slice): number => (slice.done === true ? 0 : slice.value.length);

async function restOf(list: AsyncIterator<readonly unknown[]>): Promise<number> {
  let count = 0;
  for (let next = await list.next(); next.done !== true; next = await list.next()) {
    count += next.value.length;
  }
  return count;
}

interface Disk {
  readonly log: MemoryKv;
  readonly states: ReadonlyMap<number, MemoryKv>;
}

/** Opens what is on the disk as a node does. */
async function openNode(disk: Disk) {
  const generation = readGeneration(disk.log);
  const kv = disk.states.get(generation)!;
  const machine = StateMachine.open(kv, { clock: new FakeClock() });
  const log = await DurableLog.open(disk.log, machine.appliedEntry);
  return { generation, machine, log };
}

t.test(
  'crash: whichever write of an install is the last one, old or new is there whole',
  async (test) => {
    const sender = await largeMachine(700);
    const chunks = await chunksOf(sender.machine.snapshot());
    const seen = { old: 0, new: 0 };
    for (let lastWrite = 0; ; lastWrite += 1) {
      const disk = await diskOfFollower();
      const before = factsOf((await openNode(disk)).machine);
      const { ended, states } = await installUntilWrite(disk, chunks, lastWrite);
      const after = await openNode({ log: disk.log.reopened(), states: reopened(states) });
      const expected = after.generation === 0 ? before : factsOf(sender.machine);
      requireSame(`after write ${lastWrite}`, factsOf(after.machine), expected);
      test.equal(after.log.last.index, after.machine.appliedIndex());
      seen[after.generation === 0 ? 'old' : 'new'] += 1;
      if (ended) break;
    }
    test.ok(seen.old > 5 && seen.new === 1, JSON.stringify(seen));
  },
);

/** A follower that has applied two entries of a log of its own. */
async function diskOfFollower(): Promise<Disk> {
  const [logKv, stateKv] = [new MemoryKv(), new MemoryKv()];
  const log = await DurableLog.open(logKv, undefined);
  const machine = StateMachine.open(stateKv, { clock: new FakeClock() });
  const entries: LogEntry[] = [];
  for (const payload of [encodeCommand(aCommand(BUILTINS)), new Uint8Array()]) {
    entries.push(nextEntry(entries.at(-1) ?? LOG_ORIGIN, 1, payload));
  }
  await log.write({ entries, hardState: { term: 1, vote: 0, commit: 2 } });
  await machine.apply(entries);
  return { log: logKv, states: new Map([[0, stateKv]]) };
}

/** Installs as a replica does, until the write of that number on any store fails. */
async function installUntilWrite(disk: Disk, chunks: readonly Uint8Array[], lastWrite: number) {
  let writeCount = 0;
  const failing = (kv: FailingKv): FailingKv => {
    kv.beforeWrite = () => {
      writeCount += 1;
      if (writeCount > lastWrite) throw new Error('crash');
    };
    return kv;
  };
  const generations = new MemoryGenerations(disk.states.get(0)!, {
    wrap: (kv) => failing(new FailingKv(kv)),
  });
  const machine = StateMachine.open(disk.states.get(0)!, { clock: new FakeClock(), generations });
  const log = await DurableLog.open(failing(new FailingKv(disk.log)), machine.appliedEntry);
  try {
    const intake = await machine.beginInstall();
    await install(intake, chunks, log);
  } catch (error) {
    if ((error as Error).message !== 'crash') throw error;
    return { ended: false, states: generations.stores };
  }
  await turn();
  return { ended: true, states: generations.stores };
}

async function install(
  intake: SnapshotIntake,
  chunks: readonly Uint8Array[],
  log: DurableLog,
): Promise<void> {
  for (const chunk of chunks) await intake.add(chunk);
  const { appliedEntry, generation } = await intake.complete();
  const hardState = { term: 1, vote: 0, commit: appliedEntry.index };
  await log.reset({ start: appliedEntry, hardState, generation });
  await intake.adopt();
}

const reopened = (states: ReadonlyMap<number, MemoryKv>): ReadonlyMap<number, MemoryKv> =>
  new Map([...states].map(([generation, kv]) => [generation, kv.reopened()]));
