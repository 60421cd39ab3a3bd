// What requests wait for, and what a leader does by itself.

import t from 'tap';
import { AclError } from '../../../src/acl/error.ts';
import { GLOBAL_MANAGEMENT_ID, type SecretId } from '../../../src/acl/ids.ts';
import { createOperations } from '../../../src/service/create-operations.ts';
import {
  type DutyMemory,
  ensureBuiltins,
  REAP_BATCH_MAX,
  reapOnce,
} from '../../../src/service/duties/duties.ts';
import { RequestAges } from '../../../src/service/duties/request-ages.ts';
import { VoidTokenRounds } from '../../../src/service/duties/void-token-rounds.ts';
import { POSITION_WAIT_MS } from '../../../src/service/position-waiters.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import { CALL, createHarness, newPolicy, newToken, ROOT, refusalOf } from '../harness.ts';
import { bind, logIn, newMethod } from './use-cases.ts';

const NO_METHOD = 'permission-denied: ACL not found: auth method "m" not found';

t.test('datacenters: an unknown one is refused where one may be named', async (t) => {
  const harness = await createHarness();
  const call = { datacenter: 'dc9' };
  const refused = 'no-such-datacenter: No path to datacenter';
  t.equal(await refusalOf(harness.run('policy.list', { page: {} }, call)), refused);
  t.equal(await refusalOf(harness.run('policy.create', { draft: { name: 'p' } }, call)), 'ok');
});

t.test('freshness: barriers for all but stale reads, and a position waited for', async (t) => {
  const harness = await createHarness();
  const list = (call: object) => harness.run('policy.list', { page: {} }, call);
  for (const consistency of ['default', 'consistent', 'stale'] as const)
    await list({ consistency });
  t.equal(harness.barriers, 2);
  const { epoch, seq } = harness.machine.position();
  t.equal(await refusalOf(list({ minPosition: { epoch, seq } })), 'ok');
  const readBarrier = () => Promise.reject(new AclError('unavailable', 'no quorum'));
  const replaced = createOperations({ ...harness.deps, readBarrier });
  const both = replaced.run('policy.list', { page: {} }, { ...CALL, minPosition: { epoch, seq } });
  t.equal(await refusalOf(both), 'unavailable: no quorum', 'a position is no barrier');
  const login = { authMethod: 'm', bearerToken: '{}', meta: {}, namespace: undefined };
  t.equal(await refusalOf(harness.run('login', login)), NO_METHOD);
  const unproven = await refusalOf(replaced.run('login', login, CALL));
  t.equal(unproven, 'unavailable: no quorum', 'nor is a login refused by what is not proven');
  const waiting = refusalOf(list({ minPosition: { epoch, seq: seq + 1 } }));
  await newToken(harness);
  t.equal(await waiting, 'ok');
  const late = refusalOf(list({ minPosition: { epoch, seq: seq + 9 } }));
  await new Promise((resolve) => setImmediate(resolve));
  harness.clock.advance(POSITION_WAIT_MS);
  t.match(await late, /^wait-timeout: Position \d+\.\d+ was not reached in time/);
});

t.test(
  'waiting: ends with the object, at once when late, at the deadline, when cancelled',
  async (t) => {
    const harness = await createHarness();
    const { operations, clock } = harness;
    const id = await newPolicy(harness, 'p', '');
    const { meta } = await harness.run('policy.read', { id });
    const never = new AbortController().signal;
    let ended = false;
    const waiting = operations.waitForChange(meta.watch, meta.index, 60_000, never).then(() => {
      ended = true;
    });
    await newPolicy(harness, 'other', '');
    clock.advance(0);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(ended, false, 'another object does not end it');
    await harness.run('policy.update', { id, draft: { name: 'p2' } });
    clock.advance(0);
    await waiting;
    await operations.waitForChange(meta.watch, meta.index, 60_000, never);
    const { index } = (await harness.run('policy.read', { id })).meta;
    const timed = operations.waitForChange(meta.watch, index, 60_000, never);
    clock.advance(60_000);
    await timed;
    const stop = new AbortController();
    const cancelled = operations.waitForChange(meta.watch, index, 60_000, stop.signal);
    stop.abort();
    await cancelled;
    t.equal(clock.pendingCount, 0, 'no timer is left');
  },
);

