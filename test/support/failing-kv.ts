// A store whose writes can be made to fail or to never return: a full disk, a crash between two
// batches. What was written before stays in the store that it wraps.

import type { Kv, KvRange, KvRow, KvSnapshot, KvWrite } from '../../cluster/platform/kv.ts';

export class FailingKv implements Kv {
  readonly #inner: Kv;
  /** Called before each write; what it throws or waits for is what the write does. */
  beforeWrite: (writes: readonly KvWrite[]) => Promise<void> | void = () => undefined;
  /** Called when a write is in the store; what it throws is what is said of it. */
  afterWrite: () => void = () => undefined;
  writeCount = 0;

  constructor(inner: Kv) {
    this.#inner = inner;
  }

  get(key: Uint8Array): Uint8Array | undefined {
    return this.#inner.get(key);
  }

  rows(range: KvRange): AsyncIterable<readonly KvRow[]> {
    return this.#inner.rows(range);
  }

  async write(writes: readonly KvWrite[]): Promise<void> {
    this.writeCount += 1;
    await this.beforeWrite(writes);
    await this.#inner.write(writes);
    this.afterWrite();
  }

  snapshot(): KvSnapshot {
    return this.#inner.snapshot();
  }

  compact(range: { readonly from: Uint8Array; readonly to: Uint8Array }): Promise<void> {
    return this.#inner.compact(range);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
