// Who belongs to the group, and the arithmetic of changing that: one voter at a time, or through a
// joint state in which old and new voters must both agree. Pure: a refused change changes nothing.

import { assert } from '../../base/assert.ts';
import { unreachable } from '../../base/unreachable.ts';
import { type NodeId, unionOf } from '../node-id.ts';
import {
  leavesJoint,
  type MemberChange,
  type MembershipChange,
  protocolOf,
} from './membership-change.ts';

/** The members of a group; every list ascending and without doubles. */
export interface Membership {
  /** Those who vote; in a joint state, those who will vote alone afterwards. */
  readonly voters: readonly NodeId[];
  /** Those who voted before, while a joint state lasts; else empty. */
  readonly votersOutgoing: readonly NodeId[];
  /** Those who receive the log without a vote. Never voters, not even outgoing ones. */
  readonly learners: readonly NodeId[];
  /** Outgoing voters who become learners when the joint state is left. */
  readonly learnersNext: readonly NodeId[];
  /** The leader leaves the joint state by itself as soon as it may. */
  readonly autoLeave: boolean;
}

/** Why a change does not fit the membership it meets. */
export type MembershipRefusal =
  | 'already-joint'
  | 'not-joint'
  | 'no-voters-yet'
  | 'no-voters-left'
  | 'needs-joint'
  | 'simple-while-joint';

/** A changed membership, and the members whose progress must begin anew. */
export interface MembershipStep {
  readonly membership: Membership;
  readonly fresh: readonly NodeId[];
}

export const NO_MEMBERS: Membership = {
  voters: [],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
};

/** Everyone the leader keeps track of, ascending. */
export function membersOf(membership: Membership): readonly NodeId[] {
  return unionOf(membership.voters, membership.votersOutgoing, membership.learners);
}

/** Whether the leader keeps track of that node. */
export function isMemberOf(membership: Membership, node: NodeId): boolean {
  const { voters, votersOutgoing, learners } = membership;
  return voters.includes(node) || learners.includes(node) || votersOutgoing.includes(node);
}

/** Everyone who has a vote in either half, ascending. */
export function votersOf(membership: Membership): readonly NodeId[] {
  return unionOf(membership.voters, membership.votersOutgoing);
}

/** Whether old and new voters must both agree at present. */
export function isJoint(membership: Membership): boolean {
  return membership.votersOutgoing.length > 0;
}

/**
 * What a committed change makes of a membership: the next one, or a refusal, the same on every node that
 * starts from the same membership.
 */
export function changeStep(
  from: Membership,
  change: MembershipChange,
): MembershipStep | MembershipRefusal {
  if (leavesJoint(change)) return leaveJointStep(from);
  const protocol = protocolOf(change);
  if (protocol === 'simple') return simpleStep(from, change.changes);
  return enterJointStep(from, change.changes, { autoLeave: protocol === 'joint-auto-leave' });
}

/** Applies changes that, taken together, add or remove at most one voter. */
export function simpleStep(
  from: Membership,
  changes: readonly MemberChange[],
): MembershipStep | MembershipRefusal {
  if (isJoint(from)) return 'simple-while-joint';
  const draft = new Draft(from);
  if (!draft.applyAll(changes)) return 'no-voters-left';
  const step = draft.finish(false);
  return differenceCount(from.voters, step.membership.voters) > 1 ? 'needs-joint' : step;
}

/** Makes the present voters the outgoing half, and applies any changes to the incoming half. */
export function enterJointStep(
  from: Membership,
  changes: readonly MemberChange[],
  { autoLeave }: { readonly autoLeave: boolean },
): MembershipStep | MembershipRefusal {
  if (isJoint(from)) return 'already-joint';
  if (from.voters.length === 0) return 'no-voters-yet';
  const draft = new Draft({ ...from, votersOutgoing: from.voters });
  return draft.applyAll(changes) ? draft.finish(autoLeave) : 'no-voters-left';
}

/** Drops the outgoing half; who was to become a learner becomes one now. */
export function leaveJointStep(from: Membership): MembershipStep | MembershipRefusal {
  if (!isJoint(from)) return 'not-joint';
  const membership: Membership = {
    voters: from.voters,
    votersOutgoing: [],
    learners: unionOf(from.learners, from.learnersNext),
    learnersNext: [],
    autoLeave: false,
  };
  return { membership: checked(membership), fresh: [] };
}

