// When a server asks the primary for the global log, told by what it sends: while it reigns in a secondary, and
// at no other time. How long a write waits for others at a primary that is moved meanwhile, and who counts as
// heard. In virtual time, with nobody who answers.

import t from 'tap';
import { Closer } from '../../../cluster/base/closer.ts';
import {
  DIRECTORY_METHOD,
  type DirectoryRecord,
  encodeRecords,
} from '../../../cluster/federation/directory/directory-frames.ts';
import {
  decodeHello,
  encodeHello,
  encodeHelloAnswer,
  FEED_METHOD,
} from '../../../cluster/federation/feed/feed-frames.ts';
import type { GlobalCursor } from '../../../cluster/federation/global-log.ts';
import {
  decodePromise,
  encodeAsk,
  encodePromise,
  PROMOTION_METHOD,
} from '../../../cluster/federation/promotion/promotion-frames.ts';
import {
  decodeOffer,
  encodeOpen,
  encodeWish,
  SNAPSHOT_METHOD,
} from '../../../cluster/federation/snapshot/snapshot-frames.ts';
import type { Member } from '../../../cluster/member/group-member.ts';
import type { NetAddress } from '../../../cluster/platform/net.ts';
import type { RpcCall, RpcCaller, RpcServer } from '../../../cluster/transport/transport.ts';
import { acknowledgedLevel } from '../../../src/node/federation/acknowledged/acknowledged-level.ts';
import { NodeFederation } from '../../../src/node/federation/node-federation.ts';
import { ClockWatch } from '../../../src/node/reign/clock-watch.ts';
import { LeaderAway } from '../../../src/service/remote.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { FakeRandom } from '../../support/fake-random.ts';
import { aPolicy, aToken } from '../../support/state-and-service/fixtures.ts';
import { startedMachine } from '../../support/state-and-service/machine-harness.ts';

const PLAN = {
  ...{ datacenter: 'dc2', firstPrimary: 'dc1', isWitness: false, isFederated: true },
  ...{ retryJoin: [{ host: '127.0.0.1', port: 1 }], primaryLeaseMs: 0, ackTimeoutMs: 5_000 },
  ...{ logMaxBytes: 1 << 20, logMaxAgeMs: 3_600_000 },
};
const OWN = { host: '127.0.0.1', port: 2 };
const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const FROM: RpcCaller = {
  ...{ node: 7, id: 'x', name: 'x', version: '1', reads: 1, remote: 'x:1' },
  ...{ datacenter: 'dc3', clusterId: 'c3', federationId: '' },
};
/** Longer than a subscriber waits between two tries. */
const LONG_MS = 30_000;
const TRIES = 5;

async function aServer(owner: Pick<typeof t, 'teardown'>, plan = PLAN, hasCaughtUp = true) {
  const clock = new FakeClock();
  const clocks = new ClockWatch({ clock, logger: QUIET });
  const harness = await startedMachine();
  await harness.one({
    ...{
      type: 'global-log.begin',
      datacenter: 'dc2',
      primary: plan.firstPrimary,
      isWitness: false,
    },
  });
  const handlers = new Map<string, RpcServer>();
  const terms: number[] = [];
  const called: string[] = [];
  const answers = new Map<string, Uint8Array>();
  /** Ports of servers that do not answer. */
  const silent = new Set<number>();
  const member = {
    address: undefined,
    members: () => [{ address: OWN, isSelf: true, isLeader: true, isAlive: true }],
    onLeaderChanged: () => () => undefined,
    serve: (method: string, handler: RpcServer) => void handlers.set(method, handler),
    call: ({ port }: NetAddress, { method, payload }: RpcCall): Promise<Uint8Array> => {
      called.push(method);
      if (silent.has(port)) return new Promise(() => undefined);
      if (method === FEED_METHOD.hello) terms.push(decodeHello(payload).term);
      const answer = answers.get(method);
      return answer ? Promise.resolve(answer) : Promise.reject(new Error('nobody is there'));
    },
  };
  const closer = new Closer();
  owner.teardown(() => closer.close());
  const warnings: string[] = [];
  const warn = (fields: object): void => {
    warnings.push(JSON.stringify(fields));
  };
  const federation = new NodeFederation(
    {
      ...{ plan, machine: harness.machine, countMax: 10 },
      platform: { clock, random: new FakeRandom(), logger: { ...QUIET, warn } },
      member: member as unknown as Member<Outcome>,
      clocks,
      clusterId: () => 'two',
      propose: ({ change }) => harness.one(change),
      mayBegin: () => true,
      hasCaughtUp: () => hasCaughtUp,
    },
    closer,
  );
  /** The terms in which it asked while time went on. */
  const asked = async (): Promise<readonly number[]> => {
    await settled();
    terms.length = 0;
    for (let tries = 0; tries < TRIES; tries += 1) {
      clock.advance(LONG_MS);
      await settled();
    }
    return [...new Set(terms)];
  };
  /** What a server of another datacenter is answered: of dc3, where nothing else is said. */
  const asks = (method: string, payload: Uint8Array, from = FROM): Promise<Uint8Array> =>
    handlers.get(method)!({ from, method, payload, deadlineMs: 1_000, hops: 0 });
  return { federation, harness, answers, asked, asks, called, clock, clocks, silent, warnings };
}

