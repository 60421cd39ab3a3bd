// How many datacenters have a global write before it is answered. The write itself is done and stays,
// whatever comes of the wait: a level that the caller asked for and that was not reached in time is
// refused in words that say so, a default that was not reached is only told.

import { AclError } from '../acl/error.ts';
import type { Position } from '../state/outcome.ts';
import type { AckLevel, Call } from './call.ts';
import type { Service } from './service.ts';

const RANK: Readonly<Record<AckLevel, number>> = { primary: 0, majority: 1, all: 2 };
/** From so many datacenters up, a delete waits for a majority: a lost revocation is a security event. */
const MAJORITY_DELETES_FROM = 3;

export interface AckWish {
  readonly call: Pick<Call, 'ack' | 'ackTimeoutMs'>;
  readonly isDelete: boolean;
}

/** The level reached. Rejects with 'wait-timeout' when the caller asked for more. */
export function acknowledged(
  { federation, settings }: Pick<Service, 'federation' | 'settings'>,
  position: Position,
  { call, isDelete }: AckWish,
): AckLevel | Promise<AckLevel> {
  const { ack: asked, ackTimeoutMs } = call;
  const least = asked ?? settings.defaultAck;
  if (least === 'primary' && (asked !== undefined || !isDelete)) return least;
  const count = federation.datacenters().length;
  const isRaised = least === 'primary' && count >= MAJORITY_DELETES_FROM;
  const wanted = isRaised ? 'majority' : least;
  // In one datacenter every level is reached with the write itself.
  if (wanted === 'primary' || count === 1) return wanted;
  const limitMs = ackTimeoutMs ?? settings.ackTimeoutMs;
  return federation.acknowledged(position, wanted, limitMs).then((reached) => {
    if (asked === undefined || RANK[reached] >= RANK[asked]) return reached;
    const { epoch, seq } = position;
    throw new AclError(
      'wait-timeout',
      `The write stands at position ${epoch}.${seq}, but in time it was acknowledged by ${SAYS[reached]} only and not by ${SAYS[asked]}`,
    );
  });
}

const SAYS: Readonly<Record<AckLevel, string>> = {
  primary: 'the primary',
  majority: 'a majority of datacenters',
  all: 'all datacenters',
};
