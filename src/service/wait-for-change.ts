// What a blocking query waits for: a change of a table, or of one object of it, here or in another datacenter.

import type { Service } from './service.ts';
import type { WatchTarget } from './views.ts';

/** As soon as the target changed after `index`, at the end of the time, or when cancelled: whether to look again. */
export async function waitForChange(
  { view, watch, clock, federation }: Service,
  target: WatchTarget,
  wait: {
    readonly index: number;
    readonly timeoutMs: number;
    readonly cancel: AbortSignal;
  },
): Promise<boolean> {
  if (target.datacenter !== undefined) {
    await federation.waitForChange(target.datacenter, { target, ...wait });
    return !wait.cancel.aborted;
  }
  const ended = new AbortController();
  const end = (): void => ended.abort();
  const timer = clock.after(wait.timeoutMs, end);
  wait.cancel.addEventListener('abort', end, { once: true });
  if (wait.cancel.aborted) end();
  try {
    while (!ended.signal.aborted && view.tableIndex(target.table) <= wait.index) {
      await watch.waitFor(target, ended.signal);
    }
    return view.tableIndex(target.table) > wait.index;
  } finally {
    timer.cancel();
    wait.cancel.removeEventListener('abort', end);
  }
}
