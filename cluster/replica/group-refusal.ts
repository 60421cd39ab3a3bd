// What only a group of several can refuse: nothing was done, and another node may be the one to ask.
// Whether and where to ask again is the caller's matter.

import type { NodeId } from '../raft/node-id.ts';

export type GroupRefusalCode =
  /** Nothing was done: this node does not lead. */
  | 'not-leader'
  /** The read barrier found no leader that could prove itself in time. */
  | 'no-quorum'
  /** Another change of membership is under way; this one may be asked for again after it. */
  | 'change-in-flight'
  /** What was asked for does not fit the group as it is; asking again is of no use. */
  | 'refused';

export class GroupRefusal extends Error {
  override readonly name = 'GroupRefusal';
  readonly code: GroupRefusalCode;
  /** Who leads, as far as this node knows. */
  readonly leader: NodeId | undefined;

  constructor(code: GroupRefusalCode, message: string, leader?: NodeId) {
    super(message);
    this.code = code;
    this.leader = leader;
  }
}
