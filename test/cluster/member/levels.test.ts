// Members of different releases: who reads how much of the log, and who is kept out because it reads less
// than the group uses.

import t from 'tap';
import type { DurableLog } from '../../../cluster/log/durable-log.ts';
import { nodeNumberOf } from '../../../cluster/member/founding/node-number.ts';
import type { Leading } from '../../../cluster/member/leading/leading.ts';
import { encodeIntroduction } from '../../../cluster/member/member-frames.ts';
import { answersOf } from '../../../cluster/member/seat/seat-answers.ts';
import { type MemberNode, MemberWorld } from '../../support/simulated/member-world.ts';

const ID = '00000007-0000-4000-8000-000000000000';

function leaderOf(nodes: readonly MemberNode[]): MemberNode {
  return nodes.find(({ isLeader }) => isLeader)!;
}

/** What a member says of all: names with what each reads. */
function readsAt(node: MemberNode): Readonly<Record<string, number | undefined>> {
  return Object.fromEntries(node.up.members().map(({ name, reads }) => [name, reads]));
}

function use(nodes: readonly MemberNode[], level: number): void {
  for (const { machine } of nodes) machine.usesLevel = level;
}

t.test('levels: a member says what it reads, and nothing while it is away', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { reads: 1 });
  const leader = leaderOf(nodes);
  const other = nodes.find((node) => node !== leader)!;
  await world.until('all have a link', () => {
    return Object.values(readsAt(leader)).every((reads) => reads === 1);
  });
  await world.stop(other);
  await world.until('the link is gone', () => readsAt(leader)[other.name] === undefined);
  other.settings = { ...other.settings, reads: 2 };
  await world.start(other);
  await world.until('it is back as a newer one', () => readsAt(leader)[other.name] === 2);
  test.equal(readsAt(other)[other.name], 2);
  test.same(world.violations, []);
});

t.test('levels: who reads less than the group uses does not join it', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { reads: 2 });
  use(nodes, 2);
  const older = world.node('older', { join: nodes.map(({ name }) => name), reads: 1 });
  await world.start(older);
  await world.until('it is told why', () => /upgrade/.test(older.says));
  test.match(older.says, /reads the log up to feature level 1, and the cluster uses 2: upgrade/);
  test.ok(
    nodes.some((node) => node.hasLogged(/older .*up to feature level 1, and the cluster uses 2/)),
    'the others say it, too',
  );
  await world.run(5_000);
  test.equal(older.stands, 'joining');
  test.notOk(leaderOf(nodes).group.includes('older'));
  await world.stop(older);
  older.settings = { ...older.settings, reads: 2 };
  await world.start(older);
  await world.settled([...nodes, older]);
  test.same(world.violations, []);
});

t.test(
  'levels: who asks over a connection from before the level rose is refused, too',
  async (test) => {
    const record = {
      ...{ node: nodeNumberOf(ID), id: ID, name: 'older', httpAddress: '', version: '1' },
      address: { host: 'older', port: 8300 },
    };
    const own = { ...record, name: 'a' };
    let admitted = 0;
    const answers = answersOf({
      ...{ clusterId: 'c', self: () => own, uses: () => 2 },
      log: {} as DurableLog,
      leading: {
        admit: async () => {
          admitted += 1;
        },
      } as unknown as Leading,
      introduction: () => {
        throw new Error('nobody asks for it');
      },
      onHeard: () => undefined,
      onRemovedTold: () => undefined,
    });
    const asking = { record, expect: 1, clusterId: '', leader: undefined, members: [] };
    const join = (reads: number): Promise<Uint8Array> => {
      const caller = { node: record.node, id: ID, name: 'older', version: '1', datacenter: 'dc1' };
      const from = { ...caller, reads, clusterId: '', federationId: '', remote: 'x' };
      const payload = encodeIntroduction(asking);
      return answers['member.join']!({
        from,
        method: 'member.join',
        payload,
        deadlineMs: 1,
        hops: 0,
      });
    };
    await test.rejects(join(1), {
      code: 'too-old',
      message: /older reads .* 1, and the cluster uses 2/,
    });
    test.equal(admitted, 0);
    await join(2);
    test.equal(admitted, 1);
  },
);

t.test('levels: a member that comes back as an older release stays outside', async (test) => {
  const world = new MemberWorld();
  const nodes = await world.group(3, { reads: 2 });
  const leader = leaderOf(nodes);
  const others = nodes.filter((node) => node !== leader);
  const [back] = others as [MemberNode];
  await world.stop(back);
  use(nodes, 2);
  back.machine.usesLevel = 1;
  back.settings = { ...back.settings, reads: 1 };
  await world.start(back);
  await world.until('it is refused', () =>
    back.hasLogged(/up to feature level 1, and the cluster/),
  );
  const committed = await world.write(leader);
  await world.run(5_000);
  test.ok(back.up.status().appliedIndex < leader.up.status().appliedIndex, `without ${committed}`);
  await world.stop(back);
  back.settings = { ...back.settings, reads: 2 };
  await world.start(back);
  await world.settled(nodes);
  await world.checkEven(nodes);
  test.same(world.violations, []);
});
