// The committed log, applied once more by a machine of its own that had no part in the run: what each
// command came to, what every object was at each place of the log, and what the state comes to in the
// end. Nodes that took a snapshot in must agree with it as much as nodes that saw every entry.

import type { LogEntry } from '../../../cluster/log/log-entry.ts';
import type { Kv, KvRange, KvReader, KvRow, KvWrite } from '../../../cluster/platform/kv.ts';
import { EMPTY_GROUP, encodeGroupRecord } from '../../../cluster/replica/group-record.ts';
import { decodeCommand } from '../../../src/state/commands/command-codec.ts';
import type { Command } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { StateMachine } from '../../../src/state/machine.ts';
import { bytesOf, textOf } from '../world/key-text.ts';
import { applied } from '../world/sim-disk.ts';
import { SortedRows } from '../world/sorted-rows.ts';
import { groupAfter } from './group-checks.ts';
import { stateDigest } from './state-digest.ts';

/** One command of the log, and what it came to. */
export interface Applied {
  /** Its place in the log. */
  readonly index: number;
  /** Of the leader that put it there. */
  readonly term: number;
  readonly command: Command;
  /** Whether whoever asked for it had the right to, by the state before it. */
  readonly isRightful: boolean;
  /** Of what makes a token: CreateIndex of the namespace that it is in, by the state before it. */
  readonly namespaceIndex: number | undefined;
  readonly outcome: Outcome;
}

/** What a right is told from. */
export type RightsState = Pick<StateMachine, 'token' | 'role' | 'policy'>;

export interface Replay {
  readonly commands: readonly Applied[];
  /** By log index: what the rows of the state come to. */
  readonly digests: ReadonlyMap<number, string>;
}

const STOPPED_CLOCK = {
  monotonicMs: () => 0,
  wallMs: () => 0,
  after: () => ({ cancel: () => undefined }),
};

export async function replayLog(
  committed: readonly LogEntry[],
  hasRight: (command: Command, before: RightsState) => boolean = () => true,
): Promise<Replay> {
  const kv = new InstantKv();
  const machine = StateMachine.open(kv, { clock: STOPPED_CLOCK });
  const commands: Applied[] = [];
  const digests = new Map<number, string>();
  let group = EMPTY_GROUP;
  for (const entry of committed) {
    const { index, term, type, payload } = entry;
    group = groupAfter(group, entry);
    const record = type === 'membership' ? { groupRecord: encodeGroupRecord(group) } : {};
    const isCommand = type === 'normal' && payload.length > 0;
    const command = isCommand ? decodeCommand(payload) : undefined;
    const isRightful = command === undefined || hasRight(command, machine);
    const namespaceIndex = command && namespaceIndexOf(command, machine);
    const [outcome] = await machine.apply([{ ...entry, ...record }]);
    digests.set(index, kv.digest);
    if (command === undefined || outcome === undefined) continue;
    commands.push({ index, term, command, isRightful, namespaceIndex, outcome });
  }
  return { commands, digests };
}

function namespaceIndexOf({ change }: Command, state: StateMachine): number | undefined {
  return change.type === 'token.set'
    ? state.namespace(change.token.namespace)?.createIndex
    : undefined;
}

/** A store that takes no time. */
class InstantKv implements Kv {
  #rows = SortedRows.EMPTY;

  get digest(): string {
    return stateDigest(this.#rows);
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(textOf(key));
  }

  async *rows({
    from,
    to,
    reverse = false,
    limit = Number.POSITIVE_INFINITY,
  }: KvRange): AsyncGenerator<readonly KvRow[]> {
    let count = 0;
    for (const { key, value } of this.#rows.rows({ from: textOf(from), to: textOf(to), reverse })) {
      if (count >= limit) return;
      count += 1;
      yield [{ key: bytesOf(key), value }];
    }
  }

  write(writes: readonly KvWrite[]): Promise<void> {
    this.#rows = applied(this.#rows, writes);
    return Promise.resolve();
  }

  snapshot(): KvReader & { close(): Promise<void> } {
    const frozen = new InstantKv();
    frozen.#rows = this.#rows;
    return frozen;
  }

  compact(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
