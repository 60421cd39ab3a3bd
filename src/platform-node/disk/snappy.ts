// Unpacks what LevelDB packs its blocks with (the raw Snappy format). Only what is known to be whole, by its
// checksum, is given to it; what does not fit all the same gives undefined.

/** Beyond any block of ours. */
const UNPACKED_MAX_BYTES = 64 * 1024 * 1024;
/** Literals up to so many bytes have their length in the tag. */
const SHORT_LITERAL_MAX = 60;

export function unpackSnappy(packed: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  const length = readVarint(bytes, 0);
  if (length === undefined || length.value > UNPACKED_MAX_BYTES) return undefined;
  const unpacked = Buffer.alloc(length.value);
  let from = length.next;
  let to = 0;
  while (from < bytes.length) {
    const piece = pieceAt(bytes, from);
    if (piece === undefined || to + piece.size > unpacked.length) return undefined;
    if (piece.kind === 'literal') {
      if (piece.next + piece.size > bytes.length) return undefined;
      bytes.copy(unpacked, to, piece.next, piece.next + piece.size);
      from = piece.next + piece.size;
    } else {
      if (piece.back === 0 || piece.back > to) return undefined;
      // Byte by byte: a copy may reach into what it writes.
      for (let at = to; at < to + piece.size; at += 1) unpacked[at] = unpacked[at - piece.back]!;
      from = piece.next;
    }
    to += piece.size;
  }
  return to === unpacked.length ? unpacked : undefined;
}

type Piece =
  | { readonly kind: 'literal'; readonly size: number; readonly next: number }
  | { readonly kind: 'copy'; readonly size: number; readonly back: number; readonly next: number };

function pieceAt(bytes: Buffer, at: number): Piece | undefined {
  const tag = bytes[at]!;
  const high = tag >> 2;
  const lowBits = tag & 3;
  const extraBytes =
    lowBits === 0 ? Math.max(0, high + 1 - SHORT_LITERAL_MAX) : [0, 1, 2, 4][lowBits]!;
  const next = at + 1 + extraBytes;
  if (next > bytes.length) return undefined;
  const extra = extraBytes === 0 ? 0 : bytes.readUIntLE(at + 1, extraBytes);
  if (lowBits === 0) return { kind: 'literal', size: (extraBytes === 0 ? high : extra) + 1, next };
  if (lowBits === 1)
    return { kind: 'copy', size: (high & 7) + 4, back: ((tag >> 5) << 8) | extra, next };
  return { kind: 'copy', size: high + 1, back: extra, next };
}

export interface Varint {
  readonly value: number;
  readonly next: number;
}

const VARINT_MAX_BYTES = 7;

/** Numbers of seven bits a byte, the low ones first. Undefined when it does not end. */
export function readVarint(bytes: Uint8Array, at: number): Varint | undefined {
  let value = 0;
  let weight = 1;
  for (let place = 0; place < VARINT_MAX_BYTES; place += 1) {
    const byte = bytes[at + place];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * weight;
    if (byte < 0x80) return { value, next: at + place + 1 };
    weight *= 0x80;
  }
  return undefined;
}