t.test('waiting: whoever watches a token hears of the end of its auth method', async (t) => {
  const harness = await createHarness();
  const { operations, clock } = harness;
  await newMethod(harness, 'm');
  await bind(harness, 'm', 'service', 'web');
  const { accessorId } = await logIn(harness, 'm');
  const read = { accessorId, expanded: false };
  const { meta } = await harness.run('token.read', read);
  const waiting = operations.waitForChange(
    meta.watch,
    meta.index,
    60_000,
    new AbortController().signal,
  );
  let isOver = false;
  const ended = waiting.then(() => {
    isOver = true;
  });
  await harness.run('auth-method.delete', { name: 'm' });
  clock.advance(0);
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(isOver, true, 'before anybody has deleted the token');
  t.match(await refusalOf(harness.run('token.read', read)), /^token-not-found: /);
  t.ok(harness.machine.token(accessorId), 'as nobody has');
  clock.advance(60_000);
  await ended;
});

t.test('duties: the management token of the settings is a bootstrap, done once', async (t) => {
  const harness = await createHarness({ initialManagementSecret: undefined });
  const { machine } = harness;
  const warned: string[] = [];
  const logger = { ...harness.deps.logger, warn: (_: unknown, text: string) => warned.push(text) };
  const ensure = (secret: string | undefined) => {
    const initialManagementSecret = secret as SecretId | undefined;
    const settings = { ...harness.deps.settings, initialManagementSecret };
    return ensureBuiltins({ ...harness.deps, settings, logger });
  };
  await ensure(ROOT);
  const made = machine.tokenBySecret(ROOT)!;
  t.equal(made.createIndex, machine.bootstrapIndex());
  await ensure(ROOT);
  t.same(warned, [], 'it is there');
  const other = await newToken(harness, { policies: [{ id: GLOBAL_MANAGEMENT_ID }] });
  const { secretId: secret } = other;
  await harness.run('token.delete', { accessorId: made.accessorId }, { secret });
  const index = machine.index();
  for (const each of [ROOT, 'another-secret']) await ensure(each);
  t.equal(machine.index(), index, 'nothing is made of it, nor of another one');
  t.equal(warned.length, 2);
  await ensure(undefined);
  await ensure(secret);
  t.equal(warned.length, 2, 'there is nothing to say');
});

const aMemory = (): DutyMemory => ({ ages: new RequestAges(), rounds: new VoidTokenRounds() });

t.test('duties: built-ins are made once, void tokens and old requests are deleted', async (t) => {
  const harness = await createHarness();
  const index = harness.machine.index();
  await ensureBuiltins(harness.deps);
  t.equal(harness.machine.index(), index);
  await newMethod(harness, 'jwt');
  await bind(harness, 'jwt', 'service', 'x');
  const orphan = await logIn(harness, 'jwt');
  await harness.run('auth-method.delete', { name: 'jwt' });
  const expired = await newToken(harness, { expirationTtlNs: 60_000_000_000n });
  const kept = await harness.run('token.create', { draft: {} }, { requestId: 'r' });
  harness.clock.advance(600_001);
  t.match(await reapOnce(harness.deps, aMemory()), {
    expiredTokens: 1,
    orphanedTokens: 1,
    oldRequests: 1,
  });
  for (const { accessorId } of [orphan, expired]) {
    t.equal(harness.machine.token(accessorId), undefined);
  }
  t.ok(harness.machine.token(kept.value.token.accessorId));
  t.equal(harness.counts.get('acl.token.reaped '), 2);
  const { proposals } = harness;
  t.match(await reapOnce(harness.deps, aMemory()), {
    expiredTokens: 0,
    orphanedTokens: 0,
    oldRequests: 0,
  });
  t.equal(harness.proposals, proposals);
});

t.test('duties: where the primary deletes, each expired token is come by once', async (t) => {
  const { clock, deps, machine, run } = await createHarness();
  const expiring = (count: number, local: boolean) => {
    const draft = { local, expirationTtlNs: 60_000_000_000n };
    return Promise.all(Array.from({ length: count }, () => run('token.create', { draft })));
  };
  await expiring(REAP_BATCH_MAX + 100, false);
  const read = machine.expiredTokens.bind(machine);
  let looked = 0;
  machine.expiredTokens = async (search) => {
    const found = await read(search);
    looked += found.looked;
    return found;
  };
  let [isPrimary, backMs] = [false, 0];
  const monotonicMs = () => clock.monotonicMs();
  const wrong = { monotonicMs, wallMs: () => clock.wallMs() - backMs } as typeof clock;
  const away = new AclError('not-primary', 'another datacenter is the primary');
  const federation = { ...deps.federation, closedBecause: () => (isPrimary ? undefined : away) };
  const memory = aMemory();
  const pass = async (): Promise<readonly unknown[]> => {
    looked = 0;
    const report = await reapOnce({ ...deps, clock: wrong, federation }, memory);
    // One is looked at to see whether there is any.
    return [Math.max(0, looked - 1), report.expiredTokens, report.isMore];
  };
  clock.advance(60_001);
  t.same(await pass(), [REAP_BATCH_MAX, 0, true]);
  t.same(await pass(), [100, 0, false]);
  t.same(await pass(), [0, 0, false]);
  await expiring(3, true);
  clock.advance(60_001);
  t.same(await pass(), [3, 3, false], 'what expires later stands behind');
  backMs = 30_000;
  t.same(await pass(), [REAP_BATCH_MAX, 0, true], 'a clock that goes back begins anew');
  backMs = 0;
  isPrimary = true;
  t.same(await pass(), [REAP_BATCH_MAX, REAP_BATCH_MAX, true]);
  t.same(await pass(), [100, 100, false]);
});