/** Whatever needs no time has happened. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}

t.test(
  'subscriber: it asks in each reign by its term, and between reigns not at all',
  async (t) => {
    const { federation, asked } = await aServer(t);
    t.same(await asked(), [], 'before it reigns');
    federation.onReign(3);
    t.same(await asked(), [3]);
    federation.onReignOver();
    t.same(await asked(), [], 'another server asks now');
    federation.onReign(5);
    t.same(await asked(), [5], 'nothing of the older reign is left');
    federation.onReignOver();
    t.same(await asked(), []);
  },
);

t.test('subscriber: what it said of the clocks is forgotten with its reign', async (t) => {
  const { federation, clock, clocks } = await aServer(t);
  federation.onReign(3);
  clocks.noteEntry(clock.wallMs() + LONG_MS);
  t.equal(clocks.behindPrimaryMs, LONG_MS);
  federation.onReignOver();
  t.equal(clocks.behindPrimaryMs, 0, 'no alert stands for ever at a server that led once');
});

t.test('subscriber: a datacenter that becomes primary asks nobody any more', async (t) => {
  const { federation, harness, asked } = await aServer(t);
  federation.onReign(3);
  t.same(await asked(), [3]);
  const forced = { epoch: 2, promises: [], isForced: true, isFromFork: false } as const;
  await harness.one({ type: 'epoch.start', ...forced });
  t.ok(federation.isPrimary);
  t.same(await asked(), []);
});

t.test(
  'subscriber: a reign whose log it asks for has begun, whatever has come of it',
  async (t) => {
    const news = { epoch: 5, headSeq: 9, headAtMs: 0, nowMs: 0, majoritySeq: 0 };
    const answers = [
      { kind: 'tail', session: 1, federationId: '', news },
      { kind: 'snapshot-needed', federationId: '', epoch: 5 },
      { kind: 'diverged', epoch: 5, forkSeq: 0 },
    ] as const;
    for (const answer of answers) {
      const { answers: given, asks, clock, federation, harness } = await aServer(t);
      given.set(FEED_METHOD.hello, encodeHelloAnswer(answer));
      federation.onReign(3);
      await settled();
      given.clear();
      const { cursor } = harness.machine.replication()!;
      const promised = async (epoch: number, isTrial: boolean) => {
        const ask = encodeAsk({ epoch, candidate: 'dc3', cursor, isTrial });
        return decodePromise(await asks(PROMOTION_METHOD.promise, ask));
      };
      t.equal((await promised(9, true)).maxEpoch, 5, answer.kind);
      t.match(await promised(5, false), { isGranted: false, maxEpoch: 5 });
      federation.onReignOver();
      federation.onReign(4);
      clock.advance(LONG_MS);
      await settled();
      const later = await promised(9, true);
      t.equal(later.maxEpoch, 5, 'nor is it forgotten between two reigns of this server');
    }
  },
);

t.test('closed: who has promised to another takes no write, whatever its log names', async (t) => {
  const secondary = await aServer(t);
  t.equal(secondary.federation.closedBecause()?.code, 'not-primary');
  const { federation, harness } = await aServer(t, { ...PLAN, firstPrimary: 'dc2' });
  const datacenters = ['dc2', 'dc3'].map((name) => ({ name, isVoter: true, isWitness: false }));
  await harness.one({ type: 'datacenters.set', datacenters, majoritySeq: 0 });
  t.equal(federation.closedBecause(), undefined);
  const at = harness.machine.replication()!.cursor;
  await harness.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc3', at });
  t.equal(federation.primary().datacenter, 'dc2', 'the last one that its log names');
  const closed = { code: 'not-primary', message: /epoch 2 is promised/ };
  t.match(federation.closedBecause(), closed);
  let proposed = 0;
  const propose = async () => {
    proposed += 1;
  };
  const policy = { type: 'policy.set', presence: 'create', policy: aPolicy(1) } as const;
  await t.rejects(federation.admit(policy, propose), closed);
  t.equal(proposed, 0, 'what is tried until there is a primary does not fill its log');
  const token = aToken(1, { local: true });
  await federation.admit({ type: 'token.reap', accessorIds: [token.accessorId] }, propose);
  await federation.admit({ type: 'token.set', presence: 'create', token }, propose);
  t.equal(proposed, 2, 'what lives here alone is written');
});

t.test('acknowledgement: one time is given for all of the wait, whoever is primary', async (t) => {
  const clock = new FakeClock();
  const harness = await startedMachine();
  await harness.one({
    ...{ type: 'global-log.begin', datacenter: 'dc1', primary: 'dc1', isWitness: false },
  });
  const position = harness.machine.position();
  const limitMs = 30_000;
  const feed = {
    awaitAck: ({ timeoutMs }: { readonly timeoutMs: number }) => {
      return new Promise<'reign-over'>((resolve) => {
        clock.after(timeoutMs - 10_000, () => resolve('reign-over'));
      });
    },
    acknowledgedSeq: () => 0,
  };
  const startMs = clock.monotonicMs();
  const primary = { clock, machine: harness.machine, feed, isPrimary: () => false };
  let said = '';
  acknowledgedLevel(primary, position, { wanted: 'majority', limitMs }).catch((error: Error) => {
    said = error.message;
  });
  while (said === '') {
    await settled();
    if (said === '') clock.advance(70);
  }
  t.match(said, /whether the write at position .* stands is not known: the primary was moved/);
  const tookMs = clock.monotonicMs() - startMs;
  t.ok(tookMs >= limitMs && tookMs < limitMs + 200, `${tookMs} ms`);
});

t.test('snapshot: each piece that is asked for is a sign of life', async (t) => {
  const { federation, asks, clock } = await aServer(t, { ...PLAN, firstPrimary: 'dc2' });
  federation.onReign(1);
  const ownTerm = { term: 1, cursor: undefined, maxEpoch: 0, level: 1, isWitness: false };
  await asks(FEED_METHOD.hello, encodeHello({ federationId: '', clusterId: 'c3', ...ownTerm }));
  const state = () => federation.status().datacenters.find(({ name }) => name === 'dc3')?.state;
  t.equal(state(), 'snapshot');
  const { snapshotId } = decodeOffer(await asks(SNAPSHOT_METHOD.open, encodeOpen('')));
  for (let number = 0; number < 3; number += 1) {
    clock.advance(6_000);
    t.equal(state(), 'away');
    await asks(SNAPSHOT_METHOD.chunk, encodeWish({ snapshotId, number }));
    t.equal(state(), 'snapshot');
  }
});

/** A primary, dc2, of a federation of three, of which nobody has acknowledged anything. */
async function aPrimaryOfThree(owner: Pick<typeof t, 'teardown'>, hasCaughtUp = true) {
  const plan = { ...PLAN, firstPrimary: 'dc2' };
  const { called, ...server } = await aServer(owner, plan, hasCaughtUp);
  const { federation, harness, asks, clock } = server;
  const { machine } = harness;
  const listed = () => machine.replication()!.datacenters.map(({ name }) => name);
  for (const name of ['dc3', 'dc4']) {
    const datacenters = [...listed(), name].map((each) => ({ name: each, ...VOTER }));
    const majoritySeq = machine.position().seq;
    await harness.one({ type: 'datacenters.set', datacenters, majoritySeq });
  }
  federation.onReign(1);
  // Behind its start it waits for all that are listed, and then for nobody.
  clock.advance(2_500);
  /** It has everything. */
  const follows = async (datacenter: string, level = 9): Promise<void> => {
    const { cursor } = machine.replication()!;
    const hello = { federationId: '', clusterId: datacenter, term: 1, cursor, maxEpoch: 0 };
    const payload = encodeHello({ ...hello, level, isWitness: false });
    await asks(FEED_METHOD.hello, payload, { ...FROM, datacenter, clusterId: datacenter });
    await settled();
  };
  const position = machine.position();
  /** What a write of before anybody followed has come to. */
  const level = async (): Promise<string> => {
    const told = federation.acknowledged(position, 'majority', 1);
    clock.advance(1);
    return await told;
  };
  return { ...server, listed, follows, level, called };
}

