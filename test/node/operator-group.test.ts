// Operators and their commands against real servers with real sockets and disks: one alone, and three
// that are one datacenter. Whichever is asked, the group answers.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import t from 'tap';
import { processSurroundings } from '../../src/cli/process-surroundings.ts';
import { runProgram } from '../../src/cli/program.ts';
import {
  allReady,
  joiningServer,
  leaderOf,
  runServers,
  type ServerUnderTest,
  until,
} from '../support/running/running-group.ts';
import { Client, type Fields, ROOT, runNode } from '../support/running/running-node.ts';

/** Each has servers of its own, and waits for them most of the time. */
t.jobs = 2;

interface Ended {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

const REAL = processSurroundings('test');

/** Runs a command line against a server, as a shell would. */
async function conclave(port: number, line: string): Promise<Ended> {
  const out: string[] = [];
  const err: string[] = [];
  const to = (texts: string[]) => ({
    isTerminal: false,
    write: async (content: string | Uint8Array) => void texts.push(String(content)),
  });
  const surroundings = {
    ...REAL,
    environment: { CONCLAVE_HTTP_ADDR: `http://127.0.0.1:${port}`, CONCLAVE_TOKEN: ROOT },
    out: to(out),
    err: to(err),
  };
  const status = await runProgram(line.split(' '), surroundings, new Command('agent'));
  return { status, out: out.join(''), err: err.join('') };
}

function folderOf(owner: { teardown(action: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), 'conclave-operator-'));
  owner.teardown(() => rmSync(folder, { recursive: true }));
  return folder;
}

interface Peer {
  readonly ID: string;
  readonly Node: string;
  readonly Address: string;
  readonly Leader: boolean;
  readonly Voter: boolean;
}

async function peersAt(client: Client, query = ''): Promise<readonly Peer[]> {
  const { json } = await client.get(`/operator/raft/configuration${query}`);
  return json.Servers as readonly Peer[];
}

async function tokenNames(client: Client): Promise<readonly unknown[]> {
  const { list } = await client.get('/acl/tokens');
  return list.map(({ Description }) => Description).sort();
}

async function digestAt(client: Client): Promise<unknown> {
  const { json } = await client.get('/agent/self');
  return (json.Stats as { readonly state: Fields }).state.digest_all;
}

t.test('a server alone: is its own group', async (t) => {
  const node = await runNode(t, { 'ports-cluster': '-1' });
  const client = new Client(node, 'X-Service-');
  const consul = new Client(node, 'X-Consul-');
  const [self, ...others] = await peersAt(client);
  t.match(self, { Node: 'node-1', Leader: true, Voter: true, ID: /^[0-9a-f-]{36}$/ });
  t.same(others, []);
  t.match((await client.get('/operator/autopilot/health')).json, {
    Healthy: true,
    FailureTolerance: 0,
    Servers: [{ Name: 'node-1', SerfStatus: 'alive', Leader: true, LastContact: '0s' }],
  });

  const alone = await client.send('POST', '/operator/raft/transfer-leader');
  t.equal(alone.status, 400, alone.text);
  t.equal((await consul.send('POST', '/operator/raft/transfer-leader')).status, 500);
  const last = await client.send('DELETE', `/operator/raft/peer?id=${self?.ID}`);
  t.equal(last.status, 400, last.text);
  t.equal((await client.get('/acl/tokens')).status, 200, 'nothing has happened to it');

  await client.made('PUT', '/operator/autopilot/configuration', { MinQuorum: 1 });
  const shown = await conclave(node.port, 'operator autopilot get-config');
  t.match(shown.out, /^MinQuorum: +1$/m);
  const set = await conclave(node.port, 'operator autopilot set-config --max-trailing-logs 99');
  t.same([set.status, set.out], [0, 'Configuration updated.\n'], set.err);
  t.match((await client.get('/operator/autopilot/configuration')).json, {
    MinQuorum: 1,
    MaxTrailingLogs: 99,
    ModifyIndex: 3,
  });
  const state = await conclave(node.port, 'operator autopilot state');
  t.match(state.out, /^Healthy: +true$/m);
});

