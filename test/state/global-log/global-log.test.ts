// The global log: what the primary writes into it, and what a datacenter that follows it makes of it.

import t, { type Test } from 'tap';
import type { NamespaceName } from '../../../src/acl/ids.ts';
import type { Instant } from '../../../src/acl/values/instant.ts';
import type { Change, ChangeOf } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { arrivedEffect } from '../../../src/state/global-effects.ts';
import type { GlobalCursor } from '../../../src/state/global-log/cursor.ts';
import {
  cursorAfter,
  decodeEntry,
  encodeEntry,
  entryHash,
  type GlobalEntry,
} from '../../../src/state/global-log/global-entry.ts';
import type { Verdict } from '../../../src/state/global-log/verdict.ts';
import { isVoid } from '../../../src/state/reads/standing.ts';
import { Digest, rowHash } from '../../../src/state/rows/digest.ts';
import { type Fields, pack, unpack } from '../../../src/state/rows/layout/packing.ts';
import { encodeRecord, TOKEN_CODEC } from '../../../src/state/rows/layout/record-codec.ts';
import { TOKENS } from '../../../src/state/rows/objects/objects.ts';
import { watchKey } from '../../../src/state/watch.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  aBindingRule,
  aNamespace,
  anAuthMethod,
  aPolicy,
  aToken,
  FIXTURE_TIME_MS,
} from '../../support/state-and-service/fixtures.ts';
import {
  BUILTINS,
  expiredIn,
  MachineHarness,
  orphansIn,
} from '../../support/state-and-service/machine-harness.ts';

const PRIMARY: ChangeOf<'global-log.begin'> = {
  type: 'global-log.begin',
  datacenter: 'dc1',
  primary: 'dc1',
  isWitness: false,
};
const FOLLOWER = { ...PRIMARY, datacenter: 'dc2' };

async function primary(): Promise<MachineHarness> {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one(PRIMARY);
  await harness.one(BUILTINS);
  return harness;
}

async function follower(): Promise<MachineHarness> {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one(FOLLOWER);
  return harness;
}

const cursorIn = ({ machine }: MachineHarness): GlobalCursor => machine.cursor()!;

/** The command that brings `to` as far as `from` is. */
async function nextFor(
  from: MachineHarness,
  to: MachineHarness,
  given: Partial<ChangeOf<'global-log.apply'>> = {},
): Promise<ChangeOf<'global-log.apply'>> {
  const cursor = cursorIn(to);
  const entries = (await from.machine.globalEntries(cursor.seq, 1 << 20)) ?? [];
  const { epoch } = cursorIn(from);
  return { type: 'global-log.apply', epoch, from: cursor, entries, to: cursorIn(from), ...given };
}

function verdictOf(outcome: Outcome): Verdict | string {
  if (outcome.kind === 'refused') return outcome.code;
  return outcome.answer.type === 'verdict' ? outcome.answer.verdict : outcome.answer.type;
}

async function follow(from: MachineHarness, to: MachineHarness): Promise<Verdict | string> {
  return verdictOf(await to.one(await nextFor(from, to)));
}

const globalDigest = ({ machine }: MachineHarness): string => machine.digests().global;

t.test('the log: each command that changes global objects is one entry, in order', async (test) => {
  const dc1 = await primary();
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1, { local: true }) });
  await dc1.one(
    { type: 'token.set', presence: 'create', token: aToken(2) },
    { principal: aToken(2).accessorId },
  );
  await dc1.one({ type: 'token.delete', accessorId: aToken(2).accessorId });
  const bytes = (await dc1.machine.globalEntries(0, 1 << 20))!;
  const entries = bytes.map(decodeEntry);
  test.same(
    entries.map(({ epoch, seq, index }) => [epoch, seq, index]),
    [
      [1, 1, 1],
      [1, 2, 2],
      [1, 3, 4],
      [1, 4, 5],
    ],
  );
  test.equal(entries[2]!.principal, aToken(2).accessorId, 'who asked is in it');
  const effects = entries.map(({ body }) => (body.kind === 'effects' ? body.effects : []));
  test.same(
    effects.map(({ length }) => length),
    [3, 1, 1, 1],
  );
  test.equal(effects[3]![0]!.value, undefined, 'a deletion has no value');
  let at = { ...cursorIn(dc1), seq: 0, hash: entries[0]!.prevHash };
  for (const [place, entry] of entries.entries()) {
    test.same(entry.prevHash, at.hash, `entry ${place} follows`);
    at = cursorAfter(entry, entryHash(bytes[place]!));
  }
  test.same(at, cursorIn(dc1));
  test.same(dc1.machine.position(), { epoch: 1, seq: 4 });
  test.match(dc1.machine.keptEntries(), {
    first: 1,
    bytes: bytes.reduce((sum, { length }) => sum + length, 0),
  });
});

