// The way to other datacenters: what is meant for one is for its own servers, wherever they are thought to be.

import t from 'tap';
import { RpcError } from '../../cluster/transport/rpc-error.ts';
import { DatacenterLine } from '../../src/node/datacenter-line.ts';
import { PLAIN_CALL } from '../../src/service/call.ts';

t.test('datacenter line: every call names the datacenter that it is for', async (test) => {
  const meantFor: (string | undefined)[] = [];
  const line = new DatacenterLine({
    addresses: () => [
      { host: 'one', port: 1 },
      { host: 'two', port: 1 },
    ],
    countMax: 1,
    call: async ({ host }, { datacenter }) => {
      meantFor.push(datacenter);
      throw new RpcError('unreachable', `${host} is of another datacenter`);
    },
  });
  const errand = { name: 'token.read', input: {}, call: PLAIN_CALL };
  await test.rejects(line.run('dc2', errand), /two is of another datacenter/);
  const wait = {
    target: { table: 'tokens', object: undefined },
    index: 1,
    timeoutMs: 1,
    cancel: new AbortController().signal,
  } as const;
  await test.rejects(line.waitForChange('dc3', wait), /two is of another datacenter/);
  test.same(meantFor, ['dc2', 'dc2', 'dc3', 'dc3']);
});

t.test(
  'datacenter line: of a lost answer it says whether a write may have been done',
  async (test) => {
    const line = new DatacenterLine({
      addresses: () => [{ host: 'one', port: 1 }],
      countMax: 1,
      call: async () => {
        throw new RpcError('lost', 'the answer is lost');
      },
    });
    const run = (name: string) => line.run('dc2', { name, input: {}, call: PLAIN_CALL });
    const lost = { code: 'outcome-unknown' };
    const read = { ...lost, message: 'nothing was read: the answer is lost' };
    for (const name of ['token.read', 'replication.status'])
      await test.rejects(run(name), read, name);
    const message = 'whether the write took effect is not known: the answer is lost';
    for (const name of ['token.delete', 'of a later release']) {
      await test.rejects(run(name), { ...lost, message }, name);
    }
  },
);
