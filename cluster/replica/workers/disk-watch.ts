// What a node does whose disk does not answer. It must not lead: heartbeats would go on, writes would
// hang, and nobody would take over. So a leader hands over at first, then falls silent until the group
// has another; a follower does not campaign.

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
