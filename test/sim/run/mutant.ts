// A planted bug: what it breaks, and how it is put in without a change to the product. A simulator that
// does not find it cannot be trusted to find one that nobody planted.

import type { SubjectName } from './run-options.ts';

export interface Mutant {
  readonly name: string;
  /** What is wrong with it, in one sentence. */
  readonly breaks: string;
  /** The checkers of which one should find it. */
  readonly foundBy: readonly string[];
  readonly subject: SubjectName;
  /** Stores that are told of as on disk before they are. */
  readonly lyingStores?: readonly string[];
  /** Puts it in; the result takes it out again. */
  install(): () => void;
}
