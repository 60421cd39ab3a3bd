// `conclave members` and `conclave version`.

import type { Command } from 'commander';
import type { CallOutput } from '../../client/call-types.ts';
import { addLeaf } from '../command-line.ts';
import { CommandFailed } from '../failed.ts';
import type { Session } from '../session.ts';
import { MEMBER_COLUMNS } from '../show/namespace.ts';
import type { Surroundings } from '../surroundings.ts';

/** Adds `members` and `version` to the program. */
export function addMembersCommands(program: Command, surroundings: Surroundings): void {
  addLeaf(program, surroundings, {
    name: 'members',
    says: 'list the servers of the datacenter',
    run: async (session) => {
      const { value } = await session.client.agent.members();
      requireAsked(session, value);
      await session.showAll(value, MEMBER_COLUMNS, 'members that this token may see');
    },
  });
  program
    .command('version')
    .description('print the version of this program')
    .action(() => surroundings.out.write(`conclave ${surroundings.version}\n`));
}

/** Servers tell the members of their own datacenter, whatever `--dc` says. Throws CommandFailed for other ones. */
function requireAsked(
  { connection: { datacenter } }: Session,
  members: CallOutput<'agent.members'>,
): void {
  const other = members.map(({ Tags }) => Tags.dc).find((name) => name !== datacenter);
  if (datacenter === undefined || other === undefined) return;
  throw new CommandFailed(
    `a server of datacenter ${other} was asked, and knows no members of ${datacenter}\n` +
      'Next: name a server of that datacenter with --http-addr.',
  );
}
