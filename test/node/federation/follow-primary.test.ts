// What the leader of a secondary puts into its own log of a run of entries that came.

import t from 'tap';
import { SerialWork } from '../../../cluster/base/serial-work.ts';
import { Difference } from '../../../cluster/federation/feed/feed-reader.ts';
import type { GlobalEntry } from '../../../cluster/federation/global-log.ts';
import { ComingEntries } from '../../../src/node/federation/ports/coming-entries.ts';
import { applyBatch } from '../../../src/node/federation/ports/follow-primary.ts';
import { GlobalSnapshotSink } from '../../../src/node/federation/ports/global-snapshots.ts';
import type { Change, ChangeOf } from '../../../src/state/commands/commands.ts';
import {
  decodeEntry,
  encodeEntry,
  entryHash,
  entryLinks,
} from '../../../src/state/global-log/global-entry.ts';
import type { Verdict } from '../../../src/state/global-log/verdict.ts';
import { IN_ONE_PIECE_BYTES } from '../../../src/state/in-one-piece.ts';
import { isVoid } from '../../../src/state/reads/standing.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import {
  aNamespace,
  aNamespaceName,
  aPolicy,
  aToken,
  FIXTURE_TIME_MS,
  policyIdNumbered,
} from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';

const BEGIN = { type: 'global-log.begin', primary: 'dc1', isWitness: false } as const;

async function harnessOf(datacenter: string): Promise<MachineHarness> {
  const harness = new MachineHarness(new MemoryKv());
  await harness.one({ ...BEGIN, datacenter });
  return harness;
}

/** What one lacks of the log of the other. */
async function batchFor(secondary: MachineHarness, primary: MachineHarness) {
  const from = secondary.machine.cursor()!;
  const all = (await primary.machine.globalEntries(from.seq, 1 << 24)) ?? [];
  const entries: GlobalEntry[] = all.map((bytes) => {
    const { epoch, seq } = entryLinks(bytes)!;
    return { epoch, seq, hash: entryHash(bytes), bytes };
  });
  return { from, entries, to: primary.machine.cursor()! };
}

t.test(
  'follow: of long objects a command changes few, however short the entries are',
  async (t) => {
    const primary = await harnessOf('dc1');
    await primary.one(BUILTINS);
    const secondary = await harnessOf('dc2');
    const sizes: number[] = [];
    const inOrder = new SerialWork();
    const deps = {
      propose: ({ change }: { readonly change: Change }) => {
        sizes.push((change as ChangeOf<'global-log.apply'>).entries.length);
        return inOrder.run(() => secondary.one(change));
      },
      wallMs: () => 0,
      machine: secondary.machine,
      coming: new ComingEntries(),
    };
    const follow = async () => {
      const batch = await batchFor(secondary, primary);
      sizes.length = 0;
      return { ...batch, reached: await applyBatch(deps, batch.to.epoch, batch) };
    };
    const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
    for (const each of numbers) {
      const policy = aPolicy(each, { rules: '#'.repeat(each < 8 ? 100_000 : 10) });
      await primary.one({ type: 'policy.set', presence: 'create', policy });
    }
    t.same((await follow()).reached, primary.machine.cursor());
    t.same(sizes, [9], 'what is new replaces nothing');

    for (const each of numbers.slice(0, 4)) {
      await primary.one({ type: 'policy.set', presence: 'update', policy: aPolicy(each) });
    }
    t.same((await follow()).reached, primary.machine.cursor());
    t.same(sizes, [3, 1], 'long ones that become short');

    for (const each of numbers) {
      await primary.one({ type: 'policy.delete', id: policyIdNumbered(each) });
    }
    const { from, entries, to, reached } = await follow();
    t.same(sizes, [7, 1]);
    t.same(reached, to);
    t.equal(secondary.machine.digests().global, primary.machine.digests().global);

    t.same(await applyBatch(deps, to.epoch, { from, entries, to }), to, 'twice changes nothing');
  },
);

