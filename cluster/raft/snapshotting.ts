// A follower takes a snapshot from its leader, unless its own log already reaches as far.

import type { Snapshot } from './log/snapshot.ts';
import { membersOf } from './membership/membership.ts';
import { restoreMembership } from './membership/reconfiguration.ts';
import type { SnapshotMessage } from './message.ts';
import { NO_NODE } from './node-id.ts';
import { becomeFollower } from './standing.ts';
import { envelope, observe, type Raft, send } from './state.ts';

/** Installs or ignores a snapshot, and tells the leader how far the log reaches either way. */
export function onSnapshot(raft: Raft, message: SnapshotMessage): void {
  const { snapshot, from } = message;
  const restored = restore(raft, snapshot);
  const { commitIndex, lastIndex } = raft.log;
  observe(raft, {
    kind: restored ? 'snapshot-accepted' : 'snapshot-ignored',
    snapshot,
    commitIndex,
  });
  const index = restored ? lastIndex : commitIndex;
  send(raft, { type: 'append-reply', ...envelope(raft, from), index });
}

function restore(raft: Raft, snapshot: Snapshot): boolean {
  const { log } = raft;
  if (snapshot.index <= log.commitIndex) return false;
  if (raft.standing !== 'follower') {
    // Cannot happen; if it does, a leader must not go on with a log that was swapped under it.
    becomeFollower(raft, raft.term + 1, NO_NODE);
    return false;
  }
  const { membership } = snapshot;
  if (!membersOf(membership).includes(raft.id)) {
    observe(raft, { kind: 'snapshot-without-self', membership });
    return false;
  }
  if (log.matches(snapshot)) {
    // The log has it all; only the news that it is committed is new.
    const { commitIndex, lastId } = log;
    observe(raft, { kind: 'snapshot-fast-forwarded', snapshot, commitIndex, last: lastId });
    log.commitTo(snapshot.index);
    return false;
  }
  log.restore(snapshot);
  restoreMembership(raft, snapshot.index, membership);
  const { commitIndex, lastId } = log;
  observe(raft, { kind: 'snapshot-restored', snapshot, commitIndex, last: lastId });
  return true;
}
