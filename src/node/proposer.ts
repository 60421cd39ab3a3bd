// From a command to its outcome: encoding, the log, and what a failure of the log means to a caller.

import {
  type Replica,
  ReplicaError,
  type ReplicaErrorCode,
} from '../../cluster/replica/replica.ts';
import { AclError, type AclErrorCode } from '../acl/error.ts';
import { encodeCommand } from '../state/command-codec.ts';
import type { Command } from '../state/commands.ts';
import type { Outcome } from '../state/outcome.ts';

/** Rejects with AclError: `unavailable` when nothing was done, `outcome-unknown` when that is not known. */
export function proposerOf(replica: Replica<Outcome>): (command: Command) => Promise<Outcome> {
  return async (command) => {
    try {
      return await replica.propose(encodeCommand(command));
    } catch (error) {
      if (error instanceof ReplicaError) throw refusalOf(error);
      throw error;
    }
  };
}

const CODE_BY_FAILURE: Readonly<Record<ReplicaErrorCode, AclErrorCode>> = {
  'queue-full': 'unavailable',
  closed: 'unavailable',
  'too-large': 'body-too-large',
  'outcome-unknown': 'outcome-unknown',
};

function refusalOf(error: ReplicaError): AclError {
  const code = CODE_BY_FAILURE[error.code];
  const what =
    code === 'outcome-unknown'
      ? 'whether the write took effect is not known'
      : 'nothing was written';
  return new AclError(code, `${what}: ${error.message}`, { cause: error });
}
