// The directory of datacenters: what spreads, what takes whose place, and what is left out.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Directory, type OwnRecord } from '../../../cluster/federation/directory/directory.ts';
import {
  ADDRESSES_MAX,
  DATACENTERS_MAX,
  DIRECTORY_METHOD,
  type DirectoryRecord,
  decodeRecords,
  encodeRecords,
} from '../../../cluster/federation/directory/directory-frames.ts';
import { Gossip, type GossipTiming } from '../../../cluster/federation/directory/gossip.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import type { RpcRequest } from '../../../cluster/transport/transport.ts';
import { WireDamage } from '../../../cluster/wire/wire-damage.ts';
import { FeedWorld, WorldNode } from './feed-world.ts';

const RECORD: DirectoryRecord = {
  datacenter: 'dc2',
  clusterId: 'cluster of dc2',
  federationId: 'fed',
  addresses: [{ host: '10.0.0.1', port: 8300 }],
  primary: 'dc1',
  epoch: 3,
  term: 9,
  count: 70_000,
  ageMs: 250,
  level: 2,
};

/** Format 1. Never edit the bytes. */
const GOLDEN =
  '9201919aa3646332ae636c7573746572206f6620646332a36665649192a831302e302e302e31cd206ca36463310309' +
  'ce00011170ccfa02';
/** The first layout, which said nothing of levels. */
const GOLDEN_FIRST =
  '92019199a3646332ae636c7573746572206f6620646332a36665649192a831302e302e302e31cd206ca36463310309' +
  'ce00011170ccfa';

t.test('directory frames: have the bytes of the first release, both ways', async (test) => {
  test.equal(Buffer.from(encodeRecords([RECORD])).toString('hex'), GOLDEN);
  const bytes = new Uint8Array(Buffer.from(GOLDEN, 'hex'));
  test.same(decodeRecords(bytes), [RECORD]);
  const first = new Uint8Array(Buffer.from(GOLDEN_FIRST, 'hex'));
  test.same(decodeRecords(first), [{ ...RECORD, level: 1 }], 'nothing of levels');
  for (let length = 0; length < bytes.length; length += 1) {
    test.throws(() => decodeRecords(bytes.slice(0, length)), WireDamage, `${length} bytes`);
  }
  const text = readFileSync(join(import.meta.dirname, '../../../../docs/WIRE.md'), 'utf8');
  test.ok(text.includes(`\`${DIRECTORY_METHOD}\``), 'docs/WIRE.md names it');
});

function aDirectory(
  world: FeedWorld,
  given: {
    readonly clusterId?: string;
    readonly federationId?: string;
    readonly removed?: readonly string[];
    readonly clusters?: Readonly<Record<string, string>>;
    readonly followed?: readonly string[];
    readonly forgetAfterMs?: number;
  } = {},
): Directory {
  return new Directory({
    clock: world.clock,
    logger: world.logger('d'),
    datacenter: 'dc1',
    clusterId: () => given.clusterId ?? 'cluster of dc1',
    federationId: () => given.federationId ?? 'fed',
    isRemoved: (each) => given.removed?.includes(each) === true,
    clusterIdOf: (each) => given.clusters?.[each],
    isFollowed: (each) => given.followed?.includes(each) === true,
    forgetAfterMs: given.forgetAfterMs ?? 10_000,
  });
}

t.test('directory: a later reign is what others say of it, not the one itself', async (test) => {
  const directory = aDirectory(new FeedWorld());
  directory.learn([{ ...RECORD, primary: 'dc2' }]);
  test.equal(directory.hasOutrun('dc2', 2), false, 'it says so itself');
  directory.learn([{ ...RECORD, datacenter: 'dc3', primary: 'dc2' }]);
  test.same(
    [2, 3].map((epoch) => directory.hasOutrun('dc2', epoch)),
    [true, false],
  );
  test.equal(directory.hasOutrun('dc3', 2), false);
});

