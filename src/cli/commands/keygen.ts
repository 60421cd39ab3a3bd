// `conclave keygen`: a fresh key, for `cluster_key` and for archives.

import type { Command } from 'commander';
import { KEY_BYTES } from '../flags/archive-key.ts';
import type { Surroundings } from '../surroundings.ts';

/** Adds `keygen` to the program. */
export function addKeygenCommand(program: Command, surroundings: Surroundings): void {
  program
    .command('keygen')
    .description('print a fresh key: 32 random bytes as base64, for cluster_key and --key-file')
    .action(() => {
      const key = Buffer.from(surroundings.randomBytes(KEY_BYTES)).toString('base64');
      return surroundings.out.write(`${key}\n`);
    });
}
