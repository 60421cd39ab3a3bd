// A client that heard nothing sends its request again, to another server: what it is refused there stays
// refused, however late its first try comes to the leader.

import t from 'tap';
import { AclError } from '../../src/acl/error.ts';
import type { SecretId } from '../../src/acl/ids.ts';
import type { Call } from '../../src/service/call.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import { CallerResolver } from '../../src/service/rights/caller-resolver.ts';
import { RefusedRequests } from '../../src/service/writes/refused-requests.ts';
import { REQUEST_MEMORY_MS } from '../../src/state/rows/bookkeeping.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { groupOfThree, turn } from './asked-group.ts';
import { createHarness, refusalOf } from './harness.ts';

const MINE: Partial<Call> = { requestId: 'mine' };
const NAMED = { draft: { name: 'p1', rules: '' } };

t.test(
  'refused: what was refused at another server has no effect when it comes late',
  async (t) => {
    for (const other of [3, 1]) {
      const group = await groupOfThree();
      const arrives = await group.heldUp('policy.create', NAMED, MINE);
      const { value } = await group.at(3, 'policy.create', NAMED);
      const refusal = await refusalOf(group.at(other, 'policy.create', NAMED, MINE));
      t.match(refusal, /^duplicate: /, `by way of ${other}`);
      await group.at(3, 'policy.delete', { id: value.policy.id });
      const before = group.log.length;
      t.equal(await refusalOf(arrives()), refusal, 'in the same words');
      t.equal(group.log.length, before, 'nothing is proposed');
      t.equal(await refusalOf(group.at(1, 'policy.create', NAMED, MINE)), refusal, 'nor later');
      t.equal(await refusalOf(group.at(1, 'policy.create', NAMED, { requestId: 'new' })), 'ok');
    }
  },
);

t.test('refused: nor has a delete that was told to have found nothing', async (t) => {
  const group = await groupOfThree();
  const arrives = await group.heldUp('auth-method.delete', { name: 'm' }, MINE);
  t.equal((await group.at(3, 'auth-method.delete', { name: 'm' }, MINE)).value, false);
  await group.at(3, 'auth-method.create', { draft: { name: 'm', type: 'jwt', config: {} } });
  const { value, meta } = await arrives();
  t.equal(value, false);
  t.equal(meta.replayed, true);
  t.equal(group.server(1).machine.totals().authMethods, 1);
});

t.test('refused: nor has what nobody was known to have sent', async (t) => {
  const group = await groupOfThree();
  const secret = '5d2eb3f3-9d16-4b31-8b5e-6d3f52b2a001' as SecretId;
  const call = { ...MINE, secret };
  const arrives = await group.heldUp('policy.create', NAMED, call);
  t.match(await refusalOf(group.at(3, 'policy.create', NAMED, call)), /^token-unknown: /);
  const rules = { draft: { name: 'all', rules: 'acl = "write"' } };
  const { value } = await group.at(3, 'policy.create', rules);
  const policies = [{ id: value.policy.id }];
  await group.at(3, 'token.create', { draft: { secretId: secret, policies } });
  t.match(await refusalOf(arrives()), /^token-unknown: /);
  t.equal(await refusalOf(group.at(3, 'policy.create', NAMED, { secret, requestId: 'new' })), 'ok');
});

t.test(
  'refused: the id is free for another request, for another caller, and in time',
  async (t) => {
    const group = await groupOfThree();
    const { value } = await group.at(3, 'policy.create', NAMED);
    t.match(await refusalOf(group.at(2, 'policy.create', NAMED, MINE)), /^duplicate: /);
    await group.at(3, 'policy.delete', { id: value.policy.id });
    t.match(await refusalOf(group.at(2, 'policy.create', NAMED, MINE)), /^duplicate: /);
    const other = { draft: { name: 'p2', rules: '' } };
    t.equal(await refusalOf(group.at(2, 'policy.create', other, MINE)), 'ok');
    const nobody = { ...MINE, secret: 'nobody' as SecretId };
    t.match(await refusalOf(group.at(2, 'policy.create', NAMED, nobody)), /^token-unknown: /);
    const rest = { requestId: 'rest' };
    t.match(await refusalOf(group.at(2, 'policy.create', other, rest)), /^duplicate: /);
    group.clock.advance(REQUEST_MEMORY_MS - 1);
    const kept = await refusalOf(group.at(2, 'policy.create', NAMED, MINE));
    t.match(kept, /^duplicate: /, 'its last moment');
    group.clock.advance(1);
    t.match(await refusalOf(group.at(2, 'policy.create', other, rest)), /^duplicate: /);
    t.equal(await refusalOf(group.at(2, 'policy.create', NAMED, MINE)), 'ok');
  },
);

