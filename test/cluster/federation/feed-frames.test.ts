// What datacenters say to each other over the feed, as bytes: those of the first release, there and back,
// and what is no such thing. Never edit the bytes: another datacenter runs the release that wrote them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  decodeEntryRun,
  decodeHello,
  encodeHello,
  FEED_METHOD,
} from '../../../cluster/federation/feed/feed-frames.ts';
import { FEED_REFUSAL } from '../../../cluster/federation/feed/feed-session.ts';
import {
  SNAPSHOT_METHOD,
  SNAPSHOT_REFUSAL,
} from '../../../cluster/federation/snapshot/snapshot-frames.ts';
import { packed } from '../../../cluster/wire/call-payload.ts';
import { WireDamage } from '../../../cluster/wire/wire-damage.ts';
import { streamOf } from '../../support/simulated/simulated-world.ts';
import { SAMPLES } from './feed-samples.ts';

const SEED = Number(process.env.CONCLAVE_SEED ?? 4_018);

/** Format 1. */
const GOLDEN: Readonly<Record<string, string>> = {
  hello:
    '9701a3666564a26332099303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f200402',
  'hello for a snapshot': '9701a3666564a2633209c00402',
  'hello of a witness':
    '9801a3666564a26332099303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f200402c3',
  tail: '93010193cb4200000000000000a36665649503ce0001117acb4279b76daa800000cb4279b76daabe7000ce0001116f',
  'snapshot-needed': '93010292a366656403',
  diverged: '93010392030c',
  redirect: '930104929292a831302e302e302e31cd206c92a2703201a87032206c65616473',
  fenced: '9301059105',
  pull: '9301cb420000000000000007',
  frame: '9401079503ce0001117acb4279b76daa800000cb4279b76daabe7000ce0001116fc404090a0b0c',
  entries:
    '93019303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f209803ce00011171c42028292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f4041424344454647c40350515204ce00011173c4205a5b5c5d5e5f606162636465666768696a6b6c6d6e6f70717273747576777879c400',
  ack: '9301cb42000000000000009303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20',
  report:
    '9501cb42000000000000009303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20c420030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212292af746865206c696e6520697320637574cd05dc',
  'report of nothing':
    '9501019303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20c0c0',
  'answer to a report':
    '9501c42005060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2021222324ce00011170ce0001117a930c00cd0384',
  'wish for a snapshot': '9201a3666564',
  offer:
    '9501a3732d31a3666564039303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20',
  'wish for a chunk': '9301a3732d31cd012c',
  chunk:
    '9501cd012cc2c4200708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526c403010203',
};

/** A hello of the first layout, which said nothing of levels. */
const GOLDEN_FIRST_HELLO =
  '9601a3666564a26332099303ce00011170c4200102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f2004';

function bytesOfHex(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex, 'hex'));
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

/** Byte strings as text, so that views and copies compare alike. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${hexOf(value)}`;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

t.test('feed frames: have the bytes of the first release, both ways', async (test) => {
  test.same(Object.keys(GOLDEN), Object.keys(SAMPLES));
  for (const [name, { value, encode, decode }] of Object.entries(SAMPLES)) {
    test.equal(hexOf(encode(value)), GOLDEN[name], name);
    test.same(plain(decode(bytesOfHex(GOLDEN[name]!))), plain(value), name);
  }
});

t.test('feed frames: a hello that says nothing of levels is of the first one', async (test) => {
  const { hello } = SAMPLES;
  const first = { ...(hello!.value as object), level: 1 };
  test.same(plain(hello!.decode(bytesOfHex(GOLDEN_FIRST_HELLO))), plain(first));
});

t.test('feed frames: what is cut, longer, flipped or of another format is damage', async (test) => {
  test.comment(`seed ${SEED}; again: CONCLAVE_SEED=${SEED} node ${process.argv[1]}`);
  const draw = streamOf(SEED);
  for (const [name, { decode }] of Object.entries(SAMPLES)) {
    const good = bytesOfHex(GOLDEN[name]!);
    test.throws(() => decode(Uint8Array.from([...good, 0])), WireDamage, `${name}, longer`);
    for (let length = 0; length < good.length; length += 1) {
      test.throws(() => decode(good.slice(0, length)), WireDamage, `${name}, ${length} bytes`);
    }
    const other = Uint8Array.from(good);
    other[1] = 2;
    test.throws(() => decode(other), /has the format 2/, name);
    for (let round = 0; round < 200; round += 1) {
      const bytes = Uint8Array.from(good);
      bytes[Math.floor(draw() * bytes.length)]! ^= 1 << Math.floor(draw() * 8);
      try {
        decode(bytes);
      } catch (error) {
        if (!(error instanceof WireDamage)) test.fail(`${name}: ${String(error)}`);
      }
    }
  }
});

t.test('feed frames: entries come whole, and a cursor has a hash of 32 bytes', async (test) => {
  const cursor = [1, 2, new Uint8Array(32)];
  test.throws(() => decodeEntryRun(packed(cursor, [1, 2, new Uint8Array(32)])), /is cut off/);
  test.throws(
    () => decodeEntryRun(packed([1, 2, new Uint8Array(31)], [])),
    /31 bytes instead of 32/,
  );
  const none = { federationId: '', clusterId: '', cursor: undefined };
  const hello = { ...none, term: 1, maxEpoch: 0, level: 1, isWitness: false };
  test.equal(decodeHello(encodeHello(hello)).cursor, undefined);
});

t.test('feed frames: docs/WIRE.md names every call and refusal', async (test) => {
  const text = readFileSync(join(import.meta.dirname, '../../../../docs/WIRE.md'), 'utf8');
  const names = [FEED_METHOD, SNAPSHOT_METHOD, FEED_REFUSAL, SNAPSHOT_REFUSAL].flatMap((each) =>
    Object.values(each),
  );
  for (const name of names) test.ok(text.includes(`\`${name}\``), name);
});
