// What members say to each other, as bytes: those of the first release, there and back, and what is no
// such thing. Never edit the bytes: other servers of a datacenter run the release that wrote them.

import t from 'tap';
import { foundingPayloads } from '../../../cluster/member/founding/founding.ts';
import { nodeNumberOf } from '../../../cluster/member/founding/node-number.ts';
import {
  decodeFateAnswer,
  decodeFoundingOrder,
  decodeIntroduction,
  decodeText,
  encodeFateAnswer,
  encodeFoundingOrder,
  encodeIntroduction,
  encodeText,
} from '../../../cluster/member/member-frames.ts';
import {
  beginOf,
  decodeBegin,
  decodePiece,
  encodeBegin,
  encodeBegun,
  encodePiece,
} from '../../../cluster/member/snapshots/snapshot-frames.ts';
import type { SnapshotMessage } from '../../../cluster/raft/message.ts';
import type { MemberRecord } from '../../../cluster/replica/group-record.ts';
import { packed } from '../../../cluster/wire/call-payload.ts';
import { messageFields } from '../../../cluster/wire/message-codec.ts';
import { WireDamage } from '../../../cluster/wire/wire-damage.ts';

const UUID = '01234567-89ab-4000-8000-000000000001';

const RECORD: MemberRecord = {
  node: nodeNumberOf(UUID),
  id: UUID,
  name: 'node-1',
  address: { host: '10.0.0.1', port: 8300 },
  httpAddress: '10.0.0.1:8500',
  version: '1.2.3',
};
const LONE = { record: RECORD, expect: 3, clusterId: '', leader: undefined, members: [] };
const SETTLED = { ...LONE, clusterId: 'cluster', leader: RECORD, members: [RECORD] };
const SNAPSHOT: SnapshotMessage = {
  type: 'snapshot',
  from: 1,
  to: 2,
  term: 7,
  snapshot: {
    term: 6,
    index: 500,
    membership: {
      voters: [1, 2],
      votersOutgoing: [],
      learners: [3],
      learnersNext: [],
      autoLeave: false,
    },
    data: new Uint8Array(0),
  },
};

const PAYLOADS = foundingPayloads([RECORD]);
const ORDER = { clusterId: 'cluster', payloads: PAYLOADS };
const FATE = { answererId: UUID, fate: 'founded', payloads: PAYLOADS } as const;
const PIECE = { transfer: 5, number: 2, bytes: Uint8Array.of(1, 2, 3) };

interface Case {
  readonly golden: string;
  readonly bytes: Uint8Array;
  readonly value: unknown;
  readonly decode: (bytes: Uint8Array) => unknown;
}

const CASES: Readonly<Record<string, Case>> = {
  'an introduction without a group': {
    golden:
      '960197cb42723456789ab000d92430313233343536372d383961622d343030302d383030302d3030' +
      '30303030303030303031a66e6f64652d31a831302e302e302e31cd206cad31302e302e302e313a38' +
      '353030a5312e322e3303a09090',
    bytes: encodeIntroduction(LONE),
    value: LONE,
    decode: decodeIntroduction,
  },
  'an introduction with one': {
    golden:
      '960197cb42723456789ab000d92430313233343536372d383961622d343030302d383030302d3030' +
      '30303030303030303031a66e6f64652d31a831302e302e302e31cd206cad31302e302e302e313a38' +
      '353030a5312e322e3303a7636c757374657297cb42723456789ab000d92430313233343536372d38' +
      '3961622d343030302d383030302d303030303030303030303031a66e6f64652d31a831302e302e30' +
      '2e31cd206cad31302e302e302e313a38353030a5312e322e339197cb42723456789ab000d9243031' +
      '3233343536372d383961622d343030302d383030302d303030303030303030303031a66e6f64652d' +
      '31a831302e302e302e31cd206cad31302e302e302e313a38353030a5312e322e33',
    bytes: encodeIntroduction(SETTLED),
    value: SETTLED,
    decode: decodeIntroduction,
  },
  'a founding': {
    golden:
      '9301a7636c757374657291c4670100010000000123456789ab93019197cb42723456789ab000d924' +
      '30313233343536372d383961622d343030302d383030302d303030303030303030303031a66e6f64' +
      '652d31a831302e302e302e31cd206cad31302e302e302e313a38353030a5312e322e33c0',
    bytes: encodeFoundingOrder(ORDER),
    value: ORDER,
    decode: decodeFoundingOrder,
  },
  'the fate of one': {
    golden:
      '9401d92430313233343536372d383961622d343030302d383030302d303030303030303030303031' +
      '0391c4670100010000000123456789ab93019197cb42723456789ab000d92430313233343536372d' +
      '383961622d343030302d383030302d303030303030303030303031a66e6f64652d31a831302e302e' +
      '302e31cd206cad31302e302e302e313a38353030a5312e322e33c0',
    bytes: encodeFateAnswer(FATE),
    value: FATE,
    decode: decodeFateAnswer,
  },
  'a text': {
    golden: '9201a474657874',
    bytes: encodeText('text'),
    value: 'text',
    decode: decodeText,
  },
  'the begin of a snapshot': {
    golden: '9201950901020794cd01f4069592010290910390c2c400',
    bytes: encodeBegin(SNAPSHOT),
    value: SNAPSHOT,
    decode: decodeBegin,
  },
  'the answer to it': { golden: '920105', bytes: encodeBegun(5), value: 5, decode: beginOf },
  'a piece of it': {
    golden: '94010502c403010203',
    bytes: encodePiece(PIECE),
    value: PIECE,
    decode: decodePiece,
  },
};

