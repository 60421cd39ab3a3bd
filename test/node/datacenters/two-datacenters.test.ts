// Two datacenters of real nodes: what is written in one can be used in the other, a line that is cut stops
// nothing that is local, and what was missed meanwhile comes when it is healed.

import t from 'tap';
import {
  clientOf,
  cut,
  type DatacenterUnderTest,
  heal,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';
import { until } from '../../support/running/running-group.ts';
import type { Client, Fields } from '../../support/running/running-node.ts';

const dc1 = await runDatacenter(t, { name: 'dc1' });
const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });

const READ_RULES = 'acl = "read"';

/** A policy that is made at the client. */
function newPolicy(client: Client, name: string, rules = READ_RULES): Promise<Fields> {
  return client.made('PUT', '/acl/policy', { Name: name, Rules: rules });
}

t.test('two datacenters: a token made in one can be used in the other', async (t) => {
  const policy = await newPolicy(clientOf(dc1), 'readers');
  const token = await clientOf(dc1).made('PUT', '/acl/token', { Policies: [{ ID: policy.ID }] });
  const there = clientOf(dc2).as(token.SecretID);
  await until(
    'the token has arrived',
    async () => (await there.get('/acl/policies')).status === 200,
  );
  const [here, copy] = await Promise.all([
    clientOf(dc1).get(`/acl/token/${String(token.AccessorID)}`),
    clientOf(dc2).get(`/acl/token/${String(token.AccessorID)}`),
  ]);
  t.equal(copy.text, here.text, 'byte for byte, indexes included');
});

t.test('two datacenters: a write is forwarded, and can be read where it was sent', async (t) => {
  const made = await clientOf(dc2).put('/acl/policy', { Name: 'sent', Rules: READ_RULES });
  t.equal(made.status, 200, made.text);
  t.equal(made.headers['x-service-visible'], undefined);
  t.equal(made.headers['x-service-ack'], 'primary');
  const stale = await clientOf(dc2).get(`/acl/policy/${String(made.json.ID)}?stale`);
  t.equal(stale.text, made.text);
  const position = String(made.headers['x-service-position']);
  const at = await clientOf(dc1).get(
    `/acl/policy/${String(made.json.ID)}?min-position=${position}`,
  );
  t.equal(at.text, made.text);
  t.match(made.headers['x-service-index'], /^\d+$/);
});

t.test('two datacenters: the deletion of a policy arrives, and ends what it gave', async (t) => {
  const policy = await newPolicy(clientOf(dc2), 'short-lived');
  const token = await clientOf(dc2).made('PUT', '/acl/token', {
    Local: true,
    Policies: [{ ID: policy.ID }],
  });
  const bearer = clientOf(dc2).as(token.SecretID);
  t.equal((await bearer.get('/acl/policies')).status, 200, 'a local token has replicated policies');
  t.equal((await clientOf(dc1).delete(`/acl/policy/${String(policy.ID)}`)).text, 'true');
  await until(
    'it gives nothing any more',
    async () => (await bearer.get('/acl/policies')).status === 403,
  );
});

t.test('two datacenters: a write says how many have it, and keeps what it promised', async (t) => {
  const write = (name: string, ack: string) =>
    clientOf(dc1).put(`/acl/policy?ack=${ack}`, { Name: name, Rules: '' });
  for (const level of ['primary', 'majority', 'all']) {
    const made = await write(`ack-${level}`, level);
    t.same([made.status, made.headers['x-service-ack']], [200, level], made.text);
  }
  cut(dc1);
  const late = await write('ack-late', 'majority&ack_timeout=200ms');
  t.equal(late.status, 504);
  t.match(
    late.text,
    /^The write stands at position 1\.\d+, .* by the primary only and not by a majority/,
  );
  t.equal((await clientOf(dc1).get('/acl/policy/name/ack-late')).status, 200);
  await serverOf(dc1).close();
  await serverOf(dc1).open();
  const after = await write('ack-restarted', 'majority&ack_timeout=200ms');
  t.equal(after.status, 504, 'who belongs to the federation is not forgotten by a restart');
  t.same(JSON.parse((await clientOf(dc1).get('/catalog/datacenters')).text), ['dc1', 'dc2']);
  heal(dc1);
  await until('they follow each other again', async () => {
    return (await write('ack-again', 'all&ack_timeout=1s')).status !== 504;
  });
});

t.test('two datacenters: cut off, local tokens are issued and global writes refused', async (t) => {
  cut(dc1);
  const write = () => clientOf(dc2).put('/acl/policy', { Name: 'never', Rules: '' });
  // What was under way when the line was cut is not known, and said so.
  await until('the primary is known to be away', async () => (await write()).status === 503);
  const refused = await write();
  t.match(refused.text, /^Remote DC has no server currently reachable: dc1: .*epoch 1$/);
  t.ok(refused.headers['retry-after']);
  const local = await clientOf(dc2).made('PUT', '/acl/token', { Local: true, Description: 'home' });
  const self = await clientOf(dc2).as(local.SecretID).get('/acl/token/self');
  t.equal(self.json.Description, 'home');
  t.equal((await clientOf(dc2).get('/acl/policies')).status, 200, 'reads go on');
  const missed = await newPolicy(clientOf(dc1), 'missed');
  heal(dc1);
  const path = `/acl/policy/${String(missed.ID)}`;
  await until(
    'what was missed has come',
    async () => (await clientOf(dc2).get(path)).status === 200,
  );
  const elsewhere = await clientOf(dc1).as(local.SecretID).get('/acl/token/self');
  t.equal(elsewhere.status, 403, 'a local token means nothing elsewhere');
  const there = await clientOf(dc1).get(`/acl/token/${String(local.AccessorID)}`);
  t.equal(there.status, 404);
});

