// Frames as bytes: the bytes of the first release, every frame there and back, and whatever a bad wire or a
// bad node may send: damage is said to be damage, and nothing else ever happens.
// Another draw of the random tests: CONCLAVE_SEED=<seed>.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { NO_ENTRY } from '../../cluster/raft/log/entry.ts';
import { MESSAGE_TRAITS, type Message, type MessageType } from '../../cluster/raft/message.ts';
import { checkMsgpack, DEPTH_MAX, ITEMS_MAX } from '../../cluster/wire/check-msgpack.ts';
import {
  FIRST_LEVEL,
  type Frame,
  MESSAGES_MAX,
  NAME_MAX,
  WHY_MAX,
} from '../../cluster/wire/frame.ts';
import { decodeFrame, encodeFrame } from '../../cluster/wire/frame-codec.ts';
import { hmacSha256, isSameSecret } from '../../cluster/wire/hmac.ts';
import { WireDamage } from '../../cluster/wire/wire-damage.ts';
import { programTexts } from '../support/program-texts.ts';
import { streamOf } from '../support/simulated/simulated-world.ts';
import {
  FRAMES,
  GOLDEN_FIRST_HELLO,
  GOLDEN_FRAMES,
  GOLDEN_MESSAGES,
  GOLDEN_MESSAGES_2,
  GOLDEN_SECOND_HELLO,
  MESSAGES,
} from './wire-frames.ts';

const SEED = Number(process.env.CONCLAVE_SEED ?? 20_261);
const RERUN = `CONCLAVE_SEED=${SEED} node ${process.argv[1]}`;

const ALL: readonly (readonly [string, Frame, string])[] = [
  ...Object.entries(FRAMES).map(([name, frame]): [string, Frame, string] => [
    `frame ${name}`,
    frame,
    GOLDEN_FRAMES[name as keyof typeof GOLDEN_FRAMES],
  ]),
  ...Object.entries(MESSAGES).map(([name, message]): [string, Frame, string] => [
    `message ${name}`,
    { kind: 'messages', messages: [message] },
    GOLDEN_MESSAGES_2[name as keyof typeof MESSAGES] ??
      GOLDEN_MESSAGES[name as keyof typeof MESSAGES],
  ]),
];

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

function bytesOfHex(hex: string): Uint8Array {
  return new Uint8Array(Buffer.from(hex.replaceAll(' ', ''), 'hex'));
}

/** What is wrong with the bytes, according to the codec; undefined when nothing is. */
function damageOf(bytes: Uint8Array): string | undefined {
  try {
    decodeFrame(bytes);
    return undefined;
  } catch (error) {
    if (error instanceof WireDamage) return error.message;
    throw error;
  }
}

t.test(
  'wire: every frame and message has the bytes that it always had, both ways',
  async (test) => {
    for (const [name, frame, golden] of ALL) {
      test.equal(hexOf(encodeFrame(frame)), golden, name);
      test.same(plain(decodeFrame(bytesOfHex(golden))), plain(frame), name);
    }
  },
);

t.test(
  'wire: with a server of the first release, messages have the bytes of that release',
  async (test) => {
    for (const [type, message] of Object.entries(MESSAGES)) {
      const name = type as keyof typeof MESSAGES;
      const golden = GOLDEN_MESSAGES[name];
      test.equal(hexOf(encodeFrame({ kind: 'messages', messages: [message] }, 1)), golden, name);
      const heard = 'committed' in message ? { ...message, committed: NO_ENTRY } : message;
      const read = decodeFrame(bytesOfHex(golden), 1);
      test.same(plain(read), plain({ kind: 'messages', messages: [heard] }), name);
      const later = GOLDEN_MESSAGES_2[name];
      if (later === undefined) continue;
      test.match(damageOf(bytesOfHex(golden)), /fields instead of/, name);
      test.throws(() => decodeFrame(bytesOfHex(later), 1), /fields instead of/, name);
    }
  },
);

