// Runs every mutant over seeds until a checker that it names finds it, and tells how many that took.

import type { Mutant } from '../../test/sim/mutants/mutant.ts';
import type { Found, Print } from './print.ts';
import type { Runner } from './tasks.ts';

export interface HuntPlan {
  readonly mutants: readonly Mutant[];
  readonly from: number;
  /** A mutant that none of so many seeds finds is one that the simulator misses. */
  readonly count: number;
}

/** Resolves with whether each one was found. */
export async function hunt(runner: Runner, plan: HuntPlan, print: Print): Promise<boolean> {
  print.huntBegins();
  const all: Found[] = [];
  for (const mutant of plan.mutants) {
    const found = await findMutant(runner, mutant, plan);
    print.hunted(found);
    all.push(found);
  }
  print.huntEnds(all);
  return all.every(({ seed }) => seed !== undefined);
}

/** Seeds are begun in their order, so the lowest that found it does not depend on how many run at once. */
async function findMutant(
  runner: Runner,
  mutant: Mutant,
  { from, count }: Pick<HuntPlan, 'from' | 'count'>,
): Promise<Found> {
  const { name, subject, foundBy, badDay } = mutant;
  const findings: { readonly seed: number; readonly checker: string }[] = [];
  let next = from;
  const work = async (): Promise<void> => {
    while (next < from + count && findings.length === 0) {
      const seed = next;
      next += 1;
      const how = { mutant: name, badDay, isTwice: false, isTraced: false };
      const { violation } = await runner.run({ seed, subject, cuts: {}, ...how });
      if (violation === undefined || !foundBy.includes(violation.checker)) continue;
      findings.push({ seed, checker: violation.checker });
    }
  };
  await Promise.all(Array.from({ length: runner.size }, work));
  const [lowest] = findings.sort((left, right) => left.seed - right.seed);
  const { seed, checker } = lowest ?? {};
  return { mutant, seed, checker, seedCount: seed === undefined ? count : seed - from + 1 };
}