t.test('a server alone: its state is saved, changed and restored', async (t) => {
  const node = await runNode(t, { 'ports-cluster': '-1' });
  const client = new Client(node, 'X-Service-');
  const folder = folderOf(t);
  const at = (name: string) => join(folder, name);
  await client.made('PUT', '/acl/token', { Description: 'before' });
  const names = await tokenNames(client);
  writeFileSync(at('key'), (await conclave(node.port, 'keygen')).out);

  for (const key of ['', ` --key-file ${at('key')}`]) {
    const file = at(key === '' ? 'plain' : 'sealed');
    const saved = await conclave(node.port, `snapshot save ${file}${key}`);
    t.equal(saved.status, 0, saved.err);
    t.match(saved.out, /^Saved and verified a snapshot of index \d+/);
    t.equal(readFileSync(file).includes('before'), false, 'compressed, or encrypted');
    const { json } = await client.get('/agent/self');
    const index = Number((json.Stats as { readonly state: Fields }).state.index);

    await client.made('PUT', '/acl/token', { Description: 'after' });
    t.notSame(await tokenNames(client), names);
    const restored = await conclave(node.port, `snapshot restore ${file}${key}`);
    t.equal(restored.status, 0, restored.err);
    t.same(await tokenNames(client), names);
    const after = await client.get('/acl/tokens');
    t.ok(Number(after.headers['x-service-index']) > index + 1, 'the index does not go back');
  }
  t.same(readdirSync(folder).sort(), ['key', 'plain', 'sealed']);

  const digest = await digestAt(client);
  const plain = readFileSync(at('plain'));
  plain[plain.length - 100] = plain[plain.length - 100]! ^ 1;
  writeFileSync(at('changed'), plain);
  const refused = await conclave(node.port, `snapshot restore ${at('changed')}`);
  t.equal(refused.status, 1);
  t.match(refused.err, 'was not sent');
  for (const body of ['', 'no archive', '{}']) {
    const { status, text } = await client.put('/snapshot', body);
    t.equal(status, 400, text);
  }
  t.equal(await digestAt(client), digest, 'nothing has changed');
});

/** Asks one server after the other, as somebody does who does not know who leads. */
t.test('three servers: any of them answers for the group', async (t) => {
  const servers = await runServers(t, 3);
  const leader = await leaderOf(servers);
  const followers = servers.filter((server) => server !== leader);
  const [follower, other] = followers as [ServerUnderTest, ServerUnderTest];

  await t.test('the members are the same everywhere', async (t) => {
    for (const { client } of servers) {
      for (const query of ['', '?stale', '?consistent']) {
        const peers = await peersAt(client, query);
        t.same(peers.map(({ Node }) => Node).sort(), ['node-1', 'node-2', 'node-3'], query);
        t.same(
          peers.filter(({ Leader }) => Leader).map(({ Node }) => Node),
          [leader.name],
        );
        t.ok(peers.every(({ Voter }) => Voter));
      }
    }
    const { out } = await conclave(follower.port, 'operator raft list-peers');
    t.match(out, new RegExp(`^${leader.name} .* leader +true +3 +\\d+ +-$`, 'm'));
    t.match(out, new RegExp(`^${follower.name} .* follower +true +3 +\\d+ +\\d+ commits?$`, 'm'));
  });

  await t.test('rights are asked wherever it is asked', async (t) => {
    const nobody = follower.client.as('');
    for (const path of ['/operator/raft/configuration', '/operator/raft/configuration?stale']) {
      t.equal((await nobody.get(path)).status, 403);
    }
    t.equal((await nobody.put('/snapshot', 'x')).status, 403);
    t.equal((await nobody.send('POST', '/operator/raft/transfer-leader')).status, 403);
    const unknown = await follower.client.send('DELETE', '/operator/raft/peer?id=nope');
    t.same(
      [unknown.status, unknown.text],
      [404, 'id "nope" was not found in the Raft configuration'],
    );
  });

  await t.test('autopilot is set at one and known to all', async (t) => {
    const path = '/operator/autopilot/configuration';
    await follower.client.made('PUT', path, { LastContactThreshold: '5s' });
    for (const { client } of servers) {
      const { json } = await client.get(path);
      t.match(json, { LastContactThreshold: '5s', ModifyIndex: 2 });
    }
    t.equal((await other.client.put(`${path}?cas=1`, {})).status, 409);
    await until('autopilot finds all of them healthy', async () => {
      const { status, json } = await other.client.get('/operator/autopilot/health');
      return status === 200 && json.FailureTolerance === 1;
    });
  });

  await t.test('leadership goes where it is sent', async (t) => {
    const peers = await peersAt(follower.client);
    const id = peers.find(({ Node }) => Node === other.name)?.ID;
    const sent = await conclave(follower.port, `operator raft transfer-leader --id ${id}`);
    t.equal(sent.status, 0, sent.err);
    t.equal((await leaderOf(servers)).name, other.name);
    const any = await follower.client.send('PUT', '/operator/raft/transfer-leader');
    t.same([any.status, any.text], [200, '{"Success":true}']);
    t.not((await leaderOf(servers)).name, other.name);
  });

  await t.test('what is saved at one and restored at another is the state of all', async (t) => {
    const folder = folderOf(t);
    const file = join(folder, 'archive');
    for (let count = 0; count < 300; count += 1) {
      await leader.client.made('PUT', '/acl/token', { Description: `kept ${count}` });
    }
    const names = await tokenNames(follower.client);
    const saved = await conclave(follower.port, `snapshot save ${file}`);
    t.equal(saved.status, 0, saved.err);
    t.ok(names.includes('kept 299'), 'what was answered at the leader is in it');
    for (let count = 0; count < 20; count += 1) {
      await leader.client.made('PUT', '/acl/token', { Description: `lost ${count}` });
    }
    const current = await leaderOf(servers);
    for (const server of [current, ...servers.filter((each) => each !== current).slice(0, 1)]) {
      const restored = await conclave(server.port, `snapshot restore ${file}`);
      t.equal(restored.status, 0, restored.err);
      for (const { client } of servers) t.same(await tokenNames(client), names);
      const digests = await Promise.all(servers.map(({ client }) => digestAt(client)));
      t.equal(new Set(digests).size, 1, 'the digests are equal');
      await leader.client.made('PUT', '/acl/token', { Description: 'lost again' });
    }
    const bytes = readFileSync(file);
    const before = await digestAt(follower.client);
    const cut = join(folder, 'cut');
    writeFileSync(cut, bytes.subarray(0, -1));
    const piped = await fetch(`http://127.0.0.1:${follower.port}/v1/snapshot`, {
      method: 'PUT',
      headers: { 'X-Service-Token': ROOT },
      body: bytes.subarray(0, -1),
    });
    t.equal(piped.status, 400, await piped.text());
    t.equal(await digestAt(follower.client), before, 'a damaged one changes nothing');
  });

  await t.test('a server that is gone is removed, and a new one takes its place', async (t) => {
    const current = await leaderOf(servers);
    const gone = servers.find((server) => server !== current) as ServerUnderTest;
    const stays = servers.filter((server) => server !== gone);
    const asked = stays.find((server) => server !== current) as ServerUnderTest;
    const { clusterAddress, name } = gone;
    await gone.close();
    await until('autopilot misses it', async () => {
      const { status } = await asked.client.get('/operator/autopilot/health');
      return status === 429;
    });
    const state = await conclave(asked.port, 'operator autopilot state');
    t.match(state.out, new RegExp(`^Healthy: +false +${name}$`, 'm'));
    const removed = await conclave(
      asked.port,
      `operator raft remove-peer --address ${clusterAddress}`,
    );
    t.equal(removed.status, 0, removed.err);
    await until('both know it', async () => {
      const known = await Promise.all(stays.map(({ client }) => peersAt(client, '?stale')));
      return known.every((peers) => peers.length === 2);
    });
    await until('the rest is healthy', async () => {
      const { status } = await asked.client.get('/operator/autopilot/health');
      return status === 200;
    });
    const settings = { ServerStabilizationTime: '100ms', LastContactThreshold: '5s' };
    await asked.client.made('PUT', '/operator/autopilot/configuration', settings);
    const fresh = await joiningServer(t, 'node-4', stays);
    await fresh.open();
    await allReady([fresh]);
    await until('the new one votes', async () => {
      const peers = await peersAt(asked.client);
      return peers.some(({ Node, Voter }) => Node === 'node-4' && Voter);
    });
    const digests = await Promise.all([...stays, fresh].map(({ client }) => digestAt(client)));
    t.equal(new Set(digests).size, 1);

    const leading = await leaderOf([...stays, fresh]);
    const rest = [...stays, fresh].filter((server) => server !== leading);
    const at = rest[0] as ServerUnderTest;
    const leaderId = (await peersAt(at.client)).find(({ Leader }) => Leader)?.ID;
    const left = await at.client.send('DELETE', `/operator/raft/peer?id=${leaderId}`);
    t.same([left.status, left.text], [200, 'true'], 'the leader itself');
    await until('the rest has a leader', async () => {
      const { status, json } = await at.client.get('/operator/raft/configuration');
      return status === 200 && (json.Servers as readonly Peer[]).length === 2;
    });
    await at.client.made('PUT', '/acl/token', { Description: 'it goes on' });
  });
});

