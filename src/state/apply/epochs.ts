// Epochs of the global log: promised, begun, and heard of by a primary whose time is over. All of it is
// decided here, in the order of the datacenter's own log: whatever a leader still believes, nothing of a
// lower epoch is taken after a promise.

import type { ChangeSet } from '../change-set.ts';
import type { Change } from '../commands.ts';
import { isStrictOnForks } from '../feature-levels.ts';
import { forkOf, isOwn, rangesOf, suffixOf } from '../global-log/chain.ts';
import { mayPromise, mayStart } from '../global-log/election.ts';
import { entryKey } from '../global-log/global-log-writer.ts';
import {
  currentEpoch,
  type EntryRange,
  type EpochStart,
  type Replication,
} from '../global-log/replication.ts';
import type { VerdictAnswer } from '../global-log/verdict.ts';
import type { ApplyContext } from './checks.ts';
import { TRIM_ENTRIES_MAX, verdictOf } from './global-log.ts';

type EpochChange<Type extends Change['type']> = Extract<Change, { readonly type: Type }>;

export function applyEpochPromise(
  { changes }: ApplyContext,
  { epoch, candidate, at }: EpochChange<'epoch.promise'>,
): VerdictAnswer {
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  if (!mayPromise(replication, { epoch, candidate, at })) return verdictOf(changes, 'not-granted');
  changes.changeReplication({ ...replication, maxEpochPromised: epoch, votedFor: candidate });
  return verdictOf(changes, 'granted');
}

export function applyEpochStart(
  { changes, timeMs, principal }: ApplyContext,
  claim: EpochChange<'epoch.start'>,
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
  { epochs }: EpochChange<'epoch.fence'>,
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

/**
 * With everything set apart that it wrote itself and that is not on the chain of these epochs. Said twice of
 * the same reign, it changes nothing.
 */
export function setApart(
  { level }: Pick<ChangeSet, 'level'>,
  replication: Replication,
  theirs: readonly EpochStart[],
): Replication {
  if (!replication.isDiverged) return withoutSuffix(replication, theirs);
  const isNews = (theirs.at(-1)?.epoch ?? 0) > replication.maxEpochPromised;
  return isNews && isStrictOnForks(level) ? withLongerSuffix(replication, theirs) : replication;
}

/**
 * The reign that it waited for was lost, and a later one left the chain before it did. What lies between both
 * forks is set apart, too, or counted as gone where it was dropped meanwhile. Entries of the first fork that
 * were settled may be counted once more: nobody remembers which they were, and none is to be lost unsaid.
 */
function withLongerSuffix(replication: Replication, theirs: readonly EpochStart[]): Replication {
  const { divergent, gone } = replication;
  const known = [...divergent, ...gone];
  const missing = suffixOf(replication, theirs)
    .filter((range) => isOwn(replication, range))
    .flatMap((range) => {
      const inside = known.filter((each) => isInside(each, range)).map(({ first }) => first);
      return within(range, range.first, Math.min(range.last, ...inside.map((first) => first - 1)));
    });
  const left = missing.flatMap((range) => partsIn(range, replication.unused));
  return {
    ...replication,
    divergent: [...left, ...divergent],
    gone: [...missing.flatMap((range) => partsOutside(range, left)), ...gone],
    unused: replication.unused.flatMap((range) => partsOutside(range, left)),
  };
}

function isInside(range: EntryRange, other: EntryRange): boolean {
  return range.epoch === other.epoch && other.first <= range.first && range.last <= other.last;
}

/** The parts of a range that are in others, too. */
function partsIn(range: EntryRange, others: readonly EntryRange[]): readonly EntryRange[] {
  return others
    .filter(({ epoch }) => epoch === range.epoch)
    .flatMap(({ first, last }) => within(range, first, last));
}

/** The parts of a range that are in none of the others. */
function partsOutside(range: EntryRange, others: readonly EntryRange[]): readonly EntryRange[] {
  return others
    .filter(({ epoch }) => epoch === range.epoch)
    .reduce<readonly EntryRange[]>(
      (parts, { first, last }) =>
        parts.flatMap((part) => [
          ...within(part, part.first, first - 1),
          ...within(part, last + 1, part.last),
        ]),
      [range],
    );
}

function withoutSuffix(replication: Replication, theirs: readonly EpochStart[]): Replication {
  const { first, cursor, divergent, gone } = replication;
  const suffix = suffixOf(replication, theirs);
  if (suffix.length === 0) return replication;
  const kept = suffix.flatMap((range) => within(range, first, range.last));
  const trimmed = suffix.flatMap((range) => within(range, range.first, first - 1));
  const own = (range: EntryRange): boolean => isOwn(replication, range);
  const forkSeq = suffix[0]!.first - 1;
  // Nothing is sent to others from here on, so nothing else that is kept is wanted.
  const shared = rangesOf(replication.epochs, first, forkSeq);
  const foreign = kept.filter((range) => !own(range));
  return {
    ...replication,
    first: cursor.seq + 1,
    keptBytes: 0,
    divergent: [...divergent, ...kept.filter(own)],
    gone: [...gone, ...trimmed.filter(own)],
    unused: [...replication.unused, ...shared, ...foreign],
    isDiverged: true,
  };
}

/**
 * The log goes on from here with what was set apart, so it is set apart no more. Its entries may have been
 * discarded meanwhile, one or all of them: followers are sent a snapshot.
 */
function withSuffix(replication: Replication): Replication {
  const { epochs, divergent, gone, unused } = replication;
  const isOnChain = ({ epoch, first, last }: EntryRange): boolean =>
    rangesOf(epochs, first, last).every((range) => range.epoch === epoch);
  return {
    ...replication,
    divergent: divergent.filter((range) => !isOnChain(range)),
    gone: gone.filter((range) => !isOnChain(range)),
    unused: [...unused, ...divergent.filter(isOnChain)],
    isDiverged: false,
  };
}

/** The part of a range from one seq to another, if there is one. */
function within(range: EntryRange, first: number, last: number): readonly EntryRange[] {
  const part = {
    ...range,
    first: Math.max(range.first, first),
    last: Math.min(range.last, last),
  };
  return part.first <= part.last ? [part] : [];
}

export function applyDivergentDiscard(
  { changes }: ApplyContext,
  { epoch, upTo }: EpochChange<'divergent.discard'>,
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
  { epoch, seq }: EpochChange<'divergent.drop'>,
): VerdictAnswer {
  const { replication } = changes;
  if (replication === undefined) return verdictOf(changes, 'not-begun');
  const has = (range: EntryRange): boolean =>
    range.epoch === epoch && range.first <= seq && seq <= range.last;
  if (!replication.divergent.some(has)) return verdictOf(changes, 'not-allowed');
  const divergent = replication.divergent.flatMap((range) =>
    has(range)
      ? [...within(range, range.first, seq - 1), ...within(range, seq + 1, range.last)]
      : [range],
  );
  changes.deleteRow(entryKey(epoch, seq));
  changes.changeReplication({ ...replication, divergent });
  return verdictOf(changes, 'applied');
}
