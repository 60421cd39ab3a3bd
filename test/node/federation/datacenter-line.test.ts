// The way to other datacenters: what is meant for one is for its own servers, wherever they are thought to be.
// And how long an answer is waited for, on this way and on the one to the own leader.

import t from 'tap';
import { RpcError } from '../../../cluster/transport/calls/rpc-error.ts';
import type { AclError } from '../../../src/acl/error.ts';
import { answeringWith } from '../../../src/node/calls/answer-questions.ts';
import {
  decodeAnswer,
  encodeOutput,
  encodeQuestion,
  encodeRefusal,
} from '../../../src/node/calls/call-frames.ts';
import { kindOfCall } from '../../../src/node/calls/call-limit.ts';
import { CallPlaces } from '../../../src/node/calls/call-places.ts';
import { Forwarding } from '../../../src/node/calls/forwarding.ts';
import { runAtLeaderBy } from '../../../src/node/calls/operator-remote.ts';
import { answeringDatacentersWith } from '../../../src/node/federation/calls/answer-datacenters.ts';
import {
  DatacenterLine,
  WAIT_QUESTION,
} from '../../../src/node/federation/calls/datacenter-line.ts';
import { type Call, PLAIN_CALL } from '../../../src/service/call.ts';
import type { WaitThere } from '../../../src/service/datacenters/federation.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeRandom } from '../../support/fake-random.ts';

t.test('datacenter line: every call names the datacenter that it is for', async (test) => {
  const meantFor: (string | undefined)[] = [];
  const line = new DatacenterLine({
    addresses: () => [
      { host: 'one', port: 1 },
      { host: 'two', port: 1 },
    ],
    countMax: 1,
    ackTimeoutMs: 5_000,
    call: async ({ host }, { datacenter }) => {
      meantFor.push(datacenter);
      throw new RpcError('unreachable', `${host} is of another datacenter`);
    },
  });
  const errand = { name: 'token.read', input: {}, call: PLAIN_CALL };
  await test.rejects(line.run('dc2', errand), /two is of another datacenter/);
  const wait = {
    target: { table: 'tokens', object: undefined },
    index: 1,
    timeoutMs: 1,
    cancel: new AbortController().signal,
  } as const;
  await test.rejects(line.waitForChange('dc3', wait), /two is of another datacenter/);
  test.same(meantFor, ['dc2', 'dc2', 'dc3', 'dc3']);
});

t.test(
  'datacenter line: of a lost answer it says whether a write may have been done',
  async (test) => {
    const line = new DatacenterLine({
      addresses: () => [{ host: 'one', port: 1 }],
      countMax: 1,
      ackTimeoutMs: 5_000,
      call: async () => {
        throw new RpcError('lost', 'the answer is lost');
      },
    });
    const run = (name: string) => line.run('dc2', { name, input: {}, call: PLAIN_CALL });
    const lost = { code: 'outcome-unknown' };
    const read = { ...lost, message: 'nothing was read: dc2: the answer is lost' };
    for (const name of ['token.read', 'replication.status', 'primary', 'divergence'])
      await test.rejects(run(name), read, name);
    const message = 'whether the write took effect is not known: dc2: the answer is lost';
    for (const name of ['token.delete', 'of a later release', 'primary-move']) {
      await test.rejects(run(name), { ...lost, message }, name);
    }
    const group = {
      self: 1,
      leader: () => ({ node: 2, term: 1 }),
      onLeaderChanged: () => () => {},
    };
    const call = async () => {
      throw new RpcError('lost', 'the answer is lost');
    };
    const forwarding = new Forwarding({
      ...{ line: { ...group, call }, clock: new FakeClock(), countMax: 1, ackTimeoutMs: 5_000 },
    });
    test.teardown(() => forwarding.close());
    const place = kindOfCall({ name: 'primary', call: PLAIN_CALL });
    test.equal(place, 'write', 'whoever reads does not keep operators from looking');
    const askOperator = runAtLeaderBy(forwarding);
    const ofLeader = ({ message }: { readonly message: string }) => {
      return { ...lost, message: message.replace('dc2: ', '') };
    };
    await test.rejects(askOperator('autopilot-state', {}, PLAIN_CALL), ofLeader(read));
    const change = askOperator('raft-transfer-leader', { id: undefined }, PLAIN_CALL);
    await test.rejects(change, ofLeader({ message }));
  },
);

