// Who writes what all datacenters share, how that was changed, and what did not come along. The shapes are
// declared here because this floor lies below the service, which fills them in.

import type { ShownPosition } from './shown-federation.ts';

export interface ShownPrimary {
  readonly datacenter: string;
  readonly epoch: number;
  /** The highest epoch that the datacenter which was asked has promised: a forced move names the next. */
  readonly promisedEpoch: number;
  /** What the datacenter which was asked has of the global log. */
  readonly position: ShownPosition;
  /** The end of the global log, as far as it knows. */
  readonly head: ShownPosition;
  /** The datacenters whose promises count. */
  readonly voters: readonly string[];
  /**
   * Why the primary, if it was asked, takes no global write now, or has promised to one that did not begin; whoever
   * was asked, that nobody is the primary because the last one has lost its reign. Empty: none of that is known.
   */
  readonly closedBecause: string;
  /** Entries that only the datacenter which was asked has, and that are on nobody's log any more. */
  readonly divergentCount: number;
  /** Of the same kind, but trimmed before that was known. */
  readonly goneCount: number;
}

/** How the primary may be moved. */
export type MoveMode = 'hand-over' | 'election' | 'forced';

export interface ShownMove {
  readonly datacenter: string;
  readonly epoch: number;
  /** Datacenters that promised to take nothing of a lower epoch, the new primary left out. */
  readonly promises: readonly string[];
  /** The last entry of the reigns before that the new primary has. */
  readonly position: ShownPosition;
  /** The end of the log before, as far as the new primary had heard: what lies between is lost. */
  readonly head: ShownPosition;
}

export interface ShownDivergentObject {
  readonly kind: string;
  readonly id: string;
  /** Empty where it has none, or is gone. */
  readonly name: string;
  readonly isDeleted: boolean;
}

export interface ShownDivergentEntry {
  readonly position: ShownPosition;
  /** By the wall clock of the primary that it was. */
  readonly timeMs: number;
  /** Accessor id of who asked for it; undefined for the primary's own duties. */
  readonly principal: string | undefined;
  /** `effects` changed objects; `reset`, `epoch-start` and `datacenters` cannot be made again. */
  readonly kind: string;
  readonly objects: readonly ShownDivergentObject[];
}

/** Entries of one epoch, one after the other. */
export interface ShownGone {
  readonly first: ShownPosition;
  readonly last: ShownPosition;
  /** At most: a restore may have left out some positions. */
  readonly count: number;
}

export interface ShownDivergence {
  /** Of all, listed or not. */
  readonly count: number;
  /** Oldest first. */
  readonly entries: readonly ShownDivergentEntry[];
  /** Entries that were trimmed before it was known that nobody else has them. Oldest first. */
  readonly gone: readonly ShownGone[];
}
