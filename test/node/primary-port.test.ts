// What operators ask of the promotion of this node, and what becomes of its refusals.

import t from 'tap';
import { refused, undecided } from '../../cluster/federation/promotion/promotion-refusal.ts';
import { primaryPortOf } from '../../src/node/operators/primary-port.ts';

t.test('moves: who may have one is asked as whoever asks for it says', async (t) => {
  const cursor = { epoch: 1, seq: 7, hash: new Uint8Array(32) };
  const promoted = { epoch: 2, promises: ['dc1', 'dc3'], cursor };
  const asked: unknown[] = [];
  const asking = (...given: unknown[]) => void asked.push(given);
  const port = primaryPortOf({
    promotion: {
      handOver: async (...given: unknown[]) => asking('hand over', ...given) ?? 2,
      elect: async (...given: unknown[]) => asking('elect', ...given) ?? promoted,
      force: async (...given: unknown[]) => asking('force', ...given) ?? promoted,
    },
    datacenter: 'dc1',
    position: () => ({ epoch: 1, seq: 7 }),
  } as never);
  const still = (): void => undefined;
  const moved = { epoch: 2, promises: ['dc1', 'dc3'], position: { epoch: 1, seq: 7 } };
  t.same(await port.handOver('dc2', still), { ...moved, promises: ['dc1'] });
  t.same(await port.elect(still), moved);
  t.same(await port.force(2, still), moved);
  t.strictSame(asked, [
    ['hand over', 'dc2', still],
    ['elect', still],
    ['force', 2, still],
  ]);
});

t.test('moves: what the promotion refuses says whether anything has changed', async (t) => {
  const lost = new Error('the right is gone');
  const causes = [refused('dc2 is silent'), undecided('dc2 is silent'), lost];
  const promotion = { elect: () => Promise.reject(causes.shift()) };
  const port = primaryPortOf({ promotion } as never);
  await t.rejects(
    port.elect(() => undefined),
    {
      code: 'unavailable',
      message: 'The primary stays where it is: dc2 is silent',
    },
  );
  await t.rejects(
    port.elect(() => undefined),
    {
      code: 'outcome-unknown',
      message: 'Whether the primary has moved is not known, try again: dc2 is silent',
    },
  );
  await t.rejects(
    port.elect(() => undefined),
    lost,
    'as it is',
  );
});
