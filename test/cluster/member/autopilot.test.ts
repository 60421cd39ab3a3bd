// What a leader does about its members by itself: as rules over what it sees, and in groups on simulated
// clocks, network and disks.

import t from 'tap';
import type { MemberView } from '../../../cluster/member/group-member.ts';
import { Autopilot, type Observation } from '../../../cluster/member/leading/autopilot.ts';
import { removalChange } from '../../../cluster/member/leading/removal.ts';
import { DEFAULT_AUTOPILOT } from '../../../cluster/replica/group-record.ts';
import type { GroupRefusal } from '../../../cluster/replica/group-refusal.ts';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';

function member(node: number, changed: Partial<MemberView> = {}): MemberView {
  return {
    node,
    id: `${node}`,
    name: `n${node}`,
    address: { host: `n${node}`, port: 8300 },
    httpAddress: '',
    version: '1',
    isSelf: node === 1,
    isLeader: node === 1,
    isVoter: true,
    reads: 1,
    isAlive: true,
    lastContactMs: node === 1 ? 0 : 50,
    lastIndex: 1_000,
    ...changed,
  };
}

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;

/** Watches the same members second by second; says what it did first, and when. */
function firstDeed(
  members: readonly MemberView[],
  changed: Partial<Observation> = {},
  forMs = 2 * HOUR_MS,
  autopilot = new Autopilot(),
): string {
  for (let nowMs = 0; nowMs <= forMs; nowMs += SECOND_MS) {
    const silentForMs = nowMs;
    const seen = members.map((each) =>
      each.isAlive || each.lastContactMs === undefined
        ? each
        : { ...each, lastContactMs: each.lastContactMs + silentForMs },
    );
    const change = autopilot.observe(observation(seen, { nowMs, ...changed }));
    if (change === undefined) continue;
    const steps = change.changes.map(({ kind, node }) => `${kind} ${node}`).join(', ');
    return `${steps} after ${nowMs / SECOND_MS} s`;
  }
  return 'nothing';
}

function observation(
  members: readonly MemberView[],
  changed: Partial<Observation> = {},
): Observation {
  return {
    nowMs: 0,
    wallMs: 0,
    members,
    lastIndex: 1_000,
    term: 3,
    settings: DEFAULT_AUTOPILOT,
    heartbeatMs: 100,
    timing: { replaceAfterMs: 60_000, cleanupAfterMs: HOUR_MS },
    ...changed,
  };
}

const DEAD = { isAlive: false };

t.test(
  'autopilot: a dead voter gives way only where the others can do without it',
  async (test) => {
    const ready = member(4, { isVoter: false });
    const dead = member(3, DEAD);
    const behind = member(2, { lastIndex: 0 });
    const settings = { ...DEFAULT_AUTOPILOT, serverStabilizationTimeMs: 90_000 };
    const deedOf = (second: MemberView, changed = {}): string =>
      firstDeed([member(1), second, dead, ready], { settings: { ...settings, ...changed } });
    test.equal(deedOf(member(2)), 'remove 3, add-voter 4 after 90 s');
    test.equal(deedOf(behind), 'add-voter 4 after 90 s', 'one of three does well');
    test.equal(deedOf(member(2), { cleanupDeadServers: false }), 'add-voter 4 after 90 s');
  },
);

t.test('autopilot: of those that may vote the longest ready comes first', async (test) => {
  const autopilot = new Autopilot();
  const [early, late] = [member(5, { isVoter: false }), member(4, { isVoter: false })];
  const deed = (nowMs: number, ...learners: readonly MemberView[]) =>
    autopilot.observe(observation([member(1), ...learners], { nowMs }));
  deed(0, { ...late, lastIndex: 0 }, early);
  deed(5_000, late, early);
  test.match(deed(15_000, late, early), { changes: [{ kind: 'add-voter', node: 5 }] });
});

t.test('removal: who has no vote makes no quorum, and is missed in none', async (test) => {
  const learner = member(3, { isVoter: false });
  const change = removalChange(2, [member(1), member(2), learner], ({ node }) => node !== 3);
  test.match(change.changes, [{ kind: 'remove', node: 2 }]);
  test.throws(() => removalChange(1, [member(1), learner], () => true), {
    code: 'refused',
    message: /is the only voter/,
  });
});

