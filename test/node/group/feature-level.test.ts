// One release of skew: servers of a datacenter, and datacenters, that read more than the others. The level
// of the log rises when the last one is upgraded, goes on meanwhile as before, and never comes back.

import t from 'tap';
import {
  FeatureLevel,
  type LevelReader,
  leftBehindBy,
  readersElsewhere,
  unreadableBy,
} from '../../../src/node/reign/feature-level.ts';
import type { Command } from '../../../src/state/commands/commands.ts';
import {
  FIRST_LEVEL,
  GLOBAL_LOG_LEVEL,
  NEWEST_LEVEL,
} from '../../../src/state/commands/feature-levels.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  everyoneKnows,
  planned,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import {
  joiningServer,
  leaderOf,
  runServers,
  type ServerUnderTest,
  until,
} from '../../support/running/running-group.ts';
import { settled } from '../../support/simulated/simulated-world.ts';
import { aCommand, aToken } from '../../support/state-and-service/fixtures.ts';

/** Each has servers of its own, and waits for them most of the time. */
t.jobs = 3;

/** From which on the list of datacenters names clusters. */
const CLUSTERS_LEVEL = 4;

/** What comes after this release. */
const NEXT = NEWEST_LEVEL + 1;

function level(given: {
  readonly reads: number;
  readonly members: readonly LevelReader[];
  readonly datacenters?: readonly LevelReader[];
}) {
  const clock = new FakeClock();
  const proposed: number[] = [];
  const state = { uses: 1, isReigning: true, begunCount: 0, fails: false, proposed };
  const feature = new FeatureLevel({
    clock,
    reads: given.reads,
    uses: () => state.uses,
    members: () => given.members,
    datacenters: () => given.datacenters ?? [],
    isReigning: () => state.isReigning,
    propose: async ({ change }: Command) => {
      if (change.type !== 'level.raise') throw new Error('nothing else is proposed');
      state.proposed.push(change.level);
      state.uses = change.level;
      return {} as Outcome;
    },
    beginLog: async () => {
      if (state.fails) throw new Error('this server leads no more');
      state.begunCount += 1;
    },
    logger: { debug() {}, info() {}, warn() {}, error() {} },
  });
  const look = async (): Promise<void> => {
    clock.advance(1_000);
    await settled();
  };
  return { feature, state, look };
}

t.test('level: rises to what every member reads, voter or not, and to no more', async (test) => {
  const cases: readonly (readonly [number, readonly (number | undefined)[], readonly number[]])[] =
    [
      [3, [3, 3, 3], [3]],
      [3, [3, 2, 3], [2]],
      [3, [3, undefined, 3], []],
      [3, [3, 1, 3], []],
      [2, [2, 3, 3], [2]],
    ];
  for (const [reads, members, proposed] of cases) {
    const readers = members.map((each, place) => ({ name: `n${place}`, reads: each }));
    const { feature, state, look } = level({ reads, members: readers });
    await look();
    await look();
    test.same(state.proposed, proposed, `${reads}: ${members.join()}`);
    test.equal(state.begunCount, proposed.length);
    await feature.close();
  }
});

t.test('level: what the leader before raised counts, whenever it is applied', async (test) => {
  const { feature, state, look } = level({ reads: 3, members: [{ name: 'b', reads: undefined }] });
  await feature.begin();
  test.same([state.begunCount, state.proposed], [1, []]);
  state.uses = 3;
  await look();
  test.equal(state.begunCount, 2, 'the log begins, though nobody raises it any more');
  await look();
  test.same([state.begunCount, state.proposed], [2, []]);
  await feature.close();
});

t.test('level: what did not begin at a higher level is tried again', async (test) => {
  const { feature, state, look } = level({ reads: 3, members: [{ name: 'b', reads: 3 }] });
  state.fails = true;
  await look();
  test.same([state.begunCount, state.proposed], [0, [3]]);
  state.fails = false;
  await look();
  test.same([state.begunCount, state.proposed], [1, [3]]);
  await feature.close();
});

