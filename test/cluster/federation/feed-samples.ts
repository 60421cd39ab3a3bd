// One of everything that datacenters say to each other over the feed, and how it is written and read. The
// bytes of the first release are in feed-frames.test.ts.

import {
  decodeAck,
  decodeEntryRun,
  decodeFeedFrame,
  decodeHello,
  decodeHelloAnswer,
  decodePull,
  encodeAck,
  encodeEntryRun,
  encodeFeedFrame,
  encodeHello,
  encodeHelloAnswer,
  encodePull,
} from '../../../cluster/federation/feed/feed-frames.ts';
import {
  decodeReport,
  decodeReportAnswer,
  encodeReport,
  encodeReportAnswer,
} from '../../../cluster/federation/feed/report-frames.ts';
import {
  decodeChunk,
  decodeOffer,
  decodeOpen,
  decodeWish,
  encodeChunk,
  encodeOffer,
  encodeOpen,
  encodeWish,
} from '../../../cluster/federation/snapshot/snapshot-frames.ts';

export interface Sample<T> {
  readonly value: T;
  readonly encode: (value: T) => Uint8Array;
  readonly decode: (bytes: Uint8Array) => T;
}

export function bytesFrom(first: number, length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, place) => (first + place) & 0xff);
}

const CURSOR = { epoch: 3, seq: 70_000, hash: bytesFrom(1, 32) };
const NEWS = {
  epoch: 3,
  headSeq: 70_010,
  headAtMs: 1_767_225_600_000,
  nowMs: 1_767_225_600_999,
  majoritySeq: 69_999,
};
const HELLO = {
  federationId: 'fed',
  clusterId: 'c2',
  term: 9,
  cursor: CURSOR,
  maxEpoch: 4,
  level: 2,
  isWitness: undefined,
};
const ADDRESSES = [
  { host: '10.0.0.1', port: 8300 },
  { host: 'p2', port: 1 },
];

function sample<T>(
  value: T,
  encode: (value: T) => Uint8Array,
  decode: (bytes: Uint8Array) => T,
): Sample<unknown> {
  return { value, encode, decode } as Sample<unknown>;
}

export const SAMPLES: Readonly<Record<string, Sample<unknown>>> = {
  hello: sample(HELLO, encodeHello, decodeHello),
  'hello for a snapshot': sample({ ...HELLO, cursor: undefined }, encodeHello, decodeHello),
  'hello of a witness': sample({ ...HELLO, isWitness: true }, encodeHello, decodeHello),
  tail: sample(
    { kind: 'tail', session: 2 ** 33, federationId: 'fed', news: NEWS },
    encodeHelloAnswer,
    decodeHelloAnswer,
  ),
  'snapshot-needed': sample(
    { kind: 'snapshot-needed', federationId: 'fed', epoch: 3 },
    encodeHelloAnswer,
    decodeHelloAnswer,
  ),
  diverged: sample(
    { kind: 'diverged', epoch: 3, forkSeq: 12 },
    encodeHelloAnswer,
    decodeHelloAnswer,
  ),
  redirect: sample(
    { kind: 'redirect', addresses: ADDRESSES, says: 'p2 leads' },
    encodeHelloAnswer,
    decodeHelloAnswer,
  ),
  fenced: sample({ kind: 'fenced', epoch: 5 }, encodeHelloAnswer, decodeHelloAnswer),
  pull: sample({ session: 2 ** 33, number: 7 }, encodePull, decodePull),
  frame: sample({ number: 7, news: NEWS, body: bytesFrom(9, 4) }, encodeFeedFrame, decodeFeedFrame),
  entries: sample(
    {
      after: CURSOR,
      entries: [
        { epoch: 3, seq: 70_001, hash: bytesFrom(40, 32), bytes: bytesFrom(80, 3) },
        { epoch: 4, seq: 70_003, hash: bytesFrom(90, 32), bytes: bytesFrom(0, 0) },
      ],
    },
    encodeEntryRun,
    decodeEntryRun,
  ),
  ack: sample({ session: 2 ** 33, cursor: CURSOR }, encodeAck, decodeAck),
  report: sample(
    {
      session: 2 ** 33,
      cursor: CURSOR,
      digest: bytesFrom(3, 32),
      error: { text: 'the line is cut', ageMs: 1_500 },
    },
    encodeReport,
    decodeReport,
  ),
  'report of nothing': sample(
    { session: 1, cursor: CURSOR, digest: undefined, error: undefined },
    encodeReport,
    decodeReport,
  ),
  'answer to a report': sample(
    { digest: bytesFrom(5, 32), lagBytes: 70_000, headSeq: 70_010, figures: [12, 0, 900] },
    encodeReportAnswer,
    decodeReportAnswer,
  ),
  'wish for a snapshot': sample('fed', encodeOpen, decodeOpen),
  offer: sample(
    { snapshotId: 's-1', federationId: 'fed', epoch: 3, cursor: CURSOR },
    encodeOffer,
    decodeOffer,
  ),
  'wish for a chunk': sample({ snapshotId: 's-1', number: 300 }, encodeWish, decodeWish),
  chunk: sample(
    { number: 300, isEnd: false, hash: bytesFrom(7, 32), bytes: bytesFrom(1, 3) },
    encodeChunk,
    decodeChunk,
  ),
};
