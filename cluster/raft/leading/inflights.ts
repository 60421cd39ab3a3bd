// The window of append messages that were sent to one follower and not yet acknowledged.
// Bounds both their number and their payload bytes; the message that crosses the byte limit passes.

import { assert } from '../../base/assert.ts';

/** Limits of the window. `maxBytes` may be Infinity. */
export interface InflightLimits {
  readonly maxMessages: number;
  readonly maxBytes: number;
}

interface Inflight {
  readonly lastIndex: number;
  readonly bytes: number;
}

/** A queue of unacknowledged appends, in ascending order of their last entry's index. */
export class Inflights {
  readonly #limits: InflightLimits;
  #window: Inflight[] = [];
  #bytes = 0;

  constructor(limits: InflightLimits) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#window.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nothing more may be sent until something is acknowledged. */
  get full(): boolean {
    return this.#window.length >= this.#limits.maxMessages || this.#bytes >= this.#limits.maxBytes;
  }

  /** Notes a sent message by the index of its last entry. The window must not be full. */
  add(lastIndex: number, bytes: number): void {
    assert(!this.full, 'append sent into a full window', { lastIndex, count: this.count });
    const newest = this.#window.at(-1);
    assert(newest === undefined || newest.lastIndex <= lastIndex, 'appends sent out of order', {
      newest,
      lastIndex,
    });
    this.#window.push({ lastIndex, bytes });
    this.#bytes += bytes;
  }

  /** Frees every message whose last entry is at most `throughIndex`. */
  freeThrough(throughIndex: number): void {
    let acknowledged = 0;
    for (const inflight of this.#window) {
      if (inflight.lastIndex > throughIndex) break;
      this.#bytes -= inflight.bytes;
      acknowledged += 1;
    }
    if (acknowledged > 0) this.#window.splice(0, acknowledged);
  }

  clear(): void {
    this.#window = [];
    this.#bytes = 0;
  }
}
