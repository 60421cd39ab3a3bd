// Draws when an operator removes a datacenter by force while the primary is being moved: a hand-over, an election or a
// forced promotion is under way, of whoever is removed, or of another one; and lets it back later, by force at times,
// and at times in the next move.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';
import type { Fault, FaultAction } from './fault-plan.ts';

/** The first primary has written something, and the others follow. */
const FIRST_MS = 4000;
/** Until the removal, from when the move is asked for, or so much before. */
const RUSH_MIN_MS = -400;
const RUSH_MAX_MS = 1500;
/** So long one is out of sight, down, or behind a slow line: a move takes longer then. */
const TROUBLE_MIN_MS = 2000;
const TROUBLE_MAX_MS = 8000;
/** From the removal until the name is allowed. */
const REMOVED_MIN_MS = 500;
const REMOVED_MAX_MS = 9000;
/** From the end of one day to the next. */
const GAP_MAX_MS = 8000;

export const drawRushes = daysOf({ leastMs: FIRST_MS, spreadMs: GAP_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const sites = Array.from({ length: siteCount }, (_, place) => place + 1);
  const [removed, other] = stream.shuffled(sites) as [number, number];
  const moveMs = atMs + stream.between(0, 1000);
  const removeMs = moveMs + stream.between(RUSH_MIN_MS, RUSH_MAX_MS);
  const allowMs = removeMs + stream.spread(REMOVED_MIN_MS, REMOVED_MAX_MS);
  const isMovedBack = stream.chance(0.5);
  const backMs = allowMs + stream.between(-RUSH_MAX_MS, -RUSH_MIN_MS);
  return {
    faults: [
      ...drawTrouble(stream, atMs, removed),
      ...(stream.chance(0.4) ? drawTrouble(stream, atMs, other) : []),
      rush(moveMs, 0, drawMove(stream, siteCount, removed)),
      rush(removeMs, 0, { kind: 'remove-site', site: removed, isForced: true, isRushed: true }),
      ...(isMovedBack ? [rush(backMs, 0, drawMove(stream, siteCount, removed))] : []),
      rush(allowMs, 0, {
        kind: 'allow-site',
        site: removed,
        isForced: stream.chance(0.4),
        isRushed: true,
      }),
    ],
    nextMs: allowMs + stream.between(0, GAP_MAX_MS),
  };
}

function drawMove(stream: Stream, siteCount: number, removed: number): FaultAction {
  const site = stream.chance(0.3) ? removed : 1 + stream.below(siteCount);
  switch (stream.pick(['hand-over', 'hand-over', 'elect', 'elect', 'force'] as const)) {
    case 'hand-over':
      return { kind: 'hand-over', site };
    case 'elect':
      return { kind: 'elect', sites: [site] };
    default:
      return { kind: 'force', site };
  }
}

/** As a rule the servers run on, and moves are quick. */
function drawTrouble(stream: Stream, atMs: number, site: number): readonly Fault[] {
  const forMs = stream.spread(TROUBLE_MIN_MS, TROUBLE_MAX_MS);
  switch (stream.pick(['runs', 'slow', 'slow', 'away', 'down'] as const)) {
    case 'runs':
      return [];
    case 'slow':
      return [rush(atMs, forMs, { kind: 'slow-wan', site, meanMs: stream.spread(50, 1500) })];
    case 'away':
      return [rush(atMs, forMs, { kind: 'away', site, direction: 'both' })];
    default:
      return [rush(atMs, forMs, { kind: 'site-down', site, ending: 'process' })];
  }
}

function rush(atMs: number, forMs: number, action: FaultAction): Fault {
  return { atMs, forMs, action, of: 'rush' };
}
