// How long this machine was suspended since the process began. Its monotonic clock stands still meanwhile, and whoever
// measures with that alone takes what is old for new: a word of the leader, a record of a datacenter, a lease. The wall
// clock, which anybody may set, says only when to look; for how long it was says the time since the machine was booted.

export interface MachineClocks {
  /** Stands still while the machine is suspended. */
  readonly monotonicMs: () => number;
  /** Right again as soon as the machine goes on. */
  readonly wallMs: () => number;
  /** Since the machine was booted, with all that; undefined where that is not told. */
  readonly bootedMs: () => number | undefined;
}

/** Clocks that go on side by side are read so far apart at most; what is shorter need not be counted. */
const APART_MS = 1_000;

export class SuspendedTime {
  readonly #clocks: MachineClocks;
  readonly #isTold: boolean;
  #ms = 0;
  /** By how much these were ahead of the monotonic clock: when it was looked last, and when something was counted. */
  #wallAheadMs: number;
  #bootedAheadMs: number | undefined;

  constructor(clocks: MachineClocks) {
    this.#clocks = clocks;
    this.#isTold = clocks.bootedMs() !== undefined;
    this.#wallAheadMs = clocks.wallMs() - clocks.monotonicMs();
    this.#bootedAheadMs = this.#bootedAhead();
  }

  /** Until now. `nowMs`: what the monotonic clock says. Asked very often. */
  until(nowMs: number): number {
    if (!this.#isTold) return 0;
    const wallAheadMs = this.#clocks.wallMs() - nowMs;
    if (Math.abs(wallAheadMs - this.#wallAheadMs) > APART_MS) this.#look(wallAheadMs);
    return this.#ms;
  }

  #look(wallAheadMs: number): void {
    const bootedAheadMs = this.#bootedAhead();
    if (bootedAheadMs === undefined) return;
    this.#wallAheadMs = wallAheadMs;
    this.#bootedAheadMs ??= bootedAheadMs;
    const moreMs = bootedAheadMs - this.#bootedAheadMs;
    // Somebody has set the wall clock.
    if (moreMs <= APART_MS) return;
    this.#bootedAheadMs = bootedAheadMs;
    this.#ms += moreMs;
  }

  /** Undefined where it is not told, or where the process stood still just then: it is looked anew. */
  #bootedAhead(): number | undefined {
    const { bootedMs, monotonicMs } = this.#clocks;
    const beforeMs = monotonicMs();
    const atMs = bootedMs();
    const isAtOnce = monotonicMs() - beforeMs < APART_MS / 2;
    return atMs === undefined || !isAtOnce ? undefined : atMs - beforeMs;
  }
}