t.test(
  'following: the same objects, byte for byte, and the index of a Lamport clock',
  async (test) => {
    const [dc1, dc2] = [await primary(), await follower()];
    await dc2.one({ type: 'token.set', presence: 'create', token: aToken(9, { local: true }) }, {});
    test.equal(dc2.machine.index(), 1, 'a local token needs its namespace');
    test.equal(await follow(dc1, dc2), 'applied');
    for (const each of [1, 2, 3]) {
      await dc2.one({
        type: 'token.set',
        presence: 'create',
        token: aToken(each + 10, { local: true }),
      });
    }
    test.equal(dc2.machine.index(), 4, 'changes of its own count on');
    await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
    test.equal(await follow(dc1, dc2), 'applied');
    test.equal(dc2.machine.index(), 5, 'one that is made elsewhere counts as well');
    test.equal(dc2.machine.policy(aPolicy(1).id)?.modifyIndex, 2, 'and its object keeps its index');
    for (let each = 1; each < 9; each += 1) {
      await dc1.one({
        type: 'token.set',
        presence: 'create',
        token: aToken(each, { local: true }),
      });
    }
    await dc1.one({ type: 'policy.set', presence: 'update', policy: aPolicy(1) });
    test.equal(await follow(dc1, dc2), 'applied');
    test.equal(dc2.machine.index(), 11, 'no object has an index beyond that of its datacenter');
    test.equal(globalDigest(dc2), globalDigest(dc1));
    test.same(cursorIn(dc2), cursorIn(dc1));
    test.same(dc2.machine.position(), dc1.machine.position());
    test.same(
      await dc2.machine.globalEntries(0, 1 << 20),
      await dc1.machine.globalEntries(0, 1 << 20),
    );
  },
);

t.test('following: what does not fit changes nothing and says what it is', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  const good = await nextFor(dc1, dc2);
  const [first, second] = good.entries.map((each) => decodeEntry(each));
  const without = { ...dc2.machine.cursor()! };
  const changed = (entry: GlobalEntry): Change => {
    const bytes = encodeEntry(entry);
    const rest = good.entries.slice(1);
    const to = cursorAfter(entry, entryHash(bytes));
    return { ...good, entries: [bytes, ...rest.slice(1)], to };
  };
  const stranger = encodeEntry({ ...second!, prevHash: new Uint8Array(32) });
  const entries = [good.entries[0]!, stranger];
  const strange = { ...good, entries, to: cursorAfter(second!, entryHash(stranger)) };
  const wrong: Readonly<Record<string, readonly [Change, Verdict]>> = {
    'another place': [{ ...good, from: { ...good.from, seq: 7 } }, 'other-cursor'],
    'another history': [{ ...good, from: { ...good.from, hash: good.to.hash } }, 'other-cursor'],
    'a gap': [{ ...good, entries: good.entries.slice(1) }, 'broken-chain'],
    'a lost end': [{ ...good, entries: good.entries.slice(0, 1) }, 'broken-chain'],
    'an entry twice': [{ ...good, entries: [good.entries[0]!, ...good.entries] }, 'broken-chain'],
    'no entry at all': [{ ...good, entries: [Uint8Array.of(7)] }, 'broken-chain'],
    'an epoch of nobody': [changed({ ...first!, epoch: 2 }), 'broken-chain'],
    'a seq left out': [changed({ ...first!, seq: 2 }), 'broken-chain'],
    'another digest': [changed({ ...first!, digest: second!.digest }), 'diverged'],
    'an entry of another chain': [strange, 'broken-chain'],
    'an old primary': [{ ...good, epoch: 0 }, 'fenced'],
    'a restore': [changed({ ...first!, body: { kind: 'reset' } }), 'reset'],
    'a head without what follows it': [headOnly(good, first!), 'broken-chain'],
  };
  for (const [what, [change, verdict]] of Object.entries(wrong)) {
    const before = { ...dc2.machine.digests(), index: dc2.machine.index() };
    const outcome = await dc2.one(change);
    test.equal(verdictOf(outcome), verdict, what);
    test.same({ ...dc2.machine.digests(), index: dc2.machine.index() }, before, what);
    test.same(cursorIn(dc2), without, what);
  }
  test.equal(verdictOf(await dc1.one(good)), 'primary');
  test.equal(verdictOf(await dc2.one(good)), 'applied');
  test.equal(verdictOf(await dc2.one(good)), 'other-cursor', 'a second time it fits nowhere');
  const fresh = new MachineHarness(new MemoryKv());
  test.equal(verdictOf(await fresh.one(good)), 'not-begun');
});

/** The batch with an entry in place of its first that says its place, and of which nothing else can be read. */
function headOnly(good: ChangeOf<'global-log.apply'>, entry: GlobalEntry): Change {
  const { epoch, seq, prevHash, index, timeMs } = entry;
  const bytes = pack([1, epoch, seq, prevHash, index, timeMs, 1, null]);
  return { ...good, entries: [bytes], to: cursorAfter(entry, entryHash(bytes)) };
}

