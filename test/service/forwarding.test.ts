// Writes on any server of several: they run at the leader, once, whatever is lost on the way; what is
// not known is said to be not known; and no leader of the past speaks or lets anybody write.

import t from 'tap';
import type { SecretId } from '../../src/acl/ids.ts';
import { HOUR_NS } from '../../src/acl/values/duration.ts';
import { decodeAnswer } from '../../src/node/calls/call-frames.ts';
import type { Call } from '../../src/service/call.ts';
import { createOperations } from '../../src/service/create-operations.ts';
import { CATCH_UP_MS } from '../../src/service/writes/run-write.ts';
import { uuidNumbered } from '../support/fake-random.ts';
import { AskedGroup, groupOfThree, turn } from './asked-group.ts';
import { authMethods, CALL, refusalOf, SETTINGS } from './harness.ts';

/** A template of a binding rule, not of this language. */
const NAME_OF_LOGIN = ['$', '{value.name}'].join('');
const STALE: Partial<Call> = { consistency: 'stale' };

const NAMED = { draft: { name: 'p1', rules: '' } };
const OTHER = { draft: { name: 'p2', rules: '' } };

t.test('forwarding: a write runs at the leader, and is there where it was asked for', async (t) => {
  const group = await groupOfThree();
  const { value, meta } = await group.at(2, 'token.create', { draft: { description: 'x' } });
  t.equal(group.arrived, 1);
  t.equal(group.server(2).proposals, 0);
  t.match(value.token, { description: 'x' });
  t.equal(meta.replayed, false);
  const { accessorId } = value.token;
  const read = await group.at(2, 'token.read', { accessorId, expanded: false }, STALE);
  t.same(read.value?.token, value.token, 'a stale read right here finds it');
  t.equal(group.server(1).counts.get('acl.token.upsert'), 1, 'counted where it ran');
  t.equal(group.server(2).counts.get('acl.token.upsert'), undefined);
});

t.test('forwarding: what the leader refuses is refused in the same words', async (t) => {
  const group = await groupOfThree();
  await group.at(2, 'policy.create', NAMED);
  t.equal(
    await refusalOf(group.at(3, 'policy.create', NAMED)),
    'duplicate: Invalid Policy: A Policy with Name "p1" already exists',
  );
  const unknown = { secret: 'nobody' as SecretId };
  t.equal(
    await refusalOf(group.at(3, 'policy.create', NAMED, unknown)),
    'token-unknown: ACL not found',
  );
  t.equal(group.server(1).counts.get('acl.denied'), 1, 'counted once, where it was decided');
  t.equal(group.server(3).counts.get('acl.denied'), undefined);
});

t.test(
  'forwarding: what operators do is carried for nobody whom this server does not allow it',
  async (t) => {
    const settingsOf = (node: number) =>
      ({ defaultPolicy: node === 1 ? 'allow' : 'deny' }) as const;
    const group = new AskedGroup({ count: 3, settings: SETTINGS, settingsOf, authMethods });
    group.lead(1);
    await group.settled(Promise.resolve(group.server(1).leadership.reign()));
    const nobody = { secret: undefined };
    for (const name of ['datacenter.remove', 'datacenter.allow'] as const) {
      const input = { name: 'dc2', isForced: true };
      const says = /^permission-denied: .*anonymous token lacks permission 'operator:write'/;
      t.match(await refusalOf(group.at(2, name, input, nobody)), says, name);
      t.equal(group.arrived, 0);
      t.equal((await group.at(1, name, input, nobody)).value, false, 'the leader allows it');
      t.equal((await group.at(2, name, input)).value, false, 'who has the right');
      group.arrived = 0;
    }
    t.equal(group.server(2).counts.get('acl.denied'), 2, 'counted where it was decided');

    // A right that goes between two tries says nothing of the first one.
    const rules = { draft: { name: 'operators', rules: 'operator = "write"' } };
    await group.at(1, 'policy.create', rules);
    const draft = { policies: [{ name: 'operators' }] };
    const { token } = (await group.at(1, 'token.create', { draft })).value;
    group.faults.push('lose-answer');
    const call = { ...CALL, secret: token.secretId };
    const running = group
      .server(2)
      .door.run('datacenter.allow', { name: 'dc2', isForced: false }, call);
    while (group.arrived === 0) await turn();
    const { accessorId } = token;
    await group.at(1, 'token.update', { accessorId, draft: { policies: [] } });
    group.lead(3);
    t.match(await refusalOf(group.settled(running)), /^outcome-unknown: /);
  },
);

