// The replica of a node in a group. One loop owns the raft node: inputs queue, a turn takes them all,
// and then carries out what raft wants: messages leave, the log's worker writes, the machine's worker
// applies. The loop never waits; workers report back as inputs. Nothing that promises leaves before its
// write is done. The first failure of a store or of an invariant ends it: nothing is tried again.
// Who may join the group is fixed; snapshots are neither made nor taken, and who needs one is told of.

import { assert } from '../base/assert.ts';
import { unreachable } from '../base/unreachable.ts';
import { membersOf } from '../raft/membership.ts';
import { type Message, MESSAGE_TRAITS } from '../raft/message.ts';
import { NO_NODE, type NodeId } from '../raft/node-id.ts';
import { createRaft } from '../raft/raft.ts';
import { RawNode, type Ready } from '../raft/raw-node.ts';
import type { Refusal } from '../raft/refusal.ts';
import { AppendWorker } from './append-worker.ts';
import { type Applied, ApplyWorker } from './apply-worker.ts';
import { Campaigner } from './campaigner.ts';
import { DiskWatch, successorOf } from './disk-watch.ts';
import {
  DEFAULT_GROUP_LIMITS,
  DEFAULT_GROUP_TIMING,
  type GroupLimits,
  type GroupTiming,
  heartbeatMs,
} from './group-limits.ts';
import { GroupRefusal } from './group-refusal.ts';
import type { GroupReplica, GroupStatus, RaftReplicaOptions } from './group-replica.ts';
import { Inbox } from './inbox.ts';
import { PendingProposals } from './pending-proposals.ts';
import { loggingTo } from './raft-events.ts';
import { ReadBarriers } from './read-barriers.ts';
import { ReplicaError, type ReplicaStatus, type Standing } from './replica.ts';
import { StoredLog } from './stored-log.ts';
import { Ticker } from './ticker.ts';

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
  readonly #members: ReadonlySet<NodeId>;
  readonly #node: RawNode;
  readonly #inbox: Inbox<Applied<Outcome>>;
  readonly #appends: AppendWorker;
  readonly #applies: ApplyWorker<Outcome>;
  readonly #proposals: PendingProposals<Outcome>;
  readonly #reads: ReadBarriers;
  readonly #ticker: Ticker;
  readonly #diskWatch: DiskWatch;
  readonly #campaigner: Campaigner;
  /** The term that this node leads, as of the last Ready; 0 if it does not. */
  #ledTerm = 0;
  #leader: NodeId = NO_NODE;
  readonly #needSnapshot = new Set<NodeId>();
  #isAwake = false;
  #isStopped = false;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: RaftReplicaOptions<Outcome>) {
    const limits = { ...DEFAULT_GROUP_LIMITS, ...options.limits };
    const timing = { ...DEFAULT_GROUP_TIMING, ...options.timing };
    const { log, machine, clock, random, membership } = options;
    assert(limits.keptCount > 0, 'the last trimmed entry is known by the one that is kept');
    this.#options = options;
    this.#limits = limits;
    this.#timing = timing;
    this.#members = new Set(membersOf(membership));
    this.#inbox = new Inbox(limits);
    this.#proposals = new PendingProposals(limits);
    this.#diskWatch = new DiskWatch(timing.electionTicks);
    const { appliedEntry } = machine;
    const stored = new StoredLog({ log, membership, appliedEntry, limits });
    this.#node = this.#createNode(stored, appliedEntry?.index ?? 0);
    const onFailed = (error: unknown): void => this.#fail(error);
    this.#appends = new AppendWorker({
      log,
      stored,
      limits,
      trimThrough: () => this.#trimThrough(),
      onDone: (replies) => this.#give({ kind: 'stored', replies }),
      onFailed,
    });
    this.#applies = new ApplyWorker({
      machine,
      stored,
      limits,
      onDone: (applied) => this.#give({ kind: 'applied', applied }),
      onFailed,
    });
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
    if (this.#members.size === 1) this.#give({ kind: 'campaign' });
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

  receive(message: Message): void {
    const why = this.#reasonToIgnore(message);
    if (why === undefined) {
      this.#give({ kind: 'message', message });
    } else {
      const { type, from, to } = message;
      this.#options.logger.warn({ type, from, to, why }, 'a message was ignored');
    }
  }

  linkClosed(node: NodeId): void {
    this.#give({ kind: 'link-closed', node });
  }

  transferLeadership(target: NodeId): void {
    this.#give({ kind: 'transfer', target });
  }

  status(): ReplicaStatus {
    const { standing, term, lastIndex, commitIndex } = this.#node.status();
    const { log } = this.#options;
    const { appliedIndex } = this.#applies;
    return {
      standing: this.#standingOf(standing),
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
    const { id, leader, progress } = this.#node.status();
    return {
      leader: leader === NO_NODE ? undefined : leader,
      followers: progress
        .filter(([node]) => node !== id)
        .map(([node, { matchIndex, recentlyActive, state }]) => ({
          node,
          matchIndex,
          isActive: recentlyActive,
          needsSnapshot: this.#needSnapshot.has(node) && state !== 'replicate',
        })),
      isDiskStalled: this.#diskWatch.isStalled,
      lostMessageCount: this.#inbox.lostCount,
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#drain();
    return this.#closing;
  }

  #createNode(stored: StoredLog, appliedIndex: number): RawNode {
    const { nodeId, random, logger } = this.#options;
    const { electionTicks, heartbeatTicks } = this.#timing;
    const log = loggingTo(logger);
    const raft = createRaft({
      id: nodeId,
      electionTicks,
      heartbeatTicks,
      storage: stored,
      appliedIndex,
      asyncStorage: true,
      maxMessageBytes: this.#limits.messageBytesMax,
      maxApplyingBytes: 2 * this.#limits.batchBytesMax,
      // The own limit of proposals is met first.
      maxUncommittedBytes: 2 * this.#limits.pendingBytesMax,
      maxInflightMessages: this.#limits.inflightCountMax,
      maxInflightBytes: this.#limits.inflightBytesMax,
      // Another node's proposal is a matter between services: its outcome must find its way back.
      forwardProposals: false,
      random: (below) => Math.floor(random.fraction() * below),
      observe: (event) => {
        if (event.kind === 'snapshot-not-ready') this.#onSnapshotNeeded(event.node);
        else log(event);
      },
    });
    return new RawNode(raft);
  }

  #onSnapshotNeeded(node: NodeId): void {
    if (this.#needSnapshot.has(node)) return;
    this.#needSnapshot.add(node);
    const says = 'a follower lacks entries that the log no longer has: it must be set up anew';
    this.#options.logger.error({ node }, says);
  }

  #reasonToIgnore(message: Message): string | undefined {
    const { nodeId } = this.#options;
    if (message.to !== nodeId) return 'it is for another node';
    if (!this.#members.has(message.from)) return 'its sender is not in the group';
    if (message.from === nodeId) return 'its sender says it is this node';
    if (MESSAGE_TRAITS[message.type].local) return 'only an own worker may say this';
    if (message.type === 'propose') return 'proposals are not handed on';
    if (message.type === 'snapshot') return 'snapshots are not taken';
    const changes =
      message.type === 'append' && message.entries.some(({ type }) => type !== 'normal');
    return changes ? 'the membership is fixed' : undefined;
  }

  #give(input: Parameters<Inbox<Applied<Outcome>>['add']>[0]): void {
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
      this.#carryOutAll();
    } catch (error) {
      this.#fail(error);
    }
  }

  #takeInput(input: ReturnType<Inbox<Applied<Outcome>>['take']>[number]): void {
    switch (input.kind) {
      case 'message':
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
    this.#watchDisk();
    this.#reads.onTick();
    // With a disk that does not answer, this node could only win an election, not lead.
    if (!this.#diskWatch.isStalled || this.#ledTerm > 0) this.#node.tick();
  }

  #watchDisk(): void {
    const { writingTicks } = this.#appends;
    const step = this.#diskWatch.look(writingTicks);
    if (step === 'none') return;
    this.#options.logger.error({ writingTicks, step }, 'the disk does not answer');
    if (this.#ledTerm === 0) this.#giveUpAfter(this.#applies.appliedIndex);
    if (step !== 'hand-over' || this.#ledTerm === 0) return;
    const successor = successorOf(this.#node.status());
    if (successor !== undefined) this.#node.transferLeadership(successor);
  }

  #onApplied({ entries, outcomes, replies }: Applied<Outcome>): void {
    this.#deliver(replies);
    entries.forEach((entry, position) => {
      this.#proposals.applied(entry, outcomes[position]!);
    });
    this.#reads.release(this.#applies.appliedIndex);
  }

  #onLinkClosed(node: NodeId): void {
    this.#node.reportUnreachable(node);
    if (this.#node.status().leader !== node || node === this.#options.nodeId) return;
    // From now on this node does not speak against another leader.
    this.#node.forgetLeader();
    this.#campaigner.begin();
  }

  #onCampaign(): void {
    const { leader, standing } = this.#node.status();
    const isIdle = standing === 'follower' || standing === 'pre-candidate';
    if (leader !== NO_NODE || !isIdle || this.#diskWatch.isStalled) return;
    this.#node.campaign();
    this.#campaigner.again();
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
    this.#followStanding();
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
    const changed = ledTerm !== this.#ledTerm || leader !== this.#leader;
    if (this.#ledTerm > 0 && ledTerm !== this.#ledTerm) this.#onLeadershipLost(commitIndex);
    this.#ledTerm = ledTerm;
    this.#leader = leader;
    if (changed) this.#reads.askAgain();
  }

  /**
   * What is committed will be applied here, and its outcome known, if the disk goes on. What is not,
   * another leader may commit or replace.
   */
  #onLeadershipLost(commitIndex: number): void {
    this.#needSnapshot.clear();
    const knownIndex = this.#diskWatch.isStalled ? this.#applies.appliedIndex : commitIndex;
    this.#giveUpAfter(knownIndex);
  }

  #giveUpAfter(index: number): void {
    const says = 'this node lost its leadership under way';
    this.#proposals.rejectAfter(index, new ReplicaError('outcome-unknown', says));
  }

  #deliver(messages: readonly Message[]): void {
    for (const message of messages) {
      if (message.to === this.#options.nodeId) this.#node.step(message);
      else this.#send(message);
    }
  }

  #send(message: Message): void {
    const isLeading = message.type === 'append' || message.type === 'heartbeat';
    if (this.#diskWatch.isSilent && isLeading) return;
    this.#options.send(message.to, message);
  }

  /** What is applied may go, but for the newest entries and, within a bound, those followers lack. */
  #trimThrough(): number {
    const { appliedIndex, lastIndex, progress } = this.#node.status();
    const { keptCount, heldCountMax } = this.#limits;
    const matched = progress.map(([, { matchIndex }]) => matchIndex);
    const neededFrom = Math.max(Math.min(...matched), lastIndex - heldCountMax);
    return Math.min(appliedIndex - keptCount, neededFrom);
  }

  #standingOf(standing: ReturnType<RawNode['status']>['standing']): Standing {
    const { membership, nodeId } = this.#options;
    if (standing === 'pre-candidate') return 'candidate';
    return standing === 'follower' && membership.learners.includes(nodeId) ? 'learner' : standing;
  }

  #closedError(): ReplicaError | undefined {
    if (this.#failure !== undefined) {
      return new ReplicaError('closed', 'the log has failed', { cause: this.#failure });
    }
    if (this.#closing === undefined) return undefined;
    return new ReplicaError('closed', 'the log is closing');
  }

  async #drain(): Promise<void> {
    this.#reads.rejectAll(new ReplicaError('closed', 'the log is closing'));
    await this.#proposals.empty();
    this.#stop();
    await this.#appends.idle();
    await this.#applies.idle();
  }

  #stop(): void {
    this.#isStopped = true;
    this.#ticker.stop();
    this.#campaigner.stop();
  }

  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    const cause = error instanceof Error ? error : new Error(String(error));
    this.#failure = cause;
    this.#stop();
    const closed = new ReplicaError('closed', 'the log has failed', { cause });
    this.#proposals.rejectQueued(closed);
    const unknown = new ReplicaError('outcome-unknown', 'the node failed under way', { cause });
    this.#proposals.rejectAfter(0, unknown);
    this.#reads.rejectAll(closed);
    this.#options.onFatal(cause);
  }
}
