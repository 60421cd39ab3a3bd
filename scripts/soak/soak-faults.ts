// What is done to the servers while they are at work: one fault after the other, each mended after a while,
// and never so many at once that a datacenter loses its quorum. The choice follows from the seed.

import { setTimeout as pause } from 'node:timers/promises';
import { datacentersOf, nodesNamed } from '../cluster/cluster-plan.ts';
import type { LocalCluster } from '../cluster/local-cluster.ts';

/** One fault, from the strike until all servers are ready again. */
export interface FaultSpan {
  readonly says: string;
  readonly fromMs: number;
  readonly toMs: number;
}

export interface FaultsOptions {
  readonly cluster: LocalCluster;
  /** Gives numbers from 0 up to 1. */
  readonly random: () => number;
  readonly elapsedMs: () => number;
  readonly tell: (says: string) => void;
}

interface Fault {
  readonly says: string;
  readonly strike: () => Promise<void> | void;
  readonly mend: () => Promise<void> | void;
}

const QUIET_MIN_MS = 4_000;
const QUIET_MAX_MS = 10_000;
const LASTS_MIN_MS = 2_000;
const LASTS_MAX_MS = 8_000;
const DELAY_MS = 200;
const LOOK_MS = 100;

export class SoakFaults {
  readonly spans: FaultSpan[] = [];
  readonly #options: FaultsOptions;
  #isOn = true;
  #running: Promise<void> = Promise.resolve();

  constructor(options: FaultsOptions) {
    this.#options = options;
  }

  /** Resolves when it was stopped. Rejects when a fault cannot be done, or mended. */
  start(): Promise<void> {
    this.#running = this.#run();
    return this.#running;
  }

  /** Lets the fault that is under way be mended. Rejects when it cannot be. */
  async stop(): Promise<void> {
    this.#isOn = false;
    await this.#running;
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#wait(this.#between(QUIET_MIN_MS, QUIET_MAX_MS));
      if (!this.#isOn) return;
      await this.#inflict(this.#nextFault());
    }
  }

  async #inflict({ says, strike, mend }: Fault): Promise<void> {
    const { cluster, elapsedMs, tell } = this.#options;
    const fromMs = elapsedMs();
    tell(says);
    await strike();
    await this.#wait(this.#between(LASTS_MIN_MS, LASTS_MAX_MS));
    await mend();
    for (const datacenter of datacentersOf(cluster.plan)) await cluster.ready(datacenter);
    this.spans.push({ says, fromMs, toMs: elapsedMs() });
  }

  #nextFault(): Fault {
    const { cluster } = this.#options;
    const name = this.#oneOf(cluster.plan.nodes).name;
    const { datacenter } = cluster.plan.nodes.find((node) => node.name === name)!;
    const faults: readonly Fault[] = [
      {
        says: `kill ${name}`,
        strike: () => cluster.kill(name),
        mend: () => cluster.start(name),
      },
      {
        says: `pause ${name}`,
        strike: () => cluster.pause(name),
        mend: () => cluster.resume(name),
      },
      {
        says: `restart ${datacenter} in turn`,
        strike: () => cluster.restart(datacenter, { isDiskReplaced: false }),
        mend: () => undefined,
      },
      ...(nodesNamed(cluster.plan, datacenter).length > 2
        ? [
            {
              says: `replace the disk of ${name}`,
              strike: () => cluster.restart(name, { isDiskReplaced: true }),
              mend: () => undefined,
            },
          ]
        : []),
      ...this.#faultsWithin(datacenter, name),
      ...this.#faultsBetween(datacenter),
    ];
    return this.#oneOf(faults);
  }

  /** What befalls the lines between a server and the others of its datacenter; none where it is alone. */
  #faultsWithin(datacenter: string, name: string): readonly Fault[] {
    const { cluster } = this.#options;
    if (nodesNamed(cluster.plan, datacenter).length === 1) return [];
    const cut = { from: name, to: datacenter };
    return [
      {
        says: `cut ${name} off`,
        strike: () => cluster.partition({ ...cut, isOneWay: false }),
        mend: () => cluster.heal(),
      },
      {
        says: `silence ${name}`,
        strike: () => cluster.partition({ ...cut, isOneWay: true }),
        mend: () => cluster.heal(),
      },
      {
        says: `slow ${name} down`,
        strike: () => cluster.delay({ ...cut, isOneWay: false }, DELAY_MS),
        mend: () => cluster.delay({ ...cut, isOneWay: false }, 0),
      },
    ];
  }

  /** What befalls a datacenter and another one; none where there is no other. */
  #faultsBetween(datacenter: string): readonly Fault[] {
    const { cluster } = this.#options;
    const others = datacentersOf(cluster.plan).filter((other) => other !== datacenter);
    if (others.length === 0) return [];
    const lines = { from: datacenter, to: this.#oneOf(others) };
    const { wanDelayMs } = cluster.plan;
    return [
      {
        says: `cut ${lines.from} and ${lines.to} off from each other`,
        strike: () => cluster.partition({ ...lines, isOneWay: false }),
        mend: () => cluster.heal(),
      },
      {
        says: `let ${lines.to} not hear ${lines.from}`,
        strike: () => cluster.partition({ ...lines, isOneWay: true }),
        mend: () => cluster.heal(),
      },
      {
        says: `slow the line between ${lines.from} and ${lines.to} down`,
        strike: () => cluster.delay({ ...lines, isOneWay: false }, wanDelayMs + DELAY_MS),
        mend: () => cluster.delay({ ...lines, isOneWay: false }, wanDelayMs),
      },
      {
        says: `kill all of ${datacenter}`,
        strike: () => cluster.kill(datacenter),
        mend: () => cluster.start(datacenter),
      },
      {
        says: `make ${datacenter} the primary`,
        strike: () => cluster.promote(datacenter),
        mend: () => undefined,
      },
    ];
  }

  #oneOf<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#options.random() * items.length)]!;
  }

  #between(least: number, most: number): number {
    return least + this.#options.random() * (most - least);
  }

  /** Shorter when it shall stop. */
  async #wait(forMs: number): Promise<void> {
    const untilMs = performance.now() + forMs;
    while (this.#isOn && performance.now() < untilMs) await pause(LOOK_MS);
  }
}
