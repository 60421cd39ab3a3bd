// The snapshots that a replica makes and sends, what it tells Raft of them, and what Raft says to one that came in.

import t from 'tap';
import type { DurableLog } from '../../../cluster/log/durable-log.ts';
import type { Snapshot } from '../../../cluster/raft/log/snapshot.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type { SnapshotMessage } from '../../../cluster/raft/message.ts';
import type { RawNode } from '../../../cluster/raft/raw-node.ts';
import { EMPTY_GROUP, encodeGroupRecord } from '../../../cluster/replica/group-record.ts';
import { Snapshots } from '../../../cluster/replica/snapshots/snapshots.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

const RETRY_MS = 1_000;

function messageOf(to: number, snapshot: Snapshot): SnapshotMessage {
  return { type: 'snapshot', from: 1, to, term: 1, snapshot };
}

/** Transfers wait for `transfers`, in their order. */
function aReplica({ hasRecord = true } = {}) {
  const clock = new FakeClock();
  const silent = (): void => undefined;
  const reports: string[] = [];
  const transfers: { readonly done: () => void; readonly fail: () => void }[] = [];
  const state = { made: 0, open: 0 };
  const snapshots = new Snapshots({
    clock,
    logger: { debug: silent, info: silent, warn: silent, error: silent },
    log: {} as DurableLog,
    retryMs: RETRY_MS,
    machine: {
      snapshot: () => {
        state.made += 1;
        state.open += 1;
        return {
          appliedEntry: { index: state.made, term: 1, hash: new Uint8Array(32) },
          groupRecord: hasRecord ? encodeGroupRecord(EMPTY_GROUP) : undefined,
          chunks: async function* () {},
          close: async () => {
            state.open -= 1;
          },
        };
      },
    } as never,
    sendSnapshot: () =>
      new Promise<void>((resolve, reject) => {
        transfers.push({ done: resolve, fail: () => reject(new Error('the link ended')) });
      }),
    onSent: (node, { delivered }) => void reports.push(`${node} ${delivered}`),
    onTaken: silent,
    hold: async () => undefined,
    ...{ release: silent, onReset: silent, onInstalled: silent },
  });
  const send = async (to: number): Promise<void> => {
    snapshots.send(messageOf(to, snapshots.make()!));
    snapshots.endTurn();
    await settled();
  };
  return { snapshots, send, clock, reports, transfers, state };
}

t.test('snapshots: a follower gets one at a time, and each is told of in the end', async (test) => {
  const { send, clock, reports, transfers, state } = aReplica();
  await send(2);
  await send(2);
  await send(3);
  test.same([transfers.length, state.open], [2, 2], 'a second one for node 2 is let go of');
  clock.advance(RETRY_MS);
  test.same(reports.splice(0), ['2 false'], 'and told of later');
  for (const { done } of transfers.splice(0)) done();
  await settled();
  test.same(reports.splice(0), ['2 true', '3 true']);
  await send(2);
  test.equal(transfers.length, 1);
  transfers.pop()!.fail();
  await settled();
  test.same([state.open, reports.length], [0, 0]);
  clock.advance(RETRY_MS);
  test.same(reports, ['2 false']);
  test.equal(clock.pendingCount, 0);
});

t.test('snapshots: what is on its way is not told of as failed', async (test) => {
  const { snapshots, send, clock, reports, transfers } = aReplica();
  snapshots.withhold(messageOf(2, snapshots.make()!));
  clock.advance(RETRY_MS / 2);
  snapshots.withhold(messageOf(2, snapshots.make()!));
  clock.advance(RETRY_MS / 2);
  test.same(reports, [], 'not before its time, and once');
  await send(2);
  clock.advance(RETRY_MS);
  test.same(reports, []);
  transfers[0]!.done();
  await settled();
  test.same(reports, ['2 true']);
});

t.test('snapshots: nothing is told of, or left open, behind the stop', async (test) => {
  const { snapshots, send, clock, reports, transfers, state } = aReplica();
  await send(2);
  snapshots.withhold(messageOf(3, snapshots.make()!));
  snapshots.stop(new Error('the log is closing'));
  transfers[0]!.fail();
  await settled();
  test.same([reports, clock.pendingCount, state.open], [[], 0, 0]);
});

t.test('snapshots: of a machine that knows of no group none is made', async (test) => {
  const { snapshots, state } = aReplica({ hasRecord: false });
  test.equal(snapshots.make(), undefined);
  await settled();
  test.same(state, { made: 1, open: 0 });
});

t.test('snapshots: what Raft said to one is not said to the next', async (test) => {
  const { snapshots } = aReplica();
  const said: string[] = [];
  const step = (isWanted: boolean): void => {
    const node = {
      step: () => isWanted && snapshots.observe({ kind: 'snapshot-accepted' } as never),
    };
    const message = messageOf(1, {
      index: 1,
      term: 1,
      membership: NO_MEMBERS,
      data: new Uint8Array(),
    });
    snapshots.stepTaken(node as unknown as RawNode, {
      message,
      accepted: () => void said.push('accepted'),
      refused: ({ message: why }) => void said.push(why),
    });
  };
  for (const isWanted of [true, false, true]) step(isWanted);
  test.same(said, ['accepted', 'the snapshot is not needed any more', 'accepted']);
});
