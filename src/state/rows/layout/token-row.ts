// Where a token lives, as its row says, without unpacking the row: every write of a token asks that of the
// bytes, and unpacking costs ten times as much. What does not look like the rows that are written is left to
// the codec, which knows every format there is.

import { decodeRecord, RECORD_FORMAT, RECORD_HEAD, TOKEN_CODEC } from './record-codec.ts';

/** An array of fourteen: the fields of a token. */
const FIELDS_HEAD = 0x9e;
/** The place of `local` among them. */
const LOCAL_PLACE = 9;
const FALSE = 0xc2;
const TRUE = 0xc3;
const UNKNOWN = -1;

/** Whether the token of this row lives in its datacenter alone. Throws what `decodeRecord` throws. */
export function isLocalTokenRow(value: Uint8Array): boolean {
  const flag = value[placeOfLocal(value)];
  if (flag === FALSE) return false;
  return flag === TRUE || decodeRecord(TOKEN_CODEC, value).local;
}

/** Where the byte of the flag is; UNKNOWN where the row is not laid out as expected. */
function placeOfLocal(value: Uint8Array): number {
  if (value[0] !== RECORD_HEAD || value[1] !== RECORD_FORMAT) return UNKNOWN;
  const at = behindItems(value, 2, 2);
  return value[at] === FIELDS_HEAD ? behindItems(value, at + 1, LOCAL_PLACE) : UNKNOWN;
}

/** The place behind so many items, with all that is in them; UNKNOWN where one is of a kind that rows lack. */
function behindItems(value: Uint8Array, from: number, count: number): number {
  let at = from;
  for (let missing = count; missing > 0; missing -= 1) {
    const first = value[at];
    if (first === undefined) return UNKNOWN;
    at += 1;
    // Small numbers, and nil, false and true, are their own first byte.
    if (first < 0x80 || first === 0xc0 || first === FALSE || first === TRUE) continue;
    if (first >= 0xa0 && first < 0xc0) at += first & 0x1f;
    else if (first >= 0x90 && first < 0xa0) missing += first & 0x0f;
    else if (first === 0xcc) at += 1;
    else if (first === 0xcd) at += 2;
    else if (first === 0xce) at += 4;
    else if (first === 0xcb) at += 8;
    else if (first === 0xd9) at += 1 + numberAt(value, at, 1);
    else if (first === 0xda) at += 2 + numberAt(value, at, 2);
    else if (first === 0xdb) at += 4 + numberAt(value, at, 4);
    else if (first === 0xdc) {
      missing += numberAt(value, at, 2);
      at += 2;
    } else return UNKNOWN;
  }
  return at;
}

/** Big end first. Where bytes are missing it is no number, and no place behind it exists. */
function numberAt(value: Uint8Array, at: number, bytesCount: number): number {
  let number = 0;
  for (let place = at; place < at + bytesCount; place += 1) number = number * 256 + value[place]!;
  return number;
}
