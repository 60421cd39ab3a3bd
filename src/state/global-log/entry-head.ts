// The place of an entry as its first fields say it, without unpacking what follows: the feed asks that of
// every entry that it sends, and unpacking a whole one costs ten times as much. What does not look like the
// entries that are written is left to the codec.

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
const UINT_8 = 0xcc;
const UINT_16 = 0xcd;
const UINT_32 = 0xce;
const FLOAT_64 = 0xcb;

/** Undefined where the bytes are not laid out as expected: they may be an entry all the same. */
export function linksAtHead(bytes: Uint8Array): EntryLinks | undefined {
  if (bytes[0] !== FIELDS_HEAD || bytes[1] !== FORMAT) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const seqAt = 2 + sizeAt(bytes, 2);
  const hashAt = seqAt + sizeAt(bytes, seqAt);
  const indexAt = hashAt + HASH_HEAD.length + HASH_BYTES;
  const timeAt = indexAt + sizeAt(bytes, indexAt);
  // An unknown kind of number has no size, so no place behind it exists.
  if (!(timeAt + sizeAt(bytes, timeAt) <= bytes.length)) return undefined;
  if (bytes[hashAt] !== HASH_HEAD[0] || bytes[hashAt + 1] !== HASH_HEAD[1]) return undefined;
  return {
    epoch: numberAt(view, 2),
    seq: numberAt(view, seqAt),
    prevHash: bytes.subarray(hashAt + HASH_HEAD.length, indexAt),
    timeMs: numberAt(view, timeAt),
  };
}

/** Of the number that begins there, its kind included; NaN where it is of a kind that entries lack. */
function sizeAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? Number.NaN;
  if (first < 0x80) return 1;
  if (first === UINT_8) return 2;
  if (first === UINT_16) return 3;
  if (first === UINT_32) return 5;
  return first === FLOAT_64 ? 9 : Number.NaN;
}

function numberAt(view: DataView, at: number): number {
  switch (view.getUint8(at)) {
    case UINT_8:
      return view.getUint8(at + 1);
    case UINT_16:
      return view.getUint16(at + 1);
    case UINT_32:
      return view.getUint32(at + 1);
    case FLOAT_64:
      return view.getFloat64(at + 1);
    default:
      return view.getUint8(at);
  }
}
