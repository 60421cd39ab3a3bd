// What a command about the global log came to. None of these is a fault of the log: whoever proposed
// looks at the cursor that comes with the verdict and goes on from there.

import type { GlobalCursor } from './cursor.ts';

export type Verdict =
  /** All of it. */
  | 'applied'
  /** It starts at another place than this datacenter is at. */
  | 'other-cursor'
  /** An entry does not follow the one before it, or is none at all. */
  | 'broken-chain'
  /** After an entry the global objects would not be those that the primary has. */
  | 'diverged'
  /** It comes from a primary whose epoch is over: a later one was promised or heard of. */
  | 'fenced'
  /** Only a snapshot leads on from here. */
  | 'reset'
  /** It is of another federation than this datacenter. */
  | 'stranger'
  /** This datacenter is the primary itself. */
  | 'primary'
  /** The promise was given. */
  | 'granted'
  /** It was not: the epoch is promised already, or the candidate lacks entries. */
  | 'not-granted'
  /** The rule that is named in the command's file does not hold. */
  | 'not-allowed'
  /** This datacenter began no global log. */
  | 'not-begun';

/** Entries before the one that did not fit stay applied; the cursor says how far that is. */
export interface VerdictAnswer {
  readonly type: 'verdict';
  readonly verdict: Verdict;
  /** Of this datacenter, after the command; undefined with 'not-begun'. */
  readonly cursor: GlobalCursor | undefined;
  readonly maxEpochPromised: number;
}
