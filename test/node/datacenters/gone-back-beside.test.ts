// The data folders of a majority are put back to a day on which the datacenter that has all that was written since was
// removed, or not a voter yet. It is no partner of theirs then, and alone has what was acknowledged.

import t, { type Test } from 'tap';
import { DataCopies } from '../../support/running/data-copies.ts';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  everyoneKnows,
  heal,
  planned,
  runDatacenter,
} from '../../support/running/running-datacenters.ts';
import { allReady, until } from '../../support/running/running-group.ts';

/** Each has servers of its own, and waits for them most of the time. */
t.jobs = 2;

const NAMES = ['lost-1', 'lost-2', 'lost-3'];

interface Two {
  readonly first: DatacenterUnderTest;
  readonly second: DatacenterUnderTest;
}

/** `first` is the primary, on the folders of a day on which it had removed `second`. */
async function removedOnThatDay(t: Test, { isAllowed }: { isAllowed: boolean }): Promise<Two> {
  const first = await runDatacenter(t, { name: 'dc1' });
  const second = await runDatacenter(t, { name: 'dc2', primary: first });
  await everyoneKnows([first, second]);
  t.equal((await clientOf(first).delete('/operator/datacenter/dc2')).text, 'true');
  const copies = new DataCopies(t);
  const allow = () => clientOf(first).put('/operator/datacenter/dc2', undefined);
  if (isAllowed) {
    await second.servers[0]!.close();
    t.equal((await allow()).text, 'true');
  }
  await copies.keep(first);
  if (isAllowed) await second.servers[0]!.open();
  else t.equal((await allow()).text, 'true');
  await everyoneKnows([first, second]);
  for (const Name of NAMES) {
    const made = await clientOf(first).put('/acl/policy?ack=all&ack_timeout=60s', { Name });
    t.equal(made.status, 200, made.text);
  }
  await copies.putBack(first);
  return { first, second };
}

async function haveAll(t: Test, all: readonly DatacenterUnderTest[]): Promise<void> {
  for (const each of all) {
    for (const name of NAMES) {
      const find = () => clientOf(each).get(`/acl/policy/name/${name}`);
      await until(`${name} is at ${each.name}`, async () => (await find()).status === 200);
    }
  }
  await everyoneKnows(all);
  const positions = all.map(async (each) => {
    return (await clientOf(each).get('/operator/primary')).json.Position;
  });
  t.equal(new Set(await Promise.all(positions)).size, 1, 'and nothing else');
}

/** What `first` tells of dc2. */
async function toldOf(first: DatacenterUnderTest): Promise<unknown> {
  const { json } = await clientOf(first).get('/acl/replication');
  const all = json.Datacenters as { Name: string; LastErrorMessage: string }[];
  return all.find(({ Name }) => Name === 'dc2')?.LastErrorMessage;
}

/** Of whom no promise is needed. */
async function force({ second }: Two): Promise<void> {
  const { client } = second.servers[0]!;
  const wish = { Mode: 'forced', AcceptLoss: true };
  const refused = await client.put('/operator/primary', { ...wish, Epoch: 1 });
  const [, Epoch] = /^The next epoch is (\d+), not 1$/.exec(refused.text) ?? [];
  const forced = await client.put('/operator/primary', { ...wish, Epoch: Number(Epoch) });
  t.equal(forced.status, 200, forced.text);
}

