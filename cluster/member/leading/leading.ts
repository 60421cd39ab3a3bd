// What a member does while it leads, beside leading: it takes others on record, lets them in and out,
// and carries out what autopilot finds due. Every change goes through one line, so none overlaps another.

import type { RequireStill } from '../../base/require-still.ts';
import { unreachable } from '../../base/unreachable.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { votersOf } from '../../raft/membership/membership.ts';
import type { MembershipChange } from '../../raft/membership/membership-change.ts';
import type { NodeId } from '../../raft/node-id.ts';
import {
  type AutopilotSettings,
  encodeGroupContext,
  type GroupRecord,
  type MemberRecord,
} from '../../replica/group-record.ts';
import { GroupRefusal } from '../../replica/group-refusal.ts';
import type { GroupReplica } from '../../replica/group-replica.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { AutopilotState, MemberView } from '../group-member.ts';
import type { MemberLimits, MemberTiming } from '../member-timing.ts';
import { type Asking, admissionOf, type KnownOf, selfRecordChange } from './admission.ts';
import { Autopilot, type Observation } from './autopilot.ts';
import { Changes } from './changes.ts';
import { removalChange } from './removal.ts';

/** Who answers was heard within so many heartbeats: one may be late, or this process have stood still. */
const ANSWERING_HEARTBEATS = 5;

export interface LeadingOptions {
  readonly replica: GroupReplica<unknown>;
  readonly self: () => MemberRecord;
  readonly views: () => readonly MemberView[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timing: MemberTiming;
  readonly limits: MemberLimits;
  readonly heartbeatMs: number;
}

export class Leading {
  readonly #options: LeadingOptions;
  readonly #changes: Changes;
  #autopilot = new Autopilot();
  /** The term that this node's observations are of, and when they began. */
  #observedTerm = 0;
  #observedSinceMs = 0;

  constructor(options: LeadingOptions) {
    this.#options = options;
    this.#changes = new Changes(options);
  }

  /** Whether this node leads and may change the group. */
  get isLeading(): boolean {
    const { replica } = this.#options;
    return replica.status().standing === 'leader' && replica.groupStatus().hasCommittedInTerm;
  }

  /** To be done again and again while this node leads. */
  async look(): Promise<void> {
    await this.#changes.propose((group) => this.#selfChange(group));
    await this.#changes.propose((group) => this.#observe(group));
  }

  /** Another node wants to join, or is on record with what is not so any more. Rejects with RpcRefusal. */
  async admit(asking: Asking): Promise<void> {
    const { replica, logger } = this.#options;
    if (!this.isLeading) throw new RpcRefusal('not-leader', 'this server does not lead');
    // What an earlier leader has answered is in the record only when it is applied here.
    await replica.readBarrier();
    await this.#changes.propose((group) => {
      if (this.#selfChange(group) !== undefined) {
        throw new RpcRefusal('not-leader', 'the leader is not ready yet');
      }
      const admission = admissionOf(asking, group, ({ node }) => this.#knownOf(node));
      if (admission.kind === 'known') return undefined;
      if (admission.kind === 'change') {
        logger.info(describe(admission.change, asking.record), 'a server comes on record');
        return admission.change;
      }
      throw new RpcRefusal(admission.kind, admission.says);
    });
  }

