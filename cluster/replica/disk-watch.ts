// What a node does whose disk does not answer. It must not lead: heartbeats would go on, writes would
// hang, and nobody would take over. So a leader hands over at first, then falls silent until the group
// has another; a follower does not campaign.

import type { NodeId } from '../raft/node-id.ts';
import type { ProgressView } from '../raft/progress.ts';
import type { RawNode } from '../raft/raw-node.ts';

export type StallStep = 'none' | 'hand-over' | 'fall-silent';

export class DiskWatch {
  readonly #limitTicks: number;
  #handedOver = false;
  /** Since a write, of log or state, takes longer than the limit. */
  isStalled = false;
  /** Nothing that keeps followers loyal may leave. */
  isSilent = false;

  constructor(limitTicks: number) {
    this.#limitTicks = limitTicks;
  }

  /** To be called at every tick and after every write, with the age of the oldest write in flight in ticks. */
  look(writingTicks: number): StallStep {
    this.isStalled = writingTicks > this.#limitTicks;
    if (!this.isStalled) {
      this.#handedOver = false;
      this.isSilent = false;
      return 'none';
    }
    if (!this.#handedOver) {
      this.#handedOver = true;
      return 'hand-over';
    }
    if (this.isSilent || writingTicks <= 2 * this.#limitTicks) return 'none';
    this.isSilent = true;
    return 'fall-silent';
  }
}

/** The voter to hand leadership to: alive, and with the longest log. */
export function successorOf(status: ReturnType<RawNode['status']>): NodeId | undefined {
  const isFit = ([node, progress]: readonly [NodeId, ProgressView]): boolean =>
    node !== status.id && !progress.isLearner && progress.recentlyActive;
  const [best] = status.progress
    .filter(isFit)
    .sort(([, left], [, right]) => right.matchIndex - left.matchIndex);
  return best?.[0];
}
