// What operators read when the primary is moved, as JSON.

import { quoteValue } from './quote.ts';
import { positionText, type ShownPosition } from './shown-federation.ts';
import type {
  ShownDivergence,
  ShownDivergentEntry,
  ShownDivergentObject,
  ShownMove,
  ShownPrimary,
} from './shown-primary.ts';

export function renderPrimary(primary: ShownPrimary): string {
  return quoteValue({
    Datacenter: primary.datacenter,
    Epoch: primary.epoch,
    PromisedEpoch: primary.promisedEpoch,
    Position: positionText(primary.position),
    HeadPosition: positionText(primary.head),
    Voters: primary.voters,
    Closed: primary.closedBecause,
    DivergentEntries: primary.divergentCount,
    GoneEntries: primary.goneCount,
  });
}

export function renderPrimaryMoved(move: ShownMove): string {
  return quoteValue({
    Datacenter: move.datacenter,
    Epoch: move.epoch,
    Promises: move.promises,
    Position: positionText(move.position),
    HeadPosition: positionText(move.head),
  });
}

export function renderDivergence({ count, entries, gone }: ShownDivergence): string {
  return quoteValue({
    Count: count,
    Entries: entries.map(entryOf),
    Gone: gone.map((range) => ({
      First: positionText(range.first),
      Last: positionText(range.last),
      Count: range.count,
    })),
  });
}

export function renderResubmitted(made: {
  readonly position: ShownPosition;
  readonly index: number;
}): string {
  return quoteValue({ Position: positionText(made.position), Index: made.index });
}

function entryOf({ position, timeMs, principal, kind, objects }: ShownDivergentEntry): object {
  return {
    Position: positionText(position),
    Time: new Date(timeMs).toISOString(),
    AccessorID: principal ?? '',
    Kind: kind,
    Objects: objects.map(objectOf),
  };
}

function objectOf({ kind, id, name, isDeleted }: ShownDivergentObject): object {
  return { Kind: kind, ID: id, Name: name, Deleted: isDeleted };
}
