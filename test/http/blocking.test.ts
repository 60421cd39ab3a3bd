// Blocking queries: what ends a wait, and how many may wait.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { Parked } from '../../src/http/serving/parked.ts';
import type { ListResult, PolicyView, ReadResult } from '../../src/service/views.ts';
import { found, inTurn } from './connection-cases.ts';
import { listOf, policyView, readMeta, server } from './support.ts';

const missing = (index: number): ReadResult<PolicyView> => ({
  refusal: { code: 'not-found', message: 'Requested policy does not exist: ACL not found' },
  meta: readMeta(index),
});

t.test('blocking: an answer that is newer than the index comes at once', async (t) => {
  const { app, operations } = server({ 'policy.read': () => found(10) });
  for (const index of ['0', '9', '']) {
    t.equal((await app.inject(`/v1/acl/policy/x?index=${index}`)).statusCode, 200);
  }
  t.equal(operations.waits.length, 0);
});

t.test(
  'blocking: waits for the object, runs the operation again, gives the new answer',
  async (t) => {
    const { app, operations } = server({
      'policy.read': inTurn(found(10), found(11, 10), found(12)),
    });
    const answer = app.inject('/v1/acl/policy/x?index=10&wait=16s');
    const first = await operations.wait(1);
    t.same(first.target, { table: 'policies', object: undefined });
    t.equal(first.index, 10);
    t.equal(first.timeoutMs, 16_500, 'half of a sixteenth is the jitter of this test');
    first.end();
    const second = await operations.wait(2);
    t.equal(second.index, 11, 'another object of the table changed: the wait goes on from there');
    second.end();
    const { statusCode, headers } = await answer;
    t.equal(statusCode, 200);
    t.equal(headers['x-consul-index'], '12');
    t.equal(operations.calls.length, 3);
  },
);

t.test('blocking: an index that is not reached yet is waited for', async (t) => {
  const { app, operations } = server({
    'policy.read': inTurn(found(10), found(15), found(21)),
  });
  const answer = app.inject('/v1/acl/policy/x?index=20&wait=16s');
  (await operations.wait(1)).end();
  (await operations.wait(2)).end();
  t.equal((await answer).headers['x-consul-index'], '21');
});

t.test('blocking: the wait is capped, and 0 means the default', async (t) => {
  const cases: [string, number][] = [
    ['', 300_000],
    ['&wait=0s', 300_000],
    ['&wait=-5s', 300_000],
    ['&wait=60000ms', 60_000],
    ['&wait=20m', 600_000],
  ];
  for (const [wait, ms] of cases) {
    const { app, operations } = server({ 'policy.list': () => listOf([]) });
    const answer = app.inject(`/v1/acl/policies?index=10${wait}`);
    const parked = await operations.wait(1);
    t.equal(parked.timeoutMs, ms * (1 + 0.5 / 16), wait);
    await app.close();
    await answer;
  }
});

t.test('blocking: when the time is over the current answer is given', async (t) => {
  const { app, operations, clock } = server({ 'policy.read': () => found(10) });
  const answer = app.inject('/v1/acl/policy/x?index=99&wait=1s');
  const parked = await operations.wait(1);
  clock.nowMs += parked.timeoutMs;
  parked.end();
  t.equal((await answer).statusCode, 200);
  t.equal((await answer).headers['x-service-index'], '10');
});

t.test('blocking: a missing object is waited for, its creation ends the wait', async (t) => {
  const { app, operations } = server({
    'policy.read': inTurn(missing(10), missing(11), found(12)),
  });
  const answer = app.inject('/v1/acl/policy/x?index=10');
  (await operations.wait(1)).end();
  (await operations.wait(2)).end();
  t.equal((await answer).statusCode, 200);
  const at = server({ 'policy.read': () => missing(11) });
  const atOnce = await at.app.inject('/v1/acl/policy/x?index=10');
  t.equal(atOnce.statusCode, 404, 'the table is beyond the index already');
  t.equal(atOnce.headers['x-consul-index'], '11');
});

t.test('blocking: a deletion ends the wait with 404', async (t) => {
  const { app, operations } = server({ 'policy.read': inTurn(found(10), missing(11)) });
  const answer = app.inject('/v1/acl/policy/x?index=10');
  (await operations.wait(1)).end();
  t.equal((await answer).statusCode, 404);
});

t.test('blocking: a missing token is refused at once', async (t) => {
  const { app, operations } = server({
    'token.read': () => ({
      refusal: { code: 'token-not-found', message: 'token does not exist: ACL not found' },
      meta: readMeta(10),
    }),
  });
  const headers = { 'x-consul-token': 's' };
  const answer = await app.inject({ url: '/v1/acl/token/x?index=10', headers });
  t.equal(answer.statusCode, 403);
  t.equal(answer.body, 'token does not exist: ACL not found');
  t.equal(operations.waits.length, 0);
});

t.test('blocking: a state that went back ends every wait', async (t) => {
  const { app, operations } = server({
    'policy.list': inTurn(listOf([], { index: 10 }), listOf([], { index: 4 })),
  });
  const answer = app.inject('/v1/acl/policies?index=10');
  (await operations.wait(1)).end();
  t.equal((await answer).headers['x-consul-index'], '4');
});

t.test('blocking: a token that was revoked meanwhile ends the wait with 403', async (t) => {
  let isRevoked = false;
  const { app, operations } = server({
    'policy.read': () => {
      if (isRevoked) throw new AclError('token-unknown', 'ACL not found');
      return found(10);
    },
  });
  const answer = app.inject('/v1/acl/policy/x?index=10');
  const parked = await operations.wait(1);
  isRevoked = true;
  parked.end();
  t.equal((await answer).statusCode, 403);
  t.equal((await answer).body, 'ACL not found');
});

