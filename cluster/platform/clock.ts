// Time, as the outside world supplies it. The wall clock may jump; the monotonic one may only stall, where nobody tells
// the machine that it stood still.

/** A started timer. `cancel` after it fired is harmless. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Milliseconds since an arbitrary start, never going back. */
  monotonicMs(): number;
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  wallMs(): number;
  /** Runs `action` once, `delayMs` (0 or more) from now. Does not keep the process alive. */
  after(delayMs: number, action: () => void): Timer;
}
