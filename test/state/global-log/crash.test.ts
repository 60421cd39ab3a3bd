// Crashes with a global log that has begun: in the primary, in a datacenter that follows entry by entry, and
// in the middle of a snapshot that takes the place of its state. Whichever write was the last one, starting
// again leads to the same objects, the same entries and the same place in the log.

import fc from 'fast-check';
import t from 'tap';
import type { Change, ChangeOf, Command } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import type { StateMachine } from '../../../src/state/machine.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aCommand, aPolicy, aToken } from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  collect,
  MachineHarness,
} from '../../support/state-and-service/machine-harness.ts';
import { crashAtEachWrite } from '../crashing-node.ts';
import { history } from '../histories.ts';

const BEGIN: ChangeOf<'global-log.begin'> = {
  type: 'global-log.begin',
  datacenter: 'dc1',
  primary: 'dc1',
  isWitness: false,
};
const ENTRIES_BYTES_MAX = 1 << 22;

/** A machine in memory that remembers what it was told. */
class Recorded extends MachineHarness {
  readonly commands: Command[] = [];

  constructor() {
    super(new MemoryKv());
  }

  override run(...commands: readonly Command[]): Promise<readonly Outcome[]> {
    this.commands.push(...commands);
    return super.run(...commands);
  }
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

async function stateOf(machine: StateMachine): Promise<unknown> {
  const { first } = machine.keptEntries()!;
  const entries = (await machine.globalEntries(first - 1, ENTRIES_BYTES_MAX)) ?? [];
  const tokens = await collect(machine.tokens({ kind: 'all' }, undefined, {}));
  const replication = JSON.stringify(machine.replication(), (_, each: unknown) =>
    each instanceof Uint8Array ? hex(each) : each,
  );
  return {
    replication,
    entries: entries.map(hex),
    tokens: tokens.map(({ accessorId, modifyIndex }) => [accessorId, modifyIndex]),
    digests: machine.digests(),
    index: machine.index(),
    position: machine.position(),
  };
}

async function follow(from: MachineHarness, to: MachineHarness): Promise<Outcome> {
  const cursor = to.machine.cursor()!;
  const entries = (await from.machine.globalEntries(cursor.seq, ENTRIES_BYTES_MAX)) ?? [];
  const head = from.machine.cursor()!;
  const change = { epoch: head.epoch, from: cursor, entries, to: head };
  return to.one({ type: 'global-log.apply', ...change });
}

const localToken = (number: number): Change => ({
  type: 'token.set',
  presence: 'create',
  token: aToken(number, { local: true }),
});

t.test('crash in the primary: no entry is missing, doubled or another one', async (test) => {
  const [drawn] = fc.sample(history, { numRuns: 1, seed: 7 });
  const trim = aCommand({ type: 'global-log.trim', upTo: 5 });
  const commands = [aCommand(BEGIN), ...drawn!.slice(0, 40), trim, ...drawn!.slice(40)];
  const whole = new MachineHarness(new MemoryKv());
  for (const each of commands) await whole.run(each);
  test.ok(whole.machine.cursor()!.seq > 10, 'there are entries');
  const expected = await stateOf(whole.machine);
  for (const batchBytes of [1, 1 << 20]) {
    const group = { groupSize: 3, batchBytes, lastWriteLands: batchBytes > 1 };
    const plan = { commands, ...group, stateOf, expected };
    const crashes = await crashAtEachWrite(test, plan);
    test.ok(crashes > 20, `${crashes} crashes were tried`);
  }
});

t.test('crash in a datacenter that follows: each entry is taken exactly once', async (test) => {
  const [drawn] = fc.sample(history, { numRuns: 1, seed: 7 });
  const dc1 = new MachineHarness(new MemoryKv());
  await dc1.one(BEGIN);
  await dc1.one(BUILTINS);
  const dc2 = new Recorded();
  await dc2.one({ ...BEGIN, datacenter: 'dc2' });
  await follow(dc1, dc2);
  for (const [place, each] of drawn!.slice(0, 40).entries()) {
    await dc1.run(each);
    if (place % 4 === 3) await follow(dc1, dc2);
    if (place % 8 === 5) await dc2.one(localToken(100 + place));
  }
  await follow(dc1, dc2);
  test.same(dc2.machine.cursor(), dc1.machine.cursor());
  const expected = await stateOf(dc2.machine);
  const { commands } = dc2;
  for (const [groupSize, batchBytes] of [
    [3, 1 << 20],
    [4, 1],
  ] as const) {
    const lastWriteLands = groupSize === 3;
    const group = { groupSize, batchBytes, repeated: 1 };
    const plan = { commands, ...group, stateOf, expected, lastWriteLands };
    const crashes = await crashAtEachWrite(test, plan);
    test.ok(crashes > 10, `${crashes} crashes were tried`);
  }
});

t.test('crash while a snapshot comes in: the state is the old one or the new one', async (test) => {
  const dc1 = new MachineHarness(new MemoryKv());
  await dc1.one(BEGIN);
  await dc1.one(BUILTINS);
  const dc2 = new Recorded();
  await dc2.one({ ...BEGIN, datacenter: 'dc2' });
  await follow(dc1, dc2);
  for (const number of [60, 61, 62]) await dc2.one(localToken(number));
  for (let each = 1; each < 30; each += 1) {
    await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) });
    await dc1.one({ type: 'token.set', presence: 'create', token: aToken(each) });
  }
  await dc1.one({ type: 'global-log.trim', upTo: 50 });
  const snapshot = (await dc1.machine.globalSnapshot())!;
  await dc2.one({ type: 'global-snapshot.begin', id: 'one', header: snapshot.header });
  let number = 0;
  for await (const rows of snapshot.pieces()) {
    number += 1;
    await dc2.one({ type: 'global-snapshot.chunk', id: 'one', number, rows });
    await dc2.one(localToken(70 + number));
  }
  await snapshot.close();
  await dc2.one({ type: 'global-snapshot.carry', id: 'one', number: 1, keys: [], isLast: false });
  await dc2.one({ type: 'token.delete', accessorId: aToken(61).accessorId });
  const keys = await dc2.machine.localRows(undefined, 1_000);
  await dc2.one({ type: 'global-snapshot.carry', id: 'one', number: 2, keys, isLast: true });
  await dc2.one(localToken(80));
  const before = dc2.machine.cursor()!;
  await dc2.one({ type: 'global-snapshot.commit', id: 'one' });
  test.not(dc2.machine.cursor()!.seq, before.seq, 'the snapshot took its place');
  await dc2.one(localToken(81));
  await dc1.one({ type: 'policy.delete', id: aPolicy(3).id });
  await follow(dc1, dc2);
  test.equal(dc2.machine.digests().global, dc1.machine.digests().global);
  const expected = await stateOf(dc2.machine);
  for (const [groupSize, batchBytes] of [
    [2, 1 << 20],
    [3, 1],
  ] as const) {
    const lastWriteLands = batchBytes === 1;
    const group = { groupSize, batchBytes, lastWriteLands };
    const plan = { commands: dc2.commands, ...group, stateOf, expected };
    const crashes = await crashAtEachWrite(test, plan);
    test.ok(crashes > 10, `${crashes} crashes were tried`);
  }
});
