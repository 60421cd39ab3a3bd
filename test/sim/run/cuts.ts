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
}

export function cut(options: RunOptions, cuts: Cuts): RunOptions {
  const { only, clientCount = options.clientCount, safetyMs = options.safetyMs } = cuts;
  const plan = options.plan.filter(
    ({ atMs }, place) => (only === undefined || only.includes(place)) && atMs < safetyMs,
  );
  const { keptCount, ...limits } = options.limits;
  const kept = cuts.keepsAll === true ? limits : options.limits;
  return { ...options, clientCount, safetyMs, plan, limits: kept };
}

/** As the command line takes them. */
export function describeCuts({ only, clientCount, safetyMs, keepsAll }: Cuts): string {
  return [
    only === undefined ? '' : ` --only ${only.length === 0 ? 'none' : only.join(',')}`,
    clientCount === undefined ? '' : ` --clients ${clientCount}`,
    safetyMs === undefined ? '' : ` --until ${Math.ceil(safetyMs)}`,
    keepsAll === true ? ' --keep-all' : '',
  ].join('');
}
