// What a follower and the primary say to each other over the feed, as bytes of calls and their answers.
// docs/WIRE.md has the table. Nothing is trusted before its shape is checked: what does not fit is WireDamage.

import { unreachable } from '../../base/unreachable.ts';
import type { NetAddress } from '../../platform/net.ts';
import { packed, unpacked } from '../../wire/call-payload.ts';
import { FIRST_LEVEL, NAME_MAX, WHY_MAX } from '../../wire/frame.ts';
import {
  arrayOf,
  bytesOf,
  countOf,
  exactBytesOf,
  type Fields,
  fieldsOf,
  flagOf,
  namedBy,
  namesByNumber,
  textOf,
} from '../../wire/shape.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import { type GlobalCursor, type GlobalEntry, HASH_BYTES } from '../global-log.ts';
import { FRAME_ENTRIES_MAX } from './feed-limits.ts';

/** The names of the calls. */
export const FEED_METHOD = {
  hello: 'feed.hello',
  pull: 'feed.pull',
  ack: 'feed.ack',
  report: 'feed.report',
} as const;

/** A follower's leader begins a session. Which datacenter and node it is, the handshake has proved. */
export interface FeedHello {
  /** Empty: its datacenter knows of none yet. */
  readonly federationId: string;
  /** The follower's own cluster: one name is one datacenter. */
  readonly clusterId: string;
  /** Of its Raft group: an earlier leader gives way to a later one. */
  readonly term: number;
  /** How far its datacenter is, on its disks. Undefined: it wants a snapshot, whatever it has. */
  readonly cursor: GlobalCursor | undefined;
  /** The highest epoch that its datacenter has promised to anybody; 0 for none. */
  readonly maxEpoch: number;
  /** The level of what its log may say: what all servers of its datacenter read. */
  readonly level: number;
  /** Whether its datacenter votes and has no objects; undefined where it has not told. */
  readonly isWitness: boolean | undefined;
}

export type HelloAnswer =
  /** What follows the cursor can be pulled. */
  | {
      readonly kind: 'tail';
      readonly session: number;
      readonly federationId: string;
      readonly news: FeedNews;
    }
  | { readonly kind: 'snapshot-needed'; readonly federationId: string; readonly epoch: number }
  /** The follower has entries that this primary has not; the chains are the same up to `forkSeq`. */
  | { readonly kind: 'diverged'; readonly epoch: number; readonly forkSeq: number }
  /** This server is not the one to ask. */
  | {
      readonly kind: 'redirect';
      readonly addresses: readonly NetAddress[];
      readonly says: string;
    }
  /** The follower knows of a later reign than this primary, which is none any more. */
  | { readonly kind: 'fenced'; readonly epoch: number };

/** How the primary stands, told with every answer. */
export interface FeedNews {
  /** Of this reign. */
  readonly epoch: number;
  readonly headSeq: number;
  /** When the head was written, and now, both by the primary's wall clock. */
  readonly headAtMs: number;
  readonly nowMs: number;
  /** Up to here a majority of datacenters has everything; 0 while nothing is known in this reign. */
  readonly majoritySeq: number;
}

/** One frame may come. */
export interface FeedPull {
  readonly session: number;
  /** Counts the pulls of a session from 0. */
  readonly number: number;
}

export interface FeedFrame {
  /** Of the pull that it answers. */
  readonly number: number;
  readonly news: FeedNews;
  /** Packed entries; empty: a heartbeat. */
  readonly body: Uint8Array;
}

export interface FeedAck {
  readonly session: number;
  /** How far the follower's group has applied it. */
  readonly cursor: GlobalCursor;
}

/** Entries that follow each other, and what they follow. */
export interface EntryRun {
  readonly after: GlobalCursor;
  readonly entries: readonly GlobalEntry[];
}

const ANSWER_NUMBER: Readonly<Record<HelloAnswer['kind'], number>> = {
  tail: 1,
  'snapshot-needed': 2,
  diverged: 3,
  redirect: 4,
  fenced: 5,
};
const ANSWERS = namesByNumber(ANSWER_NUMBER);

