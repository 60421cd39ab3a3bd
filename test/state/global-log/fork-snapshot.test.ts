// Going back to where another chain left the own one, with nothing but what is kept here: it comes to the same as a
// snapshot of who went on there, or it is refused and nothing changes.

import fc from 'fast-check';
import t from 'tap';
import type { Change, Command } from '../../../src/state/commands/commands.ts';
import { standingOf } from '../../../src/state/global-log/chain.ts';
import { forkSnapshotOf } from '../../../src/state/global-log/fork-snapshot.ts';
import { decodeEntry, encodeEntry } from '../../../src/state/global-log/global-entry.ts';
import { entryKey } from '../../../src/state/global-log/global-log-writer.ts';
import type { GlobalSnapshot } from '../../../src/state/global-log/global-snapshot.ts';
import type { Replication } from '../../../src/state/global-log/replication.ts';
import { decodeMeta, encodeMeta } from '../../../src/state/rows/meta.ts';
import { StateStore } from '../../../src/state/rows/store/state-store.ts';
import { META_KEY } from '../../../src/state/rows/tables.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aPolicy, aToken } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';
import { archived, commandsOf, type Server } from '../archives/restoring.ts';
import { history } from '../histories.ts';

type Harness = MachineHarness;

const DATACENTERS = ['dc1', 'dc2'].map((name) => ({ name, isVoter: true, isWitness: false }));
const LEVEL = 5;
const CLAIM = { promises: [], isForced: true, isFromFork: false } as const;

const at = ({ machine }: Harness): Replication => machine.replication()!;

const storeOf = ({ kv, clock }: Harness): StateStore => new StateStore(kv, 0, clock);

async function begun(datacenter: string): Promise<Harness> {
  const harness = new MachineHarness(new MemoryKv());
  const begin = { datacenter, primary: 'dc1', isWitness: false };
  await harness.one({ type: 'global-log.begin', ...begin });
  await harness.one({ type: 'level.raise', level: LEVEL });
  return harness;
}

async function primary(commands: readonly Command[]): Promise<Harness> {
  const harness = await begun('dc1');
  await harness.one(BUILTINS);
  await harness.one({ type: 'datacenters.set', datacenters: DATACENTERS, majoritySeq: 0 });
  for (const command of commands) await harness.run(command);
  return harness;
}

async function say(harness: Harness, change: Change): Promise<string> {
  const outcome = await harness.one(change);
  if (outcome.kind === 'refused') return `${outcome.code}: ${outcome.message}`;
  return outcome.answer.type === 'verdict' ? outcome.answer.verdict : outcome.answer.type;
}

/** All that one has more. */
async function sync(from: Harness, to: Harness): Promise<string> {
  const entries = (await from.machine.globalEntries(at(to).cursor.seq, 1 << 24))!;
  if (entries.length === 0) return 'applied';
  const { cursor: end, epochs } = at(from);
  const { epoch } = epochs.at(-1)!;
  const batch = { epoch, from: at(to).cursor, entries, to: end };
  return say(to, { type: 'global-log.apply', ...batch });
}

async function takeIn(snapshot: GlobalSnapshot, to: Harness): Promise<string> {
  const id = 'one';
  const began = { type: 'global-snapshot.begin', id, header: snapshot.header } as const;
  let verdict = await say(to, began);
  let number = 0;
  for await (const rows of snapshot.pieces()) {
    number += 1;
    if (verdict === 'applied') {
      verdict = await say(to, { type: 'global-snapshot.chunk', id, number, rows });
    }
  }
  await snapshot.close();
  if (verdict !== 'applied') return verdict;
  const carry = { type: 'global-snapshot.carry', id } as const;
  await say(to, { ...carry, number: 1, keys: [], isLast: false });
  const keys = await to.machine.localRows(undefined, 10_000);
  await say(to, { ...carry, number: 2, keys, isLast: true });
  return say(to, { type: 'global-snapshot.commit', id });
}

/** dc1 is back where dc2 went on. Rejects as the machine does. */
async function goBack(one: Harness, two: Harness): Promise<string> {
  const { epochs, close } = await one.machine.forkSnapshot(at(two).epochs);
  await close();
  const fenced = await say(one, { type: 'epoch.fence', epochs });
  if (fenced !== 'applied') return `fence: ${fenced}`;
  return takeIn(await one.machine.forkSnapshot(at(two).epochs), one);
}

interface Forked {
  /** The old primary, and one whose log is the same. */
  readonly one: Harness;
  readonly twin: Harness;
  /** Of epoch 2. */
  readonly two: Harness;
  readonly fork: Replication['cursor'];
  readonly digestAtFork: string;
}

