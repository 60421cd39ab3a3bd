// What many runs came to together, as lines for people.

import type { RunResult } from '../../test/sim/run/run-seed.ts';

export class Totals {
  runCount = 0;
  eventCount = 0;
  virtualMs = 0;
  readonly #faults = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  readonly #marks = new Map<string, number>();

  add(result: RunResult): void {
    this.runCount += 1;
    this.eventCount += result.eventCount;
    this.virtualMs += result.virtualMs;
    addAll(this.#faults, result.faultCounts);
    addAll(this.#counts, result.counts);
    addAll(this.#marks, result.marks);
  }

  /** `expected` are marks that many runs should have hit. */
  lines(elapsedMs: number, expected: readonly string[]): readonly string[] {
    const perSecond = (this.runCount / elapsedMs) * 1000;
    const missed = expected.filter((mark) => !this.#marks.has(mark));
    return [
      `${this.runCount} runs, ${this.eventCount} events, ${Math.round(this.virtualMs / 60_000)} virtual minutes ` +
        `in ${(elapsedMs / 60_000).toFixed(1)} minutes, ${perSecond.toFixed(1)} runs a second`,
      `faults: ${shown(this.#faults)}`,
      `clients and group: ${shown(this.#counts)}`,
      `marks: ${shown(this.#marks)}`,
      missed.length === 0 ? 'every expected mark was hit' : `not hit: ${missed.join('; ')}`,
    ];
  }
}

function addAll(sums: Map<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, count] of Object.entries(more)) sums.set(name, (sums.get(name) ?? 0) + count);
}

function shown(sums: ReadonlyMap<string, number>): string {
  const sorted = [...sums].sort(([, left], [, right]) => right - left);
  return sorted.map(([name, count]) => `${name} ${count}`).join(', ');
}