t.test('forwarding: whatever is lost on the way, the write is applied once', async (t) => {
  for (const fault of ['lose-answer', 'lose-question', 'unreachable', 'refused'] as const) {
    const group = await groupOfThree();
    const before = group.log.length;
    group.faults.push(fault);
    const { value, meta } = await group.at(2, 'token.create', { draft: { description: fault } });
    t.equal(group.log.length, before + 1, `${fault}: one entry`);
    t.equal(group.server(1).machine.totals().tokens, 3, `${fault}: one token`);
    t.equal(meta.replayed, false, 'the caller repeated nothing');
    const { accessorId } = value.token;
    t.equal(group.server(3).machine.token(accessorId)?.secretId, value.token.secretId);
    t.equal(group.digests().size, 1);
  }
});

t.test('forwarding: an outcome is lost and the leader with it; the next one knows', async (t) => {
  const group = await groupOfThree();
  group.faults.push('lose-answer');
  const running = group.server(2).door.run('policy.create', NAMED, CALL);
  await new Promise<void>((resolve) => setImmediate(resolve));
  group.lead(3);
  const { value } = await group.settled(running);
  t.equal(value.policy.name, 'p1');
  t.equal(group.server(1).machine.totals().policies, 3);
});

t.test('forwarding: the request id of the caller is kept, and told of', async (t) => {
  const group = await groupOfThree();
  const call = { requestId: 'mine' };
  group.faults.push('lose-answer');
  const first = await group.at(2, 'policy.create', NAMED, call);
  t.equal(first.meta.replayed, true);
  const again = await group.at(3, 'policy.create', NAMED, call);
  t.same(again, first);
});

t.test(
  'forwarding: without a leader writes are refused in time, and go through in time',
  async (t) => {
    const group = await groupOfThree();
    group.lead(0);
    const startMs = group.clock.monotonicMs();
    for (const node of [1, 2]) {
      t.equal(
        await refusalOf(group.at(node, 'policy.create', NAMED)),
        'unavailable: No cluster leader',
      );
    }
    t.ok(group.clock.monotonicMs() - startMs <= 2 * SETTINGS.leaderWaitMs + 500);
    const waiting = group.server(2).door.run('policy.create', NAMED, CALL);
    group.clock.advance(SETTINGS.leaderWaitMs / 2);
    group.lead(3);
    t.match((await group.settled(waiting)).value.policy, { name: 'p1' });
    t.equal(group.server(1).machine.totals().policies, 3);
  },
);

t.test('forwarding: a write whose client is gone is not begun again', async (t) => {
  const group = await groupOfThree();
  group.lead(0);
  let isGone = false;
  const gone = () => isGone;
  const { door, machine } = group.server(2);
  const abandoned = refusalOf(Promise.resolve(door.answer('policy.create', NAMED, CALL, gone)));
  const kept = door.answer('policy.create', OTHER, CALL, () => false);
  await turn();
  group.clock.advance(SETTINGS.leaderWaitMs / 2);
  isGone = true;
  group.lead(3);
  t.equal(await group.settled(abandoned), 'unavailable: No cluster leader');
  t.match((await group.settled(Promise.resolve(kept))).value.policy, { name: 'p2' });
  t.equal(machine.totals().policies, 3, 'the built-in ones, and the other one');
  let reason: string | undefined = 'not open yet';
  const opens = async () => {
    await Promise.resolve();
    reason = undefined;
  };
  Object.assign(group.server(1).deps, { notOpenBecause: () => reason, opens });
  const early = createOperations(group.server(1).deps).answer('policy.create', NAMED, CALL, gone);
  t.match(await refusalOf(group.settled(Promise.resolve(early))), /^unavailable: .* is gone$/);
});

