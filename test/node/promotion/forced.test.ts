// Two datacenters of real nodes, of which the primary is cut off: the other one is forced to take over, and
// the old primary yields when it is back. What only it had is listed, made anew or forgotten, entry by entry.

import t from 'tap';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  everyoneKnows,
  heal,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import type { Client, Fields, Reply } from '../../support/running/running-node.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
await everyoneKnows([dc1, dc2]);

function newPolicy(client: Client, name: string): Promise<Fields> {
  return client.made('PUT', '/acl/policy?ack=primary', { Name: name });
}

async function primaryAt(datacenter: DatacenterUnderTest): Promise<Fields> {
  return (await clientOf(datacenter).get('/operator/primary')).json;
}

interface Listed {
  readonly Count: number;
  readonly Entries: readonly {
    readonly Position: string;
    readonly Objects: readonly { readonly ID: string; readonly Name: string }[];
  }[];
}

async function divergence(): Promise<Listed> {
  const { json } = await clientOf(dc1).get('/operator/divergence');
  return json as unknown as Listed;
}

const local = new Map<string, Fields>();
let shared: Fields;
let onlyHere: Fields;
let token: Fields;
let waitingWrite: Promise<Reply>;

t.before(async () => {
  for (const datacenter of [dc1, dc2]) {
    const made = await clientOf(datacenter).made('PUT', '/acl/token', { Local: true });
    local.set(datacenter.name, made);
  }
  const made = await clientOf(dc1).put('/acl/policy?ack=all', { Name: 'shared' });
  t.equal(made.status, 200, made.text);
  shared = made.json;
  cut(dc1);
  cut(dc2);
  onlyHere = await newPolicy(clientOf(dc1), 'only-here');
  const changed = { Name: 'shared', Description: 'by the old primary' };
  await clientOf(dc1).made('PUT', `/acl/policy/${String(shared.ID)}`, changed);
  token = await clientOf(dc1).made('PUT', '/acl/token', { Description: 'a lost token' });
  const waiting = { Name: 'waits-for-others' };
  waitingWrite = clientOf(dc1).put('/acl/policy?ack=majority&ack_timeout=60s', waiting);
  await until('it is written', async () => {
    return (await clientOf(dc1).get('/acl/policy/name/waits-for-others')).status === 200;
  });
});

t.test(
  'forced: needs an epoch, and that the loss is accepted; a majority is not there',
  async (t) => {
    const move = (body: object) => clientOf(dc2).put('/operator/primary', body);
    const refused: readonly [object, number, RegExp][] = [
      [{ Mode: 'forced', AcceptLoss: true }, 400, /must name the next Epoch/],
      [{ Mode: 'forced', Epoch: 2 }, 400, /say AcceptLoss/],
      [{ Mode: 'forced', Epoch: 3, AcceptLoss: true }, 400, /^The next epoch is 2, not 3$/],
      [{ Mode: 'election', Epoch: 2 }, 400, /for a forced move alone/],
      [
        { Mode: 'sideways' },
        400,
        /^Mode must be one of hand-over, election, forced, not "sideways"$/,
      ],
      [{ Datacenter: 'dc9' }, 400, /^dc9 is none of the datacenters of the federation: dc1, dc2$/],
      [
        { Mode: 'election' },
        503,
        /^The primary stays where it is: there is no majority: dc1 does not/,
      ],
      [{}, 503, /dc1/],
    ];
    for (const [body, status, text] of refused) {
      const answer = await move(body);
      t.equal(answer.status, status, `${JSON.stringify(body)}: ${answer.text}`);
      t.match(answer.text, text);
    }
    t.match(await primaryAt(dc2), { Datacenter: 'dc1', Epoch: 1, PromisedEpoch: 1 });
    const asLocal = clientOf(dc2).as(local.get('dc2')!.SecretID);
    t.equal((await asLocal.put('/operator/primary', {})).status, 403, 'needs operator:write');
  },
);

t.test(
  'forced: the datacenter that is there takes over, and says what it may have lost',
  async (t) => {
    const { status, json, text } = await clientOf(dc2).put('/operator/primary', {
      Mode: 'forced',
      Epoch: 2,
      AcceptLoss: true,
    });
    t.equal(status, 200, text);
    t.match(json, { Datacenter: 'dc2', Promises: { length: 0 }, Position: /^1\.\d+$/ });
    const { Epoch } = json;
    t.ok(Number(Epoch) > 2, 'a number of its own');
    t.match(await primaryAt(dc2), { Datacenter: 'dc2', Epoch, PromisedEpoch: Epoch, Closed: '' });
    const changed = { Name: 'shared', Description: 'by the new primary' };
    await clientOf(dc2).made('PUT', `/acl/policy/${String(shared.ID)}`, changed);
  },
);

