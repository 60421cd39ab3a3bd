// Who dials: the name in the first frame that a node sends over a connection between nodes (docs/WIRE.md).
// Reads along and changes nothing. Knows plain connections only, as the local cluster has them.

import { decodeFrame } from '../../cluster/wire/frame-codec.ts';

export type Reading =
  | { readonly kind: 'more' }
  | { readonly kind: 'hello'; readonly name: string }
  /** What came is not what a node says. */
  | { readonly kind: 'stranger' };

const END_OF_REQUEST = '\r\n\r\n';
/** A request and a hello are well below it. */
const READ_MAX_BYTES = 32 * 1024;
const FINAL_BINARY = 0x82;
const IS_MASKED = 0x80;
const MASK_BYTES = 4;
/** Lengths from here on stand in the two bytes that follow; a hello never needs eight. */
const LENGTH_IN_TWO_BYTES = 126;

/** Takes the bytes of the dialling side, from the first one on. */
export class HelloReader {
  #bytes: Buffer = Buffer.alloc(0);

  take(bytes: Uint8Array): Reading {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    const requestEnd = this.#bytes.indexOf(END_OF_REQUEST);
    const reading = requestEnd < 0 ? MORE : readFrame(this.#bytes, requestEnd);
    const isTooLong = reading.kind === 'more' && this.#bytes.length > READ_MAX_BYTES;
    return isTooLong ? STRANGER : reading;
  }
}

const MORE = { kind: 'more' } as const;
const STRANGER = { kind: 'stranger' } as const;

function readFrame(bytes: Buffer, requestEnd: number): Reading {
  const frame = bytes.subarray(requestEnd + END_OF_REQUEST.length);
  if (frame.length < 4) return MORE;
  const second = frame[1]!;
  if (frame[0] !== FINAL_BINARY || (second & IS_MASKED) === 0) return STRANGER;
  const short = second & ~IS_MASKED;
  if (short > LENGTH_IN_TWO_BYTES) return STRANGER;
  const isShort = short < LENGTH_IN_TWO_BYTES;
  const length = isShort ? short : frame.readUInt16BE(2);
  const maskAt = isShort ? 2 : 4;
  const payloadAt = maskAt + MASK_BYTES;
  if (frame.length < payloadAt + length) return MORE;
  return helloIn(unmasked(frame.subarray(maskAt, payloadAt + length)));
}

function unmasked(masked: Uint8Array): Uint8Array {
  return masked.subarray(MASK_BYTES).map((byte, place) => byte ^ masked[place % MASK_BYTES]!);
}

function helloIn(bytes: Uint8Array): Reading {
  try {
    const frame = decodeFrame(bytes);
    return frame.kind === 'hello' ? { kind: 'hello', name: frame.name } : STRANGER;
  } catch {
    return STRANGER;
  }
}