t.test('wire: every message type that travels has bytes, and no local one has', async (test) => {
  for (const type of Object.keys(MESSAGE_TRAITS) as MessageType[]) {
    const isLocal = MESSAGE_TRAITS[type].local;
    test.equal(Object.hasOwn(MESSAGES, type), !isLocal, type);
    if (!isLocal) continue;
    const local = { type, from: 1, to: 2, term: 0, entries: [], replies: [] } as unknown as Message;
    test.throws(() => encodeFrame({ kind: 'messages', messages: [local] }), /for another node/);
  }
});

t.test('wire: an append whose entries do not follow each other is never sent', async (test) => {
  const append = MESSAGES.append as Extract<Message, { type: 'append' }>;
  const entries = [{ ...append.entries[0]!, index: 101 }];
  test.throws(
    () => encodeFrame({ kind: 'messages', messages: [{ ...append, entries }] }),
    /follow/,
  );
});

t.test(
  'wire: a hello of a later version, with fields that are not known here, can be read',
  async (test) => {
    const { hello } = FRAMES;
    const bytes = encodeFrame(hello);
    const longer = Uint8Array.from([0xdc, 0, 18, ...bytes.subarray(3), 0x01, 0xc3]);
    test.same(plain(decodeFrame(longer)), plain(hello));
    test.same(decodeFrame(bytesOfHex('94 04 1f a3 6e 6577 01')), {
      kind: 'refused',
      code: 'refused',
      why: 'new',
    });
  },
);

t.test(
  'wire: the hello of the first release can be read: it knew of no federation',
  async (test) => {
    const { hello } = FRAMES;
    const first = decodeFrame(bytesOfHex(GOLDEN_FIRST_HELLO));
    const unsaid = { reads: FIRST_LEVEL, uses: FIRST_LEVEL };
    test.same(plain(first), plain({ ...hello, federationId: '', ...unsaid }));
    const second = decodeFrame(bytesOfHex(GOLDEN_SECOND_HELLO));
    test.same(plain(second), plain({ ...hello, ...unsaid }), 'and then of no levels');
  },
);

t.test('wire: what is read does not hold on to more than its frame', async (test) => {
  for (const [name, frame, golden] of ALL) {
    const piece = Buffer.alloc(64 * 1024, 0xc1);
    const bytes = piece.subarray(100, 100 + golden.length / 2);
    bytes.set(bytesOfHex(golden));
    const read = decodeFrame(bytes);
    piece.fill(0xff);
    test.same(plain(read), plain(frame), name);
    for (const kept of bytesIn(read)) test.ok(kept.buffer.byteLength <= golden.length, name);
  }
});

t.test('wire: docs/WIRE.md names every kind and type by its number', async (test) => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/WIRE.md'), 'utf8');
  const numberByName = new Map<string, number>();
  for (const [, numbers, names] of text.matchAll(/^\| ([\d, ]+) \| ((?:`[\w-]+`(?:, )?)+) \|/gm)) {
    const all = [...names!.matchAll(/`([\w-]+)`/g)].map(([, name]) => name!);
    numbers!.split(', ').forEach((number, place) => {
      numberByName.set(all[place]!, Number(number));
    });
  }
  for (const [kind, golden] of Object.entries(GOLDEN_FRAMES)) {
    const bytes = bytesOfHex(golden);
    // An array of more than 15 fields has its length in two bytes more.
    test.equal(numberByName.get(kind), bytes[bytes[0] === 0xdc ? 3 : 1], kind);
  }
  for (const [type, golden] of Object.entries(GOLDEN_MESSAGES)) {
    test.equal(numberByName.get(type), bytesOfHex(golden)[4], type);
  }
});