t.test(
  'directory: a reign is forgotten where its own datacenter tells of an earlier one since',
  async (test) => {
    const world = new FeedWorld();
    const directory = aDirectory(world, { forgetAfterMs: 3_600_000 });
    const told = async (
      seconds: number,
      ...records: readonly Partial<DirectoryRecord>[]
    ): Promise<unknown> => {
      await world.run(seconds * 1_000);
      const count = Math.floor(world.clock.monotonicMs());
      directory.learn(records.map((each) => ({ ...RECORD, ageMs: 0, count, ...each })));
      return directory.forgottenReign();
    };
    const follower = { datacenter: 'dc3', primary: 'dc2' };
    const before = { datacenter: 'dc2', primary: 'dc1', epoch: 1 };
    test.equal(await told(1, before), undefined);
    test.equal(await told(1, follower), undefined, 'it has begun that since');
    test.equal(await told(14, follower), undefined);
    test.equal(await told(1, before), undefined, 'its word may have been long on its way');
    const forgotten = { datacenter: 'dc2', epoch: 3, knownEpoch: 1 };
    test.same(await told(1, follower, before), forgotten);
    test.same(await told(1, { ...before, federationId: '' }), undefined, 'it is of none');
    test.same(await told(1, before), forgotten);
    test.same(directory.followersBehind('dc2', 1), [{ datacenter: 'dc3', epoch: 3 }]);
    test.equal(
      await told(1, { ...follower, primary: 'dc3', epoch: 4 }),
      undefined,
      'another one began',
    );
    test.equal(await told(60, { ...follower, primary: 'dc3', epoch: 5 }), undefined);
    test.equal(await told(60, { ...before, primary: 'dc3', epoch: 5 }), undefined);
  },
);

t.test('directory: two of one epoch are told of', async (test) => {
  const removed: string[] = [];
  const directory = aDirectory(new FeedWorld(), { removed });
  directory.learn([
    { ...RECORD, primary: 'dc2' },
    { ...RECORD, datacenter: 'dc3', primary: '' },
    { ...RECORD, datacenter: 'dc4', primary: 'dc4', epoch: 2 },
  ]);
  const rivals = (): unknown[] =>
    [2, 3].map((epoch) => [directory.rivalOf('dc4', epoch), directory.isRivalled('dc4', epoch)]);
  test.same(rivals(), [
    [undefined, false],
    ['dc2', true],
  ]);
  test.equal(directory.rivalOf('dc2', 3), undefined);
  directory.learn([
    { ...RECORD, datacenter: 'dc0', primary: 'dc8', epoch: 3 },
    { ...RECORD, datacenter: 'dc9', primary: 'dc9', epoch: 3 },
  ]);
  test.equal(directory.primary()?.datacenter, 'dc8', 'the same one everywhere');
  directory.learn([{ ...RECORD, datacenter: 'dc0', primary: '', epoch: 0, count: 70_001 }]);
  test.equal(directory.primary()?.datacenter, 'dc2');
  removed.push('dc2');
  directory.learn([
    { ...RECORD, primary: 'dc2' },
    { ...RECORD, datacenter: 'dc9', primary: '', epoch: 0, count: 70_001 },
  ]);
  test.same(rivals()[1], [undefined, true], 'one that was removed closes nobody');
});

t.test('directory: who is of no federation tells of none of its reigns', async (test) => {
  const given = { federationId: 'fed', removed: ['dc5'] };
  const directory = aDirectory(new FeedWorld(), given);
  const alone = { ...RECORD, datacenter: 'dc4', federationId: '', primary: 'dc4' };
  directory.learn([
    RECORD,
    alone,
    { ...alone, datacenter: 'dc3', primary: 'dc1', epoch: 8 },
    { ...alone, datacenter: 'dc5', primary: 'dc5', epoch: 9 },
  ]);
  const told = () => [
    directory.primary()?.epoch,
    directory.rivalOf('dc1', 3),
    directory.isRivalled('dc1', 9),
    directory.followersBehind('dc1', 3).length,
    directory.latestEpoch(),
    directory.claimOfRemoved('dc5')?.epoch,
  ];
  test.same(told(), [3, undefined, false, 0, 3, undefined]);
  test.same(directory.datacenters(), ['dc2', 'dc3', 'dc4'], 'it may come to take part');
  const allAlone = () => ['dc2', 'dc3', 'dc4', 'dc9'].filter((each) => directory.goesAlone(each));
  test.same(allAlone(), ['dc4'], 'not as its own primary');
  given.federationId = '';
  test.same(told(), [8, 'dc4', true, 1, 9, 9], 'who is of none itself hears all');
  test.same(allAlone(), []);
});

t.test(
  'directory: the later record of a datacenter takes the place of the earlier',
  async (test) => {
    const directory = aDirectory(new FeedWorld());
    test.equal(directory.learn([RECORD]), true);
    test.equal(directory.learn([RECORD]), false, 'nothing new');
    test.equal(directory.learn([{ ...RECORD, count: 70_001 }]), false, 'a sign of life is no news');
    const older: readonly Partial<DirectoryRecord>[] = [
      { term: 8, count: 99_999, primary: 'dc8' },
      { term: 9, count: 70_000, primary: 'dc8' },
    ];
    for (const each of older) test.equal(directory.learn([{ ...RECORD, ...each }]), false);
    test.equal(directory.primary()?.datacenter, 'dc1');
    test.equal(
      directory.learn([{ ...RECORD, term: 10, count: 1, primary: 'dc4', epoch: 5 }]),
      true,
    );
    test.same(directory.primary(), { datacenter: 'dc4', epoch: 5, addresses: [] });
  },
);

