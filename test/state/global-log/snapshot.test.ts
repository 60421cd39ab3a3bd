// A snapshot of the primary taken in by a datacenter that cannot follow entry by entry: what comes is
// what the primary has, what lives here alone stays, and nobody sees a mix of both.

import t from 'tap';
import type { Policy } from '../../../src/acl/policy.ts';
import type { Change, ChangeOf } from '../../../src/state/commands/commands.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import {
  decodeHeader,
  encodeHeader,
  type GlobalSnapshot,
} from '../../../src/state/global-log/global-snapshot.ts';
import type { Verdict } from '../../../src/state/global-log/verdict.ts';
import { pack } from '../../../src/state/rows/layout/packing.ts';
import { POLICIES, TOKENS } from '../../../src/state/rows/objects/objects.ts';
import { encodeRequest } from '../../../src/state/rows/request-row.ts';
import { ROW, rowKey } from '../../../src/state/rows/tables.ts';
import { RowParser } from '../../../src/state/snapshot/row-parser.ts';
import { packedRows } from '../../../src/state/snapshot/snapshot-format.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  aNamespace,
  anAuthMethod,
  aPolicy,
  aToken,
  FIXTURE_TIME_MS,
} from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  collect,
  MachineHarness,
  orphansIn,
  replaceableMachine,
} from '../../support/state-and-service/machine-harness.ts';
import { requireRowsFromNothing } from '../rows-from-nothing.ts';

const PRIMARY: ChangeOf<'global-log.begin'> = {
  type: 'global-log.begin',
  datacenter: 'dc1',
  primary: 'dc1',
  isWitness: false,
};
const ALL = { kind: 'all' } as const;
const PIECE_BYTES = 64 * 1024;
const RETIRED: readonly number[] = [ROW.retiredMethod, ROW.retiredNamespace];
const MARK = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(2) };

/** A primary whose first entries nobody has any more. */
async function primary(): Promise<MachineHarness> {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one(PRIMARY);
  await harness.one(BUILTINS);
  for (const each of [1, 2, 3]) {
    await harness.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) });
    await harness.one({ type: 'token.set', presence: 'create', token: aToken(each) });
  }
  await harness.one({ type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') });
  await harness.one({ type: 'namespace.set', presence: 'create', namespace: aNamespace('team') });
  await harness.one({ type: 'token.set', presence: 'create', token: aToken(50, { local: true }) });
  return harness;
}

/** One that has what the primary has so far. */
async function follower(from: MachineHarness): Promise<MachineHarness> {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one({ ...PRIMARY, datacenter: 'dc2' });
  await follow(from, harness);
  return harness;
}

async function follow(from: MachineHarness, to: MachineHarness): Promise<Verdict | string> {
  const cursor = to.machine.cursor()!;
  const entries = (await from.machine.globalEntries(cursor.seq, 1 << 20))!;
  const head = from.machine.cursor()!;
  const change = { epoch: head.epoch, from: cursor, entries, to: head };
  return verdictOf(await to.one({ type: 'global-log.apply', ...change }));
}

function verdictOf(outcome: Outcome): Verdict | string {
  if (outcome.kind === 'refused') return outcome.code;
  return outcome.answer.type === 'verdict' ? outcome.answer.verdict : outcome.answer.type;
}

async function begin(to: MachineHarness, snapshot: GlobalSnapshot): Promise<Verdict | string> {
  const { header } = snapshot;
  const verdict = verdictOf(await to.one({ type: 'global-snapshot.begin', id: 'one', header }));
  if (verdict !== 'applied') return verdict;
  let number = 0;
  for await (const rows of snapshot.pieces()) {
    number += 1;
    const chunk = { type: 'global-snapshot.chunk', id: 'one', number, rows } as const;
    const said = verdictOf(await to.one(chunk));
    if (said !== 'applied') return said;
  }
  return 'applied';
}

/** Carries all local rows, so many at a time; `between` is called after each batch. */
async function carry(
  to: MachineHarness,
  limit = 2,
  between: (step: number) => Promise<unknown> = async () => undefined,
): Promise<void> {
  let number = 1;
  const send = async (keys: readonly Uint8Array[], isLast: boolean): Promise<void> => {
    const change = { type: 'global-snapshot.carry', id: 'one', number, keys, isLast } as const;
    t.equal(verdictOf(await to.one(change)), 'applied');
    await between(number);
    number += 1;
  };
  await send([], false);
  let after: Uint8Array | undefined;
  for (;;) {
    const keys = await to.machine.localRows(after, limit);
    await send(keys, keys.length < limit);
    if (keys.length < limit) return;
    after = keys.at(-1);
  }
}

const commit = async (to: MachineHarness): Promise<Verdict | string> =>
  verdictOf(await to.one({ type: 'global-snapshot.commit', id: 'one' }));

async function take(from: MachineHarness, to: MachineHarness): Promise<Verdict | string> {
  const snapshot = (await from.machine.globalSnapshot())!;
  const verdict = await begin(to, snapshot);
  await snapshot.close();
  if (verdict !== 'applied') return verdict;
  await carry(to);
  return await commit(to);
}

const localToken = (number: number, given: object = {}): Change => ({
  type: 'token.set',
  presence: 'create',
  token: aToken(number, { local: true, ...given }),
});

const accessorsIn = async ({ machine }: MachineHarness): Promise<readonly string[]> =>
  (await collect(machine.tokens(ALL, undefined, {}))).map(({ accessorId }) => accessorId);

const FORCED = { isForced: true, isFromFork: false } as const;

t.test('snapshot: the objects of the primary, and what lives here alone', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  await dc2.one(localToken(60), { request: MARK });
  await dc2.one({
    type: 'pending-login.set',
    key: 'state',
    value: Uint8Array.of(1),
    expiresMs: FIXTURE_TIME_MS,
  });
  for (let each = 4; each < 40; each += 1) {
    await dc1.one({ type: 'token.set', presence: 'create', token: aToken(each) });
  }
  await dc1.one({ type: 'policy.delete', id: aPolicy(2).id });
  await dc1.one({ type: 'global-log.trim', upTo: 100 });
  test.equal(await take(dc1, dc2), 'applied');
  test.equal(dc2.machine.digests().global, dc1.machine.digests().global);
  test.same(dc2.machine.cursor(), dc1.machine.cursor());
  test.same(dc2.machine.position(), dc1.machine.position());
  test.ok(dc2.machine.index() >= dc1.machine.index(), 'no object is ahead of the index');
  test.equal(dc2.machine.policy(aPolicy(2).id), undefined);
  const expected = (await accessorsIn(dc1)).filter((each) => each !== aToken(50).accessorId);
  test.same(await accessorsIn(dc2), [...expected, aToken(60).accessorId].sort());
  test.equal(dc2.machine.totals().localTokens, 1);
  test.ok(dc2.machine.request(MARK.key), 'remembered requests are there');
  test.same(dc2.machine.pendingLogin('state')?.value, Uint8Array.of(1));
  test.equal(dc2.machine.importUnderWay(), undefined);
  await dc1.one({ type: 'policy.delete', id: aPolicy(1).id });
  test.equal(await follow(dc1, dc2), 'applied', 'and entries follow behind it');
  await swept(dc2);
  requireRowsFromNothing(unplaced(dc2.kv), dc2.machine);
});

