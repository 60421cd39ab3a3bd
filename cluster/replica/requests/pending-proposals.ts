// Proposals of this node between being asked for and being answered: queued, then at a place in the
// leader's log. Each is settled once. Whether an entry at that place is still the proposal's own is
// told by its term. Where those that are under way stand still, no more are taken: followers whose disks hang
// answer their leader all the same, so it leads on, which reads need, and nobody could tell what comes of a write.

import { assert } from '../../base/assert.ts';
import { countWithin, type GroupLimits } from '../group-limits.ts';
import { ReplicaError } from '../replica.ts';

export interface Proposal<Outcome> {
  readonly payload: Uint8Array;
  /** Of its entry; 0 while it is queued. */
  term: number;
  resolve(outcome: Outcome): void;
  reject(error: Error): void;
}

/** Where an entry stands in the log. */
interface Place {
  readonly index: number;
  readonly term: number;
}

/** What a tick has changed: nothing is answered any more, or something is again. */
export type ProposalsStep = 'none' | 'stand-still' | 'go-on';

export interface PendingProposalsOptions {
  readonly limits: GroupLimits;
  /** Where none is answered for so many ticks, though some are under way, they stand still. */
  readonly patienceTicks: number;
}

export class PendingProposals<Outcome> {
  readonly #limits: GroupLimits;
  readonly #patienceTicks: number;
  #queue: Proposal<Outcome>[] = [];
  readonly #appendedByIndex = new Map<number, Proposal<Outcome>>();
  #bytes = 0;
  /** Since the last one was answered, while some are under way. */
  #silentTicks = 0;
  #isStandingStill = false;
  #onEmpty: (() => void) | undefined;

  constructor({ limits, patienceTicks }: PendingProposalsOptions) {
    this.#limits = limits;
    this.#patienceTicks = patienceTicks;
  }

  get queuedCount(): number {
    return this.#queue.length;
  }

  get count(): number {
    return this.#queue.length + this.#appendedByIndex.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Not in time: when the process stands still, that is nobody else's doing. */
  onTick(): ProposalsStep {
    this.#silentTicks = this.#isEmpty ? 0 : this.#silentTicks + 1;
    const isStandingStill = this.#silentTicks > this.#patienceTicks;
    if (isStandingStill === this.#isStandingStill) return 'none';
    this.#isStandingStill = isStandingStill;
    return isStandingStill ? 'stand-still' : 'go-on';
  }

  /** Rejects with `too-large` or `queue-full` where a limit is met, and with the latter where they stand still. */
  add(payload: Uint8Array): Promise<Outcome> {
    assert(payload.length > 0, 'an empty payload means nothing');
    const { payloadBytesMax, pendingCountMax, pendingBytesMax } = this.#limits;
    if (payload.length > payloadBytesMax) {
      const sizes = `${payload.length} bytes, the limit is ${payloadBytesMax}`;
      return Promise.reject(new ReplicaError('too-large', `the payload has ${sizes}`));
    }
    if (this.count >= pendingCountMax || this.#bytes + payload.length > pendingBytesMax) {
      const message = `${this.count} writes are under way already`;
      return Promise.reject(new ReplicaError('queue-full', message));
    }
    if (this.#silentTicks > this.#patienceTicks) {
      const message = `${this.count} writes are under way, and none of them comes to a quorum of disks`;
      return Promise.reject(new ReplicaError('queue-full', message));
    }
    this.#bytes += payload.length;
    return new Promise((resolve, reject) => {
      this.#queue.push({ payload, term: 0, resolve, reject });
    });
  }

  /** The next of the queue; whoever takes them calls appended or reject. */
  takeBatch(): readonly Proposal<Outcome>[] {
    const sizes = this.#queue
      .slice(0, this.#limits.batchCountMax)
      .map((each) => each.payload.length);
    return this.#queue.splice(0, countWithin(sizes, this.#limits));
  }

  /** The batch is in the leader's log from `first` on. */
  appended(batch: readonly Proposal<Outcome>[], first: Place): void {
    batch.forEach((proposal, position) => {
      const index = first.index + position;
      assert(!this.#appendedByIndex.has(index), 'one proposal a place', { index });
      proposal.term = first.term;
      this.#appendedByIndex.set(index, proposal);
    });
  }

  /**
   * The entry at a place is applied; if it is a proposal's own, that is answered. Another one may stand there: who
   * stood still hears in one turn that an entry was replaced, and that what replaced it is committed.
   */
  applied({ index, term }: Place, outcome: Outcome): void {
    const proposal = this.#appendedByIndex.get(index);
    if (proposal === undefined) return;
    this.#appendedByIndex.delete(index);
    this.#silentTicks = 0;
    if (proposal.term !== term) {
      const says = 'another leader has replaced it';
      this.reject([proposal], new ReplicaError('outcome-unknown', says));
      return;
    }
    this.#release(proposal);
    proposal.resolve(outcome);
  }

  reject(batch: readonly Proposal<Outcome>[], error: Error): void {
    for (const proposal of batch) {
      this.#release(proposal);
      proposal.reject(error);
    }
  }

  /** Gives up on what is in the log behind `index`. */
  rejectAfter(index: number, error: Error): void {
    for (const [each, proposal] of this.#appendedByIndex) {
      if (each <= index) continue;
      this.#appendedByIndex.delete(each);
      this.reject([proposal], error);
    }
  }

  /** Gives up on what is in the log up to `index`. */
  rejectThrough(index: number, error: Error): void {
    for (const [each, proposal] of this.#appendedByIndex) {
      if (each > index) continue;
      this.#appendedByIndex.delete(each);
      this.reject([proposal], error);
    }
  }

  rejectQueued(error: Error): void {
    this.reject(this.#queue.splice(0), error);
  }

  /** Resolves when every proposal is settled. */
  async empty(): Promise<void> {
    if (this.#isEmpty) return;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
  }

  get #isEmpty(): boolean {
    return this.count === 0;
  }

  #release({ payload }: Proposal<Outcome>): void {
    this.#bytes -= payload.length;
    // A batch that was taken is in neither list until it is appended; its bytes tell that it is there.
    if (this.#isEmpty && this.#bytes === 0) this.#onEmpty?.();
  }
}
