// What all commands that delete something have in common: what it depends on, who must know of it before they end,
// and what is said while not everybody does.

import type { Command } from 'commander';
import type { AnswerMeta } from '../client/call-types.ts';
import { addCasFlag } from './command-line.ts';
import { CommandFailed } from './failed.ts';
import type { Session } from './session.ts';
import { type AckOptions, addAckFlag } from './writes.ts';

export interface DeleteOptions extends AckOptions {
  readonly cas?: number;
}

export function addDeleteFlags(command: Command): void {
  addCasFlag(command);
  addAckFlag(command);
}

/** What the flags ask of the server. */
export function deleteQuery({ cas, ack }: DeleteOptions): DeleteOptions {
  return { ...(cas !== undefined && { cas }), ...(ack !== undefined && { ack }) };
}

/** What the server says of a deletion. */
interface Deleted {
  readonly value: boolean;
  readonly meta: Pick<AnswerMeta, 'ack'>;
}

/**
 * `what` names the object, `also` what went with it, `isNamespaced` says whether another one may have it. Throws
 * CommandFailed when it was not there.
 */
export async function sayDeleted(
  session: Session,
  answer: Deleted,
  {
    what,
    also = '',
    isNamespaced = true,
  }: { readonly what: string; readonly also?: string; readonly isNamespaced?: boolean },
): Promise<void> {
  if (!answer.value) {
    const elsewhere = isNamespaced ? '; --namespace looks in another namespace' : '';
    throw new CommandFailed(
      `there is no ${what}: nothing was deleted\nNext: \`list\` in place of \`delete\` shows what there is${elsewhere}.`,
    );
  }
  await sayEnded(session, answer, `Deleted ${what}${also}.`);
}

/** `says` is what was done, and is said besides who is known to have it. */
export async function sayEnded(
  session: Session,
  { value, meta }: Deleted,
  says: string,
): Promise<void> {
  await session.done(value, says);
  const known = WHO_HAS_IT.get(meta.ack ?? '');
  if (known === undefined || (await isAlone(session))) return;
  await session.note(
    `Known to have it so far: ${known}. Where it has not arrived all is as before; ` +
      '`conclave operator datacenters` shows who is behind, and --ack all waits for all.',
  );
}

/** Whether there is nobody else to hear of it. What was done is done: no answer is none of its failures. */
async function isAlone({ client }: Session): Promise<boolean> {
  try {
    return (await client.catalog.datacenters()).value.length <= 1;
  } catch {
    return false;
  }
}

/** By the level that was reached; nothing is said where all have it, or nobody else has to. */
const WHO_HAS_IT: ReadonlyMap<string, string> = new Map([
  ['primary', 'the primary'],
  ['majority', 'a majority of the datacenters'],
]);
