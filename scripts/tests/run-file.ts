// One test file as a process of its own, as `node FILE` runs it: no loader of a test runner is in it, nor in the
// servers that it starts.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';

export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export interface FileResult {
  readonly file: string;
  readonly counts: Counts;
  /** Undefined when it passed. */
  readonly fault: string | undefined;
  /** All that it printed, on both streams. */
  readonly output: string;
  readonly seconds: number;
}

export interface RunOptions {
  /** Undefined: as long as it takes. */
  readonly timeoutSeconds?: number;
  readonly graceSeconds?: number;
  /** What stands behind the file on its command line. */
  readonly words?: readonly string[];
  /** Told what it prints, while it runs. */
  readonly onOutput?: (piece: string) => void;
}

/** For a file to say what it waited for, and to end. */
const GRACE_SECONDS = 30;
/** Behind the end of a file, for what it printed last. */
const PRINTED_MS = 5_000;

/** For a file that is told to stop. */
const STOP_MS = 20_000;

const running = new Set<ReturnType<typeof spawn>>();

/**
 * Resolves when the file has ended, however it did. tap ends a file at the timeout and lists what it waits for; one
 * that is too busy for that is killed.
 */
export function runFile(
  file: string,
  { timeoutSeconds, graceSeconds = GRACE_SECONDS, words = [], onOutput }: RunOptions = {},
): Promise<FileResult> {
  const start = performance.now();
  // All that it puts into the folder for what is temporary goes with it, also where it is killed.
  const folder = mkdtempSync(join(tmpdir(), 'tests-'));
  const removeFolder = (): void => removeAll(folder);
  const child = spawn(process.execPath, ['--enable-source-maps', file, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      TMPDIR: folder,
      ...(timeoutSeconds && { TAP_TIMEOUT: `${timeoutSeconds}` }),
    },
  });
  running.add(child);
  child.once('exit', removeFolder);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (piece: string) => {
      output += piece;
      onOutput?.(piece);
    });
  }
  const deadline =
    timeoutSeconds === undefined
      ? undefined
      : setTimeout(() => child.kill('SIGKILL'), (timeoutSeconds + graceSeconds) * 1_000);
  return new Promise((resolve) => {
    let isHeld = false;
    const end = (ending: string | undefined): void => {
      clearTimeout(deadline);
      running.delete(child);
      const counts = countsOf(output);
      const fault = faultOf(counts, ending);
      const seconds = (performance.now() - start) / 1_000;
      resolve({ file, counts: counts ?? NONE, fault, output, seconds });
    };
    child.once('error', ({ message }) => {
      removeFolder();
      end(message);
    });
    // Its output ends when all have ended to whom it gave it, such as a server that nobody stopped.
    child.once('exit', () => {
      const late = setTimeout(() => {
        isHeld = true;
        for (const stream of [child.stdout, child.stderr]) stream.destroy();
      }, PRINTED_MS);
      child.once('close', () => clearTimeout(late));
    });
    child.once('close', (code, signal) => {
      const ending = code === 0 ? undefined : `ended with ${signal ?? `status ${code}`}`;
      end(ending ?? (isHeld ? 'left a process behind that has its output' : undefined));
    });
  });
}

/**
 * Has all that runs end what it has started, and then itself; whoever takes too long for that is killed. Resolves
 * when all have ended.
 */
export async function endRunningFiles(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
      await ended;
      clearTimeout(late);
    }),
  );
}

function removeAll(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  } catch {
    // A process that it has left behind still writes there: the run says so, or has killed it.
  }
}

const NONE: Counts = { passed: 0, failed: 0, skipped: 0 };

/** What tap says in the closing line of a file. Undefined when there is none: the file did not come to its end. */
function countsOf(output: string): Counts | undefined {
  const closing = [...output.matchAll(/^# \{(.*)\}$/gm)].at(-1)?.[1];
  if (closing === undefined) return undefined;
  const figure = (name: string): number =>
    Number(new RegExp(`\\b${name}: (\\d+)`).exec(closing)?.[1] ?? 0);
  return { passed: figure('pass'), failed: figure('fail'), skipped: figure('skip') };
}

function faultOf(counts: Counts | undefined, ending: string | undefined): string | undefined {
  if (counts === undefined) return ending ?? 'ended before its tests did';
  if (counts.failed > 0) return `${counts.failed} failed`;
  if (ending !== undefined) return ending;
  return counts.passed + counts.skipped === 0 ? 'tested nothing' : undefined;
}
