// Several datacenters on one world, with clients in all of them, and who watches the global log.

import { must } from '../../../cluster/base/assert.ts';
import { GLOBAL_LOG_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { FederationChecks } from '../checks/federation/federation-checks.ts';
import { DatacentersSubject } from '../subject/datacenters-subject.ts';
import { DatacentersWorkload } from '../workload/datacenters/datacenters-workload.ts';
import { identityCluster } from '../workload/datacenters/identity-cluster.ts';
import { ArchiveKeeper } from '../workload/datacenters/operators/archive-keeper.ts';
import { CopyKeeper } from '../workload/datacenters/operators/copy-keeper.ts';
import { DatacenterKeeper } from '../workload/datacenters/operators/datacenter-keeper.ts';
import { ForkKeeper } from '../workload/datacenters/operators/fork-keeper.ts';
import { LevelOperator } from '../workload/datacenters/operators/level-operator.ts';
import { PairKeeper } from '../workload/datacenters/operators/pair-keeper.ts';
import { PrimaryMover } from '../workload/datacenters/operators/primary-mover.ts';
import { ServerKeeper } from '../workload/server-keeper.ts';
import type { SimHost } from '../world/sim-host.ts';
import { SimGroup } from './sim-group.ts';
import { Site } from './site.ts';
import type { Copying, Emptying, Keeper, Mover, Stage, StageParts } from './stage.ts';

const TIMEOUT_MS = 8000;

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  witness: 'a datacenter that lost all its disks was started as a witness',
} as const;