t.test('following: an entry of a later release ends who cannot read it', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  const good = await nextFor(dc1, dc2);
  const [, epoch, seq, prevHash, ...rest] = unpack(good.entries[0]!);
  const bytes = pack([99, epoch, seq, prevHash, ...rest] as Fields);
  const to = cursorAfter({ epoch: good.epoch, seq: good.to.seq }, entryHash(bytes));
  // Whoever passed it over would have another state than the servers that can.
  const refusal = { name: 'AssertionError', message: /the format of a stored global entry/ };
  await test.rejects(dc2.one({ ...good, entries: [bytes], to }), refusal);
});

t.test('following: epochs do not go back, nor beyond the one that the log is of', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  await follow(dc1, dc2);
  const claim = { promises: [], isForced: true, isFromFork: false };
  await dc1.one({ type: 'epoch.start', epoch: 2, ...claim });
  const beyond = await nextFor(dc1, dc2, { epoch: 1 });
  test.equal(verdictOf(await dc2.one(beyond)), 'broken-chain');
  test.equal(cursorIn(dc2).epoch, 1);
  test.equal(await follow(dc1, dc2), 'applied');
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  const good = await nextFor(dc1, dc2);
  const entry = { ...decodeEntry(good.entries[0]!), epoch: 1 };
  const bytes = encodeEntry(entry);
  const back = { ...good, entries: [bytes], to: cursorAfter(entry, entryHash(bytes)) };
  test.equal(verdictOf(await dc2.one(back)), 'broken-chain');
  test.equal(cursorIn(dc2).epoch, 2);
  const wrong: readonly Partial<GlobalEntry>[] = [
    { epoch: 3 },
    { body: { kind: 'epoch-start', primary: 'dc1', promises: [], isForced: true } },
  ];
  for (const given of wrong) {
    const strange = { ...decodeEntry(good.entries[0]!), ...given };
    const packed = encodeEntry(strange);
    const to = cursorAfter(strange, entryHash(packed));
    const change = { ...good, epoch: strange.epoch, entries: [packed], to };
    // Behind the first one, of a later reign.
    const said = verdictOf(await dc2.one({ ...change, epoch: 3 }));
    test.equal(said, 'broken-chain', 'an epoch begins with its own entry, once');
    test.equal(cursorIn(dc2).epoch, 2);
  }
});

t.test('following: a restore leads a witness on, and not back', async (test) => {
  const dc1 = await primary();
  const witness = new MachineHarness(new MemoryKv());
  await witness.one({ ...FOLLOWER, datacenter: 'w', isWitness: true });
  test.equal(await follow(dc1, witness), 'applied');
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  const next = await nextFor(dc1, witness);
  const restored = { ...decodeEntry(next.entries[0]!), body: { kind: 'reset' } as const };
  const { seq } = next.from;
  for (const [at, verdict] of [
    [seq, 'broken-chain'],
    [seq + 9, 'applied'],
  ] as const) {
    const entry = { ...restored, seq: at };
    const bytes = encodeEntry(entry);
    const change = { ...next, entries: [bytes], to: cursorAfter(entry, entryHash(bytes)) };
    test.equal(verdictOf(await witness.one(change)), verdict);
  }
  test.equal(cursorIn(witness).seq, seq + 9);
});

t.test(
  'following: whoever has begun an epoch ends those before it with what it sends first',
  async (test) => {
    const [dc1, dc2] = [await primary(), await follower()];
    const old = await nextFor(dc1, dc2);
    await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
    const late = await nextFor(dc1, dc2);
    await dc1.one({
      type: 'epoch.start',
      epoch: 2,
      promises: [],
      isForced: true,
      isFromFork: false,
    });
    test.equal(verdictOf(await dc2.one({ ...old, epoch: 2 })), 'applied');
    test.match(dc2.machine.replication(), { cursor: { epoch: 1 }, maxEpochPromised: 2 });
    test.equal(dc2.machine.replication()?.votedFor, undefined, 'nobody else is promised it');
    const rest = { ...late, from: old.to, entries: late.entries.slice(old.entries.length) };
    test.equal(verdictOf(await dc2.one(rest)), 'fenced', 'of the reign before');
    test.equal(verdictOf(await dc2.one({ ...rest, epoch: 2 })), 'applied');
  },
);

t.test('following: the index is no lower than the one that an entry says', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  await follow(dc1, dc2);
  const token = aToken(9, { local: true });
  await dc1.one({ type: 'token.set', presence: 'create', token });
  const epoch = { promises: [], isForced: true, isFromFork: false };
  await dc1.one({ type: 'epoch.start', epoch: 2, ...epoch });
  test.equal(await follow(dc1, dc2), 'applied');
  test.equal(dc2.machine.index(), dc1.machine.index(), 'also where it changes no object');
});

t.test('following: entries before the one that does not fit stay', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  const good = await nextFor(dc1, dc2);
  const last = decodeEntry(good.entries[1]!);
  const bytes = encodeEntry({ ...last, digest: new Uint8Array(32) });
  const to = cursorAfter(last, entryHash(bytes));
  const outcome = await dc2.one({ ...good, entries: [good.entries[0]!, bytes], to });
  test.equal(verdictOf(outcome), 'diverged');
  test.equal(cursorIn(dc2).seq, 1);
  test.equal(await follow(dc1, dc2), 'applied');
});