t.test(
  'directory: one that nobody has renewed for so long is neither news nor in the way',
  async (test) => {
    const world = new FeedWorld();
    const directory = aDirectory(world, { forgetAfterMs: 60_000 });
    test.equal(directory.learn([{ ...RECORD, ageMs: 60_001 }]), false);
    test.equal(directory.learn([{ ...RECORD, ageMs: 60_000 }]), true);
    const many = Array.from({ length: 100 }, (_, number) => ({
      ...RECORD,
      datacenter: `far-${number}`,
      ageMs: 60_000,
    }));
    directory.learn(many);
    await world.run(1);
    test.equal(
      directory.learn([{ ...RECORD, datacenter: 'dc4', ageMs: 0 }]),
      true,
      'there is room',
    );
    test.same(directory.datacenters(), ['dc4']);
  },
);

t.test('directory: who was put back to an earlier term is found where it is now', async (test) => {
  const world = new FeedWorld();
  const directory = aDirectory(world, { forgetAfterMs: 3_600_000 });
  const moved = { ...RECORD, term: 8, count: 1, addresses: [{ host: '10.0.0.9', port: 8300 }] };
  directory.learn([{ ...RECORD, ageMs: 0 }]);
  await world.run(13_000);
  test.equal(directory.learn([{ ...moved, ageMs: 0 }]), false, 'whoever leads may be late');
  await world.run(2_000);
  test.equal(directory.learn([{ ...moved, count: 2, ageMs: 0 }]), false);
  await world.run(1);
  test.equal(directory.learn([{ ...moved, count: 2, ageMs: 0 }]), true, 'it would have written');
  test.equal(directory.learn([{ ...RECORD, ageMs: 15_002 }]), false, 'from who has not heard');
  test.same(directory.addressesOf('dc2'), moved.addresses);
  test.equal(directory.learn([{ ...RECORD, ageMs: 1_000 }]), true, 'it leads all the same');
  await world.run(500);
  test.equal(directory.records()[0]?.ageMs, 1_500, 'as old wherever it has been');
});

t.test(
  'directory: whose clock stood still makes no earlier word of a datacenter its last one',
  async (test) => {
    const began = { ...RECORD, count: 110, primary: 'dc2', epoch: 4, ageMs: 0 };
    const before = { ...RECORD, count: 50, ageMs: 0 };
    for (const removed of [[], ['dc2']]) {
      const world = new FeedWorld();
      const directory = aDirectory(world, { removed, forgetAfterMs: 3_600_000 });
      directory.learn([began]);
      await world.run(60_000);
      // As old as when its clock stopped, and two of its servers may have heard two of them.
      for (let ageMs = 500; ageMs < 10_000; ageMs += 500) {
        directory.learn([{ ...before, count: ageMs % 1_000 === 0 ? 50 : 49, ageMs }]);
        await world.run(500);
      }
      test.equal(directory.latestEpoch(), 4, 'nobody writes it any more');
      const last = directory.claimOfRemoved('dc2') ?? directory.primary();
      test.equal(last?.datacenter, 'dc2');
    }
  },
);

t.test('directory: nor does it keep to such a word for ever', async (test) => {
  const world = new FeedWorld();
  const directory = aDirectory(world, { forgetAfterMs: 3_600_000 });
  directory.learn([{ ...RECORD, count: 50, ageMs: 0 }]);
  const began = { ...RECORD, count: 110, primary: 'dc2', epoch: 4 };
  await world.run(15_000);
  test.equal(directory.learn([{ ...began, ageMs: 60_000 }]), false, 'whoever leads may be late');
  await world.run(1);
  test.equal(directory.learn([{ ...began, ageMs: 60_001 }]), true);
  test.match(directory.primary(), { datacenter: 'dc2', epoch: 4 });
});

