// What is found of the marks of local tokens, and what is none of them.

import t from 'tap';
import { canarySecret, canaryText, foreignCanary } from './checks/federation/canaries.ts';

t.test('canaries: each form of one is found where it is not at home', async (t) => {
  const secret = canarySecret(1, 77);
  for (const bytes of [
    Buffer.from(secret),
    Buffer.from(secret.replaceAll('-', ''), 'hex'),
    Buffer.from(canaryText(1, 77)),
  ]) {
    const row = Buffer.concat([Buffer.from('before'), bytes, Buffer.from('behind')]);
    t.type(foreignCanary(row, undefined), 'string', 'anywhere on a line');
    t.type(foreignCanary(row, 0), 'string', 'on another disk');
    t.equal(foreignCanary(row, 1), undefined, 'at home');
    t.type(foreignCanary(Buffer.concat([row, row]), 2), 'string');
  }
});

t.test('canaries: bytes of a hash that look like the beginning of one are none', async (t) => {
  const hash = Buffer.from('ca7a1e5e4b1ad33424c558', 'hex');
  for (const end of [4, 5, hash.length])
    t.equal(foreignCanary(hash.subarray(0, end), 0), undefined);
  const both = Buffer.concat([hash, Buffer.from(canarySecret(1, 1).replaceAll('-', ''), 'hex')]);
  t.type(foreignCanary(both, 0), 'string', 'one behind it is found all the same');
});
