// In place of drawn faults, one long one: the lines between the primary and all other datacenters are cut in both
// directions, while clients in the others go on. The primary goes on for its own clients.

import { setTimeout as pause } from 'node:timers/promises';
import { datacentersOf } from '../../cluster/cluster-plan.ts';
import type { LocalCluster } from '../../cluster/local-cluster.ts';
import type { FaultSpan, FaultsOptions } from '../soak-faults.ts';
import { Absence } from './absence.ts';
import { LoadWithoutPrimary } from './load-without-primary.ts';

export interface PrimaryAwayOptions extends FaultsOptions {
  /** Half of it before, half of it afterwards. */
  readonly wellMs: number;
  readonly awayMs: number;
  /** Of each client, from one answer to its next question. */
  readonly restMs: number;
}

const LOOK_MS = 100;

export class PrimaryAway {
  readonly spans: FaultSpan[] = [];
  readonly #options: PrimaryAwayOptions;
  readonly #cluster: LocalCluster;
  readonly #primary: string;
  readonly #absence = new Absence();
  readonly #load: LoadWithoutPrimary;
  #isOn = true;
  #running: Promise<void> = Promise.resolve();

  constructor(options: PrimaryAwayOptions) {
    const { cluster, random, restMs, awayMs, wellMs } = options;
    this.#options = options;
    this.#cluster = cluster;
    this.#primary = cluster.plan.primaryDatacenter;
    this.#load = new LoadWithoutPrimary({
      ...{ cluster: cluster.describe(), primary: this.#primary, absence: this.#absence },
      ...{ random, restMs, lastsMs: wellMs + awayMs },
    });
  }

  /** Resolves when it is over, or was stopped. Rejects when it cannot go on. */
  start(): Promise<void> {
    this.#running = this.#run();
    return this.#running;
  }

  /** The primary comes back if it is away. Rejects when a server does not get ready again. */
  async stop(): Promise<void> {
    this.#isOn = false;
    try {
      await this.#running;
    } finally {
      await this.#load.stop();
    }
  }

  /** What was wrong, when it has been stopped and all is even again. */
  reckoning(): Promise<readonly string[]> {
    return this.#load.reckoning();
  }

  figures(): readonly (readonly [string, string])[] {
    return this.#load.figures();
  }

  async #run(): Promise<void> {
    const { wellMs, awayMs, elapsedMs, tell } = this.#options;
    const endMs = elapsedMs() + wellMs / 2;
    await this.#load.start();
    await this.#wait(endMs - elapsedMs());
    if (!this.#isOn) return;
    const fromMs = elapsedMs();
    const others = datacentersOf(this.#cluster.plan).filter((other) => other !== this.#primary);
    const says = `cut ${this.#primary} off from ${others.join(' and ')}`;
    tell(says);
    for (const to of others) this.#cluster.partition({ from: this.#primary, to, isOneWay: false });
    this.#absence.begin();
    await this.#wait(awayMs);
    this.#absence.end();
    this.#load.lagWatch.mended();
    this.#cluster.heal();
    tell(`${this.#primary} is back`);
    this.spans.push({ says, fromMs, toMs: elapsedMs() });
    for (const datacenter of datacentersOf(this.#cluster.plan))
      await this.#cluster.ready(datacenter);
  }

  /** Shorter when it shall stop. */
  async #wait(forMs: number): Promise<void> {
    const untilMs = performance.now() + forMs;
    while (this.#isOn && performance.now() < untilMs) await pause(LOOK_MS);
  }
}
