// Entries of a tar archive in the form ustar (POSIX.1-1988, today in `pax` of POSIX.1-2017): blocks of 512
// bytes, a header and then the content. They belong to user 0, who alone may read and write them.

const BLOCK_BYTES = 512;
const SIZE_AT = 124;
const SIZE_DIGITS = 11;

export interface TarEntry {
  /** At most 100 ASCII characters. */
  readonly name: string;
  readonly content: Uint8Array;
  /** Milliseconds since 1970. What a header cannot say becomes the nearest that it can. */
  readonly modifiedMs: number;
}

/** What an entry takes beside its content, at most. */
export const TAR_EXTRA_MAX_BYTES = 2 * BLOCK_BYTES;

/** Ends an archive. */
export const TAR_END = Buffer.alloc(2 * BLOCK_BYTES);

/** The blocks of an entry. */
export function blocksOf({ name, content, modifiedMs }: TarEntry): Uint8Array {
  const blockCount = 1 + Math.ceil(content.length / BLOCK_BYTES);
  const blocks = Buffer.alloc(blockCount * BLOCK_BYTES);
  blocks.write(name, 0);
  writeOctal(blocks, { at: 100, digits: 7, value: 0o600 });
  writeOctal(blocks, { at: 108, digits: 7, value: 0 });
  writeOctal(blocks, { at: 116, digits: 7, value: 0 });
  writeOctal(blocks, { at: SIZE_AT, digits: SIZE_DIGITS, value: content.length });
  writeOctal(blocks, { at: 136, digits: 11, value: Math.floor(modifiedMs / 1000) });
  blocks.write('0', 156);
  blocks.write('ustar\x0000', 257);
  writeOctal(blocks, { at: 329, digits: 7, value: 0 });
  writeOctal(blocks, { at: 337, digits: 7, value: 0 });
  writeSum(blocks);
  blocks.set(content, BLOCK_BYTES);
  return blocks;
}

/**
 * The content of the entry that `blocks` begin with, as far as they go. Whether they are one is the caller's matter.
 */
export function contentIn(blocks: Uint8Array): Uint8Array {
  const digits = Buffer.from(blocks.subarray(SIZE_AT, SIZE_AT + SIZE_DIGITS)).toString('latin1');
  return blocks.subarray(BLOCK_BYTES, BLOCK_BYTES + Number.parseInt(digits, 8));
}

interface Octal {
  readonly at: number;
  readonly digits: number;
  readonly value: number;
}

/** The zero byte behind it is there already. */
function writeOctal(blocks: Buffer, { at, digits, value }: Octal): void {
  const written = Math.min(Math.max(value, 0), 8 ** digits - 1);
  blocks.write(written.toString(8).padStart(digits, '0'), at);
}

/** The sum of the header's bytes, where its own eight count as spaces. */
function writeSum(blocks: Buffer): void {
  blocks.write('        ', 148);
  let sum = 0;
  for (const byte of blocks.subarray(0, BLOCK_BYTES)) sum += byte;
  blocks.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
}
