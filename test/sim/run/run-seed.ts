// One run: a world from a seed, nodes and clients on it, faults by plan, and every checker. First a
// phase in which everything may break; then a majority is made well, the rest stays broken for good,
// and the majority must come to one state and answer everybody in time. So in each datacenter, where
// there are several.

import type { GroupChecks } from '../checks/group-checks.ts';
import type { SitesWatch } from '../checks/sites-watch.ts';
import { type Violation, Violations } from '../checks/violations.ts';
import { Faults } from '../faults/carry-out.ts';
import type { Mutant } from '../mutants/mutant.ts';
import type { Workload } from '../workload/workload.ts';
import { makeArraysCheap } from '../world/cheap-arrays.ts';
import { SealedGlobals } from '../world/sealed-globals.ts';
import type { SimHost } from '../world/sim-host.ts';
import { LifeIsOver } from '../world/sim-process.ts';
import { World } from '../world/world.ts';
import type { RunOptions } from './run-options.ts';
import type { SimGroup } from './sim-group.ts';
import type { Site } from './site.ts';
import type { Keeper, Mover } from './stage.ts';
import { stageOf } from './stage-of.ts';

export interface RunResult {
  readonly seed: number;
  readonly violation: Violation | undefined;
  readonly hash: string;
  readonly eventCount: number;
  readonly virtualMs: number;
  readonly faultCounts: Readonly<Record<string, number>>;
  readonly marks: Readonly<Record<string, number>>;
  readonly counts: Readonly<Record<string, number>>;
  readonly lines: readonly string[];
}

export interface RunHow {
  readonly keepsLines: boolean;
  readonly mutant?: Mutant;
}

export async function runSeed(options: RunOptions, how: RunHow): Promise<RunResult> {
  const globals = new SealedGlobals();
  const undos = [makeArraysCheap(), ...(how.mutant === undefined ? [] : [how.mutant.install()])];
  const run = new Run(options, how, globals);
  const onRejection = (error: unknown): void => run.onStray(error);
  process.on('unhandledRejection', onRejection);
  try {
    return await run.all();
  } finally {
    process.off('unhandledRejection', onRejection);
    globals.unseal();
    for (const undo of undos.reverse()) undo();
  }
}

/** Of a line in one datacenter that nothing is wrong with. */
const WELL = { leastMs: 0.2, meanMs: 0.5 };

class Run {
  readonly #options: RunOptions;
  readonly #world: World;
  readonly #violations: Violations;
  readonly #group: SimGroup;
  readonly #sites: readonly Site[];
  readonly #siteByHost = new Map<string, Site>();
  readonly #watch: SitesWatch | undefined;
  readonly #mover: Mover | undefined;
  readonly #faults: Faults;
  readonly #keeper: Keeper;
  readonly #workload: Workload;

