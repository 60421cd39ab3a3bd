// Draws when an operator takes archives of a datacenter, and restores them in the middle of everything else: as a
// rule of the one that is the primary at first, which alone may restore.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';

/** The first primary has written something. */
const FIRST_MS = 3000;
/** From an archive until it is restored. */
const AGE_MIN_MS = 500;
const AGE_MAX_MS = 10_000;
/** From a restore to another one right behind it. */
const AGAIN_MIN_MS = 20;
const AGAIN_MAX_MS = 2000;
/** From a restore to the next archive. */
const GAP_MIN_MS = 1000;
const GAP_MAX_MS = 15_000;

export const drawRestores = daysOf({ leastMs: FIRST_MS, spreadMs: GAP_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const site = stream.chance(0.7) ? 1 : 1 + stream.below(siteCount);
  const restoreMs = atMs + stream.spread(AGE_MIN_MS, AGE_MAX_MS);
  const operator = { forMs: 0, of: 'restore' } as const;
  // From a stream of its own: the others are what they were without.
  const again = stream.fork(`again at ${atMs}`);
  const againMs = restoreMs + again.spread(AGAIN_MIN_MS, AGAIN_MAX_MS);
  const action = { kind: 'restore-archive', site } as const;
  return {
    faults: [
      { ...operator, atMs, action: { kind: 'save-archive', site } },
      { ...operator, atMs: restoreMs, action },
      ...(again.chance(0.3) ? [{ ...operator, atMs: againMs, action }] : []),
    ],
    nextMs: restoreMs + stream.spread(GAP_MIN_MS, GAP_MAX_MS),
  };
}
