// Who leads: what it says of itself, when its reign begins, and what runs while it lasts.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import { groupOfThree } from './asked-group.ts';
import { CALL } from './harness.ts';

const NAMED = { draft: { name: 'p1', rules: '' } };

t.test('leadership: the duties run where the reign is, and nowhere else', async (t) => {
  const group = await groupOfThree();
  const duties = (): readonly number[] => group.servers.map((server) => server.duties);
  t.same(duties(), [1, 0, 0]);
  group.lead(3);
  await group.settled(Promise.resolve(group.server(3).leadership.reign()));
  t.same(duties(), [0, 0, 1]);
  group.lead(0);
  t.same(duties(), [0, 0, 0]);
  await t.rejects(Promise.resolve(group.server(3).leadership.reign()), { code: 'unavailable' });
});

t.test('leadership: what a server without a leader says of its last contact grows', async (t) => {
  const group = await groupOfThree();
  const contact = () => group.server(2).leadership.contact();
  t.same(contact(), { isLeader: false, knownLeader: true, lastContactMs: 7 });
  group.server(2).heardMs = 5_000;
  group.clock.advance(20);
  t.equal(contact().lastContactMs, 27, 'what was there once is there');
  group.server(2).heardMs = 7;
  group.clock.advance(20);
  t.equal(contact().lastContactMs, 7);
  group.lead(0);
  group.clock.advance(300);
  t.same(contact(), { isLeader: false, knownLeader: false, lastContactMs: 307 });
  t.same(group.server(1).leadership.contact().knownLeader, false);
});

t.test(
  'leadership: a leader that hears no quorum says since when, and not that it knows',
  async (t) => {
    const group = await groupOfThree();
    const server = group.server(1);
    const contact = () => server.leadership.contact();
    t.same(contact(), { isLeader: true, knownLeader: true, lastContactMs: 0 });
    server.quorumMs = 1_200;
    group.clock.advance(20);
    t.same(contact(), { isLeader: true, knownLeader: true, lastContactMs: 1_200 });
    group.clock.advance(15);
    t.same(contact(), { isLeader: true, knownLeader: true, lastContactMs: 1_215 });
    server.quorumMs = 0;
    group.clock.advance(5);
    t.same(contact(), { isLeader: true, knownLeader: true, lastContactMs: 0 });
  },
);

t.test(
  'leadership: who leads and has no reign yet does not say that it has everything',
  async (t) => {
    const group = await groupOfThree();
    const server = group.server(3);
    t.equal(server.leadership.contact().lastContactMs, 7);
    const { propose } = server.deps;
    Object.assign(server.deps, { propose: () => new Promise(() => undefined) });
    group.lead(3);
    group.clock.advance(400);
    t.same(server.leadership.contact(), { isLeader: true, knownLeader: true, lastContactMs: 407 });
    Object.assign(server.deps, { propose });
    group.lead(2);
    t.equal(server.leadership.contact().lastContactMs, 7);
  },
);

t.test('leadership: who waits for a reign that does not come goes elsewhere', async (t) => {
  const group = await groupOfThree();
  const { deps } = group.server(3);
  const { propose } = deps;
  Object.assign(deps, { propose: () => new Promise(() => undefined) });
  group.lead(3);
  const running = group.server(3).door.run('policy.create', NAMED, CALL);
  await new Promise<void>((resolve) => setImmediate(resolve));
  Object.assign(deps, { propose });
  group.lead(2);
  t.match((await group.settled(running)).value.policy, { name: 'p1' });
});

t.test('leadership: a preparation that fails is tried again, and writes wait for it', async (t) => {
  const group = await groupOfThree();
  group.lead(2);
  await group.settled(Promise.resolve(group.server(2).leadership.reign()));
  const { deps } = group.server(3);
  const { propose } = deps;
  let failures = 2;
  Object.assign(deps, {
    propose: (...given: Parameters<typeof propose>) => {
      failures -= 1;
      return failures >= 0
        ? Promise.reject(new AclError('unavailable', 'the queue is full'))
        : propose(...given);
    },
  });
  group.lead(3);
  const { value } = await group.at(3, 'policy.create', NAMED);
  t.equal(value.policy.name, 'p1');
  t.ok(failures < 0);
});
