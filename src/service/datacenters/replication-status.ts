// How far this datacenter is with the primary's data, in the shape that deployed clients know and with
// what they could not know. In the primary itself there is nothing to say. The leader answers, because
// it alone takes the data in; a server that finds none says what it has.

import type { OperationInput, OperationOutput } from '../operations.ts';
import type { Service } from '../service.ts';

/** Needs no token. */
export async function replicationStatus(
  { settings, federation }: Service,
  _input: OperationInput<'replication.status'>,
): Promise<OperationOutput<'replication.status'>> {
  const status = federation.status();
  const own = status.datacenters.find(({ isSelf }) => isSelf);
  // The last primary that the own log names may be one no more, and have to follow whoever comes after it.
  const isPrimary = own?.state === 'primary';
  const { datacenter: named } = status.primary;
  const running =
    own?.state === 'live' || own?.state === 'catching-up' || own?.state === 'snapshot';
  // Of the primary, as deployed clients compare them with the index of its lists.
  const [policies = 0, roles = 0, tokens = 0] = isPrimary ? [] : (status.tableIndexes ?? []);
  return {
    enabled: !isPrimary,
    running: !isPrimary && running,
    sourceDatacenter: named === settings.datacenter ? '' : named,
    replicationType: isPrimary ? '' : 'tokens',
    replicatedIndex: policies,
    replicatedRoleIndex: roles,
    replicatedTokenIndex: tokens,
    lastSuccessMs: isPrimary ? undefined : own?.lastSuccessMs,
    lastErrorMs: isPrimary ? undefined : own?.lastErrorMs,
    lastErrorMessage: isPrimary ? '' : (own?.lastError ?? ''),
    federation: status,
  };
}
