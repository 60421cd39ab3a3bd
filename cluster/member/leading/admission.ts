// Who is let into the group, and as what: the leader's answer to a node that wants to join, or that has
// another name, address or version than the group knows. Pure: it gives the change to propose.

import { addressText } from '../../platform/net.ts';
import type { MembershipChange } from '../../raft/membership/membership-change.ts';
import {
  encodeGroupContext,
  type GroupRecord,
  type MemberRecord,
} from '../../replica/group-record.ts';

export type Admission =
  /** The group knows it as it is. */
  | { readonly kind: 'known' }
  | { readonly kind: 'change'; readonly change: MembershipChange }
  /** It was a member once: whatever it promised then, nobody counts on it any more. */
  | { readonly kind: 'removed'; readonly says: string }
  | { readonly kind: 'refused'; readonly says: string };

export interface Asking {
  readonly record: MemberRecord;
  /** It says that it belongs to this cluster already: somebody let it in before. */
  readonly isOurs: boolean;
}

/** What the leader knows of a member beside its record. */
export interface KnownOf {
  /** Heard of lately. */
  readonly isAlive: boolean;
  /** It has a vote, or has acknowledged entries: its disk is part of what the group relies on. */
  readonly isReliedOn: boolean;
}

export function admissionOf(
  { record, isOurs }: Asking,
  group: GroupRecord,
  knownOf: (member: MemberRecord) => KnownOf,
): Admission {
  const { node, name } = record;
  const known = group.members.find((member) => member.node === node);
  if (known !== undefined && known.id !== record.id) {
    const says = `the ids of ${known.name} and ${name} begin alike: empty the data folder of ${name}`;
    return { kind: 'refused', says };
  }
  if (known !== undefined && !isOurs && knownOf(known).isReliedOn) {
    return { kind: 'refused', says: lostText(name) };
  }
  if (known === undefined && isOurs) return { kind: 'removed', says: removedText(name) };
  const namesake = group.members.find((member) => member.name === name && member.node !== node);
  if (namesake !== undefined && (known !== undefined || knownOf(namesake).isAlive)) {
    const says =
      `a server with the name ${name} belongs to the cluster and is at ` +
      `${addressText(namesake.address)}: give this one another node_name, or stop that one`;
    return { kind: 'refused', says };
  }
  const context = encodeGroupContext({ members: [record] });
  if (known !== undefined) {
    if (isSameRecord(known, record)) return { kind: 'known' };
    const changes = [{ kind: 'update', node } as const];
    return { kind: 'change', change: { transition: 'auto', changes, context } };
  }
  const add = { kind: 'add-learner', node } as const;
  // The disk of the namesake was replaced: the new node takes its place in one step.
  const changes =
    namesake === undefined ? [add] : [{ kind: 'remove', node: namesake.node } as const, add];
  return { kind: 'change', change: { transition: 'auto', changes, context } };
}

/** The change by which a leader puts itself on record as it is; undefined when it is there already. */
export function selfRecordChange(
  record: MemberRecord,
  group: GroupRecord,
): MembershipChange | undefined {
  const known = group.members.find(({ node }) => node === record.node);
  if (known !== undefined && isSameRecord(known, record)) return undefined;
  const kind = known === undefined ? 'add-voter' : 'update';
  return {
    transition: 'auto',
    changes: [{ kind, node: record.node }],
    context: encodeGroupContext({ members: [record] }),
  };
}

export function isSameRecord(one: MemberRecord, other: MemberRecord): boolean {
  return (
    one.id === other.id &&
    one.name === other.name &&
    one.address.host === other.address.host &&
    one.address.port === other.address.port &&
    one.httpAddress === other.httpAddress &&
    one.version === other.version
  );
}

/** For people: a node that kept its id and lost what it promised under it. */
function lostText(name: string): string {
  return (
    `server ${name} belongs to the cluster, and its log is gone: it must not come back under its old id. ` +
    'Stop it, empty its whole data folder, and start it again: it takes its place as a new server'
  );
}

/**
 * For people: the cluster knows a server of this name by another id, and none by this one. That may be the one
 * before it; but where nobody leads it, or lets it in, its own id may be another one than its log was written under.
 */
export function otherIdText(
  { id, name }: Pick<MemberRecord, 'id' | 'name'>,
  { members }: Pick<GroupRecord, 'members'>,
): string | undefined {
  const namesake = members.find((member) => member.name === name);
  if (namesake === undefined || members.some((member) => member.id === id)) return undefined;
  return (
    `the cluster knows server ${name} by the id ${namesake.id}, and this one has the id ${id}: if the file ` +
    'node-id in its data folder was changed, stop it and put the former id back'
  );
}

/** For people: what a removed server is, and how it comes back. */
function removedText(name: string): string {
  return (
    `server ${name} was removed from the cluster. To let it join again as a new server, stop it, empty ` +
    'its data folder, and start it with retry_join'
  );
}
