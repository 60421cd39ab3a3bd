// Replays one seed in this process, with its plan and, if asked for, everything that happened.

import { describeFault } from '../../test/sim/faults/fault-plan.ts';
import { type Cuts, cut } from '../../test/sim/run/cuts.ts';
import type { Mutant } from '../../test/sim/run/mutant.ts';
import { drawOptions, type SubjectName } from '../../test/sim/run/run-options.ts';
import { runTask } from './run-task.ts';

export interface ReplayPlan {
  readonly seed: number;
  readonly subject: SubjectName;
  readonly cuts: Cuts;
  readonly mutant: Mutant | undefined;
  readonly isTraced: boolean;
}

/** Resolves with whether nothing was found. */
export async function replay({
  seed,
  subject,
  cuts,
  mutant,
  isTraced,
}: ReplayPlan): Promise<boolean> {
  console.log(`seed ${seed}, subject ${subject}`);
  const whole = drawOptions(seed, subject);
  const options = cut(whole, cuts);
  console.log(JSON.stringify({ ...options, plan: undefined }));
  for (const fault of options.plan) {
    console.log(`  ${whole.plan.indexOf(fault)}: ${describeFault(fault)}`);
  }
  const task = { seed, subject, cuts, mutant: mutant?.name, isTwice: true, isTraced };
  const result = await runTask(task);
  for (const line of result.lines) console.log(line);
  console.log(`counts: ${JSON.stringify(result.counts)}`);
  const { violation, hash, secondHash, eventCount } = result;
  console.log(`${eventCount} events, hash ${hash}, again ${secondHash}`);
  if (violation === undefined) {
    console.log(`seed ${seed} is clean`);
    return hash === secondHash;
  }
  console.log(
    `seed ${seed} fails after ${violation.atMs} ms: ${violation.checker}\n${violation.says}`,
  );
  return false;
}