t.test('level: the primary waits for every other datacenter', async (test) => {
  const members = [{ name: 'a', reads: 3 }];
  for (const reads of [undefined, 1, 2, 3]) {
    const datacenters = [
      { name: 'dc2', reads: 3 },
      { name: 'dc3', reads },
    ];
    const { feature, state, look } = level({ reads: 3, members, datacenters });
    await look();
    test.same(state.proposed, (reads ?? 0) > 1 ? [reads] : [], `${reads}`);
    const waitsFor = reads === 3 ? [] : ['dc3'];
    test.same(feature.status(), { uses: state.uses, reads: 3, waitsFor });
    await feature.close();
  }
});

t.test('level: no word of another datacenter is waited for before there is a global log', (t) => {
  const told = new Map([
    ['older', GLOBAL_LOG_LEVEL - 1],
    ['newer', GLOBAL_LOG_LEVEL + 1],
  ]);
  const reading = (hasGlobalLog: boolean) =>
    readersElsewhere(['silent', 'older', 'newer'], {
      levelOf: (name) => told.get(name),
      hasGlobalLog,
    }).map(({ reads }) => reads);
  t.same(reading(false), [GLOBAL_LOG_LEVEL, GLOBAL_LOG_LEVEL, GLOBAL_LOG_LEVEL + 1]);
  t.same(reading(true), [undefined, GLOBAL_LOG_LEVEL - 1, GLOBAL_LOG_LEVEL + 1]);
  t.end();
});

t.test(
  'level: nobody raises it who does not reign, and what must wait is told why',
  async (test) => {
    const members = [
      { name: 'a', reads: 2 },
      { name: 'b', reads: undefined },
    ];
    const { feature, state, look } = level({ reads: 2, members });
    state.isReigning = false;
    await look();
    test.same(state.proposed, []);
    const trim = aCommand({ type: 'global-log.trim', upTo: 1 });
    test.throws(() => feature.readable(trim), {
      code: 'unavailable',
      message: /uses feature level 1 until b can read more/,
    });
    const drawn = aCommand({ type: 'token.set', presence: 'create-drawn', token: aToken(1) });
    test.match(feature.readable(drawn), { change: { presence: 'create' } });
    state.uses = 2;
    test.equal(feature.readable(trim), trim);
    await feature.close();
  },
);

interface Shown {
  readonly Active: number;
  readonly Readable: number;
  readonly WaitsFor: readonly string[];
}

