// Generations of the state on a real disk: which is opened, which is deleted, and when it is better to
// touch nothing. With a snapshot and a restore through LevelDB.

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { DurableLog, readGeneration } from '../../cluster/log/durable-log.ts';
import { nextEntry } from '../../cluster/log/log-entry.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import {
  dropOtherGenerations,
  generationsOf,
  requireLogOfState,
} from '../../src/node/generations.ts';
import type { Platform } from '../../src/node/platform.ts';
import { readSettings } from '../../src/node/settings/settings.ts';
import { openSystemPlatform } from '../../src/platform-node/system-platform.ts';
import { encodeCommand } from '../../src/state/commands/command-codec.ts';
import { StateMachine } from '../../src/state/machine.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { aCommand, aToken } from '../support/state-and-service/fixtures.ts';
import { BUILTINS, collect, MachineHarness } from '../support/state-and-service/machine-harness.ts';

interface Disk {
  readonly folder: string;
  readonly platform: Platform;
  /** Folders of databases. */
  databases(): readonly string[];
  open(name: 'log' | 'state', generation?: number): Promise<Kv>;
}

function diskOf(test: Test, name: string): Disk {
  const folder = join(test.testdir(), name);
  const flags = { 'data-dir': folder, 'ports-http': '0', 'log-level': 'error' };
  const settings = readSettings({ flags, files: [], environment: {} });
  const platform = openSystemPlatform(settings);
  const onFatal = (cause: Error): void => void test.fail(cause.message);
  return {
    folder,
    platform,
    databases: () => readdirSync(folder).filter((file) => /^(?:log|state)/.test(file)),
    open: (database, generation = 0) => platform.openKv(database, generation, onFatal),
  };
}

const fail = (cause: Error): void => void t.fail(cause.message);

/** A machine on what the disk has, with generations beside it. */
async function machineOn(
  { platform, open }: Disk,
  generation: number,
): Promise<MachineHarness<Kv>> {
  const kv = await open('state', generation);
  return new MachineHarness<Kv>(kv, { generations: generationsOf(platform, generation, fail) });
}

async function fill(harness: MachineHarness<Kv>, tokenCount: number): Promise<void> {
  await harness.one(BUILTINS);
  for (let from = 1; from <= tokenCount; from += 500) {
    const numbers = Array.from(
      { length: Math.min(500, tokenCount - from + 1) },
      (_, at) => from + at,
    );
    await harness.run(
      ...numbers.map((number) =>
        aCommand({ type: 'token.set', presence: 'create-drawn', token: aToken(number) }),
      ),
    );
  }
}

t.test(
  'generations: one after the other takes over on disk, and the old one goes',
  async (test) => {
    const sender = await machineOn(diskOf(test, 'sender'), 0);
    await fill(sender, 3000);
    const disk = diskOf(test, 'receiver');
    const receiver = await machineOn(disk, 0);
    await fill(receiver, 600);
    const list = receiver.machine.tokens({ kind: 'all' }, undefined, {})[Symbol.asyncIterator]();
    const first = await list.next();
    for (const generation of [1, 2]) {
      const intake = await receiver.machine.beginInstall();
      const snapshot = sender.machine.snapshot();
      for await (const chunk of snapshot.chunks()) await intake.add(chunk);
      await snapshot.close();
      test.match(await intake.complete(), { generation });
      await intake.adopt();
      test.same(receiver.machine.digests(), sender.machine.digests());
    }
    let count = (first.value as readonly unknown[]).length;
    for (let next = await list.next(); next.done !== true; next = await list.next()) {
      count += (next.value as readonly unknown[]).length;
    }
    test.equal(count, 601, 'a list that was begun on the first one is whole');
    await soon(() => disk.databases().join() === 'state-2');
    test.same(disk.databases(), ['state-2']);
    const all = await collect(receiver.machine.tokens({ kind: 'all' }, undefined, {}));
    test.equal(all.length, 3001);
    await receiver.machine.close();
    await receiver.machine.close();
    const again = await machineOn(disk, 2);
    test.same(again.machine.digests(), sender.machine.digests(), 'it is there after a restart');
    await again.machine.close();
    await sender.machine.close();
  },
);

