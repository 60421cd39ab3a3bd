// What a node says of itself: whether it can serve and why not, how long its event loop stands still,
// and what it shows of its group.

import t from 'tap';
import { Closer } from '../../cluster/base/closer.ts';
import type { Member, MemberStanding } from '../../cluster/member/group-member.ts';
import type { NetAddress } from '../../cluster/platform/net.ts';
import { NO_MEMBERS } from '../../cluster/raft/membership/membership.ts';
import { EMPTY_GROUP } from '../../cluster/replica/group-record.ts';
import { MetricsRegistry } from '../../src/http/figures/metrics.ts';
import type { Forwarding } from '../../src/node/calls/forwarding.ts';
import { GroupNodeInfo } from '../../src/node/group-node-info.ts';
import { exportNodeMetrics } from '../../src/node/node-metrics.ts';
import { NodeService } from '../../src/node/node-service.ts';
import type { LoopDelays, Platform } from '../../src/node/platform.ts';
import { ClockWatch } from '../../src/node/reign/clock-watch.ts';
import type { FeatureLevel } from '../../src/node/reign/feature-level.ts';
import { LeaderDuties } from '../../src/node/reign/leader-duties.ts';
import { LoopWatch } from '../../src/node/reign/loop-watch.ts';
import { readSettings } from '../../src/node/settings/settings.ts';
import { watchLoopDelay } from '../../src/platform-node/process/loop-delay.ts';
import type { ServiceDeps } from '../../src/service/deps.ts';
import { REAP_BATCH_MAX } from '../../src/service/duties/duties.ts';
import type { Outcome } from '../../src/state/commands/outcome.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeRandom } from '../support/fake-random.ts';
import { loneDatacenter } from '../support/state-and-service/lone-datacenter.ts';
import { startedMachine } from '../support/state-and-service/machine-harness.ts';
import { LEADER, memberOf, turns } from './standing-of.ts';

t.test('loop delay: the figures are of the last window, the largest of a minute', async (t) => {
  const clock = new FakeClock();
  const warnings: unknown[] = [];
  const silent = (): void => undefined;
  let isClosed = false;
  let next: LoopDelays = { p50Ms: 1, p99Ms: 2, maxMs: 3 };
  const watch = new LoopWatch({
    delay: {
      take: () => next,
      close: () => {
        isClosed = true;
      },
    },
    clock,
    logger: { debug: silent, info: silent, error: silent, warn: (fields) => warnings.push(fields) },
    alarmMs: 500,
  });
  t.same(watch.figures(), { p50Ms: 0, p99Ms: 0, maxMs: 0 });
  clock.advance(10_000);
  t.same(watch.figures(), { p50Ms: 1, p99Ms: 2, maxMs: 3 });
  next = { p50Ms: 4, p99Ms: 600, maxMs: 700.4 };
  clock.advance(10_000);
  next = { p50Ms: 1, p99Ms: 2, maxMs: 499 };
  clock.advance(10_000);
  t.same(watch.figures(), { p50Ms: 1, p99Ms: 2, maxMs: 700.4 });
  t.same(warnings, [{ delayMs: 700, alarmMs: 500 }], 'a third of an election timeout is told');
  next = { p50Ms: 4, p99Ms: 600, maxMs: 900 };
  clock.advance(10_000);
  t.equal(warnings.length, 1, 'but not all the time');
  for (let window = 0; window < 5; window += 1) clock.advance(10_000);
  t.equal(warnings.length, 2);
  next = { p50Ms: 0, p99Ms: 0, maxMs: 0 };
  for (let window = 0; window < 6; window += 1) clock.advance(10_000);
  t.equal(watch.figures().maxMs, 0);
  watch.close();
  t.equal(clock.pendingCount, 0);
  t.ok(isClosed, 'nothing is measured any more');
});

/** A member of a group of so many voters, as far as what is shown asks it. */
function memberWith(given: {
  readonly standing: MemberStanding;
  readonly heardMs: readonly (number | undefined)[];
  readonly address?: NetAddress | undefined;
}): Member<Outcome> {
  const views = given.heardMs.map((lastContactMs, place) => ({
    ...LEADER,
    node: place + 1,
    name: `n${place + 1}`,
    address: { host: `10.0.0.${place + 1}`, port: 8300 },
    isSelf: place === 0,
    isLeader: false,
    isVoter: true,
    isAlive: lastContactMs !== undefined,
    lastContactMs,
    lastIndex: 1,
  }));
  const membership = { ...NO_MEMBERS, voters: views.map(({ node }) => node) };
  return {
    node: 1,
    address: given.address,
    standing: () => given.standing,
    members: () => views,
    otherClusters: () => [],
    groupRecord: () => ({ ...EMPTY_GROUP, membership }),
    autopilotState: () => ({ isHealthy: true, failureTolerance: 1, servers: [] }),
    status: () => ({
      ...{ standing: 'leader', term: 4, firstIndex: 1, lastIndex: 9, commitIndex: 8 },
      ...{ appliedIndex: 7, queuedCount: 2, unappliedCount: 1, pendingBytes: 0 },
    }),
    readBarrier: () => Promise.resolve(),
    propose: () => Promise.reject(new Error('nothing is proposed here')),
    call: () => Promise.reject(new Error('nobody is called here')),
    serve: () => undefined,
    onLeaderChanged: () => () => undefined,
  } as unknown as Member<Outcome>;
}

