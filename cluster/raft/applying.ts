// What follows when the state machine has caught up: limits open again, a joint membership that leaves by
// itself is left, and a campaign that has waited for that begins.

import { resumeCampaign } from './election.ts';
import { proposeAsLeader } from './leading/proposing.ts';
import { entriesSizeBytes, NO_DATA, payloadSizeBytes } from './log/entry.ts';
import type { Snapshot } from './log/snapshot.ts';
import type { StorageApplyReply } from './message.ts';
import { observe, type Raft } from './state.ts';

/** The entries of a storage-apply message are applied. */
export function onApplied(raft: Raft, { entries }: StorageApplyReply): void {
  const last = entries.at(-1);
  if (last === undefined) return;
  appliedTo(raft, last.index, entriesSizeBytes(entries));
  raft.uncommittedBytes = Math.max(0, raft.uncommittedBytes - payloadSizeBytes(entries));
}

/** A snapshot is on disk and in the state machine. */
export function onSnapshotApplied(raft: Raft, snapshot: Snapshot): void {
  raft.log.unstable.stableSnapshotTo(snapshot.index);
  appliedTo(raft, snapshot.index, 0);
}

function appliedTo(raft: Raft, index: number, bytes: number): void {
  const { log } = raft;
  log.appliedTo(Math.max(index, log.appliedIndex), bytes);
  leaveJointState(raft);
  resumeCampaign(raft);
}

/** Leaves a joint state that is to be left, as leader and as soon as that may be. */
export function leaveJointState(raft: Raft): void {
  const { log, membership } = raft;
  const mayLeave = membership.autoLeave && log.appliedIndex >= raft.pendingChangeIndex;
  if (!mayLeave || raft.standing !== 'leader') return;
  // No limit refuses an empty payload; a transfer under way does, and then its end brings us here again, or the
  // next leader does it.
  const result = proposeAsLeader(raft, [{ type: 'membership', data: NO_DATA }]);
  if (result.kind === 'refused') {
    observe(raft, { kind: 'auto-leave-postponed', membership, reason: result.reason });
  } else {
    observe(raft, { kind: 'auto-leave-started', membership });
  }
}
