// `conclave operator datacenters`: how the datacenters stand to each other. `conclave operator
// datacenter …`: which of them take part.

import type { Command } from 'commander';
import { ClientError } from '../../../client/client-error.ts';
import { addGroup, addLeaf, exactlyOne } from '../../command-line.ts';
import { CommandFailed } from '../../failed.ts';
import type { Session } from '../../session.ts';
import { DATACENTER_COLUMNS, type Federation, federationSentence } from '../../show/federation.ts';
import { closedSentence } from '../../show/primary.ts';
import type { Surroundings } from '../../surroundings.ts';

const WHICH = ['[name]', 'name of the datacenter'] as const;

/** Adds `datacenters` and `datacenter` to `operator`. */
export function addDatacenterCommands(operator: Command, surroundings: Surroundings): void {
  addLeaf(operator, surroundings, {
    name: 'datacenters',
    says: 'show how far each datacenter is, as the primary knows it or else as this one does',
    run: showDatacenters,
  });
  const datacenter = addGroup(operator, 'datacenter', 'which datacenters take part');
  addLeaf<{ readonly force?: boolean }>(datacenter, surroundings, {
    name: 'remove',
    says: 'remove a datacenter: nobody waits for it any more, and its servers are refused',
    argument: WHICH,
    flags: (command) => {
      command.option('--force', 'also where no majority answers any more, or it has not come yet');
    },
    run: removeDatacenter,
  });
  addLeaf<{ readonly force?: boolean }>(datacenter, surroundings, {
    name: 'allow',
    says: 'let a removed datacenter, or another one under its name, come back',
    argument: WHICH,
    flags: (command) => {
      command.option('--force', 'also where the others then yield to its primary');
    },
    run: allowDatacenter,
  });
}

async function removeDatacenter(
  session: Session,
  { force }: { readonly force?: boolean },
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(argument);
  const query = { force };
  const { value } = await session.client.datacenter.remove({ path: { name }, query });
  if (!value) throw new CommandFailed(`${nothingRemoved(name)}${force ? '' : BY_FORCE}`);
  await session.done(value, `Removed datacenter ${name}; stop its servers, they go on reading.`);
}

function nothingRemoved(name: string): string {
  return `there is no datacenter ${name}, or not any more: nothing was removed`;
}

const BY_FORCE = '. --force keeps out one that was let back, or is still to come';

async function allowDatacenter(
  session: Session,
  { force }: { readonly force?: boolean },
  argument: string | undefined,
): Promise<void> {
  const name = nameOf(argument);
  const query = { force };
  const { value } = await session.client.datacenter.allow({ path: { name }, query });
  if (!value) throw new CommandFailed(`datacenter ${name} was not removed: nothing was changed`);
  await session.done(value, `Datacenter ${name} may come back.`);
}

function nameOf(argument: string | undefined): string {
  return exactlyOne([['a name', argument]]);
}

async function showDatacenters(session: Session): Promise<void> {
  const { value: own } = await session.client.replication.status();
  const federation = await asPrimaryKnows(session, own);
  await session.showTable(federation, federation.Datacenters, DATACENTER_COLUMNS);
  await session.note(federationSentence(federation));
  const dc = federation === own ? undefined : own.PrimaryDatacenter;
  const closed = await closedNote(session, dc);
  if (closed !== undefined) await session.note(closed);
}

/** Why `dc`, or the one that is asked, takes no global write, or may take none; undefined where nobody says so. */
async function closedNote(session: Session, dc: string | undefined): Promise<string | undefined> {
  try {
    const { value } = await session.client.operator.primary({ query: { dc } });
    return closedSentence(value);
  } catch (error) {
    if (!(error instanceof ClientError)) throw error;
    // The table needs fewer rights than this, and any server gives it, also where nobody leads.
    if (error.code !== 'unavailable') return undefined;
    return `Whether it takes writes is not known: ${error.message}`;
  }
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
