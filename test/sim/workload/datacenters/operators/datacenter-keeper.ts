// The operator who decides which datacenters take part: removes one and allows it again as a run's plan says, and,
// when nothing breaks any more, lets back whoever was removed or has come back with empty disks, as
// OPERATING says. And who knows when a datacenter may lose all its disks.

import {
  type Datacenter,
  isPrimary,
  type Replication,
} from '../../../../../src/state/global-log/replication.ts';
import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import type { Violations } from '../../../checks/violations.ts';
import type { DecidingFault } from '../../../faults/fault-plan.ts';
import type { SimGroup } from '../../../run/sim-group.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import type { HttpAnswer } from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import type { World } from '../../../world/world.ts';
import { OperatorLine } from './operator-line.ts';

export interface DatacenterKeeperOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly (readonly SimHost[])[];
  readonly checks: FederationChecks;
  readonly violations: Violations;
  /** Lets the datacenter of this number begin a later epoch. */
  readonly elect: (site: number) => void;
  /** Whether a primary may come of what others were asked for. */
  readonly isMoving: () => boolean;
  /** Whether two are lost at once, and do not take part again. */
  readonly isPairing: () => boolean;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  removed: 'a datacenter was removed',
  rushed: 'a datacenter was removed by force while the primary was moved',
  removedByForce: 'a datacenter was removed by force',
  allowedByForce: 'a datacenter was allowed by force',
  allowed: 'a datacenter that was removed was allowed',
  rival: 'a datacenter that follows a later reign was not allowed',
  emptied: 'all disks of a datacenter were lost',
  emptiedFirst: 'all disks of the first primary were lost',
} as const;

const TIMEOUT_MS = 5000;
/** Whoever was asked tries for so long, also when nobody waits for its answer any more. */
const TRIES_MS = 11_000;
const RETRY_MS = 700;
/** During a run; in the end until it is done. */
const ATTEMPTS_MAX = 6;
const SETTLE_EVERY_MS = 3000;

/** Done, refused, nobody to do it, not known. */
const SAID: readonly number[] = [200, 400, 503, 504];
/** What may be refused for good, or until something else was done. */
const IS_REFUSED =
  /is the primary: move the primary to another one first|There is no global log here yet|^Nothing was changed: \S+ takes /;
const IS_RIVAL = /^Nothing was changed: \S+ takes /;
const IS_FOR_GOOD = /where one of them is lost for good, force it$/;

/** Removed or allowed; by force, or not. */
export interface How {
  readonly kind: 'remove-site' | 'allow-site';
  readonly isForced: boolean;
  /** By force also while somebody may be made the primary. */
  readonly isRushed: boolean;
}

export class DatacenterKeeper {
  readonly #options: DatacenterKeeperOptions;
  readonly #line: OperatorLine;
  readonly #stream: Stream;
  /** Whose disks were lost, by place, until they take part again. */
  readonly #missing = new Set<number>();
  /** Until then what was asked for about a datacenter may come about, by its place. */
  readonly #askedUntilMs = new Map<number, number>();
  /** Of the missing ones, which were removed since. */
  readonly #removedAgain = new Set<number>();
  /** Those of which a refusal has said that they are removed by force, where they are lost for good. */
  readonly #toForce = new Set<number>();
  #isStopped = false;
  changeCount = 0;
  quietAtMs = 0;