/** Lets the old rows be deleted. */
async function swept({ clock, kv }: MachineHarness): Promise<void> {
  for (let turn = 0; turn < 400; turn += 1) {
    clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.notOk(
    kv.dump().some((row) => row.startsWith('0a')),
    'what was replaced is deleted',
  );
}

t.test(
  'snapshot: what it replaced is deleted whole, also where another comes soon',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    for (let each = 100; each < 300; each += 1) await dc2.one(localToken(each));
    const takeNext = async (): Promise<void> => {
      await dc1.one({ type: 'policy.set', presence: 'update', policy: aPolicy(1) });
      test.equal(await take(dc1, dc2), 'applied');
    };
    // Rows of keyspaces, and of the first one, whose rows are under their own keys.
    const isPlaced = (row: string): boolean => row.startsWith('65') || row < '5a';
    const elsewhere = (current: number): number =>
      dc2.kv
        .dump()
        .filter(
          (row) => isPlaced(row) && !row.startsWith('01') && !row.startsWith(`650000000${current}`),
        ).length;
    await takeNext();
    await takeNext();
    test.ok(elsewhere(2) > 1_024, 'more than goes at once, of two');
    await swept(dc2);
    test.equal(elsewhere(2), 0);
    await takeNext();
    await swept(dc2);
    test.equal(elsewhere(3), 0, 'and so is the next');
  },
);

t.test('snapshot: what it replaced is deleted between the batches of others', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  for (let each = 100; each < 300; each += 1) await dc2.one(localToken(each));
  await dc1.one({ type: 'policy.set', presence: 'update', policy: aPolicy(1) });
  test.equal(await take(dc1, dc2), 'applied');
  const { kv } = dc2;
  const write = kv.write.bind(kv);
  let underWay = 0;
  let most = 0;
  let batches = 0;
  kv.write = async (writes) => {
    underWay += 1;
    batches += 1;
    most = Math.max(most, underWay);
    await new Promise((resolve) => setTimeout(resolve, 1));
    await write(writes);
    underWay -= 1;
  };
  for (let each = 300; each < 330; each += 1) {
    const written = dc2.one(localToken(each));
    dc2.clock.advance(10);
    await written;
  }
  test.ok(batches > 30, 'both write');
  test.equal(most, 1, 'a store takes one batch at a time');
});

/** A store with the rows of its current keyspace under their own keys. */
function unplaced(kv: MemoryKv): MemoryKv {
  const rows = kv.dump().map((row) => {
    const [key = '', value = ''] = row.split(' ');
    const name = key.startsWith('65') ? key.slice(10) : key;
    return [Buffer.from(name, 'hex').toString('latin1'), Buffer.from(value, 'hex')] as const;
  });
  return new MemoryKv(rows);
}

t.test(
  'trimming: what a snapshot replaced goes first, and a command drops so many',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    const write = async (count: number): Promise<void> => {
      const change = { type: 'policy.set', presence: 'update', policy: aPolicy(1) } as const;
      for (let each = 0; each < count; each += 1) await dc1.one(change);
    };
    const seqIn = (): number => dc2.machine.cursor()!.seq;
    const first = dc2.machine.replication()!.first;
    await write(1_000);
    await follow(dc1, dc2);
    const middle = seqIn();
    await write(1);
    await take(dc1, dc2);
    const next = seqIn() + 1;
    // One more than a command drops.
    await write(1_024 - (middle - first));
    await follow(dc1, dc2);
    const last = seqIn();
    await write(1);
    await take(dc1, dc2);
    await write(3);
    await follow(dc1, dc2);
    const ranges = (): readonly unknown[] =>
      dc2.machine.replication()!.unused.map((each) => [each.first, each.last]);
    const kept = (): number => dc2.machine.replication()!.first;
    const rows = (): number => dc2.kv.dump().filter((row) => row.startsWith('5d')).length;
    test.same(ranges(), [
      [first, middle],
      [next, last],
    ]);
    const [count, begin] = [rows(), kept()];
    const trim: Change = { type: 'global-log.trim', upTo: 1 << 20 };
    await dc2.one(trim);
    test.same(ranges(), [[last, last]]);
    test.same([rows(), kept()], [count - 1_024, begin], 'and what is kept waits');
    await dc2.one(trim);
    test.same([ranges(), rows(), kept()], [[], 0, begin + 3]);
  },
);

