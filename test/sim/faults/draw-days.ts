// Days of the same kind, one after the other, until the faults of a run are to end.

import type { Stream } from '../world/stream.ts';
import type { PlanFrame } from './draw-plan.ts';
import type { Fault } from './fault-plan.ts';

export interface Day {
  readonly faults: readonly Fault[];
  /** When the next one may begin. */
  readonly nextMs: number;
}

/** Draws days that need nothing but to know how many datacenters there are; the first one within these bounds. */
export function daysOf(
  first: { readonly leastMs: number; readonly spreadMs: number },
  drawDay: (stream: Stream, atMs: number, siteCount: number) => Day,
): (stream: Stream, frame: Pick<PlanFrame, 'siteCount' | 'safetyMs'>) => readonly Fault[] {
  return (stream, { siteCount, safetyMs }) => {
    const firstMs = first.leastMs + stream.between(0, first.spreadMs);
    return drawDays({ firstMs, safetyMs }, (atMs) => drawDay(stream, atMs, siteCount));
  };
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
