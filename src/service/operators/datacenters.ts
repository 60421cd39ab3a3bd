// What operators decide about the datacenters of a federation. It is written in the primary, as all that
// every datacenter has to know.

import { invalid } from '../../acl/error.ts';
import { isDatacenterName } from '../../acl/values/names.ts';
import { positionText, type ShownDatacenter } from '../../api/render/shown-federation.ts';
import { removedOf } from '../../state/global-log/replication.ts';
import type { Primacy } from '../datacenters/federation.ts';
import type { ServiceSettings } from '../deps.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { LeaderAway } from '../remote.ts';
import { requireOperator } from '../rights/permissions.ts';
import type { Request, Service } from '../service.ts';
import { commit, nothingDeleted } from '../writes/commit.ts';

/**
 * False: it was removed before, or none of that name is known. By force the name is removed all the same: one that was
 * let back, and one that is still to come, is in no list until it asks for the log.
 */
export async function removeDatacenter(
  service: Service,
  { name, isForced }: OperationInput<'datacenter.remove'>,
  request: Request,
): Promise<OperationOutput<'datacenter.remove'>> {
  const { callers, federation, logger } = service;
  const { token } = requireOperator(callers.resolve(request.call.secret));
  const isKnown = federation.datacenters().includes(name);
  if (!isKnown && !(isForced && mayCome(service, name))) return nothingDeleted(service);
  const majoritySeq = federation.status().majority?.seq ?? 0;
  const change = { type: 'datacenter.remove', name, majoritySeq, isForced } as const;
  const result = await commit(service, request, change, 'deleted');
  const fields = { name, isForced, by: token.accessorId };
  if (result.value) logger.warn(fields, 'an operator has removed a datacenter');
  return result;
}

/** Whether a datacenter of that name could still join, and there is a list to keep it out by. */
function mayCome({ view }: Service, name: string): boolean {
  const replication = view.replication();
  if (replication === undefined || !isDatacenterName(name)) return false;
  return !removedOf(replication).includes(name);
}

/**
 * False: it was not removed. One that follows a later reign is refused, for the others would yield to it; and so is one
 * that has what the primary wrote and has lost, for the entry that lets it back stands in the place of that.
 */
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
  if (!isForced) {
    requireHarmless(removed, primary);
    // Behind a start nobody has told yet what speaks against it.
    if (!federation.hasHeardRemoved()) throw justBegun(name, service.settings);
  }
  const result = await commit(service, request, { type: 'datacenter.allow', name }, 'deleted');
  const fields = { name, isForced, by: token.accessorId };
  if (result.value) logger.warn(fields, 'an operator lets a removed datacenter come back');
  return result;
}

function justBegun(name: string, { datacenter }: Pick<ServiceSettings, 'datacenter'>): LeaderAway {
  const why = `a server of ${datacenter} has just begun, and waits a moment to hear ${name}`;
  return new LeaderAway({ says: `Nothing was changed: ${why}` });
}

function requireHarmless(
  { name, ahead, rival }: ShownDatacenter,
  { datacenter, epoch }: Primacy,
): void {
  const electOwn = `\`conclave operator promote ${datacenter} --election\``;
  if (ahead !== undefined) {
    const { upTo, end } = ahead;
    // The entry that lets it back would be another one of the same place, and the two logs could not be told apart.
    const begins = upTo.epoch === epoch ? `First ${electOwn} begins a later epoch here. Then ` : '';
    throw invalid(
      `Nothing was changed: ${name} has ${positionText(upTo)} of a reign of ${datacenter}, of which there is ${positionText(end)} here: the data folders of ${datacenter} are of an earlier day. ${begins}\`conclave operator promote ${name} --force …\`, asked at ${name}, goes on with what is there, and \`conclave operator datacenter allow ${name} --force\` behind that has the others follow it. Without that promotion, what ${name} has more is lost`,
    );
  }
  if (rival === undefined) return;
  const outcome =
    rival.epoch > epoch
      ? 'the others would yield to it, and what they wrote since it was removed, revocations too, would be set apart'
      : 'there would be two primaries of one epoch';
  throw invalid(
    `Nothing was changed: ${name} takes ${rival.datacenter} for the primary, of epoch ${rival.epoch}, and here it is ${datacenter}, of epoch ${epoch}: ${outcome}. Let ${datacenter} begin a later epoch first (${electOwn}), then what is not here is set apart there; or force it`,
  );
}
