// The disk of a host: databases that outlive their process, and what can go wrong with them. A batch
// that was acknowledged is there for ever; one under way when the process ends is there or not. Faults
// beyond that are done to it by name.

import { assert } from '../../../cluster/base/assert.ts';
import type { Kv, KvWrite } from '../../../cluster/platform/kv.ts';
import { textOf } from './key-text.ts';
import { SimKv } from './sim-kv.ts';
import type { SimProcess } from './sim-process.ts';
import { SortedRows } from './sorted-rows.ts';
import type { Stream } from './stream.ts';
import type { Trace } from './trace.ts';
import type { VirtualTime } from './virtual-time.ts';

/** Batches of each store that faults can still reach. */
const HISTORY_MAX = 64;

/** How long writes take: at least so long, and so much longer on average. */
export interface DiskSpeed {
  readonly leastMs: number;
  readonly meanMs: number;
}

/** When a write is said to be done. `at-once` is a lie: it is on disk some time later. */
export type Acknowledging = 'when-on-disk' | 'at-once';

/** How a host went down. The power cut takes what is not on disk. */
export type Ending = 'process' | 'power';

/** By name of a database. */
export type DiskCopy = ReadonlyMap<string, SortedRows>;

interface Batch {
  readonly before: SortedRows;
  readonly writes: readonly KvWrite[];
}

/** One database as it lies on the disk. */
export class SimStore {
  readonly name: string;
  /** What a reader of the running process sees. */
  rows = SortedRows.EMPTY;
  /** What is acknowledged though it is not on disk; only with a lie. */
  unsynced: (readonly KvWrite[])[] = [];
  synced = SortedRows.EMPTY;
  inFlight: (() => void) | undefined;
  /** Reading these fails, as the checksum of a block does. */
  readonly damagedKeys = new Set<string>();
  /** What reading these gives in the place of what was written, and no checksum says so. */
  readonly misread = new Map<string, Uint8Array>();
  acknowledging: Acknowledging = 'when-on-disk';
  refusesToOpen = false;
  readonly #history: Batch[] = [];

  constructor(name: string) {
    this.name = name;
  }