t.test('refused: a later leader decides anew', async (t) => {
  const group = await groupOfThree();
  const { value } = await group.at(3, 'policy.create', NAMED);
  t.match(await refusalOf(group.at(2, 'policy.create', NAMED, MINE)), /^duplicate: /);
  await group.at(3, 'policy.delete', { id: value.policy.id });
  group.lead(3);
  group.lead(1);
  t.equal(await refusalOf(group.at(2, 'policy.create', NAMED, MINE)), 'ok');
});

t.test('refused: who may not have an answer again has it when they may', async (t) => {
  const group = await groupOfThree();
  const rules = { name: 'all', rules: 'acl = "write"' };
  const { value } = await group.at(1, 'policy.create', { draft: rules });
  const { id } = value.policy;
  const made = await group.at(1, 'token.create', { draft: { policies: [{ id }] } });
  const call = { ...MINE, secret: made.value.token.secretId };
  const first = await group.at(2, 'policy.create', NAMED, call);
  await group.at(1, 'policy.update', { id, draft: { ...rules, rules: '' } });
  t.match(await refusalOf(group.at(2, 'policy.create', NAMED, call)), /^permission-denied: /);
  await group.at(1, 'policy.update', { id, draft: rules });
  const again = await group.at(2, 'policy.create', NAMED, call);
  t.equal(again.value.policy.id, first.value.policy.id);
});

const KNOWN = { isOfStranger: () => false };
const PROVEN = (): undefined => undefined;
const REFUSED = (): Promise<never> => Promise.reject(new AclError('duplicate', 'it is there'));

t.test(
  'refused: tries of one request run one after the other, and come to one outcome',
  async (t) => {
    const refused = new RefusedRequests(new FakeClock());
    const own = { ...KNOWN, request: 'a', term: 1 };
    let decide: (error: Error) => void = () => undefined;
    const first = refused.once(own, PROVEN, () => {
      return new Promise((_resolve, reject) => (decide = reject));
    });
    let runs = 0;
    const run = (): Promise<string> => {
      runs += 1;
      return Promise.resolve('done');
    };
    const others = [refused.once(own, PROVEN, run), refused.once(own, PROVEN, run)];
    t.equal(
      await refused.once({ ...own, request: 'b' }, PROVEN, run),
      'done',
      'others do not wait',
    );
    await turn();
    t.equal(runs, 1);
    decide(new AclError('duplicate', 'it is there'));
    for (const each of [first, ...others]) t.equal(await refusalOf(each), 'duplicate: it is there');
    t.equal(runs, 1);
  },
);

t.test(
  'refused: no try waits for an earlier one longer than its client waits for it',
  async (t) => {
    const clock = new FakeClock();
    const refused = new RefusedRequests(clock);
    const own = { ...KNOWN, request: 'a', term: 1 };
    let end: (output: string) => void = () => undefined;
    const first = refused.once(own, PROVEN, () => new Promise((resolve) => (end = resolve)));
    const again = refused.once(own, PROVEN, () => Promise.resolve('twice'));
    clock.advance(29_999);
    await turn();
    const later = refused.once(own, PROVEN, () => Promise.resolve('then'));
    clock.advance(1);
    const unknown = 'outcome-unknown: whether the write took effect is not known: ';
    t.equal(await refusalOf(again), `${unknown}an earlier try of it is under way`);
    end('done');
    t.equal(await first, 'done');
    t.equal(await later, 'then');
  },
);

