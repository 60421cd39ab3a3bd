// The promises a node makes: what must be on its disk before any message that relies on it leaves.

import type { NodeId } from './node-id.ts';

/** Term, vote and commit index. Only the first two are promises; commit may be lost and relearned. */
export interface HardState {
  readonly term: number;
  readonly vote: NodeId;
  readonly commitIndex: number;
}

export function sameHardState(a: HardState, b: HardState): boolean {
  return a.term === b.term && a.vote === b.vote && a.commitIndex === b.commitIndex;
}