t.test('directory: who was removed is forgotten, and nothing is learnt of it', async (test) => {
  const removed: string[] = [];
  const directory = aDirectory(new FeedWorld(), { removed });
  directory.learn([RECORD]);
  removed.push('dc2');
  test.same([directory.addressesOf('dc2'), directory.primary()], [[], undefined]);
  test.equal(directory.learn([{ ...RECORD, count: 70_001 }]), false);
  test.same([directory.records(), directory.datacenters()], [[], []]);
  removed.pop();
  const another = { ...RECORD, clusterId: 'another cluster', term: 1 };
  test.equal(directory.learn([another]), true, 'another one may have its name then');
});

t.test(
  'directory: what a removed one says last is remembered, and counts for nothing',
  async (test) => {
    const world = new FeedWorld();
    const removed = ['dc2'];
    const directory = aDirectory(world, { removed });
    const claimed = { datacenter: 'dc2', epoch: 9, ageMs: RECORD.ageMs };
    directory.learn([{ ...RECORD, federationId: 'other', primary: 'dc2', epoch: 11 }]);
    test.equal(directory.claimOfRemoved('dc2'), undefined, 'of another federation');
    directory.learn([{ ...RECORD, primary: 'dc2', epoch: 9 }]);
    test.same(directory.claimOfRemoved('dc2'), claimed);
    test.same([directory.primary(), directory.latestEpoch()], [undefined, 9]);
    directory.learn([{ ...RECORD, count: 1, primary: 'dc1', epoch: 3 }]);
    test.same(directory.claimOfRemoved('dc2'), claimed, 'an earlier word');
    directory.learn([{ ...RECORD, clusterId: 'another cluster', count: 1, epoch: 3 }]);
    test.equal(directory.claimOfRemoved('dc2')?.epoch, 3, 'another one under its name');
    await world.run(11_000);
    test.same(
      [directory.claimOfRemoved('dc2'), directory.latestEpoch()],
      [undefined, 0],
      'too old',
    );
    directory.learn([{ ...RECORD, count: 70_001 }]);
    removed.pop();
    test.equal(directory.claimOfRemoved('dc2'), undefined, 'it is not removed any more');
  },
);

t.test('directory: and so is what it said before it was removed', async (test) => {
  const world = new FeedWorld();
  const removed: string[] = [];
  const given = { removed, federationId: '' };
  const directory = aDirectory(world, given);
  directory.learn([{ ...RECORD, primary: 'dc2', epoch: 9 }]);
  directory.learn([{ ...RECORD, datacenter: 'dc3', federationId: 'other', epoch: 12 }]);
  given.federationId = 'fed';
  removed.push('dc2', 'dc3');
  test.same([directory.primary(), directory.latestEpoch()], [undefined, 9]);
  test.match(directory.claimOfRemoved('dc2'), { datacenter: 'dc2', epoch: 9 });
  test.equal(directory.claimOfRemoved('dc3'), undefined, 'of another federation');
  await world.run(11_000);
  test.same([directory.claimOfRemoved('dc2'), directory.latestEpoch()], [undefined, 0], 'too old');
});

t.test(
  'directory: who is let back is heard again with its next word, not with the last',
  async (test) => {
    const removed: string[] = [];
    const directory = aDirectory(new FeedWorld(), { removed });
    const last = { ...RECORD, primary: 'dc2', epoch: 9 };
    directory.learn([last]);
    for (const count of [1, 2, 3]) {
      removed.push('dc2');
      test.same([directory.records(), directory.recordsOfRemoved().length], [[], 1]);
      removed.pop();
      const next = { ...last, count: last.count + count };
      test.equal(
        directory.learn([{ ...next, count: next.count - 1 }]),
        false,
        'it said that before',
      );
      test.equal(directory.learn([next]), true);
      test.equal(directory.primary()?.datacenter, 'dc2');
    }
  },
);

t.test('directory: only of who is removed it is said when it was heard', async (test) => {
  const world = new FeedWorld();
  const removed = ['dc2'];
  const directory = aDirectory(world, { removed, forgetAfterMs: 60_000 });
  test.equal(directory.silenceOfRemoved('dc2'), undefined);
  directory.learn([
    { ...RECORD, ageMs: 0 },
    { ...RECORD, datacenter: 'dc4' },
  ]);
  await world.run(5_000);
  test.equal(directory.silenceOfRemoved('dc2'), 5_000);
  test.equal(directory.silenceOfRemoved('dc4'), undefined, 'nobody has removed it');
  removed.pop();
  test.same([directory.datacenters(), directory.silenceOfRemoved('dc2')], [['dc4'], undefined]);
});