t.test(
  'autopilot: whose vote was taken away gets it back no sooner than a newcomer',
  async (test) => {
    const autopilot = new Autopilot();
    const [one, two, three] = [1, 2, 3].map((node) => member(node));
    test.equal(firstDeed([one!, two!, three!], {}, 30_000, autopilot), 'nothing');
    const unseated = { ...three!, isVoter: false };
    const deed = (nowMs: number) =>
      autopilot.observe(observation([one!, two!, unseated], { nowMs }));
    test.equal(deed(31_000), undefined, 'healthy for half a minute, and a learner since a moment');
    test.equal(deed(40_000), undefined);
    test.match(deed(41_000), { changes: [{ kind: 'add-voter', node: 3 }] });
  },
);

t.test(
  'autopilot: the time in which the leader itself stood still makes nobody dead',
  async (test) => {
    const autopilot = new Autopilot();
    const five = [1, 2, 3, 4, 5].map((node) => member(node));
    test.equal(firstDeed(five, {}, 30_000, autopilot), 'nothing');
    // All were held for two hours. Some go on a little later than the leader, the last one is gone.
    const goneOn = 2 * HOUR_MS;
    const unheard = (node: number, nowMs: number): MemberView =>
      member(node, { isAlive: false, lastContactMs: nowMs - 30_000 });
    const deedWith = (nowMs: number, heard: number) =>
      autopilot.observe(
        observation(
          five.map((each) => (each.node <= heard ? each : unheard(each.node, nowMs))),
          { nowMs },
        ),
      );
    test.equal(deedWith(goneOn, 1), undefined, 'nobody was heard yet');
    test.equal(deedWith(goneOn + SECOND_MS, 3), undefined, 'a quorum was');
    for (let nowMs = goneOn + 2 * SECOND_MS; nowMs < goneOn + HOUR_MS; nowMs += SECOND_MS)
      if (deedWith(nowMs, 4) !== undefined) test.fail(`a change after ${nowMs - goneOn} ms`);
    test.match(
      deedWith(goneOn + HOUR_MS, 4),
      { changes: [{ kind: 'remove', node: 5 }] },
      'who stays silent for an hour that the leader has seen is removed',
    );
  },
);

t.test('autopilot: a learner votes when it was healthy for long enough', async (test) => {
  const voters = [1, 2, 3].map((node) => member(node));
  const learner = member(4, { isVoter: false });
  test.equal(firstDeed([...voters, learner]), 'add-voter 4 after 10 s');
  const settings = { ...DEFAULT_AUTOPILOT, serverStabilizationTimeMs: 60_000 };
  test.equal(firstDeed([...voters, learner], { settings }), 'add-voter 4 after 60 s');
  const trailing = { ...learner, lastIndex: 1_000 - 251 };
  test.equal(firstDeed([...voters, trailing]), 'nothing');
  test.equal(firstDeed([...voters, { ...trailing, lastIndex: 750 }]), 'add-voter 4 after 10 s');
  const silent = { ...learner, lastContactMs: 301 };
  test.equal(firstDeed([...voters, silent]), 'nothing');
  test.equal(firstDeed([...voters, { ...silent, lastContactMs: 300 }]), 'add-voter 4 after 10 s');
  test.equal(
    firstDeed([...voters, { ...learner, lastContactMs: undefined }]),
    'remove 4 after 3600 s',
    'it never came',
  );
  test.equal(firstDeed(voters), 'nothing');
});

t.test('autopilot: health that comes and goes begins anew', async (test) => {
  const autopilot = new Autopilot();
  const voters = [1, 2, 3].map((node) => member(node));
  const learner = member(4, { isVoter: false });
  const sick = { ...learner, lastContactMs: 5_000 };
  for (let nowMs = 0; nowMs < 30_000; nowMs += SECOND_MS) {
    const now = nowMs % 9_000 === 0 ? sick : learner;
    test.equal(autopilot.observe(observation([...voters, now], { nowMs })), undefined);
  }
});

