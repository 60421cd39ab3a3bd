// The real clock: what has no delay comes with the next turn of the event loop, whoever asks for it, and what has a
// very long one not before its time.

import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import t from 'tap';
import { systemClock } from '../../src/platform-node/system-clock.ts';

const nextTurn = (): Promise<void> => new Promise((resolve) => systemClock.after(0, resolve));

// Nothing else keeps the process alive meanwhile. Where a turn does not keep it alive by itself, the loop
// sleeps until something else wakes it, and here it would end: the test would be unfinished.
t.test(
  'clock: what has no delay comes with the next turn, also where nothing wakes the loop',
  async (test) => {
    await nextTurn();
    await nextTurn();
    test.pass('one after the other');
  },
);

t.test('clock: what was cancelled does not come', async (test) => {
  let hasCome = false;
  for (const delayMs of [0, 1]) {
    systemClock
      .after(delayMs, () => {
        hasCome = true;
      })
      .cancel();
  }
  await new Promise((resolve) => setTimeout(resolve, 5));
  await nextTurn();
  test.notOk(hasCome);
});

t.test('clock: a machine that has lost its time is in 1970, and not before', (test) => {
  const { now } = Date;
  test.teardown(() => Object.assign(Date, { now }));
  for (const ms of [-1, -86_400_000]) {
    Date.now = () => ms;
    test.equal(systemClock.wallMs(), 0);
  }
  Date.now = () => 1;
  test.equal(systemClock.wallMs(), 1);
  test.end();
});

t.test('clock: what is due in a month or more is not due at once', async (test) => {
  const come: number[] = [];
  const delaysMs = [2 ** 31 - 1, 2 ** 31, 2 ** 33, Number.POSITIVE_INFINITY];
  const timers = delaysMs.map((delayMs) => systemClock.after(delayMs, () => come.push(delayMs)));
  await new Promise((resolve) => setTimeout(resolve, 20));
  test.same(come, []);
  for (const timer of timers) timer.cancel();
});

t.test('clock: what is due later than a timer counts is counted in parts', async (test) => {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const waiting = new Map<object, { readonly action: () => void; readonly delayMs: number }>();
  const fakes = {
    setTimeout: (action: () => void, delayMs: number) => {
      const handle = { unref: () => handle };
      waiting.set(handle, { action, delayMs });
      return handle;
    },
    clearTimeout: (handle: object) => waiting.delete(handle),
  };
  /** The one timer that waits fires. */
  const fire = (): number => {
    const [handle, { action, delayMs }] = [...waiting][0]!;
    waiting.delete(handle);
    action();
    return delayMs;
  };
  Object.assign(globalThis, fakes);
  try {
    let count = 0;
    const come = (): void => {
      count += 1;
    };
    systemClock.after(2 ** 32, come);
    test.same([fire(), fire(), count, fire(), count], [2 ** 31 - 1, 2 ** 31 - 1, 0, 2, 1]);
    const timer = systemClock.after(2 ** 32, come);
    fire();
    timer.cancel();
    test.equal(waiting.size, 0, 'it is cancelled in any part');
    test.equal(count, 1);
  } finally {
    Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
  }
});

t.test(
  'clock: the time in which the machine was suspended has passed, where it is told',
  (test) => {
    const { now } = Date;
    const { uptime } = os;
    const setting = (clocks: { readonly now: () => number; readonly uptime: () => number }) => {
      Object.assign(Date, { now: clocks.now });
      Object.assign(os, { uptime: clocks.uptime });
      syncBuiltinESMExports();
    };
    test.teardown(() => setting({ now, uptime }));
    const beforeMs = systemClock.monotonicMs();
    setting({ now: () => now() + 3_600_000, uptime: () => uptime() + 3_600 });
    const passedMs = systemClock.monotonicMs() - beforeMs;
    // Elsewhere the time since the start of the machine goes by a clock that may be set, and makes no time.
    const toldMs = process.platform === 'linux' ? 3_600_000 : 0;
    test.ok(passedMs >= toldMs - 1_000 && passedMs < toldMs + 60_000, `${passedMs}`);
    test.end();
  },
);
