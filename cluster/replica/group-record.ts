// Who belongs to the group and what its leader is told to do about them, as one record that follows
// from the log's membership entries. The machine keeps its bytes with the entry that made it; every
// node comes to equal bytes. What the settings mean is autopilot's matter.

import { Packr } from 'msgpackr';
import { assert } from '../base/assert.ts';
import type { NetAddress } from '../platform/net.ts';
import {
  changeStep,
  type Membership,
  membersOf,
  NO_MEMBERS,
} from '../raft/membership/membership.ts';
import type { MembershipChange } from '../raft/membership/membership-change.ts';
import type { NodeId } from '../raft/node-id.ts';

export interface MemberRecord {
  readonly node: NodeId;
  /** The uuid in its data folder. */
  readonly id: string;
  readonly name: string;
  /** Of its cluster port. */
  readonly address: NetAddress;
  /** host:port that is shown to people; empty if it has none. */
  readonly httpAddress: string;
  readonly version: string;
}

export interface AutopilotSettings {
  readonly cleanupDeadServers: boolean;
  readonly lastContactThresholdMs: number;
  readonly maxTrailingLogs: number;
  readonly minQuorum: number;
  readonly serverStabilizationTimeMs: number;
}

export const DEFAULT_AUTOPILOT: AutopilotSettings = {
  cleanupDeadServers: true,
  lastContactThresholdMs: 200,
  maxTrailingLogs: 250,
  minQuorum: 0,
  serverStabilizationTimeMs: 10_000,
};

export interface GroupRecord {
  readonly membership: Membership;
  /** Ascending by node; only of those whom the membership names. */
  readonly members: readonly MemberRecord[];
  readonly autopilot: AutopilotSettings;
  /** How often `autopilot` was set: what a conditional change of it compares. */
  readonly autopilotIndex: number;
}

/** What rides in MembershipChange.context. `members` are added, or replace those of the same node. */
export interface GroupContext {
  readonly members?: readonly MemberRecord[];
  readonly autopilot?: AutopilotSettings;
}

export const EMPTY_GROUP: GroupRecord = {
  membership: NO_MEMBERS,
  members: [],
  autopilot: DEFAULT_AUTOPILOT,
  autopilotIndex: 0,
};

/** Of both encodings. */
const FORMAT = 1;

const packr = new Packr({ useRecords: false });

/**
 * What a committed change makes of the record. One that does not fit the membership changes nothing,
 * its context included.
 */
export function nextGroupRecord(record: GroupRecord, change: MembershipChange): GroupRecord {
  const step = changeStep(record.membership, change);
  if (typeof step === 'string') return record;
  const context = decodeGroupContext(change.context);
  const memberByNode = new Map(record.members.map((member) => [member.node, member]));
  for (const member of context.members ?? []) memberByNode.set(member.node, member);
  const members = membersOf(step.membership)
    .map((node) => memberByNode.get(node))
    .filter((member) => member !== undefined);
  const { autopilot = record.autopilot } = context;
  const autopilotIndex = record.autopilotIndex + (context.autopilot === undefined ? 0 : 1);
  return { membership: step.membership, members, autopilot, autopilotIndex };
}

export function encodeGroupRecord(record: GroupRecord): Uint8Array {
  const { membership, members, autopilot, autopilotIndex } = record;
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = membership;
  return packr.pack([
    FORMAT,
    [voters, votersOutgoing, learners, learnersNext, autoLeave],
    members.map(memberFields),
    autopilotFields(autopilot),
    autopilotIndex,
  ]);
}

/** Throws on bytes that this release cannot read. */
export function decodeGroupRecord(bytes: Uint8Array): GroupRecord {
  const [, membership, members, autopilot, autopilotIndex] = unpacked(bytes, 'group record') as [
    number,
    readonly [readonly NodeId[], readonly NodeId[], readonly NodeId[], readonly NodeId[], boolean],
    readonly MemberFields[],
    AutopilotFields,
    number,
  ];
  const [voters, votersOutgoing, learners, learnersNext, autoLeave] = membership;
  return {
    membership: { voters, votersOutgoing, learners, learnersNext, autoLeave },
    members: members.map(memberOf),
    autopilot: autopilotOf(autopilot),
    autopilotIndex,
  };
}

/** An empty context encodes to nothing. */
export function encodeGroupContext({ members, autopilot }: GroupContext): Uint8Array {
  if (members === undefined && autopilot === undefined) return new Uint8Array(0);
  return packr.pack([
    FORMAT,
    members === undefined ? null : members.map(memberFields),
    autopilot === undefined ? null : autopilotFields(autopilot),
  ]);
}

/** Throws on bytes that this release cannot read. */
export function decodeGroupContext(bytes: Uint8Array): GroupContext {
  if (bytes.length === 0) return {};
  const [, members, autopilot] = unpacked(bytes, 'context of a membership change') as [
    number,
    readonly MemberFields[] | null,
    AutopilotFields | null,
  ];
  return {
    ...(members !== null && { members: members.map(memberOf) }),
    ...(autopilot !== null && { autopilot: autopilotOf(autopilot) }),
  };
}

type MemberFields = readonly [NodeId, string, string, string, number, string, string];
type AutopilotFields = readonly [boolean, number, number, number, number];

function memberFields({
  node,
  id,
  name,
  address,
  httpAddress,
  version,
}: MemberRecord): MemberFields {
  return [node, id, name, address.host, address.port, httpAddress, version];
}

function memberOf([node, id, name, host, port, httpAddress, version]: MemberFields): MemberRecord {
  return { node, id, name, address: { host, port }, httpAddress, version };
}

function autopilotFields(settings: AutopilotSettings): AutopilotFields {
  return [
    settings.cleanupDeadServers,
    settings.lastContactThresholdMs,
    settings.maxTrailingLogs,
    settings.minQuorum,
    settings.serverStabilizationTimeMs,
  ];
}

function autopilotOf([
  cleanupDeadServers,
  lastContactThresholdMs,
  maxTrailingLogs,
  minQuorum,
  serverStabilizationTimeMs,
]: AutopilotFields): AutopilotSettings {
  return {
    cleanupDeadServers,
    lastContactThresholdMs,
    maxTrailingLogs,
    minQuorum,
    serverStabilizationTimeMs,
  };
}

function unpacked(bytes: Uint8Array, what: string): readonly unknown[] {
  const fields: unknown = packr.unpack(bytes);
  assert(Array.isArray(fields), `the bytes of a ${what} are an array of fields`);
  assert(fields[0] === FORMAT, `the format of a ${what} is known here`, {
    found: fields[0] as unknown,
    known: FORMAT,
  });
  return fields as readonly unknown[];
}
