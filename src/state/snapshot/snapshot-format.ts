// A state as a stream of chunks. The first byte of a chunk says what it is:
//
//   header   1, then [format, meta row]
//   rows     2, then a piece of the rows, cut anywhere
//   trailer  3, then [row count, chain]
//
// The rows are in ascending order of their keys, and each key is there once; see row-parser.ts. The meta
// row is in the header, not among them. The chain is a hash over all chunks before the trailer: it begins as 32
// zero bytes, and each chunk makes it SHA-256 over the chain so far and the chunk. History: format 1 is the first.

import type { KvRow } from '../../../cluster/platform/kv.ts';
import { sha256 } from '../../../cluster/platform/sha256.ts';
import { type Fields, pack, unpack } from '../rows/layout/packing.ts';

/** No chunk is larger. */
export const SNAPSHOT_CHUNK_MAX_BYTES = 256 * 1024;
/** Chunks of rows are made so large: what a chunk of small rows takes is one step of the event loop. */
export const ROWS_CHUNK_BYTES = 128 * 1024;

export const SNAPSHOT_FORMAT = 1;

export const CHUNK = { header: 1, rows: 2, trailer: 3 } as const;

export const CHAIN_ORIGIN = new Uint8Array(32);

/** The chain after one more chunk. */
export function chained(chain: Uint8Array, chunk: Uint8Array): Uint8Array {
  const both = Buffer.allocUnsafe(chain.length + chunk.length);
  both.set(chain, 0);
  both.set(chunk, chain.length);
  return sha256(both);
}

/** A chunk that holds fields. */
export function fieldsChunk(kind: number, fields: Fields): Uint8Array {
  const packed = pack(fields);
  const chunk = Buffer.allocUnsafe(1 + packed.length);
  chunk[0] = kind;
  chunk.set(packed, 1);
  return chunk;
}

/** The fields in such a chunk. Throws on bytes that are none. */
export function fieldsIn(chunk: Uint8Array): Fields {
  return unpack(chunk.subarray(1));
}

/** Bytes that a base-128 number takes. */
export function lengthSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size += 1;
  return size;
}

/** Writes a base-128 number; gives the place behind it. */
export function writeLength(into: Uint8Array, value: number, at: number): number {
  let place = at;
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) {
    into[place] = (rest % 0x80) + 0x80;
    place += 1;
  }
  into[place] = rest;
  return place + 1;
}

/** Whole rows, one behind the other. */
export function packedRows(rows: readonly KvRow[]): Uint8Array {
  const sizes = rows.map(packedSize);
  const packed = Buffer.allocUnsafe(sizes.reduce((sum, size) => sum + size, 0));
  let at = 0;
  for (const { key, value } of rows) {
    at = writeLength(packed, value.length, writeLength(packed, key.length, at));
    packed.set(key, at);
    packed.set(value, at + key.length);
    at += key.length + value.length;
  }
  return packed;
}

/** Bytes that a row takes among others. */
export function packedSize({ key, value }: KvRow): number {
  return lengthSize(key.length) + lengthSize(value.length) + key.length + value.length;
}
