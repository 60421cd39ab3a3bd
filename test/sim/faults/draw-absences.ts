// Draws when the disks of a datacenter are put back to an earlier day while another one is away, down or cut off, and
// when those of two are put back at once: as a rule those of the first primary among them.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';
import type { Fault, FaultAction } from './fault-plan.ts';

/** The first primary has written something. */
const FIRST_MS = 3000;
/** So long servers are down for it. */
const DOWN_MIN_MS = 300;
const DOWN_MAX_MS = 1500;
/** From a copy until it is put back. */
const AGE_MIN_MS = 2500;
const AGE_MAX_MS = 12_000;
/** So long before that another one goes, and so long behind it comes back. */
const BEFORE_MIN_MS = 200;
const BEFORE_MAX_MS = 4000;
const BEHIND_MAX_MS = 15_000;
/** From the end of one day to the next. */
const GAP_MAX_MS = 5000;

export const drawAbsences = daysOf({ leastMs: FIRST_MS, spreadMs: AGE_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const sites = Array.from({ length: siteCount }, (_, place) => place + 1);
  const shuffled = stream.shuffled(sites);
  const order = stream.chance(0.5) ? [1, ...shuffled.filter((site) => site !== 1)] : shuffled;
  const [site, beside, away] = order as [number, number, number];
  const kind = stream.pick(['away', 'away', 'two', 'both'] as const);
  const areTwo = kind !== 'away';
  const isAway = kind !== 'two';
  const gone = areTwo ? away : beside;
  const downMs = (): number => stream.between(DOWN_MIN_MS, DOWN_MAX_MS);
  const backMs = atMs + stream.spread(AGE_MIN_MS, AGE_MAX_MS);
  const copiedMs = stream.between(atMs, backMs - DOWN_MAX_MS);
  const goneMs = backMs - stream.spread(BEFORE_MIN_MS, BEFORE_MAX_MS);
  const goneForMs = backMs - goneMs + stream.between(0, BEHIND_MAX_MS);
  const absence: FaultAction = stream.chance(0.5)
    ? { kind: 'away', site: gone, direction: 'both' }
    : { kind: 'site-down', site: gone, ending: 'process' };
  const putBack: FaultAction = {
    ...{ kind: 'put-back-site' as const, site },
    ...(areTwo && { beside }),
    ...(isAway && { mayBeAlone: true }),
  };
  return {
    faults: [
      fault(atMs, downMs(), { kind: 'copy-site', site }),
      ...(areTwo ? [fault(copiedMs, downMs(), { kind: 'copy-site', site: beside })] : []),
      ...(isAway ? [fault(goneMs, goneForMs, absence)] : []),
      // Only one for which all is well at that moment comes about.
      ...[0, 700, 1500].map((laterMs) => fault(backMs + laterMs, downMs(), putBack)),
    ],
    nextMs: backMs + stream.between(0, GAP_MAX_MS),
  };
}

function fault(atMs: number, forMs: number, action: FaultAction): Fault {
  return { atMs, forMs, action, of: 'absence' };
}