const VOTER = { isVoter: true, isWitness: false };

t.test('majority: who is not listed yet makes none that the others know nothing of', async (t) => {
  const { listed, follows, level } = await aPrimaryOfThree(t);
  await follows('dc5');
  await follows('dc6');
  // The two others may elect one of them by the list that they know, and have nothing of it.
  t.equal(await level(), 'primary');
  t.same(listed(), ['dc2', 'dc3', 'dc4']);
  await follows('dc3');
  t.equal(await level(), 'majority');
  t.same(listed(), ['dc2', 'dc3', 'dc4', 'dc5']);
});

t.test(
  'lease: counts from when this server has led the primary, and from no earlier time',
  async (t) => {
    const plan = { ...PLAN, firstPrimary: 'dc2', primaryLeaseMs: 30_000 };
    const { federation, harness, clock } = await aServer(t, plan);
    const names = ['dc2', 'dc3', 'dc4'];
    for (const count of [2, 3]) {
      const datacenters = names
        .slice(0, count)
        .map((name) => ({ name, isVoter: true, isWitness: false }));
      const majoritySeq = harness.machine.position().seq;
      await harness.one({ type: 'datacenters.set', datacenters, majoritySeq });
    }
    t.equal(harness.machine.replication()?.datacenters.length, 3);
    clock.advance(60_000);
    federation.onReign(3);
    await settled();
    clock.advance(25_000);
    t.equal(federation.closedBecause(), undefined);
    clock.advance(5_001);
    t.match(
      federation.closedBecause()?.message,
      /has not heard a majority of the 3 datacenters for 30s/,
    );
  },
);

