// What a leader's messages do to a follower's log.

import { assert } from '../base/assert.ts';
import { isLogSlice } from './log/entry.ts';
import type { AppendMessage, HeartbeatMessage } from './message.ts';
import { envelope, observe, type Raft, send } from './state.ts';

/** Takes the entries if the log has their predecessor, or answers with a hint where it might fit. */
export function onAppend(raft: Raft, message: AppendMessage): void {
  const { from, prevIndex, prevTerm, entries, commitIndex, term } = message;
  const { log } = raft;
  const prev = { term: prevTerm, index: prevIndex };
  if (!isLogSlice(prev, entries, term)) {
    observe(raft, { kind: 'append-malformed', message });
    return;
  }
  if (prevIndex < log.commitIndex) {
    // Late news: all that is committed here is known to be the leader's too. Where it is not, the leader, or who
    // elected it, has lost what it promised: answered, it would count entries that this node does not have.
    const ownTerm = log.termOrZero(prevIndex);
    assert(ownTerm === 0 || ownTerm === prevTerm, 'the leader contradicts a committed entry', {
      index: prevIndex,
      term: ownTerm,
      leaderTerm: prevTerm,
      commitIndex: log.commitIndex,
    });
    send(raft, { type: 'append-reply', ...envelope(raft, from), index: log.commitIndex });
    return;
  }
  const lastNewIndex = log.maybeAppend(prev, entries, commitIndex);
  if (lastNewIndex !== undefined) {
    send(raft, { type: 'append-reply', ...envelope(raft, from), index: lastNewIndex });
    return;
  }
  observe(raft, { kind: 'append-rejected', message, ownTerm: log.termOrZero(prevIndex) });
  // Entries here with a term above the leader's at that place are surely not the leader's: skip them.
  const hint = log.lastAgreement(Math.min(prevIndex, log.lastIndex), prevTerm);
  const rejection = { hintIndex: hint.index, hintTerm: hint.term };
  send(raft, { type: 'append-reply', ...envelope(raft, from), index: prevIndex, rejection });
}

/** Learns the commit index; the answer copies the read count so that the leader can confirm reads. */
export function onHeartbeat(raft: Raft, message: HeartbeatMessage): void {
  const { from, commitIndex, readCount } = message;
  raft.log.commitTo(commitIndex);
  send(raft, { type: 'heartbeat-reply', ...envelope(raft, from), readCount });
}
