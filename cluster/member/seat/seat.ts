// A node's place in its group, from the moment when it belongs to one: the replica, who the others are
// and where, and what keeps both right. Opened over a log and a machine; the transport is the caller's,
// since it was there before the group and is there after it.

import { messageOf } from '../../base/message-of.ts';
import type { DurableLog } from '../../log/durable-log.ts';
import type { NodeId } from '../../raft/node-id.ts';
import {
  DEFAULT_GROUP_LIMITS,
  DEFAULT_GROUP_TIMING,
  heartbeatMs,
} from '../../replica/group-limits.ts';
import type { GroupRecord, MemberRecord } from '../../replica/group-record.ts';
import type { GroupReplica } from '../../replica/group-replica.ts';
import { openRaftReplica } from '../../replica/raft-replica.ts';
import { RpcError } from '../../transport/calls/rpc-error.ts';
import type { Transport } from '../../transport/transport.ts';
import { DigestWatch } from '../digests/digest-watch.ts';
import type { DigestedMachine, MemberOptions, MemberView, OtherCluster } from '../group-member.ts';
import { Leading } from '../leading/leading.ts';
import type { HandlerByMethod } from '../member-calls.ts';
import { encodeText, type Introduction } from '../member-frames.ts';
import type { MemberLimits, MemberTiming } from '../member-timing.ts';
import { SnapshotInbox } from '../snapshots/snapshot-inbox.ts';
import { SnapshotOutbox } from '../snapshots/snapshot-outbox.ts';
import { Announcing } from './announcing.ts';
import { Directory } from './directory.ts';
import { memberViews } from './member-views.ts';
import { OtherClusters } from './other-clusters.ts';
import { Repeated } from './repeated.ts';
import { answersOf } from './seat-answers.ts';

export interface SeatOptions<Outcome> {
  readonly options: MemberOptions<Outcome>;
  readonly timing: MemberTiming;
  readonly limits: MemberLimits;
  readonly clusterId: string;
  readonly log: DurableLog;
  readonly machine: DigestedMachine<Outcome>;
  readonly transport: Transport | undefined;
  readonly self: () => MemberRecord;
  /** Members that this node was told of when it found the group. */
  readonly told: readonly MemberRecord[];
  /** This node has just founded the group. */
  readonly isFounder: boolean;
  /** The standing towards a leader, or in the group, is another one. */
  readonly onChanged: () => void;
  /** The node may not go on as a member. */
  readonly onOver: (kind: 'removed' | 'quarantined', says: string) => void;
}

export class Seat<Outcome> {
  readonly replica: GroupReplica<Outcome>;
  readonly leading: Leading;
  readonly directory: Directory;
  readonly #handlers: HandlerByMethod;
  readonly #seat: SeatOptions<Outcome>;
  readonly #node: NodeId;
  readonly #outbox: SnapshotOutbox;
  readonly #inbox: SnapshotInbox;
  readonly #announcing: Announcing;
  readonly #otherClusters: OtherClusters;
  readonly #digests: DigestWatch;
  readonly #looks: Repeated;
  readonly #proofs: Repeated;
  readonly #comparisons: Repeated;
  readonly #strangers: Repeated;
  /** As the peers were set by it. */
  #group: GroupRecord;
  #leaderSeenAtMs: number;
  #isClosed = false;
  #loopsEnd: Promise<unknown> = Promise.resolve();