/** Whether both say the same; lists that came over the wire may be in any order. */
export function sameMembership(a: Membership, b: Membership): boolean {
  return JSON.stringify(normalized(a)) === JSON.stringify(normalized(b));
}

/** The same membership with ascending lists; throws AssertionError where it contradicts itself. */
export function normalized(membership: Membership): Membership {
  return checked({
    voters: unionOf(membership.voters),
    votersOutgoing: unionOf(membership.votersOutgoing),
    learners: unionOf(membership.learners),
    learnersNext: unionOf(membership.learnersNext),
    autoLeave: membership.autoLeave,
  });
}

/** The changes under way; sets, because order is restored at the end. */
class Draft {
  readonly #voters: Set<NodeId>;
  readonly #outgoing: ReadonlySet<NodeId>;
  readonly #learners: Set<NodeId>;
  readonly #learnersNext: Set<NodeId>;
  readonly #fresh = new Set<NodeId>();

  constructor(from: Membership) {
    this.#voters = new Set(from.voters);
    this.#outgoing = new Set(from.votersOutgoing);
    this.#learners = new Set(from.learners);
    this.#learnersNext = new Set(from.learnersNext);
  }

  /** False when no incoming voter is left. */
  applyAll(changes: readonly MemberChange[]): boolean {
    for (const change of changes) {
      if (change.node !== 0) this.#apply(change);
    }
    return this.#voters.size > 0;
  }

  finish(autoLeave: boolean): MembershipStep {
    const membership: Membership = {
      voters: unionOf([...this.#voters]),
      votersOutgoing: unionOf([...this.#outgoing]),
      learners: unionOf([...this.#learners]),
      learnersNext: unionOf([...this.#learnersNext]),
      autoLeave,
    };
    return { membership: checked(membership), fresh: unionOf([...this.#fresh]) };
  }

  #apply({ kind, node }: MemberChange): void {
    switch (kind) {
      case 'add-voter':
        this.#addVoter(node);
        return;
      case 'add-learner':
        this.#addLearner(node);
        return;
      case 'remove':
        this.#remove(node);
        return;
      case 'update':
        return;
      default:
        unreachable(kind);
    }
  }

  #addVoter(node: NodeId): void {
    if (!this.#tracks(node)) this.#fresh.add(node);
    this.#learners.delete(node);
    this.#learnersNext.delete(node);
    this.#voters.add(node);
  }

  #addLearner(node: NodeId): void {
    if (!this.#tracks(node)) this.#fresh.add(node);
    this.#voters.delete(node);
    // Nobody is voter and learner at once: an outgoing voter must wait until its half is gone.
    if (this.#outgoing.has(node)) this.#learnersNext.add(node);
    else this.#learners.add(node);
  }

  #remove(node: NodeId): void {
    this.#voters.delete(node);
    this.#learners.delete(node);
    this.#learnersNext.delete(node);
  }

  #tracks(node: NodeId): boolean {
    return this.#voters.has(node) || this.#outgoing.has(node) || this.#learners.has(node);
  }
}

function checked(membership: Membership): Membership {
  const { voters, votersOutgoing, learners, learnersNext, autoLeave } = membership;
  for (const learner of learners) {
    assert(!voters.includes(learner), 'a learner is also a voter', membership);
    assert(!votersOutgoing.includes(learner), 'a learner is also an outgoing voter', membership);
  }
  for (const learner of learnersNext) {
    assert(votersOutgoing.includes(learner), 'a staged learner was no voter', membership);
    assert(!voters.includes(learner), 'a staged learner stays a voter', membership);
  }
  const hasMembers = votersOutgoing.length + learners.length > 0;
  assert(voters.length > 0 || !hasMembers, 'a group without voters', membership);
  if (!isJoint(membership)) assert(!autoLeave, 'nothing to leave automatically', membership);
  return membership;
}

function differenceCount(a: readonly NodeId[], b: readonly NodeId[]): number {
  const gone = a.filter((node) => !b.includes(node)).length;
  const come = b.filter((node) => !a.includes(node)).length;
  return gone + come;
}
