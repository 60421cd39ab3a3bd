// How large a message is on the wire, near enough to bound what waits and to fill frames; and which lane
// it takes.

import { entriesSizeBytes, payloadSizeBytes } from '../../raft/log/entry.ts';
import type { Message } from '../../raft/message.ts';
import type { Lane } from '../../wire/frame.ts';

/** Kind, envelope and numbers of any message. */
const MESSAGE_OVERHEAD_BYTES = 96;
const MEMBER_BYTES = 9;
const ENTRY_HEAD_BYTES = 24;
const CHARACTER_BYTES = 3;

/** At least what its frame takes. */
export function messageSizeBytes(message: Message): number {
  switch (message.type) {
    case 'append':
      return MESSAGE_OVERHEAD_BYTES + entriesSizeBytes(message.entries);
    case 'propose': {
      const { entries } = message;
      return MESSAGE_OVERHEAD_BYTES + entries.length * ENTRY_HEAD_BYTES + payloadSizeBytes(entries);
    }
    case 'snapshot': {
      const { data, membership } = message.snapshot;
      const { voters, votersOutgoing, learners, learnersNext } = membership;
      const memberCount = [voters, votersOutgoing, learners, learnersNext].flat().length;
      return MESSAGE_OVERHEAD_BYTES + MEMBER_BYTES * memberCount + data.length;
    }
    case 'read-index':
    case 'read-index-reply':
      return MESSAGE_OVERHEAD_BYTES + CHARACTER_BYTES * message.context.length;
    default:
      return MESSAGE_OVERHEAD_BYTES;
  }
}

/**
 * Appends go one way all together, empty ones too: one that overtakes those before it would be refused by
 * the follower as a gap, and the leader would send the others again. What is small and urgent goes the other.
 */
export function laneOf(message: Message): Exclude<Lane, 'call'> {
  const isLarge =
    message.type === 'append' || message.type === 'propose' || message.type === 'snapshot';
  return isLarge ? 'bulk' : 'control';
}
