// The replica of a node in a group. One loop owns the raft node: inputs queue, a turn takes them all,
// and then carries out what raft wants: messages leave, the log's worker writes, the machine's worker
// applies. The loop never waits; workers report back as inputs. Nothing that promises leaves before its
// write is done. The first failure of a store or of an invariant ends it: nothing is tried again.

import { assert } from '../base/assert.ts';
import { unreachable } from '../base/unreachable.ts';
import { membersOf, sameMembership } from '../raft/membership/membership.ts';
import type { MembershipChange } from '../raft/membership/membership-change.ts';
import type { Message, SnapshotMessage } from '../raft/message.ts';
import { NO_NODE, type NodeId } from '../raft/node-id.ts';
import { DEFAULT_GROUP_LIMITS, DEFAULT_GROUP_TIMING } from './group-limits.ts';
import type { GroupRecord } from './group-record.ts';
import { GroupRefusal } from './group-refusal.ts';
import type {
  GroupLead,
  GroupReplica,
  GroupStatus,
  RaftReplicaOptions,
  SnapshotIntake,
} from './group-replica.ts';
import type { HandOverResult } from './leading/hand-over.ts';
import { Listeners } from './listeners.ts';
import { ReplicaError, type ReplicaStatus } from './replica.ts';
import { createParts, type ReplicaLoop, type ReplicaParts } from './replica-parts.ts';
import { proposeQueued } from './requests/propose-queued.ts';
import { groupLeadOf, groupStatusOf, replicaStatusOf } from './status-views.ts';
import { Inbox, type Input } from './turn/inbox.ts';
import { reasonToIgnore, screenSnapshot } from './turn/screening.ts';
import { type Applied, type AppliedChange, recordOf } from './workers/apply-worker.ts';

/** Starts as a follower; a group of one leads as soon as its disk has its vote. */
export function openRaftReplica<Outcome>(
  options: RaftReplicaOptions<Outcome>,
): GroupReplica<Outcome> {
  return new RaftReplica(options);
}

