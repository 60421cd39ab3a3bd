// The number of a reign that a person forces. It needs no promise, so beyond a cut somebody else may begin the epoch
// that is the next one there: an elected reign takes just that, so a forced one takes none that elections come to,
// and draws it, so that of two that are forced each has its own, also where one begins anew on disks of an earlier day.

import type { Random } from '../../../platform/random.ts';

/** More than there are elections while whoever is forced is heard by nobody. */
const AHEAD_MIN = 1000;
/** Two that know of the same epochs share a number once in 999,000 times. */
const AHEAD_END = 1_000_000;

/** `next`: behind every epoch that is known of. Behind it by 1,000 to 999,999. */
export function forcedEpoch(next: number, random: Pick<Random, 'fraction'>): number {
  return next + AHEAD_MIN + Math.floor(random.fraction() * (AHEAD_END - AHEAD_MIN));
}
