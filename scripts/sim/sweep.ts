// Runs a range of seeds, and reports what they found. Every hundredth seed runs twice.

import { EXPECTED_MARKS } from '../../test/sim/marks.ts';
import { describeFault } from '../../test/sim/faults/fault-plan.ts';
import { cut, describeCuts } from '../../test/sim/run/cuts.ts';
import { drawOptions, type SubjectName } from '../../test/sim/run/run-options.ts';
import { shrink } from '../../test/sim/run/shrink.ts';
import type { Pool } from './pool.ts';
import type { Task, TaskResult } from './tasks.ts';
import { Totals } from './totals.ts';

export interface SweepPlan {
  readonly subject: SubjectName;
  readonly from: number;
  readonly count: number;
  /** No seed is begun after that. */
  readonly minutes: number | undefined;
}

const TWICE_EVERY = 100;
const PROGRESS_EVERY_MS = 30_000;
/** After so many failures there is enough to do. */
const FAILURES_MAX = 10;

/** Resolves with whether nothing was found. */
export async function sweep(pool: Pool, plan: SweepPlan): Promise<boolean> {
  const { subject, from, count } = plan;
  console.log(`seeds ${from} to ${from + count - 1}, subject ${subject}, ${pool.size} processes`);
  const sweeping = new Sweep(pool, plan);
  await Promise.all(Array.from({ length: pool.size }, () => sweeping.work()));
  return sweeping.finish();
}

class Sweep {
  readonly #pool: Pool;
  readonly #plan: SweepPlan;
  readonly #totals = new Totals();
  readonly #startedAtMs = performance.now();
  #next: number;
  #failureCount = 0;
  #shownAtMs = 0;

  constructor(pool: Pool, plan: SweepPlan) {
    this.#pool = pool;
    this.#plan = plan;
    this.#next = plan.from;
  }

  async work(): Promise<void> {
    const { from, count } = this.#plan;
    while (this.#next < from + count && !this.#isTimeUp() && this.#failureCount < FAILURES_MAX) {
      const seed = this.#next;
      this.#next += 1;
      const result = await this.#pool.run(this.#taskOf(seed));
      this.#totals.add(result);
      await this.#judge(result);
      this.#showProgress();
    }
  }

  finish(): boolean {
    const elapsedMs = performance.now() - this.#startedAtMs;
    const { from } = this.#plan;
    console.log(`seeds ${from} to ${this.#next - 1}: ${this.#failureCount} failed`);
    const expected = EXPECTED_MARKS[this.#plan.subject];
    for (const line of this.#totals.lines(elapsedMs, expected)) console.log(line);
    return this.#failureCount === 0;
  }

  #taskOf(seed: number): Task {
    const { subject } = this.#plan;
    const isTwice = seed % TWICE_EVERY === 0;
    return { seed, subject, cuts: {}, mutant: undefined, isTwice, isTraced: false };
  }

  async #judge(result: TaskResult): Promise<void> {
    const { seed, hash, secondHash, violation } = result;
    if (secondHash !== undefined && secondHash !== hash) {
      this.#failureCount += 1;
      console.log(
        `seed ${seed}: two runs came to ${hash} and ${secondHash}: something is not simulated`,
      );
    }
    if (violation === undefined) return;
    this.#failureCount += 1;
    console.log(`seed ${seed} fails after ${Math.round(violation.atMs)} ms: ${violation.checker}`);
    console.log(indented(violation.says));
    const { subject } = this.#plan;
    const options = drawOptions(seed, subject);
    const shrunk = await shrink(options, result, async (cuts) =>
      this.#pool.run({ ...this.#taskOf(seed), isTwice: false, cuts }),
    );
    const left = cut(options, shrunk.cuts).plan.map(describeFault);
    console.log(
      `  shortest of ${shrunk.runCount} runs: ${shrunk.result.violation?.says.slice(0, 500)}`,
    );
    console.log(indented(left.join('\n')));
    const of = subject === 'replica' ? '' : ` --subject ${subject}`;
    console.log(`  npm run sim -- --seed ${seed}${of}${describeCuts(shrunk.cuts)} --trace`);
  }

  #isTimeUp(): boolean {
    const { minutes } = this.#plan;
    return minutes !== undefined && performance.now() - this.#startedAtMs > minutes * 60_000;
  }

  #showProgress(): void {
    const nowMs = performance.now();
    if (nowMs - this.#shownAtMs < PROGRESS_EVERY_MS) return;
    this.#shownAtMs = nowMs;
    const seconds = Math.round((nowMs - this.#startedAtMs) / 1000);
    console.log(`  ${this.#totals.runCount} runs in ${seconds} s, ${this.#failureCount} failed`);
  }
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');
}
