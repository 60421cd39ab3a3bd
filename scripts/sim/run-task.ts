// Carries one task out in this process.

import { createHash } from 'node:crypto';
import { adoptSha256 } from '../../cluster/platform/sha256.ts';
import { mutantNamed } from '../../test/sim/mutants/mutants.ts';
import { cut } from '../../test/sim/run/cuts.ts';
import { drawOptions } from '../../test/sim/run/run-options.ts';
import { runSeed } from '../../test/sim/run/run-seed.ts';
import type { Task, TaskResult } from './tasks.ts';

// Most of the time would go into hashes otherwise.
adoptSha256((bytes) => createHash('sha256').update(bytes).digest());

export async function runTask({
  seed,
  subject,
  cuts,
  mutant,
  isTwice,
  isTraced,
}: Task): Promise<TaskResult> {
  const options = cut(drawOptions(seed, subject), cuts);
  const how = {
    keepsLines: isTraced,
    ...(mutant !== undefined && { mutant: mutantNamed(mutant) }),
  };
  const result = await runSeed(options, how);
  const second = isTwice ? await runSeed(options, how) : undefined;
  return { ...result, secondHash: second?.hash };
}
