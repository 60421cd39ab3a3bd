// A machine for simulated groups: a register, whose value is the last payload and whose outcome is the
// entry's index. It remembers every entry, one list a generation, and complains of any use that the
// machine's contract does not allow.

import type { LogEntry, LogWitness } from '../../../cluster/log/log-entry.ts';
import {
  type AppliedEntry,
  type Machine,
  type MachineIntake,
  type MachineSnapshot,
  SnapshotDamage,
  type TakenState,
} from '../../../cluster/replica/replica.ts';
import type { WriteQueue } from './simulated-disk.ts';

/** Entries of one chunk. */
const CHUNK_ENTRIES = 20;

interface State {
  readonly applied: readonly LogEntry[];
  readonly groupRecord: Uint8Array | undefined;
}

const EMPTY: State = { applied: [], groupRecord: undefined };

export interface RegisterOptions {
  readonly queue: WriteQueue;
  /** The one that the log names at this moment. */
  readonly validGeneration: () => number;
  readonly onApply: (entries: readonly AppliedEntry[]) => void;
  readonly onAdopt: (applied: readonly LogEntry[]) => void;
  readonly complain: (what: string) => void;
}

export class Register implements Machine<number> {
  readonly #options: RegisterOptions;
  /** What is on disk; only the valid one outlives a start. */
  readonly #states = new Map<number, State>();
  #generation = 0;
  #isApplying = false;
  #intake: Intake | undefined;
  /** Of this life, and not closed yet. */
  #snapshots = new Set<MachineSnapshot>();
  adoptedCount = 0;
  /** What an apply waits for before it writes. */
  beforeApply: () => Promise<void> = () => Promise.resolve();

  constructor(options: RegisterOptions) {
    this.#options = options;
  }

