// The server as a process of its own, started as a user starts it and ended as an operator, a machine
// or bad luck ends it. Everything it printed is kept. Only processes started here are ever signalled.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endWithProcess, exitAtSignals } from '../../scripts/exit-at-signals.ts';
import { MANAGEMENT } from './asking.ts';

/** The compiled program: this file lies two folders below the root of what was compiled. */
const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.js');

// Whoever interrupts a test ends its servers, too, and leaves no data of theirs.
exitAtSignals();
const folders = new Set<string>();
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
});

export interface Owner {
  teardown(action: () => Promise<unknown> | undefined): void;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ServerPlan {
  /** Holds the databases. */
  readonly dataFolder: string;
  /** Added to those of the test environment; an empty value takes one of them away. */
  readonly flags?: Readonly<Record<string, string>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly nodeOptions?: readonly string[];
  /** No file that it writes may grow beyond this: a write that would is refused. */
  readonly fileMaxKib?: number;
}

export interface ServerProcess {
  readonly port: number;
  readonly pid: number;
  /** What it printed so far, on both streams. */
  output(): string;
  /** How it ended, by itself or by a signal. */
  readonly ended: Promise<Ending>;
  /** Sends a signal and waits for the end. Called again, it only waits. */
  end(signal: NodeJS.Signals): Promise<Ending>;
  /** Proportional memory of the process that is its own, in MiB. */
  anonymousMib(): number;
}

/** A folder that is removed when the test is over. */
export function temporaryFolder(owner: Owner): string {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-hard-'));
  folders.add(folder);
  owner.teardown(() => {
    rmSync(folder, { recursive: true, force: true });
    folders.delete(folder);
    return undefined;
  });
  return folder;
}

/** Starts a server and resolves when it says where it listens. Rejects when it ends before. */
export async function startServer(owner: Owner, plan: ServerPlan): Promise<ServerProcess> {
  const started = await startOrEnd(owner, plan);
  if ('ending' in started) {
    throw new Error(`the server ended with ${started.ending.code}: ${started.output}`);
  }
  return started;
}

/** Starts a server that is expected to refuse; resolves with how it ended. */
export async function startRefused(
  owner: Owner,
  plan: ServerPlan,
): Promise<{ readonly ending: Ending; readonly output: string }> {
  const started = await startOrEnd(owner, plan);
  if ('ending' in started) return started;
  await started.end('SIGKILL');
  throw new Error('the server started although it must not');
}

/** Starts a server, kills it after a while, wherever it is then, and waits for its end. */
export async function startAndKill(owner: Owner, plan: ServerPlan, afterMs: number): Promise<void> {
  const { child, ended } = spawnServer(owner, plan);
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  child.kill('SIGKILL');
  await ended;
}

/**
 * Starts a server, and sends it a signal as soon as it prints that text; resolves with how it ended, and how
 * long that took.
 */
export async function startAndSignal(
  owner: Owner,
  plan: ServerPlan,
  { text, signal }: { readonly text: string; readonly signal: NodeJS.Signals },
): Promise<{ readonly ending: Ending; readonly output: string; readonly tookMs: number }> {
  const { child, ended, output } = spawnServer(owner, plan);
  while (child.exitCode === null && !output().includes(text))
    await new Promise((resolve) => setTimeout(resolve, 20));
  const toldAtMs = performance.now();
  child.kill(signal);
  return { ending: await ended, output: output(), tookMs: performance.now() - toldAtMs };
}

async function startOrEnd(
  owner: Owner,
  plan: ServerPlan,
): Promise<ServerProcess | { readonly ending: Ending; readonly output: string }> {
  const { child, ended, listening, output } = spawnServer(owner, plan);
  const first = await Promise.race([listening, ended]);
  if (typeof first !== 'number') return { ending: first, output: output() };
  return {
    port: first,
    pid: child.pid ?? 0,
    output,
    ended,
    end: (signal) => {
      child.kill(signal);
      return ended;
    },
    anonymousMib: () => anonymousMib(child.pid),
  };
}

interface Spawned {
  readonly child: ChildProcess;
  readonly ended: Promise<Ending>;
  readonly listening: Promise<number>;
  output(): string;
}

function spawnServer(owner: Owner, plan: ServerPlan): Spawned {
  const [command, ...words] = commandOf(plan);
  const child = spawn(command, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env.PATH, ...plan.environment },
  });
  endWithProcess(child);
  const ended = endOf(child);
  owner.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let output = '';
  const listening = new Promise<number>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8');
      stream.on('data', (piece: string) => {
        output += piece;
        const port = /listening +https?:\/\/[^\s]+:(\d+)/.exec(output)?.[1];
        if (port !== undefined) resolve(Number(port));
      });
    }
  });
  return { child, ended, listening, output: () => output };
}

function commandOf(plan: ServerPlan): readonly [string, ...string[]] {
  const { nodeOptions = [], fileMaxKib } = plan;
  const server = [process.execPath, ...nodeOptions, MAIN, 'agent', ...argumentsOf(plan)] as const;
  if (fileMaxKib === undefined) return server;
  // The shell counts in blocks of 512 bytes, and becomes the server.
  const script = `ulimit -f ${fileMaxKib * 2}; exec "$@"`;
  return ['sh', '-c', script, 'sh', ...server];
}

function argumentsOf({ dataFolder, flags }: ServerPlan): readonly string[] {
  const all: Readonly<Record<string, string>> = {
    'data-dir': dataFolder,
    'node-name': 'hard',
    'ports-http': '0',
    'ports-cluster': '-1',
    'acl-tokens-initial-management': MANAGEMENT,
    ...flags,
  };
  return Object.entries(all).flatMap(([name, value]) => (value === '' ? [] : [`--${name}`, value]));
}

/** When both streams have ended, too: all that was printed has been read. */
function endOf(child: ChildProcess): Promise<Ending> {
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
}

function anonymousMib(pid: number | undefined): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const match = /RssAnon:\s+(\d+) kB/.exec(status);
  return match === null ? Number.NaN : Number(match[1]) / 1024;
}
