// How long a machine was suspended, by clocks of which one stands still meanwhile, and one may be set.

import t from 'tap';
import { SuspendedTime } from '../../src/platform-node/suspended-time.ts';

function aMachine({ isTold = true } = {}) {
  const ms = { monotonic: 5_000, wall: 1_700_000_000_000, booted: 90_000, look: 0 };
  let lookCount = 0;
  const time = new SuspendedTime({
    monotonicMs: () => ms.monotonic,
    wallMs: () => ms.wall,
    bootedMs: () => {
      lookCount += 1;
      ms.monotonic += ms.look;
      return isTold ? ms.booted : undefined;
    },
  });
  const pass = (passedMs: number, isAwake: boolean): number => {
    if (isAwake) ms.monotonic += passedMs;
    ms.wall += passedMs;
    ms.booted += passedMs;
    return time.until(ms.monotonic);
  };
  return { looks: () => lookCount - 2, ms, pass, until: () => time.until(ms.monotonic) };
}

t.test('suspended: what the monotonic clock leaves out is counted, once', (test) => {
  const { looks, pass } = aMachine();
  test.equal(pass(60_000, true), 0);
  test.equal(looks(), 0, 'nobody looks while the machine is awake');
  test.equal(pass(3_600_000, false), 3_600_000);
  test.equal(pass(60_000, true), 3_600_000);
  test.equal(pass(600, false), 3_600_000);
  test.equal(pass(600, false), 3_601_200, 'also in pieces');
  test.equal(looks(), 2);
  test.end();
});

t.test('suspended: a wall clock that is set makes no time', (test) => {
  const { ms, pass, until } = aMachine();
  for (const byMs of [3_600_000, -7_200_000]) {
    ms.wall += byMs;
    test.equal(until(), 0);
  }
  test.equal(pass(10_000, false), 10_000);
  test.end();
});

t.test('suspended: it is looked anew where the process stood still in between', (test) => {
  const { ms, pass, until } = aMachine();
  ms.look = 500;
  test.equal(pass(10_000, false), 0);
  ms.look = 0;
  test.ok(Math.abs(until() - 9_500) <= 500, `${until()}`);
  test.end();
});

t.test('suspended: where nothing tells it, nothing is counted', (test) => {
  const { looks, pass } = aMachine({ isTold: false });
  test.equal(pass(3_600_000, false), 0);
  test.equal(looks(), 0, 'nor is it asked for again and again');
  test.end();
});
