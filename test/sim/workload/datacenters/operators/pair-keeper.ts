// The operator who removes two datacenters by force that are lost at once, before others have heard of the first
// removal, and lets them back, one behind the other. Their servers are down, and stay so until all others know who
// takes part: else whoever has not heard of it might elect, with them, another primary by the older list, as 0032 says.

import { isPrimary } from '../../../../../src/state/global-log/replication.ts';
import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import type { FederationFault } from '../../../faults/fault-plan.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { World } from '../../../world/world.ts';
import type { DatacenterKeeper } from './datacenter-keeper.ts';

export interface PairKeeperOptions {
  readonly world: World;
  readonly sites: readonly (readonly SimHost[])[];
  readonly checks: FederationChecks;
  readonly datacenters: DatacenterKeeper;
}

type Pair = Extract<FederationFault, { readonly kind: 'remove-two' }>;

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  two: 'two datacenters were removed by force before others had heard of the first',
  back: 'two datacenters that were removed by force take part again',
} as const;

const RETRY_MS = 700;
const ATTEMPTS_MAX = 8;

export class PairKeeper {
  readonly #options: PairKeeperOptions;
  #isStopped = false;
  #isBusy = false;

  constructor(options: PairKeeperOptions) {
    this.#options = options;
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Whether two are removed, or are to be, and do not take part again. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Whether these, by their numbers, may be lost at once: neither is the primary, and what they promised is known. */
  mayRemove(sites: readonly number[]): boolean {
    const { checks, datacenters } = this.#options;
    const left = this.#hostsBut(sites);
    return (
      checks.hasBegun &&
      !this.#isBusy &&
      !this.#isStopped &&
      !datacenters.isDeciding &&
      !checks.isCatchingUp &&
      checks.mayLose(sites) &&
      left.some((host) => this.#isPrimaryAt(host)) &&
      !checks.hasPromisedMost(sites.map((site) => site - 1))
    );
  }

  /** Their servers are down; `back` starts them. */
  remove(pair: Pair, back: (site: number) => void): void {
    this.#setBusy(true);
    void this.#carry(pair, back);
  }

  async #carry({ sites, betweenMs, goneMs, backFirst }: Pair, back: (site: number) => void) {
    const { world } = this.#options;
    const [first, second] = sites;
    const left = this.#hostsBut(sites);
    // Its answer may wait until others have heard.
    const removal = this.#decide(first, 'remove-site', left);
    await this.#options.world.time.pause(betweenMs);
    const wasAlone = this.#areUnheard(left);
    await Promise.all([removal, this.#decide(second, 'remove-site', left)]);
    if (this.#isGone(first) && this.#isGone(second) && wasAlone) world.trace.mark(MARKS.two);
    await this.#options.world.time.pause(goneMs);
    let away: readonly number[] = sites;
    for (const site of backFirst === first ? [first, second] : [second, first]) {
      await this.#until(() => this.#isKnownTo(this.#hostsBut(away)));
      while (this.#isGone(site) && !this.#isStopped) {
        await this.#decide(site, 'allow-site', this.#hostsBut(away));
        await this.#options.world.time.pause(RETRY_MS);
      }
      await this.#until(() => !this.#isGone(site) && this.#isKnownTo(this.#hostsBut(away)));
      if (this.#isStopped) return;
      back(site);
      away = away.filter((each) => each !== site);
      await this.#until(() => this.#isKnownTo(this.#hostsBut(away)));
    }
    if (this.#isStopped) return;
    world.trace.mark(MARKS.back);
    this.#setBusy(false);
  }

  /** Who alone knows of a removal may not be lost, too. */
  #setBusy(isBusy: boolean): void {
    this.#isBusy = isBusy;
    this.#options.checks.mayLoseNobody = isBusy;
  }

  async #decide(
    site: number,
    kind: 'remove-site' | 'allow-site',
    hosts: readonly SimHost[],
  ): Promise<void> {
    const { datacenters, world } = this.#options;
    const how = { kind, isForced: kind === 'remove-site', isRushed: true };
    for (let attempt = 0; attempt < ATTEMPTS_MAX && !this.#isStopped; attempt += 1) {
      const up = hosts.filter(({ process }) => process !== undefined);
      // Whoever asks elsewhere is answered when it can be read there.
      const first = kind === 'remove-site' ? up.find((host) => this.#isPrimaryAt(host)) : undefined;
      const other = up[(attempt + Math.floor(world.time.nowMs)) % up.length];
      const asked = attempt === 0 ? (first ?? other) : other;
      if (asked !== undefined && (await datacenters.ask(site - 1, how, asked))) return;
      await this.#options.world.time.pause(RETRY_MS);
    }
  }

  /** Whether the log that is left, as far as it goes by now, says that it is removed. */
  #isGone(site: number): boolean {
    const { checks, world } = this.#options;
    const head = checks.head(world.hosts);
    return (
      head?.at.datacenters.some(({ name, isRemoved }) => {
        return name === siteName(site - 1) && isRemoved === true;
      }) === true
    );
  }

  /** Whether each datacenter of these hosts knows who takes part by the log that is left. */
  #isKnownTo(hosts: readonly SimHost[]): boolean {
    return this.#options.checks.isLastListWith(hosts);
  }

  /** Whether nobody but the primary knows. */
  #areUnheard(hosts: readonly SimHost[]): boolean {
    const others = hosts.filter((host) => !this.#isPrimaryAt(host));
    return others.every((host) => !this.#isKnownTo([host]));
  }

  #isPrimaryAt(host: SimHost): boolean {
    const at = this.#options.checks.replicationOf(host);
    return at !== undefined && isPrimary(at);
  }

  #hostsBut(sites: readonly number[]): readonly SimHost[] {
    return this.#options.sites.filter((_, place) => !sites.includes(place + 1)).flat();
  }

  async #until(isSo: () => boolean): Promise<void> {
    while (!isSo() && !this.#isStopped) await this.#options.world.time.pause(RETRY_MS);
  }
}
