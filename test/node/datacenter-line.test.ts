// The way to other datacenters: what is meant for one is for its own servers, wherever they are thought to be.
// And how long an answer is waited for, on this way and on the one to the own leader.

import t from 'tap';
import { RpcError } from '../../cluster/transport/rpc-error.ts';
import { DatacenterLine } from '../../src/node/datacenter-line.ts';
import { Forwarding } from '../../src/node/forwarding.ts';
import { type Call, PLAIN_CALL } from '../../src/service/call.ts';
import { FakeClock } from '../support/fake-clock.ts';

t.test('datacenter line: every call names the datacenter that it is for', async (test) => {
  const meantFor: (string | undefined)[] = [];
  const line = new DatacenterLine({
    addresses: () => [
      { host: 'one', port: 1 },
      { host: 'two', port: 1 },
    ],
    countMax: 1,
    ackTimeoutMs: 5_000,
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
      ackTimeoutMs: 5_000,
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

t.test('calls: a write has as much longer as it may wait for other datacenters', async (test) => {
  const deadlines: number[] = [];
  const call = async (_to: unknown, { deadlineMs }: { readonly deadlineMs: number }) => {
    deadlines.push(deadlineMs);
    throw new RpcError('timeout', 'no answer');
  };
  const line = new DatacenterLine({
    ...{ addresses: () => [{ host: 'one', port: 1 }], call, countMax: 1, ackTimeoutMs: 5_000 },
  });
  const group = { self: 1, leader: () => ({ node: 2, term: 1 }), onLeaderChanged: () => () => {} };
  const forwarding = new Forwarding({
    ...{ line: { ...group, call }, clock: new FakeClock(), countMax: 1, ackTimeoutMs: 5_000 },
  });
  test.teardown(() => forwarding.close());
  const asked = async (name: 'token.delete' | 'replication.status', more: Partial<Call>) => {
    deadlines.length = 0;
    const input = { accessorId: 'any' } as never;
    const sent = { ...PLAIN_CALL, ...more };
    await test.rejects(line.run('dc2', { name, input, call: sent }), /no answer/);
    await test.rejects(forwarding.runAtLeader(name, input, sent), /no answer/);
    return deadlines;
  };
  const both = (ms: number): readonly number[] => [ms, ms];
  test.same(await asked('token.delete', {}), both(35_000), 'as the setting says');
  test.same(await asked('token.delete', { ackTimeoutMs: 120_000.5 }), both(150_001));
  test.same(await asked('token.delete', { ackTimeoutMs: 9_999_999 }), both(630_000), 'no more');
  test.same(await asked('replication.status', {}), both(30_000), 'a read waits for nobody');
});
