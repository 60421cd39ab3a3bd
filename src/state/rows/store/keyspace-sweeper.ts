// Deletes the rows of keyspaces that are not used any more: a few at a time, with pauses, so that nobody
// waits long for a batch. It can end at any moment; the next start goes on with it.

import type { Clock, Timer } from '../../../../cluster/platform/clock.ts';
import type { Kv, KvRange, KvWrite } from '../../../../cluster/platform/kv.ts';
import { rangeOfKeyspace } from './keyspaces.ts';

/** Rows of one batch. */
const SWEEP_ROWS_MAX = 512;
/** Between two batches. */
export const SWEEP_PAUSE_MS = 10;

export interface SweeperOptions {
  readonly kv: Kv;
  readonly clock: Clock;
  readonly unused: () => readonly number[];
  /** Waits for its turn among the batches of the store's owner. */
  readonly write: (writes: readonly KvWrite[]) => Promise<void>;
  /** Nothing is left of the keyspace: it is to be forgotten. */
  readonly onSwept: (keyspace: number) => Promise<void>;
}

export class KeyspaceSweeper {
  readonly #options: SweeperOptions;
  #isRunning = false;
  #isStopped = false;
  #pause: Timer | undefined;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** There may be something to delete. */
  maybeStart(): void {
    const [keyspace] = this.#options.unused();
    if (keyspace === undefined || this.#isRunning || this.#isStopped) return;
    this.#isRunning = true;
    this.#next(keyspace, rangeOfKeyspace(keyspace));
  }

  /** Begins nothing more. */
  stop(): void {
    this.#isStopped = true;
    this.#pause?.cancel();
  }

  #next(keyspace: number, range: KvRange): void {
    if (this.#isStopped) return;
    this.#pause = this.#options.clock.after(SWEEP_PAUSE_MS, () => {
      // A store that fails has told whoever opened it; there is nothing to add, and nothing to go on with.
      this.#deleteSome(keyspace, range).catch(() => this.stop());
    });
  }

  async #deleteSome(keyspace: number, range: KvRange): Promise<void> {
    const { kv, write, onSwept } = this.#options;
    const writes: KvWrite[] = [];
    for await (const rows of kv.rows({ ...range, limit: SWEEP_ROWS_MAX })) {
      for (const { key } of rows) writes.push({ type: 'del', key });
    }
    if (this.#isStopped) return;
    const last = writes.at(-1);
    if (last !== undefined) {
      await write(writes);
      // What was deleted is not gone through again.
      this.#next(keyspace, { ...range, from: last.key });
      return;
    }
    await onSwept(keyspace);
    this.#isRunning = false;
    this.maybeStart();
    await kv.compact(rangeOfKeyspace(keyspace));
  }
}
