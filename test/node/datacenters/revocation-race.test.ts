// A global token is taken back while its holder makes local tokens in another datacenter, without a pause: once
// the revocation is acknowledged by all, there are no more of them than can be seen.

import t from 'tap';
import {
  everyoneKnows,
  runDatacenter,
  serverOf,
} from '../../support/running/running-datacenters.ts';

const WRITERS = 16;
const ROUNDS = 10;

t.test(
  'revocation: nothing is made behind it in a datacenter that has acknowledged it',
  async (t) => {
    const dc1 = await runDatacenter(t, { name: 'dc1' });
    const dc2 = await runDatacenter(t, { name: 'dc2', primary: dc1 });
    await everyoneKnows([dc1, dc2]);
    const { client } = serverOf(dc1);
    const there = serverOf(dc2).client;
    const count = async (): Promise<number> =>
      (await there.get('/acl/tokens?consistent')).list.length;
    for (let round = 0; round < ROUNDS; round += 1) {
      const made = await client.put('/acl/token?ack=all&ack_timeout=60s', {
        Policies: [{ Name: 'global-management' }],
      });
      t.equal(made.headers['x-service-ack'], 'all', made.text);
      const holder = there.as(String(made.json.SecretID));
      let isOver = false;
      let madeCount = 0;
      const writers = Array.from({ length: WRITERS }, async () => {
        while (!isOver) {
          const { status } = await holder.put('/acl/token', { Local: true });
          if (status === 200) madeCount += 1;
          else if (status === 403) return;
        }
      });
      while (madeCount < 5 * WRITERS) await new Promise((resolve) => setImmediate(resolve));
      const path = `/acl/token/${String(made.json.AccessorID)}?ack=all&ack_timeout=60s`;
      const taken = await client.send('DELETE', path);
      t.equal(taken.headers['x-service-ack'], 'all', taken.text);
      const seen = await count();
      isOver = true;
      await Promise.all(writers);
      t.equal(await count(), seen, `round ${round}`);
    }
  },
);
