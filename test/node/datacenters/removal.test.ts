// An operator removes a datacenter: its servers are refused and told why, nobody waits for it, and it is
// back when the operator lets it. And a datacenter never takes the log of another federation.

import t, { type Test } from 'tap';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  everyoneKnows,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';

/** Each has servers of its own, and waits for them most of the time. */
t.jobs = 3;

interface Shown {
  readonly Name: string;
  readonly State: string;
  readonly LastErrorMessage: string;
}

async function shownOf(datacenter: DatacenterUnderTest, name: string): Promise<Shown | undefined> {
  const { json } = await clientOf(datacenter).get('/acl/replication');
  return (json.Datacenters as Shown[]).find(({ Name }) => Name === name);
}

async function namesAt(datacenter: DatacenterUnderTest): Promise<readonly string[]> {
  const names = JSON.parse((await clientOf(datacenter).get('/catalog/datacenters')).text);
  return (names as string[]).sort((one, other) => (one < other ? -1 : 1));
}

async function has(datacenter: DatacenterUnderTest, policy: string): Promise<boolean> {
  return (await clientOf(datacenter).get(`/acl/policy/name/${policy}?stale`)).status === 200;
}

/** Of no token. */
const ABSENT = '11111111-2222-4333-8444-555555555555';

t.test('removing: a datacenter is refused, not waited for, and back when it may', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1 });
  const all = [dc1, dc2, dc3];
  for (const each of all) {
    await until('all know each other', async () => (await namesAt(each)).length === 3);
  }
  const made = await clientOf(dc1).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'before' });
  t.equal(made.status, 200, made.text);

  const unknown = await clientOf(dc1).delete('/operator/datacenter/dc9');
  t.same([unknown.status, unknown.text], [200, 'false']);
  const primary = await clientOf(dc1).delete('/operator/datacenter/dc1');
  t.equal(primary.status, 400);
  t.match(primary.text, /dc1 is the primary: move the primary/);
  const nobody = clientOf(dc1).as(undefined);
  t.equal((await nobody.delete('/operator/datacenter/dc2')).status, 403);

  // Any server of any datacenter takes it, as it takes every write.
  const removed = await clientOf(dc3).delete('/operator/datacenter/dc2');
  t.same([removed.status, removed.text], [200, 'true']);
  await until('it knows why it stands still', async () => {
    const own = await shownOf(dc2, 'dc2');
    return own?.State === 'stopped' && /an operator has removed/.test(own.LastErrorMessage);
  });
  for (const each of [dc1, dc3]) {
    await until('it is named no more', async () => (await namesAt(each)).join() === 'dc1,dc3');
    t.equal((await shownOf(each, 'dc2'))?.State, 'removed');
  }
  const lost = await clientOf(dc1).delete(`/acl/token/${ABSENT}?dc=dc2`);
  t.equal(lost.status, 400, 'nobody can say that a local token of it is gone');
  t.match(lost.text, /^No path to datacenter: an operator has removed datacenter dc2/);
  const refused = await clientOf(dc2).put('/acl/policy', { Name: 'refused' });
  t.equal(refused.status, 503);
  t.match(refused.text, /an operator has removed datacenter dc2 .* datacenter allow dc2/);
  cut(dc2);
  const after = await clientOf(dc1).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'after' });
  t.same([after.status, after.headers['x-service-ack']], [200, 'all'], 'nobody waits for it');
  for (const line of dc2.lines) line.heal();
  await serverOf(dc1).close();
  await serverOf(dc1).open();
  await until('the primary is back', async () => {
    return (await clientOf(dc1).put('/acl/policy', { Name: 'restarted' })).status !== 503;
  });
  t.equal((await shownOf(dc1, 'dc2'))?.State, 'removed', 'that is not forgotten by a restart');
  t.notOk(await has(dc2, 'after'));

  const allowed = await clientOf(dc1).put('/operator/datacenter/dc2', undefined);
  t.same([allowed.status, allowed.text], [200, 'true']);
  t.equal((await clientOf(dc1).put('/operator/datacenter/dc2', undefined)).text, 'false');
  await until('it has what it missed', () => has(dc2, 'restarted'));
  await until('it is named again', async () => (await namesAt(dc1)).length === 3);
});

