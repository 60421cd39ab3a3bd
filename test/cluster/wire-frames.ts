// One frame of every kind and one message of every type, as full as they come, and the bytes that the first
// release gave them. The bytes are never edited: a change of layout is a new protocol version with more bytes.

import type { Message } from '../../cluster/raft/message.ts';
import type { Frame } from '../../cluster/wire/frame.ts';
import type { SentMessage } from '../../cluster/wire/message-codec.ts';

const NODE_A = 0x1234_5678_9abc;
const NODE_B = 2;
const ENVELOPE = { from: NODE_A, to: NODE_B, term: 7 };

function bytesFrom(first: number, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, place) => (first + place) & 0xff);
}

export const FRAMES: Readonly<Record<Exclude<Frame['kind'], 'messages'>, Frame>> = {
  hello: {
    kind: 'hello',
    oldestVersion: 1,
    newestVersion: 3,
    clusterId: '0f0f0f0f-1111-4222-8333-444444444444',
    datacenter: 'dc1',
    node: NODE_A,
    id: '12345678-9abc-4def-8000-000000000001',
    name: 'nöde-1',
    programVersion: '1.2.3',
    life: '99999999-9abc-4def-8000-000000000001',
    lane: 'bulk',
    hasKey: true,
    nonce: bytesFrom(1, 32),
    federationId: 'fedfedfe-1111-4222-8333-444444444444',
    reads: 3,
    uses: 2,
  },
  proof: { kind: 'proof', mac: bytesFrom(64, 32) },
  accepted: { kind: 'accepted', version: 1, mac: bytesFrom(128, 32) },
  refused: { kind: 'refused', code: 'linked-already', why: 'there is one' },
  call: {
    kind: 'call',
    id: 70_000,
    method: 'member.join',
    hops: 2,
    remainingMs: 4_999,
    payload: bytesFrom(0, 5),
  },
  answer: { kind: 'answer', id: 2 ** 40, payload: bytesFrom(250, 3) },
  refusal: { kind: 'refusal', id: 3, code: 'transport.busy', says: 'zu viele' },
  ping: { kind: 'ping', sentAtMs: 123_456 },
  pong: { kind: 'pong', sentAtMs: 123_456 },
};

export const MESSAGES: Readonly<Record<SentMessage['type'], Message>> = {
  append: {
    type: 'append',
    ...ENVELOPE,
    prevTerm: 6,
    prevIndex: 99,
    commitIndex: 98,
    entries: [
      { index: 100, term: 6, type: 'normal', data: bytesFrom(16, 4) },
      { index: 101, term: 7, type: 'membership', data: new Uint8Array(0) },
    ],
  },
  'append-reply': {
    type: 'append-reply',
    ...ENVELOPE,
    index: 99,
    rejection: { hintIndex: 42, hintTerm: 3 },
  },
  vote: {
    type: 'vote',
    ...ENVELOPE,
    lastTerm: 6,
    lastIndex: 101,
    forced: true,
    committed: { term: 6, index: 300 },
  },
  'vote-reply': {
    type: 'vote-reply',
    ...ENVELOPE,
    rejected: false,
    committed: { term: 6, index: 98 },
  },
  'pre-vote': {
    type: 'pre-vote',
    ...ENVELOPE,
    lastTerm: 6,
    lastIndex: 101,
    forced: false,
    committed: { term: 5, index: 97 },
  },
  'pre-vote-reply': {
    type: 'pre-vote-reply',
    ...ENVELOPE,
    rejected: true,
    committed: { term: 0, index: 0 },
  },
  heartbeat: { type: 'heartbeat', ...ENVELOPE, commitIndex: 98, readCount: 5 },
  'heartbeat-reply': { type: 'heartbeat-reply', ...ENVELOPE, readCount: 5 },
  snapshot: {
    type: 'snapshot',
    ...ENVELOPE,
    snapshot: {
      index: 98,
      term: 6,
      membership: {
        voters: [1, NODE_B, NODE_A],
        votersOutgoing: [1, 3],
        learners: [4],
        learnersNext: [3],
        autoLeave: true,
      },
      data: bytesFrom(32, 6),
    },
  },
  'timeout-now': { type: 'timeout-now', ...ENVELOPE },
  'transfer-leader': { type: 'transfer-leader', ...ENVELOPE, target: NODE_B },
  propose: {
    type: 'propose',
    ...ENVELOPE,
    term: 0,
    entries: [
      { type: 'normal', data: bytesFrom(48, 2) },
      { type: 'membership', data: bytesFrom(50, 1) },
    ],
  },
  'read-index': { type: 'read-index', ...ENVELOPE, term: 0, context: 'r1' },
  'read-index-reply': { type: 'read-index-reply', ...ENVELOPE, index: 98, context: 'r1' },
};