t.test(
  'a datacenter that follows: refuses global commands, whoever proposes them',
  async (test) => {
    const [dc1, dc2] = [await primary(), await follower()];
    await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
    await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1) });
    await dc1.one({ type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') });
    await dc1.one({ type: 'binding-rule.set', presence: 'create', rule: aBindingRule(1) });
    await dc1.one({ type: 'namespace.set', presence: 'create', namespace: aNamespace('team') });
    await follow(dc1, dc2);
    await dc2.one({ type: 'token.set', presence: 'create', token: aToken(8, { local: true }) });
    const team = 'team' as NamespaceName;
    const refused: readonly Change[] = [
      BUILTINS,
      { type: 'policy.set', presence: 'create', policy: aPolicy(2) },
      { type: 'policy.set', presence: 'create', policy: aPolicy(1) },
      { type: 'policy.delete', id: aPolicy(1).id },
      { type: 'policy.delete', id: aPolicy(7).id },
      { type: 'token.set', presence: 'create', token: aToken(2) },
      { type: 'token.set', presence: 'update', token: aToken(1) },
      { type: 'token.delete', accessorId: aToken(1).accessorId },
      { type: 'token.delete', accessorId: aToken(7).accessorId },
      { type: 'auth-method.set', presence: 'either', method: anAuthMethod('login') },
      { type: 'auth-method.delete', namespace: anAuthMethod('login').namespace, name: 'login' },
      { type: 'binding-rule.delete', id: aBindingRule(1).id },
      { type: 'namespace.set', presence: 'either', namespace: aNamespace('team') },
      { type: 'namespace.delete', name: team },
      { type: 'bootstrap', token: aToken(3), resetIndex: undefined },
      { type: 'restore.begin', id: 'one' },
    ];
    for (const change of refused) {
      const before = dc2.machine.digests();
      const outcome = await dc2.one(change);
      test.equal(verdictOf(outcome), 'not-primary', change.type);
      test.same(dc2.machine.digests(), before);
    }
    const allowed: readonly Change[] = [
      { type: 'token.set', presence: 'update', token: aToken(8, { local: true }) },
      { type: 'token.delete', accessorId: aToken(8).accessorId },
      { type: 'token.reap', accessorIds: [aToken(1).accessorId] },
    ];
    for (const change of allowed) test.equal((await dc2.one(change)).kind, 'applied', change.type);
  },
);

/** A store that says which rows were looked for. */
class WatchedKv extends MemoryKv {
  readonly lookedFor = new Set<string>();

  override get(key: Uint8Array): Uint8Array | undefined {
    this.lookedFor.add(Buffer.from(key).toString('hex'));
    return super.get(key);
  }
}

t.test('arrivals: a token that the entry made is not looked for', async (test) => {
  const dc1 = await primary();
  const kv = new WatchedKv();
  const dc2 = new MachineHarness(kv);
  await dc2.one(FOLLOWER);
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1) });
  test.equal(await follow(dc1, dc2), 'applied');
  const row = Buffer.from(TOKENS.keyOf(dc1.machine.token(aToken(1).accessorId)!)).toString('hex');
  test.notOk(kv.lookedFor.has(row), 'it cannot be there');
  const changed = aToken(1, { description: 'changed' });
  await dc1.one({ type: 'token.set', presence: 'update', token: changed });
  test.equal(await follow(dc1, dc2), 'applied');
  test.ok(kv.lookedFor.has(row), 'what a token was has to be known');
  test.equal(globalDigest(dc2), globalDigest(dc1));
});

t.test('arrivals: a token that is there is found, whatever its row says', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1) });
  await follow(dc1, dc2);
  const before = dc1.machine.token(aToken(1).accessorId)!;
  const old = { key: TOKENS.keyOf(before), value: encodeRecord(TOKEN_CODEC, before) };
  const changed = aToken(1, { description: 'changed' });
  await dc1.one({ type: 'token.set', presence: 'update', token: changed });
  const command = await nextFor(dc1, dc2);
  const entry = decodeEntry(command.entries[0]!);
  // The primary says that it made the token with this very entry, and counts the old row as gone.
  const token = { ...dc1.machine.token(aToken(1).accessorId)!, createIndex: entry.index };
  const value = encodeRecord(TOKEN_CODEC, token);
  const effect = arrivedEffect(old.key, value)!;
  const digest = new Digest(Buffer.from(globalDigest(dc2), 'hex'));
  digest.subtract(rowHash(old.key, old.value));
  digest.add(rowHash(old.key, value));
  const body = { kind: 'effects', effects: [effect] } as const;
  const bytes = encodeEntry({ ...entry, body, digest: digest.bytes() });
  const to = cursorAfter(entry, entryHash(bytes));
  test.equal(verdictOf(await dc2.one({ ...command, entries: [bytes], to })), 'applied');
  test.equal(globalDigest(dc2), digest.hex());
  test.match(dc2.machine.token(token.accessorId), { description: 'changed' });
  test.equal(dc2.machine.totals().tokens, dc1.machine.totals().tokens, 'it is counted once');
});

