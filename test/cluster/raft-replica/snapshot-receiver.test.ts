// A node that takes in a snapshot of its group: what it refuses, and how the one state comes in the place of the other.

import t from 'tap';
import type { SnapshotMessage } from '../../../cluster/raft/message.ts';
import { DEFAULT_GROUP_LIMITS } from '../../../cluster/replica/group-limits.ts';
import type { SnapshotIntake } from '../../../cluster/replica/group-replica.ts';
import { type MachineSnapshot, ReplicaError } from '../../../cluster/replica/replica.ts';
import { PendingProposals } from '../../../cluster/replica/requests/pending-proposals.ts';
import { othersOf, watched, write } from '../../support/simulated/group-actions.ts';
import type { InMemoryGroup } from '../../support/simulated/in-memory-group.ts';
import { settled } from '../../support/simulated/simulated-world.ts';
import { isEven, type Lagging, laggingGroup } from './lagging-group.ts';

/** What a leader would send now, for a test that brings it itself. */
function snapshotOf(
  { group, leader, laggard }: Lagging,
  given: Partial<SnapshotMessage> = {},
): { readonly message: SnapshotMessage; readonly snapshot: MachineSnapshot } {
  const snapshot = leader.register.snapshot();
  const { index, term } = snapshot.appliedEntry!;
  const { membership } = leader.replica!.groupRecord();
  const message: SnapshotMessage = {
    type: 'snapshot',
    from: leader.id,
    to: laggard.id,
    term: leader.replica!.status().term,
    snapshot: { index, term, membership, data: new Uint8Array() },
    ...given,
  };
  void group;
  return { message, snapshot };
}

async function bring(
  group: InMemoryGroup,
  intake: SnapshotIntake,
  snapshot: MachineSnapshot,
): Promise<string> {
  const whole = async (): Promise<string> => {
    for await (const chunk of snapshot.chunks()) await intake.add(chunk);
    await intake.finish();
    return 'installed';
  };
  const brought = watched(whole());
  await group.until(() => brought.result !== undefined);
  await snapshot.close();
  return brought.result ?? 'nothing';
}

/** A laggard that is up and hears nobody: what it is brought is the test's. */
async function aloneLagging(): Promise<Lagging> {
  const lagging = await laggingGroup();
  const { group, laggard } = lagging;
  await group.start(laggard.id);
  group.partition([laggard.id], othersOf(group, laggard.id));
  await group.run(200);
  return lagging;
}

t.test('receiver: refuses what is stale, foreign, or older than what it has', async (test) => {
  const lagging = await aloneLagging();
  const { group, leader, laggard } = lagging;
  const { message, snapshot } = snapshotOf(lagging);
  await snapshot.close();
  const { term, commitIndex } = laggard.replica!.status();
  const old = { ...message.snapshot, index: commitIndex };
  const foreign = {
    ...message.snapshot,
    membership: { ...message.snapshot.membership, voters: [9] },
  };
  const refused: readonly (readonly [Partial<SnapshotMessage>, RegExp])[] = [
    [{ to: leader.id }, /for another node/],
    [{ from: laggard.id }, /for another node/],
    [{ term: term - 1 }, /it is of term/],
    [{ snapshot: foreign }, /not in its group/],
    [{ snapshot: old }, /all up to .* is here/],
  ];
  const answers: string[] = [];
  group.onSend = (sent) => {
    if (sent.from === laggard.id && sent.type === 'append-reply') answers.push(`${sent.index}`);
  };
  for (const [given, says] of refused) {
    await test.rejects(laggard.replica!.beginSnapshot({ ...message, ...given }), {
      name: 'GroupRefusal',
      code: 'refused',
      message: says,
    });
  }
  await group.run(100);
  test.same(answers, [`${commitIndex}`], 'who sent what is old hears how far this node is');
  test.equal(laggard.register.adoptedCount, 0);
  await group.settle();
  test.same(group.violations, []);
});

