// A process that is told to stop, or that cannot go on, and whose closing comes to its end while a call to a disk still
// hangs.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { endWithProcess, exitAtSignals } from '../../scripts/exit-at-signals.ts';

exitAtSignals();

const FOLDER = join(import.meta.dirname, '..', '..', 'src', 'platform-node', 'process');
const MODULE = join(FOLDER, 'stopped-in-time.js');
const SIGNALS = join(FOLDER, 'stop-signal.js');

const UNSHARE = 'unshare --user --map-root-user --pid --fork --kill-child';
/** What runs a program as process 1, as in a container; one that breaks down leaves no file of its memory. */
const AS_PROCESS_1 = ['sh', '-c', `ulimit -c 0 && exec ${UNSHARE} "$@"`, 'sh'] as const;
const noContainers =
  spawnSync(AS_PROCESS_1[0], [...AS_PROCESS_1.slice(1), 'true']).status !== 0 &&
  'it takes unshare, and a system that lets users have namespaces, to run a program as process 1';

const LATE = "() => console.log('late'), 500";
const STOPS = `await stoppedInTime(async () => {}, ${LATE}); console.log('stopped');`;
const FAILS = `endAfterFatal(async () => {}, ${LATE});`;

/** How a process ends that executes these statements, by itself or with words before it. */
async function endOf(
  t: Test,
  statements: string,
  before: readonly string[] = [],
): Promise<readonly [string, string]> {
  const script = `
    import { open } from 'node:fs/promises';
    import { endAfterFatal, stoppedInTime } from ${JSON.stringify(pathToFileURL(MODULE).href)};
    import { nextStopSignal } from ${JSON.stringify(pathToFileURL(SIGNALS).href)};
    ${statements}
  `;
  const words = [...before, process.execPath, '--input-type=module', '--eval', script];
  const child = spawn(words[0]!, words.slice(1), {
    stdio: ['ignore', 'pipe', before.length === 0 ? 'inherit' : 'ignore'],
  });
  endWithProcess(child);
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

t.test(
  'stopped in time: nor one that is process 1, which is spared its own SIGKILL',
  { skip: noContainers },
  async (t) => {
    const hanging = `${hangingCall(t)} ${FAILS}`;
    const [ending, output] = await endOf(t, hanging, AS_PROCESS_1);
    t.not(ending, 'hangs');
    t.equal(output, 'late\n');
  },
);

t.test(
  'stop signals: one that comes later ends process 1, too, which is spared what it does not handle',
  { skip: noContainers },
  async (t) => {
    const tell = (ms: number): string =>
      `setTimeout(() => process.kill(process.pid, 'SIGTERM'), ${ms});`;
    const waits = `await nextStopSignal(false); console.log('told'); await new Promise(() => {});`;
    const [ending, output] = await endOf(
      t,
      `${tell(0)} ${tell(100)} ${tell(1_800)} setTimeout(() => {}, 60_000); ${waits}`,
      AS_PROCESS_1,
    );
    t.not(ending, 'hangs');
    t.equal(output, 'told\n');
  },
);
