// The global log as a group of commands leaves it: entries go into rows, and what follows from them into
// the row that says how the datacenter stands. Both are in the batch of the effects that they speak of.

import { must } from '../../../cluster/base/assert.ts';
import type { Rows } from '../rows/store/row-buffer.ts';
import { rowKey } from '../rows/tables.ts';
import { rangesOf } from './chain.ts';
import type { GlobalCursor } from './cursor.ts';
import { cursorAfter, encodeEntry, entryHash, type GlobalEntry } from './global-entry.ts';
import type { WrittenEntry } from './recent-entries.ts';
import {
  currentEpoch,
  decodeReplication,
  type EpochStart,
  encodeReplication,
  REPLICATION_KEY,
  type Replication,
} from './replication.ts';
import { withPlace } from './set-apart.ts';

/** An entry as it stands in its row. */
export interface PackedEntry {
  readonly bytes: Uint8Array;
  readonly hash: Uint8Array;
}

export class GlobalLogWriter {
  readonly #rows: Rows;
  #replication: Replication | undefined;
  #hasMoved = false;
  /** By more than entries with effects. */
  #hasChanged = false;
  readonly #written: WrittenEntry[] = [];

  /** `replication` is what the row says, so that nobody need read it. */
  constructor(rows: Rows, replication: Replication | undefined) {
    this.#rows = rows;
    this.#replication = replication;
  }

  get replication(): Replication | undefined {
    return this.#replication;
  }

  change(replication: Replication): void {
    this.#replication = replication;
    this.#hasMoved = true;
    this.#hasChanged = true;
  }

  /** Writes an entry of this primary. */
  write(entry: GlobalEntry): void {
    const bytes = encodeEntry(entry);
    const hash = entryHash(bytes);
    const { epoch, seq, prevHash } = entry;
    this.append(entry, { bytes, hash });
    this.#written.push({ epoch, seq, prevHash, hash, bytes });
  }

  /** An entry of another primary, at that feature level. */
  take(entry: GlobalEntry, packed: PackedEntry, level: number): void {
    const before = must(this.replication, 'a global log');
    const after = withPlace({ level }, before, entry);
    if (after !== before) this.change(after);
    this.append(entry, packed);
  }

  /** The entry follows the last one. */
  append(entry: GlobalEntry, { bytes, hash }: PackedEntry): void {
    const { epoch, seq, body } = entry;
    this.#rows.putRow(entryKey(epoch, seq), bytes);
    const before = must(this.replication, 'a global log');
    const cursor = cursorAfter(entry, hash);
    const isOfEpoch = epoch === currentEpoch(before).epoch && epoch <= before.maxEpochPromised;
    if (isOfEpoch && body.kind === 'effects') {
      // So are nearly all.
      this.#replication = movedOn(before, cursor, before.keptBytes + bytes.length);
      this.#hasMoved = true;
      return;
    }
    // Nothing leads from before a restore to behind it.
    const kept = body.kind === 'reset' ? withoutKept(before, seq) : before;
    this.change({
      ...kept,
      ...promisedWith(kept, epoch),
      ...(body.kind === 'datacenters' && { datacenters: body.datacenters, datacentersSeq: seq }),
      cursor,
      epochs: epochsWith(kept, entry),
      keptBytes: kept.keptBytes + bytes.length,
    });
  }

  /** What `write` has written, in order. */
  get written(): readonly WrittenEntry[] {
    return this.#written;
  }

  /** Puts the row among the rows, if it changed; gives whether it did, and what it says. */
  finish(): { readonly hasMoved: boolean; readonly replication: Replication | undefined } {
    if (!this.#hasMoved) return { hasMoved: false, replication: this.#replication };
    const replication = must(this.replication, 'a global log');
    const row = encodeReplication(replication);
    this.#rows.putRow(REPLICATION_KEY, row);
    if (!this.#hasChanged) return { hasMoved: true, replication };
    // Decoded from bytes of its own: what is new in it may be views of a command, which they would keep in memory.
    return { hasMoved: true, replication: decodeReplication(Uint8Array.from(row)) };
  }
}

/** With every field named, optional ones too: what is left out would be lost with the next entry. */
type WholeReplication = {
  readonly [Field in keyof Required<Replication>]: Replication[Field];
};

/** Field by field: spreading takes several times as long, and every entry comes here. */
function movedOn(before: Replication, cursor: GlobalCursor, keptBytes: number): WholeReplication {
  return {
    datacenter: before.datacenter,
    federationId: before.federationId,
    isWitness: before.isWitness,
    cursor,
    epochs: before.epochs,
    maxEpochPromised: before.maxEpochPromised,
    votedFor: before.votedFor,
    datacenters: before.datacenters,
    datacentersSeq: before.datacentersSeq,
    first: before.first,
    keptBytes,
    divergent: before.divergent,
    gone: before.gone,
    unused: before.unused,
    isDiverged: before.isDiverged,
  };
}

/** The key of the row of an entry. */
export function entryKey(epoch: number, seq: number): Uint8Array {
  return rowKey('globalEntry', epoch, seq);
}

/** None of the entries so far is kept; the next one has the seq `first`. */
export function withoutKept(replication: Replication, first: number): Replication {
  const { epochs, cursor, unused } = replication;
  const dropped = rangesOf(epochs, replication.first, cursor.seq);
  return { ...replication, first, keptBytes: 0, unused: [...unused, ...dropped] };
}

function epochsWith(replication: Replication, entry: GlobalEntry): readonly EpochStart[] {
  const { epochs, datacenter } = replication;
  const { epoch, seq, prevHash, body } = entry;
  if (epoch === currentEpoch(replication).epoch) return epochs;
  const primary = body.kind === 'epoch-start' ? body.primary : datacenter;
  return [...epochs, { epoch, startSeq: seq, startHash: prevHash, primary }];
}

/** An epoch that has begun is as good as promised. */
export function promisedWith(
  { maxEpochPromised, votedFor }: Replication,
  epoch: number,
): Pick<Replication, 'maxEpochPromised' | 'votedFor'> {
  if (epoch <= maxEpochPromised) return { maxEpochPromised, votedFor };
  return { maxEpochPromised: epoch, votedFor: undefined };
}
