// The one chain of entries over all epochs, as the starts of its epochs tell it. Pure.

import { comparePlaces, type GlobalCursor, type Position } from './cursor.ts';
import { type EntryRange, type EpochStart, FIRST_EPOCH, type Replication } from './replication.ts';

type Chain = Pick<Replication, 'epochs' | 'cursor'>;

/** The epoch that the entry of this seq belongs to. */
export function epochAt(epochs: readonly EpochStart[], seq: number): number {
  let { epoch } = epochs[0]!;
  for (const each of epochs) if (each.startSeq <= seq) epoch = each.epoch;
  return epoch;
}

/** The entries from `first` to `last` of the chain, epoch by epoch. */
export function rangesOf(
  epochs: readonly EpochStart[],
  first: number,
  last: number,
): readonly EntryRange[] {
  const ranges: EntryRange[] = [];
  for (let from = first; from <= last; ) {
    const epoch = epochAt(epochs, from);
    const next = epochs.find(({ startSeq }) => startSeq > from);
    const to = Math.min(last, next === undefined ? last : next.startSeq - 1);
    ranges.push({ epoch, first: from, last: to });
    from = to + 1;
  }
  return ranges;
}

/** Where a place stands to a datacenter's chain. */
export type PlaceStanding =
  /** On the chain, and its entry is in the objects. */
  | 'replicated'
  /** May still come. */
  | 'pending'
  /** Its epoch ended before it, or left no entry at all on the chain: none leads there any more. */
  | 'lost';

export function standingOf({ epochs, cursor }: Chain, place: Position): PlaceStanding {
  const next = epochs.find(({ epoch }) => epoch > place.epoch);
  if (next !== undefined) {
    const isBefore = place.epoch < epochs[0]!.epoch;
    const isOfChain = isBefore || epochs.some(({ epoch }) => epoch === place.epoch);
    if (!isOfChain || place.seq >= next.startSeq) return 'lost';
  }
  return comparePlaces(place, cursor) <= 0 ? 'replicated' : 'pending';
}

/**
 * The last place that two chains share, by the epochs that both know. `hash` is undefined where only the
 * chain itself knows it. Undefined when they share nothing: they are logs of different systems.
 */
export function forkOf(
  own: Chain,
  theirs: readonly EpochStart[],
): (Position & { readonly hash: Uint8Array | undefined }) | undefined {
  const shared = own.epochs.findLast((each) => theirs.some((other) => isSameStart(each, other)));
  if (shared === undefined) return undefined;
  const ownEnd = endOf(own.epochs, shared, own.cursor);
  const next = theirs.find(({ epoch }) => epoch > shared.epoch);
  if (next === undefined || ownEnd.seq < next.startSeq) return { ...ownEnd, epoch: shared.epoch };
  return { epoch: shared.epoch, seq: next.startSeq - 1, hash: next.startHash };
}

/** What a chain has beyond the last place that it shares with another one: all of it, if there is none. */
export function suffixOf(own: Chain, theirs: readonly EpochStart[]): readonly EntryRange[] {
  const first = (forkOf(own, theirs)?.seq ?? own.epochs[0]!.startSeq - 1) + 1;
  return rangesOf(own.epochs, first, own.cursor.seq);
}

/** Whether this datacenter itself wrote the entries. */
export function isOwn(
  { epochs, datacenter }: Pick<Replication, 'epochs' | 'datacenter'>,
  range: EntryRange,
): boolean {
  return epochs.find(({ epoch }) => epoch === range.epoch)?.primary === datacenter;
}

function endOf(
  epochs: readonly EpochStart[],
  { epoch }: EpochStart,
  cursor: GlobalCursor,
): { readonly seq: number; readonly hash: Uint8Array } {
  const next = epochs.find((each) => each.epoch > epoch);
  if (next === undefined) return { seq: cursor.seq, hash: cursor.hash };
  return { seq: next.startSeq - 1, hash: next.startHash };
}

function isSameStart(left: EpochStart, right: EpochStart): boolean {
  return (
    left.epoch === right.epoch &&
    left.startSeq === right.startSeq &&
    (left.primary === right.primary || left.epoch === FIRST_EPOCH) &&
    Buffer.compare(left.startHash, right.startHash) === 0
  );
}
