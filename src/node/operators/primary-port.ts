// How operators move the primary, by this node's promotion. What that refuses, in the service's words.

import type { Promoted } from '../../../cluster/federation/promotion/candidacy/candidacy.ts';
import type { Promotion } from '../../../cluster/federation/promotion/promotion.ts';
import { PromotionRefusal } from '../../../cluster/federation/promotion/promotion-refusal.ts';
import { AclError } from '../../acl/error.ts';
import type { Moved, PrimaryPort } from '../../service/operators/primary-port.ts';
import type { Position } from '../../state/global-log/cursor.ts';

export interface PrimaryPortDeps {
  readonly promotion: Promotion;
  /** The own one. */
  readonly datacenter: string;
  readonly position: () => Position;
  readonly closedBecause: PrimaryPort['closedBecause'];
  readonly lostReign: PrimaryPort['lostReign'];
}

export function primaryPortOf({
  promotion,
  datacenter,
  position,
  closedBecause,
  lostReign,
}: PrimaryPortDeps): PrimaryPort {
  return {
    handOver: (to, requireAllowed) =>
      told(async () => {
        const epoch = await promotion.handOver(to, requireAllowed);
        return { epoch, promises: [datacenter], position: position() };
      }),
    elect: (requireAllowed) => told(async () => movedBy(await promotion.elect(requireAllowed))),
    nextEpoch() {
      try {
        return promotion.nextEpoch();
      } catch (cause) {
        throw saidOf(cause);
      }
    },
    force: (next, requireAllowed) =>
      told(async () => movedBy(await promotion.force(next, requireAllowed))),
    closedBecause,
    lostReign,
  };
}

function movedBy({ epoch, promises, cursor }: Promoted): Moved {
  return { epoch, promises, position: { epoch: cursor.epoch, seq: cursor.seq } };
}

async function told(move: () => Promise<Moved>): Promise<Moved> {
  try {
    return await move();
  } catch (cause) {
    throw saidOf(cause);
  }
}

function saidOf(cause: unknown): unknown {
  if (!(cause instanceof PromotionRefusal)) return cause;
  const { code, message } = cause;
  if (code === 'refused') {
    return new AclError('unavailable', `The primary stays where it is: ${message}`, { cause });
  }
  const text = `Whether the primary has moved is not known, try again: ${message}`;
  return new AclError('outcome-unknown', text, { cause });
}
