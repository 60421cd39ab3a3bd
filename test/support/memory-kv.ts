// The key-value store in memory, with the same promises as the one on disk. A batch lands in a later
// turn of the event loop, as on disk: whoever reads too early sees the old rows.

import { assert } from '../../cluster/base/assert.ts';
import type {
  Kv,
  KvRange,
  KvReader,
  KvRow,
  KvSnapshot,
  KvWrite,
} from '../../cluster/platform/kv.ts';

const SLICE_ROWS = 64;

export class MemoryKv implements Kv {
  /** By the key's bytes as latin-1 text, which orders as the bytes do. */
  #rows: Map<string, Uint8Array>;
  /** Somebody reads these rows as of a moment: they are copied before they change. */
  #isShared = false;
  #isWriting = false;
  #isClosed = false;

  constructor(rows: Iterable<readonly [string, Uint8Array]> = []) {
    this.#rows = new Map(rows);
  }

  get(key: Uint8Array): Uint8Array | undefined {
    this.#requireOpen();
    return valueIn(this.#rows, key);
  }

  rows(range: KvRange): AsyncIterable<readonly KvRow[]> {
    return this.#readerNow().rows(range);
  }

  async write(writes: readonly KvWrite[]): Promise<void> {
    this.#requireOpen();
    assert(!this.#isWriting, 'one batch of a store is in flight at a time');
    this.#isWriting = true;
    const copies = writes.map((write) => ({
      name: textOf(write.key),
      value: write.type === 'put' ? Uint8Array.from(write.value) : undefined,
    }));
    await new Promise((resolve) => setImmediate(resolve));
    const rows = this.#ownRows();
    for (const { name, value } of copies) {
      if (value === undefined) rows.delete(name);
      else rows.set(name, value);
    }
    this.#isWriting = false;
  }

  snapshot(): KvSnapshot {
    let isOpen = true;
    const reader = this.#readerNow(() => {
      if (!isOpen) throw new Error('a snapshot is read that is closed');
    });
    return {
      ...reader,
      close: async () => {
        isOpen = false;
      },
    };
  }

  compact(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    return Promise.resolve();
  }

  /** A store with the same rows, as a restart would find them. */
  reopened(): MemoryKv {
    return new MemoryKv(this.#rows);
  }

  /** All rows in order, as text: for comparing whole stores. */
  dump(): readonly string[] {
    const rows = [...this.#rows].map(([key, value]) => `${hex(bytesOf(key))} ${hex(value)}`);
    return rows.sort(byCodeUnits);
  }

  /** Another one with the same rows. */
  copy(): MemoryKv {
    return new MemoryKv(this.#rows);
  }

  /** Changes rows behind everybody's back, as a bad disk would. */
  tamper(change: (rows: Map<string, Uint8Array>) => void): void {
    change(this.#ownRows());
  }

  /** Rows that may be changed: nobody reads them as they were. */
  #ownRows(): Map<string, Uint8Array> {
    if (this.#isShared) this.#rows = new Map(this.#rows);
    this.#isShared = false;
    return this.#rows;
  }

  /** What is there now, as long as the store is open, and nothing else speaks against it. */
  #readerNow(requireMore: () => void = () => undefined): KvReader {
    const requireOpen = (): void => {
      this.#requireOpen();
      requireMore();
    };
    requireOpen();
    this.#isShared = true;
    return readerOf(this.#rows, requireOpen);
  }

  #requireOpen(): void {
    if (this.#isClosed) throw new Error('the store is closed');
  }
}

function readerOf(rows: ReadonlyMap<string, Uint8Array>, requireOpen: () => void): KvReader {
  return {
    get: (key) => {
      requireOpen();
      return valueIn(rows, key);
    },
    rows: (range) => {
      requireOpen();
      return slicesOf(rows, requireOpen, range);
    },
  };
}

/** A copy: the bytes belong to whoever asks. */
function valueIn(rows: ReadonlyMap<string, Uint8Array>, key: Uint8Array): Uint8Array | undefined {
  const value = rows.get(textOf(key));
  return value === undefined ? undefined : Uint8Array.from(value);
}

async function* slicesOf(
  rows: ReadonlyMap<string, Uint8Array>,
  requireOpen: () => void,
  { from, to, reverse, limit, sliceRows = SLICE_ROWS, isValuesOnly = false }: KvRange,
): AsyncGenerator<readonly KvRow[]> {
  const keys = [...rows.keys()].filter((key) => key >= textOf(from) && key < textOf(to));
  keys.sort(byCodeUnits);
  if (reverse === true) keys.reverse();
  const wanted = keys.slice(0, limit);
  const size = Math.min(sliceRows, SLICE_ROWS);
  for (let at = 0; at < wanted.length; at += size) {
    await Promise.resolve();
    requireOpen();
    yield wanted.slice(at, at + size).map((key) => ({
      key: isValuesOnly ? new Uint8Array() : bytesOf(key),
      value: Uint8Array.from(rows.get(key)!),
    }));
  }
}

function byCodeUnits(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}

export function textOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1');
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1');
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
