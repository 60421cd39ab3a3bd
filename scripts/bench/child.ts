// Processes that the benchmark measures, each ended by its id.

import { type ChildProcess, spawn } from 'node:child_process';
import { endWithProcess } from '../exit-at-signals.ts';
import { anonymousMib, processorMs } from './process-figures.ts';

export interface Child {
  readonly port: number;
  /** Milliseconds from its start to its first line of output. */
  readonly startedInMs: number;
  /** Anonymous resident memory in MiB, by the kernel; NaN where it does not say. */
  anonymousMib(): number;
  /** Processor time of all its threads since its start; NaN where the kernel does not say. */
  processorMs(): number;
  /** Resolves when it has ended; one that was frozen or killed before, too. */
  stop(): Promise<void>;
  signal(name: NodeJS.Signals): void;
}

export interface ChildPlan {
  readonly script: string;
  readonly arguments: readonly string[];
  readonly nodeOptions?: readonly string[];
  readonly input?: string;
  /** Beside the own environment. */
  readonly environment?: Readonly<Record<string, string>>;
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
        env: { ...process.env, ...plan.environment },
      },
    );
    endWithProcess(child);
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
        anonymousMib: () => anonymousMib(child.pid ?? 0),
        processorMs: () => processorMs(child.pid ?? 0),
        stop: () => stop(child),
        signal: (name) => child.kill(name),
      });
    });
    child.stdin?.end(plan.input ?? '');
  });
}

/** Of a server, as it says where it listens. */
export function portOfAgent(output: string): number | undefined {
  return numberIn(/listening\s+http:\/\/[^:]+:(\d+)/.exec(output));
}

/** Of a bare process, which says nothing else. */
export function portOfFirstLine(output: string): number | undefined {
  return numberIn(/^(\d+)\n/.exec(output));
}

function numberIn(match: RegExpExecArray | null): number | undefined {
  return match === null ? undefined : Number(match[1]);
}

function stop(child: ChildProcess): Promise<void> {
  child.removeAllListeners('exit');
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.kill('SIGTERM');
  });
}
