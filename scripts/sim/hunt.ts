// Runs every mutant over seeds until it is found often enough, and prints how many seeds that took.

import type { Mutant } from '../../test/sim/run/mutant.ts';
import type { Pool } from './pool.ts';

export interface HuntPlan {
  readonly mutants: readonly Mutant[];
  readonly from: number;
  /** A mutant that none of so many seeds finds is one that the simulator misses. */
  readonly count: number;
}

/** Findings after which a mutant's rate is known well enough. */
const FOUND_ENOUGH = 5;

/** Resolves with whether each one was found. */
export async function hunt(pool: Pool, { mutants, from, count }: HuntPlan): Promise<boolean> {
  console.log('| mutant | first found by seed | found in | by |');
  console.log('|---|---|---|---|');
  let missed = 0;
  for (const mutant of mutants) {
    const found = await findMutant(pool, mutant, from, count);
    if (found.seeds.length === 0) missed += 1;
    const rate = `${found.seeds.length} of ${found.runCount} seeds`;
    const by = [...found.checkers].join(', ');
    console.log(`| ${mutant.name} | ${found.seeds[0] ?? 'none'} | ${rate} | ${by} |`);
  }
  console.log(`${mutants.length - missed} of ${mutants.length} mutants found`);
  return missed === 0;
}

interface Found {
  readonly seeds: readonly number[];
  readonly checkers: ReadonlySet<string>;
  readonly runCount: number;
}

async function findMutant(
  pool: Pool,
  { name, subject }: Mutant,
  from: number,
  count: number,
): Promise<Found> {
  const seeds: number[] = [];
  const checkers = new Set<string>();
  let runCount = 0;
  let next = from;
  const work = async (): Promise<void> => {
    while (next < from + count && seeds.length < FOUND_ENOUGH) {
      const seed = next;
      next += 1;
      const task = { seed, subject, cuts: {}, mutant: name, isTwice: false, isTraced: false };
      const { violation } = await pool.run(task);
      runCount += 1;
      if (violation === undefined) continue;
      seeds.push(seed);
      checkers.add(violation.checker);
    }
  };
  await Promise.all(Array.from({ length: pool.size }, work));
  return { seeds: seeds.sort((left, right) => left - right), checkers, runCount };
}
