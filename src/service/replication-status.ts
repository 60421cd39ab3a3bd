// How far this datacenter is with the primary's data. In the primary itself there is nothing to say.

import type { OperationInput, OperationOutput } from './operations.ts';
import type { Service } from './service.ts';

/** Needs no token. */
export async function replicationStatus(
  { settings }: Service,
  _input: OperationInput<'replication.status'>,
): Promise<OperationOutput<'replication.status'>> {
  const isPrimary = settings.datacenter === settings.primaryDatacenter;
  return {
    enabled: !isPrimary,
    running: false,
    sourceDatacenter: isPrimary ? '' : settings.primaryDatacenter,
    replicationType: isPrimary ? '' : 'tokens',
    replicatedIndex: 0,
    replicatedRoleIndex: 0,
    replicatedTokenIndex: 0,
    lastSuccessMs: undefined,
    lastErrorMs: undefined,
    lastErrorMessage: '',
  };
}
