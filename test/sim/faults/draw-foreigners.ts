// Draws when an operator restores what is no archive of this federation: one of another federation whose datacenter
// had the same name, one from before the global log began, or one of another datacenter, which is refused.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';
import type { Fault, FaultAction } from './fault-plan.ts';

/** The first primary has written something. */
const FIRST_MS = 3000;
/** From an archive until what is made of it is restored. */
const AGE_MIN_MS = 500;
const AGE_MAX_MS = 8000;
/** From a restore to the next archive. */
const GAP_MIN_MS = 1000;
const GAP_MAX_MS = 12_000;

export const drawForeigners = daysOf({ leastMs: FIRST_MS, spreadMs: GAP_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const site = stream.chance(0.7) ? 1 : 1 + stream.below(siteCount);
  const other = 1 + (site % siteCount);
  const from = stream.pick(['federation', 'federation', 'before-the-log', 'elsewhere'] as const);
  const restoreMs = atMs + stream.spread(AGE_MIN_MS, AGE_MAX_MS);
  const operator = (ofMs: number, action: FaultAction): Fault => {
    return { atMs: ofMs, forMs: 0, of: 'foreign', action };
  };
  const saved = from === 'elsewhere' ? other : site;
  return {
    faults: [
      operator(atMs, { kind: 'save-archive', site: saved }),
      operator(restoreMs, {
        ...{ kind: 'restore-archive', site },
        ...(from === 'elsewhere' ? { savedAt: other } : { madeOf: from }),
      }),
    ],
    nextMs: restoreMs + stream.spread(GAP_MIN_MS, GAP_MAX_MS),
  };
}