t.test('wire: docs/WIRE.md names every call that servers make', async (test) => {
  const text = readFileSync(join(import.meta.dirname, '../../../docs/WIRE.md'), 'utf8');
  const method = /^(?:directory|feed|member|promotion|service|transport)\.[a-z-]+$/;
  const named = new Set(programTexts().filter((each) => method.test(each)));
  test.ok(named.size > 40, `${named.size} calls and refusals`);
  test.same(
    [...named].filter((each) => !text.includes(`\`${each}\``)),
    [],
  );
});

t.test('wire: any frame comes back as it was sent', async (test) => {
  test.comment(`seed ${SEED}; again: ${RERUN}`);
  fc.assert(
    fc.property(anyFrame(), (frame) => {
      test.strictSame(plain(decodeFrame(encodeFrame(frame))), plain(frame));
    }),
    { seed: SEED, numRuns: 300 },
  );
});

t.test(
  'wire: flipped, cut, joined and random bytes give damage or a frame, and nothing else',
  async (test) => {
    test.comment(`seed ${SEED}; again: ${RERUN}`);
    const draw = streamOf(SEED);
    const below = (count: number): number => Math.floor(draw() * count);
    let damagedCount = 0;
    for (let round = 0; round < 20_000; round += 1) {
      const bytes = worsened(bytesOfHex(ALL[below(ALL.length)]![2]), below);
      const damage = damageOf(bytes);
      if (damage !== undefined) damagedCount += 1;
      if (round % 500 !== 0) continue;
      const [name, frame, golden] = ALL[below(ALL.length)]!;
      test.same(plain(decodeFrame(bytesOfHex(golden))), plain(frame), `after damage: ${name}`);
    }
    test.ok(damagedCount > 10_000, `${damagedCount} of 20000 were damaged`);
  },
);

t.test('wire: damage is named', async (test) => {
  const text = (length: number): string => 'x'.repeat(length);
  const cases: readonly (readonly [string | Uint8Array, RegExp])[] = [
    ['', /cut off: at least 1 bytes/],
    ['92 09', /cut off/],
    ['92 09 01 00', /1 bytes follow the end/],
    ['01', /a frame is no array/],
    ['90', /kind of a frame is unknown: undefined/],
    ['91 63', /kind of a frame is unknown: 99/],
    ['92 a4 70696e67 01', /kind of a frame is unknown: string/],
    ['91 09', /a frame ping has 0 fields instead of 1/],
    ['93 09 01 01', /a frame ping has 2 fields instead of 1/],
    ['92 09 a1 31', /sentAtMs is no whole number/],
    ['92 09 cb 3ff8000000000000', /sentAtMs is no whole number/],
    ['92 09 cb bff0000000000000', /sentAtMs is no whole number/],
    ['92 09 cb 7ff8000000000000', /sentAtMs is no whole number/],
    ['92 09 cb 4340000000000000', /sentAtMs is no whole number/],
    ['92 09 ff', /item of kind 0xff/],
    ['92 09 80', /item of kind 0x80/],
    ['92 09 c7 01 00 00', /item of kind 0xc7/],
    ['92 09 d6 ff 00000000', /item of kind 0xd6/],
    ['92 09 cf 0000000000000001', /item of kind 0xcf/],
    ['dd ffffffff 09', /cut off/],
    ['92 05 dd 00ffffff', /cut off/],
    ['c6 ffffffff 00', /cut off/],
    ['92 02 c4 03 010203', /mac has 3 bytes instead of 32/],
    ['92 05 91 90', /type of a message is unknown: undefined/],
    ['92 05 91 94 0f 01 02 03', /type of a message is unknown: 15/],
    ['92 05 91 94 0a 00 02 03', /from is 0/],
    ['92 05 91 94 0a 01 00 03', /to is 0/],
    ['92 05 91 95 0a 01 02 03 00', /message timeout-now has 1 fields instead of 0/],
    ['92 05 91 97 04 01 02 03 01 00 00', /rejected is neither true nor false/],
    ['92 05 91 98 01 01 02 03 01 01 01 91 93 01 03 c400', /type of an entry is unknown: 3/],
    ['92 05 91 98 01 01 02 03 01 01 01 91 93 01 01 a0', /data is no byte string/],
    ['92 05 91 98 01 01 02 03 01 cb433fffffffffffff 01 91 93 01 01 c400', /index of an entry/],
    [encodeFrame({ ...FRAMES.hello, nonce: new Uint8Array(31) } as Frame), /nonce has 31 bytes/],
    [encodeFrame({ ...FRAMES.hello, node: 0 } as Frame), /node is 0/],
    [
      encodeFrame({ ...FRAMES.hello, name: text(NAME_MAX + 1) } as Frame),
      /name is longer than 256/,
    ],
    [
      Uint8Array.from([0x93, 0x04, 0x01, 0xda, 0x10, 0, ...Buffer.from(text(4096))]),
      /why is longer/,
    ],
  ];
  for (const [bytes, says] of cases) {
    const all = typeof bytes === 'string' ? bytesOfHex(bytes) : bytes;
    test.match(damageOf(all) ?? 'no damage', says, hexOf(all).slice(0, 80));
  }
});

