// What operators ask of a leader that is another server, from one side to the other without a net; and
// the group as its member knows it, in the service's words.

import t from 'tap';
import type { MemberView } from '../../cluster/member/group-member.ts';
import { DEFAULT_AUTOPILOT } from '../../cluster/replica/group-record.ts';
import { GroupRefusal } from '../../cluster/replica/group-refusal.ts';
import { ReplicaError } from '../../cluster/replica/replica.ts';
import { AclError } from '../../src/acl/error.ts';
import type { SecretId } from '../../src/acl/ids.ts';
import { AUTOPILOT_DEFAULTS } from '../../src/api/bodies/autopilot-settings.ts';
import { decodeAnswer, encodeQuestion } from '../../src/node/calls/call-frames.ts';
import {
  type AnsweringOperatorsOptions,
  answeringOperatorsWith,
  beginRestoreBy,
  OPERATOR_ELSEWHERE_METHOD,
  OPERATOR_METHOD,
  runAtLeaderBy,
  runInDatacenterBy,
} from '../../src/node/calls/operator-remote.ts';
import { groupOf } from '../../src/node/operators/operator-port.ts';
import { type Call, PLAIN_CALL } from '../../src/service/call.ts';
import type { Errand } from '../../src/service/datacenters/federation.ts';
import type { OperatorName } from '../../src/service/operators/operator-operations.ts';
import type { RestoreIntake } from '../../src/service/operators/operator-port.ts';
import { LeaderAway } from '../../src/service/remote.ts';
import { FakeClock } from '../support/fake-clock.ts';
import { FakeRandom } from '../support/fake-random.ts';

const CALL: Call = {
  ...PLAIN_CALL,
  secret: 'a-secret' as SecretId,
  minPosition: { epoch: 1, seq: 5 },
  remoteAddress: '10.0.0.9',
};

/** An asker and a leader, with what the leader's door was asked and what it answers. */
function pair(answer: () => unknown = () => 'done') {
  const asked: { name: string; input: unknown; call: Call; isElsewhere?: true }[] = [];
  const events: string[] = [];
  const taken: Uint8Array[] = [];
  const questions: Uint8Array[] = [];
  const log: { fields: object; message: string }[] = [];
  const clock = new FakeClock();
  const logger = {
    debug: () => undefined,
    info: () => undefined,
    warn: (fields: object, message: string) => void log.push({ fields, message }),
    error: (fields: object, message: string) => void log.push({ fields, message }),
  };
  const intake: RestoreIntake = {
    add: async (chunk) => void taken.push(Buffer.from(chunk)),
    finish: async () => {
      events.push('finish');
      return { index: 42 };
    },
    abandon: async () => void events.push('abandon'),
  };
  const door: AnsweringOperatorsOptions['door'] = {
    runForOther: async (name, input, call) => {
      asked.push({ name, input, call });
      return answer() as never;
    },
    runForDatacenter: async (name, input, call) => {
      asked.push({ name, input, call, isElsewhere: true });
      return answer() as never;
    },
    beginRestoreForOther: async (call) => {
      asked.push({ name: 'restore', input: {}, call });
      answer();
      return intake;
    },
  };
  const answering = answeringOperatorsWith({ door, clock, random: new FakeRandom(), logger });
  const leader = {
    isLost: false,
    ask: async (method: string, payload: Uint8Array): Promise<Uint8Array> => {
      t.equal(method, OPERATOR_METHOD);
      if (leader.isLost) throw new AclError('outcome-unknown', 'another server leads by now');
      questions.push(payload);
      return await answering.answer(payload);
    },
  };
  const line = {
    run: async (_: string, errand: Errand, method: string): Promise<unknown> => {
      t.equal(method, OPERATOR_ELSEWHERE_METHOD);
      return decodeAnswer(await answering.answerDatacenter(encodeQuestion(errand)));
    },
  };
  const asker = {
    run: runAtLeaderBy(leader),
    runElsewhere: runInDatacenterBy(line),
    beginRestore: beginRestoreBy(leader),
  };
  return { asker, asked, events, taken, questions, log, clock, intake, answering, leader };
}

/** One input for each operation, and an answer that tells them apart. */
const INPUTS: Readonly<Record<OperatorName, object>> = {
  'raft-configuration': {},
  'raft-remove-peer': { server: { address: '10.0.0.2:8300' } },
  'raft-transfer-leader': { id: undefined },
  'autopilot-configuration': {},
  'autopilot-set-configuration': { settings: AUTOPILOT_DEFAULTS, ifIndex: 7 },
  'autopilot-state': {},
  primary: {},
  'primary-move': {
    datacenter: undefined,
    mode: 'forced',
    epoch: 2,
    acceptsLoss: true,
    from: 'dc3',
  },
  divergence: { limit: 100 },
  'divergence-resubmit': { position: { epoch: 1, seq: 7 }, cas: undefined },
  'divergence-take': { entry: Buffer.from('an entry'), cas: 4 },
  'divergence-discard': { position: undefined },
};

