// `npm run test:system`: the tests on local clusters of real processes in their long form, one after the other.
// Exit status 0: each of them tested something, and all of that passed.

import { join } from 'node:path';
import { scriptProgram, wholeNumber } from '../script-program.ts';
import { endRunningFiles, runFile } from '../tests/run-file.ts';

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

let isGivenUp = false;
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    isGivenUp = true;
    void endRunningFiles();
  });
}
for (const name of TESTS) {
  if (isGivenUp) break;
  const { fault } = await runFile(join(BUILT, 'test', 'system', `${name}.test.js`), {
    words: ['--long', ...process.argv.slice(2)],
    onOutput: (piece) => void process.stdout.write(piece),
  });
  if (fault === undefined) continue;
  process.exitCode = 1;
  process.stdout.write(`failed: ${name}: ${fault}\n`);
}
