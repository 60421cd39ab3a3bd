// How long the event loop keeps others waiting: a timer of the runtime measures how late it fires.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { LoopDelay, LoopDelays } from '../../node/platform.ts';

/** What is shorter is not seen, and so is what comes within it after a look. */
const RESOLUTION_MS = 20;

/** Measures from now on. The timer does not keep the process alive. */
export function watchLoopDelay(): LoopDelay {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return {
    take: () => {
      const taken = histogram.count === 0 ? NO_DELAYS : delaysOf(histogram);
      histogram.reset();
      return taken;
    },
    close: () => {
      histogram.disable();
    },
  };
}

const NO_DELAYS: LoopDelays = { p50Ms: 0, p99Ms: 0, maxMs: 0 };

function delaysOf(histogram: {
  percentile(percent: number): number;
  readonly max: number;
}): LoopDelays {
  return {
    p50Ms: lateMs(histogram.percentile(50)),
    p99Ms: lateMs(histogram.percentile(99)),
    maxMs: lateMs(histogram.max),
  };
}

/** What was measured is the time from one firing of the timer to the next. */
function lateMs(intervalNs: number): number {
  return Math.max(0, intervalNs / 1e6 - RESOLUTION_MS);
}