t.test('gone back: what it has lost counts behind its promise to itself, too', async (t) => {
  const { asks, federation, harness } = await aPrimaryOfThree(t);
  const federationId = 'fed';
  // The same one, before its disks were put back.
  const { harness: before } = await aPrimaryOfThree(t);
  const { machine } = before;
  for (const each of [before, harness]) await each.one({ type: 'federation.adopt', federationId });
  const from = machine.cursor()!;
  const change = { type: 'policy.set', presence: 'create', policy: aPolicy(1) } as const;
  await before.one(change);
  const lost = machine.cursor()!;
  const entries = (await machine.globalEntries(from.seq, 1 << 20))!;
  const callerOf = (datacenter: string): RpcCaller => ({
    ...{ ...FROM, federationId, datacenter, clusterId: datacenter },
  });
  const hello = { federationId, clusterId: 'dc3', term: 1, cursor: lost, maxEpoch: 1, level: 9 };
  await asks(FEED_METHOD.hello, encodeHello({ ...hello, isWitness: false }), callerOf('dc3'));
  const promised = async (at: GlobalCursor): Promise<boolean | string> => {
    const ask = encodeAsk({ epoch: 9, candidate: 'dc4', cursor: at, isTrial: true });
    return asks(PROMOTION_METHOD.promise, ask, callerOf('dc4')).then(
      (answer) => decodePromise(answer).isGranted,
      (error: Error) => error.message,
    );
  };
  const says =
    /^dc2 has lost what dc3 has of its reigns, .*: start dc3, or, if it is gone for good, `/;
  const closed = () =>
    federation.promotion.elect().then(undefined, (error: Error) => error.message);
  const removed = (name: string) => {
    const remove = { type: 'datacenter.remove', name, majoritySeq: 0, isForced: true } as const;
    return federation.admit(remove, () => Promise.resolve('let through'));
  };
  await t.rejects(removed('dc4'), /dc3 has 1\.\d+ of this reign/, 'it says nothing of that');
  t.equal(await removed('dc3'), 'let through');
  t.match(await promised(from), new RegExp(`${says.source}.*datacenter remove dc3 --force`));
  t.equal(await promised(lost), true);
  await harness.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc2', at: from });
  t.equal(federation.isPrimary, false);
  t.match(await promised(from), new RegExp(`${says.source}.*promote dc2 --force …`));
  t.equal(await promised(lost), true);
  t.match(await closed(), /dc3 has what dc2 wrote and has lost/);
  const admitted = () => federation.admit(change, () => Promise.resolve('let through'));
  await t.rejects(admitted(), /dc3 has 1\.\d+ of this reign/);
  await harness.one({ type: 'global-log.apply', epoch: 2, from, entries, to: lost });
  t.match(await closed(), /there is no majority/, 'it has that');
  await t.rejects(admitted(), /dc2 is not the primary \(epoch 2 is promised/);
});

t.test('gone back: it promises nothing before those who are there have told', async (t) => {
  const { asks, clock, federation, harness } = await aPrimaryOfThree(t, false);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  federation.onReignOver();
  federation.onReign(2);
  const cursor = harness.machine.cursor()!;
  const from = { ...FROM, federationId };
  const ask = encodeAsk({ epoch: 9, candidate: 'dc4', cursor, isTrial: true });
  const candidate = { ...from, datacenter: 'dc4', clusterId: 'dc4' };
  const asked = asks(PROMOTION_METHOD.promise, ask, candidate).then(
    (answer) => decodePromise(answer),
    (error: Error) => error.message,
  );
  await settled();
  const lost = { ...cursor, seq: cursor.seq + 3 };
  const hello = { federationId, clusterId: 'c3', term: 1, cursor: lost, maxEpoch: 1, level: 9 };
  await asks(FEED_METHOD.hello, encodeHello({ ...hello, isWitness: false }), from);
  clock.advance(2_500);
  t.match(await asked, /^dc2 has lost what dc3 has of its reigns/);
});

t.test('gone back: what one server tells counts while another one does not answer', async (t) => {
  const { answers, asks, clock, federation, harness, silent } = await aPrimaryOfThree(t, false);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  const cursor = harness.machine.cursor()!;
  const addresses = [3, 4].map((port) => ({ host: '127.0.0.1', port }));
  silent.add(4);
  const told = { datacenter: 'dc3', clusterId: 'c3', federationId, primary: 'dc2', epoch: 1 };
  const record = { ...told, addresses, term: 1, count: 1, level: 9, ageMs: 0 };
  await asks(DIRECTORY_METHOD, encodeRecords([record]), { ...FROM, federationId });
  const lost = { ...cursor, seq: cursor.seq + 3 };
  answers.set(
    PROMOTION_METHOD.promise,
    encodePromise({ isGranted: false, cursor: lost, maxEpoch: 1 }),
  );
  federation.onReignOver();
  federation.onReign(2);
  await settled();
  const says = /dc3 has 1\.\d+ of this reign, and dc2, which wrote that/;
  t.match(federation.closedBecause()?.message, says);
  clock.advance(2_500);
  await settled();
  t.match(federation.closedBecause()?.message, says, 'also when it waits for nobody any more');
});

t.test('gone back: nobody is waited for any longer who has told that it has no more', async (t) => {
  const { answers, asks, federation, follows, harness } = await aPrimaryOfThree(t, false);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  const told = { datacenter: 'dc3', clusterId: 'c3', federationId, primary: 'dc2', epoch: 1 };
  const addresses = [{ host: '127.0.0.1', port: 3 }];
  const record = { ...told, addresses, term: 1, count: 1, level: 9, ageMs: 0 };
  await asks(DIRECTORY_METHOD, encodeRecords([record]), { ...FROM, federationId });
  const cursor = harness.machine.cursor()!;
  const answer = encodePromise({ isGranted: false, cursor, maxEpoch: 1 });
  answers.set(PROMOTION_METHOD.promise, answer);
  federation.onReignOver();
  federation.onReign(2);
  await settled();
  t.match(federation.closedBecause()?.message, /waits a moment to hear dc4$/);
  await follows('dc4');
  t.equal(federation.closedBecause(), undefined);
});

t.test('gone back: behind its promise to itself another leader hears of that anew', async (t) => {
  const { asks, clock, federation, harness, warnings } = await aPrimaryOfThree(t, false);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  const at = harness.machine.cursor()!;
  await harness.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc2', at });
  federation.onReignOver();
  federation.onReign(2);
  /** Why it begins nothing by itself, a second or two later. */
  const triedAgain = async (): Promise<string> => {
    warnings.length = 0;
    clock.advance(2_000);
    await settled();
    return warnings.join();
  };
  t.match(await triedAgain(), /dc2 has just begun, and waits a moment to hear dc3, dc4/);
  t.match(await triedAgain(), /there is no majority/, 'it has waited for that');
  const from = { ...FROM, federationId };
  const told = async (cursor: GlobalCursor): Promise<void> => {
    const hello = { federationId, clusterId: 'c3', term: 1, cursor, maxEpoch: 2, level: 9 };
    await asks(FEED_METHOD.hello, encodeHello({ ...hello, isWitness: false }), from);
  };
  const elected = () =>
    federation.promotion.elect().then(undefined, (error: Error) => error.message);
  await told({ ...at, seq: at.seq + 3 });
  t.match(await triedAgain(), /dc3 has 1\.\d+ of this reign, and dc2, which wrote that/);
  t.match(await elected(), /dc3 has what dc2 wrote and has lost/);
  await told({ ...at, epoch: 2 });
  t.match(await triedAgain(), /dc3 has 2\.\d+: that reign has begun/);
  await told(at);
  t.match(await triedAgain(), /there is no majority/);
});

t.test('outrun: whoever has heard all waits for none behind its promise to itself', async (t) => {
  const { clock, federation, follows, harness, warnings } = await aPrimaryOfThree(t, false);
  federation.onReignOver();
  federation.onReign(2);
  for (const each of ['dc3', 'dc4']) await follows(each);
  t.equal(federation.closedBecause(), undefined);
  const at = harness.machine.cursor()!;
  await harness.one({ type: 'epoch.promise', epoch: 2, candidate: 'dc2', at });
  clock.advance(2_000);
  await settled();
  t.match(warnings.join(), /there is no majority/);
});

t.test('outrun: by whoever has something of a reign, nobody begins beside that', async (t) => {
  const { asks, federation, harness, warnings } = await aPrimaryOfThree(t);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  const at = harness.machine.cursor()!;
  const from = { ...FROM, federationId };
  const saysWhy = async (cursor: GlobalCursor): Promise<string> => {
    warnings.length = 0;
    const hello = { federationId, clusterId: 'c3', term: 1, cursor, maxEpoch: 2, level: 9 };
    await asks(FEED_METHOD.hello, encodeHello({ ...hello, isWitness: false }), from);
    await settled();
    return warnings.join();
  };
  t.match(await saysWhy(at), /there is no majority/, 'it has promised one, and no more');
  t.match(await saysWhy({ ...at, epoch: 2 }), /dc3 has 2\.\d+: that reign has begun/);
  const begun = /dc3 has 2\.\d+: that reign has begun.* promote dc3 .* promote dc2 --election`/;
  t.match(federation.closedBecause()?.message, begun, 'what it wrote would be set apart');
  const change = { type: 'policy.set', presence: 'create', policy: aPolicy(1) } as const;
  await t.rejects(federation.admit(change, settled), begun);
  t.ok(federation.closedBecause() instanceof LeaderAway, 'it is tried again');
  await t.rejects(federation.promotion.handOver('dc4'), begun);
  t.equal(federation.promotion.nextEpoch(), 3);
  await saysWhy(at);
  t.equal(federation.closedBecause(), undefined, 'it has lost that');
  await saysWhy({ ...at, epoch: 2 });
  await harness.one({ type: 'epoch.promise', epoch: 3, candidate: 'dc3', at });
  t.equal(federation.closedBecause()?.code, 'not-primary', 'which leads to who is');
  await t.rejects(federation.admit(change, settled), { code: 'not-primary' });
});

