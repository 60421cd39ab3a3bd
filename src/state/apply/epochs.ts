// Epochs of the global log: promised, begun, and heard of by a primary whose time is over. All of it is
// decided here, in the order of the datacenter's own log: whatever a leader still believes, nothing of a
// lower epoch is taken after a promise.

import type { ChangeSet } from '../change-set.ts';
import type { ChangeOf } from '../commands/commands.ts';
import { forkOf } from '../global-log/chain.ts';
import { mayPromise, mayStart } from '../global-log/election.ts';
import { entryKey } from '../global-log/global-log-writer.ts';
import { currentEpoch, type EntryRange } from '../global-log/replication.ts';
import { has, setApart, within, withoutPlace, withSuffix } from '../global-log/set-apart.ts';
import type { VerdictAnswer } from '../global-log/verdict.ts';
import type { ApplyContext } from './checks.ts';
import { TRIM_ENTRIES_MAX, verdictOf } from './global-log.ts';

export function applyEpochPromise(
  { changes }: ApplyContext,
  { epoch, candidate, at }: ChangeOf<'epoch.promise'>,
): VerdictAnswer {
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  if (!mayPromise(replication, { epoch, candidate, at })) return verdictOf(changes, 'not-granted');
  changes.changeReplication({ ...replication, maxEpochPromised: epoch, votedFor: candidate });
  return verdictOf(changes, 'granted');
}

export function applyEpochStart(
  { changes, timeMs, principal }: ApplyContext,
  claim: ChangeOf<'epoch.start'>,
): VerdictAnswer {
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  if (!mayStart(replication, claim)) return verdictOf(changes, 'not-allowed');
  if (claim.isFromFork) changes.changeReplication(withSuffix(replication));
  const { epoch, promises, isForced } = claim;
  const primary = replication.datacenter;
  const body = { kind: 'epoch-start', primary, promises, isForced } as const;
  changes.appendEntry(body, { timeMs, principal, request: undefined }, epoch);
  return verdictOf(changes, 'applied');
}

/**
 * A later epoch has begun elsewhere, in a log of these epochs. What this datacenter has beyond the fork is
 * set apart before anything is touched: its own entries stay until somebody discards them, and those that
 * were trimmed are counted as gone.
 */
export function applyEpochFence(
  { changes }: ApplyContext,
  { epochs }: ChangeOf<'epoch.fence'>,
): VerdictAnswer {
  const { replication } = changes;
  const heard = epochs.at(-1)?.epoch;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  if (heard === undefined || forkOf(replication, epochs) === undefined) {
    return verdictOf(changes, 'not-allowed');
  }
  if (heard < replication.maxEpochPromised) return verdictOf(changes, 'fenced');
  if (heard <= currentEpoch(replication).epoch) return verdictOf(changes, 'not-allowed');
  const isNews = heard > replication.maxEpochPromised;
  changes.changeReplication({
    ...setApart(changes, replication, epochs),
    maxEpochPromised: heard,
    votedFor: isNews ? undefined : replication.votedFor,
  });
  return verdictOf(changes, 'applied');
}

export function applyDivergentDiscard(
  { changes }: ApplyContext,
  { epoch, upTo }: ChangeOf<'divergent.discard'>,
): VerdictAnswer {
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  const divergent = replication.divergent.flatMap((range) =>
    range.epoch === epoch ? discarded(changes, range, upTo) : [range],
  );
  const gone = replication.gone.flatMap((range) =>
    range.epoch === epoch ? within(range, upTo + 1, range.last) : [range],
  );
  changes.changeReplication({ ...replication, divergent, gone });
  return verdictOf(changes, 'applied');
}

function discarded(changes: ChangeSet, range: EntryRange, upTo: number): readonly EntryRange[] {
  const last = Math.min(upTo, range.last, range.first + TRIM_ENTRIES_MAX - 1);
  for (let seq = range.first; seq <= last; seq += 1) changes.deleteRow(entryKey(range.epoch, seq));
  return within(range, last + 1, range.last);
}

export function applyDivergentDrop(
  { changes }: ApplyContext,
  { epoch, seq }: ChangeOf<'divergent.drop'>,
): VerdictAnswer {
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  const place = { epoch, seq };
  if (!replication.divergent.some((range) => has(range, place))) {
    return verdictOf(changes, 'not-allowed');
  }
  const divergent = replication.divergent.flatMap((range) => withoutPlace(range, place));
  changes.deleteRow(entryKey(epoch, seq));
  changes.changeReplication({ ...replication, divergent });
  return verdictOf(changes, 'applied');
}
