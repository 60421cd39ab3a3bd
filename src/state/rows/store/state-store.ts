// The store under the state machine: it finds the rows of the state in the keyspace that is current, and
// counts who is still reading. A store that was replaced is closed when the last reader is done, or after
// a while without asking; whoever still reads then is refused, so that no list ends early and looks
// whole. What is in unused keyspaces is deleted behind everybody's back.

import type { Clock } from '../../../../cluster/platform/clock.ts';
import type {
  Kv,
  KvRange,
  KvReader,
  KvRow,
  KvSnapshot,
  KvWrite,
} from '../../../../cluster/platform/kv.ts';
import { AclError } from '../../../acl/error.ts';
import { KeyspaceSweeper } from './keyspace-sweeper.ts';
import {
  afterStep,
  decodeKeyspaces,
  encodeKeyspaces,
  KEYSPACES_KEY,
  type KeyspaceStep,
  type Keyspaces,
  placeOf,
  placeOfRange,
  withoutUnused,
} from './keyspaces.ts';
import { nameOf, type RowsBefore } from './rows-before.ts';

/** So long a replaced store stays open for lists and snapshots that were begun on it. */
export const READERS_GRACE_MS = 30_000;

export class StateStore implements KvReader {
  readonly generation: number;
  readonly kv: Kv;
  readonly #clock: Clock;
  readonly #sweeper: KeyspaceSweeper;
  /** As they are on disk. */
  #keyspaces: Keyspaces;
  /** As readers have them: those of the last batch that was shown. */
  #shown: Keyspaces;
  #writing: Promise<void> | undefined;
  /** Of the batch that was written last, until it is shown. */
  #before: RowsBefore | undefined;
  #readerCount = 0;
  #onLastReaderDone: (() => void) | undefined;
  #isGone = false;

