// The frames of a snapshot that travels between members, as bytes of calls.

import type { SnapshotMessage } from '../../raft/message.ts';
import { packed, unpacked } from '../../wire/call-payload.ts';
import { messageFields, messageOf } from '../../wire/message-codec.ts';
import { bytesOf, countOf } from '../../wire/shape.ts';
import { WireDamage } from '../../wire/wire-damage.ts';

/** A chunk with its place; or, without bytes, the end. */
export interface SnapshotPiece {
  /** The receiver's number for this transfer. */
  readonly transfer: number;
  /** Of the chunk, from 0; at the end, how many there were. */
  readonly number: number;
  readonly bytes: Uint8Array;
}

export const NOTHING = new Uint8Array(0);

export function encodeBegin(message: SnapshotMessage): Uint8Array {
  return packed(messageFields(message));
}

/** Throws WireDamage. */
export function decodeBegin(bytes: Uint8Array): SnapshotMessage {
  const message = messageOf(unpacked(bytes, 'the begin of a snapshot', 1)[0]);
  if (message.type === 'snapshot') return message;
  throw new WireDamage(`a snapshot begins with its message, not with one of type ${message.type}`);
}

/** What the receiver answers to a begin. */
export function encodeBegun(transfer: number): Uint8Array {
  return packed(transfer);
}

/** Throws WireDamage. */
export function beginOf(bytes: Uint8Array): number {
  return countOf(unpacked(bytes, 'the begin of a snapshot', 1)[0], 'transfer');
}

export function encodePiece({ transfer, number, bytes }: SnapshotPiece): Uint8Array {
  return packed(transfer, number, bytes);
}

/** Throws WireDamage. */
export function decodePiece(payload: Uint8Array): SnapshotPiece {
  const [transfer, number, bytes] = unpacked(payload, 'a piece of a snapshot', 3);
  return {
    transfer: countOf(transfer, 'transfer'),
    number: countOf(number, 'number'),
    bytes: bytesOf(bytes, 'bytes'),
  };
}