const LEADING = memberOf({ isLeader: true, leader: { ...LEADER, node: 1 }, lastContactMs: 0 });

t.test(
  'metrics: the last contact is that of the quickest quorum, where there is one',
  async (t) => {
    const { machine } = await startedMachine();
    const shown = (member: Member<Outcome>): ReadonlyMap<string, number> => {
      const metrics = new MetricsRegistry();
      exportNodeMetrics(metrics, {
        member,
        view: machine,
        duties: { backlog: 0 } as LeaderDuties,
        forwarding: { count: 0 } as Forwarding,
        loop: { figures: () => ({ p50Ms: 0, p99Ms: 0, maxMs: 0 }) } as LoopWatch,
        clocks: { behindMs: 0, behindPrimaryMs: 0 },
        level: { status: () => ({ uses: 1, reads: 2, waitsFor: [] }) } as unknown as FeatureLevel,
      });
      const { Gauges } = metrics.toJson(0) as { Gauges: { Name: string; Value: number }[] };
      return new Map(Gauges.map(({ Name, Value }) => [Name.replace('conclave.', ''), Value]));
    };
    const contact = (standing: MemberStanding, heardMs: readonly (number | undefined)[]) =>
      shown(memberWith({ standing, heardMs })).get('raft.leader.lastContact');
    t.equal(contact(LEADING, [0]), 0, 'alone');
    t.equal(contact(LEADING, [0, 500, 30]), 30);
    t.equal(contact(LEADING, [0, 500, 30, undefined, 70]), 70);
    t.equal(contact(LEADING, [0, 500, 30, 70]), 70, 'of four, three are a quorum');
    t.equal(contact(LEADING, [0, undefined, undefined]), undefined, 'nobody was heard');
    t.equal(contact(memberOf({ lastContactMs: 12 }), [0, 1, 2]), 12, 'a follower: its leader');
    t.equal(contact(memberOf({ lastContactMs: undefined }), [0, 1, 2]), undefined);
    const leader = shown(memberWith({ standing: LEADING, heardMs: [0, 1, 2] }));
    t.match(Object.fromEntries(leader), {
      'autopilot.healthy': 1,
      'autopilot.failure_tolerance': 1,
      'server.isLeader': 1,
      'raft.state.leader': 1,
      'raft.state.follower': 0,
      'raft.pending_writes': 3,
      'raft.term': 4,
    });
    const follower = shown(memberWith({ standing: memberOf({}), heardMs: [0, 1, 2] }));
    t.equal(follower.has('autopilot.healthy'), false, 'only a leader knows');
  },
);

t.test(
  'node: tells the addresses of the port between servers, or of HTTP without one',
  async (t) => {
    const { machine } = await startedMachine();
    const settings = readSettings({ flags: { 'node-name': 'n1' }, files: [], environment: {} });
    const infoOf = (group: Member<Outcome>): GroupNodeInfo =>
      new GroupNodeInfo({
        settings,
        nodeId: 'a',
        version: '1',
        reads: 1,
        group,
        view: machine,
        federation: loneDatacenter('dc1', () => machine.position()),
        httpAddress: () => ({ host: '127.0.0.1', port: 8500 }),
        notReadyReasons: () => ['a reason'],
      });
    const lone = infoOf(memberWith({ standing: LEADING, heardMs: [0] }));
    t.equal(lone.leader(), '127.0.0.1:8500');
    t.same(lone.peers(), ['127.0.0.1:8500']);
    t.same(lone.notReadyReasons(), ['a reason']);
    const address = { host: '0.0.0.0', port: 8300 };
    const three = infoOf(memberWith({ standing: LEADING, heardMs: [0, 1, 2], address }));
    t.equal(three.leader(), '10.0.0.2:8300', 'where the others reach it, not where it listens');
    t.same(three.peers(), ['10.0.0.1:8300', '10.0.0.2:8300', '10.0.0.3:8300']);
    t.same(three.stats().raft?.num_peers, '2');
    t.notOk(three.stats().raft && 'other_clusters' in three.stats().raft!);
    const group = memberWith({ standing: LEADING, heardMs: [0, 1, 2], address });
    const stray = { clusterId: 'c', servers: ['a at x:8300', 'b at y:8300'] };
    const apart = infoOf({ ...group, otherClusters: () => [stray] });
    t.equal(apart.stats().raft?.other_clusters, 'c: a at x:8300, b at y:8300');
    const joining = { kind: 'joining', says: 'waiting' } as const;
    const early = infoOf(memberWith({ standing: joining, heardMs: [], address }));
    t.equal(early.leader(), undefined);
    t.same(early.peers(), []);
    t.match(early.members(), [{ name: 'n1', port: 8300, isVoter: false }]);
  },
);

