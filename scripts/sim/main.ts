// `npm run sim`: the simulator at the command line.

import { InvalidArgumentError } from 'commander';
import { badDayNamed } from '../../test/sim/bad-days.ts';
import type { Mutant } from '../../test/sim/mutants/mutant.ts';
import { MUTANTS, mutantNamed } from '../../test/sim/mutants/mutants.ts';
import type { Cuts } from '../../test/sim/run/cuts.ts';
import { isSubjectName, SUBJECT_NAMES, type SubjectName } from '../../test/sim/run/run-options.ts';
import { scriptProgram, wholeNumber, wholeNumbers } from '../script-program.ts';
import { hunt } from './hunt.ts';
import { Pool } from './pool.ts';
import { Print } from './print.ts';
import { replay } from './replay.ts';
import { type SeedRange, seedRange } from './seed-range.ts';
import { sweep } from './sweep.ts';

interface Options {
  readonly seeds?: Partial<SeedRange> & Pick<SeedRange, 'count'>;
  readonly from: number;
  readonly minutes?: number;
  readonly subject: SubjectName;
  readonly jobs: number;
  readonly seed?: number;
  readonly only?: readonly number[];
  readonly clients?: number;
  readonly until?: number;
  readonly keepAll?: true;
  readonly deputies: boolean;
  readonly grants: boolean;
  readonly localRights: boolean;
  readonly changedTokens: boolean;
  readonly exiles: boolean;
  readonly restores: boolean;
  readonly forks: boolean;
  readonly putBacks: boolean;
  readonly absences: boolean;
  readonly rushes: boolean;
  readonly foreigners: boolean;
  readonly pairs: boolean;
  readonly allNew?: true;
  readonly trace?: true;
  readonly mutants?: true;
  readonly mutant?: Mutant;
  readonly badDay?: string;
}

const program = scriptProgram(
  'npm run sim --',
  'Runs the simulator over a range of seeds, on several processes. A run that fails is made shorter, and its seed and the command that replays it are printed; then the rest goes on.',
)
  .option(
    '--seeds <seeds>',
    'so many (default: 1000), or from one through another (5001-6000)',
    seedRange,
  )
  .option('--from <seed>', 'the first of so many', wholeNumber, 1)
  .option('--minutes <count>', 'begins no other run after so long', wholeNumber)
  .option('--subject <name>', SUBJECT_NAMES.join(', '), subjectNamed, 'replica')
  .option('--jobs <count>', 'processes', wholeNumber, 2)
  .option('--seed <seed>', 'one run again', wholeNumber)
  .option(
    '--only <faults>',
    'with --seed: these faults of it alone, by number, or none',
    faultsNamed,
  )
  .option('--clients <count>', 'with --seed: so many clients', wholeNumber)
  .option('--until <ms>', 'with --seed: faults end here, in virtual milliseconds', wholeNumber)
  .option('--keep-all', 'with --seed: servers keep all entries of their logs')
  .option('--no-deputies', 'with --seed: nobody writes whose right to it comes and goes')
  .option('--no-grants', 'with --seed: no roles come and go, nor namespaces with what is in them')
  .option('--no-local-rights', 'with --seed: no local tokens link to what others write')
  .option('--no-changed-tokens', 'with --seed: no local tokens are changed')
  .option('--no-exiles', 'with --seed: no datacenter is removed, and none loses all its disks')
  .option('--no-restores', 'with --seed: no archive is restored')
  .option('--no-forks', 'with --seed: no forks are made on purpose, and nobody settles them')
  .option('--no-put-backs', 'with --seed: no disks of datacenters are put back')
  .option(
    '--no-absences',
    'with --seed: no disks are put back while others are away, nor of two datacenters at once',
  )
  .option('--no-rushes', 'with --seed: no datacenter is removed by force while the primary moves')
  .option('--no-foreigners', 'with --seed: no archive is restored that is none of this federation')
  .option('--no-pairs', 'with --seed: no two datacenters are removed by force at once')
  .option('--all-new', 'with --seed: no server is of an older release at first')
  .option('--trace', 'with --seed: prints what happens')
  .option(
    '--bad-day <name>',
    'with --seed: a written day of several datacenters instead of drawn faults',
    badDayAsked,
  )
  .option('--mutants', 'plants one bug after the other and counts the seeds until it is caught')
  .option('--mutant <name>', 'with --seed or --mutants: this bug alone', mutantAsked)
  .parse();
