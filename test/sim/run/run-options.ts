// Everything about a run that its seed decides, drawn at once and printed first. What a run is made of
// is data: the command line can take parts of it away and nothing else changes.

import type { GroupLimits, GroupTiming } from '../../../cluster/replica/group-limits.ts';
import { FIRST_LEVEL, NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { drawAbsences } from '../faults/draw-absences.ts';
import { drawExiles } from '../faults/draw-exiles.ts';
import { drawForeigners } from '../faults/draw-foreigners.ts';
import { drawForks } from '../faults/draw-forks.ts';
import { drawPairs } from '../faults/draw-pairs.ts';
import { drawKinds, drawPlan, type PlanFrame } from '../faults/draw-plan.ts';
import { drawPutBacks } from '../faults/draw-put-backs.ts';
import { drawRestores } from '../faults/draw-restores.ts';
import { drawRushes } from '../faults/draw-rushes.ts';
import { drawStrangers } from '../faults/draw-strangers.ts';
import type { Direction, FaultPlan } from '../faults/fault-plan.ts';
import { Stream } from '../world/stream.ts';

/** How much of the product runs: the replica alone, the whole node, or nodes in several datacenters. */
export type SubjectName = 'replica' | 'node' | 'datacenters';

export const SUBJECT_NAMES: readonly SubjectName[] = ['replica', 'node', 'datacenters'];

export function isSubjectName(name: string): name is SubjectName {
  return SUBJECT_NAMES.some((each) => each === name);
}

/** What several datacenters have beyond what one has. */
export interface FederationOptions {
  /** How many servers each datacenter has; the first one writes first. */
  readonly siteSizes: readonly number[];
  /** Of the lines between them. */
  readonly wanLeastMs: number;
  readonly wanMeanMs: number;
  /** So long the global log is kept for those who are away. */
  readonly logMaxAgeMs: number;
  /** Who must have a write that does not say so. */
  readonly defaultAck: 'primary' | 'majority';
  /** The datacenters that stay away when the others are well again: fewer than half. */
  readonly awaySites: readonly number[];
  /** Servers, by number, that read a lower feature level in their first life: then they are upgraded. */
  readonly olderHosts?: readonly number[];
  /** What those read; left out: too little for a global log. */
  readonly olderLevel?: number;
  /** So long the tokens of logins live; left out: until somebody ends them. */
  readonly loginTtlMs?: number | undefined;
  /** Whether clients give back the tokens of their logins. */
  readonly hasLogouts?: boolean;
  /** Whether tokens write whose right to it is given and taken all the time. */
  readonly hasDeputies?: boolean;
  /** Namespaces come and go, with local tokens in them. */
  readonly hasTenants?: boolean;
  /** Roles come and go, and a namespace with policies, roles and tokens; what these tokens may do is asked. */
  readonly hasGrants?: boolean;
  /** Local tokens and logins link to policies and roles that others write. */
  readonly hasLocalRights?: boolean;
  /** Local tokens are changed, in namespaces that come and go, too. */
  readonly hasChangedTokens?: boolean;
  /** Operators settle what forks have left, in the end all of it. */
  readonly settlesForks?: boolean;
  /** The datacenter that votes and has no objects, by its number: never the first one. */
  readonly witnessSite?: number | undefined;
}

export interface RunOptions {
  readonly seed: number;
  readonly subject: SubjectName;
  readonly hostCount: number;
  readonly clientCount: number;
  readonly keyCount: number;
  readonly thinkMs: number;
  readonly weights: Readonly<Record<'write' | 'cas' | 'read' | 'stale', number>>;
  readonly timing: GroupTiming;
  readonly limits: Partial<GroupLimits>;
  readonly linkLeastMs: number;
  readonly linkMeanMs: number;
  readonly diskMeanMs: number;
  readonly clientLossRate: number;
  readonly demotionRate: number;
  /** How long a client waits for an answer before it asks elsewhere. */
  readonly patienceMs: number;
  /** Of each host. */
  readonly clocks: readonly { readonly rate: number; readonly wallDrift: number }[];
  readonly safetyMs: number;
  readonly livenessMs: number;
  /** How those outside of the core are broken for good, by host. */
  readonly outside: readonly (Direction | 'down')[];
  readonly plan: FaultPlan;
  /** Of `datacenters`. */
  readonly federation?: FederationOptions;
}

const ELECTIONS_MIN = 14;
const ELECTIONS_MAX = 30;

export function drawOptions(seed: number, subject: SubjectName): RunOptions {
  if (subject === 'datacenters') return drawDatacenters(seed);
  const stream = new Stream(seed, 'options');
  const hostCount = stream.chance(0.7) ? 3 : stream.chance(0.7) ? 5 : stream.pick([1, 4]);
  const timing = drawTiming(stream.fork('timing'));
  const electionMs = timing.tickMs * timing.electionTicks;
  const safetyMs = electionMs * stream.between(ELECTIONS_MIN, ELECTIONS_MAX);
  const kinds = drawKinds(stream.fork('kinds'));
  const hosts = Array.from({ length: hostCount });
  return {
    seed,
    subject,
    hostCount,
    clientCount: 1 + stream.below(4),
    keyCount: stream.chance(0.5) ? 1 + stream.below(2) : 8,
    thinkMs: electionMs * stream.spread(0.03, 0.6),
    weights: {
      write: stream.between(0.2, 1),
      cas: stream.chance(0.5) ? stream.between(0.2, 1) : 0,
      read: stream.between(0.2, 1.5),
      stale: stream.chance(0.3) ? 0.3 : 0,
    },
    timing,
    limits: subject === 'node' ? drawKept(seed) : drawLimits(stream.fork('limits')),
    linkLeastMs: stream.spread(0.05, 2),
    linkMeanMs: stream.spread(0.1, electionMs / 40),
    diskMeanMs: stream.spread(0.2, electionMs / 30),
    clientLossRate: stream.chance(0.5) ? 0 : stream.between(0, 0.15),
    demotionRate: stream.chance(0.25) ? stream.between(0.02, 0.3) : 0,
    clocks: hosts.map(() => ({
      rate: stream.chance(0.5) ? 1 : stream.between(0.9, 1.1),
      wallDrift: stream.chance(0.5) ? 1 : stream.between(0.99, 1.01),
    })),
    safetyMs,
    livenessMs: 30 * electionMs + 15_000,
    outside: hosts.map(() => stream.pick(['in', 'out', 'both', 'down'] as const)),
    plan: drawPlan(stream.fork('plan'), { hostCount, siteCount: 1, safetyMs, electionMs, kinds }),
    // Who waits for long waits for a leader that is cut off, and sees nothing of the next one.
    patienceMs: electionMs * stream.spread(0.3, 3),
  };
}

const SITE_SIZES: readonly (readonly number[])[] = [
  [1, 1, 1],
  [3, 1, 1],
  [1, 3, 1],
  [3, 3, 1],
];

/** A majority is three: a promise that counts twice makes two primaries, which three datacenters cannot have. */
const FIVE_SITES: readonly (readonly number[])[] = [
  [1, 1, 1, 1, 1],
  [1, 1, 1, 1, 1],
  [3, 1, 1, 1, 1],
  [1, 3, 1, 1, 1],
];

/** Servers are quick, so that a run of a minute holds much of what takes datacenters seconds. */
function drawDatacenters(seed: number): RunOptions {
  const stream = new Stream(seed, 'datacenters');
  const three = stream.chance(0.4) ? SITE_SIZES[0]! : stream.pick(SITE_SIZES);
  const five = drawFive(seed);
  const siteSizes = five ?? three;
  const siteCount = siteSizes.length;
  const hostCount = siteSizes.reduce((sum, size) => sum + size, 0);
  const timing = { ...drawTiming(stream.fork('timing')), tickMs: 50, heartbeatTicks: 2 };
  const electionMs = timing.tickMs * timing.electionTicks;
  const safetyMs = stream.between(15_000, 40_000);
  const kinds = drawKinds(stream.fork('kinds'), siteCount);
  const hosts = Array.from({ length: hostCount });
  const older = drawOlder(seed, hostCount);
  const frame = { hostCount, siteCount, safetyMs, electionMs: 3 * electionMs, kinds };
  const forks = drawForked(seed, frame);
  return {
    seed,
    subject: 'datacenters',
    hostCount,
    clientCount: 3 + stream.below(4),
    keyCount: stream.chance(0.5) ? 1 + stream.below(2) : 5,
    thinkMs: stream.spread(50, 600),
    weights: { write: 1, cas: 0.5, read: 1, stale: 0.5 },
    timing,
    limits: drawKept(seed),
    linkLeastMs: stream.spread(0.05, 1),
    linkMeanMs: stream.spread(0.1, 3),
    diskMeanMs: stream.spread(0.2, 5),
    clientLossRate: stream.chance(0.5) ? 0 : stream.between(0, 0.1),
    demotionRate: 0,
    clocks: hosts.map(() => ({
      rate: stream.chance(0.5) ? 1 : stream.between(0.95, 1.05),
      wallDrift: stream.chance(0.5) ? 1 : stream.between(0.99, 1.01),
    })),
    safetyMs,
    livenessMs: 120_000,
    outside: hosts.map(() => stream.pick(['in', 'out', 'both', 'down'] as const)),
    plan: [
      ...(five === undefined ? drawPlan(stream.fork('plan'), frame) : drawFivePlan(stream, frame)),
      // Behind all others, so that those are known by the numbers that they had before there were these.
      ...drawExiled(seed, frame),
      ...drawUpgrades(seed, older, safetyMs),
      ...drawRestored(seed, frame),
      ...forks,
      ...(older.olderHosts === undefined ? drawPutBack(seed, frame) : []),
      ...(older.olderHosts === undefined ? drawAbsent(seed, frame) : []),
      ...drawRushed(seed, frame),
      ...drawForeign(seed, frame),
      ...drawPaired(seed, frame),
    ],
    patienceMs: 8000,
    federation: {
      siteSizes,
      wanLeastMs: stream.spread(1, 60),
      wanMeanMs: stream.spread(0.5, 30),
      logMaxAgeMs: stream.chance(0.6) ? stream.between(1000, 4000) : 3_600_000,
      defaultAck: stream.pick(['primary', 'majority'] as const),
      awaySites: drawAway(stream, siteCount),
      ...drawLater(seed, siteCount),
      ...older,
      settlesForks: forks.length > 0,
    },
  };
}

/** In one seed of ten servers are of an older release until they are started anew. From a stream of its own. */
function drawOlder(
  seed: number,
  hostCount: number,
): Pick<FederationOptions, 'olderHosts' | 'olderLevel'> {
  const stream = new Stream(seed, 'older');
  if (!stream.chance(0.1)) return {};
  const hosts = Array.from({ length: hostCount }, (_, place) => place + 1);
  const areAll = stream.chance(0.3);
  const olderHosts = hosts.filter(() => areAll || stream.chance(0.4));
  return { olderHosts, olderLevel: FIRST_LEVEL + stream.below(NEWEST_LEVEL - FIRST_LEVEL) };
}

/** Half of them are upgraded while everything breaks, the others when they start anew, or in the end. */
function drawUpgrades(
  seed: number,
  { olderHosts = [] }: Pick<FederationOptions, 'olderHosts'>,
  safetyMs: number,
): FaultPlan {
  const stream = new Stream(seed, 'upgrades');
  return olderHosts
    .filter(() => stream.chance(0.5))
    .map((target) => ({
      ...{ atMs: stream.between(2000, 0.8 * safetyMs), forMs: 500 },
      ...{ action: { kind: 'stop' as const, target }, of: 'upgrade' as const },
    }));
}

/** One seed of six has five datacenters. From a stream of its own: the others are what they were without. */
function drawFive(seed: number): readonly number[] | undefined {
  const stream = new Stream(seed, 'many');
  return stream.chance(1 / 6) ? stream.pick(FIVE_SITES) : undefined;
}

function drawFivePlan(stream: Stream, frame: PlanFrame): FaultPlan {
  const strangers = drawStrangers(stream.fork('strangers'), frame);
  // On a day of its own each of them gets further.
  const others = stream.fork('alone').chance(0.4) ? [] : drawPlan(stream.fork('plan'), frame);
  return [...others, ...strangers].sort((left, right) => left.atMs - right.atMs);
}

/** In one seed of four. From a stream of its own. */
function drawExiled(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'exiles');
  return stream.chance(0.25) ? drawExiles(stream, frame) : [];
}

