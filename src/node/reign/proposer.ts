// From a command to its outcome, and from a barrier to a fresh state: what goes into the log, and what a
// failure of the group means to a caller.

import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import { ReplicaError, type ReplicaErrorCode } from '../../../cluster/replica/replica.ts';
import { AclError, type AclErrorCode } from '../../acl/error.ts';
import { LeaderAway } from '../../service/remote.ts';
import { encodeCommand } from '../../state/commands/command-codec.ts';
import type { Command } from '../../state/commands/commands.ts';
import type { Outcome } from '../../state/commands/outcome.ts';

/** The group as far as a proposer needs it. Rejects with GroupRefusal or ReplicaError. */
export interface ProposedTo {
  propose(payload: Uint8Array): Promise<Outcome>;
  readBarrier(): Promise<void>;
}

/** Rejects as `ServiceDeps.propose` says. */
export async function propose(group: ProposedTo, command: Command): Promise<Outcome> {
  try {
    return await group.propose(encodeCommand(command));
  } catch (error) {
    throw refusalOf(error, 'nothing was written');
  }
}

/** Rejects as `ServiceDeps.readBarrier` says. */
export async function passBarrier(group: ProposedTo): Promise<void> {
  try {
    await group.readBarrier();
  } catch (error) {
    throw refusalOf(error, 'nothing was read');
  }
}

const CODE_BY_FAILURE: Readonly<Record<ReplicaErrorCode, AclErrorCode>> = {
  'queue-full': 'unavailable',
  closed: 'unavailable',
  'too-large': 'body-too-large',
  'outcome-unknown': 'outcome-unknown',
};

function refusalOf(error: unknown, nothingDone: string): unknown {
  if (error instanceof GroupRefusal) return new LeaderAway({ cause: error });
  if (!(error instanceof ReplicaError)) return error;
  const code = CODE_BY_FAILURE[error.code];
  const what =
    code === 'outcome-unknown' ? 'whether the write took effect is not known' : nothingDone;
  return new AclError(code, `${what}: ${error.message}`, { cause: error });
}
