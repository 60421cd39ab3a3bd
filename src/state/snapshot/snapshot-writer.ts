// A state on its way out: chunks of bounded size, made as they are asked for, so that a state of any size
// costs the memory of two chunks and no long step.

import type { LogWitness } from '../../../cluster/log/log-entry.ts';
import type { KvRange, KvReader, KvRow, KvSnapshot } from '../../../cluster/platform/kv.ts';
import { decodeMeta, EMPTY_META, encodeMeta, type Meta } from '../rows/meta.ts';
import { META_KEY, NO_BYTES, ROW } from '../rows/tables.ts';
import {
  CHAIN_ORIGIN,
  CHUNK,
  chained,
  fieldsChunk,
  lengthSize,
  ROWS_CHUNK_BYTES,
  SNAPSHOT_FORMAT,
  writeLength,
} from './snapshot-format.ts';

/** All rows but the meta row: those of the state, of one that is coming in, and of the global log. */
const SENT_RANGES: readonly KvRange[] = [
  { from: Uint8Array.of(ROW.meta + 1), to: Uint8Array.of(ROW.restore) },
  { from: Uint8Array.of(ROW.restore), to: Uint8Array.of(ROW.staged) },
  { from: Uint8Array.of(ROW.staged), to: Uint8Array.of(ROW.staged + 1) },
  { from: Uint8Array.of(ROW.replication), to: Uint8Array.of(ROW.globalEntry + 1) },
];

/** The state as of one moment. Whoever takes one closes it, read or not. */
export interface StateSnapshot {
  readonly appliedEntry: LogWitness | undefined;
  readonly groupRecord: Uint8Array | undefined;
  readonly meta: Meta;
  /** See snapshot-format.ts. Can be gone through once. */
  chunks(): AsyncIterable<Uint8Array>;
  /** Closing twice is harmless. */
  close(): Promise<void>;
}

/** What the store holds now, batches that are under way not counted. */
export function snapshotOf(store: { snapshot(): KvSnapshot }): StateSnapshot {
  const reader = store.snapshot();
  // The row of this very moment: what is held in memory may be a batch behind.
  const metaRow = reader.get(META_KEY) ?? encodeMeta(EMPTY_META);
  const meta = decodeMeta(metaRow);
  let closing: Promise<void> | undefined;
  return {
    appliedEntry: meta.appliedEntry,
    groupRecord: meta.groupRecord,
    meta,
    chunks: () => snapshotChunks(reader, metaRow),
    close: () => {
      closing ??= reader.close();
      return closing;
    },
  };
}

/** The chunks of the state that `reader` shows, whose meta row is `metaRow`. */
async function* snapshotChunks(reader: KvReader, metaRow: Uint8Array): AsyncGenerator<Uint8Array> {
  const header = fieldsChunk(CHUNK.header, [SNAPSHOT_FORMAT, metaRow]);
  yield header;
  let chain = chained(CHAIN_ORIGIN, header);
  const packer = new RowPacker();
  for (const range of SENT_RANGES) {
    for await (const rows of reader.rows(range)) {
      for (const chunk of packer.add(rows)) {
        chain = chained(chain, chunk);
        yield chunk;
      }
    }
  }
  const rest = packer.rest();
  if (rest !== undefined) {
    chain = chained(chain, rest);
    yield rest;
  }
  yield fieldsChunk(CHUNK.trailer, [packer.rowCount, chain]);
}

/** Puts rows one behind the other and cuts where a chunk is full. */
class RowPacker {
  #rowCount = 0;
  #chunk = freshChunk();
  #end = 1;

  get rowCount(): number {
    return this.#rowCount;
  }

  /** The chunks that became full. */
  add(rows: readonly KvRow[]): readonly Uint8Array[] {
    const full: Uint8Array[] = [];
    for (const { key, value } of rows) {
      this.#addBytes(this.#addLengths(key.length, value.length), full);
      this.#addBytes(key, full);
      this.#addBytes(value, full);
    }
    this.#rowCount += rows.length;
    return full;
  }

  /** The last chunk, if it holds anything. */
  rest(): Uint8Array | undefined {
    return this.#end > 1 ? this.#chunk.subarray(0, this.#end) : undefined;
  }

  /** Written in place where they fit; else the bytes that are left to be written. */
  #addLengths(keyLength: number, valueLength: number): Uint8Array {
    const size = lengthSize(keyLength) + lengthSize(valueLength);
    if (this.#end + size <= ROWS_CHUNK_BYTES) {
      this.#end = writeLength(this.#chunk, keyLength, this.#end);
      this.#end = writeLength(this.#chunk, valueLength, this.#end);
      return NO_BYTES;
    }
    const apart = Buffer.alloc(size);
    writeLength(apart, valueLength, writeLength(apart, keyLength, 0));
    return apart;
  }

  #addBytes(bytes: Uint8Array, full: Uint8Array[]): void {
    for (let at = 0; at < bytes.length; ) {
      if (this.#end === ROWS_CHUNK_BYTES) {
        full.push(this.#chunk);
        this.#chunk = freshChunk();
        this.#end = 1;
      }
      const size = Math.min(bytes.length - at, ROWS_CHUNK_BYTES - this.#end);
      this.#chunk.set(
        at === 0 && size === bytes.length ? bytes : bytes.subarray(at, at + size),
        this.#end,
      );
      this.#end += size;
      at += size;
    }
  }
}

function freshChunk(): Buffer {
  const chunk = Buffer.allocUnsafe(ROWS_CHUNK_BYTES);
  chunk[0] = CHUNK.rows;
  return chunk;
}
