// The operator of several datacenters: moves the primary as a run's plan says, one datacenter or two at
// once, and, when nothing breaks any more, sees to it that there is one.

import type { Promotion } from '../../../../../cluster/federation/promotion/promotion.ts';
import {
  currentEpoch,
  isPrimary,
  type Replication,
  removedOf,
} from '../../../../../src/state/global-log/replication.ts';
import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import type { MovingFault } from '../../../faults/fault-plan.ts';
import type { SimGroup } from '../../../run/sim-group.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import type { LiveServer } from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { World } from '../../../world/world.ts';

export interface PrimaryMoverOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly (readonly SimHost[])[];
  readonly checks: FederationChecks;
  /** Whether the datacenter at this place may be elected in the end, by who takes part in the furthest log. */
  readonly mayElect: (place: number, head: Replication) => boolean;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  stranger: 'at an address of a datacenter another one was found',
} as const;

const TIMEOUT_MS = 60_000;
/** As the transport has it, in what a ballot says of who did not answer. */
const STRANGER = / is of datacenter "/;
const SETTLE_EVERY_MS = 3000;
/** Each has been told so often before somebody takes the loss. */
const ROUNDS_BEFORE_FORCE = 4;

export class PrimaryMover {
  readonly #options: PrimaryMoverOptions;
  /** Promotions that nobody has heard the end of. */
  #openCount = 0;
  /** The last one that was forced: it may be under way while any promotion is. */
  #forced: SimHost | undefined;

  constructor(options: PrimaryMoverOptions) {
    this.#options = options;
  }

  /** Whether somebody may still become the primary by what was asked for. */
  get isMoving(): boolean {
    return this.#openCount > 0;
  }

  /** False where there is nobody to ask. */
  move(action: MovingFault): boolean {
    switch (action.kind) {
      case 'hand-over':
        return this.#handOver(siteName(action.site - 1));
      case 'elect':
        return action.sites.map((site) => this.#elect(site - 1)).includes(true);
      default:
        return this.#force(action.site - 1);
    }
  }

  /**
   * Elects among these, again and again, until one of their datacenters is primary. Where that leads nowhere, and one
   * was forced that others cannot yield to, forces it once more, as STATUS says.
   */
  async settle(hosts: readonly SimHost[]): Promise<void> {
    const { checks, mayElect, sites, world } = this.#options;
    const there = sites.flatMap((site, place) =>
      site.some((host) => hosts.includes(host)) ? [place] : [],
    );
    let inVain = 0;
    for (let turn = 0; ; turn += 1) {
      await world.time.pause(SETTLE_EVERY_MS);
      const isMine = !this.#hasPrimary(hosts) && !checks.isCatchingUp;
      inVain = isMine ? inVain + 1 : 0;
      if (inVain === 0) continue;
      const head = checks.head(hosts)?.at;
      const own = there.filter((place) => head === undefined || mayElect(place, head));
      if (own.length === 0) continue;
      const isTime = inVain > ROUNDS_BEFORE_FORCE * own.length && turn % 2 === 0;
      if (isTime && this.#forceAgain(hosts)) continue;
      this.#elect(own[turn % own.length]!);
    }
  }

  #forceAgain(hosts: readonly SimHost[]): boolean {
    const { group, sites } = this.#options;
    const forced = this.#forced;
    if (forced === undefined || !hosts.includes(forced) || this.#openCount > 0) return false;
    const leader = group.leader(sites.find((site) => site.includes(forced)) ?? []);
    return this.#ask(leader, 'forced again', (promotion) => promotion.force(promotion.nextEpoch()));
  }

  #hasPrimary(hosts: readonly SimHost[]): boolean {
    return hosts.some((host) => {
      const at = this.#options.checks.replicationOf(host);
      const isLast =
        at !== undefined && isPrimary(at) && currentEpoch(at).epoch >= this.#lastPromise(hosts);
      const isIt = isLast && this.#promotionOf(host)?.outrunBy() === undefined;
      return isIt && !this.#isShutOut(at.datacenter, hosts);
    });
  }

  /**
   * Whether all others have removed it: where it was forced since, they have to have a primary of their own to let it
   * back.
   */
  #isShutOut(datacenter: string, hosts: readonly SimHost[]): boolean {
    const others = hosts
      .map((host) => this.#options.checks.replicationOf(host))
      .filter((at) => at !== undefined && at.datacenter !== datacenter);
    return others.length > 0 && others.every((at) => removedOf(at).includes(datacenter));
  }

  #promotionOf(host: SimHost): Promotion | undefined {
    return (this.#options.group.live(host) as LiveServer | undefined)?.promotion;
  }

  /** Whoever has promised it follows nobody of a lower epoch. */
  #lastPromise(hosts: readonly SimHost[]): number {
    const all = hosts.map((host) => this.#options.checks.replicationOf(host));
    return Math.max(0, ...all.map((at) => at?.maxEpochPromised ?? 0));
  }

  #handOver(to: string): boolean {
    const { checks, group, sites } = this.#options;
    const from = sites
      .map((site) => group.leader(site))
      .find((leader) => {
        const at = leader === undefined ? undefined : checks.replicationOf(leader);
        return at !== undefined && isPrimary(at);
      });
    return this.#ask(from, 'handed over', (promotion) => promotion.handOver(to));
  }

  #elect(place: number): boolean {
    const leader = this.#options.group.leader(this.#options.sites[place] ?? []);
    return this.#ask(leader, 'elected', (promotion) => promotion.elect());
  }

  #force(place: number): boolean {
    const { group, sites } = this.#options;
    const leader = group.leader(sites[place] ?? []);
    const isAsked = this.#ask(leader, 'forced', (promotion) =>
      promotion.force(promotion.nextEpoch()),
    );
    if (isAsked) this.#forced = leader;
    return isAsked;
  }

  #ask(
    leader: SimHost | undefined,
    what: string,
    ask: (promotion: Promotion) => Promise<unknown>,
  ): boolean {
    const { group, world } = this.#options;
    if (leader === undefined) return false;
    this.#openCount += 1;
    void group
      .ask(leader, TIMEOUT_MS, async (node) => ask((node as LiveServer).promotion))
      .then((reply) => {
        this.#openCount -= 1;
        const isDone = reply.kind === 'answered';
        world.trace.mark(isDone ? `a primary was ${what}` : `a primary was not ${what}`);
        if (reply.kind === 'refused') {
          const says = String(reply.error);
          if (STRANGER.test(says)) world.trace.mark(MARKS.stranger);
          world.trace.note('refused', leader.name, 0, () => `${what}: ${says}`);
        }
      });
    return true;
  }
}