t.test(
  'autopilot: a dead server is removed late, and only where that weakens nothing',
  async (test) => {
    const voters = (alive: number, dead: number): readonly MemberView[] => [
      ...Array.from({ length: alive }, (_, place) => member(place + 1)),
      ...Array.from({ length: dead }, (_, place) => member(alive + place + 1, DEAD)),
    ];
    test.equal(firstDeed(voters(3, 2)), 'remove 4 after 3600 s');
    test.equal(firstDeed(voters(3, 1)), 'remove 4 after 3600 s');
    test.equal(firstDeed(voters(2, 1)), 'nothing', 'three voters stay');
    test.equal(firstDeed(voters(2, 3)), 'nothing', 'the healthy ones are no quorum');
    test.equal(firstDeed(voters(2, 2)), 'nothing', 'the healthy ones are no quorum');
    const off = { ...DEFAULT_AUTOPILOT, cleanupDeadServers: false };
    test.equal(firstDeed(voters(3, 2), { settings: off }), 'nothing');
    const five = { ...DEFAULT_AUTOPILOT, minQuorum: 5 };
    test.equal(firstDeed(voters(4, 1), { settings: five }), 'nothing', 'five are wanted');
    test.equal(firstDeed(voters(5, 1), { settings: five }), 'remove 6 after 3600 s');
    // One that this leader never heard is dead from when it first saw it.
    const never = member(4, { isAlive: false, lastContactMs: undefined });
    test.equal(firstDeed([...voters(3, 0), never]), 'remove 4 after 3600 s');
    // A learner has no vote to lose.
    const learner = member(4, { isAlive: false, isVoter: false });
    test.equal(firstDeed([...voters(2, 1), learner]), 'remove 4 after 3600 s');
  },
);

t.test('autopilot: a learner that is ready takes the place of a dead voter', async (test) => {
  const voters = [member(1), member(2), member(3, DEAD)];
  const learner = member(4, { isVoter: false });
  const longDead = { ...voters[2]!, lastContactMs: 120_000 };
  // Heard of by this leader once, a minute and more ago.
  const autopilot = new Autopilot();
  const seen = (nowMs: number): Observation =>
    observation([voters[0]!, voters[1]!, { ...longDead, lastContactMs: nowMs }], { nowMs });
  for (let nowMs = 0; nowMs <= 60_000; nowMs += SECOND_MS) autopilot.observe(seen(nowMs));
  const steps: string[] = [];
  for (let nowMs = 61_000; nowMs < 80_000 && steps.length === 0; nowMs += SECOND_MS) {
    const { members } = seen(nowMs);
    const change = autopilot.observe(observation([...members, learner], { nowMs }));
    for (const { kind, node } of change?.changes ?? []) steps.push(`${kind} ${node}`);
  }
  test.same(steps, ['remove 3', 'add-voter 4']);
  // One that is gone for a moment only keeps its place.
  test.equal(firstDeed([...voters, learner]), 'add-voter 4 after 10 s');
});

t.test(
  'autopilot: its state says who is healthy, since when, and how many may fail',
  async (test) => {
    const state = (members: readonly MemberView[]) => {
      const autopilot = new Autopilot();
      autopilot.observe(observation(members, { wallMs: 77 }));
      return autopilot.state({ members, term: 3 });
    };
    const healthy = [1, 2, 3, 4, 5].map((node) => member(node));
    test.equal(state(healthy).failureTolerance, 2);
    test.equal(state(healthy).isHealthy, true);
    const sick = state([...healthy.slice(0, 4), member(5, { lastContactMs: 900 })]);
    test.equal(sick.failureTolerance, 1);
    test.equal(sick.isHealthy, false);
    test.same(
      sick.servers.map(({ isHealthy }) => isHealthy),
      [true, true, true, true, false],
    );
    test.equal(sick.servers[4]?.stableSinceMs, 77);
    test.equal(sick.servers[4]?.lastTerm, 3);
    const lost = state([
      member(1),
      member(2, { lastContactMs: undefined }),
      member(3, { lastIndex: 1 }),
    ]);
    test.equal(lost.failureTolerance, 0, 'never below none');
    test.equal(lost.servers[1]?.lastTerm, 0);
    test.equal(state([member(1)]).failureTolerance, 0);
    const learner = member(4, { isVoter: false });
    test.equal(
      state([...healthy.slice(0, 3), learner]).failureTolerance,
      1,
      'learners do not count',
    );
  },
);

t.test("removal: at an operator's word, while a quorum of the others answers", async (test) => {
  const says = (node: number, members: readonly MemberView[]): string => {
    try {
      return removalChange(node, members, ({ isAlive }) => isAlive)
        .changes.map(({ kind, node: gone }) => `${kind} ${gone}`)
        .join();
    } catch (error) {
      return (error as GroupRefusal).message;
    }
  };
  const three = [member(1), member(2), member(3, DEAD)];
  test.equal(says(3, three), 'remove 3');
  test.equal(
    says(2, three),
    'without n2 there would be 2 voters, of whom 2 must answer, and there is no answer from n3: the ' +
      'cluster could write nothing. Bring back, or remove first, whoever does not answer',
  );
  const five = [member(1), member(2), member(3), member(4, DEAD), member(5, DEAD)];
  test.match(says(3, five), /be 4 voters, of whom 3 must answer, .* no answer from n4, n5:/);
  test.equal(says(4, five), 'remove 4');
  test.match(says(9, three), /no member/);
  test.match(says(1, [member(1)]), /only voter/);
  test.equal(says(2, [member(1), member(2)]), 'remove 2');
  const learner = member(4, { isVoter: false });
  test.equal(says(4, [member(1), member(2, DEAD), learner]), 'remove 4');
});

