// What goes on while an archive becomes the state: nothing of writers whom it does not know gets into it, and
// whoever restores it must be allowed to do so in the end.

import { request } from 'node:http';
import t from 'tap';
import { Client, ROOT, runNode } from '../../support/running/running-node.ts';

const WRITERS = 16;
const ROUNDS = 5;

t.test('restore: a write that was allowed before it is not in the state behind it', async (t) => {
  const node = await runNode(t, { 'ports-cluster': '-1' });
  const client = new Client(node, 'X-Service-');
  const url = `http://127.0.0.1:${node.port}/v1/snapshot`;
  const headers = { 'X-Service-Token': ROOT };
  const archive = await (await fetch(url, { headers })).arrayBuffer();
  for (let round = 0; round < ROUNDS; round += 1) {
    const made = await client.made('PUT', '/acl/token', {
      Policies: [{ Name: 'global-management' }],
    });
    const stranger = client.as(String(made.SecretID));
    let isOver = false;
    const writers = Array.from({ length: WRITERS }, async () => {
      while (!isOver) await stranger.put('/acl/token', { Description: 'stranger' });
    });
    const restored = await fetch(url, { method: 'PUT', headers, body: archive });
    t.equal(restored.status, 200, await restored.text());
    isOver = true;
    await Promise.all(writers);
    const { text } = await client.get('/acl/tokens');
    t.notMatch(text, 'stranger', `round ${round}`);
  }
});

t.test('restore: is refused at its end whose operator has lost the right meanwhile', async (t) => {
  const node = await runNode(t, { 'ports-cluster': '-1' });
  const client = new Client(node, 'X-Service-');
  const path = '/v1/snapshot';
  const saved = await fetch(`http://127.0.0.1:${node.port}${path}`, {
    headers: { 'X-Service-Token': ROOT },
  });
  const archive = Buffer.from(await saved.arrayBuffer());
  const made = await client.made('PUT', '/acl/token', {
    Policies: [{ Name: 'global-management' }],
  });
  const secret = String(made.SecretID);
  const sending = request({
    ...{ host: '127.0.0.1', port: node.port, path, method: 'PUT' },
    headers: { 'X-Service-Token': secret, 'Content-Length': archive.length },
  });
  const answer = new Promise<number | undefined>((resolve, reject) => {
    sending.on('response', (response) => resolve(response.resume().statusCode));
    sending.on('error', reject);
  });
  sending.write(archive.subarray(0, 100));
  // Where it has not begun by then it is refused as well, only sooner.
  await new Promise((resolve) => setTimeout(resolve, 300));
  const update = { Description: 'stripped', Policies: [] };
  await client.made('PUT', `/acl/token/${String(made.AccessorID)}`, update);
  await client.made('PUT', '/acl/policy', { Name: 'since' });
  sending.end(archive.subarray(100));
  t.equal(await answer, 403);
  const { text } = await client.get('/acl/policies');
  t.match(text, '"since"', 'nothing was restored');
});
