// Walks packed bytes before anything is unpacked, so that a length that lies or a tower of arrays
// costs nothing. Only what frames use is let through: no maps, no extensions.

import { WireError } from './wire-error.ts';

const MAX_DEPTH = 8;

/** Throws WireError unless `bytes` is exactly one value of bounded depth whose lengths are true. */
export function checkShape(bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const open: number[] = [1];
  let at = 0;
  while (open.length > 0) {
    const left = open.pop() ?? 0;
    if (left === 0) continue;
    open.push(left - 1);
    if (at >= bytes.length) throw new WireError('malformed', 'bytes end early');
    const { size, items } = headAt(view, at);
    at += size;
    if (at > bytes.length || items > bytes.length - at) {
      throw new WireError('malformed', 'a length exceeds the bytes');
    }
    if (items === 0) continue;
    open.push(items);
    if (open.length > MAX_DEPTH + 1) throw new WireError('too-deep', 'arrays nest too deep');
  }
  if (at !== bytes.length) throw new WireError('malformed', 'bytes after the end');
}

interface Head {
  /** Bytes of the head and, for text and bytes, of the content. */
  readonly size: number;
  /** Values that follow and belong to it. */
  readonly items: number;
}

function headAt(view: DataView, at: number): Head {
  const tag = view.getUint8(at);
  if (tag <= 0x7f || tag >= 0xe0) return { size: 1, items: 0 };
  if (tag >= 0x90 && tag <= 0x9f) return { size: 1, items: tag & 0x0f };
  if (tag >= 0xa0 && tag <= 0xbf) return { size: 1 + (tag & 0x1f), items: 0 };
  const fixed = FIXED_SIZES.get(tag);
  if (fixed !== undefined) return { size: fixed, items: 0 };
  const width = LENGTH_WIDTHS.get(tag);
  if (width === undefined) throw new WireError('malformed', 'a kind of value that frames never use');
  if (at + 1 + width > view.byteLength) throw new WireError('malformed', 'bytes end early');
  const length = lengthAt(view, at + 1, width);
  const isArray = tag === 0xdc || tag === 0xdd;
  return isArray ? { size: 1 + width, items: length } : { size: 1 + width + length, items: 0 };
}

function lengthAt(view: DataView, at: number, width: number): number {
  if (width === 1) return view.getUint8(at);
  return width === 2 ? view.getUint16(at) : view.getUint32(at);
}

/** Null, booleans, floats and integers. */
const FIXED_SIZES: ReadonlyMap<number, number> = new Map([
  [0xc0, 1], [0xc2, 1], [0xc3, 1], [0xca, 5], [0xcb, 9], [0xcc, 2], [0xcd, 3], [0xce, 5],
  [0xd0, 2], [0xd1, 3], [0xd2, 5],
]);

/** Bytes, text and arrays with a length of their own. */
const LENGTH_WIDTHS: ReadonlyMap<number, number> = new Map([
  [0xc4, 1], [0xc5, 2], [0xc6, 4], [0xd9, 1], [0xda, 2], [0xdb, 4], [0xdc, 2], [0xdd, 4],
]);
