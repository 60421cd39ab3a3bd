// `conclave operator raft …`: who belongs to the group, who leads it, and the two changes that people
// make by hand.

import type { Command } from 'commander';
import { addGroup, addLeaf, exactlyOne } from '../../command-line.ts';
import type { Session } from '../../session.ts';
import { peerColumns } from '../../show/operator.ts';
import type { Surroundings } from '../../surroundings.ts';
import { notBlank } from '../../usage-error.ts';

interface WhichServer {
  readonly id?: string;
  readonly address?: string;
}

/** Adds `raft` and its commands to `operator`. */
export function addRaftCommands(operator: Command, surroundings: Surroundings): void {
  const raft = addGroup(operator, 'raft', 'the servers that agree on the log, and their leader');
  addLeaf(raft, surroundings, {
    name: 'list-peers',
    says: 'list the servers of the group; --stale where it has no leader',
    run: listPeers,
  });
  addLeaf<WhichServer>(raft, surroundings, {
    name: 'remove-peer',
    says: 'remove a server that does not come back',
    flags: (command) => {
      command
        .option('--id <id>', 'its id, as list-peers shows it')
        .option('--address <host:port>', 'its cluster address');
    },
    run: removePeer,
  });
  addLeaf<Pick<WhichServer, 'id'>>(raft, surroundings, {
    name: 'transfer-leader',
    says: 'hand leadership over to another server',
    flags: (command) => {
      command.option(
        '--id <id>',
        'id of the server that shall lead; default: any that is up to date',
      );
    },
    run: transferLeader,
  });
}

async function listPeers(session: Session): Promise<void> {
  const { value } = await session.client.operator.raftConfiguration();
  await session.showTable(value, value.Servers, peerColumns(value.Servers));
}

async function removePeer(session: Session, { id, address }: WhichServer): Promise<void> {
  const named = exactlyOne([
    ['--id', id],
    ['--address', address],
  ]);
  const query = id === undefined ? { address: named } : { id: named };
  const { value } = await session.client.operator.raftRemovePeer({ query });
  await session.done(value, `Removed the server ${named} from the group.`);
}

async function transferLeader(session: Session, { id }: { readonly id?: string }): Promise<void> {
  const given = notBlank('--id', id);
  const { value } = await session.client.operator.raftTransferLeader({ query: { id: given } });
  const whom = given === undefined ? 'Another server' : `The server ${given}`;
  await session.done(value, `${whom} leads now; \`conclave operator raft list-peers\` shows it.`);
}
