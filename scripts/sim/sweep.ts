// Runs a range of seeds, and reports what they found. Every hundredth seed runs twice.

import { EXPECTED_MARKS } from '../../test/sim/marks.ts';
import { drawOptions, type SubjectName } from '../../test/sim/run/run-options.ts';
import { shrink } from '../../test/sim/run/shrink.ts';
import type { Print } from './print.ts';
import type { Runner, Task, TaskResult } from './tasks.ts';
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
export async function sweep(runner: Runner, plan: SweepPlan, print: Print): Promise<boolean> {
  print.sweepBegins({ ...plan, jobCount: runner.size });
  const sweeping = new Sweep(runner, plan, print);
  await Promise.all(Array.from({ length: runner.size }, () => sweeping.work()));
  return sweeping.finish();
}

class Sweep {
  readonly #runner: Runner;
  readonly #plan: SweepPlan;
  readonly #print: Print;
  readonly #totals = new Totals();
  readonly #startedAtMs = performance.now();
  #next: number;
  #failureCount = 0;
  #shownAtMs = performance.now();

  constructor(runner: Runner, plan: SweepPlan, print: Print) {
    this.#runner = runner;
    this.#plan = plan;
    this.#print = print;
    this.#next = plan.from;
  }

  async work(): Promise<void> {
    const { from, count } = this.#plan;
    while (this.#next < from + count && !this.#isTimeUp() && this.#failureCount < FAILURES_MAX) {
      const seed = this.#next;
      this.#next += 1;
      const result = await this.#runner.run(this.#taskOf(seed));
      this.#totals.add(result);
      await this.#judge(result);
      this.#showProgress();
    }
  }

  finish(): boolean {
    const { from, subject } = this.#plan;
    this.#print.sweepEnds(this.#totals, this.#elapsedMs, {
      from,
      next: this.#next,
      failureCount: this.#failureCount,
      expectedMarks: EXPECTED_MARKS[subject],
    });
    return this.#failureCount === 0;
  }

  get #elapsedMs(): number {
    return performance.now() - this.#startedAtMs;
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
      this.#print.twoHashes(result);
    }
    if (violation === undefined) return;
    this.#failureCount += 1;
    this.#print.failed(result);
    const options = drawOptions(seed, this.#plan.subject);
    const shrunk = await shrink(options, result, async (cuts) =>
      this.#runner.run({ ...this.#taskOf(seed), isTwice: false, cuts }),
    );
    this.#print.shortest(options, shrunk);
  }

  #isTimeUp(): boolean {
    const { minutes } = this.#plan;
    return minutes !== undefined && this.#elapsedMs > minutes * 60_000;
  }

  #showProgress(): void {
    const nowMs = performance.now();
    if (nowMs - this.#shownAtMs < PROGRESS_EVERY_MS) return;
    this.#shownAtMs = nowMs;
    this.#print.progress(this.#totals, this.#elapsedMs, { failureCount: this.#failureCount });
  }
}
