// Draws what befalls datacenters as a whole: an operator removes one and allows it again, its servers running on,
// stopped, or cut off meanwhile; all disks of one are lost, before that, meanwhile, or without anybody doing
// anything about it; and one that was removed is made primary by force.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';
import type { Fault, FaultAction } from './fault-plan.ts';

/** The first primary has written something, and the others follow. */
const FIRST_MS = 4000;
/** From the end of one day to the next. */
const GAP_MAX_MS = 12_000;
/** Until somebody does something about disks that are lost. */
const NOTICED_MAX_MS = 4000;
/** From the removal until the name is allowed. */
const EXILE_MIN_MS = 500;
const EXILE_MAX_MS = 12_000;
/** From the loss of its disks until its servers are started with empty ones. */
const DOWN_MIN_MS = 300;
const DOWN_MAX_MS = 3000;

export const drawExiles = daysOf({ leastMs: FIRST_MS, spreadMs: GAP_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const site = 1 + stream.below(siteCount);
  const emptied = stream.pick(['never', 'first', 'meanwhile'] as const);
  const isRemoved = emptied !== 'first' || stream.chance(0.6);
  const removeMs = atMs + (emptied === 'first' ? stream.between(0, NOTICED_MAX_MS) : 0);
  const allowMs = removeMs + stream.spread(EXILE_MIN_MS, EXILE_MAX_MS);
  const within = (): number => stream.between(removeMs, allowMs);
  const meanwhile = stream.pick(['runs', 'runs', 'down', 'away'] as const);
  const isForced = meanwhile !== 'down' && stream.chance(0.25);
  const exile = (from: number, forMs: number, action: FaultAction): Fault => {
    return { atMs: from, forMs, action, of: 'exile' };
  };
  const lastMs = (allowMs - removeMs) * stream.between(0.5, 1.5);
  const emptiedAtMs = emptied === 'first' ? atMs : within();
  return {
    faults: [
      ...(emptied === 'never'
        ? []
        : [
            exile(emptiedAtMs, stream.spread(DOWN_MIN_MS, DOWN_MAX_MS), {
              kind: 'empty-site',
              site,
            }),
          ]),
      ...(isRemoved
        ? [
            exile(removeMs, 0, { kind: 'remove-site', site }),
            exile(allowMs, 0, { kind: 'allow-site', site }),
          ]
        : []),
      ...(meanwhile === 'away'
        ? [exile(removeMs, lastMs, { kind: 'away', site, direction: 'both' })]
        : []),
      ...(meanwhile === 'down'
        ? [exile(removeMs, lastMs, { kind: 'site-down', site, ending: 'process' })]
        : []),
      ...(isForced ? [exile(within(), 0, { kind: 'force', site })] : []),
    ],
    nextMs: (isRemoved ? allowMs : atMs) + stream.between(0, GAP_MAX_MS),
  };
}
