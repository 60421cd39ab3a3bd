// Taking in another state beside the present one: its rows go into a store of their own, which nobody
// reads before all of it is checked and on disk. Until it is adopted, giving up leaves no trace. Of one that
// is only to be restored the objects are taken, and what follows from them is made anew.

import { assert } from '../../../cluster/base/assert.ts';
import type { LogWitness } from '../../../cluster/log/log-entry.ts';
import type { Kv, KvRow, KvWrite } from '../../../cluster/platform/kv.ts';
import { AclError } from '../../acl/error.ts';
import type { Meta } from '../rows/meta.ts';
import {
  encodeKeyspaces,
  KEYSPACES_KEY,
  type Keyspaces,
  placeOf,
  rangeOfKeyspace,
} from '../rows/store/keyspaces.ts';
import { isRestoredRow, META_KEY, ROW } from '../rows/tables.ts';
import { completeRestored, RESTORED_OBJECTS_MAX, restoredWrites } from './restored-rows.ts';
import { requireUndamaged, SnapshotDamage } from './snapshot-damage.ts';
import { type ReadRow, SnapshotReader } from './snapshot-reader.ts';

/** Rows of one batch: making a batch takes the event loop a microsecond a row. */
const BATCH_ROWS_MAX = 1024;

/** Of the new store: the state, and perhaps one that is being restored. */
const KEYSPACES: Keyspaces = { current: 0, staged: 1, unused: [] };

export interface SnapshotIntakeOptions {
  /** Empty. */
  readonly kv: Kv;
  readonly generation: number;
  /** The feature level up to which the program reads. */
  readonly reads: number;
  /** It is an archive that is only to be read out again, and never adopted. */
  readonly isForRestore: boolean;
  /** The taken-in state takes the place of the present one, at once. */
  readonly onAdopt: (meta: Meta) => void;
  /** It was given up: the store is to be deleted. */
  readonly onAbandon: () => Promise<void>;
}

/** What a state that is whole and on disk says of itself. */
export interface TakenIn {
  readonly appliedEntry: LogWitness;
  readonly groupRecord: Uint8Array | undefined;
  readonly generation: number;
  /** The feature level that it was written under. */
  readonly level: number;
  /** The row that says all that the state says of itself. */
  readonly metaRow: Uint8Array;
}

export class SnapshotIntake {
  readonly #options: SnapshotIntakeOptions;
  readonly #reader: SnapshotReader;
  /** Whatever is under way; one thing after the other. */
  #working: Promise<unknown> = Promise.resolve();
  #failure: unknown;
  #standing: 'taking' | 'complete' | 'adopted' | 'abandoned' = 'taking';
  #meta: Meta | undefined;
  /** The other node was in the middle of a restore. */
  #hasRestore = false;
  #abandoned: Promise<void> | undefined;

  constructor(options: SnapshotIntakeOptions) {
    this.#options = options;
    this.#reader = new SnapshotReader(options.reads);
  }

  /** Resolves when its rows are on disk. Rejects with SnapshotDamage, and then takes nothing more. */
  add(chunk: Uint8Array): Promise<void> {
    return this.#next(() => this.#write(chunk));
  }

  /** Ends the taking in: everything must be there. Rejects as `add`. */
  complete(): Promise<TakenIn> {
    return this.#next(() => this.#finish());
  }

  /** What a restore brings back of it, once it is complete: to be read out again, not adopted. */
  restoredRows(): AsyncIterable<readonly KvRow[]> {
    assert(this.#standing === 'complete', 'what is read out is whole');
    assert(this.#options.isForRestore, 'what is read out was made for it');
    return restoredAmong(this.#options.kv.rows(rangeOfKeyspace(KEYSPACES.current)));
  }

  /** From now on this is the state. Only after `complete`, and never while entries are applied. */
  async adopt(): Promise<void> {
    assert(this.#standing === 'complete' && this.#meta !== undefined, 'what is adopted is whole');
    assert(!this.#options.isForRestore, 'an archive is not adopted');
    this.#standing = 'adopted';
    this.#options.onAdopt(this.#meta);
  }

  /** Forgets what was taken in. After `adopt`, and when called again, it does nothing. */
  async abandon(): Promise<void> {
    if (this.#standing === 'adopted') return;
    this.#standing = 'abandoned';
    this.#abandoned ??= this.#working.then(() => this.#options.onAbandon());
    await this.#abandoned;
  }

  /** Resolves when it is gone; undefined while nobody abandoned it. */
  get abandoned(): Promise<void> | undefined {
    return this.#abandoned;
  }

  #next<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#working.then(() => this.#unlessFailed(work));
    this.#working = result.catch(() => undefined);
    return result;
  }

  async #unlessFailed<T>(work: () => Promise<T>): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#standing === 'abandoned') throw givenUp();
    assert(this.#standing === 'taking', 'nothing comes behind the end', { at: this.#standing });
    try {
      return await work();
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  async #write(chunk: Uint8Array): Promise<void> {
    const rows = this.#reader.take(chunk);
    const { kv, isForRestore } = this.#options;
    const size = isForRestore ? RESTORED_OBJECTS_MAX : BATCH_ROWS_MAX;
    for (let at = 0; at < rows.length; at += size) {
      if (this.#hasBeenAbandoned) throw givenUp();
      const slice = rows.slice(at, at + size);
      const writes = isForRestore
        ? restoredWrites(kv, slice)
        : slice.map((row) => this.#placed(row));
      if (writes.length > 0) await kv.write(writes);
    }
  }

  /** While something was waited for. */
  get #hasBeenAbandoned(): boolean {
    return this.#standing === 'abandoned';
  }

  #placed(row: ReadRow): KvWrite {
    const { key, value } = row;
    if (key[0] === ROW.restore) this.#hasRestore = true;
    if (key[0] === ROW.staged && !this.#hasRestore) {
      throw new SnapshotDamage('it has rows of a restore that is not under way');
    }
    if (row.object === undefined) requireUndamaged(row);
    return { type: 'put', key: placeOf(KEYSPACES, key), value };
  }

  async #finish(): Promise<TakenIn> {
    const { meta, metaRow, appliedEntry } = this.#reader.content();
    if (this.#options.isForRestore) await completeRestored(this.#options.kv, meta);
    // The last row: a store without it is no state.
    const writes: KvWrite[] = [{ type: 'put', key: META_KEY, value: metaRow }];
    if (this.#hasRestore) {
      writes.push({ type: 'put', key: KEYSPACES_KEY, value: encodeKeyspaces(KEYSPACES) });
    }
    await this.#options.kv.write(writes);
    if (this.#hasBeenAbandoned) throw givenUp();
    this.#meta = meta;
    this.#standing = 'complete';
    const { groupRecord, level } = meta;
    const { generation } = this.#options;
    return { appliedEntry, groupRecord, generation, level, metaRow };
  }
}

function givenUp(): AclError {
  return new AclError('unavailable', 'what was taken in was given up, and nothing was changed');
}

async function* restoredAmong(
  slices: AsyncIterable<readonly KvRow[]>,
): AsyncGenerator<readonly KvRow[]> {
  for await (const rows of slices) yield rows.filter(({ key }) => isRestoredRow(key[0]!));
}
