// Reads that wait for proof that their leader still leads, confirmed by counting.
// Reads are numbered as they come; a heartbeat carries the newest number, and a quorum that has
// answered with n has seen this leader after read n was asked. A late answer carries its old, smaller
// number and so can never confirm a read that was asked after the heartbeat it belongs to.

import { quorumIndex, type Voters } from '../membership/quorum.ts';
import type { NodeId } from '../node-id.ts';

/** Reads that wait for the first commit of a term. Whoever asked one that gives way asks again. */
const PARKED_MAX = 256;

/** A read asked at `from`; `context` is the asker's own name for it. */
export interface ReadRequest {
  readonly from: NodeId;
  readonly context: string;
}

/** A read that may be answered once `index` is applied. */
export interface ConfirmedRead {
  readonly request: ReadRequest;
  readonly index: number;
}

/** The waiting reads of one leader in one term. */
export class ReadQueue {
  /** Reads asked before this leader has committed anything in its term. */
  #parked: ReadRequest[] = [];
  #unconfirmed: ConfirmedRead[] = [];
  #confirmedCount = 0;
  readonly #ackedCounts = new Map<NodeId, number>();

  /** What the next heartbeat must carry: the number of the newest waiting read, or 0. */
  get heartbeatCount(): number {
    return this.#unconfirmed.length === 0 ? 0 : this.#confirmedCount + this.#unconfirmed.length;
  }

  park(request: ReadRequest): void {
    if (this.#parked.length >= PARKED_MAX) this.#parked.shift();
    this.#parked.push(request);
  }

  /** Hands back the parked reads, once. */
  releaseParked(): readonly ReadRequest[] {
    const parked = this.#parked;
    this.#parked = [];
    return parked;
  }

  /** Adds a read at the commit index of this moment. */
  add(request: ReadRequest, commitIndex: number): void {
    this.#unconfirmed.push({ request, index: commitIndex });
  }

  /** Notes that `node` has answered a heartbeat that carried `count`. */
  acknowledge(node: NodeId, count: number): void {
    this.#ackedCounts.set(node, Math.max(this.#ackedCounts.get(node) ?? 0, count));
  }

  /** Takes out every read that a quorum of `group` has confirmed, oldest first. */
  takeConfirmed(group: Voters): readonly ConfirmedRead[] {
    const acked = quorumIndex(group, (voter) => this.#ackedCounts.get(voter));
    const newlyConfirmed = Math.min(acked - this.#confirmedCount, this.#unconfirmed.length);
    if (newlyConfirmed <= 0) return [];
    this.#confirmedCount += newlyConfirmed;
    return this.#unconfirmed.splice(0, newlyConfirmed);
  }
}