  constructor(options: DatacenterKeeperOptions) {
    this.#options = options;
    const { group, violations, world } = options;
    this.#line = new OperatorLine({
      ...{ group, violations, world, kind: 'decided', timeoutMs: TIMEOUT_MS },
      mayBe: ({ status, text }) =>
        SAID.includes(status) && (status !== 400 || IS_REFUSED.test(text)),
    });
    this.#stream = options.world.stream.fork('exiles');
  }

  begin(): void {
    // Only what the plan says.
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** False where there is nobody to ask, and for a second one to be done without: no majority would be left. */
  decide({
    kind,
    site,
    isForced = false,
    isRushed = false,
  }: Extract<DecidingFault, { kind: 'remove-site' | 'allow-site' }>): boolean {
    this.#noteBack();
    if (this.#options.isPairing()) return false;
    const how = { kind, isForced, isRushed };
    if (isForced && !this.#mayForce(site - 1, how)) return false;
    if (kind === 'remove-site' && [...this.#missing].some((place) => place !== site - 1)) {
      return false;
    }
    const others = this.#options.world.hosts.filter(
      (host) => !this.#options.sites[site - 1]!.includes(host),
    );
    if (others.every(({ process }) => process === undefined)) return false;
    void this.#until(site - 1, how, others);
    return true;
  }

  /**
   * Whoever forces knows that the last change of who votes is with a majority: two that nobody else has heard of may
   * leave two majorities. Mostly also that no other one is being made the primary: the removal goes with the reign
   * that decided it.
   */
  #mayForce(place: number, { isRushed }: Pick<How, 'isRushed'>): boolean {
    const { checks, isMoving, isPairing, world } = this.#options;
    if (isPairing()) return false;
    const isAlone =
      [...this.#missing].every((each) => each === place) && !this.#mayBeDeciding(place);
    return isAlone && (isRushed || !isMoving()) && checks.isListKnown(world.hosts);
  }

  /**
   * Whether all disks of the datacenter at this place may be lost: all others know of each other, have or can elect a
   * primary, and have heard of the last reign that it promised; and no other one is missing.
   */
  mayEmpty(place: number): boolean {
    const { checks } = this.#options;
    this.#noteBack();
    return (
      checks.hasBegun &&
      !this.#options.isPairing() &&
      this.#missing.size === 0 &&
      !this.#mayBeDeciding(place) &&
      !checks.isCatchingUp &&
      checks.mayLose([place + 1]) &&
      !checks.hasPromisedMost([place])
    );
  }

  /** Whether one is missing, or may still be removed or allowed by what was asked for. */
  get isDeciding(): boolean {
    this.#noteBack();
    return this.#missing.size > 0 || this.#options.isPairing() || this.#mayBeDeciding(-1);
  }

  /** Whether another one may still be removed by what was asked for. */
  #mayBeDeciding(place: number): boolean {
    const { nowMs } = this.#options.world.time;
    return [...this.#askedUntilMs].some(([each, untilMs]) => each !== place && untilMs > nowMs);
  }

  onEmptied(place: number): void {
    const { checks, world } = this.#options;
    checks.onEmptied(place);
    this.#missing.add(place);
    this.#removedAgain.delete(place);
    world.trace.mark(place === 0 ? MARKS.emptiedFirst : MARKS.emptied);
  }

  /** The present primary, or, where that is this datacenter, another one. */
  primaryBeside(place: number): string {
    const { checks, sites, world } = this.#options;
    const head = checks.head(world.hosts);
    const own = siteName(place);
    const name = head?.at.epochs.at(-1)?.primary ?? own;
    return name === own ? siteName((place + 1) % sites.length) : name;
  }

  /** Never resolves; these hosts are well, and nobody else is ever again. */
  async settle(hosts: readonly SimHost[]): Promise<void> {
    const { sites } = this.#options;
    const own = sites.flatMap((site, place) =>
      site.some((host) => hosts.includes(host)) ? [place] : [],
    );
    for (;;) {
      await this.#options.world.time.pause(SETTLE_EVERY_MS);
      this.#noteBack();
      for (const place of own) await this.#letBack(place, hosts);
    }
  }

  async #letBack(place: number, hosts: readonly SimHost[]): Promise<void> {
    const { checks, group, sites } = this.#options;
    const leaders = sites.flatMap((site, each) => {
      const leader = each === place ? undefined : group.leader(site);
      return leader === undefined || !hosts.includes(leader) ? [] : [leader];
    });
    for (const leader of leaders) {
      const at = checks.replicationOf(leader);
      if (at === undefined || !isPrimary(at)) continue;
      const listed = at.datacenters.find(({ name }) => name === siteName(place));
      if (listed?.isRemoved === true) {
        await this.ask(place, { kind: 'allow-site', isForced: false, isRushed: false }, leader);
      } else if (listed !== undefined && this.#isAnother(place, at, listed)) {
        const isForced = this.#toForce.has(place) && this.#mayForce(place, { isRushed: false });
        await this.ask(place, { kind: 'remove-site', isForced, isRushed: false }, leader);
      }
    }
  }

  /**
   * Whether another cluster has the name of the listed datacenter. Below the feature level that names clusters its
   * refusal says so, and the list does not: then it is removed once.
   */
  #isAnother(place: number, at: Replication, { clusterId }: Datacenter): boolean {
    const isKnown = clusterId !== undefined || !this.#removedAgain.has(place);
    return isKnown && !this.#options.checks.takesPart(place, at);
  }

  async #until(place: number, how: How, others: readonly SimHost[]): Promise<void> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX && !this.#isStopped; attempt += 1) {
      if (how.isForced && !this.#mayForce(place, how)) return;
      const isDecided = await this.ask(place, how, this.#stream.pick(others));
      if (isDecided) return;
      await this.#options.world.time.pause(RETRY_MS);
    }
  }

  /** True when it need not be asked again. */
  async ask(place: number, how: How, host: SimHost): Promise<boolean> {
    const method = how.kind === 'remove-site' ? 'DELETE' : 'PUT';
    const path = `/v1/operator/datacenter/${siteName(place)}${how.isForced ? '?force' : ''}`;
    this.quietAtMs = this.#options.world.time.nowMs + TRIES_MS;
    this.#askedUntilMs.set(place, this.quietAtMs);
    const came = await this.#line.ask(host, { method, path });
    if (came === undefined) return false;
    const { status, text } = came;
    if (IS_FOR_GOOD.test(text)) this.#toForce.add(place);
    const isDone = this.#isDone(how, came);
    if (isDone && how.kind === 'remove-site' && status === 200) this.#removedAgain.add(place);
    return isDone;
  }

  #isDone({ kind, isForced, isRushed }: How, { status, text }: HttpAnswer): boolean {
    const { isMoving, world } = this.#options;
    if (status === 200) {
      // False: it was so before, by an earlier try of the same.
      if (text !== 'true') return true;
      this.changeCount += 1;
      const isRemoval = kind === 'remove-site';
      world.trace.mark(isRemoval ? MARKS.removed : MARKS.allowed);
      if (isForced && isRushed && isRemoval && isMoving()) world.trace.mark(MARKS.rushed);
      if (isForced) world.trace.mark(isRemoval ? MARKS.removedByForce : MARKS.allowedByForce);
      return true;
    }
    if (status === 400 && IS_RIVAL.test(text)) {
      world.trace.mark(MARKS.rival);
      this.#outrun();
      return false;
    }
    return status === 400;
  }

  /** As the refusal says: the primary begins an epoch behind all that were heard of. */
  #outrun(): void {
    const { checks, elect, group, sites } = this.#options;
    for (const [place, site] of sites.entries()) {
      const leader = group.leader(site);
      const at = leader && checks.replicationOf(leader);
      if (
        at !== undefined &&
        isPrimary(at) &&
        at.datacenters.some(({ isRemoved }) => isRemoved === true)
      )
        elect(place + 1);
    }
  }

  #noteBack(): void {
    const { checks, world } = this.#options;
    for (const place of this.#missing) {
      const all = world.hosts.map((host) => checks.replicationOf(host));
      const isBack = all.every((at) => at !== undefined && checks.takesPart(place, at));
      if (!isBack) continue;
      this.#missing.delete(place);
      this.#toForce.delete(place);
    }
  }
}