/** In one seed of seven. From a stream of its own. */
function drawRestored(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'restores');
  return stream.chance(1 / 7) ? drawRestores(stream, frame) : [];
}

/** In one seed of six. From a stream of its own. */
function drawForked(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'forks');
  return stream.chance(1 / 6) ? drawForks(stream, frame) : [];
}

/** In one seed of six. From a stream of its own. */
function drawPutBack(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'put-backs');
  return stream.chance(1 / 6) ? drawPutBacks(stream, frame) : [];
}

/** In one seed of ten. From a stream of its own. */
function drawAbsent(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'absences');
  return stream.chance(0.1) ? drawAbsences(stream, frame) : [];
}

/** In one seed of ten. From a stream of its own. */
function drawRushed(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'rushes');
  return stream.chance(0.1) ? drawRushes(stream, frame) : [];
}

/** In one seed of twelve. From a stream of its own. */
function drawForeign(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'foreigners');
  return stream.chance(1 / 12) ? drawForeigners(stream, frame) : [];
}

/** In one seed of ten. From a stream of its own. */
function drawPaired(seed: number, frame: PlanFrame): FaultPlan {
  const stream = new Stream(seed, 'pairs');
  return stream.chance(0.1) ? drawPairs(stream, frame) : [];
}

/** A majority is left. */
function drawAway(stream: Stream, siteCount: number): readonly number[] {
  if (!stream.chance(0.25)) return [];
  const first = 1 + stream.below(siteCount);
  if (siteCount < 5 || stream.chance(0.5)) return [first];
  return [first, 1 + ((first + stream.below(siteCount - 1)) % siteCount)];
}

