// `conclave members` and `conclave version`.

import type { Command } from 'commander';
import { addLeaf } from '../command-line.ts';
import { MEMBER_COLUMNS } from '../show/namespace.ts';
import type { Surroundings } from '../surroundings.ts';

/** Adds `members` and `version` to the program. */
export function addMembersCommands(program: Command, surroundings: Surroundings): void {
  addLeaf(program, surroundings, {
    name: 'members',
    says: 'list the servers of the datacenter',
    run: async (session) => {
      const { value } = await session.client.agent.members();
      await session.showAll(value, MEMBER_COLUMNS, 'members that this token may see');
    },
  });
  program
    .command('version')
    .description('print the version of this program')
    .action(() => surroundings.out.write(`conclave ${surroundings.version}\n`));
}
