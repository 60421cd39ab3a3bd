// The servers of one datacenter in a run, which agree among themselves, with the checkers that watch
// them; and which of them are enough to go on when the rest is broken for good.

import type { KvWrite } from '../../../cluster/platform/kv.ts';
import { membersOf } from '../../../cluster/raft/membership/membership.ts';
import { CommitWatch } from '../checks/commit-watch.ts';
import { GroupChecks } from '../checks/group-checks.ts';
import { isQuorumOf } from '../checks/quorums.ts';
import type { Violations } from '../checks/violations.ts';
import type { Subject } from '../subject/subject.ts';
import type { SimStore } from '../world/sim-disk.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { LeavingFrame } from '../world/sim-net.ts';
import type { SimGroup } from './sim-group.ts';

export interface SiteOptions {
  readonly hosts: readonly SimHost[];
  readonly subject: Subject;
  readonly group: SimGroup;
  readonly violations: Violations;
}

export class Site {
  readonly hosts: readonly SimHost[];
  readonly #options: SiteOptions;
  #checks: GroupChecks;
  #commitWatch: CommitWatch;
  /** Of the groups that it had before, whose disks are all lost. */
  readonly #past: GroupChecks[] = [];
  /** Hosts that showed something in the last event: their disks took it, or a frame left them. */
  readonly #active = new Set<SimHost>();

  constructor(options: SiteOptions) {
    this.#options = options;
    this.hosts = options.hosts;
    this.#checks = this.#checksOfGroup();
    this.#commitWatch = this.#watchOfGroup();
  }

  /** Of the present group. */
  get checks(): GroupChecks {
    return this.#checks;
  }

  /** Of all groups that there were, the present one last. */
  get allChecks(): readonly GroupChecks[] {
    return [...this.#past, this.#checks];
  }

  /**
   * All its disks are lost: what its servers found is another group. Or they are as they were when `checks` knew them:
   * what came of the group behind that never was.
   */
  renew(checks = this.#checksOfGroup()): void {
    this.#past.push(this.#checks);
    this.#checks = checks;
    this.#commitWatch = this.#watchOfGroup();
    this.#active.clear();
  }

  onLanded(host: SimHost, store: SimStore, writes: readonly KvWrite[]): void {
    this.#active.add(host);
    this.checks.onLanded(host, store, writes);
  }

  onFrame(host: SimHost, leaving: LeavingFrame): void {
    this.#active.add(host);
    for (const message of this.#options.subject.messagesIn(leaving)) {
      this.checks.onMessage(host, message);
    }
  }

  /** After each event: what the nodes hold that had a part in it. */
  look(): void {
    for (const host of this.#active) {
      const status = this.#options.group.live(host)?.status();
      if (status !== undefined) this.#commitWatch.look(host, status);
    }
    this.#active.clear();
  }

  get isFounded(): boolean {
    return this.checks.committed.length > 0;
  }

  /** As few as can decide, drawn from those that are fit; undefined where they cannot. */
  core(shuffled: (fit: readonly SimHost[]) => readonly SimHost[]): readonly SimHost[] | undefined {
    // Before there is a group, it takes all of its founders to make one.
    if (!this.isFounded) return this.hosts;
    const { damaged } = this.#options.group;
    const fit = shuffled(this.hosts.filter((host) => !damaged.has(host) && this.#isMember(host)));
    for (let count = 1; count <= fit.length; count += 1) {
      const core = fit.slice(0, count);
      if (this.canDecide(core)) return core;
    }
    return undefined;
  }

  /**
   * By what is committed, and by what each of them believes: a change that they have not heard to be
   * committed was not answered either, and may need those who are gone.
   */
  canDecide(core: readonly SimHost[]): boolean {
    const group = this.checks.committed.at(-1)?.group;
    const nodes = core.map((host) => this.#options.subject.nodeOf(host));
    const believed = core.map((host) => this.checks.believedBy(host));
    return [group, ...believed].every((each) => {
      return each === undefined || isQuorumOf(nodes, each.membership);
    });
  }

  /** Members of the core that belong to the group have applied the same, and one of them leads. */
  isEven(core: readonly SimHost[]): boolean {
    const members = core.filter((host) => this.#isMember(host));
    const statuses = members.map((host) => this.#options.group.live(host)?.status());
    const [first] = statuses;
    return (
      statuses.some((status) => status?.standing === 'leader') &&
      statuses.every((status) => {
        return status !== undefined && status.appliedIndex === first?.appliedIndex;
      })
    );
  }

  /** Whether the group, as far as it has committed, has no server on that host. */
  isOut(host: SimHost): boolean {
    return this.isFounded && !this.#isMember(host);
  }

  /** Whether so few others are spent that one more leaves a majority. */
  maySpend(host: SimHost): boolean {
    const { group: simGroup, subject } = this.#options;
    const group = this.checks.committed.at(-1)?.group;
    const voters = group?.membership.voters ?? [];
    const sound = this.hosts.filter((each) => {
      if (each === host || simGroup.damaged.has(each)) return false;
      return voters.includes(subject.nodeOf(each));
    });
    const nodes = sound.map((each) => subject.nodeOf(each));
    return this.hosts.length > 1 && group !== undefined && isQuorumOf(nodes, group.membership);
  }

  #checksOfGroup(): GroupChecks {
    const { hosts, subject, group, violations } = this.#options;
    return new GroupChecks({
      subject,
      violations,
      hosts: () => hosts,
      statusOf: (host) => group.live(host)?.status(),
    });
  }

  #watchOfGroup(): CommitWatch {
    const { violations } = this.#options;
    return new CommitWatch({
      violations,
      isKnown: (index, term) => this.checks.isKnown(index, term),
      onCounted: (host, index, term) => this.checks.onCounted(host, index, term),
    });
  }

  #isMember(host: SimHost): boolean {
    const group = this.checks.committed.at(-1)?.group;
    const node = this.#options.subject.nodeOf(host);
    return group === undefined || membersOf(group.membership).includes(node);
  }
}