t.test('follow: objects that are not those of the primary are told from all else', async (t) => {
  const [primary, secondary] = await Promise.all(['dc1', 'dc2'].map(harnessOf));
  const deps = {
    propose: ({ change }: { readonly change: Change }) => secondary!.one(change),
    wallMs: () => 0,
    machine: secondary!.machine,
    coming: new ComingEntries(),
  };
  await primary!.one(BUILTINS);
  const { from, entries, to } = await batchFor(secondary!, primary!);
  const [first] = entries;
  const bytes = encodeEntry({ ...decodeEntry(first!.bytes), digest: new Uint8Array(32) });
  const { epoch, seq } = to;
  const other = { epoch, seq, hash: entryHash(bytes) };
  const changed = { from, entries: [{ ...other, bytes }], to: other };
  await t.rejects(applyBatch(deps, epoch, changed), new Difference(from));
  const broken = { from, entries: [{ ...other, bytes }], to };
  await t.rejects(applyBatch(deps, epoch, broken), { code: 'internal', message: /broken-chain$/ });
  t.same(secondary!.machine.cursor(), from);
  t.same(await applyBatch(deps, epoch, { from, entries, to }), to);
});

t.test('follow: of several pieces the first that was not taken says why', async (t) => {
  const secondary = await harnessOf('dc2');
  const primary = await harnessOf('dc1');
  await primary.one(BUILTINS);
  const verdicts: readonly Verdict[] = ['reset', 'other-cursor'];
  let count = 0;
  const deps = {
    propose: () => {
      const cursor = secondary.machine.cursor();
      const verdict = verdicts[count]!;
      count += 1;
      const answer = { type: 'verdict', verdict, cursor, maxEpochPromised: 1 } as const;
      const position = { epoch: 1, seq: 0 };
      return Promise.resolve({
        kind: 'applied',
        answer,
        index: 1,
        position,
        replayed: false,
      } as const);
    },
    wallMs: () => 0,
    // Each entry is about something long.
    machine: { importUnderWay: () => undefined, rowBytes: () => IN_ONE_PIECE_BYTES },
    coming: new ComingEntries(),
  };
  await primary.one({ type: 'policy.set', presence: 'create', policy: aPolicy(1) });
  await primary.one({ type: 'policy.set', presence: 'update', policy: aPolicy(1) });
  await primary.one({ type: 'policy.set', presence: 'update', policy: aPolicy(1) });
  const { from, entries, to } = await batchFor(secondary, primary);
  t.equal(await applyBatch(deps, 1, { from, entries, to }), 'snapshot-needed');
  t.equal(count, 2);
});

t.test('follow: who goes on with a reign lets go of what came of a later one', async (t) => {
  const [primary, winner, secondary] = await Promise.all(['dc1', 'dc3', 'dc2'].map(harnessOf));
  const deps = {
    propose: ({ change }: { readonly change: Change }) => secondary!.one(change),
    wallMs: () => 0,
    machine: secondary!.machine,
    coming: new ComingEntries(),
  };
  const follow = async () => {
    const batch = await batchFor(secondary!, primary!);
    return await applyBatch(deps, batch.to.epoch, batch);
  };
  await primary!.one(BUILTINS);
  const namespace = aNamespaceName('team');
  const sink = new GlobalSnapshotSink(secondary!.machine, deps);
  const own = (await primary!.machine.globalSnapshot())!;
  await sink.add({ snapshotId: 'own', number: 0, bytes: own.header });
  await own.close();
  await primary!.one({ type: 'namespace.set', presence: 'create', namespace: aNamespace('team') });
  await follow();
  t.ok(secondary!.machine.importUnderWay(), 'what is of the same reign stays');
  const { from, entries, to } = await batchFor(winner!, primary!);
  const packed = entries.map(({ bytes }) => bytes);
  await winner!.one({ type: 'global-log.apply', epoch: to.epoch, from, entries: packed, to });
  const token = aToken(1, { local: true, namespace });
  await secondary!.one({ type: 'token.set', presence: 'create', token });

  const forced = { promises: [], isForced: true, isFromFork: false } as const;
  await winner!.one({ type: 'epoch.start', epoch: 2, ...forced });
  const lent = (await winner!.machine.globalSnapshot())!;
  await sink.add({ snapshotId: 'one', number: 0, bytes: lent.header });
  await follow();
  t.equal(secondary!.machine.importUnderWay(), undefined, 'also where nothing follows yet');

  await sink.add({ snapshotId: 'two', number: 0, bytes: lent.header });
  for await (const bytes of lent.pieces()) {
    await sink.add({ snapshotId: 'two', number: 1, bytes });
  }
  const carry = { type: 'global-snapshot.carry', id: 'two' } as const;
  await secondary!.one({ ...carry, number: 1, keys: [], isLast: false });
  const keys = await secondary!.machine.localRows(undefined, 100);
  await secondary!.one({ ...carry, number: 2, keys, isLast: true });
  await primary!.one({ type: 'namespace.delete', name: namespace });
  t.same(await follow(), primary!.machine.cursor());
  const isOver = () => isVoid(secondary!.machine.token(token.accessorId)!, secondary!.machine, NOW);
  t.ok(isOver(), 'its namespace is gone');
  await t.rejects(sink.commit({ snapshotId: 'two', pieceCount: 2 }), { message: /other-cursor$/ });
  t.ok(isOver());

  // Taken in anew, it knows.
  await sink.add({ snapshotId: 'three', number: 0, bytes: lent.header });
  for await (const bytes of lent.pieces()) {
    await sink.add({ snapshotId: 'three', number: 1, bytes });
  }
  await sink.commit({ snapshotId: 'three', pieceCount: 2 });
  await lent.close();
  t.same(secondary!.machine.cursor(), winner!.machine.cursor());
  t.ok(isOver());
});

