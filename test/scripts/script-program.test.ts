// What a script answers to options that it does not know, and to values that are none.

import { execFile } from 'node:child_process';
import { join } from 'node:path';
import t from 'tap';

const SCRIPTS = join(import.meta.dirname, '..', '..', 'scripts');

interface Ending {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

function run(script: string, ...options: string[]): Promise<Ending> {
  return new Promise((resolve) => {
    const file = join(SCRIPTS, script, 'main.js');
    execFile(process.execPath, [file, ...options], (error, out, err) => {
      resolve({ status: error === null ? 0 : Number(error.code), out, err });
    });
  });
}

const REFUSED: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['soak', ['--minuts', '3'], /unknown option '--minuts'\n\(Did you mean --minutes\?\)/],
  [
    'soak',
    ['--minutes', 'ten'],
    /'--minutes <count>' argument 'ten' is invalid. ten is no whole number/,
  ],
  ['soak', ['--primary-away', '5'], /--primary-away needs two datacenters or more/],
  ['system-tests', ['--round', '1'], /unknown option '--round'/],
  ['bench', ['--datacenters', '3'], /knows one datacenter, or two/],
  ['bench', ['--sizes', '10,x'], /x is no whole number/],
  ['cluster', ['delay', 'dc1', 'dc2', 'ten'], /'ten' is invalid for argument 'ms'/],
  ['sim', ['--subject', 'raft'], /There is no subject raft/],
  ['sim', ['--seeds', '9-3'], /9-3 is no range of seeds/],
  ['sim', ['--mutant', 'none'], /there is no mutant none; there are /],
  ['sim', ['--mutant', 'removed-is-served'], /--mutant needs --seed or --mutants/],
  ['sim', ['--seed', '1', '--bad-day', 'none'], /there is no bad day none; there are /],
  ['sim', ['--bad-day', 'two datacenters are promoted at once'], /--bad-day needs --seed/],
  ['sim', ['--no-exiles'], /--no-exiles needs --seed/],
  ['sim', ['--seed', '1', '--seeds', '5'], /--seeds contradicts --seed/],
  ['sim', ['--seed', '1', '--from', '1'], /--from contradicts --seed/],
  ['sim', ['--seed', '1', '--minutes', '1'], /--minutes contradicts --seed/],
  ['sim', ['--seed', '1', '--jobs', '1'], /--jobs contradicts --seed/],
  ['sim', ['--seed', '1', '--mutants'], /--mutants contradicts --seed/],
  ['sim', ['--seeds', '3-9', '--from', '3'], /--from contradicts a range of --seeds/],
  ['sim', ['--mutants', '--subject', 'node'], /--subject contradicts --mutants/],
  ['sim', ['--mutants', '--minutes', '1'], /--minutes contradicts --mutants/],
];

t.test('scripts: name the option that they refuse, and do nothing', async (t) => {
  for (const [script, options, says] of REFUSED) {
    const { status, out, err } = await run(script, ...options);
    t.match(err, says, `${script} ${options.join(' ')}`);
    t.match(err, /`npm run [a-z:]+ -- --help` says more/);
    t.same([status, out], [2, '']);
  }
});

t.test('scripts: help lists the options with what they mean', async (t) => {
  for (const script of ['soak', 'system-tests', 'bench', 'sim']) {
    const { status, out } = await run(script, '--help');
    t.equal(status, 0);
    t.match(out, /^Usage: npm run [a-z:]+ -- \[options\]\n/);
    t.match(out, /\n {2}--(seed|servers) /);
  }
});