t.test('forwarding: question, caller and answer come over as they are', async (t) => {
  for (const [name, input] of Object.entries(INPUTS)) {
    const answer = {
      name,
      servers: [{ lastIndex: undefined, isLeader: true }],
      failureTolerance: 1,
    };
    const { asker, asked } = pair(() => answer);
    t.strictSame(await asker.run(name as OperatorName, input as never, CALL), answer);
    t.strictSame(asked, [{ name, input, call: CALL }]);
    const there = await asker.runElsewhere('dc2', name as OperatorName, {
      input: input as never,
      call: CALL,
    });
    t.strictSame(there, answer);
    t.strictSame(asked[1], { name, input, call: CALL, isElsewhere: true });
  }
});

t.test('forwarding: refusals keep their code and text, faults show a reference', async (t) => {
  const refused = pair(() => {
    throw new AclError('permission-denied', 'Permission denied');
  });
  const denied = { code: 'permission-denied', message: 'Permission denied' };
  await t.rejects(refused.asker.run('autopilot-state', {}, CALL), denied);
  await t.rejects(refused.asker.beginRestore(CALL), denied);
  const away = pair(() => {
    throw new LeaderAway();
  });
  const error: unknown = await away.asker.run('autopilot-state', {}, CALL).catch((e: unknown) => e);
  t.ok(error instanceof LeaderAway, 'it may be tried again');
  const broken = pair(() => {
    throw new Error('a-secret is in here');
  });
  await t.rejects(broken.asker.run('autopilot-state', {}, CALL), {
    code: 'internal',
    message: /^internal error, see \w+ in the log of the leader$/,
  });
  t.match(broken.log, [{ message: 'an operator of another server met a fault' }]);
});

t.test('forwarding: what the leader does not know is refused, and nothing is done', async (t) => {
  const { asker, asked } = pair();
  for (const name of ['from-a-later-release', 'toString', '__proto__']) {
    await t.rejects(asker.run(name as OperatorName, {}, CALL), {
      code: 'unavailable',
      message: 'the leader runs a release that does not know this',
    });
  }
  t.same(asked, []);
});

/** The caller, at the end of each question. */
const TAIL =
  'dc001701a6736563726574a8612d736563726574b26e616d657370616365506172616d657465729103' +
  'af6e616d6573706163654865616465729103aa6461746163656e7465729103ab636f6e73697374656e6379a764656661756c74' +
  'ab6d696e506f736974696f6e9103a36361739103a97265717565737449649103a361636b9103ac61636b54696d656f75744d739103' +
  'ad72656d6f7465416464726573739103';

/** Bytes of the first release. Never edited: servers of two releases talk to each other. */
const GOLDEN = {
  remove: `950001b0726166742d72656d6f76652d706565729301a67365727665729301a26964a178${TAIL}`,
  add:
    '950001ab726573746f72652e6164649701a773657373696f6ed9243131313131313131' +
    '2d323232322d343333332d383434342d303030303030303030303031a66e756d62657200a57069656365c4057069656365' +
    TAIL,
};

t.test('forwarding: the bytes of the first release', async (t) => {
  const { asker, questions } = pair(() => undefined);
  const call: Call = { ...CALL, minPosition: undefined, remoteAddress: undefined };
  await asker.run('raft-remove-peer', { server: { id: 'x' } }, call);
  const intake = await asker.beginRestore(call);
  await intake.add(Buffer.from('piece'));
  await intake.finish();
  const hex = questions.map((bytes) => Buffer.from(bytes).toString('hex'));
  t.same([hex[0], hex[2]], [GOLDEN.remove, GOLDEN.add]);
  t.equal(questions.length, 4, 'begin, one piece, finish');
});

t.test('restore: an archive comes over in pieces, and is finished once', async (t) => {
  const { asker, asked, taken, events, clock, questions } = pair();
  const intake = await asker.beginRestore(CALL);
  t.same(asked, [{ name: 'restore', input: {}, call: CALL }]);
  const chunks = Array.from({ length: 40 }, (_, place) => Buffer.alloc(64 * 1024, place));
  for (const chunk of chunks) await intake.add(chunk);
  t.ok(taken.length >= 4 && taken.length < 20, `${taken.length} pieces`);
  t.same(await intake.finish(), { index: 42 });
  const count = questions.length;
  await intake.abandon();
  t.equal(questions.length, count, 'there is nothing left to give up');
  t.ok(Buffer.concat(taken).equals(Buffer.concat(chunks)));
  t.same(events, ['finish', 'abandon']);
  t.equal(clock.pendingCount, 0, 'no timer is left');
});

