// Processes that run seeds, one task each at a time. One that dies takes its task with it, and says so.

import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { Runner, Task, TaskResult } from './tasks.ts';

/** A run leaves much behind that lived for one event: young memory is cheap to clear when it is large, in MiB. */
const WORKER_OPTIONS = ['--enable-source-maps', '--max-semi-space-size=64'];

interface Waiting {
  readonly task: Task;
  resolve(result: TaskResult): void;
  reject(error: Error): void;
}

export class Pool implements Runner {
  readonly #idle: ChildProcess[] = [];
  readonly #all = new Set<ChildProcess>();
  readonly #queue: Waiting[] = [];

  /** `worker`: the program of each of them. */
  constructor(jobCount: number, worker = join(import.meta.dirname, 'worker.js')) {
    for (let place = 0; place < jobCount; place += 1) {
      const child = fork(worker, { execArgv: WORKER_OPTIONS });
      this.#all.add(child);
      this.#idle.push(child);
    }
  }

  get size(): number {
    return this.#all.size;
  }

  readonly run = (task: Task): Promise<TaskResult> =>
    new Promise((resolve, reject) => {
      this.#queue.push({ task, resolve, reject });
      this.#assign();
    });

  close(): void {
    for (const child of this.#all) child.kill();
  }

  #assign(): void {
    const child = this.#idle.pop();
    if (child === undefined) return;
    const next = this.#queue.shift();
    if (next === undefined) {
      this.#idle.push(child);
      return;
    }
    const onExit = (code: number | null): void => {
      this.#all.delete(child);
      next.reject(new Error(`seed ${next.task.seed}: its process ended with ${code}`));
    };
    child.once('exit', onExit);
    child.once('message', (result: TaskResult) => {
      child.off('exit', onExit);
      this.#idle.push(child);
      next.resolve(result);
      this.#assign();
    });
    child.send(next.task);
  }
}