t.test('node: only who is the sole voter reads without asking the others', async (t) => {
  const { machine, clock } = await startedMachine();
  const settings = readSettings({ flags: { 'node-name': 'n1' }, files: [], environment: {} });
  const silent = (): void => undefined;
  const logger = { debug: silent, info: silent, warn: silent, error: silent };
  const barriersOf = async (heardMs: readonly number[]): Promise<readonly number[]> => {
    const closer = new Closer();
    t.teardown(() => closer.close());
    let barriers = 0;
    const done: Outcome = {
      kind: 'applied',
      answer: { type: 'done' },
      ...{ index: 1, position: { epoch: 1, seq: 1 }, replayed: false },
    };
    const member = {
      ...memberWith({ standing: LEADING, heardMs }),
      propose: () => Promise.resolve(done),
      readBarrier: () => {
        barriers += 1;
        return Promise.resolve();
      },
    } as Member<Outcome>;
    const platform = { clock, random: new FakeRandom(), logger } as unknown as Platform;
    const metrics = new MetricsRegistry();
    const clusterId = () => 'c';
    const clocks = new ClockWatch({ clock, logger });
    const options = { settings, platform, member, machine, clusterId, metrics, reads: 1, clocks };
    const { deps, leadership } = new NodeService(options, closer);
    const asked = async (): Promise<number> => {
      const before = barriers;
      await deps.readBarrier();
      return barriers - before;
    };
    const whileComing = await asked();
    await leadership.reign();
    return [whileComing, await asked()];
  };
  t.same(await barriersOf([0]), [1, 0], 'before its reign it cannot know what was answered');
  t.same(await barriersOf([0, 1, 2]), [1, 1]);
});

t.test('loop delay: the real one sees a loop that stood still', async (t) => {
  const delay = watchLoopDelay();
  t.teardown(() => delay.close());
  const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
  delay.take();
  // What comes first after a look only starts the measuring.
  await pause(100);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  await pause(100);
  const { maxMs } = delay.take();
  t.ok(maxMs > 200, `${maxMs} ms`);
});

t.test(
  'duties: passes follow each other sooner while there is more, and end with the reign',
  async (t) => {
    const clock = new FakeClock();
    const told: string[] = [];
    const silent = (): void => undefined;
    let waiting = 3 * REAP_BATCH_MAX - 1;
    let passes = 0;
    const nothing = () => Promise.resolve([]);
    const found = (accessorIds: readonly string[], limit: number) => {
      const looked = accessorIds.length;
      return Promise.resolve({ accessorIds, looked, last: undefined, isEnd: looked < limit });
    };
    const deps = {
      view: {
        expiredTokens: ({ limit }: { readonly limit: number }) => {
          // One alone is looked for to see whether there is any.
          if (limit > 1) passes += 1;
          return found(Array.from({ length: Math.min(limit, waiting) }, String), limit);
        },
        tokenBytes: () => 0,
        orphanedTokens: ({ limit }: { readonly limit: number }) => found([], limit),
        oldRequests: nothing,
        replication: () => undefined,
        oldPendingLogins: nothing,
        restoreUnderWay: () => undefined,
      },
      federation: { closedBecause: () => undefined },
      propose: ({ change }: { readonly change: { readonly accessorIds: readonly string[] } }) => {
        waiting -= change.accessorIds.length;
        return Promise.resolve({ kind: 'applied' });
      },
      clock,
      agreedMs: () => Promise.resolve(clock.wallMs()),
      metrics: { count: silent },
      logger: {
        debug: silent,
        warn: silent,
        error: silent,
        info: (_: object, says: string) => told.push(says),
      },
    } as unknown as ServiceDeps;
    const duties = new LeaderDuties(deps);
    t.teardown(() => duties.close());
    duties.start();
    const beat = async (ms: number): Promise<number> => {
      clock.advance(ms);
      await turns();
      return passes;
    };
    t.equal(await beat(999), 0);
    t.equal(await beat(1), 1);
    t.equal(duties.backlog, REAP_BATCH_MAX);
    t.equal(await beat(100), 2);
    t.equal(await beat(100), 3);
    t.equal(waiting, 0);
    t.equal(await beat(999), 3, 'there is no more');
    t.equal(await beat(1), 4);
    t.same(told, ['void tokens deleted, more are waiting'], 'told once');
    duties.stop();
    t.equal(await beat(5_000), 4, 'nobody else does it here');
    t.equal(duties.backlog, 0);
    duties.start();
    clock.advance(1_000);
    duties.stop();
    await turns();
    const before = passes;
    t.equal(await beat(5_000), before, 'nor is a pass that was under way the first of many');
  },
);
