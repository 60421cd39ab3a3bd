// Planted bugs of the service on top: caches that hold what is gone, and requests that happen twice.

import { PendingProposals } from '../../../cluster/replica/requests/pending-proposals.ts';
import { ReadBarriers } from '../../../cluster/replica/requests/read-barriers.ts';
import { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import { RightsCache } from '../../../src/service/rights/rights-cache.ts';
import { RefusedRequests } from '../../../src/service/writes/refused-requests.ts';
import { UnderWay } from '../../../src/service/writes/under-way.ts';
import { ChangeSet } from '../../../src/state/change-set.ts';
import { decodeCommand, encodeCommand } from '../../../src/state/commands/command-codec.ts';
import { rowKey } from '../../../src/state/rows/tables.ts';
import { StoredState } from '../../../src/state/stored-state.ts';
import type { Mutant } from './mutant.ts';
import { replaced, together } from './replaced.ts';

const REQUESTS = rowKey('request', new Uint8Array(0));

export const NODE_MUTANTS: readonly Mutant[] = [
  {
    name: 'unheeded-changes',
    breaks: 'a write does not wait for what is under way of the rights that it was checked against',
    foundBy: ['authority'],
    subject: 'datacenters',
    seed: 10,
    install: () => replaced(UnderWay.prototype, 'requireQuiet', () => () => undefined),
  },
  {
    name: 'stale-rights',
    breaks: 'what a token may do is remembered though a policy of it is another one now',
    foundBy: ['linearizability', 'revocations'],
    subject: 'node',
    seed: 1,
    install: () => replaced(RightsCache.prototype, 'forget', () => () => undefined),
  },
  {
    name: 'kept-roles',
    breaks: 'what a token may do is remembered though a role of it is another one now, or gone',
    foundBy: ['revocations', 'G9 read your writes'],
    subject: 'datacenters',
    seed: 1,
    install: () =>
      replaced(RightsCache.prototype, 'forget', (real) => {
        return function (this: RightsCache, dependency) {
          if (!dependency.startsWith('roles ')) real.call(this, dependency);
        };
      }),
  },
  {
    name: 'heedless-conditions',
    breaks:
      'a write takes effect whatever version its `cas` names, where it has passed the first look',
    foundBy: ['conditions'],
    subject: 'datacenters',
    seed: 1,
    install: () =>
      replaced(PendingProposals.prototype, 'add', (real) => {
        return function (this: PendingProposals<unknown>, payload) {
          if (payload.length === 0) return real.call(this, payload);
          return real.call(this, encodeCommand({ ...decodeCommand(payload), cas: undefined }));
        };
      }),
  },
  {
    name: 'stale-callers',
    breaks: 'a token is remembered though it was deleted or replaced',
    foundBy: ['linearizability', 'revocations'],
    subject: 'node',
    seed: 1,
    install: () => replaced(CallerResolver.prototype, 'onApplied', () => () => undefined),
  },
  {
    name: 'forgotten-requests',
    breaks: 'a request that is sent again is carried out again',
    foundBy: ['answers'],
    subject: 'node',
    seed: 23,
    isSlow: true,
    install: () =>
      together(
        replaced(StoredState.prototype, 'request', () => () => undefined),
        replaced(ChangeSet.prototype, 'get', (real) => {
          return function (this: ChangeSet, key) {
            const isRequest = Buffer.compare(key.subarray(0, REQUESTS.length), REQUESTS) === 0;
            return isRequest ? undefined : real.call(this, key);
          };
        }),
      ),
  },
  {
    name: 'forgotten-refusals',
    breaks: 'a request that was refused takes effect when an earlier try of it comes late',
    foundBy: ['answers'],
    subject: 'node',
    seed: 1,
    install: () =>
      replaced(
        RefusedRequests.prototype,
        'once',
        () => (_own, _prove, run) => run(() => undefined),
      ),
  },
  {
    name: 'service-without-read-barrier',
    breaks: 'a server answers default reads from its own state without asking the leader',
    foundBy: ['linearizability', 'revocations'],
    subject: 'node',
    seed: 8,
    isSlow: true,
    install: () => replaced(ReadBarriers.prototype, 'add', () => () => Promise.resolve()),
  },
];
