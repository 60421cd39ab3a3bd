// Bad days between datacenters, each a run of its own: every checker is content, and what the day is about
// did happen.

import t from 'tap';
import { Pool } from '../../scripts/sim/pool.ts';
import { BAD_DAYS } from './bad-days.ts';

const SEED = 1;

const pool = new Pool(1);
t.teardown(() => pool.close());

for (const { name, marks, least = {} } of BAD_DAYS) {
  t.test(`bad days: ${name}`, async (t) => {
    const {
      violation,
      marks: hit,
      counts,
    } = await pool.run({
      ...{ seed: SEED, subject: 'datacenters', cuts: {}, badDay: name },
      ...{ mutant: undefined, isTwice: false, isTraced: false },
    });
    t.equal(violation, undefined, `npm run sim -- --seed ${SEED} --bad-day '${name}'`);
    for (const mark of marks) t.ok((hit[mark] ?? 0) > 0, mark);
    for (const [what, count] of Object.entries(least)) {
      t.ok((counts[what] ?? 0) >= count, `${what}: ${counts[what]} of ${count}`);
    }
  });
}