t.test('receiver: a damaged or broken-off snapshot changes nothing', async (test) => {
  const lagging = await aloneLagging();
  const { group, laggard } = lagging;
  const before = laggard.register.applied.length;
  const attempt = async (
    change: (message: SnapshotMessage) => SnapshotMessage,
    chunks: (all: readonly Uint8Array[]) => readonly Uint8Array[] = (all) => all,
  ): Promise<string> => {
    const { message, snapshot } = snapshotOf(lagging);
    const all: Uint8Array[] = [];
    for await (const chunk of snapshot.chunks()) all.push(chunk);
    const given = { ...snapshot, chunks: () => asyncly(chunks(all)) };
    return bring(group, await laggard.replica!.beginSnapshot(change(message)), given);
  };
  const same = (message: SnapshotMessage): SnapshotMessage => message;
  const other = (given: Partial<SnapshotMessage['snapshot']>) => (message: SnapshotMessage) => ({
    ...message,
    snapshot: { ...message.snapshot, ...given },
  });
  test.match(await attempt(same, (all) => all.slice(0, 3)), /entries/);
  test.match(await attempt(same, (all) => all.toSpliced(1, 1)), /entries/);
  test.match(await attempt(same, (all) => [...all, ...all]), /more follows its end/);
  test.match(await attempt(other({ index: 200 })), /it stands at entry/);
  test.match(await attempt(other({ term: 77 })), /it stands at entry/);
  const voters = [laggard.id];
  const strange = { ...lagging.leader.replica!.groupRecord().membership, voters };
  test.match(await attempt(other({ membership: strange })), /its members are not those/);
  test.equal(laggard.register.applied.length, before);
  test.equal(laggard.register.adoptedCount, 0);
  test.equal(await attempt(same), 'installed', 'and a good one is taken after all that');
  await group.settle();
  test.same(group.violations, []);
});

async function* asyncly(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield chunk;
}

t.test('receiver: a new transfer takes the place of one that is still coming in', async (test) => {
  const lagging = await aloneLagging();
  const { group, laggard } = lagging;
  const first = snapshotOf(lagging);
  const begun = await laggard.replica!.beginSnapshot(first.message);
  const chunks: Uint8Array[] = [];
  for await (const chunk of first.snapshot.chunks()) chunks.push(chunk);
  const adding = watched(begun.add(chunks[0]!));
  await group.run(50);
  test.equal(adding.result, undefined);
  // The same one again: its sender has begun anew.
  const second = snapshotOf(lagging);
  const again = watched(laggard.replica!.beginSnapshot(second.message));
  await group.until(() => again.result !== undefined);
  await test.rejects(begun.add(chunks[1]!), /a newer snapshot took its place/);
  await test.rejects(begun.finish(), /a newer snapshot took its place/);
  await begun.abandon();
  const brought = bring(group, again.result as SnapshotIntake, second.snapshot);
  test.equal(await brought, 'installed');
  await test.rejects((again.result as SnapshotIntake).add(chunks[0]!), /is installed/);
  await first.snapshot.close();
  await group.settle();
  test.same(group.violations, []);
});

t.test('receiver: while one is being installed, another has to wait', async (test) => {
  const lagging = await aloneLagging();
  const { group, laggard } = lagging;
  const { message, snapshot } = snapshotOf(lagging);
  const intake = await laggard.replica!.beginSnapshot(message);
  const added = watched(addAll(intake, snapshot));
  await group.until(() => added.result !== undefined);
  const finished = watched(intake.finish().then(() => 'installed'));
  await test.rejects(laggard.replica!.beginSnapshot(message), /just being installed/);
  while (finished.result === undefined) {
    await intake.abandon();
    await group.run(1);
  }
  test.equal(finished.result, 'installed', 'nobody can abandon it now');
  await snapshot.close();
  await group.settle();
  test.same(group.violations, []);
});

async function addAll(intake: SnapshotIntake, snapshot: MachineSnapshot): Promise<string> {
  for await (const chunk of snapshot.chunks()) await intake.add(chunk);
  return 'added';
}