  /** A new life of its node. */
  open(): void {
    this.#generation = this.#options.validGeneration();
    for (const generation of [...this.#states.keys()]) {
      if (generation !== this.#generation) this.#states.delete(generation);
    }
    if (this.#generation > 0 && !this.#states.has(this.#generation)) {
      this.#options.complain(`generation ${this.#generation} is named and not there`);
    }
    this.#isApplying = false;
    this.#intake = undefined;
    this.#snapshots = new Set();
  }

  get snapshotCount(): number {
    return this.#snapshots.size;
  }

  get generation(): number {
    return this.#generation;
  }

  get applied(): readonly LogEntry[] {
    return this.#state.applied;
  }

  get appliedEntry(): LogWitness | undefined {
    return this.applied.at(-1);
  }

  get groupRecord(): Uint8Array | undefined {
    return this.#state.groupRecord;
  }

  async apply(entries: readonly AppliedEntry[]): Promise<readonly number[]> {
    if (this.#isApplying) this.#options.complain('two calls of apply at once');
    this.#isApplying = true;
    this.#options.onApply(entries);
    for (const { index, type, groupRecord } of entries) {
      if ((type === 'membership') === (groupRecord !== undefined)) continue;
      this.#options.complain(`the group record comes with changes, entry ${index} is ${type}`);
    }
    const { applied, groupRecord } = this.#state;
    const next: State = {
      applied: [...applied, ...entries],
      groupRecord:
        entries.findLast((entry) => entry.groupRecord !== undefined)?.groupRecord ?? groupRecord,
    };
    const generation = this.#generation;
    await this.beforeApply();
    await this.#options.queue.write(() => this.#states.set(generation, next));
    this.#isApplying = false;
    return entries.map(({ index }) => index);
  }

  snapshot(): MachineSnapshot {
    const state = this.#state;
    const open = this.#snapshots;
    const snapshot: MachineSnapshot = {
      appliedEntry: state.applied.at(-1),
      groupRecord: state.groupRecord,
      chunks: () => chunksOf(state),
      close: () => {
        open.delete(snapshot);
        return Promise.resolve();
      },
    };
    open.add(snapshot);
    return snapshot;
  }

  async beginInstall(): Promise<MachineIntake> {
    if (this.#intake?.isOpen === true) this.#options.complain('two intakes at once');
    const generation = Math.max(this.#generation, ...this.#states.keys()) + 1;
    this.#intake = new Intake(this.#options.queue, {
      generation,
      store: (state) => this.#states.set(generation, state),
      drop: () => this.#states.delete(generation),
      adopt: () => this.#adopt(generation),
      complain: this.#options.complain,
    });
    return this.#intake;
  }

  #adopt(generation: number): void {
    const { complain, validGeneration, onAdopt } = this.#options;
    if (this.#isApplying) complain('a state is adopted while entries are applied');
    if (validGeneration() !== generation) complain('a state is adopted before the log names it');
    const before = this.applied.length;
    const old = this.#generation;
    this.#generation = generation;
    this.#states.delete(old);
    if (this.applied.length <= before) complain('a snapshot takes entries back');
    this.adoptedCount += 1;
    onAdopt(this.applied);
  }

  get #state(): State {
    return this.#states.get(this.#generation) ?? EMPTY;
  }
}

interface IntakeTarget {
  readonly generation: number;
  store(state: State): void;
  drop(): void;
  adopt(): void;
  complain(what: string): void;
}

class Intake implements MachineIntake {
  readonly #queue: WriteQueue;
  readonly #target: IntakeTarget;
  readonly #entries: LogEntry[] = [];
  #end: { readonly count: number; readonly groupRecord: string | null } | undefined;
  isOpen = true;

  constructor(queue: WriteQueue, target: IntakeTarget) {
    this.#queue = queue;
    this.#target = target;
  }

  async add(chunk: Uint8Array): Promise<void> {
    const said = JSON.parse(Buffer.from(chunk).toString()) as Chunk;
    if (this.#end !== undefined) throw new SnapshotDamage('more follows its end');
    if ('count' in said) this.#end = said;
    else this.#entries.push(...said.entries.map(entryOf));
    await this.#queue.write(() => undefined);
  }

  async complete(): Promise<TakenState> {
    const end = this.#end;
    if (end === undefined || end.count !== this.#entries.length) {
      throw new SnapshotDamage(`it has ${this.#entries.length} of ${end?.count} entries`);
    }
    const groupRecord =
      end.groupRecord === null ? undefined : Buffer.from(end.groupRecord, 'base64');
    const { generation } = this.#target;
    await this.#queue.write(() => {
      this.#target.store({ applied: [...this.#entries], groupRecord });
    });
    return { appliedEntry: this.#entries.at(-1)!, groupRecord, generation };
  }

  async adopt(): Promise<void> {
    if (!this.isOpen) this.#target.complain('what is adopted was abandoned');
    await this.#queue.write(() => {
      this.isOpen = false;
    });
    this.#target.adopt();
  }

  abandon(): Promise<void> {
    if (this.isOpen) this.#target.drop();
    this.isOpen = false;
    return Promise.resolve();
  }
}

interface ChunkEntry extends Pick<LogEntry, 'index' | 'term' | 'type'> {
  readonly payload: string;
  readonly hash: string;
}

type Chunk =
  | { readonly entries: readonly ChunkEntry[] }
  | { readonly count: number; readonly groupRecord: string | null };

async function* chunksOf({ applied, groupRecord }: State): AsyncGenerator<Uint8Array> {
  const chunk = (said: Chunk): Uint8Array => Buffer.from(JSON.stringify(said));
  for (let at = 0; at < applied.length; at += CHUNK_ENTRIES) {
    await Promise.resolve();
    yield chunk({ entries: applied.slice(at, at + CHUNK_ENTRIES).map(chunkEntryOf) });
  }
  const record = groupRecord === undefined ? null : Buffer.from(groupRecord).toString('base64');
  yield chunk({ count: applied.length, groupRecord: record });
}

function chunkEntryOf({ index, term, type, payload, hash }: LogEntry): ChunkEntry {
  return {
    index,
    term,
    type,
    payload: Buffer.from(payload).toString('base64'),
    hash: Buffer.from(hash).toString('base64'),
  };
}

function entryOf({ index, term, type, payload, hash }: ChunkEntry): LogEntry {
  return {
    index,
    term,
    type,
    payload: Buffer.from(payload, 'base64'),
    hash: Buffer.from(hash, 'base64'),
  };
}
