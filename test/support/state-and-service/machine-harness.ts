// A state machine on a store, fed with commands as the log would feed it.

import { type LogEntry, nextEntry } from '../../../cluster/log/log-entry.ts';
import type { Kv } from '../../../cluster/platform/kv.ts';
import {
  type AccessorId,
  ANONYMOUS_ACCESSOR,
  ANONYMOUS_SECRET,
  GLOBAL_MANAGEMENT_ID,
} from '../../../src/acl/ids.ts';
import { encodeCommand } from '../../../src/state/commands/command-codec.ts';
import type { Change, ChangeOf, Command } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { type MachineDeps, StateMachine } from '../../../src/state/machine.ts';
import type { Generations } from '../../../src/state/snapshot/generations.ts';
import type { StateView } from '../../../src/state/view.ts';
import { FakeClock } from '../fake-clock.ts';
import { MemoryKv } from '../memory-kv.ts';
import { aCommand, aNamespace, aPolicy, aToken } from './fixtures.ts';

export class MachineHarness<Store extends Kv = MemoryKv> {
  readonly kv: Store;
  readonly clock = new FakeClock();
  readonly machine: StateMachine;
  #last: Pick<LogEntry, 'index' | 'hash'>;

  /** Without generations, no other state can be taken in. */
  constructor(kv: Store, given: Omit<MachineDeps, 'clock'> = {}) {
    this.kv = kv;
    this.machine = StateMachine.open(kv, { clock: this.clock, ...given });
    this.#last = this.machine.appliedEntry ?? { index: 0, hash: new Uint8Array(32) };
  }

  /** One batch. */
  run(...commands: readonly Command[]): Promise<readonly Outcome[]> {
    const entries = commands.map((command) => {
      const entry = nextEntry(this.#last, 1, encodeCommand(command));
      this.#last = entry;
      return entry;
    });
    return this.machine.apply(entries);
  }

  /** One batch of one entry that says who belongs to the group. */
  async group(record: Uint8Array): Promise<void> {
    const entry = nextEntry(this.#last, 1, Uint8Array.of(1), 'membership');
    this.#last = entry;
    await this.machine.apply([{ ...entry, groupRecord: record }]);
  }

  /** The log goes on behind what the machine has applied. */
  followMachine(): void {
    this.#last = this.machine.appliedEntry ?? this.#last;
  }

  async one(change: Change, given: Partial<Omit<Command, 'change'>> = {}): Promise<Outcome> {
    const [outcome] = await this.run(aCommand(change, given));
    return outcome!;
  }

  /** What each change comes to: `ok`, or the code and text of its refusal. */
  async tell(change: Change, given: Partial<Omit<Command, 'change'>> = {}): Promise<string> {
    const outcome = await this.one(change, given);
    return outcome.kind === 'applied' ? 'ok' : `${outcome.code}: ${outcome.message}`;
  }
}

/** Stores by generation, as a disk keeps them. */
export class MemoryGenerations implements Generations {
  readonly current: number;
  /** What is there: those that were discarded are not. */
  readonly stores: Map<number, MemoryKv>;
  /** Those that became the state, in this order. */
  readonly adoptions: number[] = [];
  readonly #wrap: (kv: Kv, generation: number) => Kv;

  /** `wrap` puts something around each store that is opened, to fail or to watch it. */
  constructor(
    first: MemoryKv,
    given: { readonly current?: number; readonly wrap?: (kv: Kv, generation: number) => Kv } = {},
  ) {
    this.current = given.current ?? 0;
    this.stores = new Map([[this.current, first]]);
    this.#wrap = given.wrap ?? ((kv) => kv);
  }

  open(generation: number): Promise<Kv> {
    const kv = new MemoryKv();
    this.stores.set(generation, kv);
    return Promise.resolve(this.#wrap(kv, generation));
  }

  adopted(generation: number): void {
    this.adoptions.push(generation);
  }

  async discard(generation: number, kv: Kv): Promise<void> {
    await kv.close();
    this.stores.delete(generation);
  }
}

/** A machine in memory that can take in others beside it. */
export function replaceableMachine(): MachineHarness & { readonly generations: MemoryGenerations } {
  const kv = new MemoryKv();
  const generations = new MemoryGenerations(kv);
  return Object.assign(new MachineHarness(kv, { generations }), { generations });
}

/** A global log begins here, in the datacenter that is its primary. */
export const BEGIN_AS_PRIMARY: ChangeOf<'global-log.begin'> = {
  type: 'global-log.begin',
  datacenter: 'dc1',
  primary: 'dc1',
  isWitness: false,
};

/** A policy, the anonymous token and the default namespace: what a datacenter begins with. */
export const BUILTINS: ChangeOf<'ensure-builtins'> = {
  type: 'ensure-builtins',
  policies: [
    aPolicy(0, { id: GLOBAL_MANAGEMENT_ID, name: 'global-management', rules: 'acl = "write"' }),
  ],
  tokens: [aToken(0, { accessorId: ANONYMOUS_ACCESSOR, secretId: ANONYMOUS_SECRET })],
  namespace: aNamespace('default'),
};

/** A machine in memory that has its built-ins. */
export async function startedMachine(): Promise<MachineHarness> {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one(BUILTINS);
  return harness;
}

export async function collect<T>(slices: AsyncIterable<readonly T[]>): Promise<readonly T[]> {
  const all: T[] = [];
  for await (const slice of slices) all.push(...slice);
  return all;
}

/** Up to so many accessor ids of void tokens; of all, or of local ones alone. */
export interface VoidOf {
  readonly limit?: number;
  readonly isLocalOnly?: boolean;
}

export async function expiredIn(
  view: StateView,
  nowMs: number,
  { limit = 10, isLocalOnly = false }: VoidOf = {},
): Promise<readonly AccessorId[]> {
  const search = { nowMs, limit, isLocalOnly, after: undefined };
  return (await view.expiredTokens(search)).accessorIds;
}

export async function orphansIn(
  view: StateView,
  { limit = 100, isLocalOnly = false }: VoidOf = {},
): Promise<readonly AccessorId[]> {
  return (await view.orphanedTokens({ limit, isLocalOnly, after: undefined })).accessorIds;
}
