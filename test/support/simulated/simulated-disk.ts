// A disk in simulated time. What is written survives a crash; a write in flight is lost, or lands and
// nobody hears of it. A whole store's rows are one kind of content, a machine's state another.

import type { Kv, KvRange, KvRow, KvSnapshot, KvWrite } from '../../../cluster/platform/kv.ts';
import { MemoryKv, textOf } from '../memory-kv.ts';

/** Writes in flight at a node, whatever they write to. */
export class WriteQueue {
  readonly #schedule: (action: () => void) => void;
  readonly #inFlight = new Set<{ land: () => void; finish: (() => void) | undefined }>();
  /** Writes never come back while it is so. */
  #isStalled = false;
  /** Called at each write, with their number so far: a test may end the node there. */
  onWrite: (count: number) => void = () => undefined;
  writeCount = 0;
  #crashListeners: (() => void)[] = [];

  constructor(schedule: (action: () => void) => void) {
    this.#schedule = schedule;
  }

  write(land: () => void): Promise<void> {
    return new Promise((resolve) => {
      const write: { land: () => void; finish: (() => void) | undefined } = {
        land,
        finish: undefined,
      };
      this.#inFlight.add(write);
      this.#schedule(() => {
        if (!this.#inFlight.has(write)) return;
        write.finish = () => {
          this.#inFlight.delete(write);
          land();
          resolve();
        };
        if (!this.#isStalled) write.finish();
      });
      this.writeCount += 1;
      this.onWrite(this.writeCount);
    });
  }

  stall(): void {
    this.#isStalled = true;
  }

  resume(): void {
    this.#isStalled = false;
    for (const { finish } of [...this.#inFlight]) finish?.();
  }

  /** Called once, at the next crash. */
  onCrash(listener: () => void): void {
    this.#crashListeners.push(listener);
  }

  crash({ lands }: { readonly lands: boolean }): void {
    for (const { land } of [...this.#inFlight]) if (lands) land();
    this.#inFlight.clear();
    this.#isStalled = false;
    for (const listener of this.#crashListeners.splice(0)) listener();
  }
}

/** A key-value store on such a disk. */
export class SimulatedKv implements Kv {
  readonly #rows = new MemoryKv();
  readonly #queue: WriteQueue;
  failure: Error | undefined;
  /** The rows without the time that writing takes, for what was there before. */
  readonly now: Kv = this.#rows;

  constructor(queue: WriteQueue) {
    this.#queue = queue;
  }

  get isNew(): boolean {
    return this.#rows.dump().length === 0;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#rows.get(key);
  }

  rows(range: KvRange): AsyncIterable<readonly KvRow[]> {
    return this.#rows.rows(range);
  }

  write(writes: readonly KvWrite[]): Promise<void> {
    if (this.failure !== undefined) return Promise.reject(this.failure);
    return this.#queue.write(() => this.#land(writes));
  }

  stall(): void {
    this.#queue.stall();
  }

  resume(): void {
    this.#queue.resume();
  }

  snapshot(): KvSnapshot {
    return this.#rows.snapshot();
  }

  compact(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #land(writes: readonly KvWrite[]): void {
    this.#rows.tamper((rows) => {
      for (const write of writes) {
        if (write.type === 'put') rows.set(textOf(write.key), Uint8Array.from(write.value));
        else rows.delete(textOf(write.key));
      }
    });
  }
}
