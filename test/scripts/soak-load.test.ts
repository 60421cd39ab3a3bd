// What the clients of a soak make of servers that forget.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { SoakLoad } from '../../scripts/soak/soak-load.ts';
import { randomFrom } from '../hard/crash-load.ts';
import { until } from '../support/running/running-group.ts';

t.test('soak: a token that is not there any more when it is changed was lost', async (t) => {
  let refusedCount = 0;
  const server = createServer((request, answer) => {
    request.resume();
    const isMade = request.method === 'PUT' && request.url === '/v1/acl/token';
    if (isMade) answer.end(JSON.stringify({ AccessorID: 'a-1', SecretID: 's-1' }));
    else if (request.method === 'GET' || request.method === 'POST') answer.end('[]');
    else {
      refusedCount += 1;
      answer.writeHead(404).end('Cannot find token');
    }
  });
  t.teardown(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const http = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const load = new SoakLoad({
    cluster: {
      management_token: 'management',
      nodes: [{ name: 'node-1', datacenter: 'dc1', http }],
    } as never,
    ...{ clientsPerNode: 1, restMs: 1, random: randomFrom(1) },
  });
  load.start();
  await until('a change is refused', () => refusedCount > 0);
  await load.stop();
  t.match(load.faults, [/^node-1: token a-1 is not there, acknowledged was soak \d+$/]);
});
