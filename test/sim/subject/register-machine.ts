// A machine small enough to be read at a glance: registers that are written and compared, and the
// requests that it has seen. It keeps its state as the real one does, in one batch with the entry that
// made it, and hands it over in chunks to a store of the next generation.

import { assert, must } from '../../../cluster/base/assert.ts';
import {
  decodeWitness,
  encodeWitness,
  LOG_ORIGIN,
  type LogWitness,
} from '../../../cluster/log/log-entry.ts';
import type { Kv, KvReader, KvWrite } from '../../../cluster/platform/kv.ts';
import {
  type AppliedEntry,
  type Machine,
  type MachineIntake,
  type MachineSnapshot,
  SnapshotDamage,
  type TakenState,
} from '../../../cluster/replica/replica.ts';
import { bytesOf, textOf } from '../world/key-text.ts';

export type RegisterCommand =
  | { readonly kind: 'write'; readonly id: string; readonly key: string; readonly value: string }
  | {
      readonly kind: 'cas';
      readonly id: string;
      readonly key: string;
      readonly value: string;
      readonly expected: string | null;
    };

export interface RegisterOutcome {
  readonly isDone: boolean;
  /** The entry that decided it: an earlier one, where the request was a repeat. */
  readonly index: number;
}

/** A register's value, and the entry that wrote it. */
export interface RegisterValue {
  readonly value: string;
  readonly index: number;
}

/** What a reader saw, and up to which entry the rows that it looked at were applied. */
export interface RegisterReading {
  readonly found: RegisterValue | undefined;
  readonly appliedIndex: number;
}

/** Where machines get further stores; see Generations of the real one. */
export interface RegisterStores {
  open(generation: number): Promise<Kv>;
  discard(generation: number, kv: Kv): Promise<void>;
}

export const WITNESS_ROW = 'a/witness';
export const GROUP_ROW = 'a/group';
const REGISTER_PREFIX = 'r/';
const REQUEST_PREFIX = 'q/';
const ROWS_PER_CHUNK = 8;

/** What a command comes to; the same wherever the same rows are. */
export function decide(
  command: RegisterCommand,
  index: number,
  rowOf: (key: string) => string | undefined,
): { readonly outcome: RegisterOutcome; readonly rows: readonly (readonly [string, string])[] } {
  const requestRow = REQUEST_PREFIX + command.id;
  const before = rowOf(requestRow);
  if (before !== undefined) return { outcome: JSON.parse(before) as RegisterOutcome, rows: [] };
  const registerRow = REGISTER_PREFIX + command.key;
  const held = rowOf(registerRow);
  const value = held === undefined ? null : (JSON.parse(held) as RegisterValue).value;
  const isDone = command.kind === 'write' || command.expected === value;
  const outcome: RegisterOutcome = { isDone, index };
  const request: readonly [string, string] = [requestRow, JSON.stringify(outcome)];
  if (!isDone) return { outcome, rows: [request] };
  const next: RegisterValue = { value: command.value, index };
  return { outcome, rows: [request, [registerRow, JSON.stringify(next)]] };
}

export class RegisterMachine implements Machine<RegisterOutcome> {
  readonly #stores: RegisterStores;
  #kv: Kv;
  #generation: number;
  #intake: RegisterIntake | undefined;
  appliedEntry: LogWitness | undefined;
  groupRecord: Uint8Array | undefined;

  constructor(kv: Kv, generation: number, stores: RegisterStores) {
    this.#kv = kv;
    this.#generation = generation;
    this.#stores = stores;
    this.#standAsOn(kv);
  }