t.test(
  'directory: of one that was removed an earlier word takes no later one’s place, whoever passes it on',
  async (test) => {
    const removed = ['dc2'];
    const followed: string[] = [];
    const directory = aDirectory(new FeedWorld(), { removed, followed });
    const forced = { ...RECORD, primary: 'dc2', epoch: 9, ageMs: 5_000 };
    const anew = { ...RECORD, clusterId: 'with empty disks', term: 1, count: 1, epoch: 3 };
    directory.learn([forced]);
    test.equal(directory.claimOfRemoved('dc2')?.epoch, 9);
    directory.learn([anew]);
    directory.learn([{ ...forced, term: 10 }]);
    test.equal(directory.claimOfRemoved('dc2')?.epoch, 3, 'it was started with empty disks');
    removed.pop();
    test.equal(directory.learn([forced]), false, 'from who does not know yet that it was let back');
    test.same([directory.primary(), directory.latestEpoch()], [undefined, 0]);
    test.same(directory.recordsOfRemoved(), []);
    test.equal(directory.learn([{ ...anew, count: 2 }]), true);
    test.equal(directory.learn([forced]), false, 'the name is that of the other cluster');
    test.equal(directory.primary()?.epoch, 3);
    removed.push('dc2');
    test.equal(directory.claimOfRemoved('dc2')?.epoch, 3, 'it has said more since');
    directory.learn([forced]);
    removed.pop();
    followed.push('dc2');
    test.equal(directory.learn([forced]), true, 'others follow it');
  },
);

t.test('directory: a name is that of the cluster that the log names', async (test) => {
  const clusters: Record<string, string> = {};
  const followed: string[] = [];
  const directory = aDirectory(new FeedWorld(), { clusters, followed });
  const other = { ...RECORD, clusterId: 'another cluster', term: 1 };
  directory.learn([other]);
  clusters.dc2 = RECORD.clusterId;
  test.same([directory.primary(), directory.records()], [undefined, []], 'heard before that');
  test.equal(directory.learn([{ ...other, count: 70_001 }]), false);
  test.equal(directory.learn([RECORD]), true);
  test.equal(directory.learn([{ ...other, term: 99 }]), false, 'however late it is');
  followed.push('dc2');
  test.equal(directory.learn([other]), true, 'a later reign may have let it have the name');
  test.same(
    directory.records().map(({ clusterId }) => clusterId),
    ['another cluster'],
  );
});

t.test('directory: strangers that were heard before are forgotten', async (test) => {
  const given = { federationId: '', removed: ['dc4'] };
  const directory = aDirectory(new FeedWorld(), given);
  const claim = { federationId: 'other', primary: 'dc3', epoch: 9 };
  directory.learn([
    RECORD,
    { ...RECORD, ...claim, datacenter: 'dc3' },
    { ...RECORD, ...claim, datacenter: 'dc4', epoch: 11 },
    { ...RECORD, datacenter: 'dc5', federationId: '', primary: 'dc5', epoch: 8 },
  ]);
  test.equal(directory.primary()?.datacenter, 'dc3');
  given.federationId = 'fed';
  test.same([directory.primary()?.datacenter, directory.latestEpoch()], ['dc1', 3]);
  test.equal(directory.claimOfRemoved('dc4'), undefined);
  const news = { datacenter: 'dc5', federationId: 'other', count: 70_001 };
  test.equal(directory.learn([{ ...RECORD, ...news }]), false);
  test.same(directory.datacenters(), ['dc2'], 'it belongs to another one by now');
});

t.test('gossip: one that is refused is heard about itself alone', async (test) => {
  const world = new FeedWorld();
  const node = await new GossipNode(world, 'n1', 'dc1').join([], () => []);
  node.removed.push('dc2');
  const others = { ...RECORD, datacenter: 'dc3', primary: 'dc3', epoch: 20 };
  const from = { datacenter: 'dc2' } as RpcRequest['from'];
  const told = encodeRecords([RECORD, others]);
  const asked = { from, payload: told, deadlineMs: 1_000, hops: 0 };
  node.gossip.overhear({ ...asked, method: 'feed.open' });
  test.equal(node.gossip.directory.claimOfRemoved('dc2'), undefined, 'it asked for something else');
  node.gossip.overhear({ ...asked, method: DIRECTORY_METHOD });
  test.equal(node.gossip.directory.claimOfRemoved('dc2')?.epoch, RECORD.epoch);
  test.same(node.gossip.directory.addressesOf('dc3'), []);
  test.equal(node.gossip.directory.latestEpoch(), RECORD.epoch);
});