t.test('snapshot: nothing of the last moments before the switch is lost', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  for (const each of [60, 61, 62, 63]) await dc2.one(localToken(each));
  await dc1.one({ type: 'policy.set', presence: 'update', policy: aPolicy(1) });
  const snapshot = (await dc1.machine.globalSnapshot())!;
  test.equal(await begin(dc2, snapshot), 'applied');
  await dc2.one(localToken(64), { request: { ...MARK, key: new Uint8Array(32).fill(9) } });
  const begun = { value: Uint8Array.of(7), expiresMs: FIXTURE_TIME_MS };
  await dc2.one({ type: 'pending-login.set', key: 'used', ...begun });
  await carry(dc2, 2, async (step) => {
    if (step === 1) await dc2.one({ type: 'token.delete', accessorId: aToken(60).accessorId });
    if (step === 2) {
      const description = 'changed';
      const token = aToken(61, { local: true, description });
      await dc2.one({ type: 'token.set', presence: 'update', token });
      await dc2.one(localToken(65), { request: MARK });
      await dc2.one({ type: 'pending-login.set', key: 'late', ...begun });
    }
  });
  await dc2.one({ type: 'pending-login.delete', keys: ['used'] });
  await dc2.one(localToken(66), { request: { ...MARK, key: new Uint8Array(32).fill(8) } });
  await dc2.one({ type: 'token.delete', accessorId: aToken(62).accessorId });
  const before = { all: (await accessorsIn(dc2)).length, locals: dc2.machine.totals().localTokens };
  test.equal(await commit(dc2), 'applied');
  test.equal(dc2.machine.totals().localTokens, before.locals);
  test.same((await accessorsIn(dc2)).length, before.all);
  test.equal(dc2.machine.token(aToken(60).accessorId), undefined, 'deleted while it was carried');
  test.equal(dc2.machine.token(aToken(61).accessorId)?.description, 'changed');
  for (const each of [63, 64, 65, 66])
    test.ok(dc2.machine.token(aToken(each).accessorId), `${each}`);
  test.equal(dc2.machine.token(aToken(62).accessorId), undefined, 'deleted after it was carried');
  for (const fill of [1, 8, 9]) test.ok(dc2.machine.request(new Uint8Array(32).fill(fill)));
  test.ok(dc2.machine.pendingLogin('late'));
  test.equal(dc2.machine.pendingLogin('used'), undefined, 'a callback works once');
  test.same(await dc2.machine.oldPendingLogins(FIXTURE_TIME_MS + 1, 10), ['late']);
  await snapshot.close();
});

t.test(
  'snapshot: a repeat of what the primary has done changes nothing behind it',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    const marks = [1, 2, 3].map((fill) => ({ ...MARK, key: new Uint8Array(32).fill(fill) }));
    const [done, gone, local] = marks as [typeof MARK, typeof MARK, typeof MARK];
    const change = { type: 'policy.set', presence: 'update', policy: aPolicy(1) } as const;
    await dc1.one(change, { request: done });
    await dc1.one({ type: 'policy.delete', id: aPolicy(2).id }, { request: gone });
    await dc1.one(localToken(51), { request: local });
    const made = dc1.machine.request(done.key)!;
    // The datacenter that takes it in has changed more than the primary: its index is ahead.
    for (let each = 60; each < 80; each += 1) await dc2.one(localToken(each));
    test.equal(await take(dc1, dc2), 'applied');
    test.equal(dc2.machine.request(local.key), undefined, 'a local token stays where it is');
    const remembered = dc2.machine.request(done.key)!;
    test.same({ ...remembered, outcome: made.outcome }, made);
    const { index, position } = remembered.outcome;
    test.same(position, made.outcome.position);
    test.ok(index > dc1.machine.index(), 'it is forgotten ten minutes from now, and not at once');
    test.ok(index <= dc2.machine.index());
    const at = dc2.machine.cursor()!;
    await dc2.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc2', at });
    await dc2.one({ type: 'epoch.start', epoch: 2, promises: [], ...FORCED });
    const before = dc2.machine.cursor();
    for (const [request, again] of [
      [done, change],
      [gone, { type: 'policy.delete', id: aPolicy(2).id }],
    ] as const) {
      test.match(await dc2.one(again, { request }), { kind: 'applied', replayed: true });
    }
    test.same(dc2.machine.cursor(), before, 'nothing was written');
    await dc2.one({ type: 'request-id.forget', keys: [done.key, gone.key] });
    test.equal(dc2.machine.request(done.key), undefined);
    await swept(dc2);
    requireRowsFromNothing(unplaced(dc2.kv), dc2.machine);
  },
);