t.test('level: a successor leaves behind whoever does not read what it writes', async (test) => {
  const levels: Record<string, number | undefined> = { dc1: 2, dc2: 3, dc3: 3 };
  const by = (
    members: readonly LevelReader[],
    { uses = 2, ...others }: { readonly uses?: number; readonly dc3?: number } = {},
  ) =>
    leftBehindBy('dc2', {
      ...{ own: 'dc1', uses, members, datacenters: ['dc1', 'dc2', 'dc3', 'dc4'] },
      levelOf: (name) => ({ ...levels, ...others })[name],
    });
  const newer = { name: 'n1', reads: 3 };
  const older = { name: 'n2', reads: 2 };
  const away = { name: 'n3', reads: undefined };
  test.equal(by([newer]), undefined, 'it raises its level when it is not the primary any more');
  test.match(by([newer, older, away]), /^dc2 uses .* 3, and would leave dc1 \(n2, n3\) behind,/);
  test.equal(by([newer, away], { uses: 3 }), undefined, 'what is used, all read for good');
  test.match(by([newer], { dc3: 2 }), /would leave dc3 behind,.* promote dc2 --election` moves/);
  test.match(by([older], { dc3: 2 }), /would leave dc1 \(n2\) and dc3 behind,/);
  test.equal(
    by([newer], { uses: 4 }),
    'dc2 uses feature level 3, and dc1 uses 4: upgrade those of dc2 that `conclave operator autopilot state` names there, and replace what is gone for good',
    'one that has not what the primary writes cannot catch up',
  );
});

t.test('level: whoever uses less takes of a rest what it reads, and no more', (test) => {
  test.equal(unreadableBy('dc1', { reads: 3, needs: 3 }), undefined);
  test.equal(
    unreadableBy('dc1', { reads: 3, needs: 4 }),
    'dc1 uses feature level 3, and what it lacks is of 4: upgrade those of dc1 that `conclave operator autopilot state` names there, and replace what is gone for good',
  );
  test.end();
});

async function shown(server: ServerUnderTest): Promise<Shown | undefined> {
  const { status, json } = await server.client.get('/operator/autopilot/state');
  return status === 200 ? (json.FeatureLevel as Shown) : undefined;
}

function uses(server: ServerUnderTest, active: number): Promise<void> {
  return until(`${server.name} uses ${active}`, async () => {
    return (await shown(server))?.Active === active;
  });
}

async function restart(server: ServerUnderTest, reads: number): Promise<void> {
  await server.close();
  server.reads = reads;
  await server.open();
  await until(`${server.name} is ready`, () => server.node.info.notReadyReasons().length === 0);
}

t.test('skew: a datacenter is upgraded server by server, and none goes back', async (t) => {
  const servers = await runServers(t, 3);
  const [first, second, third] = servers as [ServerUnderTest, ServerUnderTest, ServerUnderTest];
  await uses(first, NEWEST_LEVEL);
  await restart(first, NEXT);
  await restart(second, NEXT);
  await until('the newer ones wait for the third', async () => {
    const leader = await leaderOf(servers);
    if (leader === third) await third.client.send('POST', '/operator/raft/transfer-leader');
    const state = await shown(leader);
    return state?.Readable === NEXT && state.WaitsFor.join() === third.name;
  });
  t.equal((await shown(first))?.Active, NEWEST_LEVEL);
  await third.client.made('PUT', '/acl/policy', { Name: 'in-between' });
  const { list: members } = await first.client.get('/agent/members');
  const told = members.map(({ Tags }) => (Tags as Record<string, string>).reads_feature_level);
  t.same(told.sort(), [String(NEWEST_LEVEL), String(NEXT), String(NEXT)]);

  await restart(third, NEXT);
  await uses(first, NEXT);
  const { text } = await first.client.get('/agent/metrics?format=prometheus');
  t.match(text, new RegExp(`^conclave_feature_level_active ${NEXT}$`, 'm'));
  await until('all have it in their states', async () => {
    const all = await Promise.all(servers.map(({ client }) => client.get('/acl/policies?stale')));
    return all.every((each) => each.text.includes('in-between'));
  });

  const older = await joiningServer(t, 'older', servers);
  older.reads = NEWEST_LEVEL;
  await older.open();
  await until('it is told why it does not join', () => {
    const why = older.node.info.notReadyReasons().join();
    return why.includes(`up to feature level ${NEWEST_LEVEL}, and the cluster uses ${NEXT}`);
  });
  await older.close();

  await third.close();
  third.reads = NEWEST_LEVEL;
  await t.rejects(third.open(), { name: 'UnreadableState' });
  third.reads = NEXT;
  await third.open();
  await third.client.made('PUT', '/acl/policy', { Name: 'at-the-end' });
});

t.test(
  'skew: of two datacenters the secondary goes first, whichever is upgraded first',
  async (t) => {
    const dc1 = await runDatacenter(t, { name: 'dc1' });
    const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
    const both = [dc1, dc2];
    await everyoneKnows(both);
    const visible = async (name: string): Promise<void> => {
      const made = await serverOf(dc2).client.put('/acl/policy', { Name: name });
      t.equal(made.status, 200, made.text);
      await until(`${name} is everywhere`, async () => {
        const all = await Promise.all(
          both.map((each) => serverOf(each).client.get('/acl/policies?stale')),
        );
        return all.every((each) => each.text.includes(`"${name}"`));
      });
    };
    // The primary is a release ahead: it writes what the secondary reads.
    await restart(serverOf(dc1), NEXT);
    await everyoneKnows(both);
    await visible('ahead');
    t.same(await shown(serverOf(dc1)), {
      Active: NEWEST_LEVEL,
      Readable: NEXT,
      WaitsFor: ['dc2'],
    });
    await restart(serverOf(dc2), NEXT);
    await uses(serverOf(dc2), NEXT);
    await uses(serverOf(dc1), NEXT);
    await visible('level');

    // Another one of the older release is not let in, and follows once it is upgraded.
    const dc3 = await planned(t, { name: 'dc3', primary: dc1 });
    serverOf(dc3).reads = NEWEST_LEVEL;
    await serverOf(dc3).open();
    await until('the primary has refused it', async () => {
      const why = serverOf(dc3).node.info.notReadyReasons().join();
      return why.includes(
        `feature level ${NEWEST_LEVEL} is used here, and the global log is of ${NEXT}: upgrade and start dc3-1, `,
      );
    });
    await restart(serverOf(dc3), NEXT);
    await everyoneKnows([dc1, dc2, dc3]);
  },
);

t.test('skew: the primary is not handed over to whom its servers cannot read', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  await everyoneKnows([dc1, dc2]);
  await restart(serverOf(dc2), NEXT);
  await uses(serverOf(dc2), NEXT);
  const handOver = () =>
    serverOf(dc1).client.put('/operator/primary', { Datacenter: 'dc2', Mode: 'hand-over' });
  await until('it is refused, and says whom to upgrade', async () => {
    const { status, text } = await handOver();
    return (
      status !== 200 && text.includes(`dc2 uses feature level ${NEXT}, and would leave dc1 (dc1-1)`)
    );
  });
  await serverOf(dc1).client.made('PUT', '/acl/policy', { Name: 'still-here' });
  await restart(serverOf(dc1), NEXT);
  await until('the primary has moved', async () => (await handOver()).status === 200);
  await serverOf(dc1).client.made('PUT', '/acl/policy', { Name: 'there' });
});

t.test(
  'skew: a primary that was left behind says so, and takes nothing that it cannot read',
  async (t) => {
    const dc1 = await planned(t, { name: 'dc1' });
    const old = serverOf(dc1);
    // The list of datacenters says nothing of clusters there.
    old.reads = CLUSTERS_LEVEL - 1;
    await old.open();
    const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
    const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1 });
    await everyoneKnows([dc1, dc2, dc3]);
    const move = (at: ServerUnderTest, Datacenter: string, Mode: string) =>
      at.client.put('/operator/primary', { Datacenter, Mode });
    await until('dc2 is elected', async () => {
      return (await move(serverOf(dc2), 'dc2', 'election')).status === 200;
    });
    const seqOf = async (server: ServerUnderTest): Promise<number> => {
      const { Position } = (await server.client.get('/operator/primary')).json;
      return Number(String(Position).split('.')[1]);
    };
    await until('it has written the list anew behind the beginning of its reign', async () => {
      return (await seqOf(serverOf(dc2))) >= (await seqOf(old)) + 2;
    });
    const closed = async (): Promise<unknown> =>
      (await old.client.get('/operator/primary')).json.Closed;
    const keptOut = `the servers of dc1 read the log up to feature level ${old.reads}, and the primary uses`;
    await until('it says what keeps it from the log', async () => {
      return String(await closed()).includes(
        `(last error: ${keptOut} ${NEWEST_LEVEL}: upgrade all`,
      );
    });
    const behind = `dc1 uses feature level ${old.reads}, and `;
    const handedBack = await move(serverOf(dc2), 'dc1', 'hand-over');
    t.match(handedBack.text, `${behind}dc2 uses ${NEWEST_LEVEL}: upgrade those of dc1 that `);
    await until('it is refused what names clusters', async () => {
      const { status, text } = await move(old, 'dc1', 'election');
      t.not(status, 200, text);
      return text.includes(`${behind}what it lacks is of ${CLUSTERS_LEVEL}: upgrade those`);
    });
    await restart(old, NEWEST_LEVEL);
    await until('it follows', async () => (await closed()) === '');
  },
);

t.test('skew: a primary has its global log before the others can read one', async (t) => {
  const dc1 = await planned(t, { name: 'dc1', servers: 3 });
  const dc2 = await planned(t, { name: 'dc2', primary: dc1 });
  const [first, second, third] = dc1.servers as [ServerUnderTest, ServerUnderTest, ServerUnderTest];
  const behind = serverOf(dc2);
  third.reads = FIRST_LEVEL;
  behind.reads = FIRST_LEVEL;
  await Promise.all([...dc1.servers, behind].map((server) => server.open()));
  await until('the leader waits for its own server and knows of the other datacenter', async () => {
    const leader = await leaderOf(dc1.servers);
    if (leader === third) await third.client.send('POST', '/operator/raft/transfer-leader');
    const { text } = await leader.client.get('/acl/replication');
    const waitsFor = (await shown(leader))?.WaitsFor ?? [];
    return waitsFor.includes(third.name) && text.includes('"dc2"');
  });
  await restart(third, NEWEST_LEVEL);
  await uses(first, GLOBAL_LOG_LEVEL);
  await second.client.made('PUT', '/acl/policy', { Name: 'before-the-other' });
  // One that is upgraded later takes part from then on.
  await behind.close();
  behind.reads = NEWEST_LEVEL;
  await behind.open();
  await everyoneKnows([dc1, dc2]);
  await uses(first, NEWEST_LEVEL);
  await until('it is there', async () => {
    return (await behind.client.get('/acl/policies?stale')).text.includes('before-the-other');
  });
});

t.test('skew: a secondary says who keeps it from having a global log at all', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await planned(t, { name: 'dc2', primary: dc1, servers: 3 });
  const [older, ...others] = dc2.servers as [ServerUnderTest, ...ServerUnderTest[]];
  older.reads = FIRST_LEVEL;
  await Promise.all(dc2.servers.map((server) => server.open()));
  await leaderOf(dc2.servers);
  const says = (name: string) =>
    'nothing has come from the primary datacenter yet: feature level 1 is used here, and the global log is of ' +
    `${NEWEST_LEVEL}: upgrade and start ${name}, and replace those that are gone for good`;
  const allSay = (text: string) =>
    until(text, () => others.every((each) => each.node.info.notReadyReasons()[0] === text));
  await allSay(says(older.name));
  await older.close();
  await allSay(says(older.name));
  older.reads = NEWEST_LEVEL;
  await older.open();
  await everyoneKnows([dc1, dc2]);
});

t.test('skew: a secondary that is a release ahead follows an older primary', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await planned(t, { name: 'dc2', primary: dc1 });
  serverOf(dc2).reads = NEXT;
  await serverOf(dc2).open();
  await everyoneKnows([dc1, dc2]);
  await uses(serverOf(dc2), NEXT);
  const made = await serverOf(dc2).client.put('/acl/policy', { Name: 'written-there' });
  t.equal(made.status, 200, made.text);
  await serverOf(dc1).client.made('PUT', '/acl/policy', { Name: 'written-here' });
  await until('both have both', async () => {
    const { text } = await serverOf(dc2).client.get('/acl/policies?stale');
    return text.includes('"written-there"') && text.includes('"written-here"');
  });
  t.equal((await shown(serverOf(dc1)))?.Active, NEWEST_LEVEL);
});
