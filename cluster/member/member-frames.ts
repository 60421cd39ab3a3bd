// What members say to each other about membership, as bytes of calls. Nothing that came over the wire is
// trusted before it has the shape that it should have. Snapshots and digests have frames of their own
// beside their code.

import type { MemberRecord } from '../replica/group-record.ts';
import { packed, unpacked } from '../wire/call-payload.ts';
import {
  arrayOf,
  bytesOf,
  countOf,
  fieldsOf,
  namedBy,
  namesByNumber,
  nodeOf,
  textOf,
} from '../wire/shape.ts';
import { WireDamage } from '../wire/wire-damage.ts';
import type { Fate, Neighbour } from './founding/founding.ts';
import { isNodeId, nodeNumberOf } from './founding/node-number.ts';

/** Who a node is, and how far it has come. */
export interface Introduction extends Neighbour {
  /** The leader of its group, as far as it knows. */
  readonly leader: MemberRecord | undefined;
  /** Of its group, as far as it knows; empty before it has one. */
  readonly members: readonly MemberRecord[];
}

/** What a node says of a founding. */
export interface FateAnswer {
  readonly answererId: string;
  readonly fate: Fate;
  /** The first entries of the log, of one that is founded and has them still; else none. */
  readonly payloads: readonly Uint8Array[];
}

/** The founding that the asked node is to write down. */
export interface FoundingOrder {
  readonly clusterId: string;
  readonly payloads: readonly Uint8Array[];
}

const TEXT_MAX = 1024;
const NAME_MAX = 256;
const MEMBERS_MAX = 255;
const PORT_MAX = 65_535;
const FATE_NUMBER = { pending: 1, released: 2, founded: 3 } as const;
const FATE_BY_NUMBER = namesByNumber(FATE_NUMBER);

export function encodeIntroduction(introduction: Introduction): Uint8Array {
  const { record, expect, clusterId, leader, members } = introduction;
  return packed(
    recordFields(record),
    expect,
    clusterId,
    leader === undefined ? [] : recordFields(leader),
    members.map(recordFields),
  );
}

/** Throws WireDamage. */
export function decodeIntroduction(bytes: Uint8Array): Introduction {
  const [record, expect, clusterId, leader, members] = unpacked(bytes, 'an introduction', 5);
  const hasLeader = arrayOf(leader, 'leader', MEMBERS_MAX).length > 0;
  return {
    record: recordOf(record, 'record'),
    expect: countOf(expect, 'expect'),
    clusterId: textOf(clusterId, 'clusterId', NAME_MAX),
    leader: hasLeader ? recordOf(leader, 'leader') : undefined,
    members: arrayOf(members, 'members', MEMBERS_MAX).map((each) => recordOf(each, 'a member')),
  };
}

export function encodeFateAnswer({ answererId, fate, payloads }: FateAnswer): Uint8Array {
  return packed(answererId, FATE_NUMBER[fate], payloads);
}

/** Throws WireDamage. */
export function decodeFateAnswer(bytes: Uint8Array): FateAnswer {
  const [answererId, fate, payloads] = unpacked(bytes, 'the fate of a founding', 3);
  return {
    answererId: textOf(answererId, 'answererId', NAME_MAX),
    fate: namedBy(fate, 'fate', FATE_BY_NUMBER),
    payloads: payloadsOf(payloads),
  };
}

export function encodeFoundingOrder({ clusterId, payloads }: FoundingOrder): Uint8Array {
  return packed(clusterId, payloads);
}

/** Throws WireDamage. */
export function decodeFoundingOrder(bytes: Uint8Array): FoundingOrder {
  const [clusterId, payloads] = unpacked(bytes, 'a founding', 2);
  return { clusterId: textOf(clusterId, 'clusterId', NAME_MAX), payloads: payloadsOf(payloads) };
}

export function encodeText(text: string): Uint8Array {
  return packed(text);
}

/** Throws WireDamage. */
export function decodeText(bytes: Uint8Array): string {
  return textOf(unpacked(bytes, 'a text', 1)[0], 'text', TEXT_MAX);
}

function payloadsOf(value: unknown): readonly Uint8Array[] {
  return arrayOf(value, 'payloads', MEMBERS_MAX).map((each) => bytesOf(each, 'a payload'));
}

function recordFields(record: MemberRecord): readonly unknown[] {
  const { node, id, name, address, httpAddress, version } = record;
  return [node, id, name, address.host, address.port, httpAddress, version];
}

function recordOf(value: unknown, what: string): MemberRecord {
  const [node, id, name, host, port, httpAddress, version] = fieldsOf(value, what, 7);
  const record = {
    node: nodeOf(node, `${what}: node`),
    id: textOf(id, `${what}: id`, NAME_MAX),
    name: textOf(name, `${what}: name`, NAME_MAX),
    address: {
      host: textOf(host, `${what}: host`, NAME_MAX),
      port: countOf(port, `${what}: port`),
    },
    httpAddress: textOf(httpAddress, `${what}: httpAddress`, NAME_MAX),
    version: textOf(version, `${what}: version`, NAME_MAX),
  };
  if (record.address.port > PORT_MAX) throw new WireDamage(`${what}: port is above ${PORT_MAX}`);
  if (!isNodeId(record.id) || nodeNumberOf(record.id) !== record.node) {
    throw new WireDamage(`${what}: the number ${record.node} is not that of its id`);
  }
  return record;
}