async function forked(
  shared: readonly Command[],
  own: readonly Command[],
  theirs: readonly Command[],
): Promise<Forked> {
  const one = await primary(shared);
  const twin = await primary(shared);
  const two = await begun('dc2');
  if ((await sync(one, two)) !== 'applied') throw new Error('dc2 does not follow');
  const fork = at(two).cursor;
  const digestAtFork = two.machine.digests().global;
  await two.one({ type: 'epoch.start', epoch: 2, ...CLAIM });
  for (const command of theirs) await two.run(command);
  for (const command of own) for (const each of [one, twin]) await each.run(command);
  return { one, twin, two, fork, digestAtFork };
}

/** Ids that a local token shares with one of all datacenters are another matter. */
function isOfAll({ change }: Command): boolean {
  return change.type !== 'token.set' || !change.token.local;
}

const reached = { back: 0, undone: 0, refused: 0 };

async function comesToTheSame(
  shared: readonly Command[],
  own: readonly Command[],
  theirs: readonly Command[],
): Promise<void> {
  const [before, behind, next] = [shared, own, theirs].map((each) => each.filter(isOfAll));
  const { one, twin, two, fork, digestAtFork } = await forked(before!, behind!, next!);
  const local = aToken(300, { local: true });
  for (const each of [one, twin]) {
    await each.one({ type: 'token.set', presence: 'create', token: local });
  }
  const count = at(one).cursor.seq - fork.seq;
  if (count === 0) return;
  const standing = JSON.stringify([at(one), one.machine.digests()]);
  const said = await goBack(one, two).catch((error: unknown) => String(error));
  if (said !== 'applied') {
    reached.refused += 1;
    if (!said.includes('a bootstrap is behind')) throw new Error(said);
    if (JSON.stringify([at(one), one.machine.digests()]) !== standing)
      throw new Error('it changed');
    return;
  }
  reached.back += 1;
  reached.undone += count;
  same(one.machine.digests().global, digestAtFork, 'the objects of the fork');
  same(at(one).cursor, fork, 'its place');
  same(await sync(two, one), 'applied', 'what follows is taken');
  await twin.one({ type: 'epoch.fence', epochs: at(two).epochs });
  same(await takeIn((await two.machine.globalSnapshot())!, twin), 'applied', 'the snapshot');
  same(one.machine.digests(), twin.machine.digests(), 'all objects, local ones too');
  same(one.machine.totals(), twin.machine.totals(), 'their counts');
  const { divergent } = at(one);
  same(divergent, at(twin).divergent, 'what is set apart');
  const listed = await one.machine.divergentEntries(1000);
  same(listed.length, count, 'all of it');
}

function same(found: unknown, wanted: unknown, what: string): void {
  const [left, right] = [found, wanted].map((each) => JSON.stringify(each));
  if (left !== right) throw new Error(`${what}: ${left}, not ${right}`);
}

t.test('going back: comes to what a snapshot of who went on comes to', async (test) => {
  const property = fc.asyncProperty(history, history, history, comesToTheSame);
  await fc.assert(property, { numRuns: 40, seed: 20_261_125 });
  test.ok(reached.back > 20, `${reached.back} went back`);
  test.ok(reached.undone > 200, `${reached.undone} entries were undone`);
});

const set = (number: number, rules: string, presence: 'create' | 'update'): Change => {
  return { type: 'policy.set', presence, policy: aPolicy(number, { rules }) };
};

const plain = (change: Change): Command => {
  return { change, timeMs: 1, cas: undefined, request: undefined };
};

const OLD = plain(set(1, 'acl = "read"', 'create'));
const CHANGED = plain(set(1, 'acl = "write"', 'update'));

t.test('going back: is refused where nothing says what was there', async (test) => {
  const refusal = async (change: (all: Forked) => Promise<unknown>, own = [CHANGED]) => {
    const all = await forked([OLD, plain(set(2, '', 'create'))], own, []);
    await change(all);
    const before = [at(all.one), all.one.machine.digests()];
    const said = await goBack(all.one, all.two).catch((error: unknown) => String(error));
    test.same([at(all.one), all.one.machine.digests()], before, 'nothing has changed');
    return said;
  };
  const trim =
    (back: number) =>
    ({ one, fork }: Forked) =>
      say(one, { type: 'global-log.trim', upTo: fork.seq - back });
  test.match(await refusal(trim(1)), /no entry that is kept says what 1 objects were at 1\.\d+/);
  test.match(await refusal(trim(0)), /the entry \d+ that the later reign follows is not kept here/);
  const promise = ({ one, fork }: Forked) =>
    say(one, { type: 'epoch.promise', epoch: 5, candidate: 'dc2', at: { ...fork, epoch: 5 } });
  test.match(await refusal(promise), /epoch 2 left this chain, and 5 is the least that is taken/);
  const nothing = async (): Promise<void> => undefined;
  test.match(await refusal(nothing, []), /the own log is not beside that chain/);
  const later = async ({ one, two }: Forked): Promise<unknown> => {
    await say(one, { type: 'epoch.start', epoch: 3, ...CLAIM });
    return forkSnapshotOf(storeOf(one), at(two).epochs.slice(0, 1));
  };
  await test.rejects(refusal(later), /the own log is not beside that chain/, 'an earlier reign');
  const other = async ({ one, two }: Forked): Promise<unknown> => {
    const [first, next] = at(two).epochs;
    return forkSnapshotOf(storeOf(one), [first!, { ...next!, startHash: new Uint8Array(32) }]);
  };
  const says = /the entry \d+ that the later reign follows is not kept here/;
  await test.rejects(refusal(other), says, 'what it follows is another entry of that number');
});

