// What the leader knows about one follower's log, and how eagerly it may send to it.
// Changes only itself; when to send what is decided in replication.ts.

import { assert } from '../../base/assert.ts';
import { unreachable } from '../../base/unreachable.ts';
import { type InflightLimits, Inflights } from './inflights.ts';

/**
 * probe: the end of the follower's log is unknown; one append at a time searches for it.
 * replicate: the end is known; appends are sent ahead of their acknowledgement.
 * snapshot: the entries it needs are gone; nothing is sent until a snapshot has arrived.
 */
export type ProgressState = 'probe' | 'replicate' | 'snapshot';

/** How a follower starts out in the leader's books. */
export interface ProgressStart {
  readonly matchIndex: number;
  readonly nextIndex: number;
  readonly isLearner: boolean;
  readonly recentlyActive: boolean;
  readonly inflightLimits: InflightLimits;
}

/** A follower's progress as values; see the fields of Progress for their meaning. */
export interface ProgressView {
  readonly state: ProgressState;
  readonly matchIndex: number;
  readonly nextIndex: number;
  readonly isLearner: boolean;
  readonly isPaused: boolean;
  readonly pendingSnapshotIndex: number;
  readonly recentlyActive: boolean;
  readonly inflightCount: number;
  readonly inflightsFull: boolean;
}

/** One follower (or the leader itself) in the leader's books. Holds matchIndex < nextIndex. */
export class Progress {
  state: ProgressState = 'probe';
  /** Up to here the follower's log is known to equal the leader's, on its disk. */
  matchIndex: number;
  /** The next entry to send. Between matchIndex and this one, entries are on their way. */
  nextIndex: number;
  /** Highest commit index on its way to the follower; falls back when a message was surely lost. */
  #sentCommitIndex = 0;
  /** Index of the snapshot that is on its way; 0 in the other states. */
  pendingSnapshotIndex = 0;
  /** Heard from since the last quorum check; always true for the leader itself. */
  recentlyActive: boolean;
  /**
   * No appends until the next heartbeat reply: a probe is out, or the window is full. One append
   * per heartbeat still passes, or a window whose messages were all lost would stay full forever.
   */
  appendsPaused = false;
  isLearner: boolean;
  readonly inflights: Inflights;

  constructor(start: ProgressStart) {
    this.matchIndex = start.matchIndex;
    this.nextIndex = start.nextIndex;
    this.isLearner = start.isLearner;
    this.recentlyActive = start.recentlyActive;
    this.inflights = new Inflights(start.inflightLimits);
  }

  get isPaused(): boolean {
    return this.state === 'snapshot' || this.appendsPaused;
  }

  /** Starts searching after what is known, or after the snapshot that has just been sent. */
  becomeProbe(): void {
    const afterSnapshot = this.state === 'snapshot' ? this.pendingSnapshotIndex + 1 : 0;
    this.#enter('probe');
    this.nextIndex = Math.max(this.matchIndex + 1, afterSnapshot);
    this.#lowerSentCommit();
  }

  becomeReplicate(): void {
    this.#enter('replicate');
    this.nextIndex = this.matchIndex + 1;
  }

  becomeSnapshot(snapshotIndex: number): void {
    this.#enter('snapshot');
    this.pendingSnapshotIndex = snapshotIndex;
    this.nextIndex = snapshotIndex + 1;
    this.#sentCommitIndex = snapshotIndex;
  }

  /** Notes an append with `count` entries from nextIndex on, of `bytes` payload. */
  sentEntries(count: number, bytes: number): void {
    switch (this.state) {
      case 'replicate':
        if (count > 0) {
          this.nextIndex += count;
          this.inflights.add(this.nextIndex - 1, bytes);
        }
        this.appendsPaused = this.inflights.full;
        return;
      case 'probe':
        if (count > 0) this.appendsPaused = true;
        return;
      case 'snapshot':
        assert(false, 'append sent while a snapshot is pending', {
          pendingSnapshotIndex: this.pendingSnapshotIndex,
        });
        return;
      default:
        unreachable(this.state);
    }
  }

  sentCommit(commitIndex: number): void {
    this.#sentCommitIndex = commitIndex;
  }

  /** Whether sending `commitIndex` now could teach the follower anything. */
  canBumpCommit(commitIndex: number): boolean {
    return commitIndex > this.#sentCommitIndex && this.#sentCommitIndex < this.nextIndex - 1;
  }

  /** Takes an acknowledgement; false when it says nothing new. */
  acknowledge(throughIndex: number): boolean {
    if (throughIndex <= this.matchIndex) return false;
    this.matchIndex = throughIndex;
    this.nextIndex = Math.max(this.nextIndex, throughIndex + 1);
    this.appendsPaused = false;
    return true;
  }

  /**
   * Takes a refused append at `rejectedIndex`, with the follower's guess of where the logs still
   * agree. False when the refusal is stale: its index is acknowledged since, or not the probe's.
   */
  reject(rejectedIndex: number, agreeingIndex: number): boolean {
    if (this.state === 'replicate') {
      if (rejectedIndex <= this.matchIndex) return false;
      this.nextIndex = this.matchIndex + 1;
      this.#lowerSentCommit();
      return true;
    }
    if (this.nextIndex - 1 !== rejectedIndex) return false;
    this.nextIndex = Math.max(Math.min(rejectedIndex, agreeingIndex + 1), this.matchIndex + 1);
    this.#lowerSentCommit();
    this.appendsPaused = false;
    return true;
  }

  /** What others may look at: values as of now. */
  view(): ProgressView {
    return {
      state: this.state,
      matchIndex: this.matchIndex,
      nextIndex: this.nextIndex,
      isLearner: this.isLearner,
      isPaused: this.isPaused,
      pendingSnapshotIndex: this.pendingSnapshotIndex,
      recentlyActive: this.recentlyActive,
      inflightCount: this.inflights.count,
      inflightsFull: this.inflights.full,
    };
  }

  #enter(state: ProgressState): void {
    this.appendsPaused = false;
    this.pendingSnapshotIndex = 0;
    this.state = state;
    this.inflights.clear();
  }

  #lowerSentCommit(): void {
    this.#sentCommitIndex = Math.min(this.#sentCommitIndex, this.nextIndex - 1);
  }
}
