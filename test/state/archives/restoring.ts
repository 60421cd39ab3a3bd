// What tests of archives and restores stand on: servers that apply one log, a state with something of
// everything, and the way from one to the other.

import type { Logger } from '../../../cluster/platform/logger.ts';
import { DEFAULT_NAMESPACE } from '../../../src/acl/ids.ts';
import { openArchives } from '../../../src/service/operators/archives.ts';
import type { Archives } from '../../../src/service/operators/operator-port.ts';
import type { Change, Command } from '../../../src/state/commands/commands.ts';
import { FIRST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import type { StateMachine } from '../../../src/state/machine.ts';
import { SWEEP_PAUSE_MS } from '../../../src/state/rows/store/keyspace-sweeper.ts';
import { FakeRandom } from '../../support/fake-random.ts';
import type { MemoryKv } from '../../support/memory-kv.ts';
import {
  aCommand,
  accessorNumbered,
  anAuthMethod,
  aPolicy,
  aRole,
  aToken,
  FIXTURE_TIME_MS,
  policyIdNumbered,
} from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  collect,
  type MachineHarness,
  orphansIn,
  replaceableMachine,
} from '../../support/state-and-service/machine-harness.ts';
export type Server = ReturnType<typeof replaceableMachine>;
export type Propose = (command: Command) => Promise<Outcome>;

const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Like openAt, but what would be missing in the states made up here is left missing. */
export function archivesOf(server: Server, propose: Propose): Archives {
  const done: Outcome = {
    kind: 'applied',
    answer: { type: 'done' },
    index: 0,
    position: { epoch: 1, seq: 0 },
    replayed: false,
  };
  return openAt(server, (command) =>
    command.change.type === 'ensure-builtins' ? Promise.resolve(done) : propose(command),
  );
}

/** What archives need at a server; its commands go to `propose`. */
export function openAt(
  { machine, clock }: Server,
  propose: Propose,
  logger: Logger = SILENT,
): Archives {
  return openArchives({
    machine,
    view: machine,
    propose,
    reign: () => 1,
    clock,
    random: new FakeRandom(),
    logger,
    metrics: { count: () => undefined },
    settings: {
      datacenter: 'dc1',
      initialManagementSecret: undefined,
      leaderWaitMs: 7_000,
    } as never,
    clusterId: () => 'a-cluster',
    release: '1.2.3',
  });
}

type Step = Command | Uint8Array;

/** Servers that apply the same log; each groups its entries in its own way. */
export class Group {
  readonly leader = replaceableMachine();
  readonly follower = replaceableMachine();
  /** Commands, and records of the group. */
  readonly steps: Step[] = [];
  #followedCount = 0;
  #applying: Promise<unknown> = Promise.resolve();

  readonly propose: Propose = async (command) => {
    this.steps.push(command);
    const applied = this.#applying.then(() => this.leader.run(command));
    this.#applying = applied;
    const [outcome] = await applied;
    return outcome!;
  };

  readonly archives = archivesOf(this.leader, (command) => this.propose(command));

  one(change: Change): Promise<Outcome> {
    return this.propose(aCommand(change));
  }

  async group(record: Uint8Array): Promise<void> {
    this.steps.push(record);
    await this.leader.group(record);
  }