t.test('removing: one of two that is lost is removed by force', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  await until('they know each other', async () => (await namesAt(dc1)).length === 2);
  await clientOf(dc1).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'before' });
  await serverOf(dc2).close();
  await serverOf(dc1).close();
  await serverOf(dc1).open();
  const refusedOf = () => clientOf(dc1).delete('/operator/datacenter/dc2');
  await until('the primary is back', async () => /major/.test((await refusedOf()).text));
  const refused = await refusedOf();
  t.equal(refused.status, 503);
  t.match(refused.text, /^Nothing was changed: a majority .* lost for good, force it$/);
  const forced = await clientOf(dc1).delete('/operator/datacenter/dc2?force');
  t.same([forced.status, forced.text], [200, 'true'], forced.text);
  t.same(await namesAt(dc1), ['dc1']);
  const alone = await clientOf(dc1).put('/acl/policy?ack=majority', { Name: 'alone' });
  t.same([alone.status, alone.headers['x-service-ack']], [200, 'majority']);
});

t.test(
  'removing: who was elected all the same is followed by the primary that removed it',
  async (t) => {
    const dc1 = await runDatacenter(t, { name: 'dc1' });
    const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
    // It finds dc2 without dc1.
    const wan = [...dc1.lines, ...dc2.lines].map(({ address }) => address).join();
    const flags = { 'retry-join-wan': wan };
    const dc3 = await runDatacenter(t, { name: 'dc3', primary: dc1, flags });
    await everyoneKnows([dc1, dc2, dc3]);
    const made = await clientOf(dc1).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'before' });
    t.equal(made.status, 200, made.text);
    for (const each of [dc2, dc3]) await serverOf(each).close();
    // Nobody else hears of it.
    const removed = await clientOf(dc1).delete('/operator/datacenter/dc2');
    t.same([removed.status, removed.text], [200, 'true']);
    await serverOf(dc1).close();
    for (const each of [dc2, dc3]) await serverOf(each).open();
    await until('dc2 is elected', async () => {
      return (await clientOf(dc2).put('/operator/primary', { Mode: 'election' })).status === 200;
    });
    await clientOf(dc2).made('PUT', '/acl/policy', { Name: 'elected' });
    await until('dc3 follows it', () => has(dc3, 'elected'));
    await serverOf(dc1).open();
    await until('dc1 follows it', () => has(dc1, 'elected'));
    const { json } = await clientOf(dc1).get('/operator/primary');
    t.same([json.Datacenter, json.Voters], ['dc2', ['dc1', 'dc2', 'dc3']]);
    t.not((await shownOf(dc1, 'dc2'))?.State, 'removed', 'the removal was lost with its reign');
    t.equal(json.DivergentEntries, 1, 'and is set apart');
    // Whom the present reign removes is removed, whatever was said of earlier ones.
    const again = await clientOf(dc2).delete('/operator/datacenter/dc1');
    t.same([again.status, again.text], [200, 'true']);
    await until('dc1 is refused', async () => (await shownOf(dc1, 'dc1'))?.State === 'stopped');
  },
);

