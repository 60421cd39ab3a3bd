// A state machine on a store, fed with commands as the log would feed it.

import { encodeCommand } from '../../src/state/command-codec.ts';
import type { Change, Command } from '../../src/state/commands.ts';
import { StateMachine } from '../../src/state/machine.ts';
import type { Outcome } from '../../src/state/outcome.ts';
import { type LogEntry, nextEntry } from '../../cluster/log/log-entry.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import { FakeClock } from './fake-clock.ts';
import { aCommand, aNamespace, aPolicy, aToken } from './fixtures.ts';
import { MemoryKv } from './memory-kv.ts';
import { ANONYMOUS_ACCESSOR, ANONYMOUS_SECRET, GLOBAL_MANAGEMENT_ID } from '../../src/acl/ids.ts';

export class MachineHarness<Store extends Kv = MemoryKv> {
  readonly kv: Store;
  readonly clock = new FakeClock();
  readonly machine: StateMachine;
  #last: Pick<LogEntry, 'index' | 'hash'>;

  constructor(kv: Store) {
    this.kv = kv;
    this.machine = StateMachine.open(kv, { clock: this.clock });
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

/** A policy, the anonymous token and the default namespace: what a datacenter begins with. */
export const BUILTINS: Extract<Change, { readonly type: 'ensure-builtins' }> = {
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
