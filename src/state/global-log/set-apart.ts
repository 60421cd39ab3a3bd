// What a datacenter has of the global log that is not on the chain of the reign that it hears of, as ranges:
// its own entries are set apart until somebody settles them, or counted as gone where they are not there any more.
// Nothing of the log itself is touched here.

import { isStrictOnForks, setsApartUnused, takesBackOnChain } from '../commands/feature-levels.ts';
import { isOwn, rangesOf, suffixOf } from './chain.ts';
import type { Position } from './cursor.ts';
import { currentEpoch, type EntryRange, type EpochStart, type Replication } from './replication.ts';

/**
 * With everything set apart that it wrote itself and that is not on the chain of these epochs. Said twice of
 * the same reign, it changes nothing.
 */
export function setApart(
  { level }: { readonly level: number },
  replication: Replication,
  theirs: readonly EpochStart[],
): Replication {
  if (!replication.isDiverged) return withoutSuffix(replication, theirs, level);
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
  const left = leftOf(missing, replication.unused);
  return {
    ...replication,
    divergent: [...left.there, ...divergent],
    gone: [...left.gone, ...gone],
    unused: left.unused,
  };
}

/** Of own entries that are in the log no more: those that are still there, which are wanted now, and the others. */
function leftOf(
  missing: readonly EntryRange[],
  unused: readonly EntryRange[],
): Readonly<Record<'there' | 'gone' | 'unused', readonly EntryRange[]>> {
  const there = missing.flatMap((range) => partsIn(range, unused));
  const outside = (range: EntryRange): readonly EntryRange[] => partsOutside(range, there);
  return { there, gone: missing.flatMap(outside), unused: unused.flatMap(outside) };
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

function withoutSuffix(
  replication: Replication,
  theirs: readonly EpochStart[],
  level: number,
): Replication {
  const { first, cursor, divergent, gone } = replication;
  const suffix = suffixOf(replication, theirs);
  if (suffix.length === 0) return replication;
  const kept = suffix.flatMap((range) => within(range, first, range.last));
  const own = (range: EntryRange): boolean => isOwn(replication, range);
  const missing = suffix.filter(own).flatMap((range) => within(range, range.first, first - 1));
  const left = setsApartUnused(level)
    ? leftOf(missing, replication.unused)
    : { there: [], gone: missing, unused: replication.unused };
  const forkSeq = suffix[0]!.first - 1;
  // Nothing is sent to others from here on, so nothing else that is kept is wanted.
  const shared = rangesOf(replication.epochs, first, forkSeq);
  const foreign = kept.filter((range) => !own(range));
  return {
    ...replication,
    first: cursor.seq + 1,
    keptBytes: 0,
    divergent: [...divergent, ...left.there, ...kept.filter(own)],
    gone: [...gone, ...left.gone],
    unused: [...left.unused, ...shared, ...foreign],
    isDiverged: true,
  };
}

/**
 * The log goes on from here with what was set apart, so it is set apart no more. Its entries may have been
 * discarded meanwhile, one or all of them: followers are sent a snapshot.
 */
export function withSuffix(replication: Replication): Replication {
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

/**
 * With the entry of that place, which comes next, on the chain: the later reign that it was set apart for is lost, and
 * left nothing here.
 */
export function withPlace(
  { level }: { readonly level: number },
  replication: Replication,
  place: Position,
): Replication {
  if (!takesBackOnChain(level)) return replication;
  const { epochs, divergent, gone, unused } = replication;
  const { epoch } = place;
  const isListed = [divergent, gone, unused].some((ranges) =>
    ranges.some((each) => has(each, place)),
  );
  if (!isListed && epoch >= currentEpoch(replication).epoch) return replication;
  return {
    ...replication,
    epochs: epochs.filter((each) => each.epoch <= epoch),
    divergent: divergent.flatMap((range) => withoutPlace(range, place)),
    gone: gone.flatMap((range) => withoutPlace(range, place)),
    unused: unused.flatMap((range) => withoutPlace(range, place)),
  };
}

export function has({ epoch, first, last }: EntryRange, place: Position): boolean {
  return epoch === place.epoch && first <= place.seq && place.seq <= last;
}

/** What is left of a range. */
export function withoutPlace(range: EntryRange, place: Position): readonly EntryRange[] {
  if (!has(range, place)) return [range];
  return [
    ...within(range, range.first, place.seq - 1),
    ...within(range, place.seq + 1, range.last),
  ];
}

/** The part of a range from one seq to another, if there is one. */
export function within(range: EntryRange, first: number, last: number): readonly EntryRange[] {
  const part = {
    ...range,
    first: Math.max(range.first, first),
    last: Math.min(range.last, last),
  };
  return part.first <= part.last ? [part] : [];
}
