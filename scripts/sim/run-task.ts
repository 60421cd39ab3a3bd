// Carries one task out in this process.

import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import { systemSha256 } from '../../src/platform-node/hashes/system-sha256.ts';
import { badDayNamed, onBadDay } from '../../test/sim/bad-days.ts';
import { mutantNamed } from '../../test/sim/mutants/mutants.ts';
import { cut } from '../../test/sim/run/cuts.ts';
import { drawOptions, type RunOptions, type SubjectName } from '../../test/sim/run/run-options.ts';
import { runSeed } from '../../test/sim/run/run-seed.ts';
import type { Task, TaskResult } from './tasks.ts';

// Most of the time would go into hashes otherwise.
adoptSha256(systemSha256);

export async function runTask({
  seed,
  subject,
  cuts,
  mutant,
  badDay,
  isTwice,
  isTraced,
}: Task): Promise<TaskResult> {
  const options = cut(optionsOf(seed, subject, badDay), cuts);
  const how = {
    keepsLines: isTraced,
    ...(mutant !== undefined && { mutant: mutantNamed(mutant) }),
  };
  const result = await runSeed(options, how);
  const second = isTwice ? await runSeed(options, how) : undefined;
  return { ...result, secondHash: second?.hash };
}

/** Everything about a run but its cuts. */
export function optionsOf(
  seed: number,
  subject: SubjectName,
  badDay: string | undefined,
): RunOptions {
  const drawn = drawOptions(seed, subject);
  return badDay === undefined ? drawn : onBadDay(drawn, badDayNamed(badDay));
}
