// SHA-256 of the platform for bytes that come piece by piece.

import { createHash } from 'node:crypto';
import type { RunningSha256 } from '../../../cluster/platform/running-sha256.ts';

export function systemRunningSha256(): RunningSha256 {
  return createHash('sha256');
}
