// What many runs came to together.

import type { RunResult } from '../../test/sim/run/run-seed.ts';

export class Totals {
  runCount = 0;
  eventCount = 0;
  virtualMs = 0;
  /** How many of each kind were carried out. */
  readonly faults = new Map<string, number>();
  /** What clients did, and what became of the group. */
  readonly counts = new Map<string, number>();
  /** How often each corner was visited. */
  readonly marks = new Map<string, number>();

  add(result: RunResult): void {
    this.runCount += 1;
    this.eventCount += result.eventCount;
    this.virtualMs += result.virtualMs;
    addAll(this.faults, result.faultCounts);
    addAll(this.counts, result.counts);
    addAll(this.marks, result.marks);
  }
}

function addAll(sums: Map<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(more)) sums.set(name, (sums.get(name) ?? 0) + count);
}