for (const isForced of [false, true]) {
  const outcome = isForced ? 'by force all yield to it' : 'until it is the one that yields';
  t.test(`removing: who was made primary meanwhile is not allowed; ${outcome}`, async (t) => {
    const dc1 = await runDatacenter(t, { name: 'dc1' });
    const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
    await everyoneKnows([dc1, dc2]);
    for (const Name of ['revoked', 'kept']) {
      const made = await clientOf(dc1).put('/acl/policy?ack=all&ack_timeout=60s', { Name });
      t.equal(made.status, 200, made.text);
    }
    t.equal((await clientOf(dc1).delete('/operator/datacenter/dc2')).text, 'true');
    const forced = { Mode: 'forced', Epoch: 2, AcceptLoss: true };
    await until('dc2 is forced', async () => {
      return (await clientOf(dc2).put('/operator/primary', forced)).status === 200;
    });
    await clientOf(dc2).made('PUT', '/acl/policy', { Name: 'apart' });
    const { json } = await clientOf(dc1).get('/acl/policy/name/revoked');
    t.equal((await clientOf(dc1).delete(`/acl/policy/${json.ID}`)).status, 200);
    await until('dc1 has heard what it says of itself', async () => {
      return (await shownOf(dc1, 'dc2'))?.LastErrorMessage !== '';
    });
    const shown = await shownOf(dc1, 'dc2');
    t.match(shown?.LastErrorMessage, /^it takes dc2 for the primary, of epoch \d{4,}$/);
    t.equal(shown?.State, 'removed');
    const refused = await clientOf(dc1).put('/operator/datacenter/dc2', undefined);
    t.equal(refused.status, 400);
    t.match(
      refused.text,
      /^Nothing was changed: dc2 takes dc2 for the primary, of epoch \d{4,}, and here it is dc1, of epoch 1: the others would yield to it, .*, revocations too, .* promote dc1 --election/,
    );
    if (!isForced) {
      const elected = await clientOf(dc1).put('/operator/primary', { Mode: 'election' });
      t.ok(Number(elected.json.Epoch) > 1002, elected.text);
    }
    const path = `/operator/datacenter/dc2${isForced ? '?force' : ''}`;
    const allowed = await clientOf(dc1).put(path, undefined);
    t.same([allowed.status, allowed.text], [200, 'true'], allowed.text);
    const [winner, loser] = isForced ? [dc2, dc1] : [dc1, dc2];
    await until('one of them yields', async () => {
      const { json } = await clientOf(loser).get('/operator/primary');
      return Number(json.DivergentEntries) > 0 && json.Datacenter === winner.name;
    });
    await until('both have the same', async () => (await has(dc1, 'apart')) === isForced);
    await until('both have the same', async () => (await has(dc2, 'apart')) === isForced);
    for (const each of [dc1, dc2]) {
      t.same([await has(each, 'revoked'), await has(each, 'kept')], [isForced, true]);
    }
  });
}

interface Three {
  readonly dc1: DatacenterUnderTest;
  readonly dc2: DatacenterUnderTest;
  readonly dc3: DatacenterUnderTest;
}

/** dc1 has removed dc3, and of dc1 and dc2, which are voters then, dc2 has not heard that. */
async function removedBehind(t: Test): Promise<Three> {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  const wan = [...dc1.lines, ...dc2.lines].map(({ address }) => address).join();
  const dc3 = await runDatacenter(t, {
    name: 'dc3',
    primary: dc1,
    flags: { 'retry-join-wan': wan },
  });
  await everyoneKnows([dc1, dc2, dc3]);
  const made = await clientOf(dc1).put('/acl/policy?ack=all&ack_timeout=60s', { Name: 'before' });
  t.equal(made.status, 200, made.text);
  for (const each of [dc2, dc3]) await serverOf(each).close();
  const removed = await clientOf(dc1).delete('/operator/datacenter/dc3?ack=primary');
  t.same([removed.status, removed.text], [200, 'true']);
  return { dc1, dc2, dc3 };
}

