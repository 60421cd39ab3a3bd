// `npm run sim`: runs the simulator over a range of seeds, on several processes. A run that fails is
// made shorter, and its seed and the command that replays it are printed; then the rest goes on.
//
//   npm run sim -- --seeds 1000 [--from 1] [--minutes 30] [--subject replica|node|datacenters] [--jobs 2]
//   npm run sim -- --seeds 5001-6000
//   npm run sim -- --seed 123 [--only 3,7] [--clients 1] [--until 4000] [--trace] [--mutant name]
//   npm run sim -- --seed 1 --bad-day 'two datacenters are promoted at once'
//   npm run sim -- --mutants [--mutant name] [--seeds 1000]

import { parseArgs } from 'node:util';
import { MUTANTS, mutantNamed } from '../../test/sim/mutants/mutants.ts';
import type { Cuts } from '../../test/sim/run/cuts.ts';
import { isSubjectName, SUBJECT_NAMES, type SubjectName } from '../../test/sim/run/run-options.ts';
import { hunt } from './hunt.ts';
import { Pool } from './pool.ts';
import { Print } from './print.ts';
import { replay } from './replay.ts';
import { type SeedRange, seedRange } from './seed-range.ts';
import { sweep } from './sweep.ts';
import { wholeNumber } from './whole-number.ts';

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
    'bad-day': { type: 'string' },
  },
});

const print = new Print((line) => void process.stdout.write(`${line}\n`));
const subject = subjectNamed(values.subject);
const mutant = values.mutant === undefined ? undefined : mutantNamed(values.mutant);
const badDay = values['bad-day'] ?? mutant?.badDay;
const isSound =
  values.seed === undefined
    ? await overSeeds(seedRange(values.seeds, wholeNumber(values.from)))
    : await replay(
        {
          seed: wholeNumber(values.seed),
          subject: badDay === undefined ? (mutant?.subject ?? subject) : 'datacenters',
          cuts: cutsOf(values),
          mutant,
          badDay,
          isTraced: values.trace,
        },
        print,
      );
process.exitCode = isSound ? 0 : 1;

async function overSeeds(range: SeedRange): Promise<boolean> {
  const pool = new Pool(wholeNumber(values.jobs));
  const minutes = values.minutes === undefined ? undefined : wholeNumber(values.minutes);
  const mutants = mutant === undefined ? MUTANTS : [mutant];
  try {
    return values.mutants
      ? await hunt(pool, { mutants, ...range }, print)
      : await sweep(pool, { subject, minutes, ...range }, print);
  } finally {
    pool.close();
  }
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
    ...(only !== undefined && { only: only === 'none' ? [] : only.split(',').map(wholeNumber) }),
    ...(clients !== undefined && { clientCount: wholeNumber(clients) }),
    ...(until !== undefined && { safetyMs: wholeNumber(until) }),
  };
}

function subjectNamed(name: string): SubjectName {
  if (isSubjectName(name)) return name;
  throw new Error(`there is no subject ${name}: there are ${SUBJECT_NAMES.join(', ')}`);
}
