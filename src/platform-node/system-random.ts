// Randomness from the operating system's cryptographic source.

import { randomBytes } from 'node:crypto';
import { v4 } from 'uuid';
import type { Random } from '../../cluster/platform/random.ts';

export const systemRandom: Random = {
  uuid: () => v4(),
  bytes: (count) => randomBytes(count),
  // 48 bits are as many as jitter can use, and divide without rounding up to 1.
  fraction: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
};