  constructor(seat: SeatOptions<Outcome>) {
    const { options, timing, limits } = seat;
    const { clock, logger } = options;
    this.#seat = seat;
    this.#node = seat.self().node;
    this.directory = new Directory(this.#node);
    this.directory.tell(seat.told);
    this.#outbox = new SnapshotOutbox({
      ...{ clock, timing, limits, call: this.#call },
      lastIndex: () => this.replica.status().lastIndex,
      bytesBehind: (index) => seat.log.bytesBehind(index),
      held: { ...DEFAULT_GROUP_LIMITS, ...options.groupLimits },
    });
    this.replica = this.#openReplica();
    this.#group = this.replica.groupRecord();
    this.#leaderSeenAtMs = clock.monotonicMs();
    this.#inbox = new SnapshotInbox({
      clock,
      logger,
      timing,
      begin: (message) => this.replica.beginSnapshot(message),
    });
    this.leading = this.#createLeading();
    this.#announcing = this.#createAnnouncing();
    this.#otherClusters = this.#createOtherClusters();
    this.#digests = this.#createDigests();
    this.#handlers = this.#createHandlers();
    this.replica.onGroupChanged(() => this.#onGroupChanged());
    this.replica.onLeaderChanged(() => this.#onLeaderChanged());
    this.directory.follow(this.#group);
    this.#link();
    this.#looks = this.#every(timing.lookMs, () => this.#look());
    this.#proofs = this.#every(timing.lookMs, () => this.#settle());
    this.#comparisons = this.#every(timing.digestMs, async () => {
      if (this.leading.isLeading) await this.#digests.compare();
    });
    this.#strangers = this.#every(timing.otherClustersMs, async () => {
      if (this.replica.lead().isLeader) await this.#otherClusters.look();
    });
  }

  views(): readonly MemberView[] {
    const { transport, timing, options } = this.#seat;
    return memberViews({
      self: this.#node,
      reads: options.self.reads,
      group: this.replica.groupRecord(),
      status: this.replica.status(),
      groupStatus: this.replica.groupStatus(),
      peers: transport?.peers() ?? [],
      aliveMs: timing.aliveMs,
    });
  }

  /** As this node found while it leads: another leader looks for itself. */
  otherClusters(): readonly OtherCluster[] {
    return this.replica.lead().isLeader ? this.#otherClusters.found : [];
  }

  /** Whether the own disk did not take the last state that was sent here; the log says why. */
  get couldNotKeepState(): boolean {
    return this.#inbox.couldNotKeep;
  }

  /** Who leads, as far as this node knows, with where it is. */
  leader(): MemberRecord | undefined {
    return this.memberOf(this.replica.lead().leader);
  }

  /** Where a node of the group is, if that is known. */
  memberOf(node: NodeId | undefined): MemberRecord | undefined {
    if (node === undefined) return undefined;
    return node === this.#node ? this.#seat.self() : this.directory.memberOf(node);
  }

  /** What other nodes may ask a member. */
  get handlers(): HandlerByMethod {
    return this.#handlers;
  }

  /** Hands leadership over, if it is held here. The links stay as they are. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const loops = [this.#looks, this.#proofs, this.#comparisons, this.#strangers];
    this.#loopsEnd = Promise.all(loops.map((loop) => loop.close()));
    await this.#inbox.close();
    await this.replica.close();
  }

  /** After the links are closed: nobody waits for an answer any more. */
  async ended(): Promise<void> {
    await this.#loopsEnd;
  }

  /** A message of another node. */
  readonly onMessage: GroupReplica<Outcome>['receive'] = (message) => this.replica.receive(message);

  readonly #call = async (
    to: NodeId,
    method: string,
    payload: Uint8Array,
    deadlineMs: number,
  ): Promise<Uint8Array> => {
    const { transport } = this.#seat;
    if (transport === undefined) throw new RpcError('unreachable', 'this node has no cluster port');
    return transport.call(to, { method, payload, deadlineMs, hops: 0 });
  };

  #openReplica(): GroupReplica<Outcome> {
    const { options, log, machine, transport, isFounder } = this.#seat;
    const { clock, random, logger, onFatal, groupTiming, groupLimits } = options;
    return openRaftReplica({
      nodeId: this.#node,
      log,
      machine,
      isFounder,
      send: (_to, message) => transport?.send(message),
      sendSnapshot: (to, message, snapshot) => this.#outbox.send(to, message, snapshot),
      clock,
      random,
      logger,
      onFatal,
      ...(groupTiming !== undefined && { timing: groupTiming }),
      ...(groupLimits !== undefined && { limits: groupLimits }),
    });
  }

  #createLeading(): Leading {
    const { options, timing, limits, self } = this.#seat;
    const groupTiming = { ...DEFAULT_GROUP_TIMING, ...options.groupTiming };
    return new Leading({
      replica: this.replica,
      self,
      views: () => this.views(),
      clock: options.clock,
      logger: options.logger,
      timing,
      limits,
      heartbeatMs: heartbeatMs(groupTiming),
    });
  }

  #createAnnouncing(): Announcing {
    const { options, timing, transport, onOver } = this.#seat;
    const { clock, logger, retryJoin } = options;
    return new Announcing({
      logger,
      directory: this.directory,
      retryJoin,
      introduction: () => this.#introduction(),
      group: () => this.replica.groupRecord(),
      leader: () => this.replica.lead().leader,
      leaderlessMs: () => clock.monotonicMs() - this.#leaderSeenAtMs,
      searchAfterMs: timing.searchAfterMs,
      call: async (to, method, payload) => {
        if (transport === undefined) throw new RpcError('unreachable', 'there is no cluster port');
        return transport.call(to, { method, payload, deadlineMs: timing.callMs, hops: 0 });
      },
      onTold: () => this.#link(),
      onRemoved: (says) => onOver('removed', says),
    });
  }

  #createOtherClusters(): OtherClusters {
    const { options, clusterId, self, timing, transport } = this.#seat;
    return new OtherClusters({
      logger: options.logger,
      clusterId,
      datacenter: options.self.datacenter,
      retryJoin: transport === undefined ? [] : options.retryJoin,
      own: () => {
        const linked = (transport?.peers() ?? []).filter(({ isLinked }) => isLinked);
        return [self().address, ...linked.map(({ address }) => address)];
      },
      whoIsAt: async (address) => {
        if (transport === undefined) throw new RpcError('unreachable', 'there is no cluster port');
        return transport.whoIsAt(address, timing.callMs);
      },
    });
  }

  #createDigests(): DigestWatch {
    const { options, machine, timing, onOver } = this.#seat;
    return new DigestWatch({
      self: this.#node,
      machine,
      clock: options.clock,
      logger: options.logger,
      timing,
      members: () => this.views(),
      call: (to, method, payload) => this.#call(to, method, payload, timing.callMs),
      unseat: (voters) => this.leading.unseat(voters),
      onWrong: (says) => onOver('quarantined', says),
    });
  }

  #createHandlers(): HandlerByMethod {
    const { clusterId, self, log, machine } = this.#seat;
    const inbox = this.#inbox;
    const answers = answersOf({
      clusterId,
      self,
      log,
      leading: this.leading,
      uses: () => machine.usesLevel,
      introduction: () => this.#introduction(),
      onHeard: (member) => this.#onHeard(member),
      onRemovedTold: () => {
        this.#announcing.doubt();
        this.#looks.now();
      },
    });
    return {
      ...answers,
      'member.digest': ({ payload }) => this.#digests.onAsked(payload),
      'member.diverged': async ({ payload }) => this.#digests.onTold(payload),
      'member.snapshot-begin': ({ from, payload }) => inbox.begin(from.node, payload),
      'member.snapshot-chunk': ({ from, payload }) => inbox.chunk(from.node, payload),
      'member.snapshot-finish': ({ from, payload }) => inbox.finish(from.node, payload),
      'member.snapshot-abandon': ({ from, payload }) => inbox.abandon(from.node, payload),
    };
  }

  #every(everyMs: number, work: () => Promise<void>): Repeated {
    const { clock, logger } = this.#seat.options;
    const onFailed = (error: unknown): void => {
      if (!this.#isClosed) logger.warn({ why: messageOf(error) }, 'looking after the group failed');
    };
    return new Repeated({ clock, everyMs, work, onFailed });
  }

  #introduction(): Introduction {
    const { self, options, clusterId } = this.#seat;
    return {
      record: self(),
      expect: options.bootstrapExpect,
      clusterId,
      leader: this.leader(),
      members: this.replica.groupRecord().members,
    };
  }

  async #look(): Promise<void> {
    if (this.#isClosed) return;
    const { leader } = this.replica.lead();
    if (leader !== undefined) this.#leaderSeenAtMs = this.#seat.options.clock.monotonicMs();
    if (this.leading.isLeading) await this.leading.look();
    else if (leader !== this.#node) await this.#announcing.look();
  }

  /**
   * What is committed when a barrier begins is on record here when it is through: whoever is not on it then
   * has left the group. The leader tells them so while there is a link still; who cannot be told asks when
   * it is back.
   */
  async #settle(): Promise<void> {
    const unsettled = this.directory.unsettled();
    if (this.#isClosed || unsettled.length === 0) return;
    try {
      await this.replica.readBarrier();
    } catch {
      // No leader could prove itself: everybody still counts, and the next time asks again.
      return;
    }
    this.#followGroup();
    await this.#tellRemoved(unsettled.filter(({ node }) => !this.#isOnRecord(node)));
    this.directory.settle(unsettled);
    this.#link();
  }

  /** Where no leader is known, somebody of whom the record knows nothing may be the one to lead next. */
  #onHeard(member: MemberRecord): void {
    if (this.replica.lead().leader === undefined) this.directory.tell([member]);
    this.directory.heard(member);
    this.#link();
  }

  #onLeaderChanged(): void {
    this.#looks.now();
    this.#proofs.now();
    if (this.replica.lead().isLeader) this.#strangers.now();
    this.#seat.onChanged();
  }

  #onGroupChanged(): void {
    this.#followGroup();
    this.#link();
    // If this node is not on it, that may be long past: the look asks the leader.
    this.#looks.now();
    this.#proofs.now();
    this.#seat.onChanged();
  }

  #followGroup(): void {
    this.#group = this.replica.groupRecord();
    this.directory.follow(this.#group);
  }

  #isOnRecord(node: NodeId): boolean {
    return this.#group.members.some((member) => member.node === node);
  }

  async #tellRemoved(gone: readonly MemberRecord[]): Promise<void> {
    if (gone.length === 0 || this.replica.status().standing !== 'leader') return;
    const { timing, clusterId } = this.#seat;
    const payload = encodeText(clusterId);
    const told = gone.map(({ node }) => this.#call(node, 'member.removed', payload, timing.callMs));
    await Promise.allSettled(told);
  }

  #link(): void {
    if (!this.#isClosed) this.#seat.transport?.setPeers(this.directory.peers());
  }
}