  /** Rejects with GroupRefusal or ReplicaError, and with what `requireStill` throws. */
  async remove(node: NodeId, requireStill?: RequireStill): Promise<void> {
    this.#requireLeader();
    await this.#changes.propose(() => {
      requireStill?.();
      return removalChange(node, this.#options.views(), (member) => this.#isAnswering(member));
    });
  }

  /** Takes their votes away, of those that have one. Rejects with GroupRefusal or ReplicaError. */
  async unseat(nodes: readonly NodeId[]): Promise<void> {
    this.#requireLeader();
    await this.#changes.propose(({ membership }) => {
      const voters = nodes.filter((node) => membership.voters.includes(node));
      if (voters.length === 0) return undefined;
      this.#options.logger.warn({ voters }, 'servers whose states are wrong lose their votes');
      const changes = voters.map((node) => ({ kind: 'add-learner', node }) as const);
      return { transition: 'auto', changes, context: new Uint8Array(0) };
    });
  }

  /** False when `ifIndex` does not fit. Rejects with what `requireStill` throws, too. */
  setAutopilot(
    autopilot: AutopilotSettings,
    ifIndex: number | undefined,
    requireStill?: RequireStill,
  ): Promise<boolean> {
    this.#requireLeader();
    const { node } = this.#options.self();
    const context = encodeGroupContext({ autopilot });
    return this.#changes.propose(({ autopilotIndex }) => {
      requireStill?.();
      if (ifIndex !== undefined && ifIndex !== autopilotIndex) return undefined;
      return { transition: 'auto', changes: [{ kind: 'update', node }], context };
    });
  }

  autopilotState(): AutopilotState {
    this.#requireLeader();
    const { replica, views } = this.#options;
    this.#takeIn(replica.groupRecord());
    return this.#autopilot.state({ members: views(), term: replica.status().term });
  }

  /** Resolves when another node leads. Rejects with GroupRefusal. */
  async transfer(to: NodeId | undefined): Promise<void> {
    this.#requireLeader();
    const { replica } = this.#options;
    if (to === this.#options.self().node) return;
    const { voters } = replica.groupRecord().membership;
    const isVoter = to === undefined || voters.includes(to);
    const result = isVoter ? await replica.handOver(to) : 'nobody';
    switch (result) {
      case 'done':
        return;
      case 'nobody':
        throw new GroupRefusal('refused', 'there is no other voter that could lead');
      case 'not-in-time':
        throw new GroupRefusal('refused', 'the other server did not take over in time');
      default:
        unreachable(result);
    }
  }

  /** Whoever a new leader has not heard yet may only be slower than its election was. */
  #knownOf(node: NodeId): KnownOf {
    const { views, clock, timing } = this.#options;
    this.#followTerm();
    const isNew = clock.monotonicMs() - this.#observedSinceMs < timing.aliveMs;
    const view = views().find((each) => each.node === node);
    // Whose vote goes only now votes until the group is between its memberships no more.
    const hasVote = votersOf(this.#options.replica.groupRecord().membership).includes(node);
    const isReliedOn = hasVote || (view?.lastIndex ?? 0) > 0;
    return { isAlive: isNew || view?.isAlive === true, isReliedOn };
  }

  /** Heard within the last heartbeats, over a link that stands: who died a moment ago is none of those. */
  #isAnswering({ node, isSelf }: MemberView): boolean {
    if (isSelf) return true;
    const { replica, heartbeatMs } = this.#options;
    const { followers } = replica.groupStatus();
    const { lastHeardMs, isLost } = followers.find((follower) => follower.node === node) ?? {};
    if (lastHeardMs === undefined || isLost === true) return false;
    return lastHeardMs <= ANSWERING_HEARTBEATS * heartbeatMs;
  }

  #followTerm(): void {
    const { replica, clock } = this.#options;
    const { term } = replica.status();
    if (term === this.#observedTerm) return;
    this.#autopilot = new Autopilot();
    this.#observedTerm = term;
    this.#observedSinceMs = clock.monotonicMs();
  }

  #requireLeader(): void {
    const { replica } = this.#options;
    if (replica.status().standing === 'leader') return;
    throw new GroupRefusal('not-leader', 'this server does not lead', replica.lead().leader);
  }

  #selfChange(group: GroupRecord): MembershipChange | undefined {
    if (!this.isLeading) return undefined;
    return selfRecordChange(this.#options.self(), group);
  }

  #observe(group: GroupRecord): MembershipChange | undefined {
    if (!this.isLeading) return undefined;
    const change = this.#takeIn(group);
    if (change !== undefined)
      this.#options.logger.info(describe(change), 'autopilot changes the group');
    return change;
  }

  #takeIn(group: GroupRecord): MembershipChange | undefined {
    const { replica, views, clock, timing, heartbeatMs } = this.#options;
    const { term, lastIndex } = replica.status();
    this.#followTerm();
    const observation: Observation = {
      nowMs: clock.monotonicMs(),
      wallMs: clock.wallMs(),
      members: views(),
      lastIndex,
      term,
      settings: group.autopilot,
      heartbeatMs,
      timing,
    };
    return this.#autopilot.observe(observation);
  }
}

function describe(
  { changes }: MembershipChange,
  record?: MemberRecord,
): Readonly<Record<string, string>> {
  const steps = changes.map(({ kind, node }) => `${kind} ${node}`).join(', ');
  return record === undefined ? { steps } : { steps, name: record.name, id: record.id };
}
