// What `npm test` makes of the ways in which a test file can end.

import { execFile, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { runFile } from '../../scripts/tests/run-file.ts';
import { until } from '../support/running/running-group.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'scripts', 'tests', 'main.js');
const TAP = `import t from ${JSON.stringify(import.meta.resolve('tap'))};\n`;
const PASSES = `${TAP}t.test('one', (t) => { t.ok(1); t.ok(2); t.end(); });`;
const SKIPS = `${TAP}t.test('needs root', { skip: 'no root here' }, () => undefined);`;
const FAILS = `${TAP}t.pass('one'); t.fail('the other');`;
const LEAVES = `${TAP}t.test('one', (t) => { t.pass('one'); process.exit(0); });`;
const IS_BUSY = 'for (;;) ;';

/** What tap would have said, said at once: a start of tap costs more than all that is tested with these. */
const SAYS_PASSED = `console.log('ok 1\\nok 2\\n1..2\\n# { total: 2, pass: 2 }');`;
const SAYS_FAILED = `console.log('ok 1\\nnot ok 2 - the other\\n1..2\\n# { total: 2, pass: 1, fail: 1 }');`;
const SAYS_SKIPPED = `console.log('ok 1 - needs root # SKIP no root here\\n# { total: 1, pass: 0, skip: 1 }');`;
/** One that ends by itself if it must, and that has what this one prints to. */
const LEAVES_A_PROCESS = `import { spawn } from 'node:child_process';
const left = spawn('sleep', ['60'], { stdio: 'inherit', detached: true });
left.unref();
console.log('left ' + left.pid);
${SAYS_PASSED}`;
/** One that would outlive its file, which ends it when it is told to stop, and not at once. */
const STARTS_A_PROCESS = `import { spawn } from 'node:child_process';
import { renameSync, writeFileSync } from 'node:fs';
import { endWithProcess } from ${JSON.stringify(import.meta.resolve('../../scripts/exit-at-signals.js'))};
const started = spawn('sleep', ['60'], { stdio: 'ignore', detached: true });
endWithProcess(started);
const file = import.meta.dirname + '/started';
writeFileSync(file + '.unfinished', String(started.pid));
renameSync(file + '.unfinished', file);
process.on('SIGTERM', () => setTimeout(() => process.exit(143), 500));`;
/** Fails the first time, and passes when it is run once more. */
const IS_DISTURBED = `import { existsSync, writeFileSync } from 'node:fs';
const mark = import.meta.filename + '.ran';
if (existsSync(mark)) ${SAYS_PASSED}
else ${SAYS_FAILED}
writeFileSync(mark, '');`;

const atOnce = { timeoutSeconds: 1, graceSeconds: 0 };

const ENDINGS: readonly (readonly [string, string, RegExp | undefined, number])[] = [
  ['passes', PASSES, undefined, 2],
  ['skips', SKIPS, undefined, 0],
  ['fails', FAILS, /^1 failed$/, 1],
  ['leaves in the middle', LEAVES, /failed|ended/, 1],
  ['throws before its first test', `throw new Error('no');`, /^ended with status 1$/, 0],
  ['throws behind its last test', `${PASSES}\nprocess.exitCode = 3;`, /^ended with status 3$/, 2],
  ['is killed', `process.kill(process.pid, 'SIGKILL');`, /^ended with SIGKILL$/, 0],
  ['says nothing', '', /^ended before its tests did$/, 0],
  ['tests nothing', `${TAP}t.end();`, /^tested nothing$/, 0],
  ['is a plan without tests', `${TAP}t.plan(2); t.pass('one');`, /failed|ended/, 1],
];

t.test(
  'tests: a file has passed when its tests came to their end and all of them passed',
  async (t) => {
    const folder = t.testdir(
      Object.fromEntries(ENDINGS.map(([, text], at) => [`${at}.test.mjs`, text])),
    );
    for (const [at, [name, , fault, passed]] of ENDINGS.entries()) {
      const result = await runFile(join(folder, `${at}.test.mjs`), { timeoutSeconds: 60 });
      if (fault === undefined) t.equal(result.fault, undefined, name);
      else t.match(result.fault, fault, name);
      t.equal(result.counts.passed, passed, name);
    }
  },
);

t.test('tests: a file that is too busy to hear of its timeout is killed', async (t) => {
  const folder = t.testdir({ 'busy.test.mjs': IS_BUSY });
  const { fault } = await runFile(join(folder, 'busy.test.mjs'), atOnce);
  t.equal(fault, 'ended with SIGKILL');
});

t.test('tests: a file that leaves a process behind does not keep the run', async (t) => {
  const folder = t.testdir({ 'leaves.test.mjs': LEAVES_A_PROCESS });
  const { fault, output } = await runFile(join(folder, 'leaves.test.mjs'), atOnce);
  t.equal(fault, 'left a process behind that has its output');
  process.kill(Number(/^left (\d+)$/m.exec(output)?.[1]), 'SIGKILL');
});

t.test('tests: what a file leaves in its folder for what is temporary goes with it', async (t) => {
  const leaves = `import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
console.log('left ' + mkdtempSync(tmpdir() + '/left-'));`;
  const ends = [SAYS_PASSED, `process.kill(process.pid, 'SIGKILL');`];
  const folder = t.testdir(
    Object.fromEntries(ends.map((end, at) => [`${at}.test.mjs`, `${leaves}\n${end}`])),
  );
  for (const at of ends.keys()) {
    const { output } = await runFile(join(folder, `${at}.test.mjs`));
    const [, left] = /^left (.+)$/m.exec(output) ?? [];
    t.type(left, 'string');
    t.notOk(existsSync(dirname(left!)), 'nothing of it is there');
  }
});

t.test('tests: a file is passed words, and told of while it runs', async (t) => {
  const folder = t.testdir({
    'words.test.mjs': `console.log('# ' + process.argv.slice(2));\n${SAYS_PASSED}`,
  });
  let told = '';
  const { fault, output } = await runFile(join(folder, 'words.test.mjs'), {
    words: ['--long', '--seed', '7'],
    onOutput: (piece) => {
      told += piece;
    },
  });
  t.equal(fault, undefined);
  t.match(told, /^# --long,--seed,7\n/);
  t.equal(told, output);
});

t.test('tests: what failed is printed whole, and fails the run', async (t) => {
  const folder = t.testdir({
    'a.test.js': SAYS_FAILED,
    'b.test.js': SAYS_SKIPPED,
    'c.test.js': SAYS_PASSED,
  });
  const { status, out } = await runMain(folder);
  t.equal(status, 1);
  t.match(
    out,
    /not ok 2 - the other\n[\s\S]*\nnot ok \d\/3 .*a\.test\.js \([\d.]+ s\): 1 failed\n/,
  );
  t.match(
    out,
    /\nok \d\/3 .*b\.test\.js \([\d.]+ s\): 0 passed\n {3}ok 1 - needs root # SKIP no root here\n/,
  );
  t.match(out, /\nfailed: .*a\.test\.js: 1 failed\n3 passed, 1 failed, 1 skipped\n$/);
});

t.test('tests: a file that ends without a word of its tests counts as failed', async (t) => {
  const folder = t.testdir({ 'a.test.js': '', 'b.test.js': SAYS_PASSED });
  const { status, out } = await runMain(folder);
  t.equal(status, 1);
  t.match(out, /\n2 passed, 1 failed, 0 skipped\n$/);
});

t.test('tests: what failed and passes alone is named, and fails nothing', async (t) => {
  const folder = t.testdir({ 'a.test.js': IS_DISTURBED, 'b.test.js': SAYS_PASSED });
  const { status, out } = await runMain(folder, '--again');
  t.equal(status, 0);
  t.match(out, /not ok 2 - the other/);
  t.match(
    out,
    /\nthese failed among the others and passed alone; their first failure is above:\n.*a\.test\.js\n/,
  );
  t.match(out, /\n4 passed, 0 failed, 0 skipped\n$/);
});

t.test('tests: what fails again fails the run', async (t) => {
  const folder = t.testdir({ 'a.test.js': SAYS_FAILED, 'b.test.js': IS_DISTURBED });
  const { status, out } = await runMain(folder, '--again');
  t.equal(status, 1);
  t.match(out, /\nfailed: .*a\.test\.js: 1 failed\n3 passed, 1 failed, 0 skipped\n$/);
});

t.test(
  'tests: a run that is told to stop, twice, leaves nothing that its files started',
  async (t) => {
    const folder = t.testdir({
      'ends-at-once.test.js': 'setInterval(() => undefined, 1000);',
      'next.test.js': SAYS_PASSED,
      'starts.test.js': STARTS_A_PROCESS,
    });
    const run = spawn(process.execPath, [MAIN, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    let out = '';
    run.stdout.setEncoding('utf8').on('data', (piece: string) => {
      out += piece;
    });
    const ended = new Promise((resolve) => run.once('close', resolve));
    const file = join(folder, 'started');
    await until('the file has started it', () => existsSync(file));
    run.kill('SIGINT');
    // While the file is told to end itself.
    await new Promise((resolve) => setTimeout(resolve, 50));
    run.kill('SIGINT');
    t.equal(await ended, 130);
    const pid = Number(readFileSync(file, 'utf8'));
    await until('what it started is gone', () => !runs(pid));
    t.equal(out, '', 'nor does it begin the next one');
  },
);

t.test('tests: npm passes signals on to the run itself', async (t) => {
  const file = new URL('../../../package.json', import.meta.url);
  const { scripts } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  for (const name of ['test', 'test:system']) t.match(scripts[name], / && exec node /, name);
});

function runs(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function runMain(...words: string[]): Promise<{ readonly status: number; readonly out: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...words], (error, out) => {
      resolve({ status: error === null ? 0 : Number(error.code), out });
    });
  });
}