/** From streams of their own: what the seed draws else stays as it was before there were these. */
function drawLater(
  seed: number,
  siteCount: number,
): Pick<
  FederationOptions,
  | 'loginTtlMs'
  | 'hasLogouts'
  | 'hasDeputies'
  | 'hasTenants'
  | 'hasGrants'
  | 'hasLocalRights'
  | 'hasChangedTokens'
  | 'witnessSite'
> {
  const stream = new Stream(seed, 'logins');
  const areEnding = stream.chance(0.4);
  const isWitnessed = new Stream(seed, 'witness').chance(0.2);
  return {
    loginTtlMs:
      areEnding && stream.chance(0.7) ? Math.ceil(stream.spread(1500, 15_000)) : undefined,
    hasLogouts: areEnding && stream.chance(0.7),
    hasDeputies: new Stream(seed, 'deputies').chance(0.3),
    hasTenants: new Stream(seed, 'tenants').chance(0.3),
    hasGrants: new Stream(seed, 'grants').chance(0.3),
    hasLocalRights: new Stream(seed, 'local rights').chance(0.2),
    hasChangedTokens: new Stream(seed, 'changed tokens').chance(0.2),
    witnessSite: isWitnessed ? siteCount : undefined,
  };
}

function drawTiming(stream: Stream): GroupTiming {
  const tickMs = stream.pick([20, 50, 100]);
  return {
    tickMs,
    heartbeatTicks: stream.pick([1, 1, 2]),
    electionTicks: stream.pick([10, 10, 15]),
    campaignSpreadMs: tickMs * stream.pick([0.5, 1, 2]),
    readTimeoutMs: tickMs * stream.pick([30, 60]),
    snapshotRetryMs: tickMs * 10,
  };
}

/** Small ones, so that short runs meet them. */
function drawLimits(stream: Stream): Partial<GroupLimits> {
  const isSmall = stream.chance(0.7);
  return {
    batchCountMax: isSmall ? 1 + stream.below(6) : 256,
    messageBytesMax: isSmall ? 100 + stream.below(400) : 512 * 1024,
    inflightCountMax: isSmall ? 1 + stream.below(8) : 128,
    tailCountMax: isSmall ? 3 + stream.below(20) : 10_000,
    keptCount: stream.chance(0.5) ? 1 + stream.below(30) : 10_000,
    heldCountMax: stream.chance(0.5) ? 5 + stream.below(60) : 65_536,
    // Last, so that what is drawn before is what it was.
    keptBytesMax: stream.chance(0.3) ? 100 + stream.below(2_000) : 65_536,
    heldBytesMax: stream.chance(0.3) ? 200 + stream.below(4_000) : 1_048_576,
  };
}

/** Of whole nodes: in some runs one that was away for a little is sent a snapshot. From a stream of its own. */
function drawKept(seed: number): Partial<GroupLimits> {
  const stream = new Stream(seed, 'kept');
  return stream.chance(0.5) ? { keptCount: 1 + stream.below(8) } : {};
}
