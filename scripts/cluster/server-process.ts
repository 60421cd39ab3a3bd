// One server of the local cluster as a process: started, signalled, waited for. It goes on when this process
// ends, and another one can take it over by its id; only a process that has the data folder of the server on
// its command line counts as that server.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export type ProcessState =
  | { readonly kind: 'running' | 'paused'; readonly pid: number }
  /** `says` is how, for people: `killed`, `stopped`, or what it ended with by itself. */
  | { readonly kind: 'ended'; readonly says: string };

export interface ServerStart {
  readonly flags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly logFile: string;
}

/** The compiled program: this file lies two folders below the root of what was compiled. */
const MAIN = join(import.meta.dirname, '..', '..', 'src', 'main.js');
const NODE_FLAGS = ['--max-semi-space-size=16'];
/** A server closes within seconds; one that does not is killed. */
const STOP_MAX_MS = 30_000;
const LOOK_MS = 100;

export class ServerProcess {
  readonly pid: number;
  /** Undefined for one that was taken over. */
  readonly #child: ChildProcess | undefined;
  readonly #mark: string;
  #isPaused = false;
  #ended: string | undefined;
  /** What it is going to have ended by, when we make it end. */
  #wish: string | undefined;

  private constructor(pid: number, child: ChildProcess | undefined, mark: string) {
    this.pid = pid;
    this.#child = child;
    this.#mark = mark;
    child?.once('exit', (code, signal) => {
      this.#ended = this.#wish ?? `ended by itself with ${signal ?? `status ${code}`}`;
    });
  }

  /** `mark` is a text of its command line that no other process has. */
  static start({ flags, environment, logFile }: ServerStart, mark: string): ServerProcess {
    mkdirSync(dirname(logFile), { recursive: true, mode: 0o700 });
    const log = openSync(logFile, 'a', 0o600);
    try {
      const child = spawn(process.execPath, [...NODE_FLAGS, MAIN, 'agent', ...flags], {
        stdio: ['ignore', log, log],
        detached: true,
        env: { PATH: process.env.PATH, ...environment },
      });
      child.on('error', () => undefined);
      if (child.pid === undefined) throw new Error(`${process.execPath} could not be started`);
      child.unref();
      return new ServerProcess(child.pid, child, mark);
    } finally {
      closeSync(log);
    }
  }

  /** Undefined when no such process runs any more. */
  static takeOver(pid: number, mark: string): ServerProcess | undefined {
    return commandLineOf(pid).includes(mark) ? new ServerProcess(pid, undefined, mark) : undefined;
  }

  state(): ProcessState {
    if (this.#ended === undefined && this.#child === undefined && !this.#isThere()) {
      this.#ended = this.#wish ?? 'ended by itself';
    }
    if (this.#ended !== undefined) return { kind: 'ended', says: this.#ended };
    return { kind: this.#isPaused ? 'paused' : 'running', pid: this.pid };
  }

  pause(): void {
    this.#isPaused = this.#signal('SIGSTOP') || this.#isPaused;
  }

  resume(): void {
    if (this.#signal('SIGCONT')) this.#isPaused = false;
  }

  /** Ends it at once. Resolves when it is gone. */
  async kill(): Promise<void> {
    this.#wish ??= 'killed';
    this.#signal('SIGKILL');
    await this.#gone(STOP_MAX_MS);
  }

  /** Lets it finish what is under way. Resolves when it is gone, if need be by force. */
  async stop(): Promise<void> {
    this.resume();
    this.#wish ??= 'stopped';
    this.#signal('SIGTERM');
    if (await this.#gone(STOP_MAX_MS)) return;
    this.#wish = `killed, because it had not stopped within ${STOP_MAX_MS / 1000} s`;
    await this.kill();
  }

  async #gone(withinMs: number): Promise<boolean> {
    const deadlineMs = performance.now() + withinMs;
    while (this.state().kind !== 'ended') {
      if (performance.now() > deadlineMs) return false;
      await pause(LOOK_MS);
    }
    return true;
  }

  /** Whether it was there to be told. */
  #signal(signal: NodeJS.Signals): boolean {
    if (this.state().kind === 'ended') return false;
    try {
      process.kill(this.pid, signal);
      return true;
    } catch {
      return false;
    }
  }

  #isThere(): boolean {
    return commandLineOf(this.pid).includes(this.#mark);
  }
}

/** Empty when there is no such process; one that has ended and was not waited for has none either. */
function commandLineOf(pid: number): string {
  if (process.platform === 'linux') {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
    } catch {
      return '';
    }
  }
  return spawnSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).stdout;
}
