// Whether the clocks of the servers differ: what is told of it, and how often.

import t from 'tap';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { ClockWatch } from '../../src/node/reign/clock-watch.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { Client, runNode } from '../support/running-node.ts';

const HOUR_MS = 3_600_000;

t.test('clocks: a command of the future is told of, once in ten minutes', async (test) => {
  const clock = new FakeClock();
  const told: object[] = [];
  const watch = new ClockWatch({
    clock,
    logger: { debug() {}, info() {}, error() {}, warn: (fields: object) => told.push(fields) },
  });
  watch.note(clock.wallMs() - HOUR_MS);
  test.equal(watch.behindMs, 0, 'what is replayed is of the past');
  watch.note(clock.wallMs() + 4_999);
  test.equal(watch.behindMs, 4_999);
  test.same(told, []);
  watch.note(clock.wallMs() + HOUR_MS);
  watch.note(clock.wallMs() + HOUR_MS);
  test.same(told, [{ behindMs: HOUR_MS }]);
  clock.advance(600_000);
  watch.note(clock.wallMs() + HOUR_MS);
  test.equal(told.length, 2);
  watch.note(clock.wallMs());
  test.equal(watch.behindMs, 0);
});

t.test('clocks: a leader that is ahead of most tells so, as seldom', async (test) => {
  const clock = new FakeClock();
  const told: object[] = [];
  const watch = new ClockWatch({
    clock,
    logger: { debug() {}, info() {}, error() {}, warn: (fields: object) => told.push(fields) },
  });
  watch.noteAgreed(clock.wallMs() + HOUR_MS);
  watch.noteAgreed(clock.wallMs() - 4_999);
  test.same(told, []);
  watch.noteAgreed(clock.wallMs() - HOUR_MS);
  watch.noteAgreed(clock.wallMs() - HOUR_MS);
  test.same(told, [{ aheadMs: HOUR_MS }]);
  test.equal(watch.behindMs, 0);
});

t.test(
  'clocks: a node looks at every command that it applies, and has a figure for it',
  async (test) => {
    let wallMs = Date.now();
    // Each look at the clock finds it an hour earlier: what applies a command is behind what proposed it.
    const clock = { ...systemClock, wallMs: () => (wallMs -= HOUR_MS) };
    const node = await runNode(test, {}, clock);
    const client = new Client(node, 'X-Service-');
    await client.made('PUT', '/acl/policy', { Name: 'p' });
    const { Gauges: gauges } = (await client.get('/agent/metrics')).json as {
      readonly Gauges: readonly { readonly Name: string; readonly Value: number }[];
    };
    const found = gauges.find(({ Name }) => Name === 'conclave.clock.behind_ms');
    test.ok((found?.Value ?? 0) >= HOUR_MS, `${found?.Value}`);
  },
);