t.test(
  'locality: no local row gets into an entry, whatever says that it is global',
  async (test) => {
    const dc1 = await primary();
    await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
    const local = aToken(1, { local: true });
    const kv = dc1.kv;
    await dc1.one({ type: 'token.set', presence: 'create', token: local });
    const secretRow = kv
      .dump()
      .find((row) => row.startsWith('0a') && row.includes(hexOf(local.secretId)));
    const [key = '', value = ''] = secretRow!.split(' ');
    const [bytes] = (await dc1.machine.globalEntries(0, 1 << 20))!;
    const entry = decodeEntry(bytes!);
    const effect = {
      key: Buffer.from(key, 'hex'),
      value: Buffer.from(value, 'hex'),
      isLocal: false,
    };
    const body = { kind: 'effects', effects: [effect] } as unknown as GlobalEntry['body'];
    test.throws(() => encodeEntry({ ...entry, body }), { name: 'AssertionError' });
    for (const each of (await dc1.machine.globalEntries(0, 1 << 20))!) {
      test.notOk(
        Buffer.from(each).includes(local.secretId),
        'no byte of its secret is in an entry',
      );
    }
  },
);

const hexOf = (text: string): string => Buffer.from(text).toString('hex');

t.test(
  'auth methods: their deletion makes local tokens void as the entry arrives',
  async (test) => {
    const [dc1, dc2] = [await primary(), await follower()];
    const method = anAuthMethod('login');
    await dc1.one({ type: 'auth-method.set', presence: 'either', method });
    await dc1.one({ type: 'binding-rule.set', presence: 'create', rule: aBindingRule(1) });
    await follow(dc1, dc2);
    const { createIndex } = dc2.machine.authMethod(method.namespace, 'login')!;
    const authMethod = { name: 'login', namespace: method.namespace, createIndex };
    const token = aToken(1, { local: true, authMethod });
    await dc2.one({ type: 'token.set', presence: 'create', token });
    await dc1.one({ type: 'auth-method.delete', namespace: method.namespace, name: 'login' });
    await dc1.one({ type: 'auth-method.set', presence: 'either', method });
    test.equal(await follow(dc1, dc2), 'applied');
    test.same([...dc2.machine.bindingRulesOf(method.namespace, 'login')], []);
    test.same(await orphansIn(dc2.machine, { isLocalOnly: true }), [token.accessorId]);
    await dc2.one({ type: 'token.reap', accessorIds: [token.accessorId] });
    test.equal(dc2.machine.token(token.accessorId), undefined);
    test.same(await orphansIn(dc2.machine, { isLocalOnly: true }), []);
  },
);

t.test('auth methods: with the last token of a deleted one nothing is left of it', async (test) => {
  for (const isLocalLast of [true, false]) await endTokensOfMethod(test, isLocalLast);
});

async function endTokensOfMethod(test: Test, isLocalLast: boolean): Promise<void> {
  const [dc1, dc2] = [await primary(), await follower()];
  const method = anAuthMethod('login');
  await dc1.one({ type: 'auth-method.set', presence: 'either', method });
  await follow(dc1, dc2);
  const { createIndex } = dc1.machine.authMethod(method.namespace, 'login')!;
  const authMethod = { name: 'login', namespace: method.namespace, createIndex };
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1, { authMethod }) });
  await follow(dc1, dc2);
  const local = aToken(2, { local: true, authMethod });
  await dc2.one({ type: 'token.set', presence: 'create', token: local });
  await dc1.one({ type: 'auth-method.delete', namespace: method.namespace, name: 'login' });
  await follow(dc1, dc2);
  const retired = (): number => dc2.kv.dump().filter((row) => row.startsWith('2a')).length;
  test.equal(retired(), 1);
  const ends: readonly Change[] = [
    { type: 'token.reap', accessorIds: [aToken(1).accessorId] },
    // The local token gives way to it.
    { type: 'token.set', presence: 'create', token: aToken(2) },
  ];
  for (const end of isLocalLast ? ends : ends.toReversed()) {
    test.equal(retired(), 1, 'the other one is there');
    await dc1.one(end);
    test.equal(await follow(dc1, dc2), 'applied');
  }
  test.equal(dc2.machine.token(aToken(1).accessorId), undefined);
  test.equal(retired(), 0);
  test.same(await orphansIn(dc2.machine, { isLocalOnly: true }), []);
}