t.test(
  'snapshot: of one request, what is on the chain counts, and not what was left',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    const change = { type: 'policy.set', presence: 'update', policy: aPolicy(1) } as const;
    // The same request took effect on a fork first.
    await dc2.one({ type: 'epoch.start', epoch: 2, promises: [], ...FORCED });
    await dc2.one(change, { request: MARK });
    test.same(dc2.machine.request(MARK.key)?.outcome.position, {
      epoch: 2,
      seq: dc2.machine.cursor()!.seq,
    });
    await dc1.one({ type: 'epoch.promise', epoch: 3, candidate: 'dc1', at: dc1.machine.cursor()! });
    await dc1.one({ type: 'epoch.start', epoch: 3, promises: [], ...FORCED });
    await dc1.one(change, { request: MARK, timeMs: FIXTURE_TIME_MS + 1 });
    const { epochs } = dc1.machine.replication()!;
    test.equal(verdictOf(await dc2.one({ type: 'epoch.fence', epochs })), 'applied');
    test.equal(await take(dc1, dc2), 'applied');
    test.same(dc2.machine.request(MARK.key)?.outcome.position, dc1.machine.position());
    const times = await dc2.machine.oldRequests(Number.MAX_SAFE_INTEGER, 10);
    test.equal(times.length, 1, 'and is found by its own time alone');
    await swept(dc2);
    requireRowsFromNothing(unplaced(dc2.kv), dc2.machine);
  },
);

t.test(
  'snapshot: nothing that all share comes or goes with what lives here alone',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    await dc2.one(localToken(60));
    await dc1.one({ type: 'token.set', presence: 'create', token: aToken(60) });
    await dc1.one({ type: 'token.delete', accessorId: aToken(1).accessorId });
    const snapshot = (await dc1.machine.globalSnapshot())!;
    await begin(dc2, snapshot);
    const send = async (number: number, keys: readonly Uint8Array[]): Promise<unknown> =>
      dc2.one({ type: 'global-snapshot.carry', id: 'one', number, keys, isLast: number === 2 });
    await send(1, []);
    const keys = await dc2.machine.localRows(undefined, 10);
    // Deleted there: this one is not to come back by that way.
    await send(2, [...keys, TOKENS.keyOf(dc2.machine.token(aToken(1).accessorId)!)]);
    await dc2.one({ type: 'token.delete', accessorId: aToken(60).accessorId });
    test.equal(await commit(dc2), 'applied');
    test.equal(dc2.machine.token(aToken(60).accessorId)?.local, false, 'it has its ids there');
    test.same(dc2.machine.digests().global, dc1.machine.digests().global);
    await snapshot.close();
  },
);

t.test(
  'snapshot: with it come the bootstrap, the promise and an index of each list',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    // Local changes move the index alone.
    for (let each = 60; each < 80; each += 1) await dc2.one(localToken(each));
    await dc1.one({ type: 'bootstrap', token: aToken(7), resetIndex: undefined });
    const at = dc1.machine.cursor()!;
    await dc1.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc1', at });
    await dc1.one({ type: 'epoch.start', epoch: 2, promises: [], ...FORCED });
    const before = dc2.machine.index();
    test.equal(await take(dc1, dc2), 'applied');
    test.equal(dc2.machine.bootstrapIndex(), dc1.machine.bootstrapIndex(), 'none comes behind it');
    const { maxEpochPromised, votedFor } = dc2.machine.replication()!;
    test.same([maxEpochPromised, votedFor], [2, undefined], 'no earlier reign is heard any more');
    for (const table of ['tokens', 'policies', 'roles', 'auth-methods'] as const) {
      test.equal(dc2.machine.tableIndex(table), dc2.machine.index(), table);
    }
    test.ok(dc2.machine.index() > before, 'whoever waits for a change hears of it');
  },
);

t.test(
  'snapshot: one that is begun where another was given up loses no row with that',
  async (test) => {
    for (const isAbandoned of [true, false]) {
      const dc1 = await primary();
      const dc2 = await follower(dc1);
      const snapshot = (await dc1.machine.globalSnapshot())!;
      test.equal(await begin(dc2, snapshot), 'applied');
      if (isAbandoned) await dc2.one({ type: 'restore.abandon', id: 'one' });
      test.equal(await begin(dc2, snapshot), 'applied');
      await snapshot.close();
      // Meanwhile the rows of the first one are deleted.
      for (let turn = 0; turn < 20; turn += 1) {
        dc2.clock.advance(10);
        await new Promise((resolve) => setImmediate(resolve));
      }
      await carry(dc2);
      test.equal(await commit(dc2), 'applied');
      await swept(dc2);
      requireRowsFromNothing(unplaced(dc2.kv), dc2.machine);
    }
  },
);

t.test('snapshot: each step of one says when it was made', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  const snapshot = (await dc1.machine.globalSnapshot())!;
  const pieces: Uint8Array[] = [];
  for await (const piece of snapshot.pieces()) pieces.push(piece);
  const carried = { type: 'global-snapshot.carry', id: 'one', keys: [], isLast: false } as const;
  const steps: readonly Change[] = [
    { type: 'global-snapshot.begin', id: 'one', header: snapshot.header },
    { type: 'global-snapshot.chunk', id: 'one', number: 1, rows: pieces[0]! },
    { ...carried, number: 1 },
    { ...carried, number: 2, isLast: true },
  ];
  for (const [place, step] of steps.entries()) {
    const timeMs = FIXTURE_TIME_MS + place;
    test.equal(verdictOf(await dc2.one(step, { timeMs })), 'applied');
    test.equal(dc2.machine.restoreUnderWay()?.timeMs, timeMs, 'or it would be dropped as idle');
  }
  await snapshot.close();
});

