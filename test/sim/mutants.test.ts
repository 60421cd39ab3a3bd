// The simulator is as good as the bugs that it finds. The short form of `npm run sim -- --mutants`: each
// planted bug is looked for from a seed on that found it once, and must be found by a checker that it
// names.

import t from 'tap';
import { hunt } from '../../scripts/sim/hunt.ts';
import { Pool } from '../../scripts/sim/pool.ts';
import { Print } from '../../scripts/sim/print.ts';
import { MUTANTS } from './mutants/mutants.ts';

/** More than enough, also after the product has changed and its seeds run otherwise. */
const SEEDS_MAX = 150;

/** `--mutants` looks for all of them. */
const SHORT = MUTANTS.filter(({ isSlow = false }) => !isSlow);

const pool = new Pool(1);
t.teardown(() => pool.close());

for (const mutant of SHORT) {
  t.test(`mutants: ${mutant.name}, which means that ${mutant.breaks}`, async (t) => {
    const lines: string[] = [];
    const print = new Print((line) => lines.push(line));
    const plan = { mutants: [mutant], from: mutant.seed, count: SEEDS_MAX };
    const isFound = await hunt(pool, plan, print);
    t.ok(isFound, lines.join('\n'));
  });
}