class RaftReplica<Outcome> implements GroupReplica<Outcome> {
  readonly #options: RaftReplicaOptions<Outcome>;
  readonly #parts: ReplicaParts<Outcome>;
  readonly #inbox: Inbox<Applied<Outcome>>;
  readonly #leaderListeners = new Listeners();
  readonly #groupListeners = new Listeners();
  /** As raft has heard of it: that of the machine, but for what is still in the inbox. */
  #record: GroupRecord;
  /** That of the machine, decoded once. */
  #shown: { readonly bytes: Uint8Array | undefined; readonly record: GroupRecord };
  /** The term that this node leads, as of the last Ready; 0 if it does not. */
  #ledTerm = 0;
  #ledSinceMs = 0;
  #leader: NodeId = NO_NODE;
  #hasNewLeader = false;
  #hasNewRecord = false;
  #isGathering = false;
  #isAwake = false;
  #isProving = false;
  #isStopped = false;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RaftReplicaOptions<Outcome>) {
    const limits = { ...DEFAULT_GROUP_LIMITS, ...options.limits };
    const timing = { ...DEFAULT_GROUP_TIMING, ...options.timing };
    this.#options = options;
    this.#record = recordOf(options.machine);
    this.#shown = { bytes: options.machine.groupRecord, record: this.#record };
    this.#inbox = new Inbox(limits);
    this.#parts = createParts({ options, limits, timing, loop: this.#asLoop() });
    this.#parts.campaigning.attemptIfAlone();
    // What is committed and not applied need not wait for the first tick.
    this.#wake();
  }

  propose(payload: Uint8Array): Promise<Outcome> {
    const closed = this.#closedError();
    if (closed !== undefined) return Promise.reject(closed);
    const outcome = this.#parts.proposals.add(payload);
    this.#gather();
    return outcome;
  }

  readBarrier(): Promise<void> {
    const closed = this.#closedError();
    if (closed !== undefined) return Promise.reject(closed);
    const passed = this.#parts.reads.add();
    this.#gather();
    return passed;
  }

  proposeMembership(change: MembershipChange): Promise<GroupRecord> {
    const closed = this.#closedError();
    if (closed !== undefined) return Promise.reject(closed);
    const applied = this.#parts.changes.ask(change);
    this.#wake();
    return applied;
  }

  receive(message: Message): void {
    const why = reasonToIgnore(message, this.#options.nodeId);
    if (why === undefined) {
      this.#give({ kind: 'message', message });
    } else {
      const { type, from, to } = message;
      this.#options.logger.warn({ type, from, to, why }, 'a message was ignored');
    }
  }

  beginSnapshot(message: SnapshotMessage): Promise<SnapshotIntake> {
    const closed = this.#closedError();
    if (closed !== undefined) return Promise.reject(closed);
    const screening = screenSnapshot(message, this.#parts.node.status());
    if (screening.kind === 'wanted') return this.#parts.snapshots.begin(message);
    if (screening.kind === 'outdated') this.#give({ kind: 'message', message });
    const says = `the snapshot is not taken: ${screening.why}`;
    return Promise.reject(new GroupRefusal('refused', says));
  }

  linkClosed(node: NodeId): void {
    this.#give({ kind: 'link-closed', node });
  }

  transferLeadership(target: NodeId): void {
    this.#give({ kind: 'transfer', target });
  }

  handOver(target?: NodeId): Promise<HandOverResult> {
    const isLeading = this.#parts.node.status().standing === 'leader';
    if (this.#isStopped || !isLeading) return Promise.resolve('done');
    return this.#parts.handOver.begin(target);
  }

  /** A group of entries may land in several batches: read barriers go by each, raft hears of them all. */
  groupRecord(): GroupRecord {
    const { machine } = this.#options;
    const bytes = machine.groupRecord;
    if (bytes !== this.#shown.bytes) this.#shown = { bytes, record: recordOf(machine) };
    return this.#shown.record;
  }

  onLeaderChanged(listener: () => void): () => void {
    return this.#leaderListeners.add(listener);
  }

  onGroupChanged(listener: () => void): () => void {
    return this.#groupListeners.add(listener);
  }

  status(): ReplicaStatus {
    return replicaStatusOf({
      status: this.#parts.node.status(),
      log: this.#options.log,
      appliedIndex: this.#parts.applies.appliedIndex,
      proposals: this.#parts.proposals,
    });
  }

  lead(): GroupLead {
    const { node, contact, diskWatch } = this.#parts;
    return groupLeadOf({ status: node.status(), contact, diskWatch });
  }

  groupStatus(): GroupStatus {
    return groupStatusOf({
      status: this.#parts.node.status(),
      progress: this.#parts.node.progress(),
      contact: this.#parts.contact,
      diskWatch: this.#parts.diskWatch,
      inbox: this.#inbox,
    });
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  #asLoop(): ReplicaLoop<Outcome> {
    return {
      give: (input) => this.#give(input),
      fail: (error) => this.#fail(error),
      followStanding: () => this.#followStanding(),
      record: () => this.#record,
      leader: () => this.#leader,
      ledSinceMs: () => this.#ledSinceMs,
    };
  }

  #give(input: Input<Applied<Outcome>>): void {
    if (this.#isStopped) return;
    this.#inbox.add(input);
    this.#wake();
  }

  /**
   * One turn for all that callers ask for while the event loop does what it has at hand: the requests of
   * many sockets share one batch of the log, one message to each follower and one round of reads.
   */
  #gather(): void {
    if (this.#isGathering) return;
    this.#isGathering = true;
    this.#options.clock.after(0, () => {
      this.#isGathering = false;
      this.#wake();
    });
  }

  /** One turn for all that comes in before the next microtask. */
  #wake(): void {
    if (this.#isAwake || this.#isStopped) return;
    this.#isAwake = true;
    void Promise.resolve().then(() => this.#turn());
  }

  #turn(): void {
    this.#isAwake = false;
    if (this.#isStopped) return;
    try {
      for (const input of this.#inbox.take()) this.#takeInput(input);
      proposeQueued(this.#parts.node, this.#parts.proposals);
      this.#parts.changes.proposeAsked();
      this.#parts.work.carryOutAll();
      this.#parts.snapshots.endTurn();
      this.#tellListeners();
    } catch (error) {
      this.#fail(error);
    }
  }

  #takeInput(input: Input<Applied<Outcome>>): void {
    switch (input.kind) {
      case 'message':
        this.#parts.contact.onMessage(input.message, this.#parts.applies.appliedIndex);
        this.#parts.node.step(input.message);
        return;
      case 'tick':
        this.#onTick();
        return;
      case 'stored':
        this.#parts.work.deliver(input.replies);
        this.#parts.campaigning.onStored();
        this.#watchDisk();
        return;
      case 'applied':
        this.#onApplied(input.applied);
        this.#watchDisk();
        return;
      case 'snapshot-taken':
        this.#parts.snapshots.stepTaken(this.#parts.node, input.taken);
        return;
      case 'installed':
        this.#onInstalled(input.index);
        return;
      case 'snapshot-sent':
        this.#parts.node.reportSnapshot(input.node, { delivered: input.delivered });
        return;
      case 'link-closed':
        this.#onLinkClosed(input.node);
        return;
      case 'campaign':
        this.#parts.campaigning.attempt();
        return;
      case 'transfer':
        this.#onTransfer(input.target);
        return;
      default:
        unreachable(input);
    }
  }

  /** To this node itself: that ends a transfer under way, and is no wish of a follower to lead. */
  #onTransfer(target: NodeId): void {
    const { id, standing } = this.#parts.node.status();
    if (target !== id || standing === 'leader') this.#parts.node.transferLeadership(target);
  }

  #onTick(): void {
    this.#parts.contact.onTick();
    this.#parts.appends.onTick();
    this.#parts.applies.onTick();
    this.#watchDisk();
    this.#watchProposals();
    this.#parts.reads.onTick();
    // With a disk that does not answer, this node could only win an election, not lead.
    if (!this.#parts.diskWatch.isStalled || this.#ledTerm > 0) this.#parts.node.tick();
    this.#parts.changes.onTick();
    this.#proveLevel();
  }

  /** In doubt whether all is here that the leader has committed, and now and then without, this node asks. */
  #proveLevel(): void {
    const { contact, reads } = this.#parts;
    const { doubt } = contact;
    if (doubt === undefined || this.#isProving || this.#ledTerm > 0) return;
    this.#isProving = true;
    const beganAtMs = this.#options.clock.monotonicMs();
    const end = (): void => {
      this.#isProving = false;
    };
    reads
      .add()
      .then(() => contact.prove(doubt, beganAtMs))
      // The next tick asks again.
      .then(end, end);
  }

  /** A machine that does not answer is a disk that does not: what is committed has no outcome. */
  #watchDisk(): void {
    const { writingTicks } = this.#parts.appends;
    const { applyingTicks } = this.#parts.applies;
    const step = this.#parts.diskWatch.look(Math.max(writingTicks, applyingTicks));
    if (step === 'none') return;
    this.#options.logger.error({ writingTicks, applyingTicks, step }, 'the disk does not answer');
    if (this.#ledTerm === 0) this.#giveUpAfter(this.#parts.applies.appliedIndex);
    if (step !== 'hand-over' || this.#ledTerm === 0) return;
    const [successor] = this.#parts.successors();
    if (successor !== undefined) this.#parts.node.transferLeadership(successor);
  }

  /** Of a leader whose followers answer and have nothing of it on their disks nothing else would tell. */
  #watchProposals(): void {
    const step = this.#parts.proposals.onTick();
    if (step === 'none') return;
    const { logger } = this.#options;
    const { count } = this.#parts.proposals;
    if (step === 'go-on') {
      logger.info({ count }, 'writes come through again');
      return;
    }
    const { lastIndex } = this.#parts.node.status();
    const onDisks = Object.fromEntries(
      this.groupStatus().followers.map(({ node, matchIndex }) => [node, matchIndex]),
    );
    logger.error({ count, lastIndex, onDisks }, 'no write comes to a quorum of disks');
  }

  #onApplied({ entries, outcomes, changes, replies }: Applied<Outcome>): void {
    for (const each of changes) this.#onChange(each);
    this.#parts.work.deliver(replies);
    entries.forEach((entry, position) => {
      this.#parts.proposals.applied(entry, outcomes[position]!);
    });
    const { appliedIndex } = this.#parts.applies;
    const throughIndex = entries.at(-1)?.index ?? 0;
    this.#parts.changes.onApplied(changes, { throughIndex, appliedIndex });
    this.#parts.reads.release(appliedIndex);
    this.#parts.contact.onApplied(appliedIndex);
    this.#parts.campaigning.onApplied();
  }

  #onChange({ index, change, record }: AppliedChange): void {
    const outcome = this.#parts.node.applyMembership(index, change);
    // A snapshot that raft has taken and that is not installed yet tells raft of later changes.
    const isSame = sameMembership(record.membership, this.#parts.node.status().membership);
    assert(outcome === 'overtaken' || isSame, 'raft and the group record agree', { index });
    this.#takeRecord(record);
  }

  #takeRecord(record: GroupRecord): void {
    this.#record = record;
    this.#parts.contact.follow(membersOf(record.membership));
    this.#hasNewRecord = true;
  }

  /** What the snapshot contains was committed; what came of it is not in it. */
  #onInstalled(index: number): void {
    const says = 'a snapshot has brought it without its outcome';
    this.#parts.proposals.rejectThrough(index, new ReplicaError('outcome-unknown', says));
    this.#parts.changes.onInstalled(index);
    this.#takeRecord(recordOf(this.#options.machine));
    this.#parts.reads.release(this.#parts.applies.appliedIndex);
  }

  #onLinkClosed(node: NodeId): void {
    this.#parts.node.reportUnreachable(node);
    this.#parts.contact.onLinkClosed(node);
    this.#parts.handOver.onLinkClosed(node);
    this.#parts.campaigning.onLinkClosed(node);
  }

  /** Every change of leadership passes through here: an election takes more than one Ready. */
  #followStanding(): void {
    const { standing, term, leader, commitIndex } = this.#parts.node.status();
    const ledTerm = standing === 'leader' ? term : 0;
    this.#parts.contact.onLeader(leader, term);
    if (ledTerm === this.#ledTerm && leader === this.#leader) return;
    if (this.#ledTerm > 0 && ledTerm !== this.#ledTerm) this.#onLeadershipLost(commitIndex);
    if (ledTerm !== this.#ledTerm) this.#ledSinceMs = this.#options.clock.monotonicMs();
    this.#ledTerm = ledTerm;
    this.#leader = leader;
    this.#hasNewLeader = true;
    this.#parts.reads.askAgain();
    this.#parts.changes.onLeader(leader);
    this.#parts.handOver.onLeader(leader);
  }

  /**
   * What is committed will be applied here, and its outcome known, if the disk goes on. What is not,
   * another leader may commit or replace.
   */
  #onLeadershipLost(commitIndex: number): void {
    this.#parts.snapshots.onLeadershipLost();
    const knownIndex = this.#parts.diskWatch.isStalled
      ? this.#parts.applies.appliedIndex
      : commitIndex;
    this.#giveUpAfter(knownIndex);
  }

  #giveUpAfter(index: number): void {
    const says = 'this node lost its leadership under way';
    this.#parts.proposals.rejectAfter(index, new ReplicaError('outcome-unknown', says));
    this.#parts.changes.onLeadershipLost(index);
  }

  /** Last in a turn: whoever is called may ask this replica for anything. */
  #tellListeners(): void {
    if (this.#hasNewLeader) {
      this.#hasNewLeader = false;
      this.#leaderListeners.call();
    }
    if (this.#hasNewRecord) {
      this.#hasNewRecord = false;
      this.#groupListeners.call();
    }
  }

  #closedError(): ReplicaError | undefined {
    if (this.#failure !== undefined) {
      return new ReplicaError('closed', 'the log has failed', { cause: this.#failure });
    }
    if (this.#closing === undefined) return undefined;
    return new ReplicaError('closed', 'the log is closing');
  }

  async #drain(): Promise<void> {
    const closed = new ReplicaError('closed', 'the log is closing');
    this.#parts.reads.rejectAll(closed);
    await this.#parts.proposals.empty();
    await this.handOver();
    this.#stop(closed);
    await this.#parts.appends.idle();
    await this.#parts.applies.idle();
  }

  #stop(why: ReplicaError): void {
    this.#isStopped = true;
    this.#parts.ticker.stop();
    this.#parts.campaigning.stop();
    this.#parts.handOver.stop();
    this.#parts.snapshots.stop(why);
    const says = 'the node ended under way';
    this.#parts.changes.rejectAll(why, new ReplicaError('outcome-unknown', says));
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#failure = cause;
    const closed = new ReplicaError('closed', 'the log has failed', { cause });
    this.#stop(closed);
    this.#parts.proposals.rejectQueued(closed);
    const unknown = new ReplicaError('outcome-unknown', 'the node failed under way', { cause });
    this.#parts.proposals.rejectAfter(0, unknown);
    this.#parts.reads.rejectAll(closed);
    this.#options.onFatal(cause);
  }
}
