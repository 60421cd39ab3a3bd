// Who belongs to the group when a node starts: what its machine remembers. A data folder of a release
// that knew no groups has entries and no such record: it is a group of its own node.

import type { DurableLog } from '../log/durable-log.ts';
import { type Membership, NO_MEMBERS } from '../raft/membership/membership.ts';
import type { NodeId } from '../raft/node-id.ts';
import type { Machine } from './replica.ts';
import { recordOf } from './workers/apply-worker.ts';

export interface AtStart {
  readonly nodeId: NodeId;
  readonly log: DurableLog;
  readonly machine: Pick<Machine<unknown>, 'appliedEntry' | 'groupRecord'>;
}

export function membershipAtStart({ nodeId, log, machine }: AtStart): Membership {
  if (machine.groupRecord !== undefined) return recordOf(machine).membership;
  return isOfOneNode(log, machine) ? { ...NO_MEMBERS, voters: [nodeId] } : NO_MEMBERS;
}

/** A group is founded by membership entries: the first entry that is applied makes its record. */
function isOfOneNode(log: DurableLog, { appliedEntry }: AtStart['machine']): boolean {
  if (appliedEntry !== undefined) return true;
  return log.lastIndex > 0 && log.entry(log.firstIndex).type === 'normal';
}
