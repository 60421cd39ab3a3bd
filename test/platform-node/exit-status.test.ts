// What a process ends with whose work is never done, and what it reads from a pipe that waits for nobody.

import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { endWithProcess, exitAtSignals } from '../../scripts/exit-at-signals.ts';

exitAtSignals();

const FOLDER = join(import.meta.dirname, '..', '..', 'src', 'platform-node');

/** Status, standard output and standard error of a process that executes these statements. */
async function endOf(
  t: Test,
  module: string,
  statements: (url: string) => string,
  onWord: () => void = () => undefined,
): Promise<readonly [status: number | null, out: string, err: string]> {
  const url = JSON.stringify(pathToFileURL(join(FOLDER, module)).href);
  const script = ['--input-type=module', '--eval', statements(url)];
  const child = spawn(process.execPath, script, { stdio: ['ignore', 'pipe', 'pipe'] });
  endWithProcess(child);
  t.teardown(() => child.kill('SIGKILL'));
  const texts = ['', ''];
  child.stdout.once('data', onWord);
  for (const [place, stream] of [child.stdout, child.stderr].entries())
    stream.setEncoding('utf8').on('data', (piece: string) => {
      texts[place] += piece;
    });
  const status = await new Promise<number | null>((resolve) => child.once('close', resolve));
  return [status, texts[0]!, texts[1]!];
}

t.test('exit status: a process that is over before its work is done has not done it', async (t) => {
  const ending = (work: string) =>
    endOf(
      t,
      'process/exit-status.js',
      (url) => `import { exitWith } from ${url}; exitWith(${work});`,
    );
  t.same(await ending('Promise.resolve(0)'), [0, '', '']);
  t.same(await ending('Promise.resolve(2)'), [2, '', '']);
  const [status, , said] = await ending('new Promise(() => {})');
  t.equal(status, 1);
  t.match(said, /^Error: the program ended before it was done\nNext: if this was a write, it may/);
});

t.test('standard input: is waited for, also in a pipe that waits for nobody', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'input-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  // Held open for both, it waits for no other end.
  const writing = openSync(pipe, 'r+');
  // Whoever starts a process has its standard input wait; what that opens itself in its place need not.
  const opened = `closeSync(0); openSync(${JSON.stringify(pipe)}, constants.O_RDONLY | constants.O_NONBLOCK);`;
  const read = endOf(
    t,
    'disk/files.js',
    (url) => `
      import { closeSync, constants, openSync } from 'node:fs';
      import { readStandardInput } from ${url};
      ${opened}
      console.log('waits');
      console.log(readStandardInput());
    `,
    () => {
      setTimeout(() => {
        writeSync(writing, 'grüße');
        closeSync(writing);
      }, 200);
    },
  );
  t.same(await read, [0, 'waits\ngrüße\n', '']);
});