t.test('receiver: what the log made up for meanwhile is not installed', async (test) => {
  const lagging = await aloneLagging();
  const { group, laggard } = lagging;
  const late = snapshotOf(lagging);
  const intake = await laggard.replica!.beginSnapshot(late.message);
  const added = watched(addAll(intake, late.snapshot));
  await group.until(() => added.result !== undefined);
  // A leader's own one comes first; the machine takes one at a time, so it takes this one's place.
  group.heal();
  await group.until(() => isEven(lagging));
  await test.rejects(intake.finish(), /took its place/);
  await late.snapshot.close();

  const { group: other, laggard: behind, leader } = await aloneLagging();
  const asked = snapshotOf({ group: other, laggard: behind, leader });
  const held = await behind.replica!.beginSnapshot(asked.message);
  const heldAdded = watched(addAll(held, asked.snapshot));
  await other.until(() => heldAdded.result !== undefined);
  // Its term is over before it is finished.
  const { term } = behind.replica!.status();
  behind.replica!.receive({
    type: 'heartbeat',
    from: leader.id,
    to: behind.id,
    term: term + 5,
    commitIndex: 0,
    readCount: 0,
  });
  const finished = watched(held.finish());
  await other.until(() => finished.result !== undefined);
  test.match(finished.result, /not needed any more/);
  test.equal(behind.register.adoptedCount, 0);
  await asked.snapshot.close();
  await group.settle();
  await other.settle();
  test.same([...group.violations, ...other.violations], []);
});

t.test('receiver: a node that closes lets go of what is coming in', async (test) => {
  const lagging = await aloneLagging();
  const { group, laggard } = lagging;
  const { message, snapshot } = snapshotOf(lagging);
  const intake = await laggard.replica!.beginSnapshot(message);
  const closed = watched(laggard.replica!.close());
  await group.until(() => closed.result !== undefined);
  await group.run(100);
  await test.rejects(addAll(intake, snapshot), { code: 'closed' });
  await test.rejects(intake.finish(), { code: 'closed' });
  await test.rejects(laggard.replica!.beginSnapshot(message), { code: 'closed' });
  await snapshot.close();
});

t.test(
  'install: nothing is applied between the switch of the log and that of the state',
  async (test) => {
    for (let seed = 1; seed <= 15; seed += 1) {
      const lagging = await laggingGroup(seed);
      const { group, laggard } = lagging;
      await group.start(laggard.id);
      // Entries that it has wait for its slow state while the snapshot comes in.
      group.slowDiskId = laggard.id;
      for (let round = 0; round < 10; round += 1) {
        await write(group, group.leader()!.id, 10);
        void group.read(laggard.id);
      }
      await group.settle();
      test.ok(laggard.register.adoptedCount > 0);
      test.same(group.violations, [], `seed ${seed}`);
    }
  },
);

t.test(
  'install: waits for an apply that is under way, and skips what queued behind it',
  async (test) => {
    const lagging = await laggingGroup(7, 'little');
    const { group, laggard } = lagging;
    let release: (() => void) | undefined;
    laggard.register.beforeApply = () =>
      new Promise((resolve) => {
        release = resolve;
      });
    await group.start(laggard.id);
    await group.until(() => release !== undefined);
    const isAccepted = (): boolean =>
      laggard.log.some((line) => line.includes('snapshot-accepted'));
    test.ok(await group.until(isAccepted, 1200));
    await group.run(200);
    test.equal(laggard.register.adoptedCount, 0, 'entries of its own are still being applied');
    laggard.register.beforeApply = () => Promise.resolve();
    release?.();
    test.ok(await group.until(() => laggard.register.adoptedCount === 1));
    await group.settle();
    test.same(group.violations, []);
  },
);

t.test('proposals: what a snapshot brings without its outcome ends as unknown', async (test) => {
  const limits = DEFAULT_GROUP_LIMITS;
  const proposals = new PendingProposals<string>({ limits, patienceTicks: 30 });
  const all = ['a', 'b', 'c'].map((text) => watched(proposals.add(Buffer.from(text))));
  proposals.appended(proposals.takeBatch(), { index: 5, term: 2 });
  proposals.rejectThrough(6, new ReplicaError('outcome-unknown', 'unknown'));
  proposals.applied({ index: 7, term: 2 }, 'c is applied');
  await settled();
  test.same(
    all.map(({ result }) => result),
    ['unknown', 'unknown', 'c is applied'],
  );
  test.equal(proposals.count, 0);
});
