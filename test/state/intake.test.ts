// A state on its way in whose store fails, or that is given up while something of it is under way.

import t from 'tap';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import { systemSha256 } from '../../src/platform-node/hashes/system-sha256.ts';
import { SnapshotIntake } from '../../src/state/snapshot/snapshot-intake.ts';
import { FailingKv } from '../support/failing-kv.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { aRole } from '../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  MachineHarness,
  MemoryGenerations,
  replaceableMachine,
} from '../support/state-and-service/machine-harness.ts';

adoptSha256(systemSha256);

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A state of a few rows, in chunks: the second one holds them all. */
async function chunksOfSome(): Promise<readonly Uint8Array[]> {
  const sender = new MachineHarness(new MemoryKv());
  await sender.one(BUILTINS);
  for (let number = 1; number <= 3; number += 1) {
    await sender.one({ type: 'role.set', presence: 'create', role: aRole(number) });
  }
  const snapshot = sender.machine.snapshot();
  const chunks: Uint8Array[] = [];
  for await (const chunk of snapshot.chunks()) chunks.push(Uint8Array.from(chunk));
  await snapshot.close();
  return chunks;
}

/** Takes a state in; `log` has what happened to its store, in order. */
function anIntake({ isForRestore = false } = {}) {
  const kv = new FailingKv(new MemoryKv());
  const log: string[] = [];
  kv.afterWrite = () => void log.push('written');
  const intake = new SnapshotIntake({
    kv,
    generation: 1,
    reads: 99,
    isForRestore,
    onAdopt: () => void log.push('adopted'),
    onAbandon: async () => {
      log.push('abandoned');
      await kv.close();
    },
  });
  return { intake, kv, log };
}

t.test('intake: of which rows could not be written, is never whole', async (test) => {
  const [header, rows, trailer] = await chunksOfSome();
  for (const isForRestore of [false, true]) {
    const { intake, kv } = anIntake({ isForRestore });
    await intake.add(header!);
    kv.beforeWrite = () => Promise.reject(new Error('the disk is full'));
    await test.rejects(intake.add(rows!), /the disk is full/);
    kv.beforeWrite = () => undefined;
    await test.rejects(intake.add(trailer!), /the disk is full/, 'nothing more is taken');
    await test.rejects(intake.complete(), /the disk is full/);
    await test.rejects(intake.adopt(), { name: 'AssertionError' });
  }
});

t.test('intake: its store is let go of when nothing is written to it any more', async (test) => {
  const [header, rows, trailer] = await chunksOfSome();
  const { intake, kv, log } = anIntake();
  await intake.add(header!);
  let goOn: () => void = () => undefined;
  kv.beforeWrite = () => new Promise((resolve) => (goOn = resolve));
  const adding = intake.add(rows!);
  const behind = intake.add(trailer!);
  await turn();
  const abandoning = intake.abandon();
  await turn();
  test.same(log, [], 'it waits for what is under way');
  goOn();
  await adding;
  await test.rejects(behind, /was given up/);
  await abandoning;
  test.same(log, ['written', 'abandoned']);
});

t.test('intake: what is to be restored is read out, and is never the state', async (test) => {
  const { intake, log } = anIntake({ isForRestore: true });
  for (const chunk of await chunksOfSome()) await intake.add(chunk);
  await intake.complete();
  await test.rejects(intake.adopt(), { name: 'AssertionError' });
  test.notOk(log.includes('adopted'));
  await intake.abandon();
});

t.test('intake: given up while its last row is written, it is not whole', async (test) => {
  const chunks = await chunksOfSome();
  for (const isForRestore of [false, true]) {
    const { intake, log } = anIntake({ isForRestore });
    for (const chunk of chunks) await intake.add(chunk);
    const completing = intake.complete();
    await Promise.resolve().then(() => undefined);
    const abandoning = intake.abandon();
    await test.rejects(completing, /was given up/);
    await abandoning;
    test.equal(log.at(-1), 'abandoned');
    test.throws(() => intake.restoredRows(), { name: 'AssertionError' });
    await test.rejects(intake.adopt(), { name: 'AssertionError' });
    test.notOk(log.includes('adopted'));
  }
});

t.test(
  'install: a restore that comes when another one just gave way waits its turn',
  async (test) => {
    const { machine, generations } = replaceableMachine();
    // Whatever the moment in which it comes.
    for (let steps = 0; steps < 20; steps += 1) {
      const restoring = (await machine.beginRestore())!;
      const installing = machine.beginInstall();
      for (let step = 0; step < steps; step += 1) await undefined;
      test.equal(await machine.beginRestore(), undefined, `after ${steps} steps`);
      const intake = await installing;
      await test.rejects(restoring.complete(), /was given up/);
      await intake.abandon();
    }
    test.same([...generations.stores.keys()], [0]);
  },
);

t.test('install: a state that closes waits for what is being opened beside it', async (test) => {
  for (const begin of ['beginInstall', 'beginRestore'] as const) {
    const kv = new MemoryKv();
    const generations = new MemoryGenerations(kv);
    const { machine } = new MachineHarness(kv, { generations });
    const open = generations.open.bind(generations);
    let goOn: () => void = () => undefined;
    generations.open = async (number) => {
      await new Promise<void>((resolve) => (goOn = resolve));
      return open(number);
    };
    const refused = test.rejects(machine[begin](), /is closing/);
    await turn();
    let isClosed = false;
    const closing = machine.close().then(() => (isClosed = true));
    await turn();
    test.equal(isClosed, false, begin);
    goOn();
    await closing;
    test.same([...generations.stores.keys()], [0], 'nothing is left beside it');
    await refused;
    await test.rejects(machine[begin](), /is closing/);
    test.same([...generations.stores.keys()], [0]);
  }
});
