// How long each step of a promotion may take.

export interface PromotionTiming {
  readonly callMs: number;
  /** Of a whole hand-over at the successor. */
  readonly takeMs: number;
  /** So long the primary waits, while it writes on, until its successor has what there was at first. */
  readonly catchUpMs: number;
  /** So long it waits then, without writes, until that one has the rest: clients wait for longer. */
  readonly restMs: number;
  /** So long a primary takes no writes behind the last time that another one asked for its promise. */
  readonly yieldMs: number;
}

export const DEFAULT_PROMOTION_TIMING: PromotionTiming = {
  callMs: 5_000,
  takeMs: 20_000,
  catchUpMs: 10_000,
  restMs: 3_000,
  // Of a candidate that asks all anew when the slowest has answered.
  yieldMs: 10_000,
};
