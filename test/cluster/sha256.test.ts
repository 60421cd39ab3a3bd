// The platform's SHA-256 against the portable one.

import { sha256 as portable } from '@noble/hashes/sha2.js';
import fc from 'fast-check';
import t from 'tap';
import { adoptSha256, sha256 } from '../../cluster/platform/sha256.ts';
import { systemSha256 } from '../../src/platform-node/hashes/system-sha256.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

t.test('sha256: the platform gives what portable code gives', async () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      const hash = systemSha256(bytes);
      return hash.length === 32 && hex(hash) === hex(portable(bytes));
    }),
    { numRuns: 300 },
  );
});

t.test('sha256: code that is something else is not adopted', async (test) => {
  const wrong = (bytes: Uint8Array): Uint8Array =>
    bytes.length < 64 ? portable(bytes) : new Uint8Array(32);
  test.throws(() => adoptSha256(wrong), /SHA-256/);
  const bytes = new Uint8Array(100);
  test.equal(hex(sha256(bytes)), hex(portable(bytes)), 'the one before stays in use');
});

t.test('sha256: what is adopted is used from then on', async (test) => {
  let calls = 0;
  adoptSha256((bytes) => {
    calls += 1;
    return portable(bytes);
  });
  const before = calls;
  sha256(new Uint8Array(3));
  test.equal(calls, before + 1);
});
