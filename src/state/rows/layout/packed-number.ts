// Numbers in packed rows and entries, read where they are, without unpacking what stands around them. Of a kind that
// is not written there they are NaN, so that no place behind them exists.

const UINT_8 = 0xcc;
const UINT_16 = 0xcd;
const UINT_32 = 0xce;
const FLOAT_64 = 0xcb;

/** How many bytes the number takes that begins there, its kind included. */
export function packedSizeAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? Number.NaN;
  if (first < 0x80) return 1;
  if (first === UINT_8) return 2;
  if (first === UINT_16) return 3;
  if (first === UINT_32) return 5;
  return first === FLOAT_64 ? 9 : Number.NaN;
}

/** The number that begins there. */
export function packedNumberAt(bytes: Uint8Array, at: number): number {
  if (!(at + packedSizeAt(bytes, at) <= bytes.length)) return Number.NaN;
  const first = bytes[at]!;
  if (first < 0x80) return first;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  switch (first) {
    case UINT_8:
      return view.getUint8(at + 1);
    case UINT_16:
      return view.getUint16(at + 1);
    case UINT_32:
      return view.getUint32(at + 1);
    default:
      return view.getFloat64(at + 1);
  }
}
