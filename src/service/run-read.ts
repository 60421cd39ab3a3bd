// A read: behind a barrier unless it is stale, then from the state of this server, or of its leader where that one
// knows more. What waits for nothing is given, or thrown, at once.

import { AclError } from '../acl/error.ts';
import { HANDLERS } from './handlers.ts';
import { OPERATION_TABLE } from './operation-table.ts';
import type { Asked, OperationName, OperationOutput, Soon } from './operations.ts';
import { freshness } from './reading.ts';
import { counted } from './rights/denials.ts';
import type { Service } from './service.ts';

export function runRead<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
): Soon<Name> {
  const asksLeader = OPERATION_TABLE[asked.name].atLeader && asked.call.consistency !== 'stale';
  return asksLeader ? runReadAtLeader(service, asked) : readHere(service, asked);
}

/** A server that cannot ask its leader says what it knows itself. */
async function runReadAtLeader<Name extends OperationName>(
  service: Service,
  asked: Asked<Name>,
): Promise<OperationOutput<Name>> {
  const itself = { ...asked, call: { ...asked.call, consistency: 'stale' } } as const;
  if (service.leaderContact().isLeader) return readHere(service, itself);
  try {
    return await service.remote.runAtLeader(asked.name, asked.input, itself.call);
  } catch (error) {
    if (!(error instanceof AclError)) throw error;
    return readHere(service, itself);
  }
}

/** By what this server knows. */
export function readHere<Name extends OperationName>(
  service: Service,
  read: Asked<Name>,
): Soon<Name> {
  const fresh = freshness(service, read.call);
  return fresh === undefined ? look(service, read) : fresh.then(() => look(service, read));
}

/** What the state says now. */
function look<Name extends OperationName>(
  service: Service,
  { name, input, call }: Asked<Name>,
): Soon<Name> {
  try {
    const output = HANDLERS[name](service, input, { call, mark: undefined, attempt: undefined });
    if (!(output instanceof Promise)) return output;
    return output.catch((error: unknown) => {
      throw counted(service, error);
    });
  } catch (error) {
    throw counted(service, error);
  }
}
