// What another server is told when what it asked for fails here: a refusal as it is, and of a fault of ours a
// reference to this server's log and nothing else, since it goes on to a client.

import type { Random } from '../../../cluster/platform/random.ts';
import { AclError } from '../../acl/error.ts';

export interface Teller {
  readonly random: Pick<Random, 'uuid'>;
  /** Whose log that is, for who reads the reference. */
  readonly place: 'leader' | 'server';
  /** Writes a fault to the log. */
  readonly log: (fields: { readonly reference: string; readonly cause: unknown }) => void;
}

export function toldError(error: unknown, { random, place, log }: Teller): AclError {
  if (error instanceof AclError) return error;
  const reference = random.uuid().slice(0, 8);
  log({ reference, cause: error });
  return new AclError('internal', `internal error, see ${reference} in the log of the ${place}`);
}
