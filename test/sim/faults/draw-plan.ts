// Draws a fault plan from a seed by swarm: each run leaves most kinds of faults out, and has plenty of
// those that are left. What all runs had a little of, none would have enough of.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { Stream } from '../world/stream.ts';
import type {
  Fault,
  FaultAction,
  FaultKind,
  FaultPlan,
  FederationFault,
  FederationFaultKind,
  Target,
} from './fault-plan.ts';

export interface PlanFrame {
  readonly hostCount: number;
  /** Datacenters. */
  readonly siteCount: number;
  readonly safetyMs: number;
  /** Faults last about so long, or a few times that. */
  readonly electionMs: number;
  readonly kinds: readonly FaultKind[];
}

/** How likely a kind is to be in a run, and how often it comes then, for each election timeout. */
const KINDS: Readonly<Record<FaultKind, readonly [inRun: number, perElection: number]>> = {
  crash: [0.5, 0.25],
  blackout: [0.15, 0.04],
  stop: [0.25, 0.12],
  freeze: [0.35, 0.2],
  isolate: [0.4, 0.2],
  'cut-link': [0.35, 0.3],
  split: [0.3, 0.15],
  swizzle: [0.15, 0.08],
  'slow-link': [0.25, 0.15],
  'lossy-link': [0.25, 0.15],
  'reset-links': [0.3, 0.3],
  'slow-disk': [0.3, 0.15],
  'freeze-disk': [0.25, 0.12],
  'full-disk': [0.12, 0.06],
  'step-clock': [0.25, 0.1],
  transfer: [0.3, 0.2],
  'rot-log': [0.06, 0.04],
  'rot-state': [0.06, 0.04],
  hole: [0.06, 0.04],
  replace: [0.2, 0.08],
  'slow-state': [0.25, 0.1],
  away: [0.5, 0.15],
  'cut-wan': [0.35, 0.15],
  'slow-wan': [0.25, 0.1],
  'reset-wan': [0.25, 0.2],
  'site-down': [0.3, 0.06],
  ambush: [0.5, 0.3],
  'hand-over': [0.35, 0.12],
  elect: [0.4, 0.15],
  force: [0.15, 0.05],
  // On bad days alone.
  'misread-entry': [0, 1],
  spoil: [0, 1],
  // Drawn by draw-exiles.ts.
  'empty-site': [0, 1],
  'remove-site': [0, 1],
  'allow-site': [0, 1],
  // Drawn by draw-restores.ts.
  'save-archive': [0, 1],
  'restore-archive': [0, 1],
  // Drawn by draw-forks.ts.
  'settle-fork': [0, 1],
  // Drawn by draw-put-backs.ts.
  'copy-site': [0, 1],
  'put-back-site': [0, 1],
  // Drawn by draw-pairs.ts.
  'remove-two': [0, 1],
};

const FEDERATION_KINDS: readonly FaultKind[] = [
  'away',
  'cut-wan',
  'slow-wan',
  'reset-wan',
  'site-down',
  'ambush',
  'hand-over',
  'elect',
  'force',
  'misread-entry',
  'spoil',
  'empty-site',
  'remove-site',
  'allow-site',
  'save-archive',
  'restore-archive',
  'settle-fork',
  'copy-site',
  'put-back-site',
  'remove-two',
];

/** An hour, as a wrong time zone has it. */
const STEP_MAX_MS = 3_600_000;

const ALL_KINDS = Object.keys(KINDS) as readonly FaultKind[];
const SERVER_KINDS = ALL_KINDS.filter((kind) => !FEDERATION_KINDS.includes(kind));

/** Which kinds a run of this seed has. */
export function drawKinds(stream: Stream, siteCount = 1): readonly FaultKind[] {
  if (stream.chance(0.03)) return [];
  const kinds = siteCount === 1 ? SERVER_KINDS : ALL_KINDS;
  const chosen = kinds.filter((kind) => stream.chance(KINDS[kind][0]));
  return chosen.length > 0 ? chosen : ['crash'];
}

