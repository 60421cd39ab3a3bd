// The content hash's function against an independent implementation.

import { blake2b } from '@noble/hashes/blake2.js';
import fc from 'fast-check';
import t from 'tap';
import { blake2b256 } from '../../src/acl/blake2b256.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const expected = (bytes: Uint8Array): string => hex(blake2b(bytes, { dkLen: 32 }));

t.test('blake2b256: agrees with the library at every length up to four blocks', async (test) => {
  for (let length = 0; length <= 513; length += 1) {
    const bytes = Uint8Array.from({ length }, (_, place) => (place * 151 + length) & 0xff);
    if (hex(blake2b256(bytes)) !== expected(bytes)) test.fail(`differs at ${length} bytes`);
  }
});

t.test('blake2b256: agrees with the library on any bytes, call after call', async () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.uint8Array({ minLength: 120, maxLength: 136 }),
    fc.integer({ min: 0, max: 300 }).map((length) => new Uint8Array(length).fill(0xff)),
  );
  fc.assert(
    fc.property(bytes, (each) => hex(blake2b256(each)) === expected(each)),
    { numRuns: 500 },
  );
});

t.test('blake2b256: a hash stays as it is when the next one is made', async (test) => {
  const first = blake2b256(Buffer.from('first'));
  const before = hex(first);
  blake2b256(Buffer.from('second'));
  test.equal(hex(first), before);
});
