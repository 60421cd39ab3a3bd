// Writers by a token that an archive does not know, while that archive becomes the state: nothing of theirs
// gets into it.

import t from 'tap';
import { Client, ROOT, runNode } from '../support/running-node.ts';

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
