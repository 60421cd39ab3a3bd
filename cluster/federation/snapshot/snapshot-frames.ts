// A snapshot between datacenters, as bytes of calls and their answers. docs/WIRE.md has the table.

import { packed, unpacked } from '../../wire/call-payload.ts';
import { NAME_MAX } from '../../wire/frame.ts';
import { bytesOf, countOf, exactBytesOf, flagOf, textOf } from '../../wire/shape.ts';
import { cursorFields, cursorOf } from '../feed/feed-frames.ts';
import { HASH_BYTES } from '../global-log.ts';
import type { SnapshotOffer } from './snapshot-sink.ts';

/** The names of the calls. */
export const SNAPSHOT_METHOD = { open: 'feed.snapshot', chunk: 'feed.chunk' } as const;

/** Codes of refusals. They are on the wire: none gets another meaning. */
export const SNAPSHOT_REFUSAL = {
  /** That snapshot, or that chunk of it, is not here any more: take another one. */
  gone: 'snapshot.gone',
  /** Not now, or not so many. */
  busy: 'snapshot.busy',
  /** This server does not lead the primary, or the asker is of another federation. */
  elsewhere: 'snapshot.elsewhere',
} as const;

/** One chunk of a snapshot is wanted. */
export interface ChunkWish {
  readonly snapshotId: string;
  /** From 0. */
  readonly number: number;
}

/** A chunk; or, without bytes, the end. */
export interface SnapshotChunk {
  /** Of the chunk; at the end, how many there were. */
  readonly number: number;
  readonly isEnd: boolean;
  /** SHA-256 of the bytes. */
  readonly hash: Uint8Array;
  readonly bytes: Uint8Array;
}

/** With the federation of whoever asks; empty: it knows of none yet. */
export function encodeOpen(federationId: string): Uint8Array {
  return packed(federationId);
}

/** Throws WireDamage. */
export function decodeOpen(bytes: Uint8Array): string {
  return textOf(unpacked(bytes, 'a wish for a snapshot', 1)[0], 'federationId', NAME_MAX);
}

export function encodeOffer({
  snapshotId,
  federationId,
  epoch,
  cursor,
}: SnapshotOffer): Uint8Array {
  return packed(snapshotId, federationId, epoch, cursorFields(cursor));
}

/** Throws WireDamage. */
export function decodeOffer(bytes: Uint8Array): SnapshotOffer {
  const [snapshotId, federationId, epoch, cursor] = unpacked(bytes, 'an offer of a snapshot', 4);
  return {
    snapshotId: textOf(snapshotId, 'snapshotId', NAME_MAX),
    federationId: textOf(federationId, 'federationId', NAME_MAX),
    epoch: countOf(epoch, 'epoch'),
    cursor: cursorOf(cursor, 'cursor'),
  };
}

export function encodeWish({ snapshotId, number }: ChunkWish): Uint8Array {
  return packed(snapshotId, number);
}

/** Throws WireDamage. */
export function decodeWish(bytes: Uint8Array): ChunkWish {
  const [snapshotId, number] = unpacked(bytes, 'a wish for a chunk', 2);
  return {
    snapshotId: textOf(snapshotId, 'snapshotId', NAME_MAX),
    number: countOf(number, 'number'),
  };
}

export function encodeChunk({ number, isEnd, hash, bytes }: SnapshotChunk): Uint8Array {
  return packed(number, isEnd, hash, bytes);
}

/** Throws WireDamage. */
export function decodeChunk(payload: Uint8Array): SnapshotChunk {
  const [number, isEnd, hash, bytes] = unpacked(payload, 'a chunk of a snapshot', 4);
  return {
    number: countOf(number, 'number'),
    isEnd: flagOf(isEnd, 'isEnd'),
    hash: exactBytesOf(hash, 'hash', HASH_BYTES),
    bytes: bytesOf(bytes, 'bytes'),
  };
}
