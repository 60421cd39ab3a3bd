// The replica of a node in a group. One loop owns the raft node: inputs queue, a turn takes them all,
// and then carries out what raft wants: messages leave, the log's worker writes, the machine's worker
// applies. The loop never waits; workers report back as inputs. Nothing that promises leaves before its
// write is done. The first failure of a store or of an invariant ends it: nothing is tried again.

import { assert } from '../base/assert.ts';
import { unreachable } from '../base/unreachable.ts';
import { isJoint, membersOf, sameMembership } from '../raft/membership.ts';
import type { MembershipChange } from '../raft/membership-change.ts';
import { type Message, MESSAGE_TRAITS, type SnapshotMessage } from '../raft/message.ts';
import { NO_NODE, type NodeId } from '../raft/node-id.ts';
import type { RawNode, Ready } from '../raft/raw-node.ts';
import type { Refusal } from '../raft/refusal.ts';
import { AppendWorker } from './append-worker.ts';
import { type Applied, type AppliedChange, ApplyWorker, recordOf } from './apply-worker.ts';
import { Campaigner } from './campaigner.ts';
import { Contact } from './contact.ts';
import { DiskWatch } from './disk-watch.ts';
import { membershipAtStart } from './group-at-start.ts';
import {
  DEFAULT_GROUP_LIMITS,
  DEFAULT_GROUP_TIMING,
  electionMs,
  type GroupLimits,
  type GroupTiming,
  heartbeatMs,
} from './group-limits.ts';
import type { GroupRecord } from './group-record.ts';
import { GroupRefusal } from './group-refusal.ts';
import type {
  GroupReplica,
  GroupStatus,
  RaftReplicaOptions,
  SnapshotIntake,
} from './group-replica.ts';
import { HandOver, type HandOverResult } from './hand-over.ts';
import { Inbox, type Input } from './inbox.ts';
import { Listeners } from './listeners.ts';
import { MembershipProposals } from './membership-proposals.ts';
import { PendingProposals } from './pending-proposals.ts';
import { loggingTo } from './raft-events.ts';
import { createRaftNode } from './raft-node.ts';
import { ReadBarriers } from './read-barriers.ts';
import { ReplicaError, type ReplicaStatus, type Standing } from './replica.ts';
import { SnapshotSender } from './snapshot-sender.ts';
import { resetOf, SnapshotTaker, type TakenSnapshot } from './snapshot-taker.ts';
import { StoredLog } from './stored-log.ts';
import { successorsOf } from './successors.ts';
import { Ticker } from './ticker.ts';
import { type Spare, spareOf } from './trimming.ts';

/** So many successors are tried before a leader that leaves gives up. */
const HAND_OVER_TRIES = 3;
/** Whoever answered one of the last heartbeats is there. */
const FRESH_HEARTBEATS = 3;

/** Starts as a follower; a group of one leads as soon as its disk has its vote. */
export function openRaftReplica<Outcome>(
  options: RaftReplicaOptions<Outcome>,
): GroupReplica<Outcome> {
  return new RaftReplica(options);
}

