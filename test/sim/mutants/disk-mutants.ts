// Planted bugs of what is on disk, and when.

import { DurableLog } from '../../../cluster/log/durable-log.ts';
import type { Mutant } from './mutant.ts';
import { replaced } from './replaced.ts';

export const DISK_MUTANTS: readonly Mutant[] = [
  {
    name: 'skip-fsync',
    breaks: 'the log is said to be on disk before it is',
    foundBy: ['promises', 'commits', 'states', 'answers', 'linearizability', 'elections'],
    subject: 'replica',
    seed: 1,
    lyingStores: ['log'],
    install: () => () => undefined,
  },
  {
    name: 'unsynced-state',
    breaks: 'the state is said to be on disk before it is, and parts of it get lost',
    foundBy: ['states', 'stale reads', 'linearizability'],
    subject: 'replica',
    seed: 11,
    lyingStores: ['state'],
    install: () => () => undefined,
  },
  {
    name: 'forgotten-vote',
    breaks: 'a vote is not kept on disk',
    foundBy: ['promises', 'elections'],
    subject: 'replica',
    seed: 1,
    install: () =>
      replaced(DurableLog.prototype, 'write', (real) => {
        return function (this: DurableLog, batch) {
          const { hardState } = batch;
          if (hardState === undefined) return real.call(this, batch);
          return real.call(this, { ...batch, hardState: { ...hardState, vote: 0 } });
        };
      }),
  },
];
