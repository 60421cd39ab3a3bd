// How many datacenters have a global write before it is answered. The write itself is done and stays,
// whatever comes of the wait: a level that the caller asked for and that was not reached in time is
// refused in words that say so, a default that was not reached is only told. A deletion that finds nothing
// waits in the same way: an earlier try may have been the one, and others may not have it yet.

import { AclError } from '../../acl/error.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import type { AckLevel, Call } from '../call.ts';
import type { ServiceSettings } from '../deps.ts';
import type { OperationName, OperationOutput } from '../operations.ts';
import type { Service } from '../service.ts';
import type { WriteResult } from '../views.ts';
import { foundNothing } from './tries.ts';

const RANK: Readonly<Record<AckLevel, number>> = { primary: 0, majority: 1, all: 2 };
/**
 * From so many datacenters up, a delete waits for a majority: a lost revocation is a security event. Two elect nobody
 * without the primary, but by a list of which they have not heard that it is over.
 */
const MAJORITY_DELETES_FROM = 3;
/** No write waits longer for other datacenters. */
export const ACK_TIMEOUT_MAX_MS = 600_000;

export interface AckWish {
  readonly call: Pick<Call, 'ack' | 'ackTimeoutMs'>;
  /** What is at the position: a change, a deletion, or that there was nothing to delete. */
  readonly what: 'change' | 'deletion' | 'nothing';
}

/** The level reached. Rejects with 'wait-timeout' when the caller asked for more. */
export function acknowledged(
  { federation, settings }: Pick<Service, 'federation' | 'settings'>,
  position: Position,
  { call, what }: AckWish,
): AckLevel | Promise<AckLevel> {
  const { ack: asked } = call;
  const least = asked ?? settings.defaultAck;
  if (least === 'primary' && (asked !== undefined || what === 'change')) return least;
  const count = federation.datacenters().length;
  const mayBeLost = count >= MAJORITY_DELETES_FROM || (count > 1 && federation.mayCountRemoved());
  const isRaised = least === 'primary' && mayBeLost;
  const wanted = isRaised ? 'majority' : least;
  // In one datacenter every level is reached with the write itself.
  if (wanted === 'primary' || count === 1) return wanted;
  const limitMs = ackLimitMs(call, settings);
  return federation.acknowledged(position, wanted, limitMs).then((reached) => {
    if (asked === undefined || RANK[reached] >= RANK[asked]) return reached;
    const { epoch, seq } = position;
    const begins = what === 'nothing' ? 'There was nothing to delete' : 'The write stands';
    throw new AclError(
      'wait-timeout',
      `${begins} at position ${epoch}.${seq}, but in time it was acknowledged by ${SAYS[reached]} only and not by ${SAYS[asked]}`,
    );
  });
}

/**
 * The output of a write at a leader, and of one that found nothing to delete the level that this has come
 * to. Only the primary can tell it: what another datacenter did not find was a local token.
 */
export async function withLevelOfNothing<Name extends OperationName>(
  service: Service,
  call: Call,
  output: OperationOutput<Name>,
): Promise<OperationOutput<Name>> {
  const { federation, settings } = service;
  if (!('meta' in output)) return output;
  const { value, meta } = output as WriteResult<unknown>;
  const isPrimary = federation.primary().datacenter === settings.datacenter;
  if (value !== false || meta.ack !== undefined || !isPrimary) return output;
  const ack = await acknowledged(service, meta.position, { call, what: 'nothing' });
  return { ...output, meta: { ...meta, ack } };
}

/**
 * Throws, for an output that says that there was nothing to delete, why this datacenter cannot tell: by its own log it
 * is the primary, and another one may be by now, or is, and has what is not here.
 */
export function requireMayTellOfNothing<Name extends OperationName>(
  { federation, settings }: Pick<Service, 'federation' | 'settings'>,
  output: OperationOutput<Name>,
): OperationOutput<Name> {
  const isPrimary = federation.primary().datacenter === settings.datacenter;
  const closed = isPrimary && foundNothing(output) ? federation.closedBecause() : undefined;
  if (closed !== undefined) throw closed;
  return output;
}

/** How long a write may wait for other datacenters. */
export function ackLimitMs(
  { ackTimeoutMs }: Pick<Call, 'ackTimeoutMs'>,
  settings: Pick<ServiceSettings, 'ackTimeoutMs'>,
): number {
  return Math.min(ackTimeoutMs ?? settings.ackTimeoutMs, ACK_TIMEOUT_MAX_MS);
}

const SAYS: Readonly<Record<AckLevel, string>> = {
  primary: 'the primary',
  majority: 'a majority of datacenters',
  all: 'all datacenters',
};
