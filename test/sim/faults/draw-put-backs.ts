// Draws when somebody copies the disks of a whole datacenter, whose servers are stopped for that, and puts them back
// later: as a rule those of the first primary.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';
import type { Fault } from './fault-plan.ts';

/** The first primary has written something. */
const FIRST_MS = 3000;
/** So long the servers are down for it. */
const DOWN_MIN_MS = 300;
const DOWN_MAX_MS = 1500;
/** From a copy until it is put back. */
const AGE_MIN_MS = 1500;
const AGE_MAX_MS = 12_000;
/** One copy is put back so often at most, and each time some moments later. */
const TIMES_MAX = 4;
const AGAIN_MIN_MS = 1000;
const AGAIN_MAX_MS = 6000;

export const drawPutBacks = daysOf({ leastMs: FIRST_MS, spreadMs: AGE_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const site = stream.chance(0.6) ? 1 : 1 + stream.below(siteCount);
  const downMs = (): number => stream.between(DOWN_MIN_MS, DOWN_MAX_MS);
  const faults: Fault[] = [
    { atMs, forMs: downMs(), action: { kind: 'copy-site', site }, of: 'put-back' },
  ];
  // Only one for which all is well at that moment comes about.
  let backMs = atMs + stream.spread(AGE_MIN_MS, AGE_MAX_MS);
  for (let left = 1 + stream.below(TIMES_MAX); left > 0; left -= 1) {
    faults.push({
      ...{ atMs: backMs, forMs: downMs(), of: 'put-back' as const },
      action: { kind: 'put-back-site', site },
    });
    backMs += stream.spread(AGAIN_MIN_MS, AGAIN_MAX_MS);
  }
  return { faults, nextMs: backMs };
}
