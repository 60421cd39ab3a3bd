// The operator who keeps copies of the disks of whole datacenters, puts them back, and then does what the messages
// say: has the datacenter elected that the primary names, as long as the primary says that others have more of its
// reign; where nobody is primary, the one that any datacenter names. Whoever does that, and moves no primary otherwise
// meanwhile, loses nothing that another datacenter has, but a restore that only a witness has heard of.

import { isPrimary } from '../../../../../src/state/global-log/replication.ts';
import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import type { GroupChecks } from '../../../checks/group-checks.ts';
import { logOn } from '../../../checks/log-image.ts';
import type { Violations } from '../../../checks/violations.ts';
import type { SimGroup } from '../../../run/sim-group.ts';
import type { Site } from '../../../run/site.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import type { HttpAnswer } from '../../../subject/node-subject.ts';
import type { HostCopy, SimHost } from '../../../world/sim-host.ts';
import type { World } from '../../../world/world.ts';
import type { DatacentersWorkload } from '../datacenters-workload.ts';
import type { ArchivedTokens } from '../local/local-tokens.ts';
import { OperatorLine } from './operator-line.ts';

export interface CopyKeeperOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly Site[];
  readonly checks: FederationChecks;
  readonly violations: Violations;
  readonly workload: Pick<DatacentersWorkload, 'archiving' | 'beginRestore' | 'endRestore'>;
  /** Whether somebody is about to move the primary, to restore, or to change which datacenters there are. */
  readonly isBusy: () => boolean;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  putBack: 'the disks of a datacenter were put back to a copy',
  putBackPrimary: 'the disks of the primary were put back to a copy',
  closed: 'a primary said that others have more of its reign than it has',
  nobody: 'nobody was primary, because the last one had lost its reign',
  referred: 'who is primary no more said how it goes on',
  goneOn: 'the datacenter was elected that a primary had named',
  wentFirst: 'the datacenter was elected that a refused election had named',
  putBackTwo: 'the disks of two datacenters were put back at once',
  putBackAlone: 'disks were put back while another datacenter was away',
  givenUp: 'a restore that a witness alone had heard of was given up, as a refusal said',
} as const;

/** The disks of a datacenter as of one moment, with what was known of them then. */
interface Copy {
  readonly hosts: ReadonlyMap<SimHost, HostCopy>;
  readonly checks: GroupChecks;
  readonly tokens: ArchivedTokens;
}

const PATH = '/v1/operator/primary';
const TIMEOUT_MS = 15_000;
const LOOK_EVERY_MS = 1000;
/** A line that is slower than that, or loses, may keep a datacenter from being heard in time. */
const LINE_MAX_MS = 150;
/** Done, as it is, nobody to do it, not known. */
const SAID: readonly number[] = [200, 400, 503, 504];
const NAMED =
  /: its data folders are of an earlier day\. `conclave operator promote (\S+) --election`, asked at \1, /;
/** Whoever began the last reign that is heard of says more. */
const SAYS_MORE = /`Closed` of `conclave operator primary`, asked at (\S+), says how it goes on$/;
/** An election that nothing comes of: what was restored is on no disk any more. */
const GIVES_UP =
  /Nobody with objects has it any more[^:]*: stop (\S+), then `conclave operator promote (\S+) --force …`, /;
/** The one that was named lacks what another one has, and does not give. */
const GOES_FIRST =
  / can be elected itself: `conclave operator promote (\S+) --election`, asked at \1$/;
const NEXT_EPOCH = /\bthe next epoch is (\d+), not \d+$/i;
/** Where nobody has anything of the reign that was lost. */
const TAKEN_BACK = /`conclave operator promote (\S+) --election` takes it back$/;

export class CopyKeeper {
  readonly #options: CopyKeeperOptions;
  readonly #line: OperatorLine;
  /** The last one of each datacenter, by its place. */
  readonly #copies = new Map<number, Copy>();
  #isFollowing = false;
  changeCount = 0;
  quietAtMs = 0;

