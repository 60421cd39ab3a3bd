// A change of the group on its way, step by step: a raft node that says what it is told to say.

import t from 'tap';
import { NO_MEMBERS } from '../../../cluster/raft/membership/membership.ts';
import type { MemberChange } from '../../../cluster/raft/membership/membership-change.ts';
import type { RawNode, Status } from '../../../cluster/raft/raw-node.ts';
import { EMPTY_GROUP, type GroupRecord } from '../../../cluster/replica/group-record.ts';
import { ReplicaError } from '../../../cluster/replica/replica.ts';
import { MembershipProposals } from '../../../cluster/replica/requests/membership-proposals.ts';

const NONE = new Uint8Array(0);
const TERM = 3;

/** Node 1 leads 2 and 3; the next entry comes to index 11. */
function rig() {
  const membership = { ...NO_MEMBERS, voters: [1, 2, 3] };
  const result = {
    ended: undefined as unknown,
    membership,
    record: { ...EMPTY_GROUP, membership } as GroupRecord,
    status: { standing: 'leader' as Status['standing'], leader: 1, transferTarget: 0 },
    lastIndex: 10,
    proposed: (): ReturnType<RawNode['propose']> => {
      if (result.status.standing !== 'leader') return { kind: 'refused', reason: 'no-leader' };
      const isTransfer = result.status.transferTarget !== 0;
      if (isTransfer) return { kind: 'refused', reason: 'transfer-in-progress' };
      result.lastIndex += 1;
      return { kind: 'appended', term: TERM, index: result.lastIndex };
    },
    asked: [] as string[],
  };
  const node = {
    status: () => ({ id: 1, hasCommittedInTerm: true, membership, ...result.status }),
    propose: () => result.proposed(),
    proposeMembership: () => result.proposed(),
    transferLeadership: (to: number) => void result.asked.push(`to ${to}`),
  };
  const changes = new MembershipProposals({
    node: node as unknown as RawNode,
    record: () => result.record,
    successors: () => [2, 3],
    handOverTicks: 3,
  });
  const ask = (...steps: readonly MemberChange[]): void => {
    const change = { transition: 'auto', changes: steps, context: NONE } as const;
    result.ended = 'not yet';
    changes.ask(change).then(
      () => {
        result.ended = 'done';
      },
      ({ code, leader }: { code: string; leader?: number }) => {
        result.ended = leader === undefined ? code : `${code}, ${leader} leads`;
      },
    );
    changes.proposeAsked();
  };
  /** An entry is applied that is a change of the group, and all up to it. */
  const applied = (index: number, { term = TERM, appliedIndex = index } = {}): void => {
    const change = { transition: 'auto', changes: [], context: NONE } as const;
    const all = [{ index, term, change, record: result.record }];
    changes.onApplied(all, { throughIndex: index, appliedIndex });
  };
  const passed = (appliedIndex: number): void => {
    changes.onApplied([], { throughIndex: appliedIndex, appliedIndex });
  };
  return Object.assign(result, { changes, ask, applied, passed });
}

async function endOf(subject: ReturnType<typeof rig>): Promise<unknown> {
  await new Promise((resolve) => setImmediate(resolve));
  return subject.ended;
}

const REMOVE_3 = { kind: 'remove', node: 3 } as const;

t.test(
  'changes: one is through when an entry behind it is committed, and not before',
  async (t) => {
    const subject = rig();
    subject.ask(REMOVE_3);
    subject.applied(11);
    t.same([await endOf(subject), subject.lastIndex], ['not yet', 12]);
    subject.passed(12);
    t.equal(await endOf(subject), 'done');
  },
);

t.test(
  'changes: one that is applied while a transfer lets nothing in waits for its end',
  async (t) => {
    const subject = rig();
    subject.ask(REMOVE_3);
    subject.status.transferTarget = 2;
    subject.applied(11);
    subject.passed(12);
    t.equal(await endOf(subject), 'not yet', 'whoever dies now may be the last one to know');
    subject.changes.proposeAsked();
    t.equal(await endOf(subject), 'not yet');
    subject.status.transferTarget = 0;
    subject.changes.proposeAsked();
    t.equal(subject.lastIndex, 12);
    subject.passed(12);
    t.equal(await endOf(subject), 'done');

    const lost = rig();
    lost.ask(REMOVE_3);
    lost.status.transferTarget = 2;
    lost.applied(11);
    lost.status.standing = 'follower';
    lost.changes.onLeadershipLost(11);
    t.equal(await endOf(lost), 'done', 'it is committed');

    const follower = rig();
    follower.ask(REMOVE_3);
    follower.status.standing = 'follower';
    follower.changes.onLeadershipLost(11);
    t.equal(await endOf(follower), 'not yet', 'it will be applied here, whoever leads');
    follower.applied(11);
    t.equal(await endOf(follower), 'done');
  },
);

t.test(
  "changes: what another leader's took the place of, or a snapshot, is not known",
  async (t) => {
    const replaced = rig();
    replaced.ask(REMOVE_3);
    replaced.applied(11, { term: TERM + 1 });
    t.equal(await endOf(replaced), 'outcome-unknown');
    const other = rig();
    other.ask(REMOVE_3);
    other.applied(10);
    t.equal(await endOf(other), 'not yet', 'that was another one');
    other.changes.onInstalled(10);
    t.equal(await endOf(other), 'not yet');
    other.changes.onInstalled(11);
    t.equal(await endOf(other), 'outcome-unknown');
  },
);

t.test('changes: what was not proposed is refused, and says why', async (t) => {
  const transfer = rig();
  transfer.status.transferTarget = 2;
  transfer.ask({ kind: 'remove', node: 1 });
  t.same([await endOf(transfer), transfer.asked], ['not-leader', []], 'nor is another asked');
  const ignored = rig();
  ignored.proposed = () => ({
    ...{ kind: 'appended', term: TERM, index: 11 },
    changeIgnored: { reason: 'unapplied-change', atIndex: 9, appliedIndex: 8 },
  });
  ignored.ask(REMOVE_3);
  t.equal(await endOf(ignored), 'change-in-flight, 1 leads');
  const full = rig();
  full.proposed = () => ({ kind: 'refused', reason: 'uncommitted-limit' });
  full.ask(REMOVE_3);
  t.equal(await endOf(full), 'queue-full');
  const unlike = rig();
  unlike.record = EMPTY_GROUP;
  unlike.ask({ kind: 'add-voter', node: 4 });
  t.equal(await endOf(unlike), 'refused', 'what the machine would make of it is another group');
});

t.test(
  'changes: at the end of the node what was proposed is not known, all else refused',
  async (t) => {
    const [closed, unknown] = [
      new ReplicaError('closed', 'the log is closing'),
      new ReplicaError('outcome-unknown', 'the node ended under way'),
    ];
    const asked = rig();
    asked.ask({ kind: 'remove', node: 1 });
    t.same(asked.asked, ['to 2']);
    asked.changes.rejectAll(closed, unknown);
    t.equal(await endOf(asked), 'closed');
    const proposed = rig();
    proposed.ask(REMOVE_3);
    proposed.changes.rejectAll(closed, unknown);
    t.equal(await endOf(proposed), 'outcome-unknown');
  },
);