t.test(
  'gone back: who was removed on that day is not let back over what it alone has',
  async (t) => {
    const both = await removedOnThatDay(t, { isAllowed: false });
    const { first, second } = both;
    const { client } = first.servers[0]!;
    await until('it has said how far it is', async () => (await toldOf(first)) !== '');
    t.match(
      await toldOf(first),
      /^it has 1\.\d+ of a reign of dc1, of which there is 1\.\d+ here$/,
    );
    const before = (await client.get('/operator/primary')).json.Position;
    const refused = await client.put('/operator/datacenter/dc2', undefined);
    t.equal(refused.status, 400, refused.text);
    t.match(
      refused.text,
      /^Nothing was changed: dc2 has 1\.\d+ of a reign of dc1, of which there is 1\.\d+ here: .* First .* promote dc1 --election` .* promote dc2 --force …`, asked at dc2, .* allow dc2 --force`/,
    );
    t.equal((await client.get('/operator/primary')).json.Position, before);
    const elected = await client.put('/operator/primary', { Mode: 'election' });
    t.equal(elected.status, 200, elected.text);
    const again = await client.put('/operator/primary', { Mode: 'election' });
    t.match([again.status, again.text], [503, /dc1 is the primary already/], 'once is enough');
    const asBefore = await client.put('/operator/datacenter/dc2', undefined);
    t.equal(asBefore.status, 400, asBefore.text);
    t.match(asBefore.text, /are of an earlier day\. `conclave operator promote dc2 --force …`/);
    await force(both);
    const allowed = await client.put('/operator/datacenter/dc2?force', undefined);
    t.same([allowed.status, allowed.text], [200, 'true']);
    await haveAll(t, [second, first]);
  },
);

t.test('gone back: nor is it let back before it could say so', async (t) => {
  const { first } = await removedOnThatDay(t, { isAllowed: false });
  // Whoever asks while the primary starts is answered as soon as it may be.
  const refused = await first.servers[0]!.client.put('/operator/datacenter/dc2', undefined);
  t.equal(refused.status, 400, refused.text);
  t.match(refused.text, /^Nothing was changed: dc2 has 1\.\d+ of a reign of dc1/);
});

t.test('gone back: what a removed one had more counts no more when it was let back', async (t) => {
  const { first, second } = await removedOnThatDay(t, { isAllowed: false });
  const { client } = first.servers[0]!;
  const allow = (how = '') => client.put(`/operator/datacenter/dc2${how}`, undefined);
  await until('it has said how far it is', async () => (await toldOf(first)) !== '');
  // The operator gives up what dc2 has.
  const elected = await client.put('/operator/primary', { Mode: 'election' });
  t.equal(elected.status, 200, elected.text);
  t.equal((await allow('?force')).text, 'true');
  await everyoneKnows([first, second]);
  await second.servers[0]!.close();
  t.equal((await client.delete('/operator/datacenter/dc2')).text, 'true');
  const again = await allow();
  t.same([again.status, again.text], [200, 'true'], 'it gave that up when it followed');
});

t.test('gone back: who was no voter on that day is forced, and nothing is lost', async (t) => {
  const both = await removedOnThatDay(t, { isAllowed: true });
  const { first, second } = both;
  const closed = async (): Promise<string> =>
    (await clientOf(first).get('/operator/primary')).json.Closed as string;
  await until('it has heard dc2', async () => /which wrote that/.test(await closed()));
  t.match(
    await closed(),
    /dc2 has 1\.\d+ of this reign, and dc1, which wrote that, .*`conclave operator promote dc2 --force …`, asked at dc2, goes on with what is there: no voter/,
  );
  const elected = await clientOf(second).put('/operator/primary', { Mode: 'election' });
  t.equal(elected.status, 503, elected.text);
  await force(both);
  await haveAll(t, [second, first]);
});

t.test(
  'gone back: whoever came since that day is asked for at those of the settings',
  async (t) => {
    const nowhere = { 'primary-datacenter': 'dc1', 'retry-join-wan': '127.0.0.1:1' };
    const second = await planned(t, { name: 'dc2', flags: nowhere });
    const wan = second.lines.map(({ address }) => address).join();
    // Nobody is there yet when it begins.
    const first = await runDatacenter(t, { name: 'dc1', flags: { 'retry-join-wan': wan } });
    const copies = new DataCopies(t);
    await copies.keep(first);
    await second.servers[0]!.open();
    await allReady(second.servers);
    await everyoneKnows([first, second]);
    for (const Name of NAMES) {
      const made = await clientOf(first).put('/acl/policy?ack=all&ack_timeout=60s', { Name });
      t.equal(made.status, 200, made.text);
    }
    // Nobody tells it by itself.
    cut(first);
    await copies.putBack(first);
    const refused = await clientOf(first).put('/acl/policy', { Name: 'over-it' });
    t.equal(refused.status, 503, `at once: ${refused.text}`);
    t.match(
      refused.text,
      /dc2 has 1\.\d+ of this reign, and dc1, which wrote that, ends at 1\.\d+/,
    );
    heal(first);
    await force({ first, second });
    await haveAll(t, [second, first]);
  },
);
