// What the simulator's processes say to each other: one run asked for, one result given.

import type { Cuts } from '../../test/sim/run/cuts.ts';
import type { SubjectName } from '../../test/sim/run/run-options.ts';
import type { RunResult } from '../../test/sim/run/run-seed.ts';

export interface Task {
  readonly seed: number;
  readonly subject: SubjectName;
  readonly cuts: Cuts;
  readonly mutant: string | undefined;
  /** What goes wrong is not drawn, but that of this day. */
  readonly badDay?: string | undefined;
  /** Runs it twice: both must come to the same. */
  readonly isTwice: boolean;
  readonly isTraced: boolean;
}

/** Carries tasks out, so many at once. */
export interface Runner {
  readonly size: number;
  /** Rejects when whoever had the task is gone. */
  run(task: Task): Promise<TaskResult>;
}

export type TaskResult = RunResult & {
  /** What the second run came to, if there was one. */
  readonly secondHash: string | undefined;
};
