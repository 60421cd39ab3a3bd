// What a bad day is made of, and how its faults are written down.

import type { Fault, FaultAction } from './faults/fault-plan.ts';
import type { FederationOptions } from './run/run-options.ts';

export interface BadDay {
  readonly name: string;
  /** What must have happened, or the day was a good one. */
  readonly marks: readonly string[];
  /** How often, at least, by the counts of the run. */
  readonly least?: Readonly<Record<string, number>>;
  readonly siteSizes: readonly number[];
  /** Policies, and as many tokens; left out: what the seed drew. */
  readonly keyCount?: number;
  /** Between two questions of a client, at a mean; left out: 200. */
  readonly thinkMs?: number;
  /** Of the Raft groups; left out: what the seed drew. */
  readonly tickMs?: number;
  readonly federation?: Partial<FederationOptions>;
  readonly safetyMs: number;
  readonly faults: readonly Fault[];
}

export function at(atMs: number, forMs: number, action: FaultAction): Fault {
  return { atMs, forMs, action };
}