t.test(
  'refused: a repeat does not wait for what the first try waits for when it is done',
  async (t) => {
    const waits: ((reached: 'all') => void)[] = [];
    const harness = await createHarness(
      {},
      {
        datacenters: () => ['dc1', 'dc2'],
        acknowledged: () => new Promise((resolve) => waits.push(resolve)),
      },
    );
    const call = { ...MINE, ack: 'all' as const };
    const firsts = [harness.run('policy.create', NAMED, call)];
    while (waits.length < 1) await turn();
    firsts.push(harness.run('policy.create', NAMED, call));
    while (waits.length < 2) await turn();
    const again = await harness.run('policy.create', NAMED, { ...MINE, ack: 'primary' });
    t.equal(again.meta.replayed, true);
    for (const resolve of waits) resolve('all');
    for (const each of firsts) t.equal((await each).value.policy.id, again.value.policy.id);
  },
);

t.test('refused: who ends lets nobody by who waits for another one', async (t) => {
  const refused = new RefusedRequests(new FakeClock());
  const own = { ...KNOWN, request: 'a', term: 1 };
  const ends: (() => void)[] = [];
  const run = (applied?: () => void): Promise<void> => {
    applied?.();
    return new Promise((resolve) => ends.push(resolve));
  };
  const first = refused.once(own, PROVEN, run);
  const second = refused.once(own, PROVEN, () => run());
  while (ends.length < 2) await turn();
  ends[0]!();
  await first;
  const third = refused.once(own, PROVEN, () => run());
  await turn();
  t.equal(ends.length, 2);
  ends[1]!();
  await second;
  while (ends.length < 3) await turn();
  ends[2]!();
  await third;
});

t.test('refused: what says nothing of the request is not remembered', async (t) => {
  const refused = new RefusedRequests(new FakeClock());
  const own = { ...KNOWN, request: 'a', term: 1 };
  const failures = [
    new LeaderAway(),
    new AclError('not-primary', 'it is another one'),
    new AclError('outcome-unknown', 'it was deposed'),
    new AclError('wait-timeout', 'it took effect'),
    new TypeError('a fault'),
  ];
  for (const failure of failures) {
    await t.rejects(refused.once(own, PROVEN, () => Promise.reject(failure)));
    t.equal(await refused.once(own, PROVEN, () => Promise.resolve('done')), 'done');
  }
});

t.test('refused: it is told again only by who leads still, in the same term', async (t) => {
  const refused = new RefusedRequests(new FakeClock());
  const own = { ...KNOWN, request: 'a', term: 1 };
  await t.rejects(refused.once(own, PROVEN, REFUSED));
  const unproven = refused.once(own, () => Promise.reject(new LeaderAway()), REFUSED);
  t.equal(await refusalOf(unproven), 'unavailable: No cluster leader');
  const run = (): Promise<string> => Promise.resolve('done');
  const overtaken = refused.once(
    own,
    async () => {
      await refused.once({ ...KNOWN, request: 'b', term: 2 }, PROVEN, run);
    },
    run,
  );
  t.equal(await refusalOf(overtaken), 'unavailable: No cluster leader');
  t.equal(await refusalOf(refused.once(own, PROVEN, run)), 'unavailable: No cluster leader');
  t.equal(await refused.once({ ...own, term: 2 }, PROVEN, run), 'done');
});

t.test('refused: what ends after its term is not remembered for the next one', async (t) => {
  const refused = new RefusedRequests(new FakeClock());
  const run = (): Promise<string> => Promise.resolve('done');
  const late = refused.once({ ...KNOWN, request: 'a', term: 1 }, PROVEN, async () => {
    await refused.once({ ...KNOWN, request: 'b', term: 2 }, PROVEN, run);
    return REFUSED();
  });
  t.equal(await refusalOf(late), 'duplicate: it is there');
  t.equal(await refused.once({ ...KNOWN, request: 'a', term: 2 }, PROVEN, run), 'done');
});

