// What a datacenter puts into its own log of a snapshot that another one lends it.

import t from 'tap';
import type { Policy } from '../../../src/acl/policy.ts';
import { ComingEntries } from '../../../src/node/federation/ports/coming-entries.ts';
import { GlobalSnapshotSink } from '../../../src/node/federation/ports/global-snapshots.ts';
import type { Command } from '../../../src/state/commands/commands.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import type { Replication } from '../../../src/state/global-log/replication.ts';
import type { Verdict } from '../../../src/state/global-log/verdict.ts';
import { pack } from '../../../src/state/rows/layout/packing.ts';
import { encodeRecord, POLICY_CODEC } from '../../../src/state/rows/layout/record-codec.ts';
import { POLICIES } from '../../../src/state/rows/objects/objects.ts';
import { packedRows } from '../../../src/state/snapshot/snapshot-format.ts';
import type { ImportUnderWay } from '../../../src/state/view.ts';
import { aPolicy } from '../../support/state-and-service/fixtures.ts';

const APPLIED = withVerdict('applied');

t.test('snapshot: nothing that cannot be read here gets into the log', async (t) => {
  const proposed: Command[] = [];
  const sink = new GlobalSnapshotSink(
    {
      importUnderWay: () => undefined,
      localRows: () => Promise.resolve([]),
      replication: () => undefined,
    },
    {
      propose: (command) => {
        proposed.push(command);
        return Promise.resolve(APPLIED);
      },
      wallMs: () => 0,
      coming: new ComingEntries(),
    },
  );
  const policy: Policy = { ...aPolicy(1), createIndex: 1, modifyIndex: 1 };
  const key = POLICIES.keyOf(policy);
  const add = (value: Uint8Array): Promise<void> =>
    sink.add({ snapshotId: 'one', number: 1, bytes: packedRows([{ key, value }]) });
  await t.rejects(add(pack([2, 1, 1, []])), {
    code: 'internal',
    message: /^the snapshot was not taken in: the row policy \S+ has format 2, known here is 1$/,
  });
  t.same(proposed, []);
  await add(encodeRecord(POLICY_CODEC, policy));
  t.equal(proposed.length, 1);
});

t.test('snapshot: one whose time is over, or that is wrong, is not gone on with', async (t) => {
  for (const verdict of ['other-cursor', 'fenced', 'diverged', 'stranger'] as const) {
    const proposed: string[] = [];
    const sink = new GlobalSnapshotSink(
      {
        importUnderWay: () => undefined,
        localRows: () => Promise.resolve([]),
        replication: () => undefined,
      },
      {
        propose: ({ change }) => {
          proposed.push(change.type);
          const isCommit = change.type === 'global-snapshot.commit';
          return Promise.resolve(isCommit ? withVerdict(verdict) : APPLIED);
        },
        wallMs: () => 0,
        coming: new ComingEntries(),
      },
    );
    await t.rejects(sink.commit({ snapshotId: 'one', pieceCount: 1 }), {
      message: `the snapshot was not taken in, at global-snapshot.commit: ${verdict}`,
    });
    t.equal(proposed.at(-1), 'restore.abandon', verdict);
  }
});

t.test(
  'snapshot: a piece that is staged already is not staged again, one of another is',
  async (t) => {
    const proposed: unknown[] = [];
    let isWitness = false;
    let verdict: Verdict = 'applied';
    const importUnderWay = () => ({ id: 'one', chunkCount: 2 }) as ImportUnderWay;
    const sink = new GlobalSnapshotSink(
      {
        importUnderWay,
        localRows: () => Promise.resolve([]),
        replication: () => ({ isWitness }) as Replication,
      },
      {
        propose: ({ change }) => {
          proposed.push([change.type, 'number' in change ? change.number : 0]);
          return Promise.resolve(withVerdict(verdict));
        },
        wallMs: () => 0,
        coming: new ComingEntries(),
      },
    );
    t.same(sink.staged(), { snapshotId: 'one', nextNumber: 3 });
    const add = (snapshotId: string, number: number): Promise<void> =>
      sink.add({ snapshotId, number, bytes: new Uint8Array(0) });
    for (const number of [1, 2]) await add('one', number);
    t.same(proposed, []);
    await add('one', 3);
    await add('two', 1);
    t.same(proposed.splice(0), [
      ['global-snapshot.chunk', 3],
      ['global-snapshot.chunk', 1],
    ]);
    isWitness = true;
    await add('one', 4);
    t.same(proposed, [], 'a witness takes the place alone');
    verdict = 'fenced';
    await t.rejects(add('one', 0), { message: /, at global-snapshot.begin: fenced$/ });
  },
);

function withVerdict(verdict: Verdict): Outcome {
  return {
    kind: 'applied',
    answer: { type: 'verdict', verdict, cursor: undefined, maxEpochPromised: 1 },
    index: 1,
    position: { epoch: 1, seq: 1 },
    replayed: false,
  };
}