t.test(
  'restore: what is wrong with the archive is told, and the leader lets go of it',
  async (t) => {
    const { asker, intake, events, clock } = pair();
    intake.add = () =>
      Promise.reject(new AclError('malformed', 'the archive is damaged at byte 7'));
    const remote = await asker.beginRestore(CALL);
    const add = remote.add(Buffer.alloc(1024 * 1024));
    await t.rejects(add, { code: 'malformed', message: 'the archive is damaged at byte 7' });
    t.same(events, ['abandon']);
    await remote.abandon();
    t.same(events, ['abandon']);
    t.equal(clock.pendingCount, 0);
  },
);

t.test('restore: a leader that is lost on the way has changed nothing, and says so', async (t) => {
  const { asker, leader, events, clock } = pair();
  const remote = await asker.beginRestore(CALL);
  await remote.add(Buffer.alloc(1024 * 1024));
  leader.isLost = true;
  await t.rejects(remote.add(Buffer.alloc(1024 * 1024)), {
    code: 'unavailable',
    message: 'nothing was restored: the leader was lost while it took in the archive',
  });
  await remote.abandon();
  t.same(events, [], 'the leader did not hear of it');
  clock.advance(120_000);
  t.same(events, ['abandon'], 'and gives it up by itself');
});

t.test('restore: what became of its end is said to be not known when it is not', async (t) => {
  const { asker, leader } = pair();
  const remote = await asker.beginRestore(CALL);
  const { ask } = leader;
  let count = 0;
  leader.ask = (method, payload) => {
    count += 1;
    if (count === 2) leader.isLost = true;
    return ask(method, payload);
  };
  await t.rejects(remote.finish(), { code: 'outcome-unknown' });
  t.equal(count, 2, 'the last piece, and the end');
});

t.test('restore: pieces that are lost or come twice are noticed', async (t) => {
  const { asker, leader, questions, answering } = pair();
  const remote = await asker.beginRestore(CALL);
  await remote.add(Buffer.alloc(1024 * 1024));
  const { ask } = leader;
  leader.ask = async (method, payload) => {
    leader.ask = ask;
    await answering.answer(payload);
    return ask(method, payload);
  };
  await t.rejects(remote.add(Buffer.alloc(1024 * 1024)), {
    code: 'unavailable',
    message: /piece 1 of the archive came in place of 2/,
  });
  t.ok(questions.length > 0);
});

t.test('restore: one that is given up takes nothing more', async (t) => {
  const { asker, clock, events, answering, log } = pair();
  const idle = await asker.beginRestore(CALL);
  clock.advance(119_999);
  t.same(events, []);
  clock.advance(1);
  t.same(events, ['abandon']);
  t.match(log, [{ message: /given up/ }]);
  const gone = { code: 'unavailable', message: /the leader has given this restore up/ };
  await t.rejects(idle.add(Buffer.alloc(1024 * 1024)), gone);
  const closing = await asker.beginRestore(CALL);
  await answering.close();
  t.same(events, ['abandon', 'abandon']);
  await t.rejects(closing.finish(), gone);
  t.equal(clock.pendingCount, 0);
});

const view = (fields: Partial<MemberView>): MemberView => ({
  node: 1,
  id: 'uuid-1',
  name: 'n1',
  address: { host: '10.0.0.1', port: 8300 },
  httpAddress: '10.0.0.1:8500',
  version: '0.1.0',
  reads: 2,
  isSelf: true,
  isLeader: true,
  isVoter: true,
  isAlive: true,
  lastContactMs: 0,
  lastIndex: 9,
  ...fields,
});

const allowed = (): void => undefined;

