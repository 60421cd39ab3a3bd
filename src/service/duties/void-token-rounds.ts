// How far a leader has come with the void tokens. Where it may delete local ones alone, it comes by each expired token
// once, however many of them are left to the primary: those that expire later stand behind. Those whose auth method or
// namespace is gone it goes through again and again, a part at each beat.

import type { ExpiryPlace, FoundTokens, OrphanPlace } from '../../state/reads/void-tokens.ts';

export class VoidTokenRounds {
  #isLocalOnly = false;
  #nowMs = 0;
  #expired: ExpiryPlace | undefined;
  #orphaned: OrphanPlace | undefined;

  /** Before each pass: what was passed over before may be due now where more may be deleted, or a clock went back. */
  begin({ nowMs, isLocalOnly }: { readonly nowMs: number; readonly isLocalOnly: boolean }): void {
    if (isLocalOnly !== this.#isLocalOnly || nowMs < this.#nowMs) this.#expired = undefined;
    this.#isLocalOnly = isLocalOnly;
    this.#nowMs = nowMs;
  }

  /** Where the next look at the expired ones goes on. */
  get expired(): ExpiryPlace | undefined {
    return this.#expired;
  }

  get orphaned(): OrphanPlace | undefined {
    return this.#orphaned;
  }

  /** What was found of them is deleted. Where all may be, nothing is left of them. */
  expiredDone({ last }: FoundTokens<ExpiryPlace>): void {
    this.#expired = this.#isLocalOnly ? last : undefined;
  }

  orphanedDone({ last, isEnd }: FoundTokens<OrphanPlace>): void {
    this.#orphaned = isEnd ? undefined : last;
  }
}
