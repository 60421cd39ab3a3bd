// Where the others are: what the group has on record, corrected by what they said of themselves since,
// and, while this node's own record of the group lags behind, by what it was told of others.

import type { NetAddress } from '../platform/net.ts';
import { membersOf } from '../raft/membership.ts';
import type { NodeId } from '../raft/node-id.ts';
import { EMPTY_GROUP, type GroupRecord, type MemberRecord } from '../replica/group-record.ts';
import { addressText } from './describe.ts';

const TOLD_MAX = 255;

export class Directory {
  readonly #self: NodeId;
  #group: GroupRecord = EMPTY_GROUP;
  /** Told by others, and not on record here. */
  readonly #toldByNode = new Map<NodeId, MemberRecord>();
  /** Where a member says that it is, when that is not where it was on record. */
  readonly #movedByNode = new Map<NodeId, NetAddress>();

  constructor(self: NodeId) {
    this.#self = self;
  }

  /** The group's record is this one. */
  follow(group: GroupRecord): void {
    const before = new Map(this.#group.members.map((member) => [member.node, member]));
    for (const { node, address } of group.members) {
      const was = before.get(node);
      // What is on record now is newer than what was said before.
      if (was !== undefined && !isSame(was.address, address)) this.#movedByNode.delete(node);
    }
    this.#group = group;
  }

  /** Others say that these are members. */
  tell(members: readonly MemberRecord[]): void {
    for (const member of members) {
      if (member.node === this.#self || this.#toldByNode.size >= TOLD_MAX) continue;
      this.#toldByNode.set(member.node, member);
    }
  }

  /** A member says itself where it is. */
  heard({ node, address }: MemberRecord): void {
    const known = this.#group.members.find((member) => member.node === node);
    if (known === undefined || node === this.#self) return;
    if (isSame(known.address, address)) this.#movedByNode.delete(node);
    else this.#movedByNode.set(node, address);
  }

  /** This node and that leader are on record: so is everybody else who counts. */
  settle(leader: NodeId | undefined): void {
    const members = membersOf(this.#group.membership);
    if (leader !== undefined && members.includes(leader) && members.includes(this.#self)) {
      this.#toldByNode.clear();
    }
  }

  memberOf(node: NodeId): MemberRecord | undefined {
    const member =
      this.#group.members.find((each) => each.node === node) ?? this.#toldByNode.get(node);
    const moved = this.#movedByNode.get(node);
    return member === undefined || moved === undefined ? member : { ...member, address: moved };
  }

  /** Whom this node should be linked with. */
  peers(): ReadonlyMap<NodeId, NetAddress> {
    const peers = new Map<NodeId, NetAddress>();
    for (const node of [...membersOf(this.#group.membership), ...this.#toldByNode.keys()]) {
      const member = this.memberOf(node);
      // A member without a port can be reached by nobody.
      if (node !== this.#self && member !== undefined && member.address.port > 0) {
        peers.set(node, member.address);
      }
    }
    return peers;
  }
}

export function isSame(one: NetAddress, other: NetAddress): boolean {
  return addressText(one) === addressText(other);
}
