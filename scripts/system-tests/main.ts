// `npm run test:system`: the tests on local clusters of real processes in their long form, one after the other.
//
//   npm run test:system -- [--seed 7] [--rounds 4]
//
// Exit status 0: all of them passed.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const TESTS = ['local-cluster', 'datacenters'];
/** What was compiled: this file lies two folders below. */
const BUILT = join(import.meta.dirname, '..', '..');

for (const name of TESTS) {
  const file = join(BUILT, 'test', 'system', `${name}.test.js`);
  const { status } = spawnSync(
    process.execPath,
    ['--enable-source-maps', file, '--long', ...process.argv.slice(2)],
    { stdio: 'inherit' },
  );
  if (status !== 0) process.exitCode = 1;
}
