// Parts of a run taken away: fewer faults, fewer clients, an earlier end, no snapshots. What is left is the
// same run, so whatever still fails fails for what is left.

import type { RunOptions } from './run-options.ts';

export interface Cuts {
  /** Only these faults of the plan, by their places. */
  readonly only?: readonly number[];
  readonly clientCount?: number;
  /** When the faults end and the healing begins. */
  readonly safetyMs?: number;
  /** Servers keep all entries, so that nobody of a group is sent a snapshot. */
  readonly keepsAll?: boolean;
  /** Nobody writes whose right to it comes and goes. */
  readonly hasNoDeputies?: boolean;
  /** No roles come and go, and no objects are in namespaces that do. */
  readonly hasNoGrants?: boolean;
  /** No local tokens and logins link to what others write. */
  readonly hasNoLocalRights?: boolean;
  /** No local tokens are changed. */
  readonly hasNoChangedTokens?: boolean;
  /** No datacenter is removed, and none loses all its disks. */
  readonly hasNoExiles?: boolean;
  /** No archive is restored. */
  readonly hasNoRestores?: boolean;
  /** No forks are made on purpose, and nobody settles what forks leave. */
  readonly hasNoForks?: boolean;
  /** No disks are put back. */
  readonly hasNoPutBacks?: boolean;
  /** No disks are put back while others are away, nor those of two datacenters at once. */
  readonly hasNoAbsences?: boolean;
  /** No datacenter is removed by force while the primary is moved. */
  readonly hasNoRushes?: boolean;
  /** No archive is restored that is none of this federation. */
  readonly hasNoForeigners?: boolean;
  /** No two datacenters are removed by force at once. */
  readonly hasNoPairs?: boolean;
  /** No server is of an older release at first. */
  readonly areAllNew?: boolean;
}

export function cut(options: RunOptions, cuts: Cuts): RunOptions {
  const { only, clientCount = options.clientCount, safetyMs = options.safetyMs } = cuts;
  const plan = options.plan.filter(
    ({ atMs, of }, place) =>
      (only === undefined || only.includes(place)) &&
      atMs < safetyMs &&
      !(of === 'exile' && cuts.hasNoExiles === true) &&
      !(of === 'restore' && cuts.hasNoRestores === true) &&
      !(of === 'fork' && cuts.hasNoForks === true) &&
      !(of === 'put-back' && cuts.hasNoPutBacks === true) &&
      !(of === 'absence' && cuts.hasNoAbsences === true) &&
      !(of === 'rush' && cuts.hasNoRushes === true) &&
      !(of === 'foreign' && cuts.hasNoForeigners === true) &&
      !(of === 'pair' && cuts.hasNoPairs === true) &&
      !(of === 'upgrade' && cuts.areAllNew === true),
  );
  const { keptCount, ...limits } = options.limits;
  const kept = cuts.keepsAll === true ? limits : options.limits;
  const { federation } = options;
  return {
    ...{ ...options, clientCount, safetyMs, plan, limits: kept },
    ...(federation !== undefined && {
      federation: {
        ...federation,
        ...(cuts.hasNoDeputies === true && { hasDeputies: false }),
        ...(cuts.hasNoGrants === true && { hasGrants: false }),
        ...(cuts.hasNoLocalRights === true && { hasLocalRights: false }),
        ...(cuts.hasNoChangedTokens === true && { hasChangedTokens: false }),
        ...(cuts.hasNoForks === true && { settlesForks: false }),
        ...(cuts.areAllNew === true && { olderHosts: [] }),
      },
    }),
  };
}

/** As the command line takes them. */
export function describeCuts(cuts: Cuts): string {
  const { only, clientCount, safetyMs, keepsAll } = cuts;
  const {
    hasNoDeputies,
    hasNoGrants,
    hasNoLocalRights,
    hasNoChangedTokens,
    hasNoExiles,
    hasNoRestores,
    hasNoForks,
    hasNoPutBacks,
    hasNoAbsences,
    hasNoRushes,
    hasNoForeigners,
    hasNoPairs,
    areAllNew,
  } = cuts;
  return [
    only === undefined ? '' : ` --only ${only.length === 0 ? 'none' : only.join(',')}`,
    clientCount === undefined ? '' : ` --clients ${clientCount}`,
    safetyMs === undefined ? '' : ` --until ${Math.ceil(safetyMs)}`,
    keepsAll === true ? ' --keep-all' : '',
    hasNoDeputies === true ? ' --no-deputies' : '',
    hasNoGrants === true ? ' --no-grants' : '',
    hasNoLocalRights === true ? ' --no-local-rights' : '',
    hasNoChangedTokens === true ? ' --no-changed-tokens' : '',
    hasNoExiles === true ? ' --no-exiles' : '',
    hasNoRestores === true ? ' --no-restores' : '',
    hasNoForks === true ? ' --no-forks' : '',
    hasNoPutBacks === true ? ' --no-put-backs' : '',
    hasNoAbsences === true ? ' --no-absences' : '',
    hasNoRushes === true ? ' --no-rushes' : '',
    hasNoForeigners === true ? ' --no-foreigners' : '',
    hasNoPairs === true ? ' --no-pairs' : '',
    areAllNew === true ? ' --all-new' : '',
  ].join('');
}
