// Calls over links: what they come to, their deadlines and hops, and whose answer they get.

import t from 'tap';
import { RpcRefusal } from '../../../cluster/transport/calls/rpc-error.ts';
import { uuidNumbered } from '../../support/fake-random.ts';
import { aHello, Impostor } from './impostor.ts';
import { aCall, addressOf, aHeartbeat, CLUSTER, introduce, Rig } from './rig.ts';

t.test('call: its answer goes to the life that asked, and to no other', async (test) => {
  for (const size of [6, 100_000]) {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    const held: ((payload: Uint8Array) => void)[] = [];
    one.serve = () => new Promise((resolve) => held.push(resolve));
    const before = rig.outcome(two.transport.call(1, aCall()));
    await rig.until(() => held.length === 1);
    // It dies unnoticed, and its next life counts its calls from the beginning, too.
    rig.net.cut('two', 'one');
    rig.net.cut('one', 'two');
    const again = await rig.open('again', { node: 2, id: uuidNumbered(2) });
    introduce(one, again);
    await rig.until(() => again.isLinkedWith(one));
    const after = rig.outcome(again.transport.call(1, aCall()));
    await rig.until(() => held.length === 2);
    held[0]!(Buffer.alloc(size, 'secret'));
    await rig.run(20);
    held[1]!(Buffer.from('yours'));
    test.equal(await after, 'answer yours');
    test.match(await before, /^(lost|timeout): /);
  }
});

t.test(
  'call: an answer whose connection broke is dropped, though there is a new one',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    let answer: (payload: Uint8Array) => void = () => undefined;
    one.serve = () =>
      new Promise((resolve) => {
        answer = resolve;
      });
    const lost = rig.outcome(two.transport.call(1, aCall()));
    await rig.run(10);
    rig.net.breakAll('one', 'two');
    test.match(await lost, /^lost: /);
    await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one));
    await rig.run(20);
    let framesAfter = 0;
    rig.net.onFrame = () => {
      framesAfter += 1;
    };
    answer(Buffer.from('late'));
    await rig.run(20);
    test.equal(framesAfter, 0);
  },
);

t.test('call: is answered from either side, small and large, many at once', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  two.serve = async ({ payload }) => {
    await Promise.resolve();
    return Buffer.from(`got ${payload.length}`);
  };
  test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer got 5');
  test.match(two.requests[0], {
    from: { node: 1, name: 'one', version: '1.0.0', clusterId: CLUSTER, remote: /^one:\d+$/ },
    method: 'test.echo',
    hops: 0,
    deadlineMs: 1_000,
  });
  const large = one.transport.call(2, aCall({ payload: new Uint8Array(1_000_000) }));
  test.equal(await rig.outcome(large), 'answer got 1000000');
  const back: Uint8Array[] = [];
  const payloads = Array.from({ length: 300 }, (_, place) => Buffer.from(`n${place}`));
  const all = Promise.all(payloads.map((payload) => two.transport.call(1, aCall({ payload }))));
  void all.then((answers) => back.push(...answers));
  await rig.until(() => back.length > 0);
  test.same(
    back.map((each) => Buffer.from(each).toString()),
    payloads.map(String),
  );
});

t.test('call: answers find their calls in whatever order they come', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  const held: (() => void)[] = [];
  two.serve = ({ payload }) => new Promise((resolve) => held.unshift(() => resolve(payload)));
  const outcomes = ['a', 'b', 'c'].map((each) =>
    rig.outcome(one.transport.call(2, aCall({ payload: Buffer.from(each) }))),
  );
  await rig.until(() => held.length === 3);
  for (const answer of held) answer();
  test.same(await Promise.all(outcomes), ['answer a', 'answer b', 'answer c']);
});

t.test('call: a large one does not hold up a small one', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  rig.net.bytesPerMs = 1_000;
  const large = rig.outcome(
    one.transport.call(2, aCall({ payload: new Uint8Array(300_000), deadlineMs: 9_000 })),
  );
  two.serve = async ({ payload }) => Buffer.from(String(payload.length));
  const startMs = rig.clock.monotonicMs();
  test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer 5');
  test.ok(rig.clock.monotonicMs() - startMs < 50);
  test.equal(await large, 'answer 300000');
});

t.test('call: comes to what its error says', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair({
    limits: { callsMax: 2, payloadMaxBytes: 1_000, smallCallBytes: 500 },
  });
  const outcome = (given: Parameters<typeof aCall>[0], to = 2): Promise<string> =>
    rig.outcome(one.transport.call(to, aCall(given)));
  test.match(await outcome({ hops: 4 }, 5), /too-many-hops: test.echo was handed on 4 times/);
  test.match(
    await outcome({ payload: new Uint8Array(1_001) }),
    /too-large: test.echo carries 1001 bytes, at most 1000/,
  );
  test.match(await outcome({}, 5), /unreachable: test.echo was not sent: node 5 is no peer/);
  test.same(two.requests, []);

  two.serve = () => Promise.reject(new RpcRefusal('not-now', 'come back later'));
  const refused = one.transport.call(2, aCall()).catch((error: unknown) => error);
  await rig.run(10);
  test.match(await refused, {
    name: 'RpcError',
    code: 'refused',
    message: 'come back later',
    refusal: { code: 'not-now', says: 'come back later' },
  });

  two.serve = () => Promise.reject(new Error('a secret of that node'));
  test.match(await outcome({}), /lost: .* test.echo failed over there, see the log of that node/);
  test.match(two.log.at(-1), {
    level: 'error',
    text: 'a call of another node failed here',
    fields: { method: 'test.echo', cause: { message: 'a secret of that node' } },
  });

  two.serve = async () => new Uint8Array(1_001);
  test.match(await outcome({}), /lost: .*it has 1001 bytes, at most 1000/);

  two.serve = () => new Promise(() => undefined);
  const late = 'timeout: no answer to test.echo within 70 ms';
  for (const deadlineMs of [70, 69.25]) test.equal(await outcome({ deadlineMs }), late);
});