t.test('namespaces: their deletion makes local tokens void as the entry arrives', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  const team = aNamespace('team');
  await dc1.one({ type: 'namespace.set', presence: 'create', namespace: team });
  await follow(dc1, dc2);
  const made = (number: number): Change => {
    const token = aToken(number, { local: true, namespace: team.name });
    return { type: 'token.set', presence: 'create', token };
  };
  await dc2.one(made(1));
  await dc2.one(made(2));
  for (const number of [5, 6, 7]) {
    const token = aToken(number, { local: true });
    await dc2.one({ type: 'token.set', presence: 'create', token });
  }
  const ofTokens = dc2.machine.tableIndex('tokens');
  await dc1.one({ type: 'namespace.delete', name: team.name });
  await dc1.one({ type: 'namespace.set', presence: 'create', namespace: team });
  test.equal(await follow(dc1, dc2), 'applied');
  test.ok(dc2.machine.tableIndex('tokens') > ofTokens, 'whoever lists the tokens hears of it');
  await dc2.one(made(3));
  const shared = aToken(4, { namespace: team.name });
  await dc1.one({ type: 'token.set', presence: 'create', token: shared });
  test.equal(await follow(dc1, dc2), 'applied');
  const { createIndex } = dc2.machine.token(shared.accessorId)!;
  test.ok(createIndex <= dc2.machine.namespaceLostUpTo(team.name), 'by the count of the primary');
  const standing = (number: number): boolean =>
    !isVoid(dc2.machine.token(aToken(number).accessorId)!, dc2.machine, FIXTURE_TIME_MS);
  const standings = [1, 2, 3, 4].map(standing);
  test.same(standings, [false, false, true, true], 'the new namespace is another one');
  const lost = [1, 2].map((number) => aToken(number).accessorId);
  test.same(await orphansIn(dc2.machine, { isLocalOnly: true }), lost);
  await dc2.one({ type: 'token.reap', accessorIds: [1, 2, 3].map((n) => aToken(n).accessorId) });
  test.same(await orphansIn(dc2.machine, { isLocalOnly: true }), []);
  test.equal(dc2.machine.namespaceLostUpTo(team.name), 0, 'nothing is left to remember');
  test.ok(dc2.machine.token(aToken(3).accessorId));
});

t.test('reaping: a datacenter that follows leaves global tokens to the primary', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  const expirationTime = '2026-01-01T00:00:01Z' as Instant;
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1, { expirationTime }) });
  await follow(dc1, dc2);
  const local = aToken(2, { expirationTime, local: true });
  await dc2.one({ type: 'token.set', presence: 'create', token: local });
  const nowMs = FIXTURE_TIME_MS + 60_000;
  test.same(await expiredIn(dc2.machine, nowMs, { isLocalOnly: true }), [local.accessorId]);
  test.same(await expiredIn(dc1.machine, nowMs), [aToken(1).accessorId]);
  const accessorIds = [aToken(1).accessorId, local.accessorId];
  await dc2.one({ type: 'token.reap', accessorIds }, { timeMs: nowMs });
  test.ok(dc2.machine.token(aToken(1).accessorId));
  test.equal(dc2.machine.token(local.accessorId), undefined);
});

t.test('ids: a local token gives way to one of the primary that has its ids', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  await follow(dc1, dc2);
  await dc2.one({ type: 'token.set', presence: 'create', token: aToken(1, { local: true }) });
  const sameSecret = aToken(2, { local: true, secretId: aToken(3).secretId });
  await dc2.one({ type: 'token.set', presence: 'create', token: sameSecret });
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1) });
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(3) });
  test.equal(await follow(dc1, dc2), 'applied');
  test.equal(dc2.machine.token(aToken(1).accessorId)?.local, false);
  test.equal(dc2.machine.token(sameSecret.accessorId), undefined);
  test.equal(dc2.machine.tokenBySecret(aToken(3).secretId)?.accessorId, aToken(3).accessorId);
  test.same(globalDigest(dc2), globalDigest(dc1));
  test.equal(dc2.machine.totals().localTokens, 0);
});

t.test('requests: a repeat is known in each datacenter that has the entry', async (test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  const request = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(2) };
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1) }, { request });
  test.equal(await follow(dc1, dc2), 'applied');
  const [there, here] = [dc1, dc2].map(({ machine }) => machine.request(request.key)!);
  test.same(here!.fingerprint, request.fingerprint);
  test.match(here!.outcome, { kind: 'applied', replayed: true, answer: { type: 'token' } });
  test.same(here!.outcome, there!.outcome);
});

t.test(
  'a witness: it has the log and nothing of what is told, also behind a restore',
  async (test) => {
    const [dc1, witness] = [await primary(), new MachineHarness(new MemoryKv())];
    await witness.one({ ...FOLLOWER, isWitness: true });
    const request = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(2) };
    await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1) }, { request });
    test.equal(await follow(dc1, witness), 'applied');
    test.same(cursorIn(witness), cursorIn(dc1));
    const { machine } = witness;
    test.same(
      [machine.token(aToken(1).accessorId), machine.request(request.key)],
      [undefined, undefined],
    );
    const last = decodeEntry((await dc1.machine.globalEntries(cursorIn(dc1).seq - 1, 1))![0]!);
    const { hash, seq } = cursorIn(dc1);
    const reset = {
      ...last,
      prevHash: hash,
      seq: seq + 40,
      body: { kind: 'reset' },
      request: undefined,
    };
    const bytes = encodeEntry(reset as GlobalEntry);
    const to = cursorAfter(reset, entryHash(bytes));
    const behind = { ...(await nextFor(dc1, witness)), entries: [bytes], to };
    test.equal(verdictOf(await witness.one(behind)), 'applied');
    test.same(cursorIn(witness), to);
    test.match(machine.keptEntries(), { first: seq + 40, bytes: bytes.length });
  },
);

