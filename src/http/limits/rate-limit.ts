// How many requests a second one client may send: a token bucket for its reads and one for its
// writes. A bucket holds one second's worth. Clients that have been quiet longest are forgotten first.

import { LRUCache } from 'lru-cache';
import { upTo } from '../../../cluster/base/up-to.ts';
import type { Clock } from '../../../cluster/platform/clock.ts';
import { type HttpSettings, LIMITS } from '../settings.ts';

export type RequestSort = 'read' | 'write';

interface Bucket {
  tokens: number;
  filledMs: number;
}

export class RateLimit {
  readonly #limits: HttpSettings['requestLimits'];
  readonly #clock: Clock;
  readonly #buckets = new LRUCache<string, Bucket>(upTo(LIMITS.rateClientsMax));

  constructor(limits: HttpSettings['requestLimits'], clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** 0 when the request may go on; else in how many milliseconds the client may try again. */
  take(client: string, sort: RequestSort): number {
    const rate = sort === 'read' ? this.#limits.readRate : this.#limits.writeRate;
    if (rate <= 0) return 0;
    const nowMs = this.#clock.monotonicMs();
    const size = Math.max(rate, 1);
    const bucket = this.#bucketOf(`${sort} ${client}`, { tokens: size, filledMs: nowMs });
    bucket.tokens = Math.min(size, bucket.tokens + ((nowMs - bucket.filledMs) * rate) / 1000);
    bucket.filledMs = nowMs;
    if (bucket.tokens < 1) return Math.ceil(((1 - bucket.tokens) * 1000) / rate);
    bucket.tokens -= 1;
    return 0;
  }

  #bucketOf(key: string, fresh: Bucket): Bucket {
    const known = this.#buckets.get(key);
    if (known !== undefined) return known;
    this.#buckets.set(key, fresh);
    return fresh;
  }
}