  /** A batch is in the rows before the machine hears that it is: only they say what a reader saw. */
  read(key: string): RegisterReading {
    const row = this.#kv.get(bytesOf(REGISTER_PREFIX + key));
    const found = row === undefined ? undefined : (JSON.parse(textOf(row)) as RegisterValue);
    return { found, appliedIndex: witnessIn(this.#kv)?.index ?? 0 };
  }

  async apply(entries: readonly AppliedEntry[]): Promise<readonly RegisterOutcome[]> {
    const kv = this.#kv;
    const fresh = new Map<string, string>();
    const rowOf = (key: string): string | undefined => fresh.get(key) ?? textIn(kv, key);
    const outcomes: RegisterOutcome[] = [];
    const writes: KvWrite[] = [];
    for (const { index, type, payload, groupRecord } of entries) {
      if (groupRecord !== undefined) writes.push(put(GROUP_ROW, groupRecord));
      if (type === 'membership' || payload.length === 0) {
        outcomes.push({ isDone: true, index });
        continue;
      }
      const { outcome, rows } = decide(commandOf(payload), index, rowOf);
      for (const [key, text] of rows) fresh.set(key, text);
      outcomes.push(outcome);
    }
    for (const [key, text] of fresh) writes.push(put(key, bytesOf(text)));
    const { index, term, hash } = must(entries.at(-1), 'something to apply');
    writes.push(put(WITNESS_ROW, encodeWitness({ index, term, hash })));
    await kv.write(writes);
    this.#standAsOn(kv);
    return outcomes;
  }

  snapshot(): MachineSnapshot {
    const snapshot = this.#kv.snapshot();
    return {
      appliedEntry: witnessIn(snapshot),
      groupRecord: snapshot.get(bytesOf(GROUP_ROW)),
      chunks: () => chunksOf(snapshot),
      close: () => snapshot.close(),
    };
  }

  async beginInstall(): Promise<MachineIntake> {
    assert(this.#intake === undefined, 'one state is taken in at a time');
    const generation = this.#generation + 1;
    const kv = await this.#stores.open(generation);
    const intake = new RegisterIntake({
      kv,
      generation,
      onAdopt: async () => {
        const old = { kv: this.#kv, generation: this.#generation };
        this.#kv = kv;
        this.#generation = generation;
        this.#intake = undefined;
        this.#standAsOn(kv);
        await this.#stores.discard(old.generation, old.kv);
      },
      onAbandon: async () => {
        await this.#stores.discard(generation, kv);
        this.#intake = undefined;
      },
    });
    this.#intake = intake;
    return intake;
  }

  async close(): Promise<void> {
    await this.#intake?.abandon();
    await this.#kv.close();
  }

  #standAsOn(kv: Kv): void {
    this.appliedEntry = witnessIn(kv);
    this.groupRecord = kv.get(bytesOf(GROUP_ROW));
  }
}

export function commandOf(payload: Uint8Array): RegisterCommand {
  return JSON.parse(textOf(payload)) as RegisterCommand;
}

export function payloadOf(command: RegisterCommand): Uint8Array {
  return bytesOf(JSON.stringify(command));
}

interface IntakeOptions {
  readonly kv: Kv;
  readonly generation: number;
  readonly onAdopt: () => Promise<void>;
  readonly onAbandon: () => Promise<void>;
}

class RegisterIntake implements MachineIntake {
  readonly #options: IntakeOptions;
  #rowCount = 0;
  #isWhole = false;
  #isOver = false;

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  async add(chunk: Uint8Array): Promise<void> {
    const said = JSON.parse(textOf(chunk)) as ChunkText;
    if (said.kind === 'end') {
      if (said.count !== this.#rowCount) throw new SnapshotDamage(`${this.#rowCount} rows came`);
      this.#isWhole = true;
      return;
    }
    this.#rowCount += said.rows.length;
    await this.#options.kv.write(said.rows.map(([key, text]) => put(key, bytesOf(text))));
  }

  complete(): Promise<TakenState> {
    if (!this.#isWhole) return Promise.reject(new SnapshotDamage('the end is missing'));
    const { kv, generation } = this.#options;
    const appliedEntry = must(witnessIn(kv), 'an applied entry in a snapshot');
    const groupRecord = kv.get(bytesOf(GROUP_ROW));
    return Promise.resolve({ appliedEntry, groupRecord, generation });
  }

  async adopt(): Promise<void> {
    this.#isOver = true;
    await this.#options.onAdopt();
  }

  async abandon(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#options.onAbandon();
  }
}

type ChunkText =
  | { readonly kind: 'rows'; readonly rows: readonly (readonly [string, string])[] }
  | { readonly kind: 'end'; readonly count: number };

async function* chunksOf(reader: KvReader): AsyncGenerator<Uint8Array> {
  let rows: (readonly [string, string])[] = [];
  let count = 0;
  for await (const slice of reader.rows({ from: bytesOf('a'), to: bytesOf('z') })) {
    for (const { key, value } of slice) {
      rows.push([textOf(key), textOf(value)]);
      count += 1;
      if (rows.length < ROWS_PER_CHUNK) continue;
      yield chunkOf({ kind: 'rows', rows });
      rows = [];
    }
  }
  if (rows.length > 0) yield chunkOf({ kind: 'rows', rows });
  yield chunkOf({ kind: 'end', count });
}

function chunkOf(text: ChunkText): Uint8Array {
  return bytesOf(JSON.stringify(text));
}

function witnessIn(reader: KvReader): LogWitness | undefined {
  const row = reader.get(bytesOf(WITNESS_ROW));
  const witness = row === undefined ? LOG_ORIGIN : decodeWitness(row);
  return witness.index === 0 ? undefined : witness;
}

function textIn(reader: KvReader, key: string): string | undefined {
  const row = reader.get(bytesOf(key));
  return row === undefined ? undefined : textOf(row);
}

function put(key: string, value: Uint8Array): KvWrite {
  return { type: 'put', key: bytesOf(key), value };
}