t.test('bootstrap: it is done in each datacenter that has the entry', async (test: Test) => {
  const [dc1, dc2] = [await primary(), await follower()];
  await dc1.one({ type: 'bootstrap', token: aToken(1), resetIndex: undefined });
  test.equal(await follow(dc1, dc2), 'applied');
  test.equal(dc2.machine.bootstrapIndex(), dc1.machine.bootstrapIndex());
});

t.test('trimming: what is dropped cannot be sent, and the rest can', async (test) => {
  const dc1 = await primary();
  for (const each of [1, 2, 3]) {
    await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) });
  }
  const all = (await dc1.machine.globalEntries(0, 1 << 20))!;
  await dc1.one({ type: 'global-log.trim', upTo: 2 });
  test.equal(await dc1.machine.globalEntries(0, 1 << 20), undefined);
  test.equal(await dc1.machine.globalEntries(1, 1 << 20), undefined);
  test.same(await dc1.machine.globalEntries(2, 1 << 20), all.slice(2));
  test.same(dc1.machine.globalHashAt(2), entryHash(all[1]!));
  test.equal(dc1.machine.globalHashAt(1), undefined);
  test.match(dc1.machine.keptEntries(), { first: 3, bytes: all[2]!.length + all[3]!.length });
  await dc1.one({ type: 'global-log.trim', upTo: 100 });
  test.same(await dc1.machine.globalEntries(4, 1 << 20), []);
  test.match(dc1.machine.keptEntries(), { first: 5, bytes: 0 });
  test.equal(dc1.kv.dump().filter((row) => row.startsWith('5d')).length, 0, 'no row is left');
  test.same((await dc1.machine.globalEntries(4, 1))!.length, 0);
});

t.test('sending: no more than fits, and at least one', async (test) => {
  const dc1 = await primary();
  for (const each of [1, 2, 3]) {
    await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) });
  }
  const all = (await dc1.machine.globalEntries(0, 1 << 20))!;
  test.same(await dc1.machine.globalEntries(0, 1), all.slice(0, 1));
  test.same(await dc1.machine.globalEntries(1, all[1]!.length + all[2]!.length), all.slice(1, 3));
  test.same(await dc1.machine.globalEntries(4, 1 << 20), []);
});

t.test('begin: a state that is there already begins its log where it is', async (test) => {
  const dc1 = new MachineHarness(new MemoryKv());
  await dc1.one(BUILTINS);
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  test.equal(dc1.machine.cursor(), undefined);
  await dc1.one(PRIMARY);
  test.match(cursorIn(dc1), { epoch: 1, seq: 2 });
  test.match(dc1.machine.keptEntries(), { first: 3 });
  const again = cursorIn(dc1);
  await dc1.one(PRIMARY);
  test.same(cursorIn(dc1), again, 'beginning again changes nothing');
  test.equal((await dc1.one(PRIMARY)).kind, 'applied', 'and is no fault');
  const lonely = new MachineHarness(new MemoryKv());
  test.equal((await lonely.one({ ...PRIMARY, isWitness: true })).kind, 'refused');
  test.equal((await dc1.one({ ...PRIMARY, datacenter: 'dc7' })).kind, 'refused');
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(2) });
  test.match(cursorIn(dc1), { epoch: 1, seq: 3 });
  const dc2 = await follower();
  test.equal(await dc1.machine.globalEntries(cursorIn(dc2).seq, 1 << 20), undefined);
});