t.test(
  'snapshot: what is forgotten of a fork takes nothing from what the chain remembers',
  async (test) => {
    for (const level of [7, NEWEST_LEVEL]) {
      const dc1 = await primary();
      const dc2 = await follower(dc1);
      const change = { type: 'policy.set', presence: 'update', policy: aPolicy(1) } as const;
      for (const each of [dc1, dc2]) await each.one({ type: 'level.raise', level });
      const marks = [1, 2, 3].map((fill) => ({ ...MARK, key: new Uint8Array(32).fill(fill) }));
      const [forgotten, again, own] = marks as [typeof MARK, typeof MARK, typeof MARK];
      await dc2.one({ type: 'epoch.start', epoch: 2, promises: [], ...FORCED });
      for (const request of [forgotten, again]) await dc2.one(change, { request });
      const at = dc1.machine.cursor()!;
      await dc1.one({ type: 'epoch.promise', epoch: 3, candidate: 'dc1', at });
      await dc1.one({ type: 'epoch.start', epoch: 3, promises: [], ...FORCED });
      for (const request of [forgotten, again])
        await dc1.one(change, { request, timeMs: FIXTURE_TIME_MS + 1 });
      await dc2.one({ type: 'epoch.fence', epochs: dc1.machine.replication()!.epochs });
      await dc2.one(localToken(60), { request: own });
      const snapshot = (await dc1.machine.globalSnapshot())!;
      await begin(dc2, snapshot);
      await carry(dc2);
      await dc2.one({ type: 'request-id.forget', keys: [forgotten.key, own.key] });
      await dc2.one(localToken(61), { request: again, timeMs: FIXTURE_TIME_MS + 2 });
      test.equal(await commit(dc2), 'applied');
      await snapshot.close();
      const isKept = dc2.machine.request(forgotten.key) !== undefined;
      test.equal(isKept, level >= 8, `at level ${level}`);
      if (level < 8) continue;
      test.same(
        dc2.machine.request(forgotten.key)?.outcome.position,
        dc1.machine.request(forgotten.key)?.outcome.position,
      );
      test.match(dc2.machine.request(again.key)?.outcome.answer, { type: 'token' });
      test.equal(dc2.machine.request(own.key), undefined);
      const times = await dc2.machine.oldRequests(Number.MAX_SAFE_INTEGER, 10);
      test.same(times, [forgotten.key, again.key], 'each is found by its own time alone');
    }
  },
);

t.test('snapshot: readers see the old state until the switch, then the new one', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  await dc1.one({ type: 'policy.delete', id: aPolicy(1).id });
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(9) });
  const before = { ...dc2.machine.digests(), cursor: dc2.machine.cursor() };
  const snapshot = (await dc1.machine.globalSnapshot())!;
  await begin(dc2, snapshot);
  await carry(dc2);
  test.same({ ...dc2.machine.digests(), cursor: dc2.machine.cursor() }, before);
  test.ok(dc2.machine.policy(aPolicy(1).id));
  test.equal(dc2.machine.policy(aPolicy(9).id), undefined);
  let moved = 0;
  dc2.machine.onGlobalLogMoved(() => {
    moved += 1;
  });
  await commit(dc2);
  test.equal(moved, 1);
  test.equal(dc2.machine.policy(aPolicy(1).id), undefined);
  test.ok(dc2.machine.policy(aPolicy(9).id));
  await snapshot.close();
});

t.test(
  'snapshot: whoever reads by key at the switch reads one state, the old or the new',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    await dc1.one({ type: 'namespace.delete', name: aNamespace('team').name });
    const snapshot = (await dc1.machine.globalSnapshot())!;
    await begin(dc2, snapshot);
    await carry(dc2);
    const { machine } = dc2;
    const [before, after] = [machine.position().seq, dc1.machine.position().seq];
    const seen = new Set<string>();
    const lists: Promise<string>[] = [];
    const look = (): void => {
      const isThere = machine.namespace('team') !== undefined;
      const at = machine.position().seq;
      seen.add(`${isThere ? 'there' : 'gone'} at ${at}`);
      lists.push(collect(machine.namespaces({})).then((all) => `${all.length} at ${at}`));
    };
    look();
    const write = dc2.kv.write.bind(dc2.kv);
    dc2.kv.write = async (writes) => {
      await write(writes);
      // A reader has its turn between any two steps that follow.
      const lookOn = async (): Promise<void> => {
        for (let turn = 0; turn < 50; turn += 1) {
          look();
          await Promise.resolve();
        }
      };
      void lookOn();
    };
    test.equal(await commit(dc2), 'applied');
    look();
    test.same([...seen], [`there at ${before}`, `gone at ${after}`]);
    test.same([...new Set(await Promise.all(lists))], [`2 at ${before}`, `1 at ${after}`]);
    await snapshot.close();
  },
);

t.test('snapshot: it is of one place, whatever the primary does meanwhile', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  const snapshot = (await dc1.machine.globalSnapshot())!;
  await dc1.one({ type: 'policy.delete', id: aPolicy(1).id });
  await begin(dc2, snapshot);
  await snapshot.close();
  await snapshot.close();
  await test.rejects(
    snapshot.pieces()[Symbol.asyncIterator]().next(),
    /is closed/,
    'and it lets go of that',
  );
  await carry(dc2);
  test.equal(await commit(dc2), 'applied');
  test.same(dc2.machine.cursor(), snapshot.cursor);
  test.ok(dc2.machine.policy(aPolicy(1).id));
  test.equal(await follow(dc1, dc2), 'applied');
  test.equal(dc2.machine.policy(aPolicy(1).id), undefined);
});

