// SHA-256 of the platform: several times as fast as portable code. As text and back, because handing
// out bytes costs the platform more than the hash.

import { hash } from 'node:crypto';

export function systemSha256(bytes: Uint8Array): Uint8Array {
  return Buffer.from(hash('sha256', bytes, 'binary'), 'latin1');
}