  land(writes: readonly KvWrite[]): void {
    this.#history.push({ before: this.rows, writes });
    if (this.#history.length > HISTORY_MAX) this.#history.shift();
    this.rows = applied(this.rows, writes);
    if (this.unsynced.length === 0) this.synced = this.rows;
  }

  /** A run of earlier batches is gone, though later ones are there. False where there is none. */
  punchHole(stream: Stream): boolean {
    const count = this.#history.length;
    if (count < 3) return false;
    const from = stream.below(count - 2);
    const before = from + 1 + stream.below(Math.min(3, count - from - 1));
    let { before: rows } = this.#history[from]!;
    for (const { writes } of this.#history.slice(before)) rows = applied(rows, writes);
    this.replace(rows);
    return true;
  }

  /** Changes one bit of one row; undefined where there is none. */
  rot(stream: Stream): string | undefined {
    const row = this.rows.at(stream.below(this.rows.size));
    if (row === undefined || row.value.length === 0) return undefined;
    const value = new Uint8Array(row.value);
    const at = stream.below(value.length);
    value[at] = value[at]! ^ (1 << stream.below(8));
    this.replace(this.rows.with(row.key, value));
    return row.key;
  }

  replace(rows: SortedRows): void {
    this.rows = rows;
    this.synced = rows;
    this.#history.length = 0;
  }

  /** What is left of it when the process ends. */
  crash(ending: Ending, stream: Stream): void {
    const { inFlight } = this;
    this.inFlight = undefined;
    if (inFlight !== undefined && stream.chance(0.5)) inFlight();
    const unsynced = this.unsynced;
    this.unsynced = [];
    if (ending === 'process' || unsynced.length === 0) {
      this.synced = this.rows;
      return;
    }
    // Newer ones may be there without older ones.
    let rows = this.synced;
    for (const writes of unsynced) if (stream.chance(0.5)) rows = applied(rows, writes);
    this.replace(rows);
  }
}

export function applied(rows: SortedRows, writes: readonly KvWrite[]): SortedRows {
  let after = rows;
  for (const write of writes) {
    const key = textOf(write.key);
    after =
      write.type === 'put' ? after.with(key, new Uint8Array(write.value)) : after.without(key);
  }
  return after;
}

export interface DiskOptions {
  readonly time: VirtualTime;
  readonly trace: Trace;
  readonly host: string;
  readonly stream: Stream;
  /** A batch has just come to be on the disk. */
  readonly onLanded: (store: SimStore, writes: readonly KvWrite[]) => void;
}

export class SimDisk {
  readonly #options: DiskOptions;
  readonly #stores = new Map<string, SimStore>();
  speed: DiskSpeed = { leastMs: 0.2, meanMs: 1 };
  /** Writes to stores of these names take so much longer on average. */
  slowed: { readonly prefix: string; readonly meanMs: number } | undefined;
  /** Databases of these names are told of as on disk at once, and are later. */
  lyingNames: readonly string[] = [];
  #isFull = false;
  #isFrozen = false;
  #held: (() => void)[] = [];

  constructor(options: DiskOptions) {
    this.#options = options;
  }

  get storeNames(): readonly string[] {
    return [...this.#stores.keys()];
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  get isFull(): boolean {
    return this.#isFull;
  }

  store(name: string): SimStore | undefined {
    return this.#stores.get(name);
  }

  async open(name: string, process: SimProcess, onFatal: (cause: Error) => void): Promise<Kv> {
    const store = this.#stores.get(name) ?? new SimStore(name);
    this.#stores.set(name, store);
    if (store.refusesToOpen)
      throw new Error(`the store ${name} is damaged: acknowledged writes follow`);
    store.acknowledging = this.lyingNames.some((each) => name.startsWith(each))
      ? 'at-once'
      : 'when-on-disk';
    return new SimKv({ store, disk: this, process, onFatal });
  }

  drop(name: string): void {
    this.#stores.delete(name);
  }

  /** A new disk in the place of this one. */
  wipe(): void {
    this.#stores.clear();
  }

  /** All that is on it, while nothing is written. */
  copy(): DiskCopy {
    return new Map([...this.#stores].map(([name, { rows }]) => [name, rows]));
  }

  /** In the place of all that is on it. */
  putBack(copy: DiskCopy): void {
    this.wipe();
    for (const [name, rows] of copy) {
      const store = new SimStore(name);
      store.replace(rows);
      this.#stores.set(name, store);
    }
  }

  freeze(): void {
    this.#isFrozen = true;
  }

  thaw(): void {
    this.#isFrozen = false;
    const held = this.#held;
    this.#held = [];
    for (const action of held) this.#options.time.after(this.drawWriteMs(), action);
  }

  fill(): void {
    this.#isFull = true;
  }

  free(): void {
    this.#isFull = false;
  }

  crash(ending: Ending): void {
    this.#held = [];
    for (const store of this.#stores.values()) {
      store.crash(ending, this.#options.stream);
      store.acknowledging = 'when-on-disk';
    }
  }

  drawWriteMs(): number {
    const { leastMs, meanMs } = this.speed;
    return this.#options.stream.exponential(leastMs, meanMs);
  }

  #drawSlowedMs({ name }: SimStore): number {
    if (this.slowed === undefined || !name.startsWith(this.slowed.prefix)) return 0;
    return this.#options.stream.exponential(0, this.slowed.meanMs);
  }

  /** Reads come from memory mostly. */
  drawReadMs(): number {
    return this.#options.stream.exponential(0.02, 0.05);
  }

  /**
   * Writes a batch. `onDone` is called when it is on disk, or with a lie before; never when the process
   * ends first.
   */
  write(store: SimStore, writes: readonly KvWrite[], onDone: (failure?: Error) => void): void {
    if (store.acknowledging === 'at-once') {
      this.#lie(store, writes, onDone);
      return;
    }
    assert(store.inFlight === undefined, 'one batch of a store is in flight at a time');
    const land = (): void => this.#land(store, writes);
    store.inFlight = land;
    const isFull = this.#isFull;
    this.#later(this.drawWriteMs() + this.#drawSlowedMs(store), () => {
      if (store.inFlight !== land) return;
      store.inFlight = undefined;
      if (isFull) {
        onDone(new Error('ENOSPC: no space left on device'));
        return;
      }
      land();
      // Readers may see it before the writer hears of it.
      const gapMs = this.#options.stream.chance(0.2) ? this.drawReadMs() : 0;
      if (gapMs === 0) onDone();
      else this.#later(gapMs, onDone);
    });
  }

  #lie(store: SimStore, writes: readonly KvWrite[], onDone: () => void): void {
    store.unsynced.push(writes);
    this.#land(store, writes);
    this.#options.time.after(this.#options.stream.exponential(1, 300), () => {
      if (store.unsynced[0] !== writes) return;
      store.unsynced.shift();
      store.synced = applied(store.synced, writes);
    });
    this.#later(this.#options.stream.exponential(0.02, 0.1), onDone);
  }

  #land(store: SimStore, writes: readonly KvWrite[]): void {
    store.land(writes);
    const { trace, host, onLanded } = this.#options;
    trace.note('landed', host, writes.length, () => `${store.name}: ${writes.length} rows`);
    onLanded(store, writes);
  }

  #later(delayMs: number, action: () => void): void {
    this.#options.time.after(delayMs, () => {
      if (this.#isFrozen) this.#held.push(action);
      else action();
    });
  }
}