export function drawPlan(stream: Stream, frame: PlanFrame): FaultPlan {
  const { safetyMs, electionMs, kinds } = frame;
  const faults: Fault[] = [];
  const intensity = stream.spread(0.4, 2.5);
  for (const kind of kinds) {
    const own = stream.fork(kind);
    const gapMs = electionMs / (KINDS[kind][1] * intensity);
    // A moment of quiet first, so that there is something to break.
    for (let atMs = 1.5 * electionMs; ; ) {
      atMs += own.exponential(0, gapMs);
      if (atMs >= safetyMs) break;
      const forMs = electionMs * own.spread(0.2, 6);
      faults.push({ atMs, forMs, action: drawAction(own, kind, frame) });
    }
  }
  return faults.sort((left, right) => left.atMs - right.atMs);
}

/** Small ones hide what is decided by minutes, and large ones what is decided by seconds. */
function drawStepMs(stream: Stream): number {
  if (stream.chance(0.5)) return stream.between(-STEP_MAX_MS, STEP_MAX_MS);
  return stream.pick([-1, 1]) * stream.spread(10, 10_000);
}

function drawAction(
  stream: Stream,
  kind: FaultKind,
  { hostCount, siteCount, electionMs }: PlanFrame,
): FaultAction {
  const hosts = Array.from({ length: hostCount }, (_, place) => place + 1);
  if (isFederationKind(kind)) return drawFederationFault(stream, kind, { siteCount, electionMs });
  const host = stream.pick(hosts);
  const leader: Target = siteCount === 1 ? 'leader' : `leader of ${1 + stream.below(siteCount)}`;
  const target: Target = stream.chance(0.4) ? leader : host;
  const direction = stream.pick(['in', 'out', 'both'] as const);
  const side = hosts.filter(() => stream.chance(0.5));
  switch (kind) {
    case 'crash':
      return { kind, target, ending: stream.pick(['process', 'power'] as const) };
    case 'blackout':
      return { kind, staggerMs: stream.between(0, electionMs) };
    case 'isolate':
      return { kind, target, direction };
    case 'cut-link':
      return { kind, from: host, to: (host % hostCount) + 1 };
    case 'split':
      return { kind, side, direction };
    case 'swizzle':
      return { kind, hosts: stream.shuffled(side), healOrder: stream.shuffled(side) };
    case 'slow-link':
      return { kind, target, meanMs: stream.spread(2, electionMs) };
    case 'lossy-link':
      return { kind, target, rate: stream.between(0.02, 0.5) };
    case 'slow-disk':
    case 'slow-state':
      return { kind, target, meanMs: stream.spread(5, electionMs) };
    case 'step-clock':
      return { kind, target, byMs: drawStepMs(stream) };
    case 'transfer':
      return { kind, to: host };
    case 'rot-log':
    case 'rot-state':
    case 'hole':
    case 'replace':
      return { kind, target: host };
    default:
      return { kind, target };
  }
}

function isFederationKind(kind: FaultKind): kind is FederationFaultKind {
  return FEDERATION_KINDS.includes(kind);
}

function drawFederationFault(
  stream: Stream,
  kind: FederationFaultKind,
  { siteCount, electionMs }: Pick<PlanFrame, 'siteCount' | 'electionMs'>,
): FederationFault {
  const site = 1 + stream.below(siteCount);
  const other = 1 + ((site + stream.below(siteCount - 1)) % siteCount);
  const ending = stream.pick(['process', 'power'] as const);
  switch (kind) {
    case 'away':
      return { kind, site, direction: stream.pick(['in', 'out', 'both', 'both'] as const) };
    case 'cut-wan':
      return { kind, from: site, to: other };
    case 'slow-wan':
      return { kind, site, meanMs: stream.spread(20, 2 * electionMs) };
    case 'reset-wan':
      return { kind, site };
    case 'site-down':
      return { kind, site, ending };
    case 'ambush':
      return { kind, site, moment: stream.pick(['entries', 'snapshot'] as const), ending };
    case 'elect':
      return { kind, sites: stream.chance(0.3) ? [site, other] : [site] };
    case 'misread-entry':
      return { kind, site, back: stream.below(4) };
    case 'spoil':
      return { kind, site, what: stream.pick(['row', 'request', 'piece'] as const) };
    case 'remove-two': {
      const times = { betweenMs: 0, goneMs: 0 };
      return { kind, sites: [site, other], ...times, backFirst: site };
    }
    case 'empty-site':
    case 'remove-site':
    case 'allow-site':
    case 'save-archive':
    case 'restore-archive':
    case 'settle-fork':
    case 'copy-site':
    case 'put-back-site':
    case 'hand-over':
    case 'force':
      return { kind, site };
    default:
      return unreachable(kind);
  }
}