t.test('snapshot: what does not fit is refused, and nothing becomes the state', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  await dc2.one(localToken(60));
  const snapshot = (await dc1.machine.globalSnapshot())!;
  const { header } = snapshot;
  const pieces: Uint8Array[] = [];
  for await (const piece of snapshot.pieces()) pieces.push(piece);
  const say = async (change: Change): Promise<string> => verdictOf(await dc2.one(change));
  const chunk = (number: number, rows: Uint8Array, id = 'one'): Change => ({
    type: 'global-snapshot.chunk',
    id,
    number,
    rows,
  });
  test.equal(await say(chunk(1, pieces[0]!)), 'other-cursor', 'before it began');
  const nowhere = encodeHeader({ ...decodeHeader(header), epochs: [] });
  for (const each of [Uint8Array.of(1), pack([2, null, null]), nowhere]) {
    const wrong = { type: 'global-snapshot.begin', id: 'one', header: each } as const;
    test.equal(await say(wrong), 'broken-chain', 'no header');
  }
  test.equal(
    verdictOf(await dc1.one({ type: 'global-snapshot.begin', id: 'x', header })),
    'primary',
  );
  test.equal(await say({ type: 'global-snapshot.begin', id: 'one', header }), 'applied');
  test.equal(await say(chunk(2, pieces[0]!)), 'other-cursor', 'a gap');
  test.equal(await say(chunk(1, pieces[0]!, 'two')), 'other-cursor', 'of another one');
  test.equal(await say(chunk(1, pieces[0]!.subarray(1))), 'broken-chain', 'damaged');
  test.equal(await say(chunk(1, pieces[0]!.subarray(0, -1))), 'broken-chain', 'cut off');
  test.equal(await say(chunk(1, Buffer.alloc(9, 0xff))), 'broken-chain', 'rows of no length');
  test.equal(await commit(dc2), 'other-cursor', 'before it is carried');
  await carry(dc2);
  test.equal(await commit(dc2), 'diverged', 'rows are missing');
  test.equal(await say(chunk(1, pieces[0]!)), 'other-cursor', 'rows behind what was carried');
  const restored = { type: 'restore.chunk', id: 'one', number: 1, rows: pieces[0]! } as const;
  test.equal(await say(restored), 'unavailable', 'it is no restore');
  test.equal(await say({ type: 'restore.abandon', id: 'one' }), 'done');
  test.equal(dc2.machine.importUnderWay(), undefined);
  test.equal(await begin(dc2, snapshot), 'applied');
  const first = {
    type: 'global-snapshot.carry',
    id: 'one',
    number: 1,
    keys: [],
    isLast: false,
  } as const;
  test.equal(await say({ ...first, keys: [Uint8Array.of(10)] }), 'other-cursor');
  test.equal(await say({ ...first, isLast: true }), 'other-cursor', 'nothing was listed yet');
  test.equal(await say(first), 'applied');
  test.equal(await say(first), 'other-cursor', 'twice');
  test.equal(await say({ ...first, number: 2, isLast: true }), 'applied');
  test.equal(await say({ ...first, number: 3 }), 'other-cursor', 'behind the last');
  test.equal(await commit(dc2), 'diverged', 'a local token is missing');
  await snapshot.close();
  // Whoever passed it over would have another state than the servers that can read it.
  const newer = { type: 'global-snapshot.begin', id: 'one', header: pack([99]) } as const;
  await test.rejects(dc2.one(newer), { name: 'AssertionError', message: /format of a stored/ });
});

t.test('snapshot: pieces come in order, and so do the rows in them', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  const description = 'x'.repeat(40_000);
  for (const each of [4, 5, 6]) {
    await dc1.one({ type: 'token.set', presence: 'create', token: aToken(each, { description }) });
  }
  const snapshot = (await dc1.machine.globalSnapshot())!;
  const pieces: Uint8Array[] = [];
  for await (const piece of snapshot.pieces()) pieces.push(piece);
  const { header } = snapshot;
  await snapshot.close();
  test.ok(pieces.length > 2);
  for (const [place, piece] of pieces.entries()) {
    test.ok(piece.length <= PIECE_BYTES);
    const next = pieces[place + 1];
    test.ok(next === undefined || piece.length + next.length > PIECE_BYTES, 'and none too many');
  }
  const send = async (number: number, rows: Uint8Array): Promise<string> =>
    verdictOf(await dc2.one({ type: 'global-snapshot.chunk', id: 'one', number, rows }));
  await dc2.one({ type: 'global-snapshot.begin', id: 'one', header });
  const rows = new RowParser(() => new Error('damaged')).take(pieces[0]!);
  test.equal(await send(1, packedRows([...rows].reverse())), 'broken-chain');
  test.equal(await send(1, packedRows([rows[0]!, ...rows])), 'broken-chain', 'a row twice');
  test.equal(await send(1, pieces[0]!), 'applied');
  const early = aToken(60).accessorId;
  await dc2.one(localToken(60, { namespace: aNamespace('team').name }));
  test.equal(await send(2, pieces[0]!), 'broken-chain', 'a piece twice');
  for (const [place, piece] of pieces.slice(1).entries()) {
    test.equal(await send(place + 2, piece), 'applied');
  }
  await carry(dc2);
  test.equal(await commit(dc2), 'applied');
  test.same(dc2.machine.digests().global, dc1.machine.digests().global);
  test.ok(dc2.machine.token(early));
  test.same(await orphansIn(dc2.machine), [], 'made before its namespace came, and not void');
});