  /** The follower applies all that the leader did, as many entries at a time as it can. */
  async catchUp(server: Server = this.follower): Promise<void> {
    const steps = this.steps.slice(this.#followedCount);
    this.#followedCount = this.steps.length;
    await applyAll(server, steps);
  }
}

async function applyAll(server: MachineHarness, steps: readonly Step[]): Promise<void> {
  let commands: Command[] = [];
  for (const step of steps) {
    if (!(step instanceof Uint8Array)) {
      commands.push(step);
      continue;
    }
    await server.run(...commands);
    await server.group(step);
    commands = [];
  }
  await server.run(...commands);
}

export async function archived({ machine, clock }: Server): Promise<Uint8Array> {
  const saved = archivesOf({ machine, clock } as Server, () => Promise.reject(new Error())).save();
  const parts: Uint8Array[] = [];
  for await (const part of saved.chunks()) parts.push(part);
  await saved.close();
  return Buffer.concat(parts);
}

export const nobodyMinds = (): void => undefined;

export async function restore(
  archives: Archives,
  archive: Uint8Array,
  requireAllowed: () => void = nobodyMinds,
): Promise<number> {
  const intake = await archives.beginRestore(requireAllowed);
  try {
    for (let at = 0; at < archive.length; at += 10_007) {
      await intake.add(archive.subarray(at, at + 10_007));
    }
    return (await intake.finish()).index;
  } finally {
    await intake.abandon();
  }
}

/** The rows of a machine's state under their own keys, wherever it has them: as a snapshot brings them. */
export async function plainStore(
  machine: StateMachine,
): Promise<{ kv: MemoryKv; machine: StateMachine }> {
  const receiver = replaceableMachine();
  const intake = await receiver.machine.beginInstall();
  const snapshot = machine.snapshot();
  for await (const chunk of snapshot.chunks()) await intake.add(chunk);
  await snapshot.close();
  await intake.complete();
  await intake.adopt();
  await turn();
  return { kv: receiver.generations.stores.get(1)!, machine: receiver.machine };
}

export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Lets time pass until nothing is left to be deleted. */
export async function swept({ clock, kv }: Server): Promise<void> {
  for (let rounds = 0; rounds < 200; rounds += 1) {
    clock.advance(SWEEP_PAUSE_MS);
    for (let turns = 0; turns < 4; turns += 1) await turn();
    if (clock.pendingCount === 0) return;
  }
  throw new Error(`${kv.dump().length} rows, and still something to delete`);
}

const PASSING_KINDS = /^(?:01|46|47|50|51|5a|5b|64|65)/;
/** The rows that a restore brings back, as text. */
export const restoredRows = (kv: MemoryKv): readonly string[] =>
  kv.dump().filter((row) => !PASSING_KINDS.test(row));

/** A state with something of everything, and with something under way. */
export async function furnished(): Promise<Server> {
  const server = replaceableMachine();
  await server.one(BUILTINS);
  await server.group(Buffer.from('the group of then'));
  for (let number = 1; number <= 3; number += 1) {
    const policy = aPolicy(number, { rules: `# ${'x'.repeat(50_000)}` });
    await server.one({ type: 'policy.set', presence: 'create', policy });
  }
  await server.one({ type: 'role.set', presence: 'create', role: aRole(1) });
  await server.one({ type: 'bootstrap', token: aToken(1), resetIndex: undefined });
  await server.one({ type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') });
  for (let number = 2; number <= 40; number += 1) {
    const token = aToken(number, { policies: [policyIdNumbered(1)], local: number % 3 === 0 });
    await server.one({ type: 'token.set', presence: 'create', token });
  }
  const request = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(2) };
  await server.one({ type: 'token.delete', accessorId: accessorNumbered(40) }, { request });
  const login = { key: 'state', value: Uint8Array.of(1), expiresMs: FIXTURE_TIME_MS + 1000 };
  await server.one({ type: 'pending-login.set', ...login });
  return server;
}

/** What lists of several kinds give: by index rows, by names, through a snapshot. */
export async function namesOf(machine: StateMachine): Promise<unknown> {
  const scope = { kind: 'all' } as const;
  const ofDefault = { kind: 'one', name: DEFAULT_NAMESPACE } as const;
  return [
    (await collect(machine.tokens(scope, undefined, {}))).map(({ accessorId }) => accessorId),
    (await collect(machine.tokens(ofDefault, undefined, {}))).map(({ secretId }) => secretId),
    (await collect(machine.policies(ofDefault, {}))).map(({ name }) => name),
    (await collect(machine.roles(scope, policyIdNumbered(1), {}))).map(({ id }) => id),
    await orphansIn(machine),
    machine.counts(DEFAULT_NAMESPACE),
  ];
}

/** The commands of a restore of `archive`, as the leader of a datacenter of that level would propose them. */
export async function commandsOf(
  archive: Uint8Array,
  level: number = FIRST_LEVEL,
): Promise<readonly Command[]> {
  const group = new Group();
  await group.one(BUILTINS);
  await group.one({ type: 'level.raise', level });
  const count = group.steps.length;
  await restore(group.archives, archive);
  return group.steps.slice(count) as Command[];
}
