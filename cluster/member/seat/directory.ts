// Where the others are: what the group has on record, corrected by what they said of themselves since. This
// node's own record may lag behind: whoever is a member as others say, or was one by the record before, is
// unsettled, and counts as a member until the record is proven to be the present one.

import { addressText, type NetAddress } from '../../platform/net.ts';
import { membersOf } from '../../raft/membership/membership.ts';
import type { NodeId } from '../../raft/node-id.ts';
import { EMPTY_GROUP, type GroupRecord, type MemberRecord } from '../../replica/group-record.ts';

/** Beyond it the one that was named longest ago is forgotten. */
const UNSETTLED_MAX = 256;

export class Directory {
  readonly #self: NodeId;
  #group: GroupRecord = EMPTY_GROUP;
  /** As they were named last, whether or not they are on record here. */
  readonly #unsettledByNode = new Map<NodeId, MemberRecord>();
  /** Where a member says that it is, when that is not where it was on record. */
  readonly #movedByNode = new Map<NodeId, NetAddress>();

  constructor(self: NodeId) {
    this.#self = self;
  }

  /** The group's record is this one. */
  follow(group: GroupRecord): void {
    const before = this.#group;
    this.#group = group;
    for (const was of before.members) {
      const now = this.#onRecord(was.node);
      // An old removal may be followed by an admission that is not applied here yet.
      if (now === undefined) this.#unsettle(was);
      // What is on record now is newer than what was said before.
      else if (!isSame(was.address, now.address)) this.#movedByNode.delete(was.node);
    }
  }

  /** Others say that these are members. */
  tell(members: readonly MemberRecord[]): void {
    for (const member of members) this.#unsettle(member);
  }

  /** A member says itself where it is. */
  heard({ node, address }: MemberRecord): void {
    const known = this.#onRecord(node) ?? this.#unsettledByNode.get(node);
    if (known === undefined || node === this.#self) return;
    if (isSame(known.address, address)) this.#movedByNode.delete(node);
    else this.#movedByNode.set(node, address);
  }

  /** Who counts as a member beside what is on record. */
  unsettled(): readonly MemberRecord[] {
    return [...this.#unsettledByNode.values()];
  }

  /**
   * The record holds all that was decided when these were unsettled: whoever of them is not on it has left.
   * What was said of one since then may be newer.
   */
  settle(members: readonly MemberRecord[]): void {
    for (const member of members) {
      const { node } = member;
      if (this.#unsettledByNode.get(node) !== member) continue;
      this.#unsettledByNode.delete(node);
      if (this.#onRecord(node) === undefined) this.#movedByNode.delete(node);
    }
  }

  memberOf(node: NodeId): MemberRecord | undefined {
    const member = this.#onRecord(node) ?? this.#unsettledByNode.get(node);
    const moved = this.#movedByNode.get(node);
    return member === undefined || moved === undefined ? member : { ...member, address: moved };
  }

  /** Whom this node should be linked with. */
  peers(): ReadonlyMap<NodeId, NetAddress> {
    const peers = new Map<NodeId, NetAddress>();
    for (const node of [...membersOf(this.#group.membership), ...this.#unsettledByNode.keys()]) {
      const member = this.memberOf(node);
      // A member without a port can be reached by nobody.
      if (node !== this.#self && member !== undefined && member.address.port > 0) {
        peers.set(node, member.address);
      }
    }
    return peers;
  }

  #onRecord(node: NodeId): MemberRecord | undefined {
    return this.#group.members.find((member) => member.node === node);
  }

  #unsettle(member: MemberRecord): void {
    const { node } = member;
    if (node === this.#self) return;
    this.#unsettledByNode.delete(node);
    const [oldest] = this.#unsettledByNode.keys();
    if (this.#unsettledByNode.size >= UNSETTLED_MAX && oldest !== undefined) {
      this.#unsettledByNode.delete(oldest);
    }
    this.#unsettledByNode.set(node, member);
  }
}

function isSame(one: NetAddress, other: NetAddress): boolean {
  return addressText(one) === addressText(other);
}
