// The change of membership that this node is asked for, from the asking to the answer; one at a time.
// It may be proposed once the leader has committed in its term, so that no change of an earlier leader
// can still come up beside it. It is answered when it is applied here and an entry behind it is
// committed: whoever acknowledged that entry had heard that the change is committed, so a quorum of the
// new membership knows of it, whoever dies next.

import { NO_DATA } from '../../raft/log/entry.ts';
import {
  changeStep,
  isJoint,
  type Membership,
  sameMembership,
} from '../../raft/membership/membership.ts';
import {
  leavesJoint,
  MEMBER_CHANGES_MAX,
  type MembershipChange,
} from '../../raft/membership/membership-change.ts';
import { NO_NODE, type NodeId } from '../../raft/node-id.ts';
import type { RawNode, Status } from '../../raft/raw-node.ts';
import { type GroupRecord, nextGroupRecord } from '../group-record.ts';
import { GroupRefusal } from '../group-refusal.ts';
import { ReplicaError } from '../replica.ts';
import type { AppliedChange } from '../workers/apply-worker.ts';

/** Bytes of a change's context: some hundred members with their addresses. */
const CONTEXT_BYTES_MAX = 64 * 1024;

type Stage =
  /** Waits for its turn of the loop. */
  | { readonly kind: 'asked' }
  /** It removes this leader: another one must lead first. */
  | { readonly kind: 'handing-over'; readonly ticksLeft: number }
  | { readonly kind: 'appended'; readonly index: number; readonly term: number }
  /** Applied, but the joint state that it entered is not left yet. */
  | { readonly kind: 'joint' }
  /** Applied, while a transfer of the leadership lets no entry in behind it. */
  | { readonly kind: 'applied' }
  /** Known to a quorum when the entry at `index` is committed. */
  | { readonly kind: 'spreading'; readonly index: number };

interface Pending {
  readonly change: MembershipChange;
  stage: Stage;
  resolve(record: GroupRecord): void;
  reject(error: Error): void;
}

export interface MembershipProposalsOptions {
  readonly node: RawNode;
  /** As of the last applied entry. */
  readonly record: () => GroupRecord;
  /** Who could take the leadership over, the best one first. */
  readonly successors: () => readonly NodeId[];
  /** A leader that is to be removed finds a successor in that time, or stays. */
  readonly handOverTicks: number;
}

export class MembershipProposals {
  readonly #options: MembershipProposalsOptions;
  #pending: Pending | undefined;

  constructor(options: MembershipProposalsOptions) {
    this.#options = options;
  }

