// Planted bugs of what clients are told: reads that are older than they may be, and writes of which
// something is said that nobody knows.

import { ReadQueue } from '../../../cluster/raft/leading/read-queue.ts';
import { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import { PendingProposals } from '../../../cluster/replica/requests/pending-proposals.ts';
import { ReadBarriers } from '../../../cluster/replica/requests/read-barriers.ts';
import type { Mutant } from './mutant.ts';
import { replaced, together } from './replaced.ts';

export const CLIENT_MUTANTS: readonly Mutant[] = [
  {
    name: 'no-read-barrier',
    breaks: 'a read is answered from the local state without asking the leader',
    foundBy: ['linearizability'],
    subject: 'replica',
    seed: 1,
    install: () => replaced(ReadBarriers.prototype, 'add', () => () => Promise.resolve()),
  },
  {
    name: 'reuse-read-names',
    breaks: 'a round of reads is asked under a name that an earlier one had',
    foundBy: ['linearizability'],
    subject: 'replica',
    seed: 34,
    install: () => {
      const realNames = new WeakMap<ReadBarriers, string>();
      return together(
        replaced(ReadBarriers.prototype, 'takeRound', (real) => {
          return function (this: ReadBarriers) {
            const context = real.call(this);
            if (context !== undefined) realNames.set(this, context);
            return context === undefined ? undefined : 'the read';
          };
        }),
        replaced(ReadBarriers.prototype, 'confirm', (real) => {
          return function (this: ReadBarriers, _context, index) {
            real.call(this, realNames.get(this) ?? '', index);
          };
        }),
      );
    },
  },
  {
    name: 'read-before-applied',
    breaks: 'a read does not wait until the state has what was committed before it',
    foundBy: ['linearizability'],
    subject: 'replica',
    seed: 5,
    install: () =>
      replaced(ReadBarriers.prototype, 'release', (real) => {
        return function (this: ReadBarriers) {
          real.call(this, Number.POSITIVE_INFINITY);
        };
      }),
  },
  {
    name: 'read-without-proof',
    breaks: 'a leader answers reads without hearing that it still leads',
    foundBy: ['linearizability'],
    subject: 'replica',
    seed: 164,
    isSlow: true,
    install: () =>
      replaced(ReadQueue.prototype, 'takeConfirmed', (real) => {
        return function (this: ReadQueue, group) {
          for (const voter of [...group.voters, ...group.votersOutgoing]) {
            this.acknowledge(voter, this.heartbeatCount);
          }
          return real.call(this, group);
        };
      }),
  },
  {
    name: 'read-before-first-commit',
    breaks: 'a new leader answers reads before it knows what was committed before its term',
    foundBy: ['linearizability'],
    subject: 'replica',
    seed: 89,
    isSlow: true,
    install: () =>
      replaced(ReadQueue.prototype, 'park', () => {
        return function (this: ReadQueue, request) {
          this.add(request, 0);
        };
      }),
  },
  {
    name: 'answer-before-commit',
    breaks: 'a write is acknowledged when the leader has put it into its own log',
    foundBy: ['answers', 'linearizability'],
    subject: 'replica',
    seed: 1,
    install: () =>
      replaced(PendingProposals.prototype, 'appended', (real) => {
        return function (this: PendingProposals<unknown>, batch, first) {
          real.call(this, batch, first);
          batch.forEach((proposal, place) => {
            proposal.resolve({ isDone: true, index: first.index + place });
          });
        };
      }),
  },
  {
    name: 'unknown-is-nothing',
    breaks: 'a leader that is deposed says of what is under way that nothing was done',
    foundBy: ['answers'],
    subject: 'replica',
    seed: 2,
    install: () =>
      replaced(PendingProposals.prototype, 'rejectAfter', (real) => {
        return function (this: PendingProposals<unknown>, index) {
          real.call(this, index, new GroupRefusal('not-leader', 'this node leads no more'));
        };
      }),
  },
];