t.test('outrun: nobody begins by itself before it has heard the others', async (t) => {
  for (const hasSeenWrites of [false, true]) {
    const before = await aPrimaryOfThree(t, hasSeenWrites);
    const { asks, clock, federation, harness, warnings } = before;
    federation.onReignOver();
    federation.onReign(2);
    const federationId = 'fed';
    await harness.one({ type: 'federation.adopt', federationId });
    const cursor = harness.machine.cursor()!;
    const tells = async (at: GlobalCursor): Promise<void> => {
      const told = { federationId, clusterId: 'c3', term: 1, cursor: at, maxEpoch: 2, level: 9 };
      const from = { ...FROM, federationId };
      await asks(FEED_METHOD.hello, encodeHello({ ...told, isWitness: false }), from);
      await settled();
    };
    await tells(cursor);
    const says = /dc2 has just begun, and waits a moment to hear dc3, dc4/;
    t.match(warnings.join(), says);
    const removed = (name: string) => {
      const remove = { type: 'datacenter.remove', name, majoritySeq: 0, isForced: true } as const;
      return federation.admit(remove, () => harness.one(remove));
    };
    const what = 'nor does an operator who takes others for lost';
    if (!hasSeenWrites) await t.rejects(removed('dc4'), says, what);
    const handed = federation.promotion.handOver('dc4').catch((error: Error) => error.message);
    await settled();
    await tells({ ...cursor, epoch: 2 });
    clock.advance(2_500);
    t.match(await handed, /dc3 has 2\.\d+: that reign has begun/, 'it is not given away, either');
    await t.rejects(
      removed('dc4'),
      /dc3 has 2\.\d+: that reign has begun/,
      'it says nothing of that',
    );
    t.match(await removed('dc3'), { kind: 'applied' });
    t.equal(federation.promotion.nextEpoch(), 3, 'its number is not taken again');
  }
});

