// `npm run test:system`: the tests on local clusters of real processes in their long form, one after the other.
// Exit status 0: all of them passed.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { scriptProgram, wholeNumber } from '../script-program.ts';

const TESTS = ['local-cluster', 'datacenters'];
/** What was compiled: this file lies two folders below. */
const BUILT = join(import.meta.dirname, '..', '..');

scriptProgram(
  'npm run test:system --',
  'Local clusters of real servers whose servers, disks and lines fail one after the other.',
)
  .option(
    '--seed <seed>',
    'of the choice of the clients and of the order of the faults',
    wholeNumber,
  )
  .option('--rounds <count>', 'each fault so often', wholeNumber)
  .parse();

for (const name of TESTS) {
  const file = join(BUILT, 'test', 'system', `${name}.test.js`);
  const { status } = spawnSync(
    process.execPath,
    ['--enable-source-maps', file, '--long', ...process.argv.slice(2)],
    { stdio: 'inherit' },
  );
  if (status !== 0) process.exitCode = 1;
}
