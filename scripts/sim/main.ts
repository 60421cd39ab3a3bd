// `npm run sim`: runs the simulator over a range of seeds, on several processes. A run that fails is
// made shorter, and its seed and the command that replays it are printed; then the rest goes on.
//
//   npm run sim -- --seeds 1000 [--from 1] [--minutes 30] [--subject replica|node] [--jobs 2]
//   npm run sim -- --seed 123 [--only 3,7] [--clients 1] [--until 4000] [--trace] [--mutant name]
//   npm run sim -- --mutants [--seeds 1000]

import { parseArgs } from 'node:util';
import { MUTANTS, mutantNamed } from '../../test/sim/mutants.ts';
import type { Cuts } from '../../test/sim/run/cuts.ts';
import { isSubjectName, type SubjectName } from '../../test/sim/run/run-options.ts';
import { hunt } from './hunt.ts';
import { Pool } from './pool.ts';
import { replay } from './replay.ts';
import { sweep } from './sweep.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    subject: { type: 'string', default: 'replica' },
    jobs: { type: 'string', default: '2' },
    seed: { type: 'string' },
    only: { type: 'string' },
    clients: { type: 'string' },
    until: { type: 'string' },
    trace: { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false },
    mutant: { type: 'string' },
  },
});

const subject = subjectNamed(values.subject);

if (values.seed === undefined) {
  const pool = new Pool(number(values.jobs));
  try {
    const from = number(values.from);
    const count = number(values.seeds);
    const minutes = values.minutes === undefined ? undefined : number(values.minutes);
    const isSound = values.mutants
      ? await hunt(pool, { mutants: MUTANTS, from, count })
      : await sweep(pool, { subject, from, count, minutes });
    process.exitCode = isSound ? 0 : 1;
  } finally {
    pool.close();
  }
} else {
  const mutant = values.mutant === undefined ? undefined : mutantNamed(values.mutant);
  const isSound = await replay({
    seed: number(values.seed),
    subject,
    cuts: cutsOf(values),
    mutant,
    isTraced: values.trace,
  });
  process.exitCode = isSound ? 0 : 1;
}

function cutsOf({
  only,
  clients,
  until,
}: {
  readonly only?: string | undefined;
  readonly clients?: string | undefined;
  readonly until?: string | undefined;
}): Cuts {
  return {
    ...(only !== undefined && { only: only === 'none' ? [] : only.split(',').map(number) }),
    ...(clients !== undefined && { clientCount: number(clients) }),
    ...(until !== undefined && { safetyMs: number(until) }),
  };
}

function number(text: string): number {
  const found = Number(text);
  if (!Number.isSafeInteger(found) || found < 0) throw new Error(`${text} is no whole number`);
  return found;
}

function subjectNamed(name: string): SubjectName {
  if (isSubjectName(name)) return name;
  throw new Error(`there is no subject ${name}: it is replica or node`);
}