t.test(
  'snapshot: none of an earlier place, and none over what was begun meanwhile',
  async (test) => {
    const dc1 = await primary();
    const early = (await dc1.machine.globalSnapshot())!;
    await dc1.one({ type: 'policy.delete', id: aPolicy(1).id });
    const ready = async (snapshot: GlobalSnapshot): Promise<MachineHarness> => {
      const dc2 = await follower(await primary());
      test.equal(await begin(dc2, snapshot), 'applied');
      await carry(dc2);
      return dc2;
    };
    const ahead = await ready(early);
    test.equal(await follow(dc1, ahead), 'applied');
    test.equal(await commit(ahead), 'other-cursor', 'entries were faster');
    test.equal(await begin(ahead, early), 'other-cursor');
    test.equal(ahead.machine.policy(aPolicy(1).id), undefined, 'what was deleted stays so');
    await early.close();

    const late = (await dc1.machine.globalSnapshot())!;
    const at = late.cursor;
    const [fenced, primaryNow] = [await ready(late), await ready(late)];
    const epochs = [...dc1.machine.replication()!.epochs];
    const later = { epoch: 2, startSeq: at.seq + 1, startHash: at.hash, primary: 'dc1' };
    await fenced.one({ type: 'epoch.fence', epochs: [...epochs, later] });
    test.equal(await commit(fenced), 'fenced', 'a later reign has begun');
    test.equal(await begin(fenced, late), 'fenced');
    await primaryNow.one({ type: 'epoch.start', epoch: 2, promises: [], ...FORCED });
    await primaryNow.one({ type: 'policy.set', presence: 'create', policy: aPolicy(9) });
    test.equal(await commit(primaryNow), 'primary');
    test.ok(primaryNow.machine.policy(aPolicy(9).id), 'nothing that it wrote is lost');
    await late.close();
  },
);

t.test(
  'snapshot: a row that nobody can read is refused, and every server goes on',
  async (test) => {
    const dc1 = await primary();
    const snapshot = (await dc1.machine.globalSnapshot())!;
    const { header } = snapshot;
    await snapshot.close();
    const policy = { key: POLICIES.keyOf(aPolicy(1) as Policy), value: pack([2, 1, 1, []]) };
    const request = { key: rowKey('request', MARK.key), value: pack([2]) };
    for (const row of [policy, request]) {
      const dc2 = await follower(dc1);
      const chunk = { type: 'global-snapshot.chunk', id: 'one', number: 1 } as const;
      const rows = packedRows([row]);
      await dc2.one({ type: 'level.raise', level: 5 });
      await dc2.one({ type: 'global-snapshot.begin', id: 'one', header });
      test.equal(verdictOf(await dc2.one({ ...chunk, rows })), 'broken-chain');
      test.equal(await take(dc1, dc2), 'applied', 'and what can be read still passes');

      const older = await follower(dc1);
      await older.one({ type: 'level.raise', level: 4 });
      await older.one({ type: 'global-snapshot.begin', id: 'one', header });
      await test.rejects(older.one({ ...chunk, rows }), 'it ends a server, as before');
    }
  },
);

t.test('snapshot: local rows are not in it, and cannot get into it', async (test) => {
  const dc1 = await primary();
  const snapshot = (await dc1.machine.globalSnapshot())!;
  const secret = Buffer.from(aToken(50).secretId);
  for await (const piece of snapshot.pieces()) test.notOk(Buffer.from(piece).includes(secret));
  const dc2 = await follower(dc1);
  await dc1.one(localToken(51), { request: MARK });
  await dc2.one({ type: 'global-snapshot.begin', id: 'one', header: snapshot.header });
  const row = {
    key: rowKey('request', MARK.key),
    value: encodeRequest(dc1.machine.request(MARK.key)!),
  };
  for (const value of [row.value, row.value.slice(0, 9)]) {
    const rows = packedRows([{ ...row, value }]);
    const chunk = { type: 'global-snapshot.chunk', id: 'one', number: 1, rows } as const;
    test.equal(verdictOf(await dc2.one(chunk)), 'broken-chain');
  }
  await snapshot.close();
  test.equal(await new MachineHarness(new MemoryKv()).machine.globalSnapshot(), undefined);
});

t.test(
  'snapshot: tokens whose method or namespace is gone are void, and are reaped',
  async (test) => {
    const dc1 = await primary();
    const dc2 = await follower(dc1);
    const method = dc2.machine.authMethod(anAuthMethod('login').namespace, 'login')!;
    const authMethod = {
      name: 'login',
      namespace: method.namespace,
      createIndex: method.createIndex,
    };
    await dc2.one(localToken(60, { authMethod }));
    await dc2.one(localToken(61, { namespace: aNamespace('team').name }));
    await dc2.one(localToken(62));
    await dc1.one({ type: 'auth-method.delete', namespace: method.namespace, name: 'login' });
    await dc1.one({ type: 'namespace.delete', name: aNamespace('team').name });
    await dc1.one({ type: 'namespace.set', presence: 'create', namespace: aNamespace('team') });
    test.equal(await take(dc1, dc2), 'applied');
    const orphans = [60, 61].map((each) => aToken(each).accessorId);
    test.same([...(await orphansIn(dc2.machine, { isLocalOnly: true }))].sort(), orphans);
    await dc2.one(localToken(63, { namespace: aNamespace('team').name }));
    test.equal((await orphansIn(dc2.machine, { isLocalOnly: true })).length, 2, 'a new one stands');
    await dc2.one({
      type: 'token.reap',
      accessorIds: [60, 61, 62, 63].map((each) => aToken(each).accessorId),
    });
    test.same(await orphansIn(dc2.machine, { isLocalOnly: true }), []);
    test.ok(dc2.machine.token(aToken(62).accessorId));
    test.ok(dc2.machine.token(aToken(63).accessorId));
    test.equal(dc2.machine.token(aToken(61).accessorId), undefined);
  },
);

