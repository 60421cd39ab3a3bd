// Other datacenters have more of the reigns of the primary than that one has itself: the disk of the primary was put
// back to an earlier state. What it wrote now would stand in the places of what it had acknowledged, revocations among
// it, and it could not follow those who still have that. Where that state knows nothing of the reign, nobody is
// primary.

import { must } from '../../../../cluster/base/assert.ts';
import { positionText } from '../../../../cluster/federation/global-log.ts';
import type { Ahead } from '../../../../cluster/federation/promotion/passed-over.ts';
import type { Position } from '../../../state/global-log/cursor.ts';

export interface LostReign {
  /** Who began it. */
  readonly datacenter: string;
  /** Where its log ends; with a seq of 0, somewhere in that epoch. */
  readonly head: Position;
  /** Who has more, and most first; not empty. */
  readonly ahead: readonly Ahead[];
  readonly isWitness: (datacenter: string) => boolean;
  /** Whether this datacenter, and others of its day, would promise anything to that one. */
  readonly isVoter: (datacenter: string) => boolean;
}

/** Who has more, and what to do about it. */
export function lostReignText(lost: LostReign): string {
  const { datacenter, head, ahead, isWitness, isVoter } = lost;
  const most = must(ahead[0], 'somebody who has more');
  // Where nobody but a witness has it, the primary itself takes it back.
  const next = ahead.find((each) => !isWitness(each.datacenter))?.datacenter ?? datacenter;
  const [how, why] = isVoter(next)
    ? ['--election', '']
    : ['--force …', `: no voter of that day knows ${next} as one, and promises it anything`];
  return (
    `${most.datacenter} has ${hasText(most)}, and ${datacenter}, which wrote that, ends at ` +
    `${placeText(head)}: its data folders are of an earlier day. ` +
    `\`conclave operator promote ${next} ${how}\`, asked at ${next}, goes on with what is there${why}`
  );
}

function hasText({ upTo }: Ahead): string {
  return upTo.seq === 0 ? placeText(upTo) : `${placeText(upTo)} of this reign`;
}

function placeText(place: Position): string {
  return place.seq === 0 ? `epoch ${place.epoch}` : positionText(place);
}
