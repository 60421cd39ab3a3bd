// A state on its way in: takes the chunks one after the other, gives their rows, and believes nothing. Each
// object must be one that this release reads, at its own place. At the end, order, count, chain, totals and
// the digests made anew from the objects must all be what the snapshot says of itself. What to do with the
// rows, and what the others among them hold, is the caller's matter.

import { AssertionError } from '../../../cluster/base/assert.ts';
import type { LogWitness } from '../../../cluster/log/log-entry.ts';
import type { KvRow } from '../../../cluster/platform/kv.ts';
import { NEWEST_LEVEL } from '../commands/feature-levels.ts';
import { Digest, rowHash } from '../rows/digest.ts';
import type { Fields } from '../rows/layout/packing.ts';
import {
  nameOfRow,
  objectIn,
  type ReadObject,
  UnreadableRow,
} from '../rows/layout/readable-row.ts';
import { decodeMeta, type Meta } from '../rows/meta.ts';
import { wrongInMeta } from '../rows/meta-check.ts';
import { isObjectRow, isSentRow, NO_BYTES, ROW } from '../rows/tables.ts';
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

/** What a whole snapshot says of itself. */
export interface SnapshotContent {
  readonly meta: Meta;
  /** The row that says it; it was not among the rows. */
  readonly metaRow: Uint8Array;
  /** Of the meta: a state before its first entry is nobody's snapshot. */
  readonly appliedEntry: LogWitness;
}

/** A row that came. */
export interface ReadRow extends KvRow {
  /** Of a row of an object's kind: the object, and what the row adds to the digests. */
  readonly object: (ReadObject & { readonly hash: Uint8Array }) | undefined;
}

export class SnapshotReader {
  readonly #reads: number;
  #chunkCount = 0;
  #chain: Uint8Array = CHAIN_ORIGIN;
  #content: SnapshotContent | undefined;
  #isEnded = false;
  readonly #parser = new RowParser((says) => this.#damage(says));
  #lastKey: Uint8Array = NO_BYTES;
  readonly #fullDigest = new Digest();
  readonly #globalDigest = new Digest();
  #localTokenCount = 0;
  /** Rows of each kind, by the first byte of their keys. */
  readonly #countByKind = new Map<number, number>();

  /** `reads` is the feature level up to which the program reads; left out: all that this release does. */
  constructor(reads: number = NEWEST_LEVEL) {
    this.#reads = reads;
  }

  /** The rows that are whole with this chunk, none at the header and the trailer. Throws SnapshotDamage. */
  take(chunk: Uint8Array): readonly ReadRow[] {
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
    const wrong = wrongInMeta(meta);
    if (wrong !== undefined) throw this.#damage(`no state goes on from what it says: ${wrong}`);
    if (meta.level > this.#reads) {
      const found = `its datacenter used feature level ${meta.level}, and this release reads up to ${this.#reads}`;
      // Nobody is to throw a good archive away.
      throw new SnapshotDamage(found, { says: 'a newer release wrote the snapshot' });
    }
    this.#content = { meta, metaRow, appliedEntry };
  }

  #rowsIn(piece: Uint8Array): readonly ReadRow[] {
    const before = this.#parser.rowCount;
    const rows = this.#parser.take(piece);
    return rows.map((row, place) => this.#read(row, before + place + 1));
  }

  #read(row: KvRow, number: number): ReadRow {
    const { key, value } = row;
    const kind = key[0]!;
    if (!isSentRow(kind)) {
      throw this.#damage(`row ${number} is of a kind (${kind}) that is not known here`);
    }
    if (Buffer.compare(this.#lastKey, key) >= 0) {
      throw this.#damage(`row ${number} is not behind the one before it`);
    }
    this.#lastKey = key;
    this.#countByKind.set(kind, (this.#countByKind.get(kind) ?? 0) + 1);
    if (!isObjectRow(kind)) return { key, value, object: undefined };
    const read = this.#objectIn(row, number);
    const hash = rowHash(key, value);
    this.#fullDigest.add(hash);
    if (!read.table.isLocal(read.object)) this.#globalDigest.add(hash);
    else this.#localTokenCount += 1;
    return { key, value, object: { ...read, hash } };
  }

  #objectIn(row: KvRow, number: number): ReadObject {
    const read = this.#readable(row, number);
    const { createIndex, modifyIndex } = read.object;
    const index = this.#content!.meta.index;
    if (createIndex <= modifyIndex && modifyIndex <= index) return read;
    const says = `was made at ${createIndex} and changed at ${modifyIndex}, in a state of index ${index}`;
    throw this.#damage(`row ${number}: ${nameOfRow(row.key)} ${says}`);
  }

  #readable(row: KvRow, number: number): ReadObject {
    try {
      return objectIn(row);
    } catch (error) {
      if (!(error instanceof UnreadableRow)) throw error;
      throw this.#damage(`row ${number}: ${error.message}`);
    }
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
  #requireOwnWords({ totals, globalDigest, fullDigest }: Meta): void {
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
    if (this.#localTokenCount !== totals.localTokens) {
      const found = this.#localTokenCount;
      throw this.#damage(`it has ${found} local tokens, and says ${totals.localTokens}`);
    }
    this.#requireDigest('its objects', this.#fullDigest, fullDigest);
    this.#requireDigest('its global objects', this.#globalDigest, globalDigest);
  }

  #requireDigest(of: string, found: Digest, said: Uint8Array): void {
    const [foundHex, saidHex] = [found.hex(), new Digest(said).hex()];
    if (foundHex === saidHex) return;
    throw this.#damage(`${of} have the digest ${foundHex}, and it says ${saidHex}`);
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