t.test(
  'gossip: what one that is refused says comes to the primary, and to no other',
  async (test) => {
    const world = new FeedWorld(3);
    const asked = await new GossipNode(world, 'dc1', 'a1').join([], () => []);
    const seeds = [asked.address];
    const neighbour = await new GossipNode(world, 'dc1', 'a2').join(seeds, () => seeds);
    const primary = await new GossipNode(world, 'dc3', 'c1').join(seeds, () => []);
    const lagging = await new GossipNode(world, 'dc4', 'd1').join(seeds, () => []);
    for (const each of [asked, primary, lagging]) each.lead(1, { primary: 'dc3', epoch: 2 });
    const informed = [asked, neighbour, primary];
    for (const { removed } of informed) removed.push('dc2');
    const from = { datacenter: 'dc2' } as RpcRequest['from'];
    const payload = encodeRecords([{ ...RECORD, federationId: '', primary: 'dc2', epoch: 9 }]);
    asked.gossip.overhear({ from, payload, deadlineMs: 1, hops: 0, method: DIRECTORY_METHOD });
    const knows = ({ gossip }: GossipNode): boolean =>
      gossip.directory.claimOfRemoved('dc2')?.epoch === 9;
    await world.until('they know', () => informed.every(knows));
    await world.run(10_000);
    test.notOk(lagging.gossip.directory.datacenters().includes('dc2'));
    test.equal(lagging.gossip.directory.primary()?.datacenter, 'dc3');
    for (const { gossip } of [...informed, lagging]) gossip.close();
  },
);

t.test('directory: the primary is who the latest reign is said to be of', async (test) => {
  const directory = aDirectory(new FeedWorld());
  directory.learn([
    { ...RECORD, datacenter: 'dc3', clusterId: '3', primary: 'dc3', epoch: 4 },
    { ...RECORD, datacenter: 'dc2', clusterId: '2', primary: 'dc3', epoch: 4 },
    { ...RECORD, datacenter: 'dc4', clusterId: '4', primary: 'dc1', epoch: 3 },
    { ...RECORD, datacenter: 'dc5', clusterId: '5', primary: '', epoch: 0 },
  ]);
  test.same(directory.primary(), { datacenter: 'dc3', epoch: 4, addresses: RECORD.addresses });
  test.same(directory.datacenters(), ['dc2', 'dc3', 'dc4', 'dc5']);
});

t.test(
  'directory: a server that is about to join takes its cluster for no other one',
  async (test) => {
    const world = new FeedWorld();
    const directory = aDirectory(world, { clusterId: '', federationId: '' });
    test.equal(directory.learn([{ ...RECORD, datacenter: 'dc1' }]), false);
    test.same(directory.records(), []);
    test.same(world.log, []);
  },
);

t.test('directory: strangers are left out, and there are only so many', async (test) => {
  const world = new FeedWorld();
  const directory = aDirectory(world);
  directory.learn([RECORD]);
  const strangers: readonly (readonly [Partial<DirectoryRecord>, RegExp])[] = [
    [{ datacenter: 'dc3', federationId: 'other' }, /of federation other, not of fed/],
    [{ datacenter: 'dc1', clusterId: 'x' }, /it has the name of this datacenter/],
    [{ clusterId: 'x', term: 99 }, /of that name is cluster cluster of dc2/],
  ];
  for (const [given, says] of strangers) {
    test.equal(directory.learn([{ ...RECORD, ...given }]), false);
    test.match(world.log.at(-1), says);
  }
  test.same(
    directory.records().map(({ clusterId }) => clusterId),
    ['cluster of dc2'],
  );
  const many = Array.from({ length: 100 }, (_, number) => ({
    ...RECORD,
    datacenter: `far-${number}`,
  }));
  directory.learn(many);
  test.equal(directory.records().length, DATACENTERS_MAX);
  const moved = { ...RECORD, count: 70_001, epoch: 4 };
  test.equal(directory.learn([moved]), true, 'those that are known are heard on');
  const addresses = Array.from({ length: 99 }, (_, port) => ({ host: 'h', port }));
  directory.write({ ...RECORD, addresses });
  test.equal(directory.addressesOf('dc1').length, ADDRESSES_MAX);
});

t.test(
  'directory: what nobody renews is forgotten everywhere, however it is passed on',
  async (test) => {
    const world = new FeedWorld();
    const [one, two] = [aDirectory(world), aDirectory(world)];
    one.learn([RECORD]);
    for (let round = 0; round < 12; round += 1) {
      await world.run(1_000);
      two.learn(one.records());
      one.learn(two.records());
    }
    test.same([one.records(), two.records()], [[], []]);
    one.learn([RECORD]);
    await world.run(11_000);
    test.same(one.datacenters(), [], 'asked for names alone, too');
  },
);

