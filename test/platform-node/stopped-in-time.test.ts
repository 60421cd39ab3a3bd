// A process that is told to stop, and whose closing comes to its end while a call to a disk still hangs.

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';

const MODULE = join(
  import.meta.dirname,
  ...['..', '..', 'src', 'platform-node', 'stopped-in-time.js'],
);

/** How a process ends that stops within `maxMs`, behind these statements. */
async function endOf(t: Test, statements: string): Promise<readonly [string, string]> {
  const script = `
    import { open } from 'node:fs/promises';
    import { stoppedInTime } from ${JSON.stringify(pathToFileURL(MODULE).href)};
    ${statements}
    await stoppedInTime(async () => {}, () => console.log('late'), 500);
    console.log('stopped');
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

t.test('stopped in time: what nobody waits for does not keep the process either', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'stopped-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const pipe = join(folder, 'pipe');
  execFileSync('mkfifo', [pipe]);
  // To open a pipe that nobody writes to stands for a call to a disk that hangs.
  const hanging = await endOf(t, `void open(${JSON.stringify(pipe)});`);
  t.same(hanging, ['SIGKILL', 'stopped\nlate\n']);
  t.same(await endOf(t, ''), ['0', 'stopped\n'], 'and it waits for nothing else');
});
