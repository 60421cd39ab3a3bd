// `conclave operator divergence …`: what a primary that was left behind has and nobody else, entry by
// entry: looked at, made again, or forgotten.

import type { Command } from 'commander';
import { addCasFlag, addGroup, addLeaf, wholeNumber } from '../../command-line.ts';
import type { Session } from '../../session.ts';
import { DIVERGENCE_COLUMNS, divergenceSentence, goneSentence } from '../../show/primary.ts';
import type { Surroundings } from '../../surroundings.ts';
import { UsageError } from '../../usage-error.ts';

/** Adds `divergence` and its commands to `operator`. */
export function addDivergenceCommands(operator: Command, surroundings: Surroundings): void {
  const says = 'what a datacenter wrote as primary and no later primary has';
  const divergence = addGroup(operator, 'divergence', says);
  addLeaf<{ readonly limit?: number }>(divergence, surroundings, {
    name: 'list',
    says: 'list these entries, oldest first',
    flags: (command) => {
      command.option('--limit <count>', 'at most so many; default: 100', wholeNumber);
    },
    run: list,
  });
  addLeaf<{ readonly cas?: number }>(divergence, surroundings, {
    name: 'resubmit',
    says: 'have the primary make one of these changes anew',
    argument: ['[position]', 'which one, as list shows it'],
    flags: addCasFlag,
    run: resubmit,
  });
  addLeaf<{ readonly all?: true }>(divergence, surroundings, {
    name: 'discard',
    says: 'forget one of these entries',
    argument: ['[position]', 'which one, as list shows it'],
    flags: (command) => {
      command.option('--all', 'forget all of them');
    },
    run: discard,
  });
}

async function list(session: Session, { limit }: { readonly limit?: number }): Promise<void> {
  const { value } = await session.client.operator.divergence({ query: { limit } });
  await session.showTable(value, value.Entries, DIVERGENCE_COLUMNS, 'divergent entries');
  for (const range of value.Gone) await session.note(goneSentence(range));
  if (value.Count > 0 || value.Gone.length > 0) await session.note(divergenceSentence(value));
}

async function resubmit(
  session: Session,
  { cas }: { readonly cas?: number },
  given: string | undefined,
): Promise<void> {
  const position = positionOf(given);
  const { value } = await session.client.operator.resubmitDivergent({ query: { position, cas } });
  await session.done(value, `The change of ${position} was made anew, at ${value.Position}.`);
}

async function discard(
  session: Session,
  { all }: { readonly all?: true },
  given: string | undefined,
): Promise<void> {
  if (all && given !== undefined) throw new UsageError('give only one of --all and a position');
  const query = all ? { all: '' } : { position: positionOf(given) };
  const { value } = await session.client.operator.discardDivergent({ query });
  await session.done(value, all ? 'All entries are forgotten.' : `Entry ${given} is forgotten.`);
}

function positionOf(given: string | undefined): string {
  if (given !== undefined && given !== '') return given;
  throw new UsageError(
    'say which entry: its position, as `conclave operator divergence list` shows it',
  );
}
