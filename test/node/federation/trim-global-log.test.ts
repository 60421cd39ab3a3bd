// What may go of the global log goes, however much there is before it that nobody wants.

import t from 'tap';
import { trimGlobalLog } from '../../../src/node/federation/ports/trim-global-log.ts';
import type { Change, Command } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { archived, commandsOf, furnished } from '../../state/archives/restoring.ts';
import { aCommand, aPolicy } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, replaceableMachine } from '../../support/state-and-service/machine-harness.ts';

async function aPrimary() {
  const harness = replaceableMachine();
  const begin = { datacenter: 'dc1', primary: 'dc1', isWitness: false };
  await harness.one({ type: 'global-log.begin', ...begin });
  await harness.one(BUILTINS);
  return harness;
}

t.test('trim: what nobody wants goes where nothing else does', async (test) => {
  const harness = await aPrimary();
  const { machine } = harness;
  test.equal(machine.unusedTimeMs(), undefined);
  for (const command of await commandsOf(await archived(await furnished()))) {
    await harness.run(command);
  }
  const { unused, first } = machine.replication()!;
  test.ok(unused.length > 0);
  test.ok(machine.unusedTimeMs()! > 0);
  const deps = { machine, isReigning: () => true, wallMs: () => harness.clock.wallMs() };
  const propose = async (command: Command) => (await harness.run(command))[0]!;
  await trimGlobalLog({ ...deps, propose }, 0);
  test.same(machine.replication()!.unused, []);
  test.equal(machine.replication()!.first, first, 'and what is kept stays');
  test.equal(machine.unusedTimeMs(), undefined);
});

t.test('trim: what a restore has ended does not keep the log from being trimmed', async (test) => {
  const harness = await aPrimary();
  const { machine } = harness;
  const write = async (count: number): Promise<void> => {
    const policy: Change = { type: 'policy.set', presence: 'create', policy: aPolicy(900) };
    if (machine.policy(aPolicy(900).id) === undefined) await harness.one(policy);
    const change: Change = { type: 'policy.set', presence: 'update', policy: aPolicy(900) };
    await harness.run(...Array.from({ length: count }, () => aCommand(change)));
  };
  await write(2_500);
  for (const command of await commandsOf(await archived(await furnished()))) {
    await harness.run(command);
  }
  await write(300);
  const { seq } = machine.replication()!.cursor;
  test.ok(machine.replication()!.unused.length > 0);
  const deps = { machine, isReigning: () => true, wallMs: () => harness.clock.wallMs() };
  await trimGlobalLog(
    { ...deps, propose: async (command) => (await harness.run(command))[0]! },
    seq - 100,
  );
  const { first, unused } = machine.replication()!;
  test.same([first, unused], [seq - 99, []]);
});

t.test('trim: of many entries some go at a time', async (test) => {
  const harness = await aPrimary();
  const { machine } = harness;
  await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(900) });
  const change: Change = { type: 'policy.set', presence: 'update', policy: aPolicy(900) };
  await harness.run(...Array.from({ length: 400 }, () => aCommand(change)));
  const { first } = machine.replication()!;
  const ends: number[] = [];
  const propose = async (command: Command): Promise<Outcome> => {
    ends.push((command.change as { readonly upTo: number }).upTo - first + 1);
    return (await harness.run(command))[0]!;
  };
  const deps = { machine, isReigning: () => true, wallMs: () => harness.clock.wallMs(), propose };
  await trimGlobalLog(deps, first + 299);
  test.same(ends, [128, 256, 300]);
  test.equal(machine.replication()!.first, first + 300);
});

t.test('trim: of what is long little goes at a time', async (test) => {
  const harness = await aPrimary();
  const { machine } = harness;
  const { seq: before } = machine.replication()!.cursor;
  for (let each = 1; each <= 6; each += 1) {
    const policy = { ...aPolicy(each), rules: '#'.repeat(150_000) };
    await harness.one({ type: 'policy.set', presence: 'create', policy });
  }
  const { first, keptBytes } = machine.replication()!;
  test.equal(machine.keptSizeAfter(first - 1), keptBytes);
  const ends: number[] = [];
  const propose = async (command: Command): Promise<Outcome> => {
    ends.push((command.change as { readonly upTo: number }).upTo - before);
    return (await harness.run(command))[0]!;
  };
  const deps = { machine, isReigning: () => true, wallMs: () => harness.clock.wallMs(), propose };
  await trimGlobalLog(deps, before + 5);
  test.same(ends, [2, 4, 5]);
  test.equal(machine.replication()!.first, before + 6);
});
