// One run: a world from a seed, nodes and clients on it, faults by plan, and every checker. First a
// phase in which everything may break; then a majority is made well, the rest stays broken for good,
// and the majority must come to one state and answer everybody in time.

import { CommitWatch } from '../checks/commit-watch.ts';
import { GroupChecks } from '../checks/group-checks.ts';
import { isQuorumOf } from '../checks/quorums.ts';
import { Violations, type Violation } from '../checks/violations.ts';
import { Faults } from '../faults/carry-out.ts';
import { membersOf } from '../../../cluster/raft/membership.ts';
import type { Mutant } from '../mutants/mutant.ts';
import type { Subject } from '../subject/subject.ts';
import type { Workload } from '../workload/workload.ts';
import { makeArraysCheap } from '../world/cheap-arrays.ts';
import { SealedGlobals } from '../world/sealed-globals.ts';
import type { SimHost } from '../world/sim-host.ts';
import { World } from '../world/world.ts';
import type { RunOptions } from './run-options.ts';
import type { SimGroup } from './sim-group.ts';
import { type Keeper, stageOf } from './stage.ts';

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

class Run {
  readonly #options: RunOptions;
  readonly #world: World;
  readonly #violations: Violations;
  readonly #subject: Subject;
  readonly #group: SimGroup;
  readonly #checks: GroupChecks;
  readonly #commitWatch: CommitWatch;
  /** Hosts that showed something in the last event: their disks took it, or a frame left them. */
  readonly #active = new Set<SimHost>();
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
          this.#active.add(host);
          this.#checks.onLanded(host, store, writes);
        },
        onFrame: (leaving) => {
          const host = this.#world.hosts.find(({ name }) => name === leaving.from);
          if (host === undefined) return;
          this.#active.add(host);
          for (const message of this.#subject.messagesIn(leaving)) {
            this.#checks.onMessage(host, message);
          }
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
    const { subject, group, keeper, workload } = stageOf({
      world,
      violations,
      options,
      digestAt: (index) => this.#checks.digestAt(index),
    });
    this.#subject = subject;
    this.#group = group;
    this.#keeper = keeper;
    this.#workload = workload;
    this.#checks = new GroupChecks({
      subject,
      violations,
      hosts: () => world.hosts,
      statusOf: (host) => group.live(host)?.status(),
    });
    this.#commitWatch = new CommitWatch({
      violations,
      isKnown: (index, term) => this.#checks.isKnown(index, term),
      onCounted: (host, index, term) => this.#checks.onCounted(host, index, term),
    });
    this.#faults = new Faults({
      world,
      group,
      maySpend: (host) => this.#maySpend(host),
      onLosing: (host) => this.#checks.onLosing(host),
    });
  }

  onStray(error: unknown): void {
    const shown = error instanceof Error ? (error.stack ?? error.message) : String(error);
    this.#violations.add('assertions', `nobody caught ${shown}`);
  }

  async all(): Promise<RunResult> {
    try {
      await this.#safety();
      if (!this.#isOver()) await this.#liveness();
      if (!this.#isOver()) {
        await this.#workload.judge(this.#checks.committed.map(({ entry }) => entry));
      }
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
        leaders: this.#checks.leaderCount,
        committed: this.#checks.committed.length,
        comparedStates: this.#checks.comparedStateCount,
        membershipChanges: this.#keeper.changeCount,
      },
      lines: trace.lines,
    };
  }

  #addHosts(mutant: Mutant | undefined): void {
    const { clocks, linkLeastMs, linkMeanMs, diskMeanMs } = this.#options;
    const world = this.#world;
    for (const clock of clocks) {
      const { disk } = world.addHost(clock);
      disk.speed = { leastMs: 0.1, meanMs: diskMeanMs };
      disk.lyingNames = mutant?.lyingStores ?? [];
    }
    for (const from of world.hosts) {
      for (const to of world.hosts) {
        const link = world.net.link(from.name, to.name);
        link.leastMs = linkLeastMs;
        link.meanMs = linkMeanMs;
      }
    }
  }

  #isOver(): boolean {
    for (const host of this.#active) {
      const status = this.#group.live(host)?.status();
      if (status !== undefined) this.#commitWatch.look(host, status);
    }
    this.#active.clear();
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

  async #liveness(): Promise<void> {
    const { hosts, time, trace, stream } = this.#world;
    this.#keeper.stop();
    this.#workload.stop();
    const fit = hosts.filter((host) => !this.#group.damaged.has(host) && this.#isMember(host));
    // Before there is a group, it takes all of its founders to make one.
    const isFounded = this.#checks.committed.length > 0;
    const core = isFounded ? this.#drawCore(stream.fork('core').shuffled(fit)) : hosts;
    if (core === undefined) {
      trace.mark('no majority was left to go on');
      return;
    }
    this.#faults.healAmong(core);
    for (const host of hosts) {
      if (!core.includes(host)) {
        this.#faults.breakOff(host, core, this.#options.outside[host.number - 1]!);
      }
    }
    const endMs = time.nowMs + this.#options.livenessMs;
    let unanswered: readonly string[] | undefined;
    void this.#workload.probe(core, this.#options.livenessMs - 1000).then((missing) => {
      unanswered = missing;
    });
    const isDone = (): boolean => unanswered !== undefined && this.#isEven(core);
    await time.run(endMs, () => this.#isOver() || isDone());
    if (this.#isOver() || (isDone() && unanswered?.length === 0)) return;
    if (!this.#canDecide(core)) {
      trace.mark('the majority was none any more');
      return;
    }
    const standings = core.map(
      (host) => `${host.name} ${JSON.stringify(this.#group.live(host)?.status())}`,
    );
    this.#violations.add(
      'liveness',
      `the healed majority ${core.map(({ name }) => name).join()} does not go on: ` +
        `not answered: ${unanswered?.join() ?? 'nobody was'}; ${standings.join('; ')}`,
    );
  }

  /** The first of them, as few as can decide. */
  #drawCore(fit: readonly SimHost[]): readonly SimHost[] | undefined {
    for (let count = 1; count <= fit.length; count += 1) {
      const core = fit.slice(0, count);
      if (this.#canDecide(core)) return core;
    }
    return undefined;
  }

  /**
   * By what is committed, and by what each of them believes: a change that they have not heard to be
   * committed was not answered either, and may need those who are gone.
   */
  #canDecide(core: readonly SimHost[]): boolean {
    const group = this.#checks.committed.at(-1)?.group;
    const nodes = core.map((host) => this.#subject.nodeOf(host));
    const believed = core.map((host) => this.#checks.believedBy(host));
    return [group, ...believed].every((each) => {
      return each === undefined || isQuorumOf(nodes, each.membership);
    });
  }

  #isMember(host: SimHost): boolean {
    const group = this.#checks.committed.at(-1)?.group;
    return group === undefined || membersOf(group.membership).includes(this.#subject.nodeOf(host));
  }

  /** Members of the core that belong to the group have applied the same, and one of them leads. */
  #isEven(core: readonly SimHost[]): boolean {
    const members = core.filter((host) => this.#isMember(host));
    const statuses = members.map((host) => this.#group.live(host)?.status());
    const [first] = statuses;
    return (
      statuses.some((status) => status?.standing === 'leader') &&
      statuses.every((status) => {
        return status !== undefined && status.appliedIndex === first?.appliedIndex;
      })
    );
  }

  /** Whether so few others are spent that one more leaves a majority. */
  #maySpend(host: SimHost): boolean {
    const { hosts } = this.#world;
    const group = this.#checks.committed.at(-1)?.group;
    const voters = group?.membership.voters ?? [];
    const sound = hosts.filter((each) => {
      if (each === host || this.#group.damaged.has(each)) return false;
      return voters.includes(this.#subject.nodeOf(each));
    });
    const nodes = sound.map((each) => this.#subject.nodeOf(each));
    return hosts.length > 1 && group !== undefined && isQuorumOf(nodes, group.membership);
  }
}
