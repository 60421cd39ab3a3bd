// Replays one seed in this process, with its plan and, if asked for, everything that happened.

import type { Mutant } from '../../test/sim/mutants/mutant.ts';
import { type Cuts, cut } from '../../test/sim/run/cuts.ts';
import type { SubjectName } from '../../test/sim/run/run-options.ts';
import type { Print } from './print.ts';
import { optionsOf, runTask } from './run-task.ts';

export interface ReplayPlan {
  readonly seed: number;
  readonly subject: SubjectName;
  readonly cuts: Cuts;
  readonly mutant: Mutant | undefined;
  readonly badDay: string | undefined;
  readonly isTraced: boolean;
}

/** Resolves with whether nothing was found. */
export async function replay(plan: ReplayPlan, print: Print): Promise<boolean> {
  const { seed, subject, cuts, mutant, badDay, isTraced } = plan;
  const whole = optionsOf(seed, subject, badDay);
  print.replayBegins(whole, cut(whole, cuts));
  const task = { seed, subject, cuts, mutant: mutant?.name, badDay, isTwice: true, isTraced };
  const result = await runTask(task);
  print.replayEnds(result);
  return result.violation === undefined && result.hash === result.secondHash;
}