t.test(
  'wire: frames that are nested or split without end are refused before they are unpacked',
  async (test) => {
    const nested = (depth: number): Uint8Array =>
      Uint8Array.from([...Array<number>(depth).fill(0x91), 0x00]);
    test.doesNotThrow(() => checkMsgpack(nested(DEPTH_MAX)));
    test.match(damageOf(nested(DEPTH_MAX + 1)), /nested deeper than 8/);
    test.match(damageOf(nested(200_000)), /nested deeper than 8/);
    const wide = (count: number): Uint8Array => {
      const bytes = new Uint8Array(5 + count);
      bytes.set([0xdd, count >>> 24, (count >>> 16) & 0xff, (count >>> 8) & 0xff, count & 0xff]);
      return bytes;
    };
    test.doesNotThrow(() => checkMsgpack(wide(ITEMS_MAX - 1)));
    test.match(damageOf(wide(ITEMS_MAX)), /more than 131072 items/);
    const many: Message[] = Array(MESSAGES_MAX + 1).fill(MESSAGES['timeout-now']);
    test.match(damageOf(encodeFrame({ kind: 'messages', messages: many })), /has 4097 items/);
  },
);

t.test(
  'wire: a reason that is too long is cut where it is sent, not refused where it is read',
  async (test) => {
    const why = 'y'.repeat(5_000);
    const refused = decodeFrame(encodeFrame({ kind: 'refused', code: 'refused', why }));
    test.equal(refused.kind === 'refused' && refused.why.length, WHY_MAX);
    const refusal = decodeFrame(encodeFrame({ kind: 'refusal', id: 1, code: why, says: why }));
    test.same(
      refusal.kind === 'refusal' && [refusal.code.length, refusal.says.length],
      [256, 1024],
    );
  },
);

t.test('hmac: gives the answers of RFC 4231', async (test) => {
  const filled = (byte: number, length: number): Uint8Array => new Uint8Array(length).fill(byte);
  const said = (words: string): Uint8Array => new TextEncoder().encode(words);
  const vectors: readonly (readonly [Uint8Array, Uint8Array, string])[] = [
    [
      filled(0x0b, 20),
      said('Hi There'),
      'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
    ],
    [
      said('Jefe'),
      said('what do ya want for nothing?'),
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    ],
    [
      filled(0xaa, 20),
      filled(0xdd, 50),
      '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
    ],
    [
      Uint8Array.from({ length: 25 }, (_, place) => place + 1),
      filled(0xcd, 50),
      '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b',
    ],
    [
      filled(0xaa, 131),
      said('Test Using Larger Than Block-Size Key - Hash Key First'),
      '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
    ],
    [
      filled(0xaa, 131),
      said(
        'This is a test using a larger than block-size key and a larger than block-size data. ' +
          'The key needs to be hashed before being used by the HMAC algorithm.',
      ),
      '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
    ],
  ];
  for (const [key, message, mac] of vectors) test.equal(hexOf(hmacSha256(key, message)), mac);
});

