// Several datacenters on one world, with clients in all of them, and who watches the global log.

import { must } from '../../../cluster/base/assert.ts';
import { FederationChecks } from '../checks/federation/federation-checks.ts';
import { DatacentersSubject } from '../subject/datacenters-subject.ts';
import { DatacentersWorkload } from '../workload/datacenters/datacenters-workload.ts';
import { identityCluster } from '../workload/datacenters/identity-cluster.ts';
import { LevelOperator } from '../workload/datacenters/level-operator.ts';
import { PrimaryMover } from '../workload/datacenters/primary-mover.ts';
import { ServerKeeper } from '../workload/server-keeper.ts';
import type { SimHost } from '../world/sim-host.ts';
import { SimGroup } from './sim-group.ts';
import { Site } from './site.ts';
import type { Keeper, Mover, Stage, StageParts } from './stage.ts';

const TIMEOUT_MS = 8000;

export function datacentersStage({ world, violations, options }: StageParts): Stage {
  const { timing, limits, clientLossRate, clientCount, keyCount, thinkMs, weights } = options;
  const federation = must(options.federation, 'what several datacenters have');
  const hosts = hostsBySize(world.hosts, federation.siteSizes);
  const subject = new DatacentersSubject({
    ...{ sites: hosts, timing, keptCount: limits.keptCount },
    ...{ logMaxAgeMs: federation.logMaxAgeMs, defaultAck: federation.defaultAck },
    olderHosts: federation.olderHosts ?? [],
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
  const { write, cas, read } = weights;
  const workload = new DatacentersWorkload({
    ...{ world, group, sites, checks, violations, clientCount, keyCount, thinkMs },
    timeoutMs: TIMEOUT_MS,
    loginTtlMs: federation.loginTtlMs,
    witnessSite: federation.witnessSite,
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
    },
  });
  const primaries = new PrimaryMover({ world, group, sites: hosts, checks });
  const levels = new LevelOperator({ world, group, sites: hosts });
  const mover: Mover = {
    move: (action) => primaries.move(action),
    settle: async (core) => {
      await Promise.all([primaries.settle(core), levels.settle(core)]);
    },
  };
  return { sites, group, workload, keeper: all(keepers), watch: checks, mover };
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
  };
}
