// What operators decide about the datacenters of a federation. It is written in the primary, as all that
// every datacenter has to know.

import { commit, nothingDeleted } from './commit.ts';
import type { OperationInput, OperationOutput } from './operations.ts';
import { requireOperator } from './permissions.ts';
import type { Request, Service } from './service.ts';

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

/** False: it was not removed. */
export async function allowDatacenter(
  service: Service,
  { name }: OperationInput<'datacenter.allow'>,
  request: Request,
): Promise<OperationOutput<'datacenter.allow'>> {
  const { callers, federation, logger } = service;
  const { token } = requireOperator(callers.resolve(request.call.secret));
  const { datacenters } = federation.status();
  const isRemoved = datacenters.some((each) => each.name === name && each.state === 'removed');
  if (!isRemoved) return nothingDeleted(service);
  const result = await commit(service, request, { type: 'datacenter.allow', name }, 'deleted');
  const fields = { name, by: token.accessorId };
  if (result.value) logger.warn(fields, 'an operator lets a removed datacenter come back');
  return result;
}