  constructor(options: RunOptions, how: RunHow, globals: SealedGlobals) {
    this.#options = options;
    this.#world = new World({
      seed: options.seed,
      globals,
      keepsLines: how.keepsLines,
      watchers: {
        onLanded: (host, store, writes) => {
          this.#siteByHost.get(host.name)?.onLanded(host, store, writes);
          this.#watch?.onLanded(host, store, writes);
          this.#faults.onLanded(host, writes);
        },
        onFrame: (leaving) => {
          const host = this.#world.hosts.find(({ name }) => name === leaving.from);
          if (host === undefined) return;
          this.#siteByHost.get(host.name)?.onFrame(host, leaving);
          this.#watch?.onFrame(leaving);
          this.#faults.onFrame(leaving);
        },
      },
    });
    const world = this.#world;
    globals.seal(world.time, world.stream.fork('globals'));
    const violations = new Violations({
      nowMs: () => world.time.nowMs,
      // A node that stops itself is no finding of ours: there are bugs that no assertion knows of.
      ignored: how.mutant === undefined ? [] : ['assertions'],
    });
    this.#violations = violations;
    this.#addHosts(how.mutant);
    const { sites, group, keeper, workload, watch, mover, emptying, copying, pairing } = stageOf({
      world,
      violations,
      options,
    });
    this.#sites = sites;
    for (const site of sites) for (const { name } of site.hosts) this.#siteByHost.set(name, site);
    this.#group = group;
    this.#keeper = keeper;
    this.#workload = workload;
    this.#watch = watch;
    this.#mover = mover;
    this.#faults = new Faults({
      world,
      group,
      sites: sites.map(({ hosts }) => hosts),
      wellMs: (from, to) => (this.#areNear(from, to) ? WELL : this.#wan()),
      move: (action) => mover?.move(action) ?? false,
      mayEmpty: (site) => emptying?.mayEmpty(site) ?? false,
      onEmptied: (site, isWitness) => emptying?.onEmptied(site, isWitness),
      ...{ copying, pairing },
      maySpend: (host) => this.#siteOf(host).maySpend(host),
      onLosing: (host) => this.#siteOf(host).checks.onLosing(host),
    });
    this.#setLinks();
  }

  onStray(error: unknown): void {
    if (error instanceof LifeIsOver) return;
    const shown = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#violations.add('assertions', `nobody caught ${shown}`);
  }

  async all(): Promise<RunResult> {
    try {
      await this.#safety();
      if (!this.#isOver()) await this.#liveness();
      if (!this.#isOver()) await this.#workload.judge();
    } catch (error) {
      this.onStray(error);
    }
    for (const host of this.#world.hosts) host.process?.end();
    const { trace, time } = this.#world;
    return {
      seed: this.#options.seed,
      violation: this.#violations.first,
      hash: trace.hash,
      eventCount: time.eventCount,
      virtualMs: time.nowMs,
      faultCounts: Object.fromEntries(this.#faults.counts),
      marks: Object.fromEntries(trace.marks),
      counts: {
        ...this.#workload.counts,
        leaders: this.#sum(({ leaderCount }) => leaderCount),
        committed: this.#sum(({ committed }) => committed.length),
        comparedStates: this.#sum(({ comparedStateCount }) => comparedStateCount),
        membershipChanges: this.#keeper.changeCount,
      },
      lines: trace.lines,
    };
  }

  #sum(of: (checks: GroupChecks) => number): number {
    const all = this.#sites.flatMap(({ allChecks }) => allChecks);
    return all.reduce((sum, checks) => sum + of(checks), 0);
  }

  #addHosts(mutant: Mutant | undefined): void {
    const { clocks, diskMeanMs } = this.#options;
    for (const clock of clocks) {
      const { disk } = this.#world.addHost(clock);
      disk.speed = { leastMs: 0.1, meanMs: diskMeanMs };
      disk.lyingNames = mutant?.lyingStores ?? [];
    }
  }

  #setLinks(): void {
    const { linkLeastMs: leastMs, linkMeanMs: meanMs } = this.#options;
    const { hosts, net } = this.#world;
    for (const from of hosts) {
      for (const to of hosts) {
        const link = net.link(from.name, to.name);
        Object.assign(link, this.#areNear(from, to) ? { leastMs, meanMs } : this.#wan());
      }
    }
  }

  #siteOf(host: SimHost): Site {
    return this.#siteByHost.get(host.name)!;
  }

  #areNear(left: SimHost, right: SimHost): boolean {
    return this.#siteOf(left) === this.#siteOf(right);
  }

  #wan(): { readonly leastMs: number; readonly meanMs: number } {
    const { wanLeastMs: leastMs = WELL.leastMs, wanMeanMs: meanMs = WELL.meanMs } =
      this.#options.federation ?? {};
    return { leastMs, meanMs };
  }

  #isOver(): boolean {
    for (const site of this.#sites) site.look();
    return this.#violations.first !== undefined;
  }

  async #safety(): Promise<void> {
    const { plan, safetyMs } = this.#options;
    for (const host of this.#world.hosts) this.#group.start(host);
    this.#keeper.begin();
    this.#workload.begin();
    this.#faults.schedule(plan);
    await this.#world.time.run(safetyMs, () => this.#isOver());
  }

  /** Whoever is well then belongs to its group, and stays in it. */
  async #quiet(): Promise<void> {
    const { time } = this.#world;
    const { quietAtMs = 0 } = this.#keeper;
    if (quietAtMs > time.nowMs) await time.run(quietAtMs, () => this.#isOver());
  }

  async #liveness(): Promise<void> {
    const { hosts, time, trace } = this.#world;
    this.#keeper.stop();
    this.#workload.stop();
    await this.#quiet();
    const cores = this.#drawCores();
    if (cores === undefined) {
      trace.mark('no majority was left to go on');
      return;
    }
    const core = cores.flatMap(({ hosts: each }) => each);
    this.#faults.healAmong(core);
    for (const host of hosts) {
      if (!core.includes(host)) {
        this.#faults.breakOff(host, core, this.#options.outside[host.number - 1]!);
      }
    }
    void this.#mover?.settle(core);
    const endMs = time.nowMs + this.#options.livenessMs;
    let unanswered: readonly string[] | undefined;
    void this.#workload.probe(core, this.#options.livenessMs - 1000).then((missing) => {
      unanswered = missing;
    });
    const isDone = (): boolean =>
      unanswered !== undefined &&
      cores.every(({ site, hosts: each }) => site.isEven(each)) &&
      (this.#watch?.isEven(core) ?? true) &&
      (this.#mover?.isSettled(core) ?? true);
    await time.run(endMs, () => this.#isOver() || isDone());
    if (this.#isOver() || (isDone() && unanswered?.length === 0)) return;
    if (!cores.every(({ site, hosts: each }) => site.canDecide(each))) {
      trace.mark('the majority was none any more');
      return;
    }
    const standings = core.map(
      (host) => `${host.name} ${JSON.stringify(this.#group.live(host)?.status())}`,
    );
    this.#violations.add(
      'liveness',
      `the healed majority ${core.map(({ name }) => name).join()} does not go on: ` +
        `not answered: ${unanswered?.join() ?? 'nobody was'}; ${standings.join('; ')}` +
        (this.#mover?.isSettled(core) === false ? '; what a fork left is not settled' : '') +
        (this.#watch?.isEven(core) === false ? `; ${this.#watch.describe(core)}` : ''),
    );
  }

  /** Of each datacenter, but for those that may stay away for good. */
  #drawCores(): readonly { readonly site: Site; readonly hosts: readonly SimHost[] }[] | undefined {
    const stream = this.#world.stream.fork('core');
    const wanted = this.#options.federation?.awaySites ?? [];
    const away = this.#watch?.mayLose(wanted) === true ? wanted : [];
    const cores: { readonly site: Site; readonly hosts: readonly SimHost[] }[] = [];
    for (const [place, site] of this.#sites.entries()) {
      if (away.includes(place + 1)) continue;
      const own = place === 0 ? stream : stream.fork(`datacenter ${place + 1}`);
      const core = site.core((fit) => own.shuffled(fit));
      if (core === undefined) return undefined;
      cores.push({ site, hosts: core });
    }
    return cores;
  }
}
