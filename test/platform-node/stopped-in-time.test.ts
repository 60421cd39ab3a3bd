// A process that is told to stop, or that cannot go on, and whose closing comes to its end while a call to a disk still
// hangs.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';

const MODULE = join(
  import.meta.dirname,
  ...['..', '..', 'src', 'platform-node', 'process', 'stopped-in-time.js'],
);

const LATE = "() => console.log('late'), 500";
const STOPS = `await stoppedInTime(async () => {}, ${LATE}); console.log('stopped');`;
const FAILS = `endAfterFatal(async () => {}, ${LATE});`;

/** How a process ends that executes these statements. */
async function endOf(t: Test, statements: string): Promise<readonly [string, string]> {
  const script = `
    import { open } from 'node:fs/promises';
    import { endAfterFatal, stoppedInTime } from ${JSON.stringify(pathToFileURL(MODULE).href)};
    ${statements}
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    output += piece;
  });
  const ended = new Promise<string>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? String(code)));
  });
  const hangs = new Promise<string>((resolve) => setTimeout(resolve, 20_000, 'hangs').unref());
  return [await Promise.race([ended, hangs]), output];
}

/** To open a pipe that nobody writes to stands for a call to a disk that hangs. */
function hangingCall(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'stopped-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  return `void open(${JSON.stringify(pipe)});`;
}

t.test('stopped in time: what nobody waits for does not keep the process either', async (t) => {
  const hanging = await endOf(t, `${hangingCall(t)} ${STOPS}`);
  t.same(hanging, ['SIGKILL', 'stopped\nlate\n']);
  t.same(await endOf(t, STOPS), ['0', 'stopped\n'], 'and it waits for nothing else');
});

t.test('stopped in time: nor one that cannot go on', async (t) => {
  const hanging = await endOf(t, `${hangingCall(t)} ${FAILS}`);
  t.same(hanging, ['SIGKILL', 'late\n']);
  t.same(await endOf(t, FAILS), ['1', ''], 'and it waits for nothing else');
  const short = `void open(${JSON.stringify(MODULE)}); ${FAILS}`;
  t.same(await endOf(t, short), ['1', ''], 'what does not hang comes to its end');
});
