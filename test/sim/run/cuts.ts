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
  /** No datacenter is removed, and none loses all its disks. */
  readonly hasNoExiles?: boolean;
  /** No archive is restored. */
  readonly hasNoRestores?: boolean;
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
        ...(cuts.areAllNew === true && { olderHosts: [] }),
      },
    }),
  };
}

/** As the command line takes them. */
export function describeCuts(cuts: Cuts): string {
  const { only, clientCount, safetyMs, keepsAll } = cuts;
  const { hasNoDeputies, hasNoExiles, hasNoRestores, areAllNew } = cuts;
  return [
    only === undefined ? '' : ` --only ${only.length === 0 ? 'none' : only.join(',')}`,
    clientCount === undefined ? '' : ` --clients ${clientCount}`,
    safetyMs === undefined ? '' : ` --until ${Math.ceil(safetyMs)}`,
    keepsAll === true ? ' --keep-all' : '',
    hasNoDeputies === true ? ' --no-deputies' : '',
    hasNoExiles === true ? ' --no-exiles' : '',
    hasNoRestores === true ? ' --no-restores' : '',
    areAllNew === true ? ' --all-new' : '',
  ].join('');
}
