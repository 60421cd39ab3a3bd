// The servers of the primary are put back to an earlier day, as by snapshots of machines: they write nothing over what
// they had acknowledged and another datacenter still has, and follow that one when the primary was moved.

import t, { type Test } from 'tap';
import { lostReignText } from '../../../src/node/federation/gate/lost-reign.ts';
import { begunText } from '../../../src/node/federation/gate/outrun-refusal.ts';
import { DataCopies } from '../../support/running/data-copies.ts';
import {
  type DatacenterUnderTest,
  everyoneKnows,
  leaderIn,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import type { Reply } from '../../support/running/running-node.ts';

type All = readonly [DatacenterUnderTest, DatacenterUnderTest, ...DatacenterUnderTest[]];

/** All hold what was written before the copies were taken; what is written behind that, the first one has not. */
async function putBack(
  t: Test,
  goOn: (...all: All) => Promise<void>,
  { count = 1, isThree = false, isFollowing = false } = {},
): Promise<All> {
  const first = await runDatacenter(t, { name: 'dc1', servers: count });
  const second = await runDatacenter(t, { name: 'dc2', primary: first });
  const third = isThree ? [await runDatacenter(t, { name: 'dc3', primary: first })] : [];
  const all: All = [first, second, ...third];
  await everyoneKnows(all);
  t.equal((await write(first, 'before')).status, 200);
  if (isFollowing) await handTo(t, [second, first, ...third]);
  const copies = new DataCopies(t);
  await copies.keep(first);
  await everyoneKnows(isFollowing ? [second, first, ...third] : all);
  await goOn(...all);
  await copies.putBack(first);
  return all;
}

/** The first of them becomes the primary. */
async function handTo(t: Test, all: All): Promise<void> {
  const [next] = all;
  const wish = { Datacenter: next.name };
  const moved = await serverOf(next).client.put('/operator/primary', wish);
  t.equal(moved.status, 200, moved.text);
  await everyoneKnows(all);
}

function write({ servers }: DatacenterUnderTest, name: string): Promise<Reply> {
  return servers[0]!.client.put('/acl/policy?ack=all&ack_timeout=60s', { Name: name });
}

async function closes(
  t: Test,
  first: DatacenterUnderTest,
  says: RegExp,
  { client } = serverOf(first),
): Promise<void> {
  const refused = await client.put('/acl/policy', { Name: 'over-it' });
  t.equal(refused.status, 503, `at once: ${refused.text}`);
  t.match(refused.text, says);
  t.match((await client.get('/operator/primary')).json.Closed, says);
}

async function goesOnAt(
  t: Test,
  [first, second, ...others]: All,
  names: readonly string[],
): Promise<void> {
  const { client } = serverOf(second);
  const wish = { Datacenter: second.name, Mode: 'election' };
  const moved = await client.put('/operator/primary', wish);
  t.equal(moved.status, 200, moved.text);
  await everyoneKnows([second, first, ...others]);
  t.equal((await write(second, 'behind')).status, 200);
  for (const name of ['before', ...names, 'behind']) {
    const found = await serverOf(first).client.get(`/acl/policy/name/${name}`);
    t.equal(found.status, 200, name);
  }
}

t.test('gone back: the primary is closed, and nothing acknowledged is lost', async (t) => {
  const names = ['lost-1', 'lost-2', 'lost-3'];
  const both = await putBack(t, async (first) => {
    for (const name of names) t.equal((await write(first, name)).status, 200);
  });
  await closes(
    t,
    both[0],
    /dc2 has 1\.\d+ of this reign, and dc1, which wrote that, ends at 1\.\d+/,
  );
  await goesOnAt(t, both, names);
});

t.test('gone back: also one that is put back behind a reign of its own', async (t) => {
  const names = ['lost-1', 'lost-2', 'lost-3'];
  const both = await putBack(t, async (first, second) => {
    t.equal((await write(first, names[0]!)).status, 200);
    for (const to of ['dc2', 'dc1']) {
      await handTo(t, to === 'dc1' ? [first, second] : [second, first]);
      t.equal((await write(first, to === 'dc2' ? names[1]! : names[2]!)).status, 200);
    }
  });
  await closes(t, both[0], /dc2 has epoch 3, and dc1, which wrote that, ends at 1\.\d+/);
  await goesOnAt(t, both, names);
});

t.test('gone back: to before its reign nobody is primary, and all say who goes on', async (t) => {
  const names = ['lost-1', 'lost-2'];
  const goOn = async (...all: All) => {
    const [first] = all;
    await handTo(t, all);
    for (const name of names) t.equal((await write(first, name)).status, 200);
  };
  const all = await putBack(t, goOn, { isThree: true, isFollowing: true });
  const closed = async (each: DatacenterUnderTest): Promise<string> =>
    (await serverOf(each).client.get('/operator/primary')).json.Closed as string;
  for (const [place, ends] of [/ends at 2\.\d+/, /ends at epoch 2/, /ends at epoch 2/].entries()) {
    const each = all[place]!;
    const isSaid = /^dc2 has epoch 3, and dc1, which wrote that, ends at /;
    await until('it says so', async () => isSaid.test(await closed(each)));
    const says = await closed(each);
    t.match(says, ends);
    t.match(says, /`conclave operator promote dc2 --election`, asked at dc2/);
  }
  await goesOnAt(t, all, names);
  for (const each of all) t.equal(await closed(each), '');
});

t.test('gone back: the primary of before does not pass over that reign, and says so', async (t) => {
  const names = ['lost-1', 'lost-2'];
  const goOn = async (first: DatacenterUnderTest, second: DatacenterUnderTest) => {
    await serverOf(second).close();
    const { client } = serverOf(first);
    const wish = { Mode: 'forced', Epoch: 3, AcceptLoss: true };
    const moved = await client.put('/operator/primary', wish);
    t.equal(moved.status, 200, moved.text);
    for (const name of names) {
      const made = await client.put('/acl/policy?ack=majority&ack_timeout=60s', { Name: name });
      t.match(made.text, /"ID"/);
    }
  };
  const all = await putBack(t, goOn, { isThree: true, isFollowing: true });
  const [first, second] = all;
  const third = all[2]!;
  await serverOf(second).open();
  const says =
    /^Nothing was written: dc3 has epoch \d{4,}, and dc1, which wrote that, ends at epoch 2: .* promote dc3 --election`, asked at dc3/;
  const asked = () => serverOf(second).client.get('/operator/primary');
  await until('it says so', async () => says.test((await asked()).json.Closed as string));
  const refused = await serverOf(second).client.put('/acl/policy', { Name: 'over-it' });
  t.equal(refused.status, 503, refused.text);
  await goesOnAt(t, [first, third, second], names);
});

t.test('gone back: whoever of its servers leads by then is closed, too', async (t) => {
  const names = ['lost-1', 'lost-2', 'lost-3'];
  const goOn = async (first: DatacenterUnderTest): Promise<void> => {
    for (const name of names) t.equal((await write(first, name)).status, 200);
  };
  const both = await putBack(t, goOn, { count: 3 });
  const [first] = both;
  const says = /dc2 has 1\.\d+ of this reign, and dc1, which wrote that, ends at 1\.\d+/;
  await closes(t, first, says, await leaderIn(first));
  const leader = await leaderIn(first);
  for (const next of [...first.servers.filter((each) => each !== leader), leader]) {
    const before = await leaderIn(first);
    const id = next.node.info.nodeId;
    const moved = await before.client.send('POST', `/operator/raft/transfer-leader?id=${id}`);
    t.equal(moved.status, 200, moved.text);
    await until('it leads', async () => (await leaderIn(first)) === next);
    await closes(t, first, says, next);
  }
  await goesOnAt(t, both, names);
});

t.test(
  'gone back: it is handed to nobody, and takes back itself what another one has',
  async (t) => {
    const names = ['lost-1', 'lost-2', 'lost-3'];
    const [first, second] = await putBack(t, async (first) => {
      for (const name of names) t.equal((await write(first, name)).status, 200);
    });
    const says = /dc2 has 1\.\d+ of this reign, and dc1, which wrote that, ends at 1\.\d+/;
    await closes(t, first, says);
    const { client } = serverOf(first);
    const handed = await client.put('/operator/primary', { Datacenter: 'dc2' });
    t.equal(handed.status, 503, handed.text);
    t.match(handed.text, says);
    const elect = () => client.put('/operator/primary', { Datacenter: 'dc1', Mode: 'election' });
    // Where the other one is, it hears a moment later.
    await until('it takes that back', async () => (await elect()).status === 200);
    await everyoneKnows([first, second]);
    t.equal((await write(first, 'behind')).status, 200);
    for (const name of ['before', ...names, 'behind']) {
      t.equal((await client.get(`/acl/policy/name/${name}`)).status, 200, name);
    }
  },
);

t.test('gone back: nor is anybody elected by it who has not what the other one has', async (t) => {
  const names = ['lost-1', 'lost-2', 'lost-3'];
  const goOn = async (first: DatacenterUnderTest, _: unknown, third?: DatacenterUnderTest) => {
    await serverOf(third!).close();
    for (const name of names) {
      const made = await serverOf(first).client.put('/acl/policy?ack=majority', { Name: name });
      t.equal(made.status, 200, made.text);
    }
  };
  const all = await putBack(t, goOn, { isThree: true });
  const [first, second] = all;
  const third = all[2]!;
  await closes(t, first, /dc2 has 1\.\d+ of this reign, and dc1, which wrote that, ends at 1\.\d+/);
  await serverOf(second).close();
  await serverOf(third).open();
  const elect = () => serverOf(third).client.put('/operator/primary', { Mode: 'election' });
  // Where the first one is, it hears a moment later.
  await until('it is promised nothing', async () => {
    const refused = await elect();
    t.equal(refused.status, 503, refused.text);
    return /there is no majority: .*\(dc1 has lost what dc2 has of its reigns, .*: start dc2, or/.test(
      refused.text,
    );
  });
  await serverOf(second).open();
  await goesOnAt(t, all, names);
});

t.test('gone back: nobody is told to make a witness the primary', (t) => {
  const at = (datacenter: string, seq: number) => ({ datacenter, upTo: { epoch: 1, seq } });
  const told = (...names: readonly string[]): string => {
    const ahead = names.map((name, place) => at(name, 9 - place));
    const lost = { datacenter: 'dc1', head: { epoch: 1, seq: 3 }, ahead };
    const knows = {
      isWitness: (name: string) => name === 'w',
      isVoter: (name: string) => name !== 'dc9',
    };
    return lostReignText({ ...lost, ...knows });
  };
  t.match(
    told('dc2', 'dc3'),
    /dc2 has 1\.9 .*`conclave operator promote dc2 --election`, asked at dc2/,
  );
  t.match(
    told('w', 'dc3'),
    /w has 1\.9 .*`conclave operator promote dc3 --election`, asked at dc3/,
  );
  t.match(
    told('dc9', 'dc3'),
    /dc9 has 1\.9 .*`conclave operator promote dc9 --force …`, asked at dc9, .*: no voter of that day/,
    'nor one that nobody would promise anything to be elected',
  );
  t.match(told('w'), /w has 1\.9 .*`conclave operator promote dc1 --election`, asked at dc1/);
  const cursor = { epoch: 2, seq: 9, hash: new Uint8Array(32) };
  const begun = (isWitness: boolean) => begunText('dc1', { datacenter: 'dc2', cursor }, isWitness);
  const here = '`conclave operator promote dc1 --election`';
  t.match(begun(true), `gone, ${here} goes on with what can be had here`);
  t.match(begun(false), `goes on with what is there, and ${here} with what can be had here`);
  t.end();
});
