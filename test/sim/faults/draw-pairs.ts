// Draws when two datacenters are lost at once, and removed by force before others have heard of the first removal, at
// times while the primary is moved; and in which order they are let back.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';
import type { Fault, FaultAction } from './fault-plan.ts';

/** The first primary has written something, and the others follow. */
const FIRST_MS = 4000;
/** From one removal to the next. */
const BETWEEN_MAX_MS = 1500;
/** From the second removal until the first of them is let back. */
const GONE_MIN_MS = 500;
const GONE_MAX_MS = 8000;
/** So long others are out of sight, or behind a slow line. */
const TROUBLE_MIN_MS = 1000;
const TROUBLE_MAX_MS = 8000;
/** Until the primary is moved, from the loss. */
const MOVE_MAX_MS = 4000;
/** From the end of one day to the next. */
const GAP_MAX_MS = 8000;

export const drawPairs = daysOf({ leastMs: FIRST_MS, spreadMs: GAP_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const all = Array.from({ length: siteCount }, (_, place) => place + 1);
  const shuffled = stream.shuffled(all.slice(1));
  // As a rule the first one is the primary.
  const order = stream.chance(0.8) ? [...shuffled, 1] : stream.shuffled(all);
  const [first, second, ...others] = order as [number, number, ...number[]];
  const betweenMs = stream.between(0, BETWEEN_MAX_MS);
  const goneMs = stream.spread(GONE_MIN_MS, GONE_MAX_MS);
  const trouble = others.filter((site) => site !== 1 && stream.chance(0.7));
  const isMoved = stream.chance(0.5);
  const backFirst = stream.pick([first, second]);
  return {
    faults: [
      ...trouble.map((site) => drawTrouble(stream, atMs, site)),
      pair(atMs, 0, { kind: 'remove-two', sites: [first, second], betweenMs, goneMs, backFirst }),
      ...(isMoved ? [drawMove(stream, atMs, others)] : []),
      ...(stream.chance(0.3) ? [drawMove(stream, atMs + betweenMs + goneMs, order)] : []),
    ],
    nextMs: atMs + betweenMs + goneMs + stream.between(GONE_MIN_MS, GAP_MAX_MS),
  };
}

function drawTrouble(stream: Stream, atMs: number, site: number): Fault {
  const forMs = stream.spread(TROUBLE_MIN_MS, TROUBLE_MAX_MS);
  return stream.chance(0.7)
    ? pair(atMs, forMs, { kind: 'away', site, direction: 'both' })
    : pair(atMs, forMs, { kind: 'slow-wan', site, meanMs: stream.spread(50, 1500) });
}

function drawMove(stream: Stream, fromMs: number, sites: readonly number[]): Fault {
  const atMs = fromMs + stream.between(0, MOVE_MAX_MS);
  const site = stream.pick(sites);
  const kind = stream.pick(['hand-over', 'hand-over', 'elect', 'elect', 'force'] as const);
  return pair(atMs, 0, kind === 'elect' ? { kind, sites: [site] } : { kind, site });
}

function pair(atMs: number, forMs: number, action: FaultAction): Fault {
  return { atMs, forMs, action, of: 'pair' };
}
