// A node as a member of its group: opens what it takes in order (machine, log, transport, replica) and
// closes it in reverse. A node that has no group yet listens, and looks for one; it takes its place
// when it has found or founded one.

import { assert } from './base/assert.ts';
import type { RequireStill } from './base/require-still.ts';
import { readQuarantine, writeQuarantine } from './log/cluster-identity.ts';
import { DurableLog, readGeneration } from './log/durable-log.ts';
import { foundingPayloads } from './member/founding/founding.ts';
import { type Gathered, Gathering } from './member/founding/gathering.ts';
import { Identity } from './member/founding/identity.ts';
import { nodeNumberOf } from './member/founding/node-number.ts';
import type {
  AutopilotState,
  DigestedMachine,
  Member,
  MemberOptions,
  MemberStanding,
  MemberView,
  OtherCluster,
} from './member/group-member.ts';
import { otherIdText } from './member/leading/admission.ts';
import { type HandlerByMethod, MemberCalls, type ServiceCallers } from './member/member-calls.ts';
import { DEFAULT_MEMBER_LIMITS, DEFAULT_MEMBER_TIMING } from './member/member-timing.ts';
import { Seat } from './member/seat/seat.ts';
import type { NetAddress } from './platform/net.ts';
import type { NodeId } from './raft/node-id.ts';
import {
  type AutopilotSettings,
  EMPTY_GROUP,
  type GroupRecord,
  type MemberRecord,
} from './replica/group-record.ts';
import { GroupRefusal } from './replica/group-refusal.ts';
import type { GroupReplica } from './replica/group-replica.ts';
import { Listeners } from './replica/listeners.ts';
import type { ReplicaStatus } from './replica/replica.ts';
import { RpcError } from './transport/calls/rpc-error.ts';
import { openTransport } from './transport/open-transport.ts';
import type { RpcCall, RpcCaller, RpcServer, Transport } from './transport/transport.ts';

/**
 * Resolves when the node listens; it may have no group yet: its standing tells. Rejects with LogDamage,
 * or when it cannot listen.
 */
export async function openMember<Outcome>(
  options: MemberOptions<Outcome>,
): Promise<Member<Outcome>> {
  const machine = await options.openMachine(readGeneration(options.logKv));
  const member = new OpenMember(options, machine);
  try {
    await member.open();
  } catch (error) {
    await member.close();
    throw error;
  }
  return member;
}

