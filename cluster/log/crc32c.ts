// CRC-32C (Castagnoli): finds every flipped byte of a record. Against accidents, not against people. Several
// bytes a step, each looked up in a table of its own: four in short texts; in long ones sixteen, which are
// read as words of four and take less than half of the time.

const POLYNOMIAL = 0x82f63b78;
const STEP_BYTES = 4;
const LONG_STEP_BYTES = 16;
const LONG_STEP_WORDS = LONG_STEP_BYTES / 4;
/** In shorter texts a view of their words takes longer than it saves. */
const LONG_BYTES = 512;
/** Words are read as the machine has them. */
const READS_WORDS = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** What each value of a byte does to the checksum, with 0 to 15 other bytes behind it: 256 entries each. */
const TABLE = tables();

function tables(): Int32Array {
  const table = new Int32Array(256 * LONG_STEP_BYTES);
  for (let byte = 0; byte < 256; byte += 1) {
    let crc = byte;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
    table[byte] = crc;
  }
  for (let place = 256; place < table.length; place += 1) {
    const before = table[place - 256]!;
    table[place] = table[before & 0xff]! ^ (before >>> 8);
  }
  return table;
}

/** The checksum of `bytes`, or of a part of them, as an unsigned 32-bit number. */
export function crc32c(bytes: Uint8Array, from = 0, to = bytes.length): number {
  const isLong = READS_WORDS && to - from >= LONG_BYTES;
  const crc = isLong ? afterLong(bytes, from, to) : after(-1, bytes, from, to);
  return (crc ^ -1) >>> 0;
}

/** The checksum so far, after the bytes of these places. */
function after(before: number, bytes: Uint8Array, from: number, to: number): number {
  let crc = before;
  let at = from;
  for (const end = to - STEP_BYTES; at <= end; at += STEP_BYTES) {
    crc ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    crc =
      TABLE[768 + (crc & 0xff)]! ^
      TABLE[512 + ((crc >>> 8) & 0xff)]! ^
      TABLE[256 + ((crc >>> 16) & 0xff)]! ^
      TABLE[crc >>> 24]!;
  }
  for (; at < to; at += 1) crc = TABLE[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
  return crc;
}

function afterLong(bytes: Uint8Array, from: number, to: number): number {
  // A word begins at every fourth byte of the memory, wherever the text begins.
  const start = from + (-(bytes.byteOffset + from) & 3);
  const steps = Math.floor((to - start) / LONG_STEP_BYTES);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + start, steps * LONG_STEP_WORDS);
  let crc = after(-1, bytes, from, start);
  for (let at = 0; at < words.length; at += LONG_STEP_WORDS) {
    const first = crc ^ words[at]!;
    const second = words[at + 1]!;
    const third = words[at + 2]!;
    const fourth = words[at + 3]!;
    crc =
      TABLE[3840 + (first & 0xff)]! ^
      TABLE[3584 + ((first >>> 8) & 0xff)]! ^
      TABLE[3328 + ((first >>> 16) & 0xff)]! ^
      TABLE[3072 + (first >>> 24)]! ^
      TABLE[2816 + (second & 0xff)]! ^
      TABLE[2560 + ((second >>> 8) & 0xff)]! ^
      TABLE[2304 + ((second >>> 16) & 0xff)]! ^
      TABLE[2048 + (second >>> 24)]! ^
      TABLE[1792 + (third & 0xff)]! ^
      TABLE[1536 + ((third >>> 8) & 0xff)]! ^
      TABLE[1280 + ((third >>> 16) & 0xff)]! ^
      TABLE[1024 + (third >>> 24)]! ^
      TABLE[768 + (fourth & 0xff)]! ^
      TABLE[512 + ((fourth >>> 8) & 0xff)]! ^
      TABLE[256 + ((fourth >>> 16) & 0xff)]! ^
      TABLE[fourth >>> 24]!;
  }
  return after(crc, bytes, start + steps * LONG_STEP_BYTES, to);
}
