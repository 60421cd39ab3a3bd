// Parts of a run taken away: fewer faults, fewer clients, an earlier end. What is left is the same run,
// so whatever still fails fails for what is left.

import type { RunOptions } from './run-options.ts';

export interface Cuts {
  /** Only these faults of the plan, by their places. */
  readonly only?: readonly number[];
  readonly clientCount?: number;
  /** When the faults end and the healing begins. */
  readonly safetyMs?: number;
}

export function cut(options: RunOptions, cuts: Cuts): RunOptions {
  const { only, clientCount = options.clientCount, safetyMs = options.safetyMs } = cuts;
  const plan = options.plan.filter(
    ({ atMs }, place) => (only === undefined || only.includes(place)) && atMs < safetyMs,
  );
  return { ...options, clientCount, safetyMs, plan };
}

/** As the command line takes them. */
export function describeCuts({ only, clientCount, safetyMs }: Cuts): string {
  return [
    only === undefined ? '' : ` --only ${only.length === 0 ? 'none' : only.join(',')}`,
    clientCount === undefined ? '' : ` --clients ${clientCount}`,
    safetyMs === undefined ? '' : ` --until ${Math.ceil(safetyMs)}`,
  ].join('');
}