const QUICK = { replaceAfterMs: 5_000, cleanupAfterMs: 20_000 };

function leaderOf(nodes: readonly MemberNode[]): MemberNode {
  return nodes.find((node) => node.isLeader)!;
}

t.test('removal: a voter that died a moment ago is none that answers', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const leader = leaderOf(nodes);
  const [dead, other] = nodes.filter((node) => node !== leader) as [MemberNode, MemberNode];
  const otherNode = other.up.node;
  const deadNode = dead.up.node;
  world.crash(dead);
  await world.run(5);
  test.equal(leader.view(dead.name)?.isAlive, true, 'it was heard of lately');
  const why = new RegExp(`no answer from ${dead.name}:`);
  test.match(await world.refusal(leader.up.removeMember(otherNode)), why);
  // What the refusal names is the way: the dead one can be spared at once.
  await world.result(leader.up.removeMember(deadNode));
  await world.result(leader.up.removeMember(otherNode));
  await world.write(leader);
  test.equal(leader.group, leader.name);
  test.same(world.violations, []);
});

t.test('removal: neither is one whose machine is gone without a word', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3);
  const leader = leaderOf(nodes);
  const [silent, other] = nodes.filter((node) => node !== leader) as [MemberNode, MemberNode];
  world.cut([silent], [leader, other]);
  await world.run(700);
  const refused = leader.up.removeMember(other.up.node);
  test.match(await world.refusal(refused), new RegExp(`no answer from ${silent.name}:`));
  world.net.heal();
  await world.settled(nodes);
  await world.run(700);
  const leading = leaderOf(nodes);
  const gone = nodes.find((node) => node !== leading)!;
  await world.result(leading.up.removeMember(gone.up.node));
  await world.write(leading);
  test.same(world.violations, []);
});

t.test('autopilot: of five servers the two dead ones go, and not a third', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(5, { timing: QUICK });
  const dead = nodes.filter((node) => !node.isLeader).slice(0, 3);
  for (const node of dead.slice(0, 2)) world.crash(node);
  await world.until('they are gone', () => leaderOf(nodes).group.split(' ').length === 3);
  const rest = nodes.filter((node) => !dead.slice(0, 2).includes(node));
  await world.settled(rest);
  world.crash(dead[2]!);
  const living = rest.filter((node) => node !== dead[2]);
  await world.settled(living);
  await world.run(60_000);
  test.equal(leaderOf(living).group, rest.map(({ name }) => name).join(' '));
  test.equal(leaderOf(living).up.autopilotState().failureTolerance, 0);
  // One of those that are gone comes back, and is told.
  await world.start(dead[0]!);
  await world.until('it is told', () => dead[0]!.stands === 'removed');
  await world.write(leaderOf(living));
  await world.checkEven(living);
  test.same(world.violations, []);
});

t.test('autopilot: without a quorum of healthy voters nobody is removed', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(5, { timing: QUICK });
  const leader = leaderOf(nodes);
  const dead = nodes.filter((node) => node !== leader).slice(0, 3);
  for (const node of dead) world.crash(node);
  await world.run(120_000);
  for (const node of dead) await world.start(node);
  await world.settled(nodes);
  test.equal(leaderOf(nodes).group, 'a b c d e');
  test.same(world.violations, []);
});

t.test('autopilot: a new server takes the place of a dead one with another name', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { timing: QUICK });
  const leader = leaderOf(nodes);
  const dead = nodes.find((node) => !node.isLeader)!;
  world.crash(dead);
  const d = world.node('d', { join: [leader.name], timing: QUICK });
  await world.start(d);
  const now = [...nodes.filter((node) => node !== dead), d];
  const names = ['a', 'b', 'c', 'd'].filter((name) => name !== dead.name);
  await world.until('it took the place', () => leader.group === names.join(' '));
  await world.settled(now);
  test.equal(leader.up.groupRecord().membership.voters.length, 3);
  await world.write(leader);
  await world.checkEven(now);
  test.same(world.violations, []);
});
