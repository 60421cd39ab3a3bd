// One soak: a local cluster under load and faults for a while, then quiet, then the reckoning.

import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { askNode } from '../cluster/ask-node.ts';
import {
  type ClusterShape,
  datacentersOf,
  nodesNamed,
  PORTS_OF_A_NODE,
  planCluster,
} from '../cluster/cluster-plan.ts';
import { figuresOfAll } from '../cluster/figures.ts';
import { freePorts } from '../cluster/free-ports.ts';
import { LocalCluster } from '../cluster/local-cluster.ts';
import { Sampler } from './sampler.ts';
import { SoakFaults } from './soak-faults.ts';
import { SoakLoad } from './soak-load.ts';
import type { SoakOutcome } from './soak-report.ts';
import { PrimaryAway } from './without-primary/primary-away.ts';

export interface SoakPlan {
  readonly shape: ClusterShape;
  readonly minutes: number;
  readonly clientsPerNode: number;
  /** Of each client, from one answer to its next question. */
  readonly restMs: number;
  /** So long, on top of `minutes`, the primary is cut off, and nothing else happens; undefined: faults are drawn. */
  readonly primaryAwayMinutes: number | undefined;
  readonly seed: number;
  readonly random: () => number;
  readonly tell: (says: string) => void;
  /** Ends it early, in good order. */
  readonly signal: AbortSignal;
}

const MS_OF_MINUTE = 60_000;
const LIST_MAX_MS = 60_000;
const CONVERGE_MAX_MS = 60_000;
const LOOK_MS = 200;
/** What a server of this load may take at most; beyond it something leaks. */
const RESIDENT_MAX_MIB = 1_024;
const HANDLES_MAX = 1_024;

export async function soak(plan: SoakPlan): Promise<SoakOutcome> {
  const { shape, tell, random, clientsPerNode, restMs, seed } = plan;
  const folder = mkdtempSync(join(tmpdir(), 'conclave-soak-'));
  const ports = await freePorts(shape.datacenters * shape.servers * PORTS_OF_A_NODE);
  const cluster = await LocalCluster.open(
    folder,
    planCluster(shape, ports, {
      managementToken: randomUUID(),
      clusterKey: randomBytes(32).toString('base64'),
    }),
  );
  cluster.endWithProcess();
  try {
    await cluster.startAll(tell);
    const load = new SoakLoad({ cluster: cluster.describe(), clientsPerNode, restMs, random });
    const sampler = new Sampler(cluster, load);
    const elapsedMs = (): number => sampler.elapsedMs();
    const stamped = (says: string): void => tell(`${(elapsedMs() / 1_000).toFixed(0)} s: ${says}`);
    const common = { cluster, random, elapsedMs, tell: stamped };
    const wellMs = plan.minutes * MS_OF_MINUTE;
    const awayMs = (plan.primaryAwayMinutes ?? 0) * MS_OF_MINUTE;
    const away = awayMs > 0 ? new PrimaryAway({ ...common, wellMs, awayMs, restMs }) : undefined;
    const course = away ?? new SoakFaults(common);
    load.start();
    sampler.start();
    const broken = new AbortController();
    // What it was is told when it is stopped, and what comes behind it would be no soak any more.
    course.start().catch(() => broken.abort());
    await passed(wellMs + awayMs, AbortSignal.any([plan.signal, broken.signal]));
    tell('The time is over; everything is mended.');
    const found: string[] = [];
    await course.stop().catch((error: Error) => found.push(error.message));
    await load.stop();
    await sampler.stop();
    found.push(...(await reckoning(cluster, load)), ...greedy(sampler));
    found.push(...((await away?.reckoning()) ?? []));
    return {
      ...{ seed, samples: sampler.samples, spans: course.spans },
      tokensMade: load.acknowledgedCount,
      figures: away?.figures() ?? [],
      faults: [...load.faults, ...found],
    };
  } finally {
    await cluster.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function passed(forMs: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, forMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** What is wrong when all is quiet again. */
async function reckoning(cluster: LocalCluster, load: SoakLoad): Promise<readonly string[]> {
  const faults: string[] = [];
  if (load.acknowledgedCount === 0)
    faults.push('no token was made: nothing was held against the end');
  for (const datacenter of datacentersOf(cluster.plan)) {
    const fault = await differenceIn(cluster, datacenter);
    if (fault !== undefined) faults.push(fault);
  }
  const apart = await differenceBetween(cluster);
  if (apart !== undefined) faults.push(apart);
  const { nodes, management_token: secret } = cluster.describe();
  for (const node of nodes) {
    const { http } = node;
    const answer = await askNode({ http, path: '/v1/acl/tokens', secret, timeoutMs: LIST_MAX_MS });
    if (answer.status === 200) load.faultsOf(node, JSON.parse(answer.text));
    else faults.push(`${node.name}: the list of tokens: ${answer.status} ${answer.text}`);
  }
  return faults;
}

/** Undefined: all datacenters hold the same of what all share, at one place of the global log. */
async function differenceBetween(cluster: LocalCluster): Promise<string | undefined> {
  const deadlineMs = performance.now() + CONVERGE_MAX_MS;
  for (;;) {
    const figures = [...(await figuresOfAll(cluster.describe())).values()];
    const states = figures.map(({ position, digestGlobal }) => `${position} ${digestGlobal}`);
    if (new Set(states).size === 1) return undefined;
    if (performance.now() > deadlineMs)
      return `the datacenters do not share one state: ${states.join(', ')}`;
    await pause(LOOK_MS);
  }
}

/** Undefined: all its servers hold the same. */
async function differenceIn(
  cluster: LocalCluster,
  datacenter: string,
): Promise<string | undefined> {
  const names = nodesNamed(cluster.plan, datacenter);
  const deadlineMs = performance.now() + CONVERGE_MAX_MS;
  for (;;) {
    const figures = await figuresOfAll(cluster.describe());
    const digests = names.map((name) => figures.get(name)?.digestAll ?? 'not known');
    if (new Set(digests).size === 1 && digests[0] !== 'not known') return undefined;
    if (performance.now() > deadlineMs)
      return `the servers of ${datacenter} do not hold the same: ${digests.join(', ')}`;
    await pause(LOOK_MS);
  }
}

function greedy({ samples }: Sampler): readonly string[] {
  const faults = new Set<string>();
  for (const { nodes } of samples) {
    for (const { name, residentMib = 0, handles = 0 } of nodes) {
      if (residentMib > RESIDENT_MAX_MIB)
        faults.add(`${name} took more than ${RESIDENT_MAX_MIB} MiB`);
      if (handles > HANDLES_MAX) faults.add(`${name} had more than ${HANDLES_MAX} open handles`);
    }
  }
  return [...faults];
}