for (const isEmptied of [false, true]) {
  const who = isEmptied ? 'a new one under its name' : 'it';
  t.test(
    `removing: ${who}, let back, makes no majority with who joins, where the other voter has not heard`,
    async (t) => {
      const { dc1, dc2, dc3 } = await removedBehind(t);
      const allowed = await clientOf(dc1).put('/operator/datacenter/dc3', undefined);
      t.same([allowed.status, allowed.text], [200, 'true']);
      if (isEmptied) serverOf(dc3).loseDisk();
      await serverOf(dc3).open();
      const dc4 = await runDatacenter(t, { name: 'dc4', primary: dc1 });
      for (const each of [dc3, dc4]) await until('it follows', () => has(each, 'before'));
      const write = (timeout: string) =>
        clientOf(dc1).put(`/acl/policy?ack=majority&ack_timeout=${timeout}`, {
          Name: `by-${timeout}`,
        });
      const alone = await write('300ms');
      t.match(alone.text, /acknowledged by the primary only/, 'dc2 and dc3 may have elected');
      await serverOf(dc2).open();
      const together = await write('60s');
      t.equal(together.status, 200, together.text);
    },
  );
}

for (const isLetBack of [false, true]) {
  const who = isLetBack ? 'removed and let back' : 'removed';
  t.test(
    `removing: a deletion waits for the other voter until that knows who was ${who}`,
    async (t) => {
      const { dc1, dc2 } = await removedBehind(t);
      if (isLetBack) {
        const allowed = await clientOf(dc1).put('/operator/datacenter/dc3', undefined);
        t.equal(allowed.text, 'true');
      } else {
        await serverOf(dc1).close();
        await serverOf(dc1).open();
      }
      const revoked = async (policy: string): Promise<unknown> => {
        const { json } = await clientOf(dc1).get(`/acl/policy/name/${policy}`);
        const { headers } = await clientOf(dc1).delete(`/acl/policy/${json.ID}?ack_timeout=60s`);
        return headers['x-service-ack'];
      };
      for (const Name of ['first', 'second'])
        await clientOf(dc1).made('PUT', '/acl/policy', { Name });
      const first = revoked('first');
      await serverOf(dc2).open();
      t.equal(await first, 'majority', 'dc2 and dc3 could have elected without it');
      t.equal(await revoked('second'), 'primary', 'and now they cannot');
    },
  );
}

t.test('removing: who was let back and is nowhere is removed again by force', async (t) => {
  const { dc1, dc3 } = await removedBehind(t);
  const allowed = await clientOf(dc1).put('/operator/datacenter/dc3', undefined);
  t.equal(allowed.text, 'true');
  await serverOf(dc1).close();
  await serverOf(dc1).open();
  const remove = (name: string) => clientOf(dc1).delete(`/operator/datacenter/${name}`);
  await until('the primary is back', async () => (await remove('dc9')).status === 200);
  t.equal((await remove('dc3')).text, 'false', 'a name may be mistyped');
  t.equal((await remove('No-name?force')).text, 'false', 'no datacenter has such a name');
  t.equal((await remove('dc3?force')).text, 'true');
  t.equal((await remove('dc3?force')).text, 'false', 'it was removed before');
  t.equal((await shownOf(dc1, 'dc3'))?.State, 'removed');
  await serverOf(dc3).open();
  await until('it is refused', async () => {
    const own = await shownOf(dc3, 'dc3');
    return own?.State === 'stopped' && /an operator has removed/.test(own.LastErrorMessage);
  });
});

t.test('federation: a log of another federation is not taken, and both are named', async (t) => {
  const dc1 = await runDatacenter(t, { name: 'dc1' });
  const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'before' });
  await until('it follows', () => has(dc2, 'before'));
  await serverOf(dc1).close();
  // Somebody begins a new primary in the place of the old one.
  serverOf(dc1).loseDisk();
  await serverOf(dc1).open();
  await clientOf(dc1).made('PUT', '/acl/policy', { Name: 'stranger' });
  const isRefused = async () => {
    const says = (await shownOf(dc2, 'dc2'))?.LastErrorMessage ?? '';
    return /federation/.test(says) && new Set(says.match(/[0-9a-f]{8}-[0-9a-f-]{27}/g)).size >= 2;
  };
  await until('it says why it does not follow', isRefused);
  await serverOf(dc2).close();
  await serverOf(dc2).open();
  await until('also after a restart', isRefused);
  t.same([await has(dc2, 'before'), await has(dc2, 'stranger')], [true, false]);
});