t.test(
  'before it began: whatever is said of the log changes nothing, and ends nobody',
  async (test) => {
    const dc1 = new MachineHarness(new MemoryKv());
    await dc1.one(BUILTINS);
    const follows = await nextFor(await primary(), await follower());
    const source = await primary();
    const snapshot = (await source.machine.globalSnapshot())!;
    const { header } = snapshot;
    await snapshot.close();
    const { epochs } = source.machine.replication()!;
    const said: Readonly<Record<string, readonly [Change, string]>> = {
      apply: [follows, 'not-begun'],
      trim: [{ type: 'global-log.trim', upTo: 5 }, 'unavailable'],
      promise: [
        { type: 'epoch.promise', epoch: 2, candidate: 'dc2', at: { epoch: 1, seq: 0 } },
        'not-begun',
      ],
      start: [
        { type: 'epoch.start', epoch: 2, promises: [], isForced: true, isFromFork: false },
        'not-begun',
      ],
      fence: [{ type: 'epoch.fence', epochs }, 'not-begun'],
      discard: [{ type: 'divergent.discard', epoch: 1, upTo: 5 }, 'not-begun'],
      drop: [{ type: 'divergent.drop', epoch: 1, seq: 5 }, 'not-begun'],
      list: [{ type: 'datacenters.set', datacenters: [], majoritySeq: 0 }, 'not-begun'],
      adopt: [{ type: 'federation.adopt', federationId: 'one' }, 'not-begun'],
      snapshot: [{ type: 'global-snapshot.begin', id: 'one', header }, 'not-begun'],
      remove: [
        { type: 'datacenter.remove', name: 'dc2', majoritySeq: 0, isForced: true },
        'invalid',
      ],
      allow: [{ type: 'datacenter.allow', name: 'dc2' }, 'invalid'],
    };
    const rows = (): string => dc1.kv.dump().slice(1).join();
    const before = rows();
    for (const [what, [change, verdict]] of Object.entries(said)) {
      test.equal(verdictOf(await dc1.one(change)), verdict, what);
      test.equal(rows(), before, what);
    }
  },
);

t.test('moves: whoever asked hears of each', async (test) => {
  const dc1 = await primary();
  let heard = 0;
  const end = dc1.machine.onGlobalLogMoved(() => {
    heard += 1;
  });
  await dc1.one({ type: 'token.set', presence: 'create', token: aToken(1, { local: true }) });
  test.equal(heard, 0, 'a local token moves nothing');
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  test.equal(heard, 1);
  end();
  await dc1.one({ type: 'policy.delete', id: aPolicy(1).id });
  test.equal(heard, 1);
});

t.test('requests: what is remembered counts at any age, until a leader names it', async (test) => {
  const dc1 = await primary();
  const request = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(2) };
  const make: Change = { type: 'token.set', presence: 'create', token: aToken(1) };
  const first = await dc1.one(make, { request });
  const late = FIXTURE_TIME_MS + 24 * 3_600_000;
  test.same(await dc1.one(make, { request, timeMs: late }), { ...first, replayed: true });
  const { index } = dc1.machine.request(request.key)!.outcome as { readonly index: number };
  const search = { orBeforeMs: 0, after: undefined, limit: 10 };
  test.same((await dc1.machine.requestsBelow({ ...search, below: index })).keys, []);
  const { keys, next } = await dc1.machine.requestsBelow({ ...search, below: index + 1 });
  test.same(keys, [request.key]);
  test.equal(next, undefined);
  const tied = { ...search, below: index, orBeforeMs: FIXTURE_TIME_MS + 1 };
  test.same((await dc1.machine.requestsBelow(tied)).keys, [request.key]);
  const part = await dc1.machine.requestsBelow({ ...search, below: index + 1, limit: 1 });
  test.same((await dc1.machine.requestsBelow({ ...search, below: 99, after: part.next })).keys, []);
  await dc1.one({ type: 'request-id.forget', keys: [request.key] });
  test.equal(dc1.machine.request(request.key), undefined);
});

t.test(
  'requests: they count at any age without a global log, too, where all can read so',
  async (test) => {
    const alone = new MachineHarness(new MemoryKv());
    const request = { key: new Uint8Array(32).fill(1), fingerprint: new Uint8Array(32).fill(2) };
    const make: Change = { type: 'policy.set', presence: 'create', policy: aPolicy(1) };
    await alone.one(BUILTINS);
    const first = await alone.one(make, { request });
    const late = FIXTURE_TIME_MS + 24 * 3_600_000;
    const repeat = (): Promise<Outcome> => alone.one(make, { request, timeMs: late });
    test.match(await repeat(), { kind: 'refused' }, 'releases that go by the times may still run');
    await alone.one({ type: 'level.raise', level: 2 });
    test.same(await repeat(), { ...first, replayed: true });
    await alone.one({ type: 'request-id.forget', keys: [request.key] });
    test.match(await repeat(), { kind: 'refused' });
  },
);

t.test('ids: wherever the hyphens are, a read is as new as the last change', async (test) => {
  const dc1 = await primary();
  await dc1.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  const digits = aPolicy(1).id.replaceAll('-', '');
  const odd = `${digits.slice(0, 4)}-${digits.slice(4, 9)}-${digits.slice(9, 20)}-${digits.slice(20, 26)}-${digits.slice(26)}`;
  test.equal(dc1.machine.policy(odd)?.description, 'policy 1');
  const target = { table: 'policies', object: watchKey({ id: odd }) } as const;
  const changed = dc1.machine.watch.waitFor(target, new AbortController().signal);
  const policy = aPolicy(1, { description: 'new' });
  await dc1.one({ type: 'policy.set', presence: 'update', policy });
  test.equal(dc1.machine.policy(odd)?.description, 'new');
  dc1.clock.advance(0);
  await changed;
  await dc1.one({ type: 'policy.delete', id: aPolicy(1).id });
  test.equal(dc1.machine.policy(odd), undefined);
});
