// What the simulator says to people, all of it: what it is about to do, a line of progress now and then,
// what it found with the shortest run that shows it, and what the runs had in them.

import { describeFault } from '../../test/sim/faults/fault-plan.ts';
import type { Mutant } from '../../test/sim/mutants/mutant.ts';
import { type Cuts, cut, describeCuts } from '../../test/sim/run/cuts.ts';
import type { RunOptions } from '../../test/sim/run/run-options.ts';
import type { RunResult } from '../../test/sim/run/run-seed.ts';
import type { Shrunk } from '../../test/sim/run/shrink.ts';
import type { TaskResult } from './tasks.ts';
import type { Totals } from './totals.ts';

/** Of what a checker says about the shortest run; the whole is a replay away. */
const SAID_MAX = 500;

export interface Found {
  readonly mutant: Mutant;
  /** Of those that the mutant names; undefined when no seed made any of them speak. */
  readonly checker: string | undefined;
  readonly seed: number | undefined;
  /** How many seeds were run up to that one. */
  readonly seedCount: number;
}

export class Print {
  readonly #say: (line: string) => void;

  constructor(say: (line: string) => void) {
    this.#say = say;
  }

  sweepBegins(what: { readonly from: number; readonly count: number } & Who): void {
    const { from, count, subject, jobCount } = what;
    this.#say(`seeds ${from} to ${from + count - 1}, subject ${subject}, ${processes(jobCount)}`);
  }

  progress(
    { runCount }: Totals,
    elapsedMs: number,
    { failureCount }: { readonly failureCount: number },
  ): void {
    const seconds = Math.round(elapsedMs / 1000);
    this.#say(`  ${runCount} runs in ${seconds} s, ${failureCount} failed`);
  }

  failed({ seed, violation }: RunResult): void {
    if (violation === undefined) return;
    const { checker, atMs, says } = violation;
    this.#say(`seed ${seed} fails after ${Math.round(atMs)} ms: ${checker}`);
    this.#say(indented(says));
  }

  twoHashes({ seed, hash, secondHash }: TaskResult): void {
    this.#say(`seed ${seed}: two runs came to ${hash} and ${secondHash}: not all is simulated`);
  }

  shortest(options: RunOptions, { cuts, result, runCount }: Shrunk): void {
    this.#say(`  shortest of ${runCount} runs: ${result.violation?.says.slice(0, SAID_MAX)}`);
    for (const fault of cut(options, cuts).plan) this.#say(`  ${describeFault(fault)}`);
    this.#say(`  ${replayCommand(options, cuts)}`);
  }

  sweepEnds(
    totals: Totals,
    elapsedMs: number,
    ended: {
      readonly from: number;
      readonly next: number;
      readonly failureCount: number;
      /** Marks that many runs should have hit. */
      readonly expectedMarks: readonly string[];
    },
  ): void {
    const { from, next, failureCount, expectedMarks } = ended;
    const { runCount, eventCount, virtualMs, faults, counts, marks } = totals;
    const minutes = (elapsedMs / 60_000).toFixed(1);
    const perSecond = ((runCount / elapsedMs) * 1000).toFixed(1);
    const missed = expectedMarks.filter((mark) => !marks.has(mark));
    this.#say(`seeds ${from} to ${next - 1}: ${failureCount} failed`);
    this.#say(
      `${runCount} runs, ${eventCount} events, ${Math.round(virtualMs / 60_000)} virtual minutes ` +
        `in ${minutes} minutes, ${perSecond} runs a second`,
    );
    this.#say(`faults: ${shown(faults)}`);
    this.#say(`clients and group: ${shown(counts)}`);
    this.#say(`marks: ${shown(marks)}`);
    this.#say(
      missed.length === 0 ? 'every expected mark was hit' : `not hit: ${missed.join('; ')}`,
    );
  }

  huntBegins(): void {
    this.#say('| mutant | what it breaks | found by | seed | seeds it took |');
    this.#say('|---|---|---|---|---|');
  }

  hunted({ mutant: { name, breaks }, checker, seed, seedCount }: Found): void {
    const took = seed === undefined ? `not in ${seedCount}` : seedCount;
    this.#say(`| ${name} | ${breaks} | ${checker ?? 'nobody'} | ${seed ?? '-'} | ${took} |`);
  }

  huntEnds(found: readonly Found[]): void {
    const caught = found.filter(({ seed }) => seed !== undefined);
    const most = Math.max(0, ...caught.map(({ seedCount }) => seedCount));
    this.#say(`${caught.length} of ${found.length} mutants found, each within ${most} seeds`);
  }

  replayBegins(whole: RunOptions, options: RunOptions): void {
    const { plan, ...drawn } = options;
    this.#say(`seed ${whole.seed}, subject ${whole.subject}`);
    this.#say(JSON.stringify(drawn));
    for (const fault of plan) {
      this.#say(`  ${whole.plan.indexOf(fault)}: ${describeFault(fault)}`);
    }
  }

  replayEnds(result: TaskResult): void {
    const { seed, violation, hash, secondHash, eventCount, lines, counts } = result;
    for (const line of lines) this.#say(line);
    this.#say(`counts: ${JSON.stringify(counts)}`);
    this.#say(`${eventCount} events, hash ${hash}, again ${secondHash}`);
    if (hash !== secondHash) this.twoHashes(result);
    if (violation === undefined) this.#say(`seed ${seed} is clean`);
    else this.failed(result);
  }
}

interface Who {
  readonly subject: string;
  readonly jobCount: number;
}

function processes(count: number): string {
  return count === 1 ? 'one process' : `${count} processes`;
}

function replayCommand({ seed, subject }: RunOptions, cuts: Cuts): string {
  const of = subject === 'replica' ? '' : ` --subject ${subject}`;
  return `npm run sim -- --seed ${seed}${of}${describeCuts(cuts)} --trace`;
}

function shown(sums: ReadonlyMap<string, number>): string {
  const sorted = [...sums].sort(([, left], [, right]) => right - left);
  return sorted.map(([name, count]) => `${name} ${count}`).join(', ');
}

function indented(text: string): string {
  return text
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n');
}
