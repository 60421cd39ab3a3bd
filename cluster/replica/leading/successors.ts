// Who could take the leadership over: voters that were heard lately and whose links stand since.

import type { ProgressView } from '../../raft/leading/progress.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { Contact } from './contact.ts';

export interface SuccessorFacts {
  readonly self: NodeId;
  readonly progress: readonly (readonly [NodeId, Pick<ProgressView, 'matchIndex' | 'isLearner'>])[];
  readonly contact: Pick<Contact, 'hasLost' | 'sinceMs'>;
  /** One that was not heard for so long may stand still: it comes behind the others. */
  readonly freshMs: number;
  /** One that was not heard for so long is gone. */
  readonly goneMs: number;
}

/** The best one first: heard lately, then with the longest log. */
export function successorsOf({
  self,
  progress,
  contact,
  freshMs,
  goneMs,
}: SuccessorFacts): readonly NodeId[] {
  const silenceMs = (node: NodeId): number => contact.sinceMs(node) ?? goneMs;
  const isFresh = (node: NodeId): number => Number(silenceMs(node) < freshMs);
  return progress
    .filter(([node, { isLearner }]) => node !== self && !isLearner)
    .filter(([node]) => !contact.hasLost(node) && silenceMs(node) < goneMs)
    .sort(
      ([one, left], [other, right]) =>
        isFresh(other) - isFresh(one) || right.matchIndex - left.matchIndex,
    )
    .map(([node]) => node);
}
