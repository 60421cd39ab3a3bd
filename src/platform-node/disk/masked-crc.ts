// The checksum that LevelDB writes: CRC-32C, rotated and shifted, since what it covers may hold checksums itself.

const MASK_DELTA = 0xa282ead8;

/** What was stored, as the checksum that it stands for. */
export function unmaskedCrc(stored: number): number {
  const rotated = (stored - MASK_DELTA) >>> 0;
  return ((rotated >>> 17) | (rotated << 15)) >>> 0;
}
