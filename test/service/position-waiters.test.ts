// What a read with a minimal position waits for, and what it must not be told.

import t from 'tap';
import { PositionWaiters } from '../../src/service/position-waiters.ts';
import type { EpochStart, Replication } from '../../src/state/global-log/replication.ts';
import type { Position } from '../../src/state/outcome.ts';
import { FakeClock } from '../support/fake-clock.ts';

const NO_HASH = new Uint8Array(32);

/** A datacenter at a position of a log in which epoch 2 began with entry 5. */
function waitersAt(position: Position): PositionWaiters {
  const epochs: readonly EpochStart[] = [
    { epoch: 1, startSeq: 1, startHash: NO_HASH, primary: 'dc1' },
    { epoch: 2, startSeq: 5, startHash: NO_HASH, primary: 'dc2' },
  ];
  const replication = { epochs, cursor: { ...position, hash: NO_HASH } } as unknown as Replication;
  const view = { position: () => position, replication: () => replication };
  return new PositionWaiters(view, new FakeClock());
}

t.test('positions: one that is in the log is reached at once', async (t) => {
  const waiters = waitersAt({ epoch: 2, seq: 9 });
  await waiters.reached({ epoch: 1, seq: 4 });
  await waiters.reached({ epoch: 2, seq: 9 });
  t.ok(await waiters.arrives({ epoch: 2, seq: 5 }, 1));
});

t.test('positions: what a later primary began without is never reached, and said so', async (t) => {
  const waiters = waitersAt({ epoch: 2, seq: 9 });
  await t.rejects(waiters.reached({ epoch: 1, seq: 5 }), {
    code: 'wait-timeout',
    message:
      'Position 1.5 is not in the global log any more: a later primary began without it; this datacenter is at 2.9',
  });
});
