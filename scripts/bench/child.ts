// Processes that the benchmark measures, each ended by its id.

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface Child {
  readonly port: number;
  /** Milliseconds from its start to its first line of output. */
  readonly startedInMs: number;
  /** Anonymous resident memory in MiB, by the kernel; NaN where it does not say. */
  anonymousMib(): number;
  stop(): Promise<void>;
}

export interface ChildPlan {
  readonly script: string;
  readonly arguments: readonly string[];
  readonly nodeOptions?: readonly string[];
  readonly input?: string;
  /** Finds the port in the output; undefined while it is not there. */
  readonly portOf: (output: string) => number | undefined;
}

/** Starts a Node process and resolves when its output names its port. Rejects when it ends before. */
export function startChild(plan: ChildPlan): Promise<Child> {
  return new Promise((resolve, reject) => {
    const startedAt = performance.now();
    const child = spawn(
      process.execPath,
      [...(plan.nodeOptions ?? []), plan.script, ...plan.arguments],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    );
    let output = '';
    child.on('error', reject);
    child.on('exit', (code) => reject(new Error(`${plan.script} ended with ${code}: ${output}`)));
    child.stdout?.on('data', (piece: Buffer) => {
      output += piece.toString();
      const port = plan.portOf(output);
      if (port === undefined) return;
      resolve({
        port,
        startedInMs: performance.now() - startedAt,
        anonymousMib: () => anonymousMib(child.pid),
        stop: () => stop(child),
      });
    });
    child.stdin?.end(plan.input ?? '');
  });
}

function stop(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.removeAllListeners('exit');
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });
}

function anonymousMib(pid: number | undefined): number {
  try {
    const match = /RssAnon:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
    return match === null ? Number.NaN : Number(match[1]) / 1024;
  } catch {
    return Number.NaN;
  }
}