t.test('datacenter line: whose leader is away, or keeps out of it, is told', async (test) => {
  const answered = async (refusal: LeaderAway): Promise<unknown> => {
    const line = new DatacenterLine({
      addresses: () => [{ host: 'one', port: 1 }],
      countMax: 1,
      ackTimeoutMs: 5_000,
      call: async () => encodeRefusal(refusal),
    });
    const errand = { name: 'token.delete', input: {}, call: PLAIN_CALL };
    return line.run('dc2', errand).catch((error: unknown) => error);
  };
  const away = await answered(new LeaderAway());
  test.ok(away instanceof LeaderAway, 'another try may work');
  test.match(away, { message: 'No cluster leader in datacenter dc2' });
  const says = 'Nothing was written: dc3 has 2.7: that reign has begun';
  const closed = await answered(new LeaderAway({ says }));
  test.ok(closed instanceof LeaderAway);
  test.match(closed, { message: says });
});

t.test(
  'datacenter line: the next server is asked where nothing was done, and else none',
  async (test) => {
    const away = { code: 'unavailable', message: /dc2/ };
    const unknown = { code: 'outcome-unknown' };
    const cases = [
      ['unreachable', away, 2],
      ['refused', away, 2],
      ['too-many-hops', away, 2],
      ['lost', unknown, 1],
      ['timeout', unknown, 1],
      ['too-large', { code: 'body-too-large' }, 1],
    ] as const;
    for (const [code, refusal, count] of cases) {
      const asked: string[] = [];
      const line = new DatacenterLine({
        addresses: () => ['one', 'two'].map((host) => ({ host, port: 1 })),
        countMax: 1,
        ackTimeoutMs: 5_000,
        call: async ({ host }) => {
          asked.push(host);
          throw new RpcError(code, `${host} says so`);
        },
      });
      const errand = { name: 'token.delete', input: {}, call: PLAIN_CALL };
      await test.rejects(line.run('dc2', errand), refusal, code);
      test.equal(asked.length, count, code);
    }
  },
);

t.test('calls: a write has as much longer as it may wait for other datacenters', async (test) => {
  const deadlines: number[] = [];
  const call = async (_to: unknown, { deadlineMs }: { readonly deadlineMs: number }) => {
    deadlines.push(deadlineMs);
    throw new RpcError('timeout', 'no answer');
  };
  const line = new DatacenterLine({
    ...{ addresses: () => [{ host: 'one', port: 1 }], call, countMax: 1, ackTimeoutMs: 5_000 },
  });
  const group = { self: 1, leader: () => ({ node: 2, term: 1 }), onLeaderChanged: () => () => {} };
  const forwarding = new Forwarding({
    ...{ line: { ...group, call }, clock: new FakeClock(), countMax: 1, ackTimeoutMs: 5_000 },
  });
  test.teardown(() => forwarding.close());
  const asked = async (name: 'token.delete' | 'replication.status', more: Partial<Call>) => {
    deadlines.length = 0;
    const input = { accessorId: 'any' } as never;
    const sent = { ...PLAIN_CALL, ...more };
    await test.rejects(line.run('dc2', { name, input, call: sent }), /no answer/);
    await test.rejects(forwarding.runAtLeader(name, input, sent), /no answer/);
    return deadlines;
  };
  const both = (ms: number): readonly number[] => [ms, ms];
  test.same(await asked('token.delete', {}), both(35_000), 'as the setting says');
  test.same(await asked('token.delete', { ackTimeoutMs: 120_000.5 }), both(150_001));
  test.same(await asked('token.delete', { ackTimeoutMs: 9_999_999 }), both(630_000), 'no more');
  test.same(await asked('replication.status', {}), both(30_000), 'a read waits for nobody');
});