t.test(
  'going back: is refused where what is there now is not what the entries say',
  async (test) => {
    const { one, two } = await forked([OLD], [CHANGED], []);
    const store = storeOf(one);
    const taken = (globalDigest: Uint8Array) => () => {
      const snapshot = store.snapshot();
      const meta = encodeMeta({ ...decodeMeta(snapshot.get(META_KEY)!), globalDigest });
      const get = (key: Uint8Array) => (key[0] === META_KEY[0] ? meta : snapshot.get(key));
      return { ...snapshot, get };
    };
    const { epochs } = at(two);
    await test.rejects(
      forkSnapshotOf({ snapshot: taken(new Uint8Array(32)) }, epochs),
      /what is kept does not lead back to what there was at 1\.\d+/,
    );
    const { globalDigest } = decodeMeta(store.get(META_KEY)!);
    await (await forkSnapshotOf({ snapshot: taken(globalDigest) }, epochs)).close();
  },
);

t.test('going back: the list of datacenters is the one of that place', async (test) => {
  const datacenters = DATACENTERS.map((each) => ({ ...each, isVoter: each.name === 'dc1' }));
  const listed = { type: 'datacenters.set', datacenters, majoritySeq: 3 } as const;
  const { one, two, fork } = await forked([OLD], [plain(listed)], []);
  test.same([at(one).datacenters, at(one).datacentersSeq], [datacenters, fork.seq + 1]);
  test.equal(await goBack(one, two), 'applied');
  test.same(at(one).datacenters, DATACENTERS);
  test.equal(at(one).datacentersSeq, at(two).datacentersSeq);
  // It stands between what was changed and what there was before.
  const between = await forked([OLD, plain(listed)], [CHANGED], []);
  test.equal(await goBack(between.one, between.two), 'applied');
  test.same(at(between.one).datacenters, datacenters);
  test.equal(between.one.machine.digests().global, between.digestAtFork);
});

t.test('going back: over what was only made, with nothing that is kept of before', async (test) => {
  const { one, two, fork } = await forked([OLD], [plain(set(2, '', 'create'))], []);
  await say(one, { type: 'global-log.trim', upTo: fork.seq - 1 });
  test.equal(await goBack(one, two), 'applied');
  test.same(at(one).datacenters, DATACENTERS);
});

t.test('going back: over no restore, and over no bootstrap', async (test) => {
  const restored = await forked([OLD], [], []);
  // It brings the very objects that were there, so the digest has nothing against it.
  const commands = await commandsOf(await archived(restored.one as Server), LEVEL);
  await restored.one.run(...commands);
  const token = aToken(9);
  const bootstrap: Change = { type: 'bootstrap', token, resetIndex: undefined };
  const begun = await forked([OLD], [plain(bootstrap)], []);
  for (const [what, { one, two }] of Object.entries({ restore: restored, bootstrap: begun })) {
    const says = new RegExp(`a ${what} is behind the place to go back to`);
    await test.rejects(goBack(one, two), says);
  }
});

t.test('going back: what a damaged entry says counts for nothing', async (test) => {
  const datacenters = DATACENTERS.map((each) => ({ ...each, isVoter: each.name === 'dc1' }));
  const listed = { type: 'datacenters.set', datacenters, majoritySeq: 3 } as const;
  const { one, two } = await forked([OLD], [plain(listed)], []);
  const key = entryKey(1, at(two).datacentersSeq);
  const entry = decodeEntry(one.kv.get(key)!);
  // No digest is of it.
  const value = encodeEntry({ ...entry, body: { kind: 'datacenters', datacenters } });
  await one.kv.write([{ type: 'put', key, value }]);
  const says = /no entry that is kept says which datacenters there were at 1\.\d+/;
  await test.rejects(goBack(one, two), says);
});