const ADDRESSES_MAX = 64;
const PORT_MAX = 65_535;
const FIELDS_PER_ENTRY = 4;
/** A hello said nothing of levels at first, and then nothing of witnesses. */
const FIRST_HELLO_FIELDS = 5;
const HELLO_FIELDS = 7;

export function encodeHello(hello: FeedHello): Uint8Array {
  const { federationId, clusterId, term, cursor, maxEpoch, level, isWitness } = hello;
  const place = cursor === undefined ? null : cursorFields(cursor);
  const told = isWitness === undefined ? [] : [isWitness];
  return packed(federationId, clusterId, term, place, maxEpoch, level, ...told);
}

/** Throws WireDamage. */
export function decodeHello(bytes: Uint8Array): FeedHello {
  const fields = unpacked(bytes, 'a hello of the feed', FIRST_HELLO_FIELDS, HELLO_FIELDS);
  const [federationId, clusterId, term, cursor, maxEpoch, level = FIRST_LEVEL, isWitness] = fields;
  return {
    federationId: textOf(federationId, 'federationId', NAME_MAX),
    clusterId: textOf(clusterId, 'clusterId', NAME_MAX),
    term: countOf(term, 'term'),
    cursor: cursor === null ? undefined : cursorOf(cursor, 'cursor'),
    maxEpoch: countOf(maxEpoch, 'maxEpoch'),
    level: countOf(level, 'level'),
    isWitness: isWitness === undefined ? undefined : flagOf(isWitness, 'isWitness'),
  };
}

export function encodeHelloAnswer(answer: HelloAnswer): Uint8Array {
  return packed(ANSWER_NUMBER[answer.kind], answerFields(answer));
}

function answerFields(answer: HelloAnswer): Fields {
  switch (answer.kind) {
    case 'tail':
      return [answer.session, answer.federationId, newsFields(answer.news)];
    case 'snapshot-needed':
      return [answer.federationId, answer.epoch];
    case 'diverged':
      return [answer.epoch, answer.forkSeq];
    case 'redirect':
      return [
        answer.addresses.map(({ host, port }) => [host, port]),
        answer.says.slice(0, WHY_MAX),
      ];
    case 'fenced':
      return [answer.epoch];
    default:
      return unreachable(answer);
  }
}

/** Throws WireDamage. */
export function decodeHelloAnswer(bytes: Uint8Array): HelloAnswer {
  const what = 'an answer to a hello of the feed';
  const [number, fields] = unpacked(bytes, what, 2);
  const kind = namedBy(number, what, ANSWERS);
  const exactly = (count: number): Fields => fieldsOf(fields, `${what} (${kind})`, count);
  switch (kind) {
    case 'tail': {
      const [session, federationId, news] = exactly(3);
      return {
        kind,
        session: countOf(session, 'session'),
        federationId: textOf(federationId, 'federationId', NAME_MAX),
        news: newsOf(news),
      };
    }
    case 'snapshot-needed': {
      const [federationId, epoch] = exactly(2);
      const id = textOf(federationId, 'federationId', NAME_MAX);
      return { kind, federationId: id, epoch: countOf(epoch, 'epoch') };
    }
    case 'diverged': {
      const [epoch, forkSeq] = exactly(2);
      return { kind, epoch: countOf(epoch, 'epoch'), forkSeq: countOf(forkSeq, 'forkSeq') };
    }
    case 'redirect': {
      const [addresses, says] = exactly(2);
      const all = arrayOf(addresses, 'addresses', ADDRESSES_MAX).map(addressOf);
      return { kind, addresses: all, says: textOf(says, 'says', WHY_MAX) };
    }
    case 'fenced':
      return { kind, epoch: countOf(exactly(1)[0], 'epoch') };
    default:
      return unreachable(kind);
  }
}

export function encodePull({ session, number }: FeedPull): Uint8Array {
  return packed(session, number);
}

