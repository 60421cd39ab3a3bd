// BLAKE2b with 32 bytes of output and no key (RFC 7693). Every create and update of an object hashes
// one short text, for which a general library spends more on setting out than on hashing; a test holds
// this to the library's results. Words of 64 bits are pairs of 32, the low half first, on machines that
// write the low byte first.

const BLOCK_BYTES = 128;
const OUTPUT_BYTES = 32;
const WORDS = 8;

/** The fractions of the square roots of the first eight primes. */
const INITIAL = Int32Array.of(
  ...[
    0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  ],
  ...[
    0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
  ],
);
/** One byte each: fan-out 1 and depth 1, no key, length of the output. */
const PARAMETERS = 0x01010000 | OUTPUT_BYTES;

/** Which words of the message each round takes, in order. The last two rounds are the first two again. */
const MESSAGE_ORDER: readonly (readonly number[])[] = [
  [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
  [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
  [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
  [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
  [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
  [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
  [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
  [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
  [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
  [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];
/** The same for all twelve rounds in one row, as places of low halves. */
const SCHEDULE = Uint8Array.from(
  [...MESSAGE_ORDER, ...MESSAGE_ORDER.slice(0, 2)].flat().map((word) => word * 2),
);

/** Used by one call from its beginning to its end, and by the next one anew. */
const chain = new Int32Array(WORDS * 2);
const work = new Int32Array(WORDS * 4);
const message = new Int32Array(WORDS * 4);
const messageBytes = new Uint8Array(message.buffer);

/** The hash of `bytes` (below 2 GiB). It belongs to the caller. */
export function blake2b256(bytes: Uint8Array): Buffer {
  chain.set(INITIAL);
  chain[0] = INITIAL[0]! ^ PARAMETERS;
  let at = 0;
  for (; bytes.length - at > BLOCK_BYTES; at += BLOCK_BYTES) {
    messageBytes.set(bytes.subarray(at, at + BLOCK_BYTES));
    compress(at + BLOCK_BYTES, 0);
  }
  messageBytes.fill(0);
  messageBytes.set(at === 0 ? bytes : bytes.subarray(at));
  compress(bytes.length, -1);
  return Buffer.from(chain.buffer.slice(0, OUTPUT_BYTES));
}

/** Takes the message into the chain. `finality` is -1 for the last block, else 0. */
function compress(hashedBytes: number, finality: number): void {
  work.set(chain);
  work.set(INITIAL, WORDS * 2);
  work[24] = work[24]! ^ hashedBytes;
  work[28] = work[28]! ^ finality;
  work[29] = work[29]! ^ finality;
  for (let at = 0; at < SCHEDULE.length; at += 16) {
    mix(0, 8, 16, 24, at);
    mix(2, 10, 18, 26, at + 2);
    mix(4, 12, 20, 28, at + 4);
    mix(6, 14, 22, 30, at + 6);
    mix(0, 10, 20, 30, at + 8);
    mix(2, 12, 22, 24, at + 10);
    mix(4, 14, 16, 26, at + 12);
    mix(6, 8, 18, 28, at + 14);
  }
  for (let half = 0; half < chain.length; half += 1) {
    chain[half] = chain[half]! ^ work[half]! ^ work[half + chain.length]!;
  }
}

/** The function G on the words at four places, with the two message words that are due at `at`. */
function mix(a: number, b: number, c: number, d: number, at: number): void {
  const x = SCHEDULE[at]!;
  const y = SCHEDULE[at + 1]!;
  let aLow = work[a]!;
  let aHigh = work[a + 1]!;
  let bLow = work[b]!;
  let bHigh = work[b + 1]!;
  let cLow = work[c]!;
  let cHigh = work[c + 1]!;
  let dLow = work[d]!;
  let dHigh = work[d + 1]!;

  aLow = (aLow + bLow) | 0;
  aHigh = (aHigh + bHigh + carryOf(aLow, bLow)) | 0;
  aLow = (aLow + message[x]!) | 0;
  aHigh = (aHigh + message[x + 1]! + carryOf(aLow, message[x]!)) | 0;
  // Turned right by 32: the halves change places.
  let kept = dLow ^ aLow;
  dLow = dHigh ^ aHigh;
  dHigh = kept;
  cLow = (cLow + dLow) | 0;
  cHigh = (cHigh + dHigh + carryOf(cLow, dLow)) | 0;
  // Turned right by 24.
  kept = bLow ^ cLow;
  bHigh ^= cHigh;
  bLow = (kept >>> 24) | (bHigh << 8);
  bHigh = (bHigh >>> 24) | (kept << 8);

  aLow = (aLow + bLow) | 0;
  aHigh = (aHigh + bHigh + carryOf(aLow, bLow)) | 0;
  aLow = (aLow + message[y]!) | 0;
  aHigh = (aHigh + message[y + 1]! + carryOf(aLow, message[y]!)) | 0;
  // Turned right by 16.
  kept = dLow ^ aLow;
  dHigh ^= aHigh;
  dLow = (kept >>> 16) | (dHigh << 16);
  dHigh = (dHigh >>> 16) | (kept << 16);
  cLow = (cLow + dLow) | 0;
  cHigh = (cHigh + dHigh + carryOf(cLow, dLow)) | 0;
  // Turned right by 63, which is left by one.
  kept = bLow ^ cLow;
  bHigh ^= cHigh;
  bLow = (kept << 1) | (bHigh >>> 31);
  bHigh = (bHigh << 1) | (kept >>> 31);

  work[a] = aLow;
  work[a + 1] = aHigh;
  work[b] = bLow;
  work[b + 1] = bHigh;
  work[c] = cLow;
  work[c + 1] = cHigh;
  work[d] = dLow;
  work[d + 1] = dHigh;
}

/** Whether a sum of two 32-bit numbers ran over, seen from the sum and one of them. */
function carryOf(sum: number, part: number): number {
  return sum >>> 0 < part >>> 0 ? 1 : 0;
}