t.test('without a leader: what is stale is told, everything else is 503 in time', async (t) => {
  const servers = await runServers(t, 3);
  const [left, ...others] = servers as [ServerUnderTest, ...ServerUnderTest[]];
  for (const server of others) await server.close();
  await until('the leader is missed', () => left.node.info.leader() === undefined);
  t.equal((await peersAt(left.client, '?stale')).length, 3);
  const listed = await conclave(left.port, 'operator raft list-peers --stale');
  t.same([listed.status, listed.out.split('\n').length], [0, 5], listed.err);
  const saved = await conclave(left.port, `snapshot save --stale ${join(folderOf(t), 'x')}`);
  t.equal(saved.status, 0, saved.err);
  const asked = [
    ['GET', '/operator/raft/configuration'],
    ['GET', '/operator/autopilot/health'],
    ['POST', '/operator/raft/transfer-leader'],
    ['GET', '/snapshot'],
    ['PUT', '/snapshot'],
  ] as const;
  // Each is tried again for a while: they wait side by side.
  const replies = await Promise.all(
    asked.map(([method, path]) => left.client.send(method, path, { body: '' })),
  );
  for (const [place, { status, text, headers }] of replies.entries()) {
    const what = asked[place]!.join(' ');
    t.same([status, typeof headers['retry-after']], [503, 'string'], `${what}: ${text}`);
  }
});