t.test('refused: what cannot be remembered is not refused for sure', async (t) => {
  const clock = new FakeClock();
  const refused = new RefusedRequests(clock, { knownMax: 2, strangersMax: 0 });
  const ask = (request: string): Promise<string> =>
    refusalOf(refused.once({ ...KNOWN, request, term: 1 }, PROVEN, REFUSED));
  t.equal(await ask('a'), 'duplicate: it is there');
  t.equal(await ask('b'), 'duplicate: it is there');
  t.match(await ask('c'), /^unavailable: nothing was written: .* 2 refusals are remembered/);
  t.equal(await ask('a'), 'duplicate: it is there');
  const run = (): Promise<string> => Promise.resolve('done');
  t.equal(
    await refused.once({ ...KNOWN, request: 'c', term: 1 }, PROVEN, run),
    'done',
    'writes go on',
  );
  clock.advance(REQUEST_MEMORY_MS);
  t.equal(await ask('c'), 'duplicate: it is there');
});

t.test(
  'refused: strangers use up their own room alone, and what they were told stays',
  async (t) => {
    const clock = new FakeClock();
    const refused = new RefusedRequests(clock, { knownMax: 1, strangersMax: 2 });
    const ask = (request: string, isStranger: boolean): Promise<string> => {
      const own = { request, term: 1, isOfStranger: () => isStranger };
      return refusalOf(refused.once(own, PROVEN, REFUSED));
    };
    const told = 'duplicate: it is there';
    t.equal(await ask('a', true), told);
    t.equal(await ask('b', true), told);
    t.match(
      await ask('c', true),
      /^unavailable: nothing was written: .* 2 refusals are remembered/,
    );
    t.equal(await ask('d', false), told, 'whoever is known has room');
    t.match(
      await ask('e', false),
      /^unavailable: nothing was written: .* 1 refusals are remembered/,
    );
    const run = (): Promise<string> => Promise.resolve('done');
    for (const request of ['a', 'b', 'd']) {
      const again = refused.once({ ...KNOWN, request, term: 1 }, PROVEN, run);
      t.equal(await refusalOf(again), told, 'whoever asks by then');
    }
    t.equal(await refused.once({ ...KNOWN, request: 'a', term: 2 }, PROVEN, run), 'done');
  },
);

t.test('refused: what refusals repeat of a request takes no more room than there is', async (t) => {
  const refused = new RefusedRequests(new FakeClock(), { knownMax: 0, strangersMax: 30 });
  const long = 'x'.repeat(1_000_000);
  const refuse = (request: string): Promise<string> => {
    const own = { request, term: 1, isOfStranger: () => true };
    const run = (): Promise<never> => Promise.reject(new AclError('invalid', `no "${long}" here`));
    return refusalOf(refused.once(own, PROVEN, run));
  };
  const told = await refuse('a');
  t.match(told, /^invalid: no "xxx.*x…x.*xxx" here$/);
  t.ok(told.length < 2100, 'the middle is left out');
  t.equal(await refuse('a'), told, 'a repeat is told the same');
  t.equal(await refuse('b'), told);
  t.match(await refuse('c'), /^unavailable: .* 2 refusals are remembered already/);
});

t.test('refused: whoever has no living token is a stranger', async (t) => {
  const { deps, clock, run } = await createHarness();
  const callers = new CallerResolver(deps);
  const draft = { expirationTtlNs: 60_000_000_000n };
  const { value } = await run('token.create', { draft });
  const { secretId } = value.token;
  t.equal(callers.isStranger(secretId), false);
  for (const secret of [undefined, 'anonymous', 'nobody', 'allow'] as (SecretId | undefined)[]) {
    t.equal(callers.isStranger(secret), true, String(secret));
  }
  clock.advance(60_001);
  t.equal(callers.isStranger(secretId), true, 'its time has passed');
});

t.test(
  'refused: whatever strangers send with ids, those with a token are refused for sure',
  async (t) => {
    const { run } = await createHarness();
    await run('policy.create', NAMED);
    const refuse = (requestId: string, secret?: string): Promise<string> => {
      const call = secret === undefined ? {} : { secret: secret as SecretId };
      return refusalOf(run('policy.create', NAMED, { ...call, requestId }));
    };
    for (let id = 0; id < 20_000; id += 1) await refuse(`${id}`, 'nobody');
    t.match(await refuse('one more', 'nobody'), /^unavailable: .* 20000 refusals are remembered/);
    t.match(await refuse('one more'), /^duplicate: /);
  },
);
