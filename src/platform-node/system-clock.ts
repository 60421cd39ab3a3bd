// The real clock and its timers.

import { uptime } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Clock, Timer } from '../../cluster/platform/clock.ts';
import { SuspendedTime } from './suspended-time.ts';

const suspended = new SuspendedTime({
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
  bootedMs: sinceBootMs,
});

/** The clock of this machine. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  monotonicMs: () => {
    const nowMs = performance.now();
    return nowMs + suspended.until(nowMs);
  },
  // Of a machine that has lost its time it may say less, which nothing that is stored can say.
  wallMs: () => Math.max(0, Date.now()),
  after: (delayMs, action) => (delayMs === 0 ? afterThisTurn(action) : afterDelay(delayMs, action)),
};

/**
 * Sockets and other timers get their turn before it; a timer of 0 would wait a whole millisecond. It keeps
 * the process alive for this one turn: unreferenced, it would wait until something else wakes the loop.
 */
function afterThisTurn(action: () => void): Timer {
  const handle = setImmediate(action);
  return { cancel: () => clearImmediate(handle) };
}

/** Node counts no longer: a timer of more fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1;

function afterDelay(delayMs: number, action: () => void): Timer {
  if (delayMs > TIMER_MAX_MS) {
    let rest = afterDelay(TIMER_MAX_MS, () => {
      rest = afterDelay(delayMs - TIMER_MAX_MS, action);
    });
    return { cancel: () => rest.cancel() };
  }
  const handle = setTimeout(action, delayMs).unref();
  return { cancel: () => clearTimeout(handle) };
}

/** Elsewhere it is told by the wall clock. */
function sinceBootMs(): number | undefined {
  if (process.platform !== 'linux') return undefined;
  try {
    return uptime() * 1_000;
  } catch {
    return undefined;
  }
}