class OpenMember<Outcome> implements Member<Outcome> {
  readonly machine: DigestedMachine<Outcome>;
  readonly node: NodeId;
  readonly #options: MemberOptions<Outcome>;
  readonly #timing;
  readonly #limits;
  readonly #identity: Identity;
  readonly #calls: MemberCalls;
  readonly #listeners = new Listeners();
  #transport: Transport | undefined;
  #gathering: Gathering | undefined;
  #seat: Seat<Outcome> | undefined;
  #over: Extract<MemberStanding, { readonly kind: 'removed' | 'quarantined' }> | undefined;
  /** What is being opened or given up in the background. */
  #work: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  constructor(options: MemberOptions<Outcome>, machine: DigestedMachine<Outcome>) {
    this.machine = machine;
    this.node = nodeNumberOf(options.self.id);
    this.#options = options;
    this.#timing = { ...DEFAULT_MEMBER_TIMING, ...options.timing };
    this.#limits = { ...DEFAULT_MEMBER_LIMITS, ...options.limits };
    this.#identity = new Identity(options.logKv, options.self.id);
    this.#calls = new MemberCalls({
      clock: options.clock,
      logger: options.logger,
      self: options.self,
      ownHandlers: () => this.#ownHandlers(),
      isMember: (node) => this.groupRecord().members.some((member) => member.node === node),
    });
  }

  get address(): NetAddress | undefined {
    return this.#transport?.address;
  }

  async open(): Promise<void> {
    const { logKv, listen } = this.#options;
    // Damage is found before anybody can ask anything of this node.
    const log = await DurableLog.open(logKv, this.machine.appliedEntry);
    // A log without the id of a cluster is of a release that knew none.
    const isEarlier = this.#identity.clusterId === undefined && log.lastIndex > 0;
    if (isEarlier) await this.#identity.adopt(this.#options.random.uuid());
    const quarantine = readQuarantine(logKv);
    if (quarantine !== undefined) {
      this.#end('quarantined', quarantine);
      return;
    }
    if (listen !== undefined) this.#transport = await this.#openTransport(listen);
    if (this.#identity.clusterId === undefined && this.#isAlone) await this.#foundAlone();
    if (this.#identity.clusterId !== undefined)
      await this.#takeSeat({ told: [], isFounder: false });
    else this.#gather();
  }

  propose(payload: Uint8Array): Promise<Outcome> {
    const replica = this.#replicaNow();
    return replica === undefined ? this.#refuse('not-leader') : replica.propose(payload);
  }

  readBarrier(): Promise<void> {
    const replica = this.#replicaNow();
    return replica === undefined ? this.#refuse('no-quorum') : replica.readBarrier();
  }

  status(): ReplicaStatus {
    return this.#seat?.replica.status() ?? NO_STATUS;
  }

  standing(): MemberStanding {
    if (this.#over !== undefined) return this.#over;
    const seat = this.#seat;
    if (seat === undefined) {
      return { kind: 'joining', says: this.#gathering?.says ?? 'the server is starting' };
    }
    const at = seat.replica.lead();
    if (!at.isMember) return { kind: 'joining', says: this.#sayTakesIn(seat) };
    const { isLeader, lastContactMs, term, isDiskStalled } = at;
    const leader = seat.memberOf(at.leader);
    return { kind: 'member', isLeader, leader, lastContactMs, term, isDiskStalled };
  }

  groupRecord(): GroupRecord {
    return this.#seat?.replica.groupRecord() ?? EMPTY_GROUP;
  }

  members(): readonly MemberView[] {
    return this.#seat?.views() ?? [];
  }

  otherClusters(): readonly OtherCluster[] {
    return this.#seat?.otherClusters() ?? [];
  }

  call(to: NodeId | NetAddress, request: RpcCall): Promise<Uint8Array> {
    if (to === this.node) return this.#calls.answerOwn({ ...request, from: this.#caller() });
    if (this.#transport !== undefined) return this.#transport.call(to, request);
    const says = `${request.method} was not sent: this server has no cluster port`;
    return Promise.reject(new RpcError('unreachable', says));
  }

  serve(method: string, handler: RpcServer, options?: { readonly from: ServiceCallers }): void {
    this.#calls.serve(method, handler, options?.from ?? 'own-datacenter');
  }

  async transferLeadership(to: NodeId | undefined): Promise<void> {
    await this.#requireSeat().leading.transfer(to);
  }

  async removeMember(node: NodeId, requireStill?: RequireStill): Promise<void> {
    await this.#requireSeat().leading.remove(node, requireStill);
  }

  async setAutopilot(
    settings: AutopilotSettings,
    ifIndex?: number,
    requireStill?: RequireStill,
  ): Promise<boolean> {
    return this.#requireSeat().leading.setAutopilot(settings, ifIndex, requireStill);
  }

  autopilotState(): AutopilotState {
    return this.#requireSeat().leading.autopilotState();
  }

  onLeaderChanged(listener: () => void): () => void {
    return this.#listeners.add(listener);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#gathering?.close();
    await this.#identity.close();
    await this.#work;
    await this.#seat?.close();
    await this.#transport?.close();
    await this.#seat?.ended();
  }

  #openTransport(listen: NetAddress): Promise<Transport> {
    const { net, clock, random, logger, self, clusterKey, ...rest } = this.#options;
    const { acceptedKeys, federationId, transportTiming, transportLimits } = rest;
    const { id, name, datacenter, version, reads } = self;
    return openTransport({
      net,
      clock,
      random,
      logger,
      self: { node: this.node, id, name, datacenter, version, reads },
      uses: () => this.machine.usesLevel,
      clusterId: () => this.#identity.clusterId,
      ...(federationId !== undefined && { federationId }),
      clusterKey,
      ...(acceptedKeys !== undefined && { acceptedKeys }),
      listen,
      onMessage: (message) => this.#replicaNow()?.receive(message),
      onLinkClosed: (node) => this.#replicaNow()?.linkClosed(node),
      serve: (request) => this.#calls.answer(request),
      ...(transportTiming !== undefined && { timing: transportTiming }),
      ...(transportLimits !== undefined && { limits: transportLimits }),
    });
  }

  /** Nobody to found with, nobody to join, nobody to whom it is promised. */
  get #isAlone(): boolean {
    const { bootstrapExpect, retryJoin } = this.#options;
    return bootstrapExpect === 1 && retryJoin.length === 0 && this.#identity.given === undefined;
  }

  async #foundAlone(): Promise<void> {
    const clusterId = this.#options.random.uuid();
    await this.#identity.foundAlone({ clusterId, payloads: foundingPayloads([this.#record()]) });
    this.#options.logger.info({ cluster: clusterId }, 'founded a cluster of this server alone');
  }

  #gather(): void {
    const { clock, random, logger, bootstrapExpect, retryJoin } = this.#options;
    const { callMs } = this.#timing;
    this.#gathering = new Gathering({
      identity: this.#identity,
      clock,
      random,
      logger,
      timing: this.#timing,
      self: () => this.#record(),
      expect: bootstrapExpect,
      retryJoin,
      call: async (to, method, payload) => {
        if (this.#transport === undefined) throw new RpcError('unreachable', 'no cluster port');
        return this.#transport.call(to, { method, payload, deadlineMs: callMs, hops: 0 });
      },
      onGathered: (gathered) => {
        this.#work = this.#takeSeat(gathered).catch((error: unknown) => {
          const cause = error instanceof Error ? error : new Error(String(error));
          this.#options.onFatal(cause);
        });
      },
    });
    this.#gathering.start();
  }

  async #takeSeat({ told, isFounder }: Gathered): Promise<void> {
    const { logKv, logger } = this.#options;
    const { clusterId } = this.#identity;
    assert(clusterId !== undefined, 'a node takes its place in a cluster that it belongs to');
    await this.#identity.forgetPromise();
    const log = await DurableLog.open(logKv, this.machine.appliedEntry);
    if (this.#closing !== undefined) return;
    this.#seat = new Seat({
      options: this.#options,
      timing: this.#timing,
      limits: this.#limits,
      clusterId,
      log,
      machine: this.machine,
      transport: this.#transport,
      self: () => this.#record(),
      told,
      isFounder,
      onChanged: () => this.#listeners.call(),
      onOver: (kind, says) => this.#end(kind, says),
    });
    logger.info({ cluster: clusterId, node: this.node }, 'took its place in the cluster');
    this.#listeners.call();
  }

  /** Its record of the group does not name this server. Whoever joins hears a leader. */
  #sayTakesIn({ replica, couldNotKeepState }: Seat<Outcome>): string {
    const failed = couldNotKeepState ? ', and could not keep it: its log says why' : '';
    const says = `this server takes in what the cluster has written so far${failed}`;
    const otherId = otherIdText(this.#options.self, replica.groupRecord());
    if (otherId === undefined || replica.lead().leader !== undefined) return says;
    return `${says}, and no leader is heard: ${otherId}`;
  }

  /** The node takes no part any more, and says so; whoever runs it decides what comes next. */
  #end(kind: 'removed' | 'quarantined', why: string): void {
    if (this.#over !== undefined || this.#closing !== undefined) return;
    const otherId = otherIdText(this.#options.self, this.groupRecord());
    const says = kind === 'removed' && otherId !== undefined ? `${why}. But ${otherId}` : why;
    this.#over = { kind, says };
    this.#options.logger.error({ standing: kind }, says);
    this.#work = this.#work
      .then(() => this.#giveUpSeat())
      .catch((error: unknown) => {
        this.#options.logger.error(
          { cause: error },
          'what is left of the membership failed to close',
        );
      });
    this.#listeners.call();
  }

  async #giveUpSeat(): Promise<void> {
    const seat = this.#seat;
    if (seat === undefined || this.#over === undefined) return;
    await seat.close();
    this.#transport?.setPeers(new Map());
    const { kind, says } = this.#over;
    // A removed node is told again when it asks; of a wrong state nobody would know after a restart.
    if (kind === 'quarantined') await writeQuarantine(this.#options.logKv, says);
  }

  #ownHandlers(): HandlerByMethod {
    if (this.#over !== undefined) return {};
    return this.#seat?.handlers ?? this.#gathering?.handlers ?? {};
  }

  #record(): MemberRecord {
    const { id, name, version, httpAddress } = this.#options.self;
    const address = this.#addressForOthers();
    return { node: this.node, id, name, address, httpAddress: httpAddress(), version };
  }

  #addressForOthers(): NetAddress {
    const listening = this.#transport?.address ?? { host: '', port: 0 };
    const { advertise } = this.#options;
    if (advertise === undefined) return listening;
    return { host: advertise.host, port: advertise.port === 0 ? listening.port : advertise.port };
  }

  #caller(): RpcCaller {
    const { federationId, self } = this.#options;
    const { id, name, version, reads, datacenter } = self;
    return {
      node: this.node,
      id,
      name,
      version,
      reads,
      datacenter,
      clusterId: this.#identity.clusterId ?? '',
      federationId: federationId?.() ?? '',
      remote: 'this server',
    };
  }

  /** Undefined before there is a place in a group, and after it is lost. */
  #replicaNow(): GroupReplica<Outcome> | undefined {
    return this.#over === undefined ? this.#seat?.replica : undefined;
  }

  #refuse(code: 'not-leader' | 'no-quorum'): Promise<never> {
    return Promise.reject(new GroupRefusal(code, this.#sayStanding()));
  }

  #requireSeat(): Seat<Outcome> {
    if (this.#over === undefined && this.#seat !== undefined) return this.#seat;
    throw new GroupRefusal('not-leader', this.#sayStanding());
  }

  #sayStanding(): string {
    const standing = this.standing();
    return standing.kind === 'member' ? 'the server is closing' : standing.says;
  }
}

const NO_STATUS: ReplicaStatus = {
  standing: 'follower',
  term: 0,
  firstIndex: 1,
  lastIndex: 0,
  commitIndex: 0,
  appliedIndex: 0,
  queuedCount: 0,
  unappliedCount: 0,
  pendingBytes: 0,
};
