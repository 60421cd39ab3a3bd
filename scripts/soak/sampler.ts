// Once in a while: what the clients came to, how far each server is, and what its process takes.

import { readdirSync, readFileSync } from 'node:fs';
import { behindOf, type Figures, figuresOfAll, seqOf } from '../cluster/figures.ts';
import type { LocalCluster } from '../cluster/local-cluster.ts';
import type { LoadCounts, SoakLoad } from './soak-load.ts';

export interface Sample {
  /** Since the beginning. */
  readonly atMs: number;
  /** Since the sample before. */
  readonly tookMs: number;
  readonly counts: LoadCounts;
  readonly nodes: readonly NodeSample[];
}

/** Undefined where it is not known: the server does not run, stands still, or the system does not say. */
export interface NodeSample {
  readonly name: string;
  readonly pid: number | undefined;
  readonly residentMib: number | undefined;
  readonly handles: number | undefined;
  readonly term: number | undefined;
  /** Entries that its datacenter has committed and it has not applied. */
  readonly lag: number | undefined;
  /** Entries of the global log that some server has and this one has not. */
  readonly behind: number | undefined;
}

const SAMPLE_MS = 1_000;

export class Sampler {
  readonly samples: Sample[] = [];
  readonly #cluster: LocalCluster;
  readonly #load: SoakLoad;
  readonly #startedMs = performance.now();
  #lastMs = this.#startedMs;
  #timer: NodeJS.Timeout | undefined;
  #sampling: Promise<void> = Promise.resolve();
  #isOn = true;

  constructor(cluster: LocalCluster, load: SoakLoad) {
    this.#cluster = cluster;
    this.#load = load;
  }

  /** Since it was made. */
  elapsedMs(): number {
    return performance.now() - this.#startedMs;
  }

  start(): void {
    this.#timer = setTimeout(() => {
      this.#sampling = this.#sample();
    }, SAMPLE_MS);
  }

  async stop(): Promise<void> {
    this.#isOn = false;
    clearTimeout(this.#timer);
    await this.#sampling;
  }

  async #sample(): Promise<void> {
    const cluster = this.#cluster.describe();
    const still = new Set(
      cluster.nodes
        .map(({ name }) => name)
        .filter((name) => this.#cluster.stateOf(name).kind !== 'running'),
    );
    const nodes = cluster.nodes.filter(({ name }) => !still.has(name));
    const figures = await figuresOfAll({ ...cluster, nodes });
    const headSeq = Math.max(...[...figures.values()].map((each) => seqOf(each) ?? 0));
    const nowMs = performance.now();
    this.samples.push({
      atMs: nowMs - this.#startedMs,
      tookMs: nowMs - this.#lastMs,
      counts: this.#load.takeCounts(),
      nodes: cluster.nodes.map(({ name, datacenter, pid }) => ({
        name,
        pid: pid ?? undefined,
        ...processFigures(still.has(name) ? undefined : (pid ?? undefined)),
        term: figures.get(name)?.term,
        behind: behindOf(headSeq, figures.get(name)),
        lag: lagOf(
          figures.get(name),
          nodes
            .filter((other) => other.datacenter === datacenter)
            .map((other) => figures.get(other.name)),
        ),
      })),
    });
    this.#lastMs = nowMs;
    if (this.#isOn) this.start();
  }
}

function lagOf(
  own: Figures | undefined,
  all: readonly (Figures | undefined)[],
): number | undefined {
  if (own?.appliedIndex === undefined) return undefined;
  return Math.max(...all.map((each) => each?.commitIndex ?? 0)) - own.appliedIndex;
}

/** As Linux tells it. */
function processFigures(pid: number | undefined): {
  readonly residentMib: number | undefined;
  readonly handles: number | undefined;
} {
  if (pid === undefined) return { residentMib: undefined, handles: undefined };
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const [, kib] = /VmRSS:\s+(\d+) kB/.exec(status) ?? [];
    const handles = readdirSync(`/proc/${pid}/fd`).length;
    return { residentMib: kib === undefined ? undefined : Number(kib) / 1024, handles };
  } catch {
    return { residentMib: undefined, handles: undefined };
  }
}
