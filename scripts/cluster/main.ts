// `npm run cluster`: a cluster of real servers on this machine, to see it work and to try to break it.
// Commands talk to a supervisor in the background, which owns the servers and the lines between them.

import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { addClusterCommands } from './cluster-commands.ts';
import { ClusterRefusal } from './cluster-refusal.ts';

/** What was compiled lies one folder below the root of the project. */
const FOLDER = join(import.meta.dirname, '..', '..', '..', '.cluster');

const program = new Command('npm run cluster --')
  .description('a cluster of real servers on this machine, without root')
  .option('--dir <folder>', 'where it keeps its data, logs and secrets', FOLDER)
  .showHelpAfterError('`npm run cluster -- --help` says more.')
  .exitOverride();
addClusterCommands(program);

// Whoever reads has seen enough, as in `… logs | head`; what was ordered goes on all the same.
process.stdout.on('error', () => undefined);

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = statusOf(error);
}

function statusOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  const says = error instanceof ClusterRefusal ? error.message : (error as Error).stack;
  process.stderr.write(`Error: ${says}\n`);
  return 1;
}
