// The real clock: what has no delay comes with the next turn of the event loop, whoever asks for it.

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