t.test('two datacenters: a local token cannot write what all share', async (t) => {
  const local = await clientOf(dc2).made('PUT', '/acl/token', {
    Local: true,
    Policies: [{ Name: 'global-management' }],
  });
  const bearer = clientOf(dc2).as(local.SecretID);
  const refused = await bearer.put('/acl/policy', { Name: 'p', Rules: '' });
  t.equal(refused.status, 403);
  t.match(refused.text, /the token is local to datacenter dc2 .* use a global token$/);
  t.equal((await bearer.put('/acl/token', { Local: true })).status, 200);
});

t.test('two datacenters: one asks the other, and lists come whole', async (t) => {
  const [here, there] = await Promise.all([
    clientOf(dc1).get('/acl/policies'),
    clientOf(dc2).get('/acl/policies?dc=dc1'),
  ]);
  t.equal(there.text, here.text);
  const unknown = await clientOf(dc2).get('/acl/policies?dc=dc9');
  t.same([unknown.status, unknown.text], [400, 'No path to datacenter']);
  const known = await clientOf(dc2).get('/catalog/datacenters');
  t.same(JSON.parse(known.text), ['dc2', 'dc1']);
  const waiting = clientOf(dc2).get(
    `/acl/policies?dc=dc1&wait=60s&index=${String(there.headers['x-service-index'])}`,
  );
  await newPolicy(clientOf(dc1), 'woken');
  t.match((await waiting).text, /"woken"/);
});

t.test(
  'two datacenters: what is told by a datacenter alone is not told of the other',
  async (t) => {
    const refused = [400, 'only a server of datacenter dc2 can do that: ask one'];
    const paths = ['/status/leader', '/status/peers', '/operator/raft/configuration'];
    for (const path of [...paths, '/operator/autopilot/health', '/snapshot']) {
      const { status, text } = await clientOf(dc1).get(`${path}?dc=dc2`);
      t.same([status, text], refused, path);
      t.equal((await clientOf(dc1).get(`${path}?dc=dc1`)).status, 200, path);
    }
  },
);

t.test(
  'two datacenters: a server shows itself by the rights that the token has at it',
  async (t) => {
    const { ID } = await clientOf(dc1).made('PUT', '/acl/policy', {
      ...{ Name: 'agents-of-dc2', Rules: 'agent_prefix "" { policy = "read" }' },
      Datacenters: ['dc2'],
    });
    const token = await clientOf(dc1).made('PUT', '/acl/token?ack=all', { Policies: [{ ID }] });
    const status = async (datacenter: DatacenterUnderTest, path: string) =>
      (await clientOf(datacenter).as(token.SecretID).get(path)).status;
    for (const path of ['/agent/self', '/agent/metrics']) {
      t.equal(await status(dc2, path), 200, path);
      t.equal(await status(dc2, `${path}?dc=dc1`), 200, path);
      t.equal(await status(dc1, path), 403, path);
      t.equal(await status(dc1, `${path}?dc=dc2`), 403, path);
    }
  },
);

interface LagShown {
  readonly Name: string;
  readonly LagEntries: number | null;
}

t.test('two datacenters: how far each is can be seen', async (t) => {
  const follows = async () => (await clientOf(dc2).get('/acl/replication')).json;
  await until(
    'it has all',
    async () => (await follows()).Position === (await follows()).HeadPosition,
  );
  t.match(await follows(), {
    Enabled: true,
    Running: true,
    SourceDatacenter: 'dc1',
    ReplicationType: 'tokens',
    LastErrorMessage: String,
    PrimaryDatacenter: 'dc1',
    Epoch: 1,
    Datacenters: [
      { Name: 'dc2', State: 'live', LagEntries: 0 },
      { Name: 'dc1', State: 'primary' },
    ],
  });
  const leads = async () => (await clientOf(dc1).get('/acl/replication')).json;
  // The primary hears of it a moment later.
  await until('the primary knows', async () => {
    const { Datacenters } = (await leads()) as { readonly Datacenters: readonly LagShown[] };
    return Datacenters.some(({ Name, LagEntries }) => Name === 'dc2' && LagEntries === 0);
  });
  t.match(await leads(), {
    Enabled: false,
    Running: false,
    SourceDatacenter: '',
    Datacenters: [
      { Name: 'dc1', State: 'primary' },
      { Name: 'dc2', LagEntries: 0 },
    ],
  });
});
