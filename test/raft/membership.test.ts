// Changes of membership, against the published cases and against rules that must always hold.

import { basename } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { Progress, type ProgressStart } from '../../cluster/raft/leading/progress.ts';
import {
  enterJointStep,
  isMemberOf,
  leaveJointStep,
  type Membership,
  type MembershipRefusal,
  type MembershipStep,
  membersOf,
  NO_MEMBERS,
  normalized,
  sameMembership,
  simpleStep,
} from '../../cluster/raft/membership/membership.ts';
import {
  decodeMembershipChange,
  encodeMembershipChange,
  LEAVE_JOINT,
  MEMBER_CHANGES_MAX,
  type MemberChange,
  type MembershipChange,
  protocolOf,
} from '../../cluster/raft/membership/membership-change.ts';
import { parseChanges } from './support/commands.ts';
import { type Case, firstDifference, runCases } from './support/datadriven.ts';
import { describeMembership, describeProgress } from './support/describe.ts';
import { suiteFiles } from './support/vectors.ts';

const RUNS = { numRuns: 1_000 };

const REFUSAL_WORDS: Readonly<Record<MembershipRefusal, string>> = {
  'already-joint': 'config is already joint',
  'not-joint': "can't leave a non-joint config",
  'no-voters-yet': "can't make a zero-voter config joint",
  'no-voters-left': 'removed all voters',
  'needs-joint': 'more than one voter changed without entering joint config',
  'simple-while-joint': "can't apply simple config change in joint config",
};

/** A membership with a progress for each member, where the log grows by one with every command. */
class Books {
  #membership: Membership = NO_MEMBERS;
  #progress = new Map<number, Progress>();
  #lastIndex = 0;

  run({ command, args, input }: Case): string {
    const step = this.#step(command, parseChanges(input), {
      autoLeave: args.some(({ key, values }) => key === 'autoleave' && values[0] === 'true'),
    });
    const lastIndex = this.#lastIndex;
    this.#lastIndex += 1;
    if (typeof step === 'string') return REFUSAL_WORDS[step];
    this.#take(step, lastIndex);
    const lines = [...this.#progress].map(
      ([id, held]) => `${id}: ${describeProgress(held.view())}`,
    );
    return [describeMembership(this.#membership), ...lines].join('\n');
  }

  #step(
    command: string,
    changes: readonly MemberChange[],
    options: { autoLeave: boolean },
  ): MembershipStep | MembershipRefusal {
    if (command === 'simple') return simpleStep(this.#membership, changes);
    if (command === 'enter-joint') return enterJointStep(this.#membership, changes, options);
    if (command === 'leave-joint') return leaveJointStep(this.#membership);
    throw new Error(`no such command: ${command}`);
  }

  #take({ membership, fresh }: MembershipStep, lastIndex: number): void {
    const before = this.#progress;
    this.#membership = membership;
    this.#progress = new Map();
    for (const id of membersOf(membership)) {
      const isLearner = membership.learners.includes(id);
      const kept = fresh.includes(id) ? undefined : before.get(id);
      const progress = kept ?? new Progress(newcomer(lastIndex));
      progress.isLearner = isLearner;
      this.#progress.set(id, progress);
    }
  }
}

const suite = suiteFiles('confchange', 'testdata');
if ('skip' in suite) {
  t.test('published membership cases', { skip: suite.skip }, () => undefined);
} else {
  t.test('published membership cases', (t) => {
    let count = 0;
    for (const path of suite) {
      const books = new Books();
      const outcomes = runCases(path, (testCase) => books.run(testCase));
      count += outcomes.length;
      t.equal(firstDifference(outcomes), undefined, basename(path, '.txt'));
    }
    t.equal(count, 58, 'all of them were read');
    t.end();
  });
}

const memberChange: fc.Arbitrary<MemberChange> = fc.record({
  kind: fc.constantFrom('add-voter', 'add-learner', 'remove', 'update'),
  node: fc.integer({ min: 1, max: 6 }),
});
const changes = fc.array(memberChange, { maxLength: 6 });
const voters = fc.uniqueArray(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 5 });