t.test('snapshot: void tokens that go before the switch leave nothing behind it', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  const { name, namespace, createIndex } = dc2.machine.authMethod(
    anAuthMethod('login').namespace,
    'login',
  )!;
  const given = { authMethod: { name, namespace, createIndex } };
  const team = { namespace: aNamespace('team').name };
  await dc2.one(localToken(60, given));
  await dc2.one(localToken(61, team));
  await dc1.one({ type: 'auth-method.delete', namespace, name });
  await dc1.one({ type: 'namespace.delete', name: team.namespace });
  const snapshot = (await dc1.machine.globalSnapshot())!;
  await begin(dc2, snapshot);
  await carry(dc2);
  // Nobody knows here yet that they are void.
  const token = aToken(61, { local: true, description: 'changed', ...team });
  await dc2.one({ type: 'token.set', presence: 'update', token });
  for (const each of [60, 61]) {
    await dc2.one({ type: 'token.delete', accessorId: aToken(each).accessorId });
  }
  test.equal(await commit(dc2), 'applied');
  await swept(dc2);
  test.equal(dc2.machine.namespaceLostUpTo(team.namespace), 0);
  const kinds = unplaced(dc2.kv)
    .dump()
    .map((row) => Number.parseInt(row.slice(0, 2), 16));
  test.same(
    kinds.filter((kind) => RETIRED.includes(kind)),
    [],
  );
  await snapshot.close();
});

t.test(
  'snapshot: what the primary does not remember any more is not told as done, what was local is',
  async (test) => {
    for (const level of [3, NEWEST_LEVEL]) {
      const isTold = level >= 4;
      const mark = (fill: number) => ({ ...MARK, key: new Uint8Array(32).fill(fill) });
      const dc1 = await primary();
      const dc2 = await follower(dc1);
      for (const each of [dc1, dc2]) await each.one({ type: 'level.raise', level });
      const deleted = (id: number): Change => ({
        type: 'token.delete',
        accessorId: aToken(id).accessorId,
      });
      await dc1.one(deleted(2), { request: mark(2) });
      await follow(dc1, dc2);
      await dc2.one(localToken(60), { request: mark(3) });
      await dc2.one(deleted(60), { request: mark(4) });
      const login = { key: 'state', value: Uint8Array.of(1), expiresMs: FIXTURE_TIME_MS };
      await dc2.one({ type: 'pending-login.set', ...login });
      // As by a restore of the primary.
      await dc1.one({ type: 'request-id.forget', keys: [mark(2).key] });
      test.equal(await take(dc1, dc2), 'applied');
      const remembered = [2, 3, 4].filter((fill) => dc2.machine.request(mark(fill).key));
      test.same(remembered, isTold ? [3, 4] : [2, 3, 4], `level ${level}`);
      const times = await dc2.machine.oldRequests(Number.MAX_SAFE_INTEGER, 10);
      test.equal(times.length, remembered.length, 'and none is found by its time alone');
      const local = dc2.machine.request(mark(4).key);
      test.match(local?.outcome.answer, { existed: true, isLocal: isTold ? true : undefined });
      test.same(dc2.machine.pendingLogin('state')?.value, login.value);
      test.same(await dc2.machine.oldPendingLogins(FIXTURE_TIME_MS + 1, 10), ['state']);
    }
  },
);

t.test('snapshot: a server that joins in the middle goes on where the others are', async (test) => {
  const dc1 = await primary();
  const dc2 = await follower(dc1);
  await dc2.one(localToken(60));
  await dc2.group(Uint8Array.of(1));
  const snapshot = (await dc1.machine.globalSnapshot())!;
  await begin(dc2, snapshot);
  const joined = replaceableMachine();
  const intake = await joined.machine.beginInstall();
  const state = dc2.machine.snapshot();
  for await (const chunk of state.chunks()) await intake.add(chunk);
  await state.close();
  await intake.complete();
  await intake.adopt();
  joined.followMachine();
  for (const each of [dc2, joined]) {
    await carry(each);
    test.equal(await commit(each), 'applied');
  }
  test.same(joined.machine.digests(), dc2.machine.digests());
  test.same(joined.machine.cursor(), dc2.machine.cursor());
  test.same(joined.machine.replication(), dc2.machine.replication());
  await snapshot.close();
});

t.test('carrying: of what is long little goes at a time', async (test) => {
  const dc2 = await follower(await primary());
  const { machine } = dc2;
  const own = (await machine.localRows(undefined, 512)).length;
  for (const each of [1, 2, 3, 4, 5]) {
    await dc2.one(localToken(900 + each, { description: 'x'.repeat(150_000) }));
  }
  const counts: number[] = [];
  let after: Uint8Array | undefined;
  for (let keys = await machine.localRows(after, 512); keys.length > 0; ) {
    counts.push(keys.length);
    after = keys.at(-1);
    keys = await machine.localRows(after, 512);
  }
  test.same([own, counts], [0, [2, 2, 1]]);
});
