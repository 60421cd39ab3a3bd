// The place of an entry as its first fields say it, without unpacking what follows: the feed asks that of
// every entry that it sends, and unpacking a whole one costs ten times as much. What does not look like the
// entries that are written is left to the codec.

import { packedNumberAt, packedSizeAt } from '../rows/layout/packed-number.ts';

/** What an entry says of its place. */
export interface EntryLinks {
  readonly epoch: number;
  readonly seq: number;
  readonly prevHash: Uint8Array;
  readonly timeMs: number;
}

/** msgpack of an array of twelve: the fields of an entry. */
const FIELDS_HEAD = 0x9c;
const FORMAT = 1;
/** A byte string of 32 bytes. */
const HASH_HEAD = [0xc4, 32] as const;
const HASH_BYTES = 32;

/** Undefined where the bytes are not laid out as expected: they may be an entry all the same. */
export function linksAtHead(bytes: Uint8Array): EntryLinks | undefined {
  if (bytes[0] !== FIELDS_HEAD || bytes[1] !== FORMAT) return undefined;
  const seqAt = 2 + packedSizeAt(bytes, 2);
  const hashAt = seqAt + packedSizeAt(bytes, seqAt);
  const indexAt = hashAt + HASH_HEAD.length + HASH_BYTES;
  const timeAt = indexAt + packedSizeAt(bytes, indexAt);
  // An unknown kind of number has no size, so no place behind it exists.
  if (!(timeAt + packedSizeAt(bytes, timeAt) <= bytes.length)) return undefined;
  if (bytes[hashAt] !== HASH_HEAD[0] || bytes[hashAt + 1] !== HASH_HEAD[1]) return undefined;
  return {
    epoch: packedNumberAt(bytes, 2),
    seq: packedNumberAt(bytes, seqAt),
    prevHash: bytes.subarray(hashAt + HASH_HEAD.length, indexAt),
    timeMs: packedNumberAt(bytes, timeAt),
  };
}
