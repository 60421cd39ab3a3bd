// Days of the same kind, one after the other, until the faults of a run are to end.

import type { Fault } from './fault-plan.ts';

export interface Day {
  readonly faults: readonly Fault[];
  /** When the next one may begin. */
  readonly nextMs: number;
}

/** What begins before `safetyMs` of days that are drawn from `firstMs` on. */
export function drawDays(
  { firstMs, safetyMs }: { readonly firstMs: number; readonly safetyMs: number },
  drawDay: (atMs: number) => Day,
): readonly Fault[] {
  const faults: Fault[] = [];
  let atMs = firstMs;
  while (atMs < safetyMs) {
    const day = drawDay(atMs);
    faults.push(...day.faults);
    atMs = day.nextMs;
  }
  return faults.filter((fault) => fault.atMs < safetyMs);
}