/** That have places, of 16 that are asked for of each kind, one kind after the other. */
const PLACES = { wait: 4, read: 4, outside: 2, late: 4, write: 2 };
/** Who has them, in the words of a refusal. */
const FULL = {
  wait: '4 waiting reads',
  read: '4 reads',
  outside: '2 logins and writes of auth methods',
  late: '4 writes with an ack of their own',
  write: '16 calls',
};
const KINDS = Object.keys(PLACES) as (keyof typeof PLACES)[];
const NONE_OF_ANY = { wait: 0, read: 0, outside: 0, late: 0, write: 0 };
const LATE_CALL: Call = { ...PLAIN_CALL, ack: 'all' };

t.test(
  'places: whoever waits for other datacenters or for a provider, and reads there, leaves some for writes',
  async (test) => {
    const line = new DatacenterLine({
      addresses: () => [{ host: 'one', port: 1 }],
      ...{
        countMax: 16,
        ackTimeoutMs: 5_000,
        call: () => new Promise<Uint8Array>(() => undefined),
      },
    });
    const refused = { ...NONE_OF_ANY };
    const wait = () =>
      line.waitForChange('dc2', {
        ...{ target: { table: 'tokens', object: undefined }, index: 1, timeoutMs: 60_000 },
        cancel: new AbortController().signal,
      } as WaitThere);
    const asks = {
      wait,
      read: () => line.run('dc2', { name: 'token.read-self', input: {}, call: PLAIN_CALL }),
      outside: () => line.run('dc2', { name: 'login', input: {}, call: LATE_CALL }),
      late: () => line.run('dc2', { name: 'token.delete', input: {}, call: LATE_CALL }),
      write: () => line.run('dc2', { name: 'token.delete', input: {}, call: PLAIN_CALL }),
    };
    for (const kind of KINDS) {
      for (let number = 0; number < 16; number += 1) {
        asks[kind]().catch(({ code, message }: AclError) => {
          test.equal(code, 'unavailable');
          test.equal(message, `${FULL[kind]} wait for other datacenters already`);
          refused[kind] += 1;
        });
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
      test.equal(refused[kind], 16 - PLACES[kind], kind);
    }
    test.equal(line.count, 16);
  },
);

t.test(
  'places: so do those that other datacenters wait for here, and get them back',
  async (test) => {
    const ends: (() => void)[] = [];
    const held = <T>(value: T): Promise<T> =>
      new Promise((resolve) => ends.push(() => resolve(value)));
    const answer = answeringDatacentersWith({
      door: {
        changesWithin: () => held(true),
        runForDatacenter: () => held('done' as never),
      },
      ...{ countMax: 16, random: new FakeRandom() },
      logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    });
    const names = {
      ...{ wait: WAIT_QUESTION, read: 'token.read-self', outside: 'auth-method.update' },
      ...{ late: 'token.delete', write: 'token.delete' },
    };
    const refused = { ...NONE_OF_ANY };
    const answered: Promise<void>[] = [];
    for (const kind of KINDS) {
      const question = encodeQuestion({
        ...{ name: names[kind], call: kind === 'late' ? LATE_CALL : PLAIN_CALL },
        input: { target: { table: 'tokens', object: undefined }, index: 1, timeoutMs: 1 },
      });
      for (let number = 0; number < 16; number += 1) {
        const tried = answer(question, 'dc2').then((bytes) => {
          if (Buffer.compare(bytes, encodeOutput(kind === 'wait' ? true : 'done')) === 0) return;
          test.throws(() => decodeAnswer(bytes), { code: 'unavailable' });
          refused[kind] += 1;
        });
        answered.push(tried);
      }
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
    for (const kind of KINDS) test.equal(refused[kind], 16 - PLACES[kind], kind);
    test.equal(ends.length, 16);
    for (const end of ends.splice(0)) end();
    await Promise.all(answered);
    void answer(encodeQuestion({ name: names.write, input: {}, call: PLAIN_CALL }), 'dc2');
    await new Promise<void>((resolve) => setImmediate(resolve));
    test.equal(ends.length, 1, 'what is over has given its place back');
    ends[0]!();
  },
);

/** What hangs at each of four places that carry or answer calls, of 16 that it takes. */
const CARRIERS: readonly (readonly [name: string, (call: Call) => Promise<unknown>])[] = [
  ['to other datacenters', toOtherDatacenters()],
  ['of other datacenters', answered((options) => answeringDatacentersWith(options))],
  ['to the leader', toTheLeader()],
  ['of other servers', answered((options) => answeringWith(options))],
];

function toOtherDatacenters(): (call: Call) => Promise<unknown> {
  const addresses = () => [{ host: 'one', port: 1 }];
  const bounds = { countMax: 16, ackTimeoutMs: 5_000 };
  const line = new DatacenterLine({ addresses, ...bounds, call: hangs });
  return (call) => line.run('dc2', { name: 'token.delete', input: {}, call });
}

function toTheLeader(): (call: Call) => Promise<unknown> {
  const line = { self: 1, leader: () => ({ node: 2, term: 1 }), onLeaderChanged: () => () => {} };
  const forwarding = new Forwarding({
    ...{ line: { ...line, call: hangs }, clock: new FakeClock() },
    ...{ countMax: 16, ackTimeoutMs: 5_000 },
  });
  return (call) => forwarding.runAtLeader('token.delete', { accessorId: 'any' } as never, call);
}

function answered(
  answering: (options: {
    readonly door: Record<
      'runForOther' | 'runForDatacenter' | 'changesWithin',
      () => Promise<never>
    >;
    readonly countMax: number;
    readonly random: FakeRandom;
    readonly logger: Record<'debug' | 'info' | 'warn' | 'error', () => void>;
  }) => (question: Uint8Array, from: string) => Promise<Uint8Array>,
): (call: Call) => Promise<unknown> {
  const answer = answering({
    door: { runForOther: hangs, runForDatacenter: hangs, changesWithin: hangs },
    ...{ countMax: 16, random: new FakeRandom() },
    logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  return async (call) => {
    const question = encodeQuestion({ name: 'token.delete', input: {}, call });
    return decodeAnswer(await answer(question, 'dc2'));
  };
}

function hangs(): Promise<never> {
  return new Promise(() => undefined);
}

for (const [name, carry] of CARRIERS) {
  t.test(`places: whoever has others waited for leaves most of them (${name})`, async (test) => {
    const refusedOf = async (calls: readonly Partial<Call>[]): Promise<number> => {
      let refused = 0;
      for (const more of calls) {
        carry({ ...PLAIN_CALL, ...more }).catch(({ code, message }: AclError) => {
          test.equal(code, 'unavailable');
          test.ok(
            message.includes(FULL['ack' in more || 'ackTimeoutMs' in more ? 'late' : 'write']),
          );
          refused += 1;
        });
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
      return refused;
    };
    const late = [{ ack: 'all' }, { ack: 'majority' }, { ackTimeoutMs: 600_000 }] as const;
    test.equal(await refusedOf([...late, ...late, ...late, ...late]), 8);
    test.equal(await refusedOf(Array.from({ length: 13 }, () => ({}))), 1);
  });
}

t.test('places: a write finds one, whatever else has taken them, of however few there are', (t) => {
  const kinds = ['late', 'outside', 'read', 'wait'] as const;
  const isFull = (countMax: number): boolean => {
    const places = new CallPlaces(countMax);
    for (const kind of kinds) while (places.take(kind) !== undefined);
    return places.take('write') === undefined;
  };
  const counts = Array.from({ length: 64 }, (_, before) => before + 1);
  t.same(counts.filter(isFull), [1, 2, 3, 4], 'each kind has one');
  t.end();
});