t.test('hmac: secrets are the same only when every byte is', async (test) => {
  const secret = Uint8Array.from({ length: 32 }, (_, place) => place);
  test.ok(isSameSecret(secret, Uint8Array.from(secret)));
  for (let place = 0; place < secret.length; place += 1) {
    const other = Uint8Array.from(secret);
    other[place]! ^= 0x80;
    test.notOk(isSameSecret(secret, other), `byte ${place}`);
  }
  test.notOk(isSameSecret(secret, secret.subarray(0, 31)));
  test.notOk(isSameSecret(new Uint8Array(0), secret));
});

/** One to three things that a bad wire or a bad node does to a frame. */
function worsened(good: Uint8Array, below: (count: number) => number): Uint8Array {
  let bytes: Uint8Array = Uint8Array.from(good);
  for (let left = 1 + below(3); left > 0; left -= 1) {
    const at = below(Math.max(1, bytes.length));
    switch (below(6)) {
      case 0:
        bytes[at]! ^= 1 << below(8);
        break;
      case 1:
        bytes = bytes.slice(0, at);
        break;
      case 2:
        bytes = Uint8Array.from([...bytes.slice(0, at), ...bytes.slice(at + 1)]);
        break;
      case 3:
        bytes = Uint8Array.from([...bytes.slice(0, at), below(256), ...bytes.slice(at)]);
        break;
      case 4:
        bytes[at] = below(256);
        break;
      default:
        bytes = Uint8Array.from({ length: below(64) }, () => below(256));
    }
  }
  return bytes;
}

function bytesIn(value: unknown): readonly Uint8Array[] {
  if (value instanceof Uint8Array) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(bytesIn);
}

/** Byte strings as text, so that views and copies compare alike. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes ${hexOf(value)}`;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}

function anyFrame(): fc.Arbitrary<Frame> {
  const count = fc.maxSafeNat();
  const node = fc.integer({ min: 1, max: 2 ** 48 - 1 });
  const name = fc.string({ unit: 'grapheme', maxLength: 20 });
  const data = fc.uint8Array({ maxLength: 300 }).map((bytes) => Uint8Array.from(bytes));
  const entryType = fc.constantFrom('normal' as const, 'membership' as const);
  const proposed = fc.record({ type: entryType, data });
  const envelope = { from: node, to: node, term: count };
  const append = fc
    .tuple(
      fc.record({ ...envelope, prevTerm: count, commitIndex: count }),
      fc.nat({ max: 2 ** 40 }),
      fc.array(fc.record({ term: count, type: entryType, data }), { maxLength: 20 }),
    )
    .map(([head, prevIndex, entries]): Message => {
      const placed = entries.map((entry, place) => ({ ...entry, index: prevIndex + 1 + place }));
      return { type: 'append', ...head, prevIndex, entries: placed };
    });
  const propose = fc.record({
    type: fc.constant('propose' as const),
    ...envelope,
    entries: fc.array(proposed, { maxLength: 20 }),
  });
  const message: fc.Arbitrary<Message> = fc.oneof(
    append,
    propose,
    fc.constantFrom(...Object.values(MESSAGES)),
  );
  return fc.oneof(
    fc.record({
      kind: fc.constant('messages' as const),
      messages: fc.array(message, { maxLength: 10 }),
    }),
    fc.record({
      kind: fc.constant('call' as const),
      id: count,
      method: name,
      hops: count,
      remainingMs: count,
      payload: data,
    }),
    fc.record({ kind: fc.constant('answer' as const), id: count, payload: data }),
    fc.record({ kind: fc.constant('refusal' as const), id: count, code: name, says: name }),
    fc.constantFrom(...Object.values(FRAMES)),
  );
}
