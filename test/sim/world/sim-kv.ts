// A database as its process has it open: the contract of the store on LevelDB, with virtual time
// between asking and having. Belongs to one life of a node; the rows belong to the disk.

import { assert } from '../../../cluster/base/assert.ts';
import type {
  Kv,
  KvRange,
  KvReader,
  KvRow,
  KvSnapshot,
  KvWrite,
} from '../../../cluster/platform/kv.ts';
import { bytesOf, textOf } from './key-text.ts';
import { LifeIsOver, type SimProcess } from './sim-process.ts';
import type { SortedRows } from './sorted-rows.ts';

const SLICE_ROWS = 64;

/** The rows as they lie on the disk. */
export interface StoreOfKv {
  readonly rows: SortedRows;
  readonly damagedKeys: ReadonlySet<string>;
  readonly misread: ReadonlyMap<string, Uint8Array>;
}

/** What a database asks of the disk that it lies on. */
export interface DiskOfKv {
  drawReadMs(): number;
  drawWriteMs(): number;
  write(store: StoreOfKv, writes: readonly KvWrite[], onDone: (failure?: Error) => void): void;
}

export interface KvOptions {
  readonly store: StoreOfKv;
  readonly disk: DiskOfKv;
  readonly process: SimProcess;
  readonly onFatal: (cause: Error) => void;
}

export class SimKv implements Kv {
  readonly #options: KvOptions;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: KvOptions) {
    this.#options = options;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#get(this.#options.store.rows, key);
  }

  rows(range: KvRange): AsyncIterable<readonly KvRow[]> {
    this.#requireUsable();
    return this.#slicesOf(this.#options.store.rows, range);
  }

  async write(writes: readonly KvWrite[]): Promise<void> {
    this.#requireUsable();
    assert(this.#writing === undefined, 'one batch of a store is in flight at a time');
    this.#writing = this.#write(writes);
    try {
      await this.#writing;
    } finally {
      this.#writing = undefined;
    }
  }

  snapshot(): KvSnapshot {
    this.#requireUsable();
    const { rows } = this.#options.store;
    const reader: KvReader = {
      get: (key) => this.#get(rows, key),
      rows: (range) => {
        this.#requireUsable();
        return this.#slicesOf(rows, range);
      },
    };
    return { ...reader, close: () => Promise.resolve() };
  }

  async compact(): Promise<void> {
    this.#requireUsable();
    await this.#wait(this.#options.disk.drawWriteMs());
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeOnce();
    return this.#closing;
  }

  async #closeOnce(): Promise<void> {
    await this.#writing?.catch(() => undefined);
    await this.#wait(this.#options.disk.drawReadMs());
  }

  #write(writes: readonly KvWrite[]): Promise<void> {
    const { store, disk, process } = this.#options;
    const batch = writes.map((write) => ({ ...write }));
    return new Promise((resolve, reject) => {
      // What a process does after its end has no effect.
      if (process.isOver) return;
      disk.write(store, batch, (failure) => {
        process.deliver(() => {
          if (failure === undefined) resolve();
          else reject(this.#fail(failure));
        });
      });
    });
  }

  #get(rows: SortedRows, key: Uint8Array): Uint8Array | undefined {
    this.#requireUsable();
    const text = textOf(key);
    const value = rows.get(text);
    this.#requireWhole(text);
    return value === undefined ? undefined : this.#read(text, value);
  }

  async *#slicesOf(rows: SortedRows, range: KvRange): AsyncGenerator<readonly KvRow[]> {
    const { disk } = this.#options;
    const { from, to, reverse = false, limit = Number.POSITIVE_INFINITY } = range;
    let slice: KvRow[] = [];
    let count = 0;
    for (const { key, value } of rows.rows({ from: textOf(from), to: textOf(to), reverse })) {
      if (count >= limit) break;
      count += 1;
      this.#requireWhole(key);
      slice.push({ key: bytesOf(key), value: this.#read(key, value) });
      if (slice.length < SLICE_ROWS) continue;
      await this.#wait(disk.drawReadMs());
      this.#requireUsable();
      yield slice;
      slice = [];
    }
    await this.#wait(disk.drawReadMs());
    this.#requireUsable();
    if (slice.length > 0) yield slice;
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.#options.process.deliverAfter(delayMs, resolve));
  }

  #read(key: string, value: Uint8Array): Uint8Array {
    return new Uint8Array(this.#options.store.misread.get(key) ?? value);
  }

  #requireWhole(key: string): void {
    if (!this.#options.store.damagedKeys.has(key)) return;
    throw this.#fail(new Error('Corruption: block checksum mismatch'));
  }

  #requireUsable(): void {
    if (this.#options.process.isOver) throw new LifeIsOver('the process has ended');
    if (this.#failure !== undefined) {
      throw new Error(`the store failed before: ${this.#failure.message}`, {
        cause: this.#failure,
      });
    }
    if (this.#closing !== undefined) throw new Error('the store is closed');
  }

  #fail(cause: Error): Error {
    if (this.#closing !== undefined || this.#failure !== undefined) return cause;
    this.#failure = cause;
    this.#options.onFatal(cause);
    return cause;
  }
}