t.test('outrun: asks all who is said to have begun before it begins by itself', async (t) => {
  const { asks, called, harness } = await aPrimaryOfThree(t);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  const told = { datacenter: 'dc3', clusterId: 'c3', federationId, primary: 'dc2', epoch: 1 };
  const record = { ...told, addresses: [OWN], term: 1, count: 1, level: 9, ageMs: 0 };
  const from = { ...FROM, federationId };
  await asks(DIRECTORY_METHOD, encodeRecords([record]), from);
  const hello = { federationId, clusterId: 'c3', term: 1, cursor: undefined, maxEpoch: 2 };
  await asks(FEED_METHOD.hello, encodeHello({ ...hello, level: 9, isWitness: false }), from);
  await settled();
  t.same([...new Set(called)], [DIRECTORY_METHOD, PROMOTION_METHOD.promise]);
});

t.test('outrun: a hand-over passes over no reign that is said to have begun', async (t) => {
  const { asks, federation, harness } = await aPrimaryOfThree(t);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  const later = { datacenter: 'dc4', clusterId: 'c4', federationId };
  const told = { ...later, addresses: [], primary: 'dc4', epoch: 5, term: 1, count: 1, level: 9 };
  await asks(DIRECTORY_METHOD, encodeRecords([{ ...told, ageMs: 0 }]), { ...FROM, ...later });
  const refused =
    /dc4 is said to have begun epoch 5; .* `conclave operator promote dc2 --election`/;
  await t.rejects(federation.promotion.handOver('dc3'), refused);
  const own = { epoch: 5, promises: [], isForced: true, isFromFork: false } as const;
  await harness.one({ type: 'epoch.start', ...own });
  const rivalled = /dc4 is said to have begun epoch 5, as dc2 has.* promote dc2 --election`/;
  await t.rejects(federation.promotion.handOver('dc3'), rivalled);
});

t.test('outrun: nor over one of which it hears while it waits for its successor', async (t) => {
  const { asks, clock, federation, follows, harness } = await aPrimaryOfThree(t);
  const federationId = 'fed';
  await harness.one({ type: 'federation.adopt', federationId });
  const level = harness.machine.usesLevel;
  const tell = async (datacenter: string, epoch: number, primary: string): Promise<void> => {
    const own = { datacenter, clusterId: datacenter, federationId };
    const written = { term: 1, count: epoch, level, ageMs: 0 };
    const record = { ...own, ...written, addresses: [], primary, epoch };
    await asks(DIRECTORY_METHOD, encodeRecords([record]), { ...FROM, ...own });
  };
  for (const each of ['dc3', 'dc4']) await tell(each, 1, 'dc2');
  const handed = federation.promotion.handOver('dc3');
  const isRefused = t.rejects(handed, /dc4 is said to have begun epoch 5; /);
  await settled();
  await tell('dc4', 5, 'dc4');
  await follows('dc3');
  clock.advance(20);
  await isRefused;
});

t.test('enlisting: who is refused the global log has no vote on account of asking', async (t) => {
  const { listed, follows } = await aPrimaryOfThree(t);
  await follows('dc3');
  await t.rejects(follows('dc5', 0), /read the log up to feature level 0/);
  await settled();
  t.same(listed(), ['dc2', 'dc3', 'dc4']);
  await follows('dc5');
  t.same(listed(), ['dc2', 'dc3', 'dc4', 'dc5']);
});

t.test('enlisting: nor on account of asking a server that did not lead', async (t) => {
  const { federation, listed, follows } = await aPrimaryOfThree(t);
  federation.onReignOver();
  // The leader, to whom it is sent on, refuses it.
  await follows('dc5', 0);
  federation.onReign(2);
  await follows('dc3');
  await follows('dc4');
  t.same(listed(), ['dc2', 'dc3', 'dc4']);
  await follows('dc5');
  t.same(listed(), ['dc2', 'dc3', 'dc4', 'dc5']);
});

t.test('enlisting: nor on account of having followed in an earlier reign', async (t) => {
  const { federation, listed, follows } = await aPrimaryOfThree(t);
  await follows('dc5');
  t.same(listed(), ['dc2', 'dc3', 'dc4'], 'a majority has not the last change');
  federation.onReignOver();
  federation.onReign(2);
  await follows('dc3');
  await follows('dc4');
  t.same(listed(), ['dc2', 'dc3', 'dc4'], 'it may be gone for good');
  await follows('dc5');
  t.same(listed(), ['dc2', 'dc3', 'dc4', 'dc5']);
});

t.test('readers: nobody waits for a datacenter of no federation that goes on alone', async (t) => {
  const { asks, federation, harness } = await aPrimaryOfThree(t);
  await harness.one({ type: 'federation.adopt', federationId: 'fed' });
  const alone = { datacenter: 'dc9', clusterId: 'nine', federationId: '' };
  const told = { ...alone, addresses: [], primary: 'dc9', epoch: 9, term: 1, count: 1, ageMs: 0 };
  const names = async (record: DirectoryRecord): Promise<readonly string[]> => {
    await asks(DIRECTORY_METHOD, encodeRecords([record]), { ...FROM, ...alone });
    return federation.readers().map(({ name }) => name);
  };
  t.same(await names({ ...told, level: 1 }), ['dc3', 'dc4']);
  t.ok(federation.datacenters().includes('dc9'), 'it is known, so that it can be removed');
  t.same(await names({ ...told, level: 1, primary: 'dc2', count: 2 }), ['dc3', 'dc4', 'dc9']);
});

t.test('shown: who is there and refused for its level is not away', async (t) => {
  const { follows, federation, clock } = await aPrimaryOfThree(t);
  const shown = () => federation.status().datacenters.find(({ name }) => name === 'dc4')!;
  await t.rejects(follows('dc4', 0), /read the log up to feature level 0/);
  clock.advance(10_000);
  t.equal(shown().state, 'stopped');
  t.match(shown().lastError, /^the servers of dc4 read the log up to feature level 0/);
  clock.advance(60_000);
  t.equal(shown().state, 'away', 'it does not ask any more');
  await t.rejects(follows('dc4', 0), /read the log up to feature level 0/);
  await follows('dc4');
  t.match(shown(), { state: 'live', lastError: '' });
});