  constructor(options: CopyKeeperOptions) {
    this.#options = options;
    const { group, violations, world } = options;
    this.#line = new OperatorLine({
      ...{ group, violations, world, kind: 'put back', timeoutMs: TIMEOUT_MS },
      mayBe: ({ status }) => SAID.includes(status),
    });
  }

  begin(): void {
    // Only what the plan says.
  }

  stop(): void {
    // What the messages say is done to the end.
  }

  /** Whether a copy of the datacenter at this place is worth keeping: it has the log, and its disks are sound. */
  mayCopy(place: number): boolean {
    const { checks, group, sites } = this.#options;
    const { hosts, isFounded } = sites[place]!;
    const areSound = hosts.every((host) => !group.damaged.has(host) && !group.failing.has(host));
    return isFounded && areSound && hosts.some((host) => checks.replicationOf(host) !== undefined);
  }

  /**
   * All its servers are down. A copy is not kept where a log has what is not committed: put back it may be, before
   * anybody is heard, in the place of what others have by then (STATUS has what comes of that).
   */
  copy(place: number): void {
    const { sites, workload } = this.#options;
    const { hosts, checks } = sites[place]!;
    const next = checks.committed.length + 1;
    if (hosts.some((host) => logOn(host).entry(next) !== undefined)) return;
    this.#copies.set(place, {
      hosts: new Map(hosts.map((host) => [host, host.copyDisk()])),
      checks: checks.copy(),
      tokens: workload.archiving(place)(),
    });
  }

  /**
   * Whether the disks of the datacenters at these places may be put back, by what is promised to whoever does it: all
   * others are there and can be heard, or are away with nothing that those who are there have not; nobody is about to
   * decide anything, and each knows of the last reign that these promised, so that it is not asked for that promise
   * again.
   */
  mayPutBack(places: readonly number[], mayBeAlone: boolean): boolean {
    const { checks, isBusy, sites } = this.#options;
    const away = mayBeAlone ? this.#away(places) : [];
    const there = sites.filter((_, place) => !away.includes(place)).flatMap(({ hosts }) => hosts);
    return (
      places.every((place) => this.#copies.has(place)) &&
      there.every(({ process }) => process?.isFrozen === false) &&
      !isBusy() &&
      !checks.isCatchingUp &&
      checks.mayPutBack(places, away) &&
      this.#canBeHeard(
        places.flatMap((place) => sites[place]!.hosts),
        there,
      )
    );
  }

  /** Of all but these, those whose servers are down, or cut off from everybody else: nothing comes to them. */
  #away(but: readonly number[]): readonly number[] {
    const { sites, world } = this.#options;
    return [...sites.keys()].filter((place) => {
      const { hosts } = sites[place]!;
      const others = world.hosts.filter((host) => !hosts.includes(host));
      const isCutOff = hosts.every((host) =>
        others.every(({ name }) => {
          return world.net.link(host.name, name).isCut && world.net.link(name, host.name).isCut;
        }),
      );
      const areDown = hosts.every(({ process }) => process === undefined);
      return !but.includes(place) && (areDown || isCutOff);
    });
  }

  #canBeHeard(hosts: readonly SimHost[], there: readonly SimHost[]): boolean {
    const { net } = this.#options.world;
    return hosts.every((host) =>
      there.every((other) =>
        [net.link(host.name, other.name), net.link(other.name, host.name)].every((link) => {
          return (
            host === other || (link.isOpen && link.lossRate === 0 && link.meanMs < LINE_MAX_MS)
          );
        }),
      ),
    );
  }

  /** All their servers are down. Nothing else breaks until then, and nobody is left behind for good. */
  putBack(places: readonly number[], peaceUntilMs: number): void {
    const { checks, sites, workload, world } = this.#options;
    if (places.length > 1) world.trace.mark(MARKS.putBackTwo);
    if (this.#away(places).length > 0) world.trace.mark(MARKS.putBackAlone);
    for (const place of places) {
      const isFirst = isPrimaryOn(checks, sites[place]!.hosts);
      this.#putDisksBack(place);
      world.trace.mark(isFirst ? MARKS.putBackPrimary : MARKS.putBack);
    }
    checks.onPutBack(places);
    for (const place of places) {
      workload.beginRestore(place);
      workload.endRestore(place, this.#copies.get(place)!.tokens);
    }
    this.changeCount += 1;
    this.quietAtMs = peaceUntilMs;
    if (!this.#isFollowing) void this.#follow();
  }

  #putDisksBack(place: number): void {
    const { group, sites } = this.#options;
    const { hosts, checks: known } = this.#copies.get(place)!;
    for (const [host, copy] of hosts) {
      host.putBackDisk(copy);
      group.damaged.delete(host);
    }
    // The copy is still there, and may be put back again.
    sites[place]!.renew(known.copy());
  }

  /** Never resolves. */
  async #follow(): Promise<void> {
    const { checks, group, sites } = this.#options;
    this.#isFollowing = true;
    for (let turn = 0; ; turn += 1) {
      await this.#options.world.time.pause(LOOK_EVERY_MS);
      const leaders = sites.flatMap(({ hosts }) => group.leader(hosts) ?? []);
      const primaries = leaders.filter((leader) => isPrimaryOn(checks, [leader]));
      for (const leader of primaries) await this.#heed(leader, MARKS.closed);
      const asked = primaries.length > 0 ? undefined : leaders[turn % leaders.length];
      if (asked !== undefined) await this.#heed(asked, MARKS.nobody);
    }
  }

  /** Does what it says is to be done. */
  async #heed(leader: SimHost, mark: string): Promise<void> {
    const { world } = this.#options;
    const first = await this.#closedAt(leader);
    const referred = this.#leaderOf(SAYS_MORE.exec(first)?.[1]);
    const closed = referred === undefined ? first : await this.#closedAt(referred);
    const named = NAMED.exec(closed)?.[1] ?? TAKEN_BACK.exec(closed)?.[1];
    if (named === undefined) return;
    world.trace.mark(referred === undefined ? mark : MARKS.referred);
    const moved = await this.#elect(named);
    if (moved?.status === 200) world.trace.mark(MARKS.goneOn);
    else if (moved !== undefined) await this.#goOn(moved.text);
  }

  /** As a refused election says. */
  async #goOn(says: string): Promise<void> {
    const named = GOES_FIRST.exec(says)?.[1];
    if (named === undefined) return await this.#giveUp(says);
    const moved = await this.#elect(named);
    if (moved?.status === 200) this.#options.world.trace.mark(MARKS.wentFirst);
  }

  async #elect(named: string): Promise<HttpAnswer | undefined> {
    const asked = this.#leaderOf(named);
    const body = { Datacenter: named, Mode: 'election' };
    return asked && (await this.#line.ask(asked, { method: 'PUT', path: PATH, body }));
  }

  /** What was restored nobody here misses: it is not restored once more. */
  async #giveUp(says: string): Promise<void> {
    const { group, sites, world } = this.#options;
    const [, witness, named] = GIVES_UP.exec(says) ?? [];
    const stopped = sites.find((_, place) => siteName(place) === witness);
    if (stopped === undefined) return;
    await Promise.all(stopped.hosts.map((host) => group.stop(host)));
    const asked = this.#leaderOf(named);
    const shown = asked && (await this.#line.ask(asked, { method: 'GET', path: PATH }));
    if (asked !== undefined && shown?.status === 200) {
      const { PromisedEpoch: promised } = JSON.parse(shown.text) as { PromisedEpoch: number };
      if (await this.#force(asked, promised + 1)) world.trace.mark(MARKS.givenUp);
    }
    for (const host of stopped.hosts) group.start(host);
  }

  /** The next epoch, which a refusal may name. Whether it has begun. */
  async #force(asked: SimHost, epoch: number): Promise<boolean> {
    const body = { Mode: 'forced', Epoch: epoch, AcceptLoss: true };
    const forced = await this.#line.ask(asked, { method: 'PUT', path: PATH, body });
    const next = NEXT_EPOCH.exec(forced?.text ?? '')?.[1];
    return next === undefined ? forced?.status === 200 : this.#force(asked, Number(next));
  }

  /** Why the datacenter of this leader writes nothing, as it says; empty where it does, or does not answer. */
  async #closedAt(leader: SimHost): Promise<string> {
    const said = await this.#line.ask(leader, { method: 'GET', path: PATH });
    if (said?.status !== 200) return '';
    const { Closed: closed } = JSON.parse(said.text) as { readonly Closed: string };
    return closed;
  }

  #leaderOf(name: string | undefined): SimHost | undefined {
    const { group, sites } = this.#options;
    const site = sites.find((_, place) => siteName(place) === name);
    return site && group.leader(site.hosts);
  }
}

function isPrimaryOn(checks: FederationChecks, hosts: readonly SimHost[]): boolean {
  return hosts.some((host) => {
    const at = checks.replicationOf(host);
    return at !== undefined && isPrimary(at);
  });
}