t.test('forced: the old primary yields when it is back, and keeps what only it has', async (t) => {
  heal(dc1);
  heal(dc2);
  await until('dc1 has yielded', async () => (await primaryAt(dc1)).Datacenter === 'dc2');
  await until('dc1 follows', async () => {
    const { json } = await clientOf(dc1).get('/acl/replication');
    return (json.Datacenters as Fields[])[0]?.State === 'live';
  });
  const { Count, Entries } = await divergence();
  t.same([Count, Entries.length], [4, 4]);
  const waited = await waitingWrite;
  t.equal(waited.status, 504, waited.text);
  t.match(
    waited.text,
    /^whether the write at position 1\.\d+ stands is not known: the primary was/,
  );
  t.match(Entries, [
    { Kind: 'effects', Objects: [{ Kind: 'policy', ID: onlyHere.ID, Name: 'only-here' }] },
    { Objects: [{ ID: shared.ID, Deleted: false }] },
    { Objects: [{ Kind: 'token', ID: token.AccessorID, Name: 'a lost token' }] },
    { Objects: [{ Kind: 'policy', Name: 'waits-for-others', Deleted: false }] },
  ]);
  const { text } = await clientOf(dc1).get('/operator/divergence');
  t.notMatch(text, String(token.SecretID), 'no secret is shown');
  t.equal((await primaryAt(dc1)).DivergentEntries, 4);
  const gone = await clientOf(dc1).get(`/acl/policy/${String(onlyHere.ID)}`);
  t.equal(gone.status, 404, 'its objects are those of the new primary');
  const { json } = await clientOf(dc1).get(`/acl/policy/${String(shared.ID)}`);
  t.equal(json.Description, 'by the new primary');
});

t.test(
  'divergence: one is made anew, one only over what was looked at, one forgotten',
  async (t) => {
    const client = clientOf(dc1);
    const [first, second, third] = (await divergence()).Entries.map(({ Position }) => Position);
    const made = await client.put(`/operator/divergence?position=${first}`);
    t.equal(made.status, 200, made.text);
    t.match(made.json, { Position: /^\d{4,}\.\d+$/ });
    t.equal((await divergence()).Count, 3);
    for (const datacenter of [dc1, dc2]) {
      await until(`${datacenter.name} has it`, async () => {
        const path = `/acl/policy/${String(onlyHere.ID)}`;
        return (await clientOf(datacenter).get(path)).status === 200;
      });
    }
    const again = await client.put(`/operator/divergence?position=${first}`);
    t.same(
      [again.status, again.text],
      [404, `There is no divergent entry ${first} in this datacenter`],
    );
    const blind = await client.put(`/operator/divergence?position=${second}`);
    t.equal(blind.status, 409, blind.text);
    const [, index] = /ModifyIndex (\d+)/.exec(blind.text) ?? [];
    const over = await client.put(`/operator/divergence?position=${second}&cas=${index}`);
    t.equal(over.status, 200, over.text);
    await until('the change is made', async () => {
      const { json } = await clientOf(dc2).get(`/acl/policy/${String(shared.ID)}`);
      return json.Description === 'by the old primary';
    });
    const wrong = await client.delete('/operator/divergence');
    t.match([wrong.status, wrong.text], [400, /^Must specify \?position/]);
    t.equal((await client.delete(`/operator/divergence?position=${third}`)).text, 'true');
    t.equal((await divergence()).Count, 1);
    t.equal((await client.delete('/operator/divergence?all')).text, 'true');
    t.same(await divergence(), { Count: 0, Entries: [], Gone: [] });
    const lost = await clientOf(dc2).get(`/acl/token/${String(token.AccessorID)}`);
    t.equal(lost.status, 404);
  },
);

t.test('forced: everybody agrees at the end, and local tokens are where they were', async (t) => {
  await serverOf(dc1).close();
  await serverOf(dc1).open();
  // It hears where dc2 is when that one tells it next.
  await everyoneKnows([dc1, dc2]);
  const written = await clientOf(dc1).put('/acl/policy?ack=all', { Name: 'at-the-end' });
  t.equal(written.status, 200, written.text);
  for (const datacenter of [dc1, dc2]) {
    const secret = local.get(datacenter.name)?.SecretID;
    const { status } = await clientOf(datacenter).as(secret).get('/acl/token/self');
    t.equal(status, 200, datacenter.name);
  }
  const digests = await Promise.all(
    [dc1, dc2].map(async (datacenter) => {
      const { json } = await clientOf(datacenter).get('/agent/self');
      return (json as { Stats: { state: { digest_global: string } } }).Stats.state.digest_global;
    }),
  );
  t.equal(digests[0], digests[1]);
});