class GossipNode extends WorldNode {
  gossip!: Gossip;
  own: OwnRecord | undefined;
  readonly removed: string[] = [];
  changedCount = 0;
  askedCount = 0;
  timing: Partial<GossipTiming> = {};

  async join(seeds: readonly NetAddress[], neighbours: () => readonly NetAddress[]): Promise<this> {
    await this.open(() => undefined);
    this.gossip = new Gossip({
      clock: this.world.clock,
      random: this.world.random,
      logger: this.world.logger(this.name),
      datacenter: this.datacenter,
      clusterId: () => `cluster of ${this.datacenter}`,
      federationId: () => '',
      isRemoved: (each) => this.removed.includes(each),
      knowsRemoved: (each) => each === this.datacenter || each === 'dc3',
      clusterIdOf: () => undefined,
      isFollowed: () => false,
      own: () => this.own,
      seeds,
      neighbours,
      call: (to, request) => {
        this.askedCount += 1;
        return this.transport.call(to, request);
      },
      onChanged: () => {
        this.changedCount += 1;
      },
      timing: this.timing,
    });
    this.handlers = this.gossip.handlers;
    this.gossip.start();
    return this;
  }

  lead(term: number, claim: { readonly primary: string; readonly epoch: number }): void {
    const addresses = [this.address];
    const clusterId = `cluster of ${this.datacenter}`;
    this.own = { clusterId, federationId: '', addresses, term, level: 2, ...claim };
  }

  get names(): string {
    return this.gossip.directory
      .records()
      .map(({ datacenter }) => datacenter)
      .join(' ');
  }
}

t.test(
  'gossip: every server learns of every datacenter from one address, and of changes',
  async (test) => {
    const world = new FeedWorld(5);
    const first = await new GossipNode(world, 'dc1', 'a1').join([], () => []);
    const seeds = [first.address];
    const nodes = [first];
    for (const datacenter of ['dc2', 'dc3']) {
      const pair: GossipNode[] = [];
      for (const number of [1, 2]) {
        const node = new GossipNode(world, datacenter, `${datacenter}-${number}`);
        const others = (): readonly NetAddress[] =>
          pair.filter((each) => each !== node).map(({ address }) => address);
        // Only one of the two was told where to ask.
        pair.push(await node.join(number === 1 ? seeds : [], others));
      }
      nodes.push(...pair);
      pair[1]!.lead(1, { primary: 'dc1', epoch: 1 });
    }
    first.lead(1, { primary: 'dc1', epoch: 1 });
    await world.until('all know all', () => nodes.every(({ names }) => names === 'dc1 dc2 dc3'));
    const primaries = (): readonly string[] =>
      nodes.map(({ gossip }) => `${gossip.directory.primary()?.datacenter}`);
    test.same(new Set(primaries()), new Set(['dc1']));
    const counts = nodes.map(({ changedCount }) => changedCount);
    await world.run(5_000);
    test.same(
      nodes.map(({ changedCount }) => changedCount),
      counts,
      'signs of life are no changes',
    );
    nodes[4]!.lead(2, { primary: 'dc3', epoch: 2 });
    await world.until('all know the new one', () => primaries().every((name) => name === 'dc3'));
    world.net.kill('a1');
    await world.run(6_000);
    test.equal(new Set(primaries()).size, 1, 'those that are left go on');
    for (const { gossip } of nodes) gossip.close();
  },
);

t.test('gossip: nor to who is at an address of the primary of before', async (test) => {
  const world = new FeedWorld(4);
  const lagging = await new GossipNode(world, 'dc4', 'd1').join([], () => []);
  const asked = await new GossipNode(world, 'dc1', 'a1').join([], () => []);
  asked.lead(1, { primary: 'dc3', epoch: 2 });
  asked.gossip.directory.learn([
    { ...RECORD, datacenter: 'dc3', federationId: '', addresses: [lagging.address] },
  ]);
  await world.until('it asks there', () => asked.askedCount > 0);
  await world.run(1_000);
  test.ok(lagging.gossip.directory.datacenters().includes('dc1'), 'nothing else is kept back');
  asked.removed.push('dc2');
  const from = { datacenter: 'dc2' } as RpcRequest['from'];
  const payload = encodeRecords([{ ...RECORD, federationId: '', primary: 'dc2', epoch: 9 }]);
  asked.gossip.overhear({ from, payload, deadlineMs: 1, hops: 0, method: DIRECTORY_METHOD });
  const before = asked.askedCount;
  await world.run(20_000);
  test.ok(asked.askedCount > before);
  test.notOk(lagging.gossip.directory.datacenters().includes('dc2'));
  for (const { gossip } of [asked, lagging]) gossip.close();
});