/** What is said of one run alone, and would be passed over in many. */
const OF_ONE_RUN: readonly string[] = [
  ...[
    'only',
    'clients',
    'until',
    'keepAll',
    'deputies',
    'grants',
    'localRights',
    'changedTokens',
    'exiles',
    'restores',
    'forks',
    'putBacks',
    'absences',
    'rushes',
    'foreigners',
    'pairs',
    'allNew',
  ],
  ...['trace', 'badDay'],
];
/** What is said of many, and would be passed over in one. */
const OF_MANY_RUNS: readonly string[] = ['seeds', 'from', 'minutes', 'jobs', 'mutants'];
/** What a hunt for planted bugs decides by itself: each has the subject that shows it. */
const OF_A_SWEEP: readonly string[] = ['minutes', 'subject'];
const options = program.opts<Options>();
refuseIdleOptions();

const print = new Print((line) => void process.stdout.write(`${line}\n`));
const { subject, mutant, seed } = options;
const badDay = options.badDay ?? mutant?.badDay;
const isSound =
  seed === undefined
    ? await overSeeds({ from: options.from, ...(options.seeds ?? { count: 1_000 }) })
    : await replay(
        {
          seed,
          subject: badDay === undefined ? (mutant?.subject ?? subject) : 'datacenters',
          cuts: cutsOf(options),
          mutant,
          badDay,
          isTraced: options.trace === true,
        },
        print,
      );
process.exitCode = isSound ? 0 : 1;

/** Ends the process where an option would do nothing. */
function refuseIdleOptions(): void {
  const isOfOne = options.seed !== undefined;
  const isHunt = options.mutants !== undefined;
  refuseGiven(isOfOne ? OF_MANY_RUNS : OF_ONE_RUN, isOfOne ? 'contradicts --seed' : 'needs --seed');
  if (isHunt) refuseGiven(OF_A_SWEEP, 'contradicts --mutants');
  if (options.seeds?.from !== undefined) refuseGiven(['from'], 'contradicts a range of --seeds');
  if (options.mutant !== undefined && !isOfOne && !isHunt)
    program.error('error: --mutant needs --seed or --mutants');
}

function refuseGiven(names: readonly string[], why: string): void {
  for (const option of program.options) {
    const name = option.attributeName();
    const isGiven = program.getOptionValueSource(name) === 'cli';
    if (isGiven && names.includes(name)) program.error(`error: ${option.long} ${why}`);
  }
}

async function overSeeds(range: SeedRange): Promise<boolean> {
  const { jobs, minutes } = options;
  const pool = new Pool(jobs);
  const mutants = mutant === undefined ? MUTANTS : [mutant];
  try {
    return options.mutants
      ? await hunt(pool, { mutants, ...range }, print)
      : await sweep(pool, { subject, minutes, ...range }, print);
  } finally {
    pool.close();
  }
}

function cutsOf(asked: Options): Cuts {
  const {
    only,
    clients,
    until,
    keepAll,
    deputies,
    grants,
    localRights,
    changedTokens,
    exiles,
    restores,
    forks,
    putBacks,
    absences,
    rushes,
    foreigners,
    pairs,
    allNew,
  } = asked;
  return {
    ...(only !== undefined && { only }),
    ...(clients !== undefined && { clientCount: clients }),
    ...(until !== undefined && { safetyMs: until }),
    ...(keepAll === true && { keepsAll: true }),
    ...(!deputies && { hasNoDeputies: true }),
    ...(!grants && { hasNoGrants: true }),
    ...(!localRights && { hasNoLocalRights: true }),
    ...(!changedTokens && { hasNoChangedTokens: true }),
    ...(!exiles && { hasNoExiles: true }),
    ...(!restores && { hasNoRestores: true }),
    ...(!forks && { hasNoForks: true }),
    ...(!putBacks && { hasNoPutBacks: true }),
    ...(!absences && { hasNoAbsences: true }),
    ...(!rushes && { hasNoRushes: true }),
    ...(!foreigners && { hasNoForeigners: true }),
    ...(!pairs && { hasNoPairs: true }),
    ...(allNew === true && { areAllNew: true }),
  };
}

function faultsNamed(text: string): readonly number[] {
  return text === 'none' ? [] : wholeNumbers(text);
}

function subjectNamed(name: string): SubjectName {
  if (isSubjectName(name)) return name;
  throw new InvalidArgumentError(`There is no subject ${name}.`);
}

function mutantAsked(name: string): Mutant {
  return found(() => mutantNamed(name));
}

function badDayAsked(name: string): string {
  return found(() => badDayNamed(name)).name;
}

function found<Found>(named: () => Found): Found {
  try {
    return named();
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}