t.test(
  'going back: what was asked before is answered, and what was asked behind it done',
  async (test) => {
    const request = (number: number) => {
      return { key: new Uint8Array(32).fill(number), fingerprint: new Uint8Array(32) };
    };
    const before = { ...OLD, request: request(1) };
    const behind = { ...plain(set(2, '', 'create')), request: request(2) };
    const theirs = { ...plain(set(3, '', 'create')), request: request(3) };
    const { one, two } = await forked([before], [behind], [theirs]);
    const isReplayed = async (command: Command): Promise<unknown> => {
      const [outcome] = await one.run(command);
      return outcome?.kind === 'applied' ? outcome.replayed : outcome?.code;
    };
    test.equal(await isReplayed(behind), true);
    test.equal(await goBack(one, two), 'applied');
    test.equal(await sync(two, one), 'applied');
    test.equal(await say(one, { type: 'epoch.promise', ...claimOf(one) }), 'granted');
    const start = { epoch: 3, promises: ['dc2'], isForced: false, isFromFork: false } as const;
    test.equal(await say(one, { type: 'epoch.start', ...start }), 'applied');
    test.same([await isReplayed(before), await isReplayed(theirs)], [true, true]);
    test.equal(await isReplayed(behind), false, 'it is done again');
    test.ok(one.machine.policy(aPolicy(2).id));
  },
);

function claimOf(one: Harness) {
  return { epoch: 3, candidate: 'dc1', at: at(one).cursor };
}

/** It is back at the fork when whoever went on there is lost, and the reign of another follows all that it wrote. */
async function backOnChain(level: number) {
  const own = [CHANGED, plain(set(2, '', 'create')), plain(set(3, '', 'create'))];
  const { one, two, fork } = await forked([OLD], own, []);
  const three = await begun('dc3');
  await sync(one, three);
  await goBack(one, two);
  await three.one({ type: 'epoch.start', epoch: 3, ...CLAIM });
  await one.one({ type: 'level.raise', level });
  const verdicts = [
    await say(one, { type: 'epoch.fence', epochs: at(three).epochs }),
    await sync(three, one),
  ];
  return { one, three, fork, verdicts };
}

t.test('going back: who takes all of the own chain again has it as its log', async (test) => {
  const { one, three, fork, verdicts } = await backOnChain(8);
  test.same(verdicts, ['applied', 'applied']);
  test.same(at(one).epochs, at(three).epochs, 'the reign that is lost left nothing on it');
  test.same([at(one).divergent, at(one).gone], [[], []], 'nothing is set apart');
  test.equal(standingOf(at(one), { epoch: 1, seq: fork.seq + 1 }), 'replicated');
  await say(one, { type: 'divergent.discard', epoch: 1, upTo: fork.seq + 9 });
  await say(one, { type: 'global-log.trim', upTo: 0 });
  test.equal((await one.machine.globalEntries(fork.seq, 1 << 24))?.length, 4, 'all of it is kept');
});

t.test(
  'going back: below level 8 it says of it what servers of older releases say',
  async (test) => {
    const { one, fork, verdicts } = await backOnChain(7);
    test.same(verdicts, ['applied', 'applied']);
    test.same(
      at(one).epochs.map(({ epoch }) => epoch),
      [1, 2, 1, 3],
    );
    test.same(at(one).divergent, [{ epoch: 1, first: fork.seq + 1, last: fork.seq + 3 }]);
  },
);

t.test('who waits on a fork takes no entry behind it, of its own chain neither', async (test) => {
  const { one, two } = await forked([OLD], [CHANGED], []);
  const three = await begun('dc3');
  await sync(one, three);
  await say(one, { type: 'epoch.fence', epochs: at(two).epochs });
  await three.one({ type: 'epoch.start', epoch: 3, ...CLAIM });
  const { cursor } = at(one);
  test.equal(await sync(three, one), 'reset');
  test.same(at(one).cursor, cursor);
});

t.test('going back: what comes again of another one is not dropped, either', async (test) => {
  const { one, two, fork } = await forked([OLD], [CHANGED, plain(set(2, '', 'create'))], []);
  const three = await begun('dc3');
  await sync(one, three);
  await goBack(three, two);
  await three.one({ type: 'level.raise', level: 8 });
  const foreign = { epoch: 1, first: fork.seq + 1, last: fork.seq + 2 };
  test.same(at(three).unused.at(-1), foreign);
  const entries = await one.machine.globalEntries(fork.seq, 1 << 24);
  const middle = entries!.slice(0, 1);
  const to = { epoch: 1, seq: fork.seq + 1, hash: one.machine.globalHashAt(fork.seq + 1)! };
  const batch = { epoch: 3, from: fork, entries: middle, to };
  test.equal(await say(three, { type: 'global-log.apply', ...batch }), 'applied');
  test.same(at(three).unused.at(-1), { ...foreign, first: fork.seq + 2 }, 'the rest may go');
  await say(three, { type: 'global-log.trim', upTo: 0 });
  test.same(await three.machine.globalEntries(fork.seq, 1 << 24), middle);
});
