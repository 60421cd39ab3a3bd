// Draws what leaves forks of the global log, and what operators do about them: the primary goes out of sight and
// another one is elected or forced, and then that one, often before the first one is back; what they left is made
// again or forgotten. A datacenter is removed by force, down, out of sight or well; one that has lost its disks
// becomes a witness while elections run.

import type { Stream } from '../world/stream.ts';
import { type Day, drawDays } from './draw-days.ts';
import type { PlanFrame } from './draw-plan.ts';
import type { Fault, FaultAction } from './fault-plan.ts';

/** The first primary has written something, and the others follow. */
const FIRST_MS = 4000;
/** So long one is out of sight. */
const AWAY_MIN_MS = 2500;
const AWAY_MAX_MS = 9000;
/** So much before or behind the return of the first one the second one goes. */
const MEETING_MS = 1500;
/** From the end of one day to the next. */
const GAP_MAX_MS = 10_000;

export function drawForks(
  stream: Stream,
  { siteCount, safetyMs }: Pick<PlanFrame, 'siteCount' | 'safetyMs'>,
): readonly Fault[] {
  const firstMs = FIRST_MS + stream.between(0, GAP_MAX_MS / 2);
  return drawDays({ firstMs, safetyMs }, (atMs) => {
    const draw = stream.pick([drawTwoForks, drawTwoForks, drawTwoForks, drawForced, drawWitness]);
    return draw(stream, atMs, siteCount);
  });
}

function drawTwoForks(stream: Stream, atMs: number, siteCount: number): Day {
  const [first, second, third] = drawThree(stream, siteCount);
  const one = drawAbsence(stream, atMs, first, second);
  const hasTwo = stream.chance(0.7);
  const againMs = one.endMs + stream.between(-MEETING_MS, MEETING_MS);
  const two = drawAbsence(stream, againMs, second, stream.chance(0.3) ? first : third);
  const endMs = hasTwo ? Math.max(one.endMs, two.endMs) : one.endMs;
  const settles = [first, second].flatMap((site) =>
    Array.from({ length: stream.below(4) }, () => {
      return fork(endMs + stream.between(-MEETING_MS, 6000), 0, { kind: 'settle-fork', site });
    }),
  );
  return {
    faults: [...one.faults, ...(hasTwo ? two.faults : []), ...settles],
    nextMs: endMs + stream.between(0, GAP_MAX_MS),
  };
}

/** One is out of sight, and another one made the primary meanwhile. */
function drawAbsence(
  stream: Stream,
  atMs: number,
  site: number,
  next: number,
): { readonly faults: readonly Fault[]; readonly endMs: number } {
  const forMs = stream.spread(AWAY_MIN_MS, AWAY_MAX_MS);
  const movedMs = atMs + forMs * stream.between(0.1, 0.9);
  const move: FaultAction = stream.chance(0.75)
    ? { kind: 'elect', sites: [next] }
    : { kind: 'force', site: next };
  return {
    faults: [fork(atMs, forMs, { kind: 'away', site, direction: 'both' }), fork(movedMs, 0, move)],
    endMs: atMs + forMs,
  };
}

/** One is removed by force, down as a rule, mostly while another one is out of sight; and comes back. */
function drawForced(stream: Stream, atMs: number, siteCount: number): Day {
  const [site, other] = drawThree(stream, siteCount);
  // From a stream of its own: the others are what they were without.
  const state = stream.fork(`forced at ${atMs}`).pick(['down', 'down', 'away', 'runs'] as const);
  const forMs = stream.spread(AWAY_MIN_MS, AWAY_MAX_MS);
  const removeMs = atMs + forMs * stream.between(0.1, 0.6);
  const allowMs = removeMs + stream.spread(500, AWAY_MAX_MS);
  const isAway = stream.chance(0.6);
  return {
    faults: [
      ...(state === 'down'
        ? [fork(atMs, forMs, { kind: 'site-down', site, ending: 'process' })]
        : []),
      ...(state === 'away' ? [fork(atMs, forMs, { kind: 'away', site, direction: 'both' })] : []),
      ...(isAway
        ? [
            fork(atMs, forMs * stream.between(0.5, 1.5), {
              kind: 'away',
              site: other,
              direction: 'both',
            }),
          ]
        : []),
      fork(removeMs, 0, { kind: 'remove-site', site, isForced: true }),
      fork(allowMs, 0, { kind: 'allow-site', site, isForced: stream.chance(0.5) }),
    ],
    nextMs: allowMs + stream.between(0, GAP_MAX_MS),
  };
}

/** One that has lost all its disks comes back as a witness, among elections. */
function drawWitness(stream: Stream, atMs: number, siteCount: number): Day {
  const [candidate, , site] = drawThree(stream, siteCount);
  const allowMs = atMs + stream.between(1000, 5000);
  const endMs = allowMs + stream.between(2000, 8000);
  const elections = Array.from({ length: 1 + stream.below(4) }, () => {
    const sites = stream.chance(0.7) ? [candidate] : [1 + stream.below(siteCount)];
    return fork(stream.between(allowMs - 1000, endMs), 0, { kind: 'elect', sites });
  });
  return {
    faults: [
      fork(atMs, 800, { kind: 'empty-site', site, isWitness: true }),
      fork(atMs + stream.between(0, 900), 0, { kind: 'remove-site', site }),
      fork(allowMs, 0, { kind: 'allow-site', site }),
      ...elections,
    ],
    nextMs: endMs + stream.between(0, GAP_MAX_MS),
  };
}

/** Mostly the first primary before two others. */
function drawThree(stream: Stream, siteCount: number): readonly [number, number, number] {
  const sites = Array.from({ length: siteCount }, (_, place) => place + 1);
  const all = stream.shuffled(sites);
  const [one, two, three] = stream.chance(0.5) ? [1, ...all.filter((site) => site !== 1)] : all;
  return [one!, two!, three!];
}

function fork(atMs: number, forMs: number, action: FaultAction): Fault {
  return { atMs, forMs, action, of: 'fork' };
}
