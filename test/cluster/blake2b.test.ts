// The platform's BLAKE2b-256 against the portable one, and against a known value.

import { blake2b } from '@noble/hashes/blake2.js';
import fc from 'fast-check';
import t from 'tap';
import { adoptBlake2b256, blake2b256 } from '../../cluster/platform/blake2b.ts';
import { makeWasmBlake2b256 } from '../../src/platform-node/hashes/wasm-blake2b.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const portable = (bytes: Uint8Array): Uint8Array => blake2b(bytes, { dkLen: 32 });

t.test('blake2b: the platform gives what portable code gives, one after the other', async () => {
  const wasm = await makeWasmBlake2b256();
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 400 }), { minLength: 1 }), (texts) => {
      const hashes = texts.map(wasm);
      return texts.every((bytes, place) => hex(hashes[place]!) === hex(portable(bytes)));
    }),
    { numRuns: 300 },
  );
});

t.test('blake2b: the platform hashes the longest rules, in a view of other bytes', async (test) => {
  const wasm = await makeWasmBlake2b256();
  const bytes = Buffer.alloc(1024 * 1024 + 7, 'policy').subarray(7);
  test.equal(hex(wasm(bytes)), hex(portable(bytes)));
});

t.test(
  'blake2b: the hash of abc is the one of the standard, cut to no other length',
  async (test) => {
    const known = 'bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319';
    test.equal(hex(blake2b256(Buffer.from('abc'))), known);
    test.equal(hex((await makeWasmBlake2b256())(Buffer.from('abc'))), known);
  },
);

t.test('blake2b: code that is something else is not adopted', async (test) => {
  const wrong = (bytes: Uint8Array): Uint8Array =>
    bytes.length < 129 ? portable(bytes) : new Uint8Array(32);
  test.throws(() => adoptBlake2b256(wrong), /BLAKE2b-256/);
  const bytes = new Uint8Array(200);
  test.equal(hex(blake2b256(bytes)), hex(portable(bytes)), 'the one before stays in use');
});

t.test('blake2b: what is adopted is used from then on', async (test) => {
  let calls = 0;
  adoptBlake2b256((bytes) => {
    calls += 1;
    return portable(bytes);
  });
  const before = calls;
  blake2b256(new Uint8Array(3));
  test.equal(calls, before + 1);
});