  ask(change: MembershipChange): Promise<GroupRecord> {
    if (this.#pending !== undefined) {
      const says = 'another change of the group is under way here';
      return Promise.reject(new GroupRefusal('change-in-flight', says, this.#leader));
    }
    return new Promise((resolve, reject) => {
      this.#pending = { change, stage: { kind: 'asked' }, resolve, reject };
    });
  }

  /** Proposes what was asked for since the last turn, and what could not be proposed then. */
  proposeAsked(): void {
    if (this.#pending?.stage.kind === 'applied') this.#setStage(this.#spreading());
    if (this.#pending?.stage.kind !== 'asked') return;
    const { change } = this.#pending;
    const status = this.#options.node.status();
    const next = this.#nextOf(change, status);
    if (next instanceof Error) this.#reject(next);
    else if (!next.voters.includes(status.id)) this.#handOver(next);
    else this.#propose(change);
  }

  /** A leader from whom nobody takes over goes on. */
  onTick(): void {
    const stage = this.#pending?.stage;
    if (stage?.kind !== 'handing-over') return;
    const { ticksLeft } = stage;
    if (ticksLeft > 0) {
      this.#setStage({ kind: 'handing-over', ticksLeft: ticksLeft - 1 });
      return;
    }
    const says = 'this node led and is to be removed, and nobody is known to have taken over';
    this.#reject(new GroupRefusal('change-in-flight', says, this.#leader));
  }

  /**
   * To be called after raft has heard of the changes, with the last index of the batch that they are of, and that
   * up to which all is applied.
   */
  onApplied(
    changes: readonly AppliedChange[],
    {
      throughIndex,
      appliedIndex,
    }: { readonly throughIndex: number; readonly appliedIndex: number },
  ): void {
    for (const change of changes) this.#onChange(change);
    // What stands there now is another leader's.
    this.#giveUpAppended((at) => at <= throughIndex);
    if (this.#pending?.stage.kind === 'joint') this.#onJoint();
    const stage = this.#pending?.stage;
    if (stage?.kind === 'spreading' && stage.index <= appliedIndex) this.#resolve();
  }

  /** A snapshot has taken the place of all entries up to `index`. */
  onInstalled(index: number): void {
    this.#giveUpAppended((at) => at <= index);
  }

  /** `knownIndex`: up to there entries will be applied here, whoever leads. */
  onLeadershipLost(knownIndex: number): void {
    this.#giveUpAppended((at) => at > knownIndex);
    const kind = this.#pending?.stage.kind;
    // It is committed: that a quorum knows is the next leader's matter.
    if (kind === 'applied' || kind === 'spreading') this.#resolve();
    // The next leader leaves the joint state, but who knows when.
    else if (kind === 'joint') this.#rejectUnknown();
  }

  /** Another node leads, or none. */
  onLeader(leader: NodeId): void {
    if (this.#pending?.stage.kind !== 'handing-over') return;
    const { id, standing } = this.#options.node.status();
    if (standing === 'leader' || leader === NO_NODE || leader === id) return;
    const says = 'this node led and is to be removed: its successor can do it';
    this.#reject(new GroupRefusal('not-leader', says, leader));
  }

  /** `closed`: for what was not proposed; what was may have come to pass. */
  rejectAll(closed: Error, unknown: Error): void {
    const kind = this.#pending?.stage.kind;
    if (kind === undefined) return;
    this.#reject(kind === 'asked' || kind === 'handing-over' ? closed : unknown);
  }

  get #leader(): NodeId | undefined {
    const { leader } = this.#options.node.status();
    return leader === NO_NODE ? undefined : leader;
  }

  /** The membership that the change leads to, or why it is not to be proposed. */
  #nextOf(change: MembershipChange, status: Status): Membership | Error {
    if (status.standing !== 'leader' || status.transferTarget !== NO_NODE) {
      const leader = status.leader === status.id ? undefined : this.#leader;
      return new GroupRefusal('not-leader', 'this node does not lead', leader);
    }
    if (!status.hasCommittedInTerm) {
      const says = 'this leader has not committed anything in its term yet';
      return new GroupRefusal('change-in-flight', says, status.id);
    }
    if (isJoint(status.membership) && !leavesJoint(change)) {
      const says = 'the group is between two memberships';
      return new GroupRefusal('change-in-flight', says, status.id);
    }
    if (change.changes.length > MEMBER_CHANGES_MAX || change.context.length > CONTEXT_BYTES_MAX) {
      return new ReplicaError('too-large', 'the change of the group is too large');
    }
    const step = changeStep(status.membership, change);
    if (typeof step === 'string') return refused(`it does not fit the group as it is: ${step}`);
    return this.#comesToPass(change, step.membership) ?? step.membership;
  }

  /** What is logged is applied on every node alike: nothing that one of them could not read. */
  #comesToPass(change: MembershipChange, expected: Membership): Error | undefined {
    try {
      const { membership } = nextGroupRecord(this.#options.record(), change);
      if (sameMembership(membership, expected)) return undefined;
      return refused("a group without a record begins with its own node's");
    } catch (error) {
      return refused(`its context cannot be read: ${String(error)}`);
    }
  }

  #handOver(next: Membership): void {
    const successor = this.#options.successors().find((node) => next.voters.includes(node));
    if (successor === undefined) {
      this.#reject(refused('it removes the leader, and no voter that stays is alive'));
      return;
    }
    this.#setStage({ kind: 'handing-over', ticksLeft: this.#options.handOverTicks });
    this.#options.node.transferLeadership(successor);
  }

  #propose(change: MembershipChange): void {
    const result = this.#options.node.proposeMembership(change);
    if (result.kind === 'appended' && result.changeIgnored === undefined) {
      this.#setStage({ kind: 'appended', index: result.index, term: result.term });
    } else if (result.kind === 'appended') {
      const says = `an earlier change is not through yet: ${result.changeIgnored?.reason}`;
      this.#reject(new GroupRefusal('change-in-flight', says, this.#leader));
    } else if (result.kind === 'refused' && result.reason === 'uncommitted-limit') {
      this.#reject(new ReplicaError('queue-full', 'too much waits for a quorum already'));
    } else {
      this.#reject(new GroupRefusal('not-leader', 'this node takes no changes'));
    }
  }

  #onChange({ index, term, record }: AppliedChange): void {
    const stage = this.#pending?.stage;
    if (stage?.kind !== 'appended' || stage.index !== index || stage.term !== term) return;
    const waits = isJoint(record.membership) && record.membership.autoLeave;
    this.#setStage(waits ? { kind: 'joint' } : this.#spreading());
  }

  #onJoint(): void {
    if (!isJoint(this.#options.record().membership)) this.#setStage(this.#spreading());
  }

  /** An entry behind the change; where this node leads no more, the change alone must do. */
  #spreading(): Stage {
    const { node } = this.#options;
    const result = node.propose(NO_DATA);
    if (result.kind === 'appended') return { kind: 'spreading', index: result.index };
    if (node.status().standing === 'leader') return { kind: 'applied' };
    return { kind: 'spreading', index: 0 };
  }

  #giveUpAppended(isLost: (index: number) => boolean): void {
    const stage = this.#pending?.stage;
    if (stage?.kind === 'appended' && isLost(stage.index)) this.#rejectUnknown();
  }

  #rejectUnknown(): void {
    const says = 'this node lost its leadership under way';
    this.#reject(new ReplicaError('outcome-unknown', says));
  }

  #setStage(stage: Stage): void {
    if (this.#pending !== undefined) this.#pending.stage = stage;
  }

  #resolve(): void {
    this.#pending?.resolve(this.#options.record());
    this.#pending = undefined;
  }

  #reject(error: Error): void {
    this.#pending?.reject(error);
    this.#pending = undefined;
  }
}

function refused(says: string): GroupRefusal {
  return new GroupRefusal('refused', says);
}
