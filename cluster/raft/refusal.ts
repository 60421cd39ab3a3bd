// Why raft would not do what it was asked. A refusal leaves no trace in the state or the log.

/** Reasons for a refused proposal, transfer or message. */
export type Refusal =
  /** No leader is known, so there is nobody to do it or to hand it on to. */
  | 'no-leader'
  /** This node is leader of a group that it is no longer a member of. */
  | 'not-a-member'
  /** Leadership is being handed over; ask the next leader. */
  | 'transfer-in-progress'
  /** Too much is proposed and not yet committed; try later. */
  | 'uncommitted-limit'
  /** This node does not hand proposals on; ask the leader directly. */
  | 'forwarding-off'
  /** The bytes of a membership change say nothing. */
  | 'malformed-change'
  /** A reply from somebody who is not in the group. */
  | 'unknown-member'
  /** A message that must name its term and does not; taken, it would pass for one of the present term. */
  | 'message-without-term'
  /** A message that only a storage worker of this node may send. */
  | 'local-message';