export function datacentersStage({ world, violations, options }: StageParts): Stage {
  const { timing, limits, clientLossRate, clientCount, keyCount, thinkMs, weights } = options;
  const federation = must(options.federation, 'what several datacenters have');
  const { olderHosts = [], olderLevel = GLOBAL_LOG_LEVEL - 1 } = federation;
  const hosts = hostsBySize(world.hosts, federation.siteSizes);
  const subject = new DatacentersSubject({
    ...{ sites: hosts, timing, keptCount: limits.keptCount },
    ...{ logMaxAgeMs: federation.logMaxAgeMs, defaultAck: federation.defaultAck },
    ...{ olderHosts, olderLevel },
    witnessSite: federation.witnessSite,
    https: identityCluster(world),
  });
  const group = new SimGroup({ world, subject, violations, clientLossRate });
  const sites = hosts.map((own) => new Site({ hosts: own, subject, group, violations }));
  const checks = new FederationChecks({
    ...{ sites: hosts, violations },
    nowMs: () => world.time.nowMs,
    logMaxAgeMs: federation.logMaxAgeMs,
    mark: (name) => world.trace.mark(name),
  });
  const keepers = hosts.map((own) => new ServerKeeper({ world, group, hosts: own }));
  const forks = new ForkKeeper({
    ...{ world, group, sites: hosts, checks, violations },
    settlesAll: federation.settlesForks === true,
  });
  const witnesses = new Set(federation.witnessSite === undefined ? [] : [federation.witnessSite]);
  const { write, cas, read } = weights;
  const workload = new DatacentersWorkload({
    ...{ world, group, sites, checks, violations, forks, clientCount, keyCount, thinkMs },
    timeoutMs: TIMEOUT_MS,
    loginTtlMs: federation.loginTtlMs,
    isWitness: (site) => witnesses.has(site),
    weights: {
      create: write,
      update: write + cas,
      delete: write / 2,
      read: 2 * read,
      present: read,
      list: read / 2,
      local: write,
      login: 2 * write,
      logout: federation.hasLogouts === true ? write : 0,
      deputy: federation.hasDeputies === true ? 2 * write : 0,
      tenant: federation.hasTenants === true ? 2 * write : 0,
      localRight: federation.hasLocalRights === true ? 3 * write : 0,
      changed: federation.hasChangedTokens === true ? 3 * write : 0,
      grant: federation.hasGrants === true ? 2 * write : 0,
    },
  });
  const onLosing = (host: SimHost): void => {
    sites.find((site) => site.hosts.includes(host))?.checks.onLosing(host);
  };
  const primaries: PrimaryMover = new PrimaryMover({
    ...{ world, group, sites: hosts, checks },
    // By the older list they might elect another one with others that have not heard, either.
    mayElect: (place, head): boolean => !pairs.isBusy || checks.takesPart(place, head),
  });
  const levels = new LevelOperator({ world, group, sites: hosts, olderHosts, onLosing });
  const datacenters: DatacenterKeeper = new DatacenterKeeper({
    ...{ world, group, sites: hosts, checks, violations },
    elect: (site) => primaries.move({ kind: 'elect', sites: [site] }),
    isMoving: () => primaries.isMoving,
    isPairing: () => pairs.isBusy,
  });
  const pairs: PairKeeper = new PairKeeper({ world, sites: hosts, checks, datacenters });
  const archives = new ArchiveKeeper({ world, group, sites: hosts, checks, violations, workload });
  const copies = new CopyKeeper({
    ...{ world, group, sites, checks, violations, workload },
    isBusy: () => primaries.isMoving || datacenters.isDeciding || archives.isBusy,
  });
  const copying: Copying = {
    // Put back, it would not know who was removed then, and promise it nothing (STATUS has what comes of that).
    mayCopy: (site) => !pairs.isBusy && copies.mayCopy(site - 1),
    copy: (site) => copies.copy(site - 1),
    mayPutBack: (sites, mayBeAlone) => copies.mayPutBack(placesOf(sites), mayBeAlone),
    putBack: (sites, peaceUntilMs) => copies.putBack(placesOf(sites), peaceUntilMs),
    isCatchingUp: () => checks.isCatchingUp,
  };
  const mover: Mover = {
    move: (action) => {
      // Who has put disks back does what the messages say, and waits.
      const isHarmless = action.kind === 'hand-over' || action.kind === 'settle-fork';
      if (checks.isCatchingUp && !isHarmless) return false;
      switch (action.kind) {
        case 'remove-site':
        case 'allow-site':
          return datacenters.decide(action);
        case 'save-archive':
          return archives.save(action.site - 1);
        case 'restore-archive':
          return archives.restore(action);
        case 'settle-fork':
          return forks.settleSome(action.site - 1);
        default:
          return primaries.move(action);
      }
    },
    settle: async (core) => {
      const all = [primaries, levels, datacenters, forks];
      await Promise.all(all.map((each) => each.settle(core)));
    },
    isSettled: (core) => forks.isSettled(core),
  };
  const emptying: Emptying = {
    mayEmpty: (site) => datacenters.mayEmpty(site - 1),
    onEmptied: (site, isWitness) => {
      const place = site - 1;
      if (isWitness && place > 0 && witnesses.size === 0) {
        witnesses.add(site);
        subject.makeWitness(place);
        world.trace.mark(MARKS.witness);
      }
      datacenters.onEmptied(place);
      sites[place]!.renew();
      workload.onEmptied(place);
      // Its settings would have it begin anew.
      if (place === 0) subject.namePrimary(place, datacenters.primaryBeside(place));
    },
  };
  const keeper = all([...keepers, datacenters, archives, forks, copies]);
  const stage = { sites, group, workload, keeper, watch: checks, mover, emptying, copying };
  return { ...stage, pairing: pairs };
}

function hostsBySize(
  hosts: readonly SimHost[],
  sizes: readonly number[],
): readonly (readonly SimHost[])[] {
  let from = 0;
  return sizes.map((size) => {
    from += size;
    return hosts.slice(from - size, from);
  });
}

function placesOf(sites: readonly number[]): readonly number[] {
  return sites.map((site) => site - 1);
}

function all(keepers: readonly Keeper[]): Keeper {
  return {
    begin: () => {
      for (const keeper of keepers) keeper.begin();
    },
    stop: () => {
      for (const keeper of keepers) keeper.stop();
    },
    get changeCount() {
      return keepers.reduce((sum, { changeCount }) => sum + changeCount, 0);
    },
    get quietAtMs() {
      return Math.max(...keepers.map(({ quietAtMs = 0 }) => quietAtMs));
    },
  };
}
