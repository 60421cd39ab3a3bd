// What operators decide about the datacenters of a federation. It is written in the primary, as all that
// every datacenter has to know.

import { type AclError, invalid } from '../../acl/error.ts';
import type { Primacy } from '../datacenters/federation.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { requireOperator } from '../rights/permissions.ts';
import type { Request, Service } from '../service.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';

/** False: there is none of that name, or it was removed before. */
export async function removeDatacenter(
  service: Service,
  { name, isForced }: OperationInput<'datacenter.remove'>,
  request: Request,
): Promise<OperationOutput<'datacenter.remove'>> {
  const { callers, federation, logger } = service;
  const { token } = requireOperator(callers.resolve(request.call.secret));
  if (!federation.datacenters().includes(name)) return nothingDeleted(service);
  const majoritySeq = federation.status().majority?.seq ?? 0;
  const change = { type: 'datacenter.remove', name, majoritySeq, isForced } as const;
  const result = await commit(service, request, change, 'deleted');
  const fields = { name, isForced, by: token.accessorId };
  if (result.value) logger.warn(fields, 'an operator has removed a datacenter');
  return result;
}

/** False: it was not removed. One that follows a later reign is refused: the others would yield to it. */
export async function allowDatacenter(
  service: Service,
  { name, isForced }: OperationInput<'datacenter.allow'>,
  request: Request,
): Promise<OperationOutput<'datacenter.allow'>> {
  const { callers, federation, logger } = service;
  const { token } = requireOperator(callers.resolve(request.call.secret));
  const { datacenters, primary } = federation.status();
  const removed = datacenters.find((each) => each.name === name && each.state === 'removed');
  if (removed === undefined) return nothingDeleted(service);
  if (removed.rival !== undefined && !isForced) throw rivalled(name, primary, removed.rival);
  const result = await commit(service, request, { type: 'datacenter.allow', name }, 'deleted');
  const fields = { name, isForced, by: token.accessorId };
  if (result.value) logger.warn(fields, 'an operator lets a removed datacenter come back');
  return result;
}

function rivalled(name: string, primary: Primacy, rival: Primacy): AclError {
  const { datacenter, epoch } = primary;
  const outcome =
    rival.epoch > epoch
      ? 'the others would yield to it, and what they wrote since it was removed, revocations too, would be set apart'
      : 'there would be two primaries of one epoch';
  return invalid(
    `Nothing was changed: ${name} takes ${rival.datacenter} for the primary, of epoch ${rival.epoch}, and here it is ${datacenter}, of epoch ${epoch}: ${outcome}. Let ${datacenter} begin a later epoch first (conclave operator promote ${datacenter} --election), then what is not here is set apart there; or force it`,
  );
}
