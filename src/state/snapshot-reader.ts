// A state on its way in: takes the chunks one after the other, gives their rows, and believes nothing. At
// the end, order, count, chain, totals and the digest made anew from the objects must all be what the
// snapshot says of itself. What to do with the rows is the caller's matter.

import { AssertionError } from '../../cluster/base/assert.ts';
import type { LogWitness } from '../../cluster/log/log-entry.ts';
import type { KvRow } from '../../cluster/platform/kv.ts';
import { Digest, rowHash } from './digest.ts';
import { decodeMeta, type Meta } from './meta.ts';
import { RowParser } from './row-parser.ts';
import { SnapshotDamage } from './snapshot-damage.ts';
import {
  CHAIN_ORIGIN,
  CHUNK,
  chained,
  fieldsIn,
  SNAPSHOT_CHUNK_MAX_BYTES,
  SNAPSHOT_FORMAT,
} from './snapshot-format.ts';
import type { Fields } from './packing.ts';
import { isObjectRow, isSentRow, NO_BYTES, ROW } from './tables.ts';

/** What a whole snapshot says of itself. */
export interface SnapshotContent {
  readonly meta: Meta;
  /** The row that says it; it was not among the rows. */
  readonly metaRow: Uint8Array;
  /** Of the meta: a state before its first entry is nobody's snapshot. */
  readonly appliedEntry: LogWitness;
}

export class SnapshotReader {
  #chunkCount = 0;
  #chain: Uint8Array = CHAIN_ORIGIN;
  #content: SnapshotContent | undefined;
  #isEnded = false;
  readonly #parser = new RowParser((says) => this.#damage(says));
  #lastKey: Uint8Array = NO_BYTES;
  readonly #digest = new Digest();
  /** Rows of each kind, by the first byte of their keys. */
  readonly #countByKind = new Map<number, number>();

  /** The rows that are whole with this chunk, none at the header and the trailer. Throws SnapshotDamage. */
  take(chunk: Uint8Array): readonly KvRow[] {
    this.#chunkCount += 1;
    if (this.#isEnded) throw this.#damage('more follows behind its end');
    if (chunk.length === 0 || chunk.length > SNAPSHOT_CHUNK_MAX_BYTES) {
      throw this.#damage(`it has ${chunk.length} bytes`);
    }
    if (chunk[0] === CHUNK.trailer) {
      this.#end(this.#fieldsOf(chunk));
      return [];
    }
    this.#chain = chained(this.#chain, chunk);
    if (chunk[0] === CHUNK.header && this.#chunkCount === 1) {
      this.#begin(this.#fieldsOf(chunk));
      return [];
    }
    if (chunk[0] !== CHUNK.rows || this.#content === undefined) {
      throw this.#damage(`it begins with ${chunk[0]}, which is not expected here`);
    }
    return this.#rowsIn(chunk.subarray(1));
  }

  /** What came, if all did. Throws SnapshotDamage. */
  content(): SnapshotContent {
    if (this.#content !== undefined && this.#isEnded) return this.#content;
    throw new SnapshotDamage(`it ends behind chunk ${this.#chunkCount}, before its own end`);
  }

  #begin([format, metaRow]: Fields): void {
    if (format !== SNAPSHOT_FORMAT || !(metaRow instanceof Uint8Array)) {
      throw this.#damage(`its format is ${String(format)}, known here is ${SNAPSHOT_FORMAT}`);
    }
    const meta = this.#orDamage(() => decodeMeta(metaRow));
    const { appliedEntry } = meta;
    if (appliedEntry === undefined) throw this.#damage('it is of a state without any entry');
    this.#content = { meta, metaRow, appliedEntry };
  }

  #rowsIn(piece: Uint8Array): readonly KvRow[] {
    const before = this.#parser.rowCount;
    const rows = this.#parser.take(piece);
    for (const [place, row] of rows.entries()) this.#look(row, before + place + 1);
    return rows;
  }

  #look({ key, value }: KvRow, number: number): void {
    const kind = key[0]!;
    if (!isSentRow(kind)) {
      throw this.#damage(`row ${number} is of a kind (${kind}) that is not known here`);
    }
    if (Buffer.compare(this.#lastKey, key) >= 0) {
      throw this.#damage(`row ${number} is not behind the one before it`);
    }
    this.#lastKey = key;
    this.#countByKind.set(kind, (this.#countByKind.get(kind) ?? 0) + 1);
    if (isObjectRow(kind)) this.#digest.add(rowHash(key, value));
  }

  #end([rowCount, chain]: Fields): void {
    const content = this.#content;
    if (content === undefined) throw this.#damage('it has no beginning');
    const { rowCount: found, begunBytes } = this.#parser;
    if (begunBytes > 0) {
      throw this.#damage(`row ${found + 1} is cut off behind ${begunBytes} bytes`);
    }
    if (rowCount !== found) {
      throw this.#damage(`${found} rows came, ${String(rowCount)} were sent`);
    }
    if (!(chain instanceof Uint8Array) || Buffer.compare(chain, this.#chain) !== 0) {
      throw this.#damage(`what came in chunks 1 to ${this.#chunkCount - 1} is not what was sent`);
    }
    this.#requireOwnWords(content.meta);
    this.#isEnded = true;
  }

  /** The rows must be those that the state says it has. */
  #requireOwnWords({ totals, fullDigest }: Meta): void {
    const said: readonly (readonly [number, number])[] = [
      [ROW.token, totals.tokens],
      [ROW.policy, totals.policies],
      [ROW.role, totals.roles],
      [ROW.authMethod, totals.authMethods],
      [ROW.bindingRule, totals.bindingRules],
      [ROW.namespace, totals.namespaces],
    ];
    for (const [kind, count] of said) {
      const found = this.#countByKind.get(kind) ?? 0;
      if (found === count) continue;
      throw this.#damage(`it has ${found} rows of kind ${kind}, and says ${count}`);
    }
    const digest = this.#digest.hex();
    const saidDigest = new Digest(fullDigest).hex();
    if (digest === saidDigest) return;
    throw this.#damage(`its objects have the digest ${digest}, and it says ${saidDigest}`);
  }

  #fieldsOf(chunk: Uint8Array): Fields {
    return this.#orDamage(() => fieldsIn(chunk));
  }

  /** What cannot be read was changed under way, or is of a newer release: refused either way. */
  #orDamage<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      const said = error instanceof AssertionError ? error.message : 'it cannot be read';
      throw this.#damage(said, error);
    }
  }

  #damage(found: string, cause?: unknown): SnapshotDamage {
    return new SnapshotDamage(`chunk ${this.#chunkCount}: ${found}`, { cause });
  }
}
