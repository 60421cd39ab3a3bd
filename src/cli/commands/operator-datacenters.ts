// `conclave operator datacenters`: how the datacenters stand to each other.

import type { Command } from 'commander';
import { ClientError } from '../../client/client-error.ts';
import { addLeaf } from '../command-line.ts';
import type { Session } from '../session.ts';
import { DATACENTER_COLUMNS, type Federation, federationSentence } from '../show/federation.ts';
import type { Surroundings } from '../surroundings.ts';

/** Adds `datacenters` to `operator`. */
export function addDatacenterCommands(operator: Command, surroundings: Surroundings): void {
  addLeaf(operator, surroundings, {
    name: 'datacenters',
    says: 'show how far each datacenter is, as the primary knows it or else as this one does',
    run: showDatacenters,
  });
}

async function showDatacenters(session: Session): Promise<void> {
  const { value: own } = await session.client.replication.status();
  const federation = await asPrimaryKnows(session, own);
  await session.showTable(federation, federation.Datacenters, DATACENTER_COLUMNS);
  await session.note(federationSentence(federation));
}

/** Only the primary knows of all; while it is away, what this datacenter knows is all there is. */
async function asPrimaryKnows(session: Session, own: Federation): Promise<Federation> {
  if (!own.Enabled || session.connection.datacenter !== undefined) return own;
  try {
    const query = { dc: own.PrimaryDatacenter };
    return (await session.client.replication.status({ query })).value;
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    await session.note(`${own.PrimaryDatacenter} cannot be asked: ${error.message}`);
    return own;
  }
}