function fakeMember(fail?: Error, count = 2) {
  const acts: unknown[] = [];
  const act = async (what: unknown, requireStill?: () => void): Promise<never> => {
    requireStill?.();
    acts.push(what);
    return fail === undefined ? Promise.resolve(true as never) : Promise.reject(fail);
  };
  const other = { node: 2, id: 'uuid-2', name: 'n2', isSelf: false, isLeader: false };
  const members = [
    view({}),
    view({ ...other, address: { host: '::1', port: 8300 }, isAlive: false, lastIndex: undefined }),
  ].slice(0, count);
  const group = groupOf(
    {
      members: () => members,
      groupRecord: () => ({ autopilot: DEFAULT_AUTOPILOT, autopilotIndex: 6 }) as never,
      status: () => ({ appliedIndex: 11 }) as never,
      standing: () => ({ kind: 'member', term: 3 }) as never,
      removeMember: (node, requireStill) => act({ remove: node }, requireStill),
      transferLeadership: (to) => act({ transfer: to }),
      setAutopilot: (settings, ifIndex, requireStill) => act({ settings, ifIndex }, requireStill),
      autopilotState: () => {
        if (fail !== undefined) throw fail;
        const [first = view({})] = members;
        const health = { member: first, isHealthy: true, lastTerm: 3, stableSinceMs: 5 };
        return { isHealthy: true, failureTolerance: 0, servers: [health] };
      },
    },
    () => ({ uses: 1, reads: 2, waitsFor: ['n2'] }),
  );
  return { group, acts };
}

t.test('the group: is shown as its member knows it', async (t) => {
  const { group } = fakeMember();
  const { servers, appliedIndex } = group.servers();
  t.equal(appliedIndex, 11);
  t.match(servers, [
    { id: 'uuid-1', address: '10.0.0.1:8300', isLeader: true, lastIndex: 9, lastTerm: 3 },
    { id: 'uuid-2', address: '[::1]:8300', isLeader: false, lastIndex: undefined },
  ]);
  t.same(group.autopilot(), { settings: AUTOPILOT_DEFAULTS, index: 7 });
  t.match(group.autopilotState(), {
    isHealthy: true,
    failureTolerance: 0,
    servers: [{ id: 'uuid-1', isHealthy: true, stableSinceMs: 5 }],
  });
});

t.test('the group: defaults are the same on both sides', async (t) => {
  t.same(AUTOPILOT_DEFAULTS, DEFAULT_AUTOPILOT);
});

t.test('the group: is changed by the numbers of its servers and of its settings', async (t) => {
  const { group, acts } = fakeMember();
  await group.remove('uuid-2', allowed);
  await group.transferLeadership(undefined);
  await group.transferLeadership('uuid-2');
  await group.setAutopilot(AUTOPILOT_DEFAULTS, 7, allowed);
  await group.setAutopilot(AUTOPILOT_DEFAULTS, undefined, allowed);
  t.same(acts, [
    { remove: 2 },
    { transfer: undefined },
    { transfer: 2 },
    { settings: AUTOPILOT_DEFAULTS, ifIndex: 6 },
    { settings: AUTOPILOT_DEFAULTS, ifIndex: undefined },
  ]);
  const denied = (): void => {
    throw new AclError('permission-denied', 'not any more');
  };
  await t.rejects(group.remove('uuid-2', denied), { code: 'permission-denied' });
  await t.rejects(group.setAutopilot(AUTOPILOT_DEFAULTS, 7, denied), { code: 'permission-denied' });
  t.equal(acts.length, 5);
  await t.rejects(group.remove('gone', allowed), { code: 'update-target-missing' });
});

t.test('the group: refusals say whether anything was done', async (t) => {
  const cases: readonly (readonly [Error, code: string, text: RegExp])[] = [
    [new GroupRefusal('refused', 'the last voter stays'), 'invalid', /^the last voter stays$/],
    [
      new GroupRefusal('change-in-flight', 'another'),
      'unavailable',
      /^nothing was changed: another/,
    ],
    [new ReplicaError('queue-full', 'too many'), 'unavailable', /^nothing was changed: too many/],
    [new ReplicaError('outcome-unknown', 'lost'), 'outcome-unknown', /is not known: lost/],
  ];
  for (const [fail, code, message] of cases) {
    const { group } = fakeMember(fail);
    await t.rejects(group.remove('uuid-2', allowed), { code, message });
  }
  const late = fakeMember(new GroupRefusal('refused', 'it did not take over in time'));
  await t.rejects(late.group.transferLeadership('uuid-2'), {
    code: 'unavailable',
    message: 'leadership stays where it is: it did not take over in time',
  });
  const alone = fakeMember(undefined, 1);
  await t.rejects(alone.group.transferLeadership(undefined), { code: 'invalid' });
  t.same(alone.acts, []);
  const { group } = fakeMember(new GroupRefusal('not-leader', 'no'));
  const refused: unknown = await group.transferLeadership(undefined).catch((e: unknown) => e);
  t.ok(refused instanceof LeaderAway);
  t.throws(() => group.autopilotState(), { name: 'AclError', code: 'unavailable' });
});