t.test('membership: going through a joint state ends where the same steps lead one by one', (t) => {
  fc.assert(
    fc.property(voters, changes, (start, asked) => {
      const from = normalized({ ...NO_MEMBERS, voters: start });
      const joint = enterJointStep(from, asked, { autoLeave: true });
      const direct = oneByOne(from, asked);
      if (typeof joint === 'string') return joint === 'no-voters-left';
      if (direct === undefined) return true;
      const left = leaveJointStep(joint.membership);
      return typeof left !== 'string' && equal(left.membership, direct);
    }),
    RUNS,
  );
  t.end();
});

t.test('membership: the outgoing half of a joint state is what was there before', (t) => {
  fc.assert(
    fc.property(voters, changes, (start, asked) => {
      const from = normalized({ ...NO_MEMBERS, voters: start });
      const joint = enterJointStep(from, asked, { autoLeave: false });
      if (typeof joint === 'string') return true;
      const { votersOutgoing, learnersNext } = joint.membership;
      return (
        JSON.stringify(votersOutgoing) === JSON.stringify(from.voters) &&
        learnersNext.every((id) => from.voters.includes(id))
      );
    }),
    RUNS,
  );
  t.end();
});

/** Between three voters and two, with a learner beside them and one to be. */
const JOINT: Membership = {
  voters: [1, 2],
  votersOutgoing: [1, 2, 3],
  learners: [4],
  learnersNext: [3],
  autoLeave: false,
};

t.test('membership: what does not fit is refused, and each refusal says why', (t) => {
  const three = { ...NO_MEMBERS, voters: [1, 2, 3] };
  const simple = (from: Membership, text: string) => simpleStep(from, parseChanges(text));
  const joint = (from: Membership, text: string) =>
    enterJointStep(from, parseChanges(text), { autoLeave: false });
  t.equal(simple(JOINT, 'v4'), 'simple-while-joint');
  t.equal(simple(three, 'v4 v5'), 'needs-joint');
  t.equal(simple(three, 'r3 v4'), 'needs-joint', 'one for another are two');
  t.equal(simple({ ...NO_MEMBERS, voters: [1] }, 'r1'), 'no-voters-left');
  t.equal(joint(JOINT, 'v4'), 'already-joint');
  t.equal(joint(NO_MEMBERS, 'v1'), 'no-voters-yet');
  t.equal(joint(three, 'r1 r2 r3'), 'no-voters-left');
  t.equal(leaveJointStep(three), 'not-joint');
  t.end();
});

t.test('membership: a step about node 0 is void, one about a member begins nothing anew', (t) => {
  const from = { ...NO_MEMBERS, voters: [1, 2, 3], learners: [4] };
  const stepOf = (text: string) => simpleStep(from, parseChanges(text));
  t.same(simpleStep(from, [{ kind: 'add-voter', node: 0 }]), { membership: from, fresh: [] });
  t.same(stepOf('l4'), { membership: from, fresh: [] });
  t.same(stepOf('r4 l4'), { membership: from, fresh: [4] });
  t.match(stepOf('v4'), {
    membership: { voters: [1, 2, 3, 4], learners: [] },
    fresh: { length: 0 },
  });
  t.match(stepOf('l5'), { membership: { learners: [4, 5] }, fresh: [5] });
  const back = enterJointStep(from, parseChanges('r3 v3'), { autoLeave: true });
  t.match(back, { membership: { voters: [1, 2, 3] }, fresh: { length: 0 } });
  t.end();
});

t.test('membership: who votes on its way out is a member, in whatever order lists came', (t) => {
  t.same(
    [1, 3, 4, 5].map((node) => isMemberOf(JOINT, node)),
    [true, true, true, false],
  );
  t.ok(sameMembership(JOINT, { ...JOINT, voters: [2, 1], votersOutgoing: [3, 1, 2] }));
  t.notOk(sameMembership(JOINT, { ...JOINT, learnersNext: [] }));
  t.end();
});

t.test('membership: a node removed and added again in one change starts anew', (t) => {
  const from = { ...NO_MEMBERS, voters: [1, 2, 3] };
  const step = simpleStep(from, parseChanges('r2 v2'));
  t.same(step, { membership: from, fresh: [2] });
  t.same(simpleStep(from, parseChanges('v2')), { membership: from, fresh: [] });
  t.end();
});