/** The hello of the first release, which ended before the federation. */
export const GOLDEN_FIRST_HELLO =
  '9d010103d92430663066306630662d313131312d343232322d383333332d343434343434343434343434' +
  'a3646331cb42b23456789abc00d92431323334353637382d396162632d346465662d383030302d303030' +
  '303030303030303031a76ec3b664652d31a5312e322e33d92439393939393939392d396162632d346465' +
  '662d383030302d30303030303030303030303102c3c4200102030405060708090a0b0c0d0e0f10111213' +
  '1415161718191a1b1c1d1e1f20';

/** The hello before there were levels. */
export const GOLDEN_SECOND_HELLO =
  '9e010103d92430663066306630662d313131312d343232322d383333332d343434343434343434343434' +
  'a3646331cb42b23456789abc00d92431323334353637382d396162632d346465662d383030302d303030' +
  '303030303030303031a76ec3b664652d31a5312e322e33d92439393939393939392d396162632d346465' +
  '662d383030302d30303030303030303030303102c3c4200102030405060708090a0b0c0d0e0f10111213' +
  '1415161718191a1b1c1d1e1f20d92466656466656466652d313131312d343232322d383333332d343434' +
  '343434343434343434';

/** Protocol version 1, by kind of frame. */
export const GOLDEN_FRAMES: Readonly<Record<keyof typeof FRAMES, string>> = {
  hello:
    'dc0010010103d92430663066306630662d313131312d343232322d383333332d343434343434343434343434' +
    'a3646331cb42b23456789abc00d92431323334353637382d396162632d346465662d383030302d303030' +
    '303030303030303031a76ec3b664652d31a5312e322e33d92439393939393939392d396162632d346465' +
    '662d383030302d30303030303030303030303102c3c4200102030405060708090a0b0c0d0e0f10111213' +
    '1415161718191a1b1c1d1e1f20d92466656466656466652d313131312d343232322d383333332d343434' +
    '3434343434343434340302',
  proof: '9202c420404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f',
  accepted: '930301c420808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f',
  refused: '930402ac7468657265206973206f6e65',
  call: '9606ce00011170ab6d656d6265722e6a6f696e02cd1387c4050001020304',
  answer: '9307cb4270000000000000c403fafbfc',
  refusal: '940803ae7472616e73706f72742e62757379a87a75207669656c65',
  ping: '9209ce0001e240',
  pong: '920ace0001e240',
};

/** Protocol version 1, which the first release speaks: a frame with one message, by its type. */
export const GOLDEN_MESSAGES: Readonly<Record<keyof typeof MESSAGES, string>> = {
  append: '9205919801cb42b23456789abc00020706636292930601c40410111213930702c400',
  'append-reply': '9205919602cb42b23456789abc00020763922a03',
  vote: '9205919703cb42b23456789abc0002070665c3',
  'vote-reply': '9205919504cb42b23456789abc000207c2',
  'pre-vote': '9205919705cb42b23456789abc0002070665c2',
  'pre-vote-reply': '9205919506cb42b23456789abc000207c3',
  heartbeat: '9205919607cb42b23456789abc0002076205',
  'heartbeat-reply': '9205919508cb42b23456789abc00020705',
  snapshot:
    '9205919509cb42b23456789abc00020794620695930102cb42b23456789abc0092010391049103c3c406' +
    '202122232425',
  'timeout-now': '920591940acb42b23456789abc000207',
  'transfer-leader': '920591950bcb42b23456789abc00020702',
  propose: '920591950ccb42b23456789abc000200929201c40230319202c40132',
  'read-index': '920591950dcb42b23456789abc000200a27231',
  'read-index-reply': '920591960ecb42b23456789abc00020762a27231',
};

/** Protocol version 2, where it is another layout. */
export const GOLDEN_MESSAGES_2: Readonly<Partial<Record<keyof typeof MESSAGES, string>>> = {
  vote: '9205919903cb42b23456789abc0002070665c306cd012c',
  'vote-reply': '9205919704cb42b23456789abc000207c20662',
  'pre-vote': '9205919905cb42b23456789abc0002070665c20561',
  'pre-vote-reply': '9205919706cb42b23456789abc000207c30000',
};
