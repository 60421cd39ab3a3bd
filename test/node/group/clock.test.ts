// The time that most servers of a group have come to, and what a leader with another one deletes by it.

import t from 'tap';
import type { RpcCall } from '../../../cluster/transport/transport.ts';
import { CLOCK_METHOD, GroupClock } from '../../../src/node/reign/group-clock.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import {
  allReady,
  leaderOf,
  runServers,
  type ServerUnderTest,
  until,
} from '../../support/running/running-group.ts';

const HOUR_MS = 3_600_000;
const NOW_MS = 1_767_225_600_000;
/** As servers of all releases answer. */
const NOW_BYTES = Buffer.from('cb4279b76daa800000', 'hex');

type Answer = number | Uint8Array | 'no answer';

interface Given {
  /** Of node 1: how far its clock is from NOW_MS. */
  readonly own?: number;
  /** Of the nodes from 2 on: how far their clocks are, or what else they say. */
  readonly others: readonly Answer[];
  readonly voters?: readonly number[];
  readonly votersOutgoing?: readonly number[];
  readonly away?: readonly number[];
  readonly level?: number;
}

/** What a leader finds agreed, from NOW_MS on; and whom it asked, and of what it told. */
async function agreed({ own = 0, others, away = [], level = NEWEST_LEVEL, ...given }: Given) {
  const nodes = [1, ...others.map((_, place) => place + 2)];
  const { voters = nodes, votersOutgoing = [] } = given;
  const asked: number[] = [];
  const noted: number[] = [];
  const clockAt = (ms: number) => Object.assign(new FakeClock(), { wallMs: () => ms });
  const clock = clockAt(NOW_MS + own);
  const groupClock = new GroupClock({
    member: {
      node: 1,
      members: () =>
        nodes.map((node) => {
          return { node, isSelf: node === 1, isAlive: !away.includes(node) };
        }) as never,
      groupRecord: () => ({ membership: { voters, votersOutgoing } }) as never,
      call: async (to: unknown, { method }: RpcCall) => {
        t.equal(method, CLOCK_METHOD);
        asked.push(to as number);
        const answer = others[(to as number) - 2]!;
        if (answer === 'no answer') throw new Error('this server does not answer it now');
        if (typeof answer !== 'number') return answer;
        const theirs = { clock: clockAt(NOW_MS + answer), level: () => level };
        return new GroupClock({ ...theirs, clocks: {} as never, member: {} as never }).answer();
      },
    },
    ...{ clock, level: () => level },
    clocks: { noteAgreed: (timeMs) => void noted.push(timeMs - NOW_MS) },
  });
  const agreedMs = await groupClock.agreedMs();
  return { agreed: agreedMs === 0 ? 'none' : agreedMs - NOW_MS, asked, noted };
}

t.test('group clock: a majority decides, and a single clock that is ahead does not', async (t) => {
  const cases: readonly (readonly [string, Given, number | 'none'])[] = [
    ['one alone', { own: HOUR_MS, others: [] }, HOUR_MS],
    ['two', { own: HOUR_MS, others: [3] }, 3],
    ['the leader ahead', { own: HOUR_MS, others: [1, 2] }, 2],
    ['another one ahead', { others: [HOUR_MS, -1] }, 0],
    ['one behind', { others: [-HOUR_MS, 1] }, 0],
    ['five', { own: 5, others: [4, 3, 2, 1] }, 3],
    ['one says nothing', { own: HOUR_MS, others: [1, 'no answer'] }, 1],
    ['nobody does', { others: ['no answer', 'no answer'] }, 'none'],
    ['one says what is no time', { others: [Buffer.from('a17a', 'hex'), 'no answer'] }, 'none'],
    ['nor bytes of its own', { others: [Buffer.from('c1', 'hex'), 'no answer'] }, 'none'],
    ['these bytes', { own: HOUR_MS, others: [NOW_BYTES, 'no answer'] }, 0],
    ['a learner', { own: HOUR_MS, others: [1, HOUR_MS], voters: [1, 2] }, 1],
    [
      'both halves of a joint membership',
      { own: HOUR_MS, others: [1, HOUR_MS, HOUR_MS], voters: [1, 3, 4], votersOutgoing: [1, 2] },
      1,
    ],
    ['releases that do not tell', { own: HOUR_MS, others: [1, 2], level: 6 }, HOUR_MS],
  ];
  for (const [what, given, wanted] of cases) t.equal((await agreed(given)).agreed, wanted, what);
});

t.test('group clock: who is away is not waited for, and the watch hears of it', async (t) => {
  const one = await agreed({ own: HOUR_MS, others: [1, 2], away: [3] });
  t.same([one.asked, one.agreed, one.noted], [[2], 1, [1]]);
  const none = await agreed({ others: [1, 2], away: [2, 3] });
  t.same([none.asked, none.agreed, none.noted], [[], 'none', []]);
});

t.test('group clock: a leader that is ahead deletes no token before its time', async (t) => {
  const servers = await runServers(t, 3);
  const right = await leaderOf(servers);
  const [ahead, other] = servers.filter((each) => each !== right) as [
    ServerUnderTest,
    ServerUnderTest,
  ];
  const made = await right.client.made('PUT', '/acl/token', { ExpirationTTL: '10m' });
  const status = async () => (await right.client.get(`/acl/token/${made.AccessorID}`)).status;
  const goAhead = async (server: ServerUnderTest) => {
    await server.close();
    server.aheadMs = HOUR_MS;
    await server.open();
    await allReady(servers);
  };
  await goAhead(ahead);
  const { nodeId: id } = ahead.node.info;
  await until('it leads', async () => {
    if ((await leaderOf(servers)) === ahead) return true;
    await right.client.send('POST', `/operator/raft/transfer-leader?id=${id}`);
    return false;
  });
  const written = await ahead.client.put('/acl/policy', { Name: 'of-its-reign' });
  t.equal(written.status, 200);
  await new Promise<void>((resolve) => setTimeout(resolve, 3_000));
  t.equal(await status(), 200, 'three beats of its reign have left it');

  await goAhead(other);
  t.equal(await leaderOf(servers), ahead);
  await until('most of them have come to its time', async () => (await status()) !== 200);
});
