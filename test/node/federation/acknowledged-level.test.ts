// What is said of a write that waits for other datacenters: reached, in time or not, and while the primary is moved.

import t from 'tap';
import {
  type AckingPrimary,
  acknowledgedLevel,
} from '../../../src/node/federation/acknowledged/acknowledged-level.ts';
import type { AckLevel } from '../../../src/service/call.ts';
import type { Position } from '../../../src/state/global-log/cursor.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { watched } from '../../support/simulated/group-actions.ts';
import { settled } from '../../support/simulated/simulated-world.ts';

const LIMIT_MS = 1_000;
const WRITE: Position = { epoch: 1, seq: 10 };

/** A reign whose first entry is that one. */
const reign = (epoch: number, startSeq: number) => ({
  ...{ epoch, startSeq, startHash: new Uint8Array(32), primary: `dc${epoch}` },
});

/** `result` is what the feed says; `log` is where this datacenter is, which may change. */
function aWrite(result: 'reached' | 'timeout' | 'reign-over') {
  const clock = new FakeClock();
  const log = { epochs: [reign(1, 1)], cursor: { epoch: 1, seq: 10 } };
  const heard = { isPrimary: true, majoritySeq: 0, waits: 0 };
  const primary: AckingPrimary = {
    clock,
    machine: { replication: () => log as never },
    feed: {
      awaitAck: async () => {
        heard.waits += 1;
        return result;
      },
      acknowledgedSeq: () => heard.majoritySeq,
    },
    isPrimary: () => heard.isPrimary,
  };
  const ask = (wanted: AckLevel) =>
    watched(acknowledgedLevel(primary, WRITE, { wanted, limitMs: LIMIT_MS }));
  return { ask, clock, log, heard };
}

t.test('acknowledged: as many as were asked for, or those that are known to', async (test) => {
  const reached = aWrite('reached');
  const all = reached.ask('all');
  const own = reached.ask('primary');
  await settled();
  test.same([all.result, own.result, reached.heard.waits], ['all', 'primary', 1]);
  for (const [majoritySeq, level] of [
    [9, 'primary'],
    [10, 'majority'],
  ] as const) {
    const { ask, heard } = aWrite('timeout');
    heard.majoritySeq = majoritySeq;
    const asked = ask('all');
    await settled();
    test.equal(asked.result, level);
  }
});

t.test('acknowledged: a moved primary waits to hear what the next one has', async (test) => {
  const places = {
    'the next reign goes on behind it': [11, 12, /^primary$/],
    'the next reign stands in its place': [10, 12, /10 stands is not known: the primary was moved/],
    'what leads there is not here': [11, 9, /is not known/],
  } as const;
  for (const [title, [startSeq, seq, says]] of Object.entries(places)) {
    const { ask, clock, log, heard } = aWrite('reign-over');
    heard.isPrimary = false;
    const asked = ask('majority');
    await settled();
    clock.advance(LIMIT_MS / 2);
    await settled();
    test.equal(asked.result, undefined, `${title}: and nobody knows yet`);
    log.epochs.push(reign(2, startSeq));
    log.cursor = { epoch: seq < startSeq ? 1 : 2, seq };
    clock.advance(LIMIT_MS / 5);
    await settled();
    test.match(asked.result, says, title);
    test.equal(clock.pendingCount, 0);
  }
});

t.test('acknowledged: but for no longer than was to be waited', async (test) => {
  const { ask, clock, heard } = aWrite('reign-over');
  heard.isPrimary = false;
  const asked = ask('majority');
  for (let waitedMs = 0; waitedMs < LIMIT_MS; waitedMs += 50) {
    await settled();
    test.equal(asked.result, undefined);
    clock.advance(50);
  }
  await settled();
  test.match(asked.result, /is not known/);
});
