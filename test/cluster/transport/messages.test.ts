// Messages over links: their order, what is lost, and what is bounded.

import t from 'tap';
import { decodeFrame } from '../../../cluster/wire/frame-codec.ts';
import { aHeartbeat, anAppend, Rig } from './rig.ts';

t.test('messages: those of one turn to one node leave in one frame, in order', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  let frameCount = 0;
  rig.net.onFrame = (frame) => {
    if (decodeFrame(frame).kind === 'messages') frameCount += 1;
  };
  for (let count = 1; count <= 200; count += 1) one.transport.send(aHeartbeat(one, two, count));
  await rig.run(5);
  test.equal(frameCount, 1);
  test.same(
    two.messages.map((message) => message.type === 'heartbeat' && message.readCount),
    Array.from({ length: 200 }, (_, place) => place + 1),
  );
});

t.test(
  'messages: a frame of them stays within its size, and one that is larger goes alone',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair({ limits: { messagesFrameBytes: 10_000 } });
    const sizes: number[] = [];
    rig.net.onFrame = (frame) => {
      if (decodeFrame(frame).kind === 'messages') sizes.push(frame.length);
    };
    for (let index = 0; index < 10; index += 1) {
      one.transport.send(
        anAppend(one, two, { prevIndex: index, bytes: index === 4 ? 50_000 : 3_000 }),
      );
    }
    await rig.run(5);
    test.equal(two.messages.length, 10);
    test.equal(sizes.length, 5);
    test.same(
      sizes.map((size) => Math.round(size / 1_000)),
      [9, 3, 50, 9, 6],
    );
  },
);

t.test('messages: small ones overtake large ones, appends keep their order', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  rig.net.bytesPerMs = 1_000;
  one.transport.send(anAppend(one, two, { prevIndex: 0, bytes: 500_000 }));
  one.transport.send({ ...anAppend(one, two, { prevIndex: 1, bytes: 0 }), entries: [] } as never);
  one.transport.send(aHeartbeat(one, two));
  await rig.run(20);
  test.match(
    two.messages.map(({ type }) => type),
    ['heartbeat'],
  );
  await rig.run(600);
  test.match(
    two.messages.map(({ type }) => type),
    ['heartbeat', 'append', 'append'],
  );
  test.match(two.messages[2], { entries: { length: 0 } });
});

t.test('messages: what a full lane cannot take is lost, and memory stays bounded', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair({ limits: { bulkLaneMaxBytes: 100_000 } });
  rig.net.bytesPerMs = 100;
  for (let index = 0; index < 50; index += 1) {
    one.transport.send(anAppend(one, two, { prevIndex: index, bytes: 10_000 }));
    if (index % 10 === 0) await rig.tick();
  }
  test.equal(one.warnings.filter((line) => /what comes now is lost/.test(line)).length, 1);
  one.transport.send(aHeartbeat(one, two));
  await rig.run(50);
  test.match(two.messages, [{ type: 'heartbeat' }], 'the other lane is free');
  await rig.run(2_000);
  test.equal(two.messages.length, 1 + 9);
  one.transport.send(anAppend(one, two, { prevIndex: 50, bytes: 10_000 }));
  await rig.run(200);
  test.match(two.messages.at(-1), { type: 'append', prevIndex: 50 });
});

t.test('link: a large frame on a slow way is no silence', async (test) => {
  const rig = new Rig();
  const [one, two] = await rig.pair();
  rig.net.bytesPerMs = 20;
  one.transport.send(anAppend(one, two, { prevIndex: 0, bytes: 200_000 }));
  await rig.run(11_000);
  test.match(two.messages, [{ type: 'append' }]);
  test.same([one.closedLinks, two.closedLinks], [[], []]);
  test.notMatch(JSON.stringify(two.log), /ended/);
});

t.test(
  'messages: one that claims to be of another node ends its connection and nothing else',
  async (test) => {
    const rig = new Rig();
    const [one, two] = await rig.pair();
    one.transport.send({ ...aHeartbeat(one, two), from: 3 });
    await rig.run(5);
    test.same(two.messages, []);
    test.match(
      two.log.find(({ text }) => text === 'a lane of a link ended'),
      {
        fields: {
          lane: 'control',
          why: /a message heartbeat from 3 to 2 came on the link from 1 to 2/,
        },
      },
    );
    test.match(
      one.log.find(({ text }) => text === 'a lane of a link ended'),
      { fields: { lane: 'control', why: /node two closed it: .* from 3 to 2/ } },
    );
    test.ok(await rig.until(() => one.isLinkedWith(two) && two.isLinkedWith(one), 100));
  },
);
