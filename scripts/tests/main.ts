// `npm test`: the compiled test files, a few at a time, each a process of its own. Exit status 0: all of them
// passed.

import { constants } from 'node:os';
import { join, relative } from 'node:path';
import { scriptProgram, wholeNumber } from '../script-program.ts';
import { endRunningFiles, type FileResult, runFile } from './run-file.ts';
import { testFilesBelow, testFilesNamed } from './test-files.ts';

interface Options {
  readonly jobs: number;
  readonly timeout: number;
  readonly again?: true;
}

/** Of all tests: this file lies two folders below the root of what was compiled. */
const FOLDER = join(import.meta.dirname, '..', '..', 'test');

const program = scriptProgram(
  'npm test --',
  'Runs the tests, or those of the files and folders that are named.',
)
  .argument('[paths...]', 'compiled test files, or folders of them (dist/test/acl)')
  .option('--jobs <count>', 'files at a time', wholeNumber, 2)
  .option('--timeout <seconds>', 'ends a file that takes longer', wholeNumber, 400)
  .option('--again', 'runs files that failed once more, alone; who passes then has passed')
  .parse();
const { jobs, timeout, again } = program.opts<Options>();

let isGivenUp = false;
// Each may come several times: npm repeats what the terminal sent already.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => void giveUp(128 + constants.signals[signal]));
}

const paths = program.args;
const files = paths.length === 0 ? testFilesBelow(FOLDER) : paths.flatMap(testFilesNamed);
const results = await runAll(files, jobs);
if (again === true) await runAgain(results.filter(hasFailed));
const failed = results.filter(hasFailed);
for (const result of failed) print(`failed: ${nameOf(result)}: ${result.fault}`);
const passedCount = sumOf(({ counts }) => counts.passed);
// A file that ended without a word of its tests is one that failed.
const failedCount = sumOf((result) => Math.max(result.counts.failed, hasFailed(result) ? 1 : 0));
const skippedCount = sumOf(({ counts }) => counts.skipped);
print(`${passedCount} passed, ${failedCount} failed, ${skippedCount} skipped`);
process.exitCode = failedCount === 0 && passedCount !== 0 ? 0 : 1;

/** Puts the results of these files in place of the first ones, and names those that pass now. */
async function runAgain(firstFailed: readonly FileResult[]): Promise<void> {
  if (firstFailed.length === 0) return;
  print(`\nthese failed and are run once more, alone:\n${firstFailed.map(nameOf).join('\n')}\n`);
  const seconds = await runAll(
    firstFailed.map(({ file }) => file),
    1,
  );
  for (const second of seconds) {
    results[results.findIndex(({ file }) => file === second.file)] = second;
  }
  const disturbed = seconds.filter((second) => !hasFailed(second));
  if (disturbed.length === 0) return;
  print('\nthese failed among the others and passed alone; their first failure is above:');
  print(disturbed.map(nameOf).join('\n'));
}

function sumOf(figure: (result: FileResult) => number): number {
  return results.reduce((sum, result) => sum + figure(result), 0);
}

/** Their results as they came to their ends. Files are taken from both ends of the list in turn. */
async function runAll(files: readonly string[], atATime: number): Promise<FileResult[]> {
  const queue = [...files];
  const ended: FileResult[] = [];
  const runOn = async (next: () => string | undefined): Promise<void> => {
    for (let file = next(); file !== undefined; file = next()) {
      const result = await runFile(file, { timeoutSeconds: timeout });
      if (isGivenUp) return;
      ended.push(result);
      printResult(result, `${ended.length}/${files.length}`);
    }
  };
  const first = (): string | undefined => queue.shift();
  const last = (): string | undefined => queue.pop();
  await Promise.all(
    Array.from({ length: Math.max(1, atATime) }, (_, lane) => runOn(lane % 2 === 0 ? first : last)),
  );
  return ended;
}

function printResult(result: FileResult, progress: string): void {
  const { counts, fault, output, seconds } = result;
  const took = `${progress} ${nameOf(result)} (${seconds.toFixed(1)} s)`;
  if (fault !== undefined) {
    print(`${output}\nnot ok ${took}: ${fault}`);
    return;
  }
  print(`ok ${took}: ${counts.passed} passed`);
  for (const [line] of output.matchAll(/^ *ok .*# SKIP.*$/gm)) print(`   ${line.trim()}`);
}

function hasFailed({ fault }: FileResult): boolean {
  return fault !== undefined;
}

/** As one types it to run that file again. */
function nameOf({ file }: FileResult): string {
  return relative(process.cwd(), file);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** They end what they have started, and then themselves. */
async function giveUp(status: number): Promise<void> {
  isGivenUp = true;
  await endRunningFiles();
  process.exit(status);
}
