// A planted bug: what it breaks, and how it is put in without a change to the product. A simulator that
// does not find it cannot be trusted to find one that nobody planted.

import type { SubjectName } from '../run/run-options.ts';

export interface Mutant {
  readonly name: string;
  /** What is wrong with it, in one sentence. */
  readonly breaks: string;
  /**
   * The checkers of which one must find it. Assertions of the product do not count: a bug that nobody
   * thought of has none.
   */
  readonly foundBy: readonly string[];
  readonly subject: SubjectName;
  /** It is looked for on this day alone; see bad-days.ts. */
  readonly badDay?: string;
  /** One that finds it, so that a short test need not look for one. */
  readonly seed: number;
  /** Whether it takes many seeds, or long ones: too many for a short test. */
  readonly isSlow?: boolean;
  /** Stores that are told of as on disk before they are. */
  readonly lyingStores?: readonly string[];
  /** Puts it in; the result takes it out again. */
  install(): () => void;
}
