// Whether the clocks of the servers differ: what is told of it, and how often.

import t from 'tap';
import { ClockWatch } from '../../src/node/reign/clock-watch.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { planned, runDatacenter, serverOf } from '../support/running/running-datacenters.ts';
import { allReady } from '../support/running/running-group.ts';
import { Client, runNode } from '../support/running/running-node.ts';

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

t.test('clocks: each way in which they differ is told of', async (test) => {
  const clock = new FakeClock();
  const told: object[] = [];
  const watch = new ClockWatch({
    clock,
    logger: { debug() {}, info() {}, error() {}, warn: (fields: object) => told.push(fields) },
  });
  watch.noteEntry(clock.wallMs() - HOUR_MS);
  watch.noteEntry(clock.wallMs() + 4_999);
  test.equal(watch.behindPrimaryMs, 4_999);
  test.same(told, [], 'who catches up hears of the past');
  for (let twice = 0; twice < 2; twice += 1) {
    watch.noteEntry(clock.wallMs() + HOUR_MS);
    watch.note(clock.wallMs() + HOUR_MS);
  }
  test.same(told, [{ behindPrimaryMs: HOUR_MS }, { behindMs: HOUR_MS }]);
});

t.test('clocks: a secondary looks at the entries of the primary', async (test) => {
  const dc1 = await planned(test, { name: 'dc1' });
  serverOf(dc1).aheadMs = HOUR_MS;
  await serverOf(dc1).open();
  await allReady(dc1.servers);
  const dc2 = await runDatacenter(test, { name: 'dc2', primary: dc1 });
  await serverOf(dc1).client.made('PUT', '/acl/policy?ack=all', { Name: 'p' });
  const behindMs = await figureOf(serverOf(dc2).client, 'conclave.clock.behind_primary_ms');
  test.ok(behindMs > HOUR_MS / 2, `${behindMs}`);
  test.equal(await figureOf(serverOf(dc1).client, 'conclave.clock.behind_primary_ms'), 0);
});

async function figureOf(client: Client, name: string): Promise<number> {
  const { Gauges: gauges } = (await client.get('/agent/metrics?stale')).json as {
    readonly Gauges: readonly { readonly Name: string; readonly Value: number }[];
  };
  return gauges.find(({ Name }) => Name === name)?.Value ?? Number.NaN;
}

t.test(
  'clocks: a node looks at every command that it applies, and has a figure for it',
  async (test) => {
    let wallMs = Date.now();
    // Each look at the clock finds it an hour earlier: what applies a command is behind what proposed it.
    const clock = { ...systemClock, wallMs: () => (wallMs -= HOUR_MS) };
    const node = await runNode(test, {}, clock);
    const client = new Client(node, 'X-Service-');
    await client.made('PUT', '/acl/policy', { Name: 'p' });
    const behindMs = await figureOf(client, 'conclave.clock.behind_ms');
    test.ok(behindMs >= HOUR_MS, `${behindMs}`);
  },
);
