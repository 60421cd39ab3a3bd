// A later reign is said to have begun, and its primary cannot be asked, or two were forced with one epoch: what the
// outrun primary, or one of the two, wrote now would have to be set apart. Which of the two goes on, a person says.

import type { PrimaryClaim } from '../../../../cluster/federation/directory/directory.ts';
import type { AheadFollower } from '../../../../cluster/federation/feed/ahead-followers.ts';
import { positionText } from '../../../../cluster/federation/global-log.ts';
import type { LaterClaim } from '../../../../cluster/federation/promotion/later-reign.ts';
import { AclError } from '../../../acl/error.ts';

/** Undefined where there is no reason. */
export function nothingWritten(why: string | undefined): AclError | undefined {
  if (why === undefined) return undefined;
  return new AclError('unavailable', `Nothing was written: ${why}`);
}

/** That `datacenter` is outrun by that one, and what to do about it. */
export function outrunText(
  datacenter: string,
  { datacenter: later, epoch, isOver }: Pick<LaterClaim, 'datacenter' | 'epoch' | 'isOver'>,
): string {
  if (isOver) {
    return `datacenter ${later} is said to have begun epoch ${epoch}, and is the primary no more: \`Closed\` of \`conclave operator primary\`, asked at ${later}, says how it goes on`;
  }
  return `datacenter ${later} is said to have begun epoch ${epoch}; ${datacenter} follows it when it can be asked. If ${later} is gone, \`conclave operator promote ${datacenter} --election\` makes ${datacenter} the primary again`;
}

/** That another one has begun the epoch of `datacenter`, and what to do about it; undefined where none has. */
export function rivalText(
  { datacenter, epoch }: Pick<PrimaryClaim, 'datacenter' | 'epoch'>,
  rival: string | undefined,
): string | undefined {
  if (rival === undefined) return undefined;
  return `datacenter ${rival} is said to have begun epoch ${epoch}, as ${datacenter} has. What one of the two wrote behind that will be set apart: \`conclave operator promote ${datacenter} --election\` lets ${datacenter} go on, and ${rival} yield`;
}

/** That one has something of a reign that has outrun `datacenter`, whosever that is, and what to do about it. */
export function begunText(
  datacenter: string,
  { datacenter: other, cursor }: AheadFollower,
  isWitness: boolean,
): string {
  const promote = (each: string): string => `\`conclave operator promote ${each} --election\``;
  const withIt = isWitness
    ? ''
    : `${promote(other)}, asked at ${other}, goes on with what is there, and `;
  const goesOn = isWitness ? 'goes on ' : '';
  return (
    `${other} has ${positionText(cursor)}: that reign has begun, and ${datacenter} follows it when it hears whose it ` +
    `is. If whoever began it is gone, ${withIt}${promote(datacenter)} ${goesOn}with what can be had here`
  );
}
