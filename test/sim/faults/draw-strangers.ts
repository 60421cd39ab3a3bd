// Draws what a promise that counts twice needs: one datacenter is gone, the others are parted, and have just
// started, so that of the one that is gone they know nothing but the addresses of their settings, at which
// others answer. Then somebody on each side is to be elected, or a primary handed over.

import type { Stream } from '../world/stream.ts';
import { type Day, daysOf } from './draw-days.ts';
import type { Fault, FaultAction } from './fault-plan.ts';

/** From the restart until a server has found those whom it reaches: they tell each other every second. */
const FOUND_MIN_MS = 2500;
const FOUND_MAX_MS = 7000;
const DOWN_MS = 300;
/** What is left when somebody is to be elected: each address at which nobody answers takes two seconds. */
const REST_MIN_MS = 4000;
const REST_MAX_MS = 18_000;
/** From the first try to the second one. */
const AGAIN_MIN_MS = 2000;
const AGAIN_MAX_MS = 9000;
/** From one to the next. */
const GAP_MIN_MS = 1000;
const GAP_MAX_MS = 15_000;
/** The first primary has written something. */
const FIRST_MIN_MS = 3000;

export const drawStrangers = daysOf({ leastMs: FIRST_MIN_MS, spreadMs: GAP_MAX_MS }, drawDay);

function drawDay(stream: Stream, atMs: number, siteCount: number): Day {
  const all = Array.from({ length: siteCount }, (_, place) => place + 1);
  const gone = stream.chance(0.6) ? 1 : stream.pick(all);
  const rest = stream.shuffled(all.filter((site) => site !== gone));
  const half = Math.floor(rest.length / 2);
  const [near, far] = [rest.slice(0, half), rest.slice(half)];
  const startMs = atMs + stream.between(0, 500);
  const electMs = startMs + DOWN_MS + stream.between(FOUND_MIN_MS, FOUND_MAX_MS);
  const againMs = electMs + stream.between(AGAIN_MIN_MS, AGAIN_MAX_MS);
  const endMs = electMs + stream.between(REST_MIN_MS, REST_MAX_MS);
  const lasting = (action: FaultAction): Fault => ({ atMs, forMs: endMs - atMs, action });
  const isParted = stream.chance(0.8);
  const parted = isParted ? near.flatMap((from) => far.map((to) => [from, to] as const)) : [];
  const areAllNew = stream.chance(0.7);
  const isNew = (): boolean => areAllNew || stream.chance(0.5);
  return {
    faults: [
      lasting({ kind: 'away', site: gone, direction: 'both' }),
      ...parted.flatMap(([from, to]) => [
        lasting({ kind: 'cut-wan', from, to }),
        lasting({ kind: 'cut-wan', from: to, to: from }),
      ]),
      ...rest.filter(isNew).map((site) => ({
        ...{ atMs: startMs, forMs: DOWN_MS },
        action: { kind: 'site-down' as const, site, ending: 'process' as const },
      })),
      { atMs: electMs, forMs: 0, action: drawMove(stream, near, far) },
      { atMs: againMs, forMs: 0, action: drawMove(stream, near, far) },
    ],
    nextMs: endMs + stream.between(GAP_MIN_MS, GAP_MAX_MS),
  };
}

/** Somebody of each side, as a rule. */
function drawMove(stream: Stream, near: readonly number[], far: readonly number[]): FaultAction {
  const sites = [stream.pick(near), stream.pick(far)];
  if (stream.chance(0.1)) return { kind: 'hand-over', site: sites[0]! };
  return { kind: 'elect', sites: stream.chance(0.8) ? sites : sites.slice(0, 1) };
}