class RaftReplica<Outcome> implements GroupReplica<Outcome> {
  readonly #options: RaftReplicaOptions<Outcome>;
  readonly #limits: GroupLimits;
  readonly #timing: GroupTiming;
  readonly #node: RawNode;
  readonly #inbox: Inbox<Applied<Outcome>>;
  readonly #stored: StoredLog;
  readonly #appends: AppendWorker;
  readonly #applies: ApplyWorker<Outcome>;
  readonly #proposals: PendingProposals<Outcome>;
  readonly #changes: MembershipProposals;
  readonly #reads: ReadBarriers;
  readonly #sender: SnapshotSender;
  readonly #taker: SnapshotTaker;
  readonly #ticker: Ticker;
  readonly #diskWatch: DiskWatch;
  readonly #campaigner: Campaigner;
  readonly #contact: Contact;
  readonly #handOver: HandOver;
  readonly #leaderListeners = new Listeners();
  readonly #groupListeners = new Listeners();
  /** As raft has heard of it: that of the machine, but for what is still in the inbox. */
  #record: GroupRecord;
  /** The term that this node leads, as of the last Ready; 0 if it does not. */
  #ledTerm = 0;
  #ledSinceMs = 0;
  #leader: NodeId = NO_NODE;
  #hasNewLeader = false;
  #hasNewRecord = false;
  /** Followers of whom was logged already that they need what cannot be made. */
  readonly #withoutSnapshot = new Set<NodeId>();
  /** Raft's answer to the snapshot that is being stepped. */
  #tookSnapshot = false;
  #isFounding: boolean;
  #isAwake = false;
  #isStopped = false;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RaftReplicaOptions<Outcome>) {
    const limits = { ...DEFAULT_GROUP_LIMITS, ...options.limits };
    const timing = { ...DEFAULT_GROUP_TIMING, ...options.timing };
    const { log, machine, clock, random } = options;
    this.#options = options;
    this.#limits = limits;
    this.#timing = timing;
    this.#isFounding = options.isFounder === true;
    this.#record = recordOf(machine);
    this.#inbox = new Inbox(limits);
    this.#proposals = new PendingProposals(limits);
    this.#diskWatch = new DiskWatch(timing.electionTicks);
    this.#contact = new Contact(clock);
    this.#sender = this.#createSender();
    const appliedIndex = machine.appliedEntry?.index ?? 0;
    const membership = membershipAtStart(options);
    this.#stored = new StoredLog({
      log,
      membership,
      appliedIndex,
      snapshot: () => this.#sender.make(),
      limits,
    });
    this.#node = this.#createNode(appliedIndex);
    this.#contact.follow(membersOf(membership));
    this.#changes = new MembershipProposals({
      node: this.#node,
      record: () => this.#record,
      successors: () => this.#successors(),
      handOverTicks: 2 * timing.electionTicks,
    });
    this.#taker = new SnapshotTaker({
      machine,
      onTaken: (taken) => this.#give({ kind: 'snapshot-taken', taken }),
    });
    this.#appends = this.#createAppends();
    this.#applies = this.#createApplies();
    this.#reads = new ReadBarriers({
      clock,
      random,
      countMax: limits.readCountMax,
      timeoutMs: timing.readTimeoutMs,
      retryMs: 3 * heartbeatMs(timing),
    });
    this.#ticker = new Ticker({
      clock,
      tickMs: timing.tickMs,
      lateMs: 2 * heartbeatMs(timing),
      onTick: () => this.#give({ kind: 'tick' }),
      onPause: (lateByMs) => options.logger.warn({ lateByMs }, 'the process stood still'),
    });
    this.#campaigner = new Campaigner({
      clock,
      random,
      spreadMs: timing.campaignSpreadMs,
      onDue: () => this.#give({ kind: 'campaign' }),
    });
    this.#handOver = new HandOver({
      self: options.nodeId,
      clock,
      tryMs: electionMs(timing) / HAND_OVER_TRIES,
      limitMs: electionMs(timing),
      successors: () => this.#successors(),
      transfer: (target) => this.transferLeadership(target),
    });
    this.#campaignIfAlone();
    // What is committed and not applied need not wait for the first tick.
    this.#wake();
  }

  propose(payload: Uint8Array): Promise<Outcome> {
    const closed = this.#closedError();
    if (closed !== undefined) return Promise.reject(closed);
    const outcome = this.#proposals.add(payload);
    this.#wake();
    return outcome;
  }

  readBarrier(): Promise<void> {
    const closed = this.#closedError();
    if (closed !== undefined) return Promise.reject(closed);
    const passed = this.#reads.add();
    this.#wake();
    return passed;
  }

  proposeMembership(change: MembershipChange): Promise<GroupRecord> {
    const closed = this.#closedError();
    if (closed !== undefined) return Promise.reject(closed);
    const applied = this.#changes.ask(change);
    this.#wake();
    return applied;
  }

  receive(message: Message): void {
    const why = this.#reasonToIgnore(message);
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
    const why = this.#reasonToRefuse(message);
    if (why === undefined) return this.#taker.begin(message);
    return Promise.reject(new GroupRefusal('refused', `the snapshot is not taken: ${why}`));
  }

  linkClosed(node: NodeId): void {
    this.#give({ kind: 'link-closed', node });
  }

  transferLeadership(target: NodeId): void {
    this.#give({ kind: 'transfer', target });
  }

  handOver(target?: NodeId): Promise<HandOverResult> {
    const isLeading = this.#node.status().standing === 'leader';
    if (this.#isStopped || !isLeading) return Promise.resolve('done');
    return this.#handOver.begin(target);
  }

  groupRecord(): GroupRecord {
    return this.#record;
  }

  onLeaderChanged(listener: () => void): () => void {
    return this.#leaderListeners.add(listener);
  }

  onGroupChanged(listener: () => void): () => void {
    return this.#groupListeners.add(listener);
  }

  status(): ReplicaStatus {
    const status = this.#node.status();
    const { term, lastIndex, commitIndex } = status;
    const { log } = this.#options;
    const { appliedIndex } = this.#applies;
    return {
      standing: standingOf(status),
      term,
      firstIndex: log.firstIndex,
      lastIndex,
      commitIndex,
      appliedIndex,
      queuedCount: this.#proposals.count,
      unappliedCount: Math.max(0, commitIndex - appliedIndex),
      pendingBytes: this.#proposals.bytes,
    };
  }

  groupStatus(): GroupStatus {
    const { id, leader, membership, progress, hasCommittedInTerm } = this.#node.status();
    return {
      leader: leader === NO_NODE ? undefined : leader,
      lastContactMs: leader === id ? 0 : this.#contact.sinceLeaderMs,
      isMember: membersOf(membership).includes(id),
      hasCommittedInTerm,
      followers: progress
        .filter(([node]) => node !== id)
        .map(([node, { matchIndex, recentlyActive, state }]) => ({
          node,
          matchIndex,
          state,
          isActive: recentlyActive,
          lastHeardMs: this.#contact.sinceMs(node),
        })),
      isDiskStalled: this.#diskWatch.isStalled,
      lostMessageCount: this.#inbox.lostCount,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  #createNode(appliedIndex: number): RawNode {
    const { nodeId, random, logger } = this.#options;
    const log = loggingTo(logger);
    return createRaftNode({
      nodeId,
      stored: this.#stored,
      appliedIndex,
      limits: this.#limits,
      timing: this.#timing,
      random,
      observe: (event) => {
        if (event.kind === 'snapshot-not-ready') this.#onNoSnapshot(event.node);
        else if (event.kind === 'snapshot-accepted') this.#tookSnapshot = true;
        log(event);
      },
    });
  }

  #createSender(): SnapshotSender {
    const { machine, sendSnapshot: send, clock, logger } = this.#options;
    return new SnapshotSender({
      machine,
      send,
      clock,
      logger,
      retryMs: this.#timing.snapshotRetryMs,
      onEnded: (node, { delivered }) => this.#give({ kind: 'snapshot-sent', node, delivered }),
    });
  }

  #createAppends(): AppendWorker {
    return new AppendWorker({
      log: this.#options.log,
      stored: this.#stored,
      limits: this.#limits,
      spare: () => this.#spare(),
      install: (snapshot, hardState) => this.#install(snapshot, hardState),
      onDone: (replies) => this.#give({ kind: 'stored', replies }),
      onFailed: (error) => this.#fail(error),
    });
  }

  #createApplies(): ApplyWorker<Outcome> {
    return new ApplyWorker({
      machine: this.#options.machine,
      stored: this.#stored,
      limits: this.#limits,
      onDone: (applied) => this.#give({ kind: 'applied', applied }),
      onFailed: (error) => this.#fail(error),
    });
  }

  #onNoSnapshot(node: NodeId): void {
    if (this.#withoutSnapshot.has(node)) return;
    this.#withoutSnapshot.add(node);
    const says = 'a follower lacks entries that the log no longer has, and no snapshot can be made';
    this.#options.logger.error({ node }, says);
  }

  /** Strangers are heard: a node that knows nothing yet knows nobody, and a link knows who is at its end. */
  #reasonToIgnore(message: Message): string | undefined {
    const { nodeId } = this.#options;
    if (message.to !== nodeId) return 'it is for another node';
    if (message.from === nodeId) return 'its sender says it is this node';
    if (MESSAGE_TRAITS[message.type].local) return 'only an own worker may say this';
    if (message.type === 'propose') return 'proposals are not handed on';
    return message.type === 'snapshot' ? 'snapshots do not come as messages' : undefined;
  }

  #reasonToRefuse(message: SnapshotMessage): string | undefined {
    const { nodeId } = this.#options;
    const { term, commitIndex } = this.#node.status();
    const { from, to, snapshot } = message;
    if (to !== nodeId || from === nodeId) return 'it is for another node';
    if (message.term < term) return `it is of term ${message.term}, this node is at ${term}`;
    if (!membersOf(snapshot.membership).includes(nodeId)) return 'this node is not in its group';
    if (snapshot.index > commitIndex) return undefined;
    // Its sender does not know how far this node is: the answer tells it.
    this.#give({ kind: 'message', message });
    return `all up to ${commitIndex} is here, it has ${snapshot.index}`;
  }

  #give(input: Input<Applied<Outcome>>): void {
    if (this.#isStopped) return;
    this.#inbox.add(input);
    this.#wake();
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
      this.#proposeQueued();
      this.#changes.proposeAsked();
      this.#carryOutAll();
      this.#sender.endTurn();
      this.#tellListeners();
    } catch (error) {
      this.#fail(error);
    }
  }

  #takeInput(input: Input<Applied<Outcome>>): void {
    switch (input.kind) {
      case 'message':
        this.#contact.onMessage(input.message);
        this.#node.step(input.message);
        return;
      case 'tick':
        this.#onTick();
        return;
      case 'stored':
        this.#deliver(input.replies);
        this.#watchDisk();
        return;
      case 'applied':
        this.#onApplied(input.applied);
        this.#watchDisk();
        return;
      case 'snapshot-taken':
        this.#onSnapshotTaken(input.taken);
        return;
      case 'installed':
        this.#onInstalled(input.index);
        return;
      case 'snapshot-sent':
        this.#node.reportSnapshot(input.node, { delivered: input.delivered });
        return;
      case 'link-closed':
        this.#onLinkClosed(input.node);
        return;
      case 'campaign':
        this.#onCampaign();
        return;
      case 'transfer':
        this.#node.transferLeadership(input.target);
        return;
      default:
        unreachable(input);
    }
  }

  #onTick(): void {
    this.#appends.onTick();
    this.#applies.onTick();
    this.#watchDisk();
    this.#reads.onTick();
    // With a disk that does not answer, this node could only win an election, not lead.
    if (!this.#diskWatch.isStalled || this.#ledTerm > 0) this.#node.tick();
    this.#changes.onTick();
  }

  /** A machine that does not answer is a disk that does not: what is committed has no outcome. */
  #watchDisk(): void {
    const { writingTicks } = this.#appends;
    const { applyingTicks } = this.#applies;
    const step = this.#diskWatch.look(Math.max(writingTicks, applyingTicks));
    if (step === 'none') return;
    this.#options.logger.error({ writingTicks, applyingTicks, step }, 'the disk does not answer');
    if (this.#ledTerm === 0) this.#giveUpAfter(this.#applies.appliedIndex);
    if (step !== 'hand-over' || this.#ledTerm === 0) return;
    const [successor] = this.#successors();
    if (successor !== undefined) this.#node.transferLeadership(successor);
  }

  #successors(): readonly NodeId[] {
    return successorsOf({
      status: this.#node.status(),
      contact: this.#contact,
      freshMs: FRESH_HEARTBEATS * heartbeatMs(this.#timing),
      goneMs: electionMs(this.#timing),
    });
  }

  #onApplied({ entries, outcomes, changes, replies }: Applied<Outcome>): void {
    for (const each of changes) this.#onChange(each);
    this.#deliver(replies);
    entries.forEach((entry, position) => {
      this.#proposals.applied(entry, outcomes[position]!);
    });
    const { appliedIndex } = this.#applies;
    this.#changes.onApplied(changes, appliedIndex);
    this.#reads.release(appliedIndex);
    if (this.#ledTerm === 0) this.#campaignIfAlone();
    if (this.#isFounding) this.#campaignAsFounder();
  }

  #onChange({ index, change, record }: AppliedChange): void {
    const outcome = this.#node.applyMembership(index, change);
    // A snapshot that raft has taken and that is not installed yet tells raft of later changes.
    const isSame = sameMembership(record.membership, this.#node.status().membership);
    assert(outcome === 'overtaken' || isSame, 'raft and the group record agree', { index });
    this.#takeRecord(record);
  }

  #takeRecord(record: GroupRecord): void {
    this.#record = record;
    this.#contact.follow(membersOf(record.membership));
    this.#hasNewRecord = true;
  }

  /** Raft decides in this step, and its next Ready has the snapshot. */
  #onSnapshotTaken({ message, accepted, refused }: TakenSnapshot): void {
    this.#tookSnapshot = false;
    this.#node.step(message);
    if (this.#tookSnapshot) accepted();
    else refused(new GroupRefusal('refused', 'the snapshot is not needed any more'));
  }

  /** The append worker's part. Nothing is applied between the switch of the log and that of the machine. */
  async #install(
    ...[snapshot, hardState]: Parameters<ConstructorParameters<typeof AppendWorker>[0]['install']>
  ): Promise<void> {
    await this.#taker.install(snapshot, async (state) => {
      await this.#applies.hold();
      await this.#options.log.reset(resetOf(state, hardState));
      this.#stored.wasReset();
    });
    this.#applies.release();
    this.#give({ kind: 'installed', index: snapshot.index });
  }

  /** What the snapshot contains was committed; what came of it is not in it. */
  #onInstalled(index: number): void {
    const says = 'a snapshot has brought it without its outcome';
    this.#proposals.rejectThrough(index, new ReplicaError('outcome-unknown', says));
    this.#changes.onInstalled(index);
    this.#takeRecord(recordOf(this.#options.machine));
    this.#reads.release(this.#applies.appliedIndex);
  }

  #onLinkClosed(node: NodeId): void {
    this.#node.reportUnreachable(node);
    this.#contact.onLinkClosed(node);
    this.#handOver.onLinkClosed(node);
    const status = this.#node.status();
    if (status.leader !== node || node === this.#options.nodeId) return;
    // From now on this node does not speak against another leader.
    this.#node.forgetLeader();
    this.#campaigner.begin(status);
  }

  #onCampaign(): void {
    const status = this.#node.status();
    // A leader knows itself. A candidate first asks anew whether it could win, and opens no term before.
    if (status.leader !== NO_NODE || this.#diskWatch.isStalled) return;
    if (this.#campaigner.isTimely(status)) this.#node.campaign();
    this.#campaigner.again();
  }

  /** The only voter has nobody to wait for. */
  #campaignIfAlone(): void {
    const { id, leader, standing, membership } = this.#node.status();
    const isAlone = membership.voters.length === 1 && membership.voters[0] === id;
    if (!isAlone || isJoint(membership) || leader !== NO_NODE || standing !== 'follower') return;
    if (!this.#diskWatch.isStalled) this.#node.campaign();
  }

  /** Once it knows the members. The others may not be there yet: then it tries again. */
  #campaignAsFounder(): void {
    this.#isFounding = false;
    this.#campaigner.begin(this.#node.status());
  }

  #proposeQueued(): void {
    while (this.#proposals.queuedCount > 0) {
      const { nodeId } = this.#options;
      const { term, lastIndex } = this.#node.status();
      const batch = this.#proposals.takeBatch();
      const refusal = this.#node.step({
        type: 'propose',
        from: nodeId,
        to: nodeId,
        term: 0,
        entries: batch.map(({ payload }) => ({ type: 'normal', data: payload })),
      });
      if (refusal === undefined) this.#proposals.appended(batch, { term, index: lastIndex + 1 });
      else this.#proposals.reject(batch, this.#errorOf(refusal));
    }
  }

  #errorOf(refusal: Refusal): Error {
    if (refusal === 'uncommitted-limit') {
      return new ReplicaError('queue-full', 'too much waits for a quorum already');
    }
    const { leader } = this.#node.status();
    const isElsewhere = leader !== NO_NODE && leader !== this.#options.nodeId;
    const says = `this node takes no writes: ${refusal}`;
    return new GroupRefusal('not-leader', says, isElsewhere ? leader : undefined);
  }

  /** Until raft wants nothing more and no worker can begin anything. */
  #carryOutAll(): void {
    for (;;) {
      this.#askReads();
      if (this.#node.hasReady()) {
        this.#carryOut(this.#node.ready());
        continue;
      }
      this.#applies.start();
      const replies = this.#appends.start();
      if (replies === undefined) return;
      this.#deliver(replies);
    }
  }

  #askReads(): void {
    if (this.#ledTerm === 0 && this.#leader === NO_NODE) return;
    for (;;) {
      const context = this.#reads.takeRound();
      if (context === undefined) return;
      this.#node.readIndex(context);
    }
  }

  /** Messages first: followers write while this node does. */
  #carryOut(ready: Ready): void {
    if (ready.softState !== undefined || ready.hardState !== undefined) this.#followStanding();
    for (const { context, index } of ready.readStates) this.#reads.confirm(context, index);
    this.#reads.release(this.#applies.appliedIndex);
    for (const message of ready.messages) {
      if (message.type === 'storage-append') this.#appends.push(message);
      else if (message.type === 'storage-apply') this.#applies.push(message);
      else this.#send(message);
    }
  }

  /** Every change of leadership passes through here: an election takes more than one Ready. */
  #followStanding(): void {
    const { standing, term, leader, commitIndex } = this.#node.status();
    const ledTerm = standing === 'leader' ? term : 0;
    this.#contact.onLeader(leader, term);
    if (ledTerm === this.#ledTerm && leader === this.#leader) return;
    if (this.#ledTerm > 0 && ledTerm !== this.#ledTerm) this.#onLeadershipLost(commitIndex);
    if (ledTerm !== this.#ledTerm) this.#ledSinceMs = this.#options.clock.monotonicMs();
    this.#ledTerm = ledTerm;
    this.#leader = leader;
    this.#hasNewLeader = true;
    this.#reads.askAgain();
    this.#changes.onLeader(leader);
    this.#handOver.onLeader(leader);
  }

  /**
   * What is committed will be applied here, and its outcome known, if the disk goes on. What is not,
   * another leader may commit or replace.
   */
  #onLeadershipLost(commitIndex: number): void {
    this.#withoutSnapshot.clear();
    const knownIndex = this.#diskWatch.isStalled ? this.#applies.appliedIndex : commitIndex;
    this.#giveUpAfter(knownIndex);
  }

  #giveUpAfter(index: number): void {
    const says = 'this node lost its leadership under way';
    this.#proposals.rejectAfter(index, new ReplicaError('outcome-unknown', says));
    this.#changes.onLeadershipLost(index);
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

  #deliver(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.to === this.#options.nodeId) this.#node.step(message);
      else this.#send(message);
    }
  }

  #send(message: Message): void {
    const isLeading =
      message.type === 'append' || message.type === 'heartbeat' || message.type === 'snapshot';
    if (this.#diskWatch.isSilent && isLeading) return;
    if (message.type === 'snapshot') this.#sendSnapshot(message);
    else this.#options.send(message.to, message);
  }

  #sendSnapshot(message: SnapshotMessage): void {
    this.#withoutSnapshot.delete(message.to);
    this.#sender.send(message);
  }

  #spare(): Spare {
    const aliveMs = 2 * electionMs(this.#timing);
    const isNew = this.#options.clock.monotonicMs() - this.#ledSinceMs < aliveMs;
    return spareOf({
      status: this.#node.status(),
      // A new leader has not had the time to hear everybody.
      isAlive: (node) => isNew || (this.#contact.sinceMs(node) ?? aliveMs) < aliveMs,
      limits: this.#limits,
    });
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
    this.#reads.rejectAll(closed);
    await this.#proposals.empty();
    await this.handOver();
    this.#stop(closed);
    await this.#appends.idle();
    await this.#applies.idle();
  }

  #stop(why: ReplicaError): void {
    this.#isStopped = true;
    this.#ticker.stop();
    this.#campaigner.stop();
    this.#handOver.stop();
    this.#sender.stop();
    this.#taker.stop(why);
    const says = 'the node ended under way';
    this.#changes.rejectAll(why, new ReplicaError('outcome-unknown', says));
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#failure = cause;
    const closed = new ReplicaError('closed', 'the log has failed', { cause });
    this.#stop(closed);
    this.#proposals.rejectQueued(closed);
    const unknown = new ReplicaError('outcome-unknown', 'the node failed under way', { cause });
    this.#proposals.rejectAfter(0, unknown);
    this.#reads.rejectAll(closed);
    this.#options.onFatal(cause);
  }
}

/** A node that the group has removed is a follower of nobody. */
function standingOf({
  standing,
  membership,
  id,
}: Pick<ReturnType<RawNode['status']>, 'standing' | 'membership' | 'id'>): Standing {
  if (standing === 'pre-candidate') return 'candidate';
  return standing === 'follower' && membership.learners.includes(id) ? 'learner' : standing;
}