/** Throws WireDamage. */
export function decodePull(bytes: Uint8Array): FeedPull {
  const [session, number] = unpacked(bytes, 'a pull of the feed', 2);
  return { session: countOf(session, 'session'), number: countOf(number, 'number') };
}

export function encodeFeedFrame({ number, news, body }: FeedFrame): Uint8Array {
  return packed(number, newsFields(news), body);
}

/** Throws WireDamage. */
export function decodeFeedFrame(bytes: Uint8Array): FeedFrame {
  const [number, news, body] = unpacked(bytes, 'a frame of the feed', 3);
  return { number: countOf(number, 'number'), news: newsOf(news), body: bytesOf(body, 'body') };
}

export function encodeAck({ session, cursor }: FeedAck): Uint8Array {
  return packed(session, cursorFields(cursor));
}

/** Throws WireDamage. */
export function decodeAck(bytes: Uint8Array): FeedAck {
  const [session, cursor] = unpacked(bytes, 'an acknowledgement of the feed', 2);
  return { session: countOf(session, 'session'), cursor: cursorOf(cursor, 'cursor') };
}

export function encodeEntryRun({ after, entries }: EntryRun): Uint8Array {
  const fields = entries.flatMap(({ epoch, seq, hash, bytes }) => [epoch, seq, hash, bytes]);
  return packed(cursorFields(after), fields);
}

/** Throws WireDamage. */
export function decodeEntryRun(body: Uint8Array): EntryRun {
  const [place, rest] = unpacked(body, 'entries of the feed', 2);
  const after = cursorOf(place, 'what the entries follow');
  const fields = arrayOf(rest, 'the entries', FRAME_ENTRIES_MAX * FIELDS_PER_ENTRY);
  if (fields.length % FIELDS_PER_ENTRY !== 0) throw new WireDamage('an entry is cut off');
  const entries: GlobalEntry[] = [];
  for (let at = 0; at < fields.length; at += FIELDS_PER_ENTRY) {
    entries.push({
      epoch: countOf(fields[at], 'epoch of an entry'),
      seq: countOf(fields[at + 1], 'seq of an entry'),
      hash: exactBytesOf(fields[at + 2], 'hash of an entry', HASH_BYTES),
      bytes: bytesOf(fields[at + 3], 'an entry'),
    });
  }
  return { after, entries };
}

export function cursorFields({ epoch, seq, hash }: GlobalCursor): Fields {
  return [epoch, seq, hash];
}

/** Throws WireDamage. */
export function cursorOf(value: unknown, what: string): GlobalCursor {
  const [epoch, seq, hash] = fieldsOf(value, what, 3);
  return {
    epoch: countOf(epoch, `${what}: epoch`),
    seq: countOf(seq, `${what}: seq`),
    hash: exactBytesOf(hash, `${what}: hash`, HASH_BYTES),
  };
}

/** Throws WireDamage. */
export function addressOf(value: unknown): NetAddress {
  const [host, port] = fieldsOf(value, 'an address', 2);
  const address = { host: textOf(host, 'host', NAME_MAX), port: countOf(port, 'port') };
  if (address.port <= PORT_MAX) return address;
  throw new WireDamage(`the port ${address.port} is above ${PORT_MAX}`);
}

function newsFields({ epoch, headSeq, headAtMs, nowMs, majoritySeq }: FeedNews): Fields {
  return [epoch, headSeq, headAtMs, nowMs, majoritySeq];
}

function newsOf(value: unknown): FeedNews {
  const [epoch, headSeq, headAtMs, nowMs, majoritySeq] = fieldsOf(value, 'news of the feed', 5);
  return {
    epoch: countOf(epoch, 'epoch'),
    headSeq: countOf(headSeq, 'headSeq'),
    headAtMs: countOf(headAtMs, 'headAtMs'),
    nowMs: countOf(nowMs, 'nowMs'),
    majoritySeq: countOf(majoritySeq, 'majoritySeq'),
  };
}