t.test('blocking: closing the server answers everyone who waits', async (t) => {
  const { app, operations } = server({ 'policy.list': () => listOf([[policyView()]]) });
  const answer = app.inject('/v1/acl/policies?index=10');
  await operations.wait(1);
  await app.close();
  t.equal((await answer).statusCode, 200);
  t.equal((await answer).json<unknown[]>().length, 1);
  const parked = new Parked(1);
  parked.close();
  t.ok(await parked.inPlace('a', async ({ isClosing }) => isClosing), 'nobody begins to wait then');
});

/** A list that says when it is let go, also where nothing of it was read. */
function listHeld(onReturn: () => void): ListResult<PolicyView> {
  const list = listOf([[policyView()]]);
  const slices: AsyncIterable<readonly PolicyView[]> = {
    [Symbol.asyncIterator]: () => {
      const inner = list.slices[Symbol.asyncIterator]();
      return {
        next: () => inner.next(),
        return: async () => {
          onReturn();
          return { done: true, value: undefined };
        },
      };
    },
  };
  return { ...list, slices };
}

t.test('blocking: lists that are not given let go of what they hold', async (t) => {
  let returned = 0;
  const { app, operations } = server({
    'policy.list': () =>
      listHeld(() => {
        returned += 1;
      }),
  });
  const answer = app.inject('/v1/acl/policies?index=10');
  const first = await operations.wait(1);
  t.equal(returned, 1);
  first.end();
  await operations.wait(2);
  t.equal(returned, 2, 'one that brings nothing new');
  await app.close();
  await answer;
  t.equal(returned, 3);
});

t.test(
  'blocking: so many may wait, and who finds no place is told so and holds nothing',
  async (t) => {
    let returned = 0;
    const onReturn = () => {
      returned += 1;
    };
    const { app, operations } = server(
      {
        'policy.list': () => listHeld(onReturn),
        'policy.read': () => found(10),
      },
      { blockingQueriesMax: 2 },
    );
    const waiting = [
      app.inject('/v1/acl/policy/x?index=10'),
      app.inject('/v1/acl/policy/x?index=10'),
    ];
    await operations.wait(2);
    const url = '/v1/acl/policies?index=10';
    const refused = await app.inject(url);
    t.equal(refused.statusCode, 503);
    t.equal(refused.body, '2 blocking queries wait already');
    t.equal(refused.headers['retry-after'], '1');
    t.equal((await app.inject({ url, headers: { 'x-consul-token': 's' } })).statusCode, 500);
    t.equal(returned, 2, 'their lists are let go');
    t.equal((await app.inject('/v1/acl/policies?index=9')).statusCode, 200, 'need not wait');
    t.equal(operations.waits.length, 2);
    await app.close();
    for (const answer of await Promise.all(waiting)) t.equal(answer.statusCode, 200);
  },
);

t.test('blocking: whoever has fewer takes a place of whoever has most', async (t) => {
  const { app, operations, metrics } = server(
    { 'policy.read': () => found(10) },
    { blockingQueriesMax: 4 },
  );
  const from = (remoteAddress: string) =>
    app.inject({ url: '/v1/acl/policy/x?index=10', remoteAddress });
  const greedy = [from('10.0.0.1'), from('10.0.0.1'), from('10.0.0.1'), from('10.0.0.1')];
  await operations.wait(4);
  t.equal((await from('10.0.0.1')).body, '4 blocking queries wait already');
  const modest = [from('10.0.0.2'), from('10.0.0.2')];
  const given = await Promise.all(greedy.slice(0, 2));
  for (const answer of given) {
    t.equal(answer.statusCode, 503, 'the oldest give way');
    t.match(answer.body, /^too many blocking queries wait, and most of them are of this client$/);
    t.equal(answer.headers['retry-after'], '1');
  }
  t.equal((await from('10.0.0.2')).statusCode, 503, 'nobody has more than these by two');
  t.match(metrics.prometheus(), /blocking_queries\{listener="http"\} 4/);
  await app.close();
  for (const answer of await Promise.all([...greedy.slice(2), ...modest])) {
    t.equal(answer.statusCode, 200);
  }
  t.match(metrics.prometheus(), /blocking_queries\{listener="http"\} 0/);
});

t.test('blocking: one that wakes for nothing keeps its place', async (t) => {
  let wake: () => void = () => undefined;
  const isAwake = new Promise<void>((resolve) => {
    wake = resolve;
  });
  const { app, operations } = server(
    {
      'policy.read': inTurn<ReturnType<typeof found> | Promise<ReturnType<typeof found>>>(
        found(10),
        isAwake.then(() => found(11, 10)),
        found(12),
      ),
      'role.read': () => ({ refusal: { code: 'not-found', message: '' }, meta: readMeta(10) }),
    },
    { blockingQueriesMax: 1 },
  );
  const first = app.inject('/v1/acl/policy/x?index=10');
  (await operations.wait(1)).end();
  const other = () => app.inject('/v1/acl/role/x?index=10');
  t.equal((await other()).statusCode, 503);
  wake();
  (await operations.wait(2)).end();
  t.equal((await first).headers['x-service-index'], '12');
  const next = other();
  (await operations.wait(3)).end();
  await app.close();
  t.equal((await next).statusCode, 404, 'and then it is free');
});