t.test('forwarding: a leader out of reach has done nothing, and that is known', async (t) => {
  const group = await groupOfThree();
  group.faults.push(...Array.from({ length: 1000 }, () => 'unreachable' as const));
  t.equal(await refusalOf(group.at(2, 'policy.create', NAMED)), 'unavailable: No cluster leader');
});

t.test(
  'forwarding: who is asked and does not lead says so, and the next one is found',
  async (t) => {
    const group = await groupOfThree();
    group.lead(3, [2]);
    const running = group.server(2).door.run('policy.create', NAMED, CALL);
    for (let turn = 0; turn < 20; turn += 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    t.equal(group.arrived, 1, 'the old leader was asked');
    group.server(2).hearOfLeader(3, group.term);
    t.match((await group.settled(running)).value.policy, { name: 'p1' });
    t.equal(group.server(1).machine.totals().policies, 3);
  },
);

t.test('forwarding: a new leader is asked at once', async (t) => {
  const group = await groupOfThree();
  group.lead(0);
  let isOver = false;
  const running = group.server(2).door.run('policy.create', NAMED, CALL);
  void running.then(() => {
    isOver = true;
  });
  await new Promise<void>((resolve) => setImmediate(resolve));
  group.lead(3);
  for (let turn = 0; turn < 50; turn += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  t.ok(isOver, 'while the clock stood still');
});

t.test('forwarding: what is not known in the end is said to be not known', async (t) => {
  const group = await groupOfThree();
  group.faults.push('lose-answer');
  const running = group.server(2).door.run('policy.create', NAMED, CALL);
  await new Promise<void>((resolve) => setImmediate(resolve));
  group.lead(0);
  t.match(await refusalOf(group.settled(running)), /^outcome-unknown: /);
  t.equal(group.server(3).machine.totals().policies, 3, 'it did take effect');
});

/** Somebody else makes it meanwhile, so that the next try is refused. */
async function takeName(group: AskedGroup, node: number): Promise<() => Promise<unknown>> {
  const { value } = await group.at(node, 'policy.create', NAMED);
  return () => group.at(node, 'policy.delete', { id: value.policy.id });
}

t.test('forwarding: what was held up on its way is nothing to a later leader', async (t) => {
  const group = await groupOfThree();
  group.faults.push('late');
  const running = group.server(2).door.run('policy.create', NAMED, CALL);
  await new Promise<void>((resolve) => setImmediate(resolve));
  group.lead(3, [2]);
  const free = await takeName(group, 3);
  group.server(2).hearOfLeader(3, group.term);
  t.match(await refusalOf(group.settled(running)), /^duplicate: /, 'the client is told for sure');
  await free();
  group.lead(1);
  const before = group.server(1).machine.totals().policies;
  const [arrive] = group.late;
  const answered = group.settled(arrive!()).then(decodeAnswer);
  t.equal(await refusalOf(answered), 'unavailable: No cluster leader', 'of another term');
  t.equal(group.server(1).machine.totals().policies, before, 'and has no effect');
});

t.test('forwarding: a refusal says nothing of a try that may still be on its way', async (t) => {
  for (const [leader, says] of [
    [1, /^outcome-unknown: /],
    [3, /^duplicate: /],
  ] as const) {
    const group = await groupOfThree();
    group.faults.push('lose-question');
    const running = group.server(2).door.run('policy.create', NAMED, CALL);
    if (leader !== 1) group.lead(leader);
    await takeName(group, leader);
    t.match(await refusalOf(group.settled(running)), says);
  }
});

t.test('forwarding: nothing to delete says nothing of a delete on its way, either', async (t) => {
  for (const [leader, says] of [
    [1, /^outcome-unknown: /],
    [3, /^ok$/],
  ] as const) {
    const group = await groupOfThree();
    group.faults.push('lose-question');
    const running = group.server(2).door.run('auth-method.delete', { name: 'm' }, CALL);
    if (leader !== 1) group.lead(leader);
    t.match(await refusalOf(group.settled(running)), says);
    t.equal((await group.at(2, 'auth-method.delete', { name: 'm' })).value, false);
  }
});

/** A token that may write, and what takes that from it. */
async function writerOf(group: AskedGroup): Promise<{
  readonly secret: SecretId;
  readonly end: () => Promise<unknown>;
  readonly deny: () => Promise<unknown>;
}> {
  const rules = { draft: { name: 'writers', rules: 'acl = "write"' } };
  const { id } = (await group.at(1, 'policy.create', rules)).value.policy;
  const { token } = (await group.at(1, 'token.create', { draft: { policies: [{ id }] } })).value;
  const { accessorId } = token;
  return {
    secret: token.secretId,
    end: () => group.at(3, 'token.delete', { accessorId }),
    deny: () => group.at(3, 'policy.update', { id, draft: { name: 'writers', rules: '' } }),
  };
}

t.test(
  'forwarding: who is refused for a right that is gone is not told that nothing was done',
  async (t) => {
    const withheld =
      /^permission-denied: .* lacks permission 'acl:write'.* \(the request took effect when it came before; its answer is not given again\)$/;
    for (const [gone, says] of [
      ['end', /^outcome-unknown: /],
      ['deny', withheld],
    ] as const) {
      const group = await groupOfThree();
      const writer = await writerOf(group);
      group.faults.push('lose-answer');
      const running = group
        .server(2)
        .door.run('policy.create', NAMED, { ...CALL, secret: writer.secret });
      await new Promise<void>((resolve) => setImmediate(resolve));
      group.lead(3);
      await writer[gone]();
      t.match(await refusalOf(group.settled(running)), says, gone);
      t.equal(group.server(3).machine.totals().policies, 4, 'it did take effect');
    }
  },
);

t.test('forwarding: a leader repeats by itself only what has a request id', async (t) => {
  const group = await groupOfThree();
  group.server(1).loseNextOutcome = true;
  t.match(await refusalOf(group.at(1, 'policy.create', NAMED)), /^outcome-unknown: /);
  const tokensBefore = group.server(1).machine.totals().tokens;
  group.server(1).loseNextOutcome = true;
  t.match(await refusalOf(group.at(1, 'token.create', { draft: {} })), /^outcome-unknown: /);
  // Of policies the name would keep a second one out.
  t.equal(group.server(1).machine.totals().tokens, tokensBefore + 1);
  group.server(1).loseNextOutcome = true;
  const other = { draft: { name: 'p2', rules: '' } };
  const { value } = await group.at(1, 'policy.create', other, { requestId: 'mine' });
  t.equal(value.policy.name, 'p2');
  t.equal(group.server(1).machine.totals().policies, 4);
});

t.test('forwarding: a bootstrap whose answer is lost locks nobody out', async (t) => {
  const settings = { ...SETTINGS, initialManagementSecret: undefined };
  const group = new AskedGroup({ count: 3, settings, authMethods });
  group.lead(1);
  group.faults.push('lose-answer');
  // An empty secret is none.
  const { value, meta } = await group.at(2, 'bootstrap', { secret: '' });
  t.equal(meta.replayed, false, 'nobody but the server has repeated anything');
  const self = await group.at(3, 'token.read-self', {}, { secret: value.token.secretId });
  t.equal(self.value?.token.accessorId, value.token.accessorId);
  t.match(await refusalOf(group.at(3, 'bootstrap', { secret: undefined })), /^permission-denied: /);
});

t.test('forwarding: nor does one whose outcome is lost at the leader itself', async (t) => {
  const settings = { ...SETTINGS, initialManagementSecret: undefined };
  const group = new AskedGroup({ count: 3, settings, authMethods });
  group.lead(1);
  await group.settled(Promise.resolve(group.server(1).leadership.reign()));
  group.server(1).loseNextOutcome = true;
  const { value } = await group.at(1, 'bootstrap', { secret: undefined });
  t.match(value.token.description, /^Bootstrap Token/);
});

t.test('forwarding: logins run anywhere, and an OIDC login may end elsewhere', async (t) => {
  const group = await groupOfThree();
  const draft = { name: 'm', type: 'jwt', config: {} };
  await group.at(2, 'auth-method.create', { draft });
  const rule = { authMethod: 'm', bindType: 'service', bindName: NAME_OF_LOGIN };
  await group.at(3, 'binding-rule.create', { draft: rule });
  const login = { authMethod: 'm', bearerToken: '{"name":"web"}', meta: {}, namespace: undefined };
  group.faults.push('lose-answer');
  const made = await group.at(2, 'login', login, { secret: undefined });
  t.match(made.value.token.serviceIdentities, [{ serviceName: 'web' }]);
  const { secretId } = made.value.token;
  t.equal((await group.at(3, 'logout', {}, { secret: secretId })).value, true);

  await group.at(2, 'auth-method.create', {
    draft: { ...draft, name: 'o', type: 'oidc', maxTokenTtlNs: HOUR_NS },
  });
  await group.at(3, 'binding-rule.create', { draft: { ...rule, authMethod: 'o' } });
  const begun = { authMethod: 'o', redirectUri: 'http://x/', clientNonce: 'n', meta: {} };
  await group.at(2, 'oidc.auth-url', { ...begun, namespace: undefined }, { secret: undefined });
  const came = { authMethod: 'o', state: 'state-1', code: '{"name":"api"}', clientNonce: 'n' };
  const ended = { ...came, namespace: undefined };
  const token = await group.at(3, 'oidc.callback', ended, { secret: undefined });
  t.match(token.value.token.serviceIdentities, [{ serviceName: 'api' }]);
  t.match(
    await refusalOf(group.at(2, 'oidc.callback', ended, { secret: undefined, requestId: 'b' })),
    /^login-refused: /,
    'a callback works once, wherever it lands',
  );
});

t.test(
  'forwarding: who uses up a state and loses the answer is not told of a refusal',
  async (t) => {
    for (const name of ['oidc.callback', 'oidc.explain'] as const) {
      const group = await groupOfThree();
      const draft = { name: 'o', type: 'oidc', config: {}, maxTokenTtlNs: HOUR_NS };
      await group.at(2, 'auth-method.create', { draft });
      const common = { authMethod: 'o', clientNonce: 'n', namespace: undefined };
      await group.at(2, 'oidc.auth-url', { ...common, redirectUri: 'http://x/', meta: {} });
      group.faults.push('lose-answer');
      const ended = { ...common, state: 'state-1', code: '{"name":"api"}' };
      t.match(await refusalOf(group.at(2, name, ended)), /^outcome-unknown: /, name);
    }
  },
);

t.test('forwarding: a leader that was replaced unaware refuses nothing of its own', async (t) => {
  const group = await groupOfThree();
  group.server(1).isApplying = false;
  group.lead(2, [1]);
  await group.settled(Promise.resolve(group.server(2).leadership.reign()));
  const { value } = await group.at(2, 'policy.create', NAMED);
  t.equal(group.server(1).machine.policy(value.policy.id), undefined, 'it knows nothing of it');
  const { id } = value.policy;
  const update = { id, draft: { name: 'p1', rules: 'acl = "read"' } };
  const updating = group.server(1).door.run('policy.update', update, CALL);
  const missing = { id: uuidNumbered(99) };
  const deleting = group.server(1).door.run('policy.delete', missing, CALL);
  for (let turn = 0; turn < 20; turn += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  group.server(1).isApplying = true;
  group.server(1).hearOfLeader(2, group.term);
  t.match((await group.settled(updating)).value.policy, { rules: 'acl = "read"' });
  t.equal((await group.settled(deleting)).value, false);
});

t.test('forwarding: a refusal is looked at again when the state was behind', async (t) => {
  const group = await groupOfThree();
  group.server(1).isApplying = false;
  group.lead(2, [1]);
  const { value } = await group.at(2, 'policy.create', NAMED);
  // It leads again, and has not noticed that it did not for a while.
  group.lead(1, [1]);
  const { id } = value.policy;
  const update = { id, draft: { name: 'p1', rules: 'acl = "read"' } };
  const running = group.server(1).door.run('policy.update', update, CALL);
  await new Promise<void>((resolve) => setImmediate(resolve));
  group.server(1).isApplying = true;
  t.match((await group.settled(running)).value.policy, { rules: 'acl = "read"' });
});

t.test('forwarding: a write is authorized and proposed under one reign', async (t) => {
  const group = await groupOfThree();
  const { deps } = group.server(1);
  let checks = 0;
  let release: () => void = () => undefined;
  const type = deps.authMethods.types.jwt as { checkConfig: (method: unknown) => Promise<void> };
  const { checkConfig } = type;
  t.teardown(() => {
    type.checkConfig = checkConfig;
  });
  type.checkConfig = async () => {
    checks += 1;
    if (checks > 1) return;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
  };
  const draft = { name: 'm', type: 'jwt', config: {} };
  const running = group.server(1).door.run('auth-method.create', { draft }, CALL);
  while (checks === 0) await new Promise<void>((resolve) => setImmediate(resolve));
  group.lead(2);
  group.lead(1);
  await group.settled(Promise.resolve(group.server(1).leadership.reign()));
  release();
  t.equal((await group.settled(running)).value.method.name, 'm');
  t.equal(checks, 2, 'it was run again as a whole');
});

t.test(
  'forwarding: a new leader takes no write before it has applied what came before',
  async (t) => {
    const group = await groupOfThree();
    const made = await group.at(1, 'token.create', { draft: { description: 'x' } });
    group.server(2).isApplying = false;
    const { accessorId } = made.value.token;
    t.equal((await group.at(1, 'token.delete', { accessorId })).value, true);
    group.lead(2);
    group.server(2).isApplying = true;
    const secret = made.value.token.secretId;
    t.match(
      await refusalOf(group.at(2, 'policy.create', NAMED, { secret })),
      /^token-unknown: /,
      'the token was deleted by the leader before',
    );
  },
);

t.test('forwarding: a server that lags behind keeps an answer back for a while only', async (t) => {
  const group = await groupOfThree();
  group.server(2).isApplying = false;
  const startMs = group.clock.monotonicMs();
  const { value, meta } = await group.at(2, 'policy.create', NAMED);
  t.equal(value.policy.name, 'p1');
  t.ok(group.clock.monotonicMs() - startMs >= CATCH_UP_MS);
  t.equal(meta.isVisible, false, 'a stale read here does not find it yet, and the answer says so');
  const other = await group.at(3, 'policy.create', { draft: { name: 'p2', rules: '' } });
  t.equal(other.meta.isVisible, undefined, 'here it does');
});

t.test('forwarding: who leads when the call is under way may be somebody else soon', async (t) => {
  const group = await groupOfThree();
  group.faults.push('hang');
  const running = group.server(2).door.run('policy.create', NAMED, CALL);
  await new Promise<void>((resolve) => setImmediate(resolve));
  group.lead(3);
  t.match((await group.settled(running)).value.policy, { name: 'p1' });
});

t.test('forwarding: calls under way are bounded, on both sides', async (t) => {
  const group = await groupOfThree();
  group.faults.push('hang', 'hang', 'hang', 'hang');
  for (let count = 0; count < 4; count += 1) {
    void group
      .server(2)
      .door.run('policy.create', NAMED, CALL)
      .catch(() => undefined);
  }
  await new Promise<void>((resolve) => setImmediate(resolve));
  t.equal(group.server(2).forwarding.count, 4);
  t.match(
    await refusalOf(group.at(2, 'policy.create', NAMED)),
    /^unavailable: 4 writes wait for the leader already/,
  );
  group.server(2).forwarding.close();
});

t.test('forwarding: nothing runs on a server that is not open, and it says why', async (t) => {
  const group = await groupOfThree();
  const { deps } = group.server(2);
  const reason = 'waiting for 2 more servers';
  Object.assign(deps, { notOpenBecause: () => reason });
  const door = createOperations(deps);
  const found = [
    await refusalOf(door.run('policy.create', NAMED, CALL)),
    await refusalOf(door.run('policy.list', { page: {} }, { ...CALL, consistency: 'stale' })),
    await refusalOf(door.runForOther({ name: 'policy.create', input: NAMED, call: CALL })),
  ];
  t.same(new Set(found), new Set([`unavailable: ${reason}`]));
});

t.test('forwarding: a server that opens meanwhile answers those who came too soon', async (t) => {
  const group = await groupOfThree();
  const { deps } = group.server(1);
  let reason: string | undefined = 'the built-in objects are not made yet';
  const limits: number[] = [];
  Object.assign(deps, {
    notOpenBecause: () => reason,
    opens: async (limitMs: number) => {
      limits.push(limitMs);
      await Promise.resolve();
      reason = undefined;
    },
  });
  const door = createOperations(deps);
  const { value } = await group.settled(door.run('policy.create', NAMED, CALL));
  t.match(value, { policy: { name: 'p1' } });
  t.same(limits, [deps.settings.leaderWaitMs]);
});

t.test(
  'disks: where nothing comes to a quorum of them, whoever writes is told in time',
  async (t) => {
    const group = await groupOfThree();
    const { value } = await group.at(1, 'policy.create', {
      draft: { name: 'w', rules: 'acl="write"' },
    });
    const { id } = value.policy;
    const draft = { policies: [{ id }] };
    const { secretId: secret } = (await group.at(1, 'token.create', { draft })).value.token;
    let answer: () => void = () => undefined;
    group.server(1).disks = new Promise((resolve) => {
      answer = resolve;
    });
    const rules = { id, draft: { name: 'w', rules: 'acl="deny"' } };
    const beganAtMs = group.clock.monotonicMs();
    const tookMs = (): number => group.clock.monotonicMs() - beganAtMs;
    const call = { ...CALL, requestId: 'once' };
    const atLeader = refusalOf(group.server(1).door.run('policy.update', rules, call));
    const elsewhere = refusalOf(group.at(2, 'policy.create', { draft: { name: 'p2', rules: '' } }));
    const behind = await refusalOf(group.at(1, 'policy.create', NAMED, { secret }));
    t.match(
      behind,
      /^unavailable: nothing was written: /,
      'what is under way may take its right away',
    );
    t.ok(tookMs() >= 5_000 && tookMs() < 6_000, `after ${tookMs()} ms`);
    t.match(await group.settled(atLeader), /^outcome-unknown: .* has waited for it for 30 s$/);
    t.match(await elsewhere, /^outcome-unknown: /);
    t.ok(tookMs() >= 30_000 && tookMs() < 31_000, `after ${tookMs()} ms`);
    t.match(
      await refusalOf(group.at(1, 'policy.create', NAMED, { secret })),
      /^unavailable: /,
      'still',
    );
    const again = group.at(1, 'policy.update', rules, { requestId: 'once' });
    answer();
    t.equal((await again).meta.replayed, true, 'a repeat has waited for it');
    t.match(
      await refusalOf(group.at(1, 'policy.create', NAMED, { secret })),
      /^permission-denied: /,
    );
  },
);

t.test(
  'disks: where a reign does not come to a quorum of them, nobody waits for ever',
  async (t) => {
    const group = await groupOfThree();
    group.server(3).disks = new Promise(() => undefined);
    group.lead(3);
    const beganAtMs = group.clock.monotonicMs();
    t.equal(await refusalOf(group.at(3, 'policy.create', NAMED)), 'unavailable: No cluster leader');
    const tookMs = group.clock.monotonicMs() - beganAtMs;
    t.ok(tookMs < 11_000, `after ${tookMs} ms`);
  },
);