t.test(
  'call: the calls under way are bounded, where they are made and where they are carried out',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1, limits: { callsMax: 3 } });
    const two = await rig.open('two', { node: 2, limits: { callsMax: 2 } });
    introduce(one, two);
    await rig.until(() => one.isLinkedWith(two));
    let answer: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      answer = resolve;
    });
    two.serve = async ({ payload }) => {
      await held;
      return payload;
    };
    const calls = [1, 2, 3, 4].map(() => rig.outcome(one.transport.call(2, aCall())));
    await rig.run(20);
    test.match(await calls[3], /unreachable: test.echo was not sent: 3 calls wait for answers/);
    test.match(await calls[2], /refused: 2 calls are under way already/);
    answer();
    test.same(await Promise.all([calls[0], calls[1]]), ['answer hello', 'answer hello']);
    test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer hello');
  },
);

t.test('call: the hop limit holds where a call arrives, too', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1, limits: { hopsMax: 10 } });
  const two = await rig.open('two', { node: 2 });
  introduce(one, two);
  await rig.until(() => one.isLinkedWith(two));
  test.match(
    await rig.outcome(one.transport.call(2, aCall({ hops: 4 }))),
    /too-many-hops: test.echo was handed on 4 times, at most 3/,
  );
  test.equal(await rig.outcome(one.transport.call(2, aCall({ hops: 3 }))), 'answer hello');
});

t.test(
  'call: is lost when its link breaks, and an answer that comes too late is dropped',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    const answers: (() => void)[] = [];
    two.serve = ({ payload }) => new Promise((resolve) => answers.push(() => resolve(payload)));
    const broken = rig.outcome(one.transport.call(2, aCall({ deadlineMs: 60_000 })));
    const late = rig.outcome(one.transport.call(2, aCall({ deadlineMs: 30 })));
    await rig.run(50);
    test.match(await late, /timeout/);
    rig.net.breakAll('one', 'two');
    test.match(await broken, /lost: the answer to test.echo is lost: the network broke it/);
    test.match(
      await rig.outcome(one.transport.call(2, aCall())),
      /unreachable: test.echo was not sent, node two is not linked: the network broke it/,
    );
    for (const answer of answers) answer();
    await rig.until(() => one.isLinkedWith(two));
    two.serve = async ({ payload }) => payload;
    test.equal(await rig.outcome(one.transport.call(2, aCall())), 'answer hello');
  },
);

t.test('call: the time that is left travels with it, not the time of day', async (test) => {
  const rig = new Rig();
  const one = await rig.open('one', { node: 1 });
  const two = await rig.open('two', { node: 2 });
  rig.net.delayMs = 10;
  const asked = one.transport.call(addressOf(two), aCall({ deadlineMs: 500 }));
  test.equal(await rig.outcome(asked), 'answer hello');
  const { deadlineMs } = two.requests[0]!;
  test.ok(deadlineMs >= 400 && deadlineMs <= 460, `${deadlineMs} of 500 ms were left`);
});

t.test(
  'call: a node that only asks can do nothing else, and there are only so many',
  async (test) => {
    const rig = new Rig();
    const one = await rig.open('one', { node: 1, clusterKey: undefined, limits: { guestsMax: 2 } });
    const guests: Impostor[] = [];
    for (const node of [71, 72, 73]) {
      const guest = await Impostor.dial(rig, one);
      guest.send(aHello({ lane: 'call', node, hasKey: false }));
      guest.send({ kind: 'proof', mac: new Uint8Array(0) });
      await rig.run(10);
      guests.push(guest);
    }
    test.match(guests[2]!.frames.at(-1), {
      kind: 'refused',
      code: 'busy',
      why: 'too many nodes are asking',
    });
    guests[0]!.send({
      kind: 'messages',
      messages: [aHeartbeat({ ...one, node: 71 } as never, one)],
    });
    guests[1]!.send({
      kind: 'call',
      id: 5,
      method: 'm',
      hops: 0,
      remainingMs: 9,
      payload: Buffer.from('x'),
    });
    await rig.run(10);
    test.match(guests[0]!.refusedWhy, /a frame messages came where calls are due/);
    test.match(one.warnings.at(-1), /because of what came over it: .* a frame messages came where/);
    test.same(one.messages, []);
    test.match(guests[1]!.frames.at(-1), { kind: 'answer', id: 5 });
  },
);

t.test('close: lets calls be answered, takes no new ones, and tells the others', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  let answer: () => void = () => undefined;
  two.serve = ({ payload }) =>
    new Promise((resolve) => {
      answer = () => resolve(payload);
    });
  const before = rig.outcome(one.transport.call(2, aCall()));
  await rig.run(10);
  const closing = two.transport.close();
  const during = await rig.outcome(one.transport.call(2, aCall()));
  test.match(during, /refused: the node is closing/);
  test.match(
    await rig.outcome(two.transport.call(1, aCall())),
    /unreachable: .* the node is closing/,
  );
  answer();
  test.equal(await before, 'answer hello');
  await rig.run(5);
  await closing;
  await rig.run(10);
  test.same([one.closedLinks, two.closedLinks], [[2], []]);
  test.match(one.peer(two)!.lastErrorText, /closing|cannot be reached/);
  test.equal(two.transport.close(), closing, 'once');
  await rig.run(3_000);
  test.equal(rig.net.countBetween('one', 'two'), 0);
});