t.test('duties: an expired token goes when most servers have come to its time', async (t) => {
  const harness = await createHarness();
  const { clock, deps, machine, run } = harness;
  let [behindMs, asked] = [3_600_000, 0];
  const agreedMs = () => {
    asked += 1;
    return Promise.resolve(Math.max(0, clock.wallMs() - behindMs));
  };
  const pass = async () => (await reapOnce({ ...deps, agreedMs }, aMemory())).expiredTokens;
  const { accessorId, secretId } = await newToken(harness, { expirationTtlNs: 60_000_000_000n });
  t.same([await pass(), asked], [0, 0], 'nobody is asked for nothing');
  clock.advance(60_001);
  t.same([await pass(), asked], [0, 1]);
  t.ok(machine.token(accessorId), 'it is there');
  const self = run('token.read-self', {}, { secret: secretId });
  t.match(await refusalOf(self), /^token-unknown/, 'and void here');
  behindMs = clock.wallMs();
  t.equal(await pass(), 0, 'nor where they do not say');
  behindMs = 2;
  t.equal(await pass(), 0);
  behindMs = -3_600_000;
  t.equal(await pass(), 1);
  await newToken(harness, { expirationTtlNs: 60_000_000_000n });
  t.equal(await pass(), 0, 'nor before the own clock says so');
});

t.test('duties: of what is long little goes at a time', async (t) => {
  const harness = await createHarness();
  const { clock, deps } = harness;
  await deps.propose({
    change: { type: 'level.raise', level: NEWEST_LEVEL },
    timeMs: clock.wallMs(),
    cas: undefined,
    request: undefined,
  });
  const ages = new RequestAges();
  const description = 'x'.repeat(150_000);
  for (let each = 0; each < 8; each += 1) {
    const draft = { description, expirationTtlNs: 60_000_000_000n };
    await harness.run('token.create', { draft }, { requestId: `${each}` });
    clock.advance(1);
  }
  for (let each = 0; each < 8; each += 1) {
    const draft = { description: '', expirationTtlNs: 3_600_000_000_000n };
    await harness.run('token.create', { draft }, { requestId: `short ${each}` });
  }
  ages.note(clock.monotonicMs(), harness.machine.index() + 1);
  clock.advance(600_001);
  const commands: string[] = [];
  const propose: typeof deps.propose = (command) => {
    const { change } = command;
    if (change.type === 'token.reap') commands.push(`reap ${change.accessorIds.length}`);
    if (change.type === 'request-id.forget') commands.push(`forget ${change.keys.length}`);
    return deps.propose(command);
  };
  const report = await reapOnce({ ...deps, propose }, { ...aMemory(), ages });
  t.match(report, { expiredTokens: 8, oldRequests: 16 });
  const twos = (of: string): readonly string[] => Array.from({ length: 4 }, () => `${of} 2`);
  t.same(commands, [...twos('reap'), ...twos('forget'), 'forget 8']);
  t.same((await harness.machine.requestsBelow(ALL_REQUESTS)).keys, []);
});

const ALL_REQUESTS = {
  below: Number.MAX_SAFE_INTEGER,
  orBeforeMs: Number.MAX_SAFE_INTEGER,
  after: undefined,
  limit: 100,
};

t.test('acknowledgement: in one datacenter every level is reached with the write', async (t) => {
  const one = await createHarness();
  const made = await one.run('token.create', { draft: {} }, { ack: 'all' });
  t.equal(made.meta.ack, 'all');
  t.equal((await one.run('token.create', { draft: { local: true } })).meta.ack, undefined);
});