t.test('frames: they have the bytes of the first release, and are read back', async (test) => {
  for (const [name, { golden, bytes, value, decode }] of Object.entries(CASES)) {
    test.equal(Buffer.from(bytes).toString('hex'), golden, name);
    const read = decode(Uint8Array.from(Buffer.from(golden, 'hex')));
    test.same(plain(read), plain(value), name);
  }
});

t.test('frames: whatever is cut off, changed or of another format is damage', async (test) => {
  for (const [name, { bytes, decode }] of Object.entries(CASES)) {
    for (let length = 0; length < bytes.length; length += 1) {
      test.throws(() => decode(bytes.subarray(0, length)), WireDamage, `${name} cut at ${length}`);
    }
    // The second byte is the format, behind the head of the array.
    const newer = Uint8Array.from(bytes);
    newer[1] = 2;
    test.throws(() => decode(newer), /format 2/, `${name} of another format`);
    test.throws(() => decode(packed(1, 2, 3, 4, 5, 6, 7)), WireDamage, `${name} of other fields`);
  }
});

t.test('frames: a changed byte gives damage or another value, and nothing worse', async (test) => {
  for (const { bytes, decode } of Object.values(CASES)) {
    for (let at = 0; at < bytes.length; at += 1) {
      for (const flip of [1, 0x80]) {
        const changed = Uint8Array.from(bytes);
        changed[at] = changed[at]! ^ flip;
        try {
          decode(changed);
        } catch (error) {
          if (!(error instanceof WireDamage)) test.fail(`byte ${at}: ${String(error)}`);
        }
      }
    }
  }
  test.pass('nothing worse');
});

t.test('frames: a node speaks of numbers and ports that can be', async (test) => {
  const introduction = (changed: Partial<MemberRecord>): Uint8Array =>
    encodeIntroduction({ ...LONE, record: { ...RECORD, ...changed } });
  const wrong: readonly (readonly [Partial<MemberRecord>, RegExp])[] = [
    [{ node: 5 }, /the number 5 is not that of its id/],
    [{ id: 'x' }, /is not that of its id/],
    [{ address: { host: 'h', port: 70_000 } }, /port is above/],
    [{ name: 'n'.repeat(300) }, /longer than 256/],
  ];
  for (const [changed, says] of wrong) {
    test.throws(() => decodeIntroduction(introduction(changed)), says);
  }
  const { from, to, term } = SNAPSHOT;
  const heartbeat = packed(messageFields({ type: 'timeout-now', from, to, term }));
  test.throws(() => decodeBegin(heartbeat), /not with one of type timeout-now/);
});

/** Byte strings compare by what is in them, whatever class holds them. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, each: unknown) =>
      each instanceof Uint8Array ? Buffer.from(each).toString('hex') : each,
    ) ?? 'null',
  );
}
