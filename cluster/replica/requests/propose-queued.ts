// The first step of a write in the loop: what was queued since the last turn goes into raft's log, batch by
// batch, or is refused with the reason and with who leads.

import { NO_NODE } from '../../raft/node-id.ts';
import type { RawNode } from '../../raft/raw-node.ts';
import type { Refusal } from '../../raft/refusal.ts';
import { GroupRefusal } from '../group-refusal.ts';
import { ReplicaError } from '../replica.ts';
import type { PendingProposals } from './pending-proposals.ts';

export function proposeQueued(node: RawNode, proposals: PendingProposals<unknown>): void {
  while (proposals.queuedCount > 0) {
    const { id, term, lastIndex } = node.status();
    const batch = proposals.takeBatch();
    const refusal = node.step({
      type: 'propose',
      from: id,
      to: id,
      term: 0,
      entries: batch.map(({ payload }) => ({ type: 'normal', data: payload })),
    });
    if (refusal === undefined) proposals.appended(batch, { term, index: lastIndex + 1 });
    else proposals.reject(batch, errorOf(refusal, node));
  }
}

function errorOf(refusal: Refusal, node: RawNode): Error {
  if (refusal === 'uncommitted-limit') {
    return new ReplicaError('queue-full', 'too much waits for a quorum already');
  }
  const { id, leader } = node.status();
  const isElsewhere = leader !== NO_NODE && leader !== id;
  const says = `this node takes no writes: ${refusal}`;
  return new GroupRefusal('not-leader', says, isElsewhere ? leader : undefined);
}