const NOW = FIXTURE_TIME_MS;

t.test('follow: a snapshot is coming from when it came whole until that is decided', async (t) => {
  const [primary, secondary] = await Promise.all(['dc1', 'dc2'].map(harnessOf));
  await primary!.one(BUILTINS);
  const coming = new ComingEntries();
  let decide: (() => void) | undefined;
  const deps = {
    propose: async ({ change }: { readonly change: Change }) => {
      if (change.type === 'global-snapshot.commit') {
        await new Promise<void>((resolve) => {
          decide = resolve;
        });
      }
      return await secondary!.one(change);
    },
    wallMs: () => 0,
    machine: secondary!.machine,
    coming,
  };
  const sink = new GlobalSnapshotSink(secondary!.machine, deps);
  const own = secondary!.machine.cursor()!;
  const lent = (await primary!.machine.globalSnapshot())!;
  await sink.add({ snapshotId: 'one', number: 0, bytes: lent.header });
  for await (const bytes of lent.pieces()) {
    await sink.add({ snapshotId: 'one', number: 1, bytes });
  }
  t.same(coming.furthest(own), own, 'whoever gave it may be gone with the rest');
  const committed = sink.commit({ snapshotId: 'one', pieceCount: 2 });
  t.same(coming.furthest(own), lent.cursor);
  while (decide === undefined) await new Promise((resolve) => setImmediate(resolve));
  t.same(coming.furthest(own), lent.cursor, 'it may be in the log');
  decide();
  await committed;
  await lent.close();
  t.same(secondary!.machine.cursor(), lent.cursor);
  t.same(coming.furthest(own), own);
});

t.test('follow: entries are coming until all of them are decided', async (t) => {
  const primary = await harnessOf('dc1');
  await primary.one(BUILTINS);
  for (const each of [1, 2]) {
    await primary.one({ type: 'policy.set', presence: 'create', policy: aPolicy(each) });
    await primary.one({ type: 'policy.delete', id: policyIdNumbered(each) });
  }
  const secondary = await harnessOf('dc2');
  const { from, entries, to } = await batchFor(secondary, primary);
  const coming = new ComingEntries();
  const refusals: ((why: Error) => void)[] = [];
  const deps = {
    propose: () => new Promise<never>((_, reject) => void refusals.push(reject)),
    wallMs: () => 0,
    // Each entry is put into the log alone.
    machine: { importUnderWay: () => undefined, rowBytes: () => IN_ONE_PIECE_BYTES },
    coming,
  };
  t.same(coming.furthest(from), from);
  await coming.over();
  const rejected = t.rejects(
    applyBatch(deps, to.epoch, { from, entries, to }),
    /nothing was written/,
  );
  t.same(coming.furthest(from), to, 'from when it is given');
  t.same(coming.furthest({ ...to, seq: to.seq + 1 }).seq, to.seq + 1, 'the state may be further');
  let isOver = false;
  const over = coming.over().then(() => {
    isOver = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.ok(refusals.length > 1, 'one refusal says nothing of the others');
  for (const refuse of refusals) {
    t.same([coming.furthest(from), isOver], [to, false]);
    refuse(new Error('nothing was written'));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await rejected;
  await over;
  t.same(coming.furthest(from), from);
});
