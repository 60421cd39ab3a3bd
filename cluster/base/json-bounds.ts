// What a long JSON text of somebody else may be made of. Reading a name that was not read before costs hundreds of
// times the bytes that it has, and so do very many small values and brackets inside brackets: anybody may send a
// body, a provider answers what it likes, and what is read is read in one piece. Counted over the bytes, before
// anything is made of them.

/** Shorter ones cannot hold enough of anything. */
const FREE_BYTES = 16 * 1024;
/** Different names of fields, over all objects; the keys of maps are names. */
export const NAMES_MAX = 1_000;
/** Commas, colons and opening brackets. The largest object that can be written has 82,000. */
export const MARKS_MAX = 100_000;
/** More than any schema, with values of free form at its end. */
export const LEVELS_MAX = 64;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** The same bytes. */
export function bufferOver(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** What a text has too much of, in words; undefined: nothing. Of what is no JSON it may say anything. */
export function excessOf(text: Uint8Array): string | undefined {
  if (text.length <= FREE_BYTES) return undefined;
  const bytes = bufferOver(text);
  const names = new Set<string>();
  let marks = 0;
  let level = 0;
  let last = { start: 0, end: 0 };
  for (let place = 0; place < bytes.length; place += 1) {
    switch (bytes[place]) {
      case QUOTE:
        last = { start: place, end: endOfText(bytes, place) };
        place = last.end;
        break;
      case 0x3a: // :
        marks += 1;
        names.add(bytes.toString('latin1', last.start, last.end));
        break;
      case 0x2c: // ,
        marks += 1;
        break;
      case 0x5b: // [
      case 0x7b: // {
        marks += 1;
        level += 1;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        level -= 1;
        break;
      default:
        continue;
    }
    if (names.size > NAMES_MAX) return `more than ${NAMES_MAX} different names of fields`;
    if (marks > MARKS_MAX) return `more than ${MARKS_MAX} commas, colons and opening brackets`;
    if (level > LEVELS_MAX) return `more than ${LEVELS_MAX} levels`;
  }
  return undefined;
}

/** About as many bytes as what is read for a comma, a colon or an opening bracket takes beside the text. */
const MARK_BYTES = 40;

/** What a text takes in memory together with what is read of it. */
export function readBytesOf(text: Uint8Array): number {
  let marks = 0;
  for (let place = 0; place < text.length; place += 1) {
    switch (text[place]) {
      case QUOTE:
        place = endOfText(text, place);
        break;
      case 0x3a: // :
      case 0x2c: // ,
      case 0x5b: // [
      case 0x7b: // {
        marks += 1;
        break;
      default:
    }
  }
  return text.length + marks * MARK_BYTES;
}

/** The place of the quotation mark that ends the text. */
function endOfText(bytes: Uint8Array, start: number): number {
  let place = start + 1;
  while (place < bytes.length && bytes[place] !== QUOTE) {
    place += bytes[place] === BACKSLASH ? 2 : 1;
  }
  return place;
}
