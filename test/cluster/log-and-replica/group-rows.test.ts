// The rows beside the log: which cluster a node belongs to, and who is in its group.

import t from 'tap';
import {
  readClusterId,
  readPromise,
  writeClusterId,
  writeFounding,
  writePromise,
} from '../../../cluster/log/cluster-identity.ts';
import { DurableLog } from '../../../cluster/log/durable-log.ts';
import {
  decodeHardState,
  encodeHardState,
  HARD_STATE_KEY,
} from '../../../cluster/log/log-entry.ts';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import {
  encodeMembershipChange,
  type MembershipChange,
} from '../../../cluster/raft/membership/membership-change.ts';
import {
  DEFAULT_AUTOPILOT,
  decodeGroupContext,
  decodeGroupRecord,
  EMPTY_GROUP,
  encodeGroupContext,
  encodeGroupRecord,
  type GroupRecord,
  nextGroupRecord,
} from '../../../cluster/replica/group-record.ts';
import { FailingKv } from '../../support/failing-kv.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { adding, bytesOf, hex, logOf, memberOf, memberRecord } from './cases.ts';
import { GROUPS } from './golden-log-bytes.ts';

const CLUSTER = '11111111-2222-4333-8444-000000000001';

t.test('cluster identity: a group begins in one batch, the same everywhere', async (test) => {
  const payloads = [1, 2, 3].map((node) => encodeMembershipChange(adding(node)));
  const stores = [new FailingKv(new MemoryKv()), new FailingKv(new MemoryKv())];
  for (const kv of stores) {
    await writePromise(kv, 'to a founder');
    test.equal(readPromise(kv), 'to a founder');
    const count = kv.writeCount;
    await writeFounding(kv, { clusterId: CLUSTER, payloads });
    test.equal(kv.writeCount, count + 1);
    test.equal(readPromise(kv), undefined, 'it is fulfilled');
  }
  const logs = await Promise.all(stores.map((kv) => DurableLog.open(kv, undefined)));
  test.same(logs[0]!.hardState, { term: 1, vote: 0, commit: 3 });
  test.equal(logs[0]!.lastIndex, 3);
  test.equal(logs[0]!.entry(2).type, 'membership');
  test.same(logs[0]!.last, logs[1]!.last);
  test.equal(readClusterId(stores[0]!), CLUSTER);
});

t.test('cluster identity: a node belongs to one cluster for good', async (test) => {
  const payloads = [encodeMembershipChange(adding(1))];
  const joined = new MemoryKv();
  await writeClusterId(joined, CLUSTER);
  await test.rejects(writeClusterId(joined, CLUSTER), /one cluster for good/);
  await test.rejects(writeFounding(joined, { clusterId: 'other', payloads }), /one cluster/);
  const used = new MemoryKv();
  await logOf(used, 1);
  await test.rejects(writeFounding(used, { clusterId: CLUSTER, payloads }), /an empty log/);
  const voted = new MemoryKv();
  const hardState = { term: 7, vote: 3, commit: 0 };
  await voted.write([{ type: 'put', key: HARD_STATE_KEY, value: encodeHardState(hardState) }]);
  await writeFounding(voted, { clusterId: CLUSTER, payloads });
  const kept = decodeHardState(voted.get(HARD_STATE_KEY)!);
  test.same(kept, { term: 7, vote: 3, commit: 1 }, 'a vote that was cast stays');
  const emptied = new MemoryKv();
  const begun = encodeHardState({ ...hardState, commit: 4 });
  await emptied.write([{ type: 'put', key: HARD_STATE_KEY, value: begun }]);
  const again = writeFounding(emptied, { clusterId: CLUSTER, payloads });
  await test.rejects(again, /no entries, but 4 was committed/, 'what began once is not begun anew');
  test.same(emptied.get(HARD_STATE_KEY), begun);
});

t.test('group record: is written as it always was', async (test) => {
  const [first, second] = [memberOf(1), memberOf(2)];
  const record: GroupRecord = {
    membership: { ...NO_MEMBERS, voters: [first.node], learners: [second.node] },
    members: [first, second],
    autopilot: DEFAULT_AUTOPILOT,
    autopilotIndex: 3,
  };
  test.equal(hex(encodeGroupRecord(record)), GROUPS.groupRecord);
  test.same(decodeGroupRecord(bytesOf(GROUPS.groupRecord)), record);
  test.equal(hex(encodeGroupContext({ members: [first] })), GROUPS.membersContext);
  test.same(decodeGroupContext(bytesOf(GROUPS.membersContext)), { members: [first] });
  const autopilot = { autopilot: DEFAULT_AUTOPILOT };
  test.equal(hex(encodeGroupContext(autopilot)), GROUPS.autopilotContext);
  test.same(decodeGroupContext(bytesOf(GROUPS.autopilotContext)), autopilot);
  test.same(decodeGroupContext(encodeGroupContext({})), {});
  const newer = bytesOf(GROUPS.groupRecord);
  newer[1] = 2;
  test.throws(() => decodeGroupRecord(newer), { name: 'AssertionError', message: /format/ });
});

t.test(
  'group record: follows from the changes, and a change that does not fit leaves it as it is',
  async (test) => {
    const changed = (record: GroupRecord, ...changes: readonly MembershipChange[]): GroupRecord =>
      changes.reduce(nextGroupRecord, record);
    const two = changed(EMPTY_GROUP, adding(1), adding(2));
    test.same(two.membership.voters, [1, 2]);
    test.same(
      two.members.map(({ name }) => name),
      ['n1', 'n2'],
    );
    const moved = { ...memberRecord(2), address: { host: 'elsewhere', port: 1 } };
    const context = encodeGroupContext({ members: [moved] });
    const update: MembershipChange = {
      transition: 'auto',
      changes: [{ kind: 'update', node: 2 }],
      context,
    };
    test.same(changed(two, update).members, [memberRecord(1), moved]);
    const set = { ...DEFAULT_AUTOPILOT, minQuorum: 3 };
    const settings = { ...update, context: encodeGroupContext({ autopilot: set }) };
    const twice = changed(two, settings, settings);
    test.same([twice.autopilot, twice.autopilotIndex], [set, 2]);
    const none: MembershipChange = {
      ...settings,
      changes: [
        { kind: 'remove', node: 1 },
        { kind: 'remove', node: 2 },
      ],
    };
    test.equal(changed(two, none), two, 'its settings do not count either');
    const gone = changed(two, { ...adding(2), changes: [{ kind: 'remove', node: 2 }] });
    test.same(gone.members, [memberRecord(1)], 'who is in no list is forgotten');
    const stranger = { ...adding(1), context: encodeGroupContext({ members: [memberRecord(9)] }) };
    test.same(changed(two, stranger).members, two.members, 'who is in no list is not noted');
  },
);
