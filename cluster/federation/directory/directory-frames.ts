// What servers tell each other of the datacenters that there are, as bytes of calls and their answers.

import type { NetAddress } from '../../platform/net.ts';
import { packed, unpacked } from '../../wire/call-payload.ts';
import { FIRST_LEVEL, NAME_MAX } from '../../wire/frame.ts';
import { arrayOf, countOf, type Fields, fieldsFromTo, textOf } from '../../wire/shape.ts';
import { addressOf } from '../feed/feed-frames.ts';

/** The name of the call. */
export const DIRECTORY_METHOD = 'directory.exchange';

export const DATACENTERS_MAX = 64;
export const ADDRESSES_MAX = 16;
/** A record said nothing of levels at first. */
const FIRST_FIELDS = 9;
const FIELDS = 10;

/** What the leader of a datacenter says of it. */
export interface DirectoryRecord {
  readonly datacenter: string;
  readonly clusterId: string;
  /** Empty: it knows of none yet. */
  readonly federationId: string;
  /** Of its servers, the leader's first. */
  readonly addresses: readonly NetAddress[];
  /** Who is primary, and of which reign, as far as it knows; empty and 0: it does not. */
  readonly primary: string;
  readonly epoch: number;
  /** A later one of the same datacenter takes its place: of the leader's term, and counted by it. */
  readonly term: number;
  readonly count: number;
  /** Since its leader said so, as far as those who passed it on know. */
  readonly ageMs: number;
  /** The level of what its log may say: what all of its servers read. */
  readonly level: number;
}

export function encodeRecords(records: readonly DirectoryRecord[]): Uint8Array {
  return packed(records.slice(0, DATACENTERS_MAX).map(recordFields));
}

/** Throws WireDamage. */
export function decodeRecords(bytes: Uint8Array): readonly DirectoryRecord[] {
  const [records] = unpacked(bytes, 'records of datacenters', 1);
  return arrayOf(records, 'records of datacenters', DATACENTERS_MAX).map(recordOf);
}

function recordFields(record: DirectoryRecord): Fields {
  return [
    record.datacenter,
    record.clusterId,
    record.federationId,
    record.addresses.slice(0, ADDRESSES_MAX).map(({ host, port }) => [host, port]),
    record.primary,
    record.epoch,
    record.term,
    record.count,
    Math.floor(record.ageMs),
    record.level,
  ];
}

function recordOf(value: unknown): DirectoryRecord {
  const fields = fieldsFromTo(value, 'a record of a datacenter', FIRST_FIELDS, FIELDS);
  const text = (place: number, what: string): string => textOf(fields[place], what, NAME_MAX);
  return {
    datacenter: text(0, 'datacenter'),
    clusterId: text(1, 'clusterId'),
    federationId: text(2, 'federationId'),
    addresses: arrayOf(fields[3], 'addresses', ADDRESSES_MAX).map(addressOf),
    primary: text(4, 'primary'),
    epoch: countOf(fields[5], 'epoch'),
    term: countOf(fields[6], 'term'),
    count: countOf(fields[7], 'count'),
    ageMs: countOf(fields[8], 'ageMs'),
    level: countOf(fields[9] ?? FIRST_LEVEL, 'level'),
  };
}