t.test('gossip: who hears news passes it on at once, to a few, and then no more', async (test) => {
  let toldCount = 0;
  for (const seed of [1, 2, 3, 4]) {
    const world = new FeedWorld(seed);
    const nodes: GossipNode[] = [];
    for (let number = 1; number <= 7; number += 1) {
      const seeds = nodes.map(({ address }) => address);
      const node = new GossipNode(world, `dc${number}`, `n${number}`);
      node.timing = { everyMs: 15_000 };
      nodes.push(await node.join(seeds, () => []));
      node.lead(1, { primary: 'dc1', epoch: 1 });
      node.gossip.hurry();
    }
    const all = nodes.map(({ datacenter }) => datacenter).join(' ');
    await world.until('all know all', () => nodes.every(({ names }) => names === all));
    await world.run(3_000);
    const before = nodes.map(({ askedCount }) => askedCount);
    nodes[3]!.lead(2, { primary: 'dc4', epoch: 2 });
    nodes[3]!.gossip.hurry();
    await world.run(3_000);
    const told = nodes.filter(({ gossip }) => gossip.directory.primary()?.datacenter === 'dc4');
    toldCount += told.length;
    await world.run(9_000);
    const asked = nodes.map(({ askedCount }, place) => askedCount - before[place]!);
    test.ok(
      asked.every((count) => count <= 8),
      `seed ${seed}: exchanges of each: ${asked.join()}`,
    );
    for (const { gossip } of nodes) gossip.close();
  }
  test.ok(toldCount >= 22, `${toldCount} of 28 servers knew it soon`);
});

t.test('gossip: who has to know at once asks everybody', async (test) => {
  const world = new FeedWorld(7);
  const one = await new GossipNode(world, 'dc1', 'a1').join([], () => []);
  const two = await new GossipNode(world, 'dc2', 'b1').join([one.address], () => []);
  const claim = { primary: 'dc1', epoch: 1 };
  for (const node of [one, two]) node.lead(1, claim);
  await world.run(60_000);
  two.own = { ...two.own!, level: 3 };
  test.equal(one.gossip.directory.levelOf('dc2'), 2);
  await world.result(one.gossip.hearAll());
  test.equal(one.gossip.directory.levelOf('dc2'), 3);
});

t.test(
  'gossip: and whoever knows nobody yet asks those of its settings, and its own',
  async (test) => {
    const world = new FeedWorld(8);
    const far = await new GossipNode(world, 'dc2', 'b1').join([], () => []);
    far.lead(1, { primary: 'dc1', epoch: 1 });
    far.gossip.close();
    for (const isNear of [false, true]) {
      const where = [far.address];
      const name = isNear ? 'a1' : 'a2';
      const node = new GossipNode(world, 'dc1', name);
      await node.join(isNear ? [] : where, () => (isNear ? where : []));
      // Nothing is known from a beat.
      node.gossip.close();
      test.same(node.gossip.directory.addressesOf('dc2'), []);
      const asking = isNear ? undefined : node.gossip.hearSeeds();
      await world.result(asking ?? node.gossip.hearAll());
      test.same(node.gossip.directory.addressesOf('dc2'), where);
      test.equal(node.gossip.hearSeeds() === undefined, isNear, 'it has none');
    }
  },
);

t.test('gossip: says whom it does not reach', async (test) => {
  const world = new FeedWorld();
  const node = await new GossipNode(world, 'dc1', 'a').join(
    [{ host: 'nowhere', port: 9 }],
    () => [],
  );
  await world.until('it knows', () => node.gossip.lastFailure !== undefined);
  test.match(
    node.gossip.lastFailure,
    /^nowhere:9: directory.exchange was not sent: .* cannot be reached/,
  );
  node.gossip.close();
});

t.test('gossip: asks nobody behind its end, also where an exchange was under way', async (test) => {
  const world = new FeedWorld();
  const other = await new GossipNode(world, 'dc2', 'b').join([], () => []);
  world.net.delayMs = 500;
  const node = await new GossipNode(world, 'dc1', 'a').join([other.address], () => []);
  await world.until('it asks', () => node.askedCount === 1);
  node.gossip.close();
  node.gossip.hurry();
  await world.run(10_000);
  test.equal(node.askedCount, 1);
  other.gossip.close();
});