t.test('membership: lists that contradict each other are not restored', (t) => {
  const base = { ...NO_MEMBERS, voters: [1, 2] };
  t.throws(() => normalized({ ...base, learners: [2] }));
  t.throws(() => normalized({ ...base, learnersNext: [3] }));
  t.throws(() => normalized({ ...base, votersOutgoing: [2, 3], learners: [3] }));
  t.throws(() => normalized({ ...base, votersOutgoing: [1, 2], learnersNext: [2] }));
  t.throws(() => normalized({ ...base, autoLeave: true }));
  t.throws(() => normalized({ ...NO_MEMBERS, votersOutgoing: [1] }));
  t.throws(() => normalized({ ...NO_MEMBERS, learners: [1] }));
  t.same(normalized({ ...base, voters: [2, 1, 2] }).voters, [1, 2]);
  t.end();
});

t.test('membership change: its bytes say what it said', (t) => {
  const change: fc.Arbitrary<MembershipChange> = fc.record({
    transition: fc.constantFrom('auto', 'implicit', 'explicit'),
    changes: fc.array(
      fc.record({
        kind: fc.constantFrom('add-voter', 'add-learner', 'remove', 'update'),
        node: fc.maxSafeNat(),
      }),
      { maxLength: 8 },
    ),
    context: fc.uint8Array({ maxLength: 20 }),
  });
  fc.assert(
    fc.property(change, (wanted) => {
      const decoded = decodeMembershipChange(encodeMembershipChange(wanted));
      return JSON.stringify(decoded) === JSON.stringify(wanted);
    }),
    RUNS,
  );
  t.end();
});

t.test('membership change: bytes that say nothing are no change, and never an exception', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (bytes) => {
      const decoded = decodeMembershipChange(bytes);
      return decoded === undefined || Buffer.compare(encodeMembershipChange(decoded), bytes) === 0;
    }),
    RUNS,
  );
  t.equal(decodeMembershipChange(new Uint8Array([1, 0, 2, 0])), undefined, 'cut short');
  t.equal(decodeMembershipChange(new Uint8Array([2, 0, 0])), undefined, 'another version');
  t.equal(decodeMembershipChange(new Uint8Array([1, 3, 0])), undefined, 'no transition');
  const oneStep = (kind: number, node: number) => [1, 0, 1, kind, ...Array<number>(8).fill(node)];
  t.equal(decodeMembershipChange(new Uint8Array(oneStep(4, 0))), undefined, 'no kind');
  t.equal(decodeMembershipChange(new Uint8Array(oneStep(0, 255))), undefined, 'no node');
  const changes = Array<MemberChange>(MEMBER_CHANGES_MAX + 1).fill({ kind: 'update', node: 1 });
  t.throws(() => encodeMembershipChange({ ...LEAVE_JOINT, changes }), RangeError, 'too many');
  t.end();
});

t.test(
  'membership change: leaving a joint state takes no bytes, so no limit can refuse it',
  (t) => {
    t.equal(encodeMembershipChange(LEAVE_JOINT).length, 0);
    t.same(decodeMembershipChange(new Uint8Array()), LEAVE_JOINT);
    t.end();
  },
);

t.test('membership change: the protocol follows from transition and number of steps', (t) => {
  const table = [
    ['auto', 'v1', 'simple'],
    ['auto', 'v1 v2', 'joint-auto-leave'],
    ['implicit', 'v1', 'joint-auto-leave'],
    ['explicit', 'v1', 'joint'],
  ] as const;
  for (const [transition, text, expected] of table) {
    const change = { transition, changes: parseChanges(text), context: new Uint8Array() };
    t.equal(protocolOf(change), expected, `${transition} ${text}`);
  }
  t.end();
});

function newcomer(lastIndex: number): ProgressStart {
  return {
    matchIndex: 0,
    nextIndex: Math.max(lastIndex, 1),
    isLearner: false,
    recentlyActive: true,
    inflightLimits: { maxMessages: 10, maxBytes: Number.POSITIVE_INFINITY },
  };
}

/** Undefined where a step on the way would leave nobody to vote. */
function oneByOne(from: Membership, asked: readonly MemberChange[]): Membership | undefined {
  let membership = from;
  for (const change of asked) {
    const step = simpleStep(membership, [change]);
    if (typeof step === 'string') return undefined;
    membership = step.membership;
  }
  return membership;
}

function equal(a: Membership, b: Membership): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