/** Waits for what happens in the background; the test says what came of it. */
async function soon(isSo: () => boolean): Promise<void> {
  for (let turn = 0; turn < 2_400 && !isSo(); turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

t.test('generations: a start keeps the valid one and deletes what is left over', async (test) => {
  const disk = diskOf(test, 'left-over');
  const machine = (await machineOn(disk, 0)).machine;
  const logKv = await disk.open('log');
  await requireLogOfState(disk.platform, logKv);
  const log = await DurableLog.open(logKv, undefined);
  const entry = nextEntry(
    { index: 0, hash: new Uint8Array(32) },
    1,
    encodeCommand(aCommand(BUILTINS)),
  );
  await log.write({ entries: [entry], hardState: { term: 1, vote: 0, commit: 1 } });
  await machine.apply([entry]);
  await machine.close();
  mkdirSync(join(disk.folder, 'state-1', 'level'), { recursive: true });
  writeFileSync(join(disk.folder, 'state-1', 'level', '000003.log'), 'half of something');
  await (await disk.open('state', 12)).close();
  for (const other of ['state-x', 'state-01', 'state-0', 'states', 'state-1.copy']) {
    mkdirSync(join(disk.folder, other));
  }
  test.same(await disk.platform.kvGenerations('state'), [0, 1, 12]);
  test.equal(readGeneration(logKv), 0);
  await requireLogOfState(disk.platform, logKv);
  const notOfOneNode = () => DurableLog.open(logKv, { ...entry, index: 2 });
  await test.rejects(dropOtherGenerations(disk.platform, 0, notOfOneNode), { name: 'LogDamage' });
  test.same(await disk.platform.kvGenerations('state'), [0, 1, 12], 'that may be all that is left');
  await dropOtherGenerations(disk.platform, 0, () => DurableLog.open(logKv, entry));
  test.same(disk.databases(), [
    'log',
    'state',
    'state-0',
    'state-01',
    'state-1.copy',
    'state-x',
    'states',
  ]);
  await disk.platform.dropKv('state', 5);
  await logKv.close();
});

t.test('generations: without the log that names the valid one, none is deleted', async (test) => {
  const disk = diskOf(test, 'lost-log');
  await (await disk.open('state', 3)).close();
  const logKv = await disk.open('log');
  await test.rejects(requireLogOfState(disk.platform, logKv), {
    message: /the data folder has state-3, but its log is gone.*move the folder away/,
  });
  test.ok(existsSync(join(disk.folder, 'state-3', 'level')));
  await logKv.close();
});

t.test(
  'generations: where the one that the log names is not there, none is deleted',
  async (test) => {
    const disk = diskOf(test, 'old-log');
    await (await disk.open('state', 1)).close();
    const logKv = await disk.open('log');
    // A copy of the log from before the state was replaced: all of its entries fit an empty state.
    const entry = nextEntry({ index: 0, hash: new Uint8Array(32) }, 1, Uint8Array.of(1));
    const log = await DurableLog.open(logKv, undefined);
    await log.write({ entries: [entry], hardState: { term: 1, vote: 0, commit: 1 } });
    await test.rejects(requireLogOfState(disk.platform, logKv), {
      message: /has state-1, and its log names state, which is not there: .*not of one copy/,
    });
    test.same(await disk.platform.kvGenerations('state'), [1]);
    await logKv.close();
  },
);

t.test(
  'generations: a disk that fails under one that is taken in fails nothing else',
  async (test) => {
    const failures: string[] = [];
    const openedWith: ((cause: Error) => void)[] = [];
    const platform = {
      dropKv: () => Promise.resolve(),
      kvGenerations: () => Promise.resolve([]),
      openKv: (_name: string, _generation: number, onFatal: (cause: Error) => void) => {
        openedWith.push(onFatal);
        return Promise.resolve({} as Kv);
      },
      logger: { error: (_fields: object, says: string) => failures.push(says) },
    };
    const onFatal = (cause: Error): void => void failures.push(`fatal: ${cause.message}`);
    const generations = generationsOf(platform as never, 0, onFatal);
    await generations.open(1);
    await generations.open(2);
    const [first, second] = openedWith;
    first!(new Error('disk full'));
    test.same(failures, ['a state that is taken in cannot be kept']);
    generations.adopted(2);
    second!(new Error('bad sector'));
    test.equal(failures.at(-1), 'fatal: bad sector');
  },
);

t.test('generations: a new one is empty, whatever was there', async (test) => {
  const disk = diskOf(test, 'fresh');
  const generations = generationsOf(disk.platform, 0, fail);
  const old = await disk.open('state', 1);
  await old.write([{ type: 'put', key: Uint8Array.of(1), value: Uint8Array.of(1) }]);
  await old.close();
  const fresh = await generations.open(1);
  test.equal(fresh.get(Uint8Array.of(1)), undefined);
  const machine = StateMachine.open(fresh, { clock: new FakeClock() });
  test.equal(machine.appliedEntry, undefined);
  await generations.discard(1, fresh);
  test.same(disk.databases(), []);
  await generations.discard(1, fresh);
});