  constructor(kv: Kv, generation: number, clock: Clock) {
    this.kv = kv;
    this.generation = generation;
    this.#clock = clock;
    this.#keyspaces = decodeKeyspaces(kv.get(KEYSPACES_KEY));
    this.#shown = this.#keyspaces;
    this.#sweeper = new KeyspaceSweeper({
      kv,
      clock,
      unused: () => this.#keyspaces.unused,
      write: (writes) => this.#inTurn(() => kv.write(writes)),
      onSwept: (keyspace) => this.#inTurn(() => this.#forgetUnused(keyspace)),
    });
    this.#sweeper.maybeStart();
  }

  /** A row as of the last batch that was shown. */
  get(key: Uint8Array): Uint8Array | undefined {
    if (this.#before !== undefined) {
      const name = nameOf(key);
      const before = this.#before.get(name);
      if (before !== undefined || this.#before.has(name)) return before;
    }
    return this.kv.get(placeOf(this.#shown, key));
  }

  rows(range: KvRange): AsyncIterable<readonly KvRow[]> {
    return this.#read(rowsIn(this.kv, this.#shown, range), this.#beginReading());
  }

  /** What it holds now, batches that are under way not counted. */
  snapshot(): KvSnapshot {
    const snapshot = this.kv.snapshot();
    // Of this very moment: what is held in memory may be a batch behind.
    const keyspaces = decodeKeyspaces(snapshot.get(KEYSPACES_KEY));
    const end = this.#beginReading();
    return {
      get: (key) => this.#orRefusal(() => snapshot.get(placeOf(keyspaces, key))),
      rows: (range) => {
        const slices = this.#orRefusal(() => rowsIn(snapshot, keyspaces, range));
        return this.#read(slices, () => undefined);
      },
      close: async () => {
        // Closing the store closes what was taken of it.
        if (!this.#isGone) await snapshot.close();
        end();
      },
    };
  }

  /**
   * Writes all and does the step, or nothing. Until `show` single reads give what is in `before`, and all reads go
   * where they went. The caller waits for one call before the next.
   */
  write(writes: readonly KvWrite[], before: RowsBefore, step?: KeyspaceStep): Promise<void> {
    this.#before = before;
    return this.#inTurn(async () => {
      const keyspaces = step === undefined ? this.#keyspaces : afterStep(this.#keyspaces, step);
      const placed = placedIn(this.#keyspaces, writes);
      if (step === undefined) {
        await this.kv.write(placed);
        return;
      }
      await this.kv.write([...placed, keyspacesWrite(keyspaces)]);
      this.#keyspaces = keyspaces;
      this.#sweeper.maybeStart();
    });
  }

  /** What was written last is what readers see from now on. */
  show(): void {
    this.#before = undefined;
    this.#shown = this.#keyspaces;
  }

  /**
   * Another store has the state. Resolves when nobody reads this one any more, or when whoever does has
   * had the time for it and will be refused.
   */
  async lastReaderDone(): Promise<void> {
    this.#sweeper.stop();
    if (this.#readerCount > 0) {
      await new Promise<void>((resolve) => {
        const timer = this.#clock.after(READERS_GRACE_MS, resolve);
        const done = (): void => {
          timer.cancel();
          resolve();
        };
        this.#onLastReaderDone = done;
      });
    }
    this.#isGone = true;
  }

  /** Ends the wait for the last reader. */
  sendReadersAway(): void {
    this.#onLastReaderDone?.();
  }

  async close(): Promise<void> {
    this.#sweeper.stop();
    await this.kv.close();
  }

  async #forgetUnused(keyspace: number): Promise<void> {
    const keyspaces = withoutUnused(this.#keyspaces, keyspace);
    await this.kv.write([keyspacesWrite(keyspaces)]);
    this.#keyspaces = keyspaces;
  }

  /** The owner's batches and those of the sweeping, one after the other. */
  async #inTurn(write: () => Promise<void>): Promise<void> {
    // Whoever began a write hears of its failure.
    while (this.#writing !== undefined) await this.#writing.catch(() => undefined);
    this.#writing = write();
    try {
      await this.#writing;
    } finally {
      this.#writing = undefined;
    }
  }

  /** The returned function ends it; calling that twice is harmless. */
  #beginReading(): () => void {
    this.#readerCount += 1;
    let isReading = true;
    return () => {
      if (!isReading) return;
      isReading = false;
      this.#readerCount -= 1;
      if (this.#readerCount === 0) this.#onLastReaderDone?.();
    };
  }

  async *#read(
    slices: AsyncIterable<readonly KvRow[]>,
    end: () => void,
  ): AsyncGenerator<readonly KvRow[]> {
    try {
      yield* slices;
    } catch (error) {
      throw this.#refusalOf(error);
    } finally {
      end();
    }
  }

  #orRefusal<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw this.#refusalOf(error);
    }
  }

  #refusalOf(error: unknown): unknown {
    if (!this.#isGone) return error;
    const says = 'the state was replaced by a newer one under this read: ask again';
    return new AclError('unavailable', says, { cause: error });
  }
}

function rowsIn(
  reader: KvReader,
  keyspaces: Keyspaces,
  range: KvRange,
): AsyncIterable<readonly KvRow[]> {
  const { range: placed, keyOf } = placeOfRange(keyspaces, range);
  const slices = reader.rows(placed);
  return keyOf === undefined || range.isValuesOnly === true ? slices : renamed(slices, keyOf);
}

async function* renamed(
  slices: AsyncIterable<readonly KvRow[]>,
  keyOf: (found: Uint8Array) => Uint8Array,
): AsyncGenerator<readonly KvRow[]> {
  for await (const rows of slices) yield rows.map(({ key, value }) => ({ key: keyOf(key), value }));
}

function placedIn(keyspaces: Keyspaces, writes: readonly KvWrite[]): readonly KvWrite[] {
  // So it is but on servers where a state was restored.
  if (keyspaces.current === 0 && keyspaces.staged === undefined) return writes;
  return writes.map((write) => ({ ...write, key: placeOf(keyspaces, write.key) }));
}

function keyspacesWrite(keyspaces: Keyspaces): KvWrite {
  return { type: 'put', key: KEYSPACES_KEY, value: encodeKeyspaces(keyspaces) };
}
