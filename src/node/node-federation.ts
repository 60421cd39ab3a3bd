// This node's part in the federation: it serves the feed while it leads the primary, follows the primary
// while it leads a secondary, and carries calls to other datacenters at any time. Which of these it does
// follows from the state of its datacenter and from its reigns, looked at again at every change of either.

import type { Closer } from '../../cluster/base/closer.ts';
import type { EntrySource } from '../../cluster/federation/entry-source.ts';
import type { OwnRecord } from '../../cluster/federation/directory/directory.ts';
import { Gossip } from '../../cluster/federation/directory/gossip.ts';
import { decodeHello, FEED_METHOD } from '../../cluster/federation/feed/feed-frames.ts';
import { FeedServer } from '../../cluster/federation/feed/feed-server.ts';
import { Subscriber } from '../../cluster/federation/feed/subscriber.ts';
import { Promotion } from '../../cluster/federation/promotion/promotion.ts';
import { type SlotAlarm, Slots } from '../../cluster/federation/slots/slots.ts';
import { SnapshotLender } from '../../cluster/federation/snapshot/snapshot-lender.ts';
import type { Member } from '../../cluster/member/group-member.ts';
import type { RpcRequest, RpcServer } from '../../cluster/transport/transport.ts';
import type { ShownFederation } from '../api/shown-federation.ts';
import type { AckLevel } from '../service/call.ts';
import type { PrimaryPort } from '../service/primary-port.ts';
import type { Errand, Federation, Primacy, WaitThere } from '../service/federation.ts';
import type { Change, Command } from '../state/commands.ts';
import { removedOf } from '../state/global-log/replication.ts';
import type { StateMachine } from '../state/machine.ts';
import type { Outcome, Position } from '../state/outcome.ts';
import { acknowledgedLevel } from './acknowledged-level.ts';
import { adoptFederation, GlobalLogBeginning } from './begin-global-log.ts';
import { DatacenterCalls } from './datacenter-calls.ts';
import { DatacenterLine } from './datacenter-line.ts';
import { Enlisting } from './enlisting.ts';
import { feedStandingOf } from './federation-role.ts';
import { federationElsewhere } from './federation-elsewhere.ts';
import { leftBehindBy, type LevelReader, readersElsewhere } from './feature-level.ts';
import type { FederationPlan } from './federation-settings.ts';
import { federationShown } from './federation-shown.ts';
import { FederationView } from './federation-view.ts';
import { feedSourceOf } from './feed-source.ts';
import { applyBatch, type FollowingDeps } from './follow-primary.ts';
import { GlobalGate } from './global-gate.ts';
import { GlobalSnapshotSink, lentBy } from './global-snapshots.ts';
import type { Platform } from './platform.ts';
import { outrunRefusal } from './outrun-refusal.ts';
import { PrimaryLease } from './primary-lease.ts';
import { primaryPortOf } from './primary-port.ts';
import { promotionPortOf } from './promotion-port.ts';
import { trimGlobalLog } from './trim-global-log.ts';

export interface NodeFederationOptions {
  readonly plan: FederationPlan;
  readonly platform: Pick<Platform, 'clock' | 'random' | 'logger'>;
  readonly member: Member<Outcome>;
  readonly machine: StateMachine;
  readonly clusterId: () => string | undefined;
  /** Rejects as `ServiceDeps.propose` says. */
  readonly propose: (command: Command) => Promise<Outcome>;
  /** Calls to other datacenters that may be under way at once. */
  readonly countMax: number;
  /** Whether all read what the global log says. */
  readonly mayBegin: () => boolean;
}

/** How often it is looked what of the global log may go. */
const REVIEW_MS = 10_000;

export class NodeFederation implements Federation {
  readonly line: DatacenterLine;
  /** Makes this datacenter primary, or another one in its place. */
  readonly promotion: Promotion;
  readonly #gate: GlobalGate;
  readonly #lease: PrimaryLease;
  readonly #deps: FollowingDeps;
  readonly #options: NodeFederationOptions;
  readonly #beginning: GlobalLogBeginning;
  readonly #calls: DatacenterCalls;
  readonly #view: FederationView;
  readonly #feed: FeedServer;
  readonly #lender: SnapshotLender;
  readonly #slots: Slots;
  readonly #subscriber: Subscriber;
  readonly #gossip: Gossip;
  readonly #enlisting: Enlisting;
  #isGossiping = false;
  /** The term in which this server reigns; undefined outside of a reign. */
  #reign: number | undefined;
  /** Since when this server has led the primary, by the monotonic clock, as the last look found it. */
  #ledSinceMs: number | undefined;
  /** Why the feed server would have to look again. */
  #role = '';

  constructor(options: NodeFederationOptions, closer: Closer) {
    this.#options = options;
    const { platform, machine, member, plan, countMax } = options;
    const { datacenter } = plan;
    this.#calls = new DatacenterCalls({
      ...{ member, datacenter },
      federationId: () => this.#federationId,
      view: () => this.#view,
      overhear: (request) => this.#gossip.overhear(request),
    });
    this.#lease = new PrimaryLease({
      ...{ clock: platform.clock, datacenter, leaseMs: plan.primaryLeaseMs },
      voters: () => this.#ledVoters(),
      heardAtMs: (each) => this.#feed.heardAtMs(each),
    });
    // What a reign begins with is written in any case: without one, nobody learns of a later reign.
    const outrunBy = () => (this.#isReigning ? this.promotion.outrunBy() : undefined);
    const refusal = () =>
      outrunRefusal(datacenter, outrunBy()) ?? this.#beginning.refusal() ?? this.#lease.refusal();
    this.#gate = new GlobalGate({ view: machine, datacenter, refusal });
    this.#deps = {
      propose: (command) => this.admit(command.change, () => options.propose(command)),
      wallMs: () => platform.clock.wallMs(),
    };
    const call = member.call.bind(member);
    const { clock } = platform;
    this.#beginning = new GlobalLogBeginning({
      ...{ ...platform, ...options, following: this.#deps },
      elsewhere: () => federationElsewhere({ clock, datacenter, seeds: plan.retryJoin, call }),
    });
    this.#enlisting = new Enlisting({
      ...{ ...platform, machine, following: this.#deps },
      clusterIdOf: (each) => this.#clusterHeardAs(each),
      isLed: () => this.#isReigning && this.isPrimary,
      majoritySeq: () => this.#feed.acknowledgedSeq('majority'),
    });
    closer.defer(() => this.#enlisting.close());
    this.#gossip = this.#newGossip();
    closer.defer(() => this.#gossip.close());
    const { directory } = this.#gossip;
    const followers = () => this.#enlisting.followers;
    const isKeptOut = () => this.#beginning.keptOutBecause !== undefined;
    this.#view = new FederationView({ plan, machine, member, directory, isKeptOut, followers });
    this.line = new DatacenterLine({
      addresses: (datacenter) => this.#view.addressesOf(datacenter),
      ...{ call: this.#calls.call, countMax, ackTimeoutMs: plan.ackTimeoutMs },
    });
    const source = feedSourceOf(machine, (seq) => {
      const says =
        'an entry of the global log is damaged on this disk: who needs it gets a snapshot';
      platform.logger.error({ seq }, says);
    });
    const standing = () => this.#standing();
    const onNewerEpoch = (epoch: number) => void this.promotion.onNewerEpoch(epoch);
    this.#feed = new FeedServer({ ...platform, datacenter, source, standing, onNewerEpoch });
    closer.defer(() => this.#feed.close());
    const onAsked = (each: string) => this.#feed.heard(each);
    const open = () => lentBy(machine);
    this.#lender = new SnapshotLender({ ...platform, standing, open, onAsked });
    closer.defer(() => this.#lender.close());
    this.#slots = this.#newSlots(source);
    closer.defer(() => this.#slots.stop());
    this.#subscriber = this.#newSubscriber();
    closer.defer(() => this.#subscriber.stop());
    this.promotion = this.#newPromotion(source);
    closer.defer(() => this.promotion.stop());
    closer.defer(
      machine.onGlobalLogMoved(() => {
        this.#look();
        void this.#enlisting.look();
      }),
    );
    const served = {
      ...{ ...this.#feed.handlers, ...this.#lender.handlers, ...this.#gossip.handlers },
      ...this.promotion.handlers,
    };
    for (const [method, handler] of Object.entries(served)) {
      this.serve(method, this.#begunBefore(method, handler));
    }
    if (plan.isFederated) this.#startGossip();
  }

  /** Serves a method for all datacenters that have a part in the federation. */
  serve(method: string, handler: RpcServer): void {
    this.#calls.serve(method, handler);
  }

  /** Makes what must exist before the first write of a reign. Rejects when it cannot. */
  async begin(): Promise<void> {
    await this.#beginning.beforeReign();
    void this.#enlisting.look();
  }

  /** Whether this datacenter writes what all share. */
  get isPrimary(): boolean {
    return this.#view.isPrimary;
  }

  /** Proposes a change, unless it is of what all share and this leader takes none at the moment. */
  admit<Output>(change: Change, propose: () => Promise<Output>): Promise<Output> {
    return this.#gate.pass(change, propose);
  }

  /** Moving the primary, in the words of the service. */
  primaryPort(): PrimaryPort {
    const { machine, plan } = this.#options;
    return primaryPortOf({
      promotion: this.promotion,
      datacenter: plan.datacenter,
      position: () => machine.position(),
      closedBecause: () => this.#gate.closedBecause(),
    });
  }

  takesGlobalWrites(): boolean {
    return this.isPrimary && this.#gate.closedBecause() === undefined;
  }

  onReign(term: number): void {
    this.#reign = term;
    this.#slots.start();
    this.promotion.start();
    this.#look();
  }

  onReignOver(): void {
    this.#reign = undefined;
    this.#slots.stop();
    this.promotion.stop();
    this.#look();
  }

  /** Datacenters that the global log does not wait for any more. */
  alarms(): readonly SlotAlarm[] {
    return this.#slots.alarms();
  }

  datacenters(): readonly string[] {
    return this.#view.datacenters();
  }

  primary(): Primacy {
    return this.#view.primary();
  }

  /** Why the primary's log did not come the last time that it did not; undefined when nobody knows. */
  get lastFailure(): string | undefined {
    return this.#beginning.keptOutBecause ?? this.#subscriber.state().lastError?.text;
  }

  /** Who besides this datacenter reads what it writes. */
  readers(): readonly LevelReader[] {
    const { machine, plan } = this.#options;
    if (!this.isPrimary) return [];
    const names = this.datacenters().filter((name) => name !== plan.datacenter);
    return readersElsewhere(names, {
      levelOf: (name) => this.#gossip.directory.levelOf(name),
      hasGlobalLog: machine.replication() !== undefined,
    });
  }

  run(datacenter: string, errand: Errand): Promise<unknown> {
    return this.line.run(datacenter, errand);
  }

  waitForChange(datacenter: string, wait: WaitThere): Promise<void> {
    return this.line.waitForChange(datacenter, wait);
  }

  acknowledged(position: Position, wanted: AckLevel, limitMs: number): Promise<AckLevel> {
    const { machine, platform } = this.#options;
    const primary = { ...platform, machine, feed: this.#feed, isPrimary: () => this.isPrimary };
    return acknowledgedLevel(primary, position, { wanted, limitMs });
  }

  status(): ShownFederation {
    const { machine, plan, platform } = this.#options;
    return federationShown({
      own: plan.datacenter,
      names: this.datacenters(),
      primary: this.primary(),
      claimOfRemoved: (each) => this.#gossip.directory.claimOfRemoved(each),
      isPrimary: this.isPrimary,
      replication: machine.replication(),
      position: machine.position(),
      followers: this.#feed.followers(),
      ledForMs: this.#ledForMs,
      refused: (each) => this.#feed.refused(each),
      majoritySeq: this.#feed.acknowledgedSeq('majority'),
      subscriber: this.#reign === undefined ? undefined : this.#subscriber.state(),
      nowMs: platform.clock.wallMs(),
    });
  }

  /** How long this server has led the primary; undefined where it does not. */
  get #ledForMs(): number | undefined {
    const { clock } = this.#options.platform;
    return this.#ledSinceMs === undefined ? undefined : clock.monotonicMs() - this.#ledSinceMs;
  }

  /** Empty while this datacenter belongs to none. */
  get #federationId(): string {
    return this.#options.machine.replication()?.federationId ?? '';
  }

  /** Of this datacenter, or as it was let in to follow. */
  #clusterHeardAs(datacenter: string): string | undefined {
    const { clusterId, plan } = this.#options;
    if (datacenter === plan.datacenter) return clusterId();
    const followers = this.#feed.followers();
    return followers.find((each) => each.datacenter === datacenter)?.clusterId;
  }

  get #isReigning(): boolean {
    return this.#reign !== undefined;
  }

  get #isFollowing(): boolean {
    const { machine } = this.#options;
    return this.#isReigning && machine.replication() !== undefined && !this.isPrimary;
  }

  /** Whose promises count, where this server leads the primary. */
  #ledVoters(): readonly string[] | undefined {
    return this.#isReigning && this.isPrimary ? this.#view.voters() : undefined;
  }

  /** The state says something else, or the reign does. */
  #look(): void {
    const { machine, platform } = this.#options;
    const replication = machine.replication();
    for (const removed of removedOf(replication)) {
      this.#enlisting.forget(removed);
      this.#feed.forget(removed);
    }
    const role = [
      this.#reign,
      this.isPrimary,
      replication?.maxEpochPromised,
      replication?.epochs.length,
      this.datacenters(),
    ].join();
    if (role === this.#role) return;
    this.#role = role;
    this.#gossip.hurry();
    const isLed = this.#ledVoters() !== undefined;
    if (isLed && this.#ledSinceMs === undefined) {
      this.#ledSinceMs = platform.clock.monotonicMs();
      this.#lease.begin();
    } else if (!isLed) this.#ledSinceMs = undefined;
    this.#feed.standingChanged();
    void this.#lender.standingChanged();
    if (replication !== undefined) this.#startGossip();
    const isStarted = this.#subscriber.state().kind !== 'idle';
    if (this.#isFollowing && !isStarted && this.#reign !== undefined) {
      this.#subscriber.start(this.#reign);
    } else if (!this.#isFollowing && isStarted) this.#subscriber.stop();
  }

  #newSlots(source: EntrySource): Slots {
    const { platform, machine, plan, propose } = this.#options;
    const trimming = { ...this.#deps, machine, propose, isReigning: () => this.#isReigning };
    return new Slots({
      ...{ ...platform, datacenter: plan.datacenter, source },
      // What nobody follows is kept for a short while only.
      datacenters: () => (this.isPrimary ? this.datacenters() : [plan.datacenter]),
      followers: () => this.#feed.followers(),
      // Of what the primary was the last to give, a witness may be all that is left.
      pinnedSeq: () =>
        machine.replication()?.isWitness === true ? source.kept.afterSeq : this.#lender.pinnedSeq,
      majoritySeq: () =>
        this.isPrimary ? this.#feed.acknowledgedSeq('majority') : source.head.seq,
      trim: (upToSeq) => trimGlobalLog(trimming, upToSeq),
      limits: { maxBytes: plan.logMaxBytes, maxAgeMs: plan.logMaxAgeMs },
      reviewMs: Math.min(REVIEW_MS, plan.logMaxAgeMs),
    });
  }

  #newSubscriber(): Subscriber {
    const { platform, machine, plan, clusterId } = this.#options;
    return new Subscriber({
      ...platform,
      call: this.#calls.callFollowed,
      addresses: () => this.#view.primaryAddresses(),
      clusterId: () => clusterId() ?? '',
      federationId: () => this.#federationId,
      adopt: (federationId) => adoptFederation(machine, this.#deps, federationId),
      cursor: () => {
        const replication = machine.replication();
        return replication?.isDiverged === true ? undefined : replication?.cursor;
      },
      place: () => {
        const cursor = machine.replication()?.cursor;
        return cursor && { cursor, digest: machine.globalDigestAt(cursor) };
      },
      maxEpoch: () => machine.replication()?.maxEpochPromised ?? 0,
      level: () => machine.usesLevel,
      isWitness: () => machine.replication()?.isWitness ?? plan.isWitness,
      apply: (batch) =>
        applyBatch(this.#deps, this.#subscriber.state().news?.epoch ?? batch.to.epoch, batch),
      sink: new GlobalSnapshotSink(machine, this.#deps),
      onState: () => undefined,
    });
  }

  #newPromotion(source: EntrySource): Promotion {
    const { platform, machine, plan } = this.#options;
    return new Promotion({
      ...platform,
      datacenter: plan.datacenter,
      source,
      port: promotionPortOf({
        ...this.#deps,
        machine,
        random: platform.random,
        gate: this.#gate,
        isReigning: () => this.#isReigning,
        leftBehindBy: (successor) => this.#leftBehindBy(successor),
      }),
      federationId: () => this.#federationId,
      addressesOf: (datacenter) => this.#view.addressesOf(datacenter),
      claim: () => this.#gossip.directory.primary(),
      heardEpoch: () => this.#gossip.directory.latestEpoch(),
      isDiverged: () => this.#subscriber.state().kind === 'diverged',
      ackedSeqOf: (datacenter) => {
        const followers = this.#feed.followers();
        return followers.find((each) => each.datacenter === datacenter)?.acked?.seq;
      },
      call: this.#calls.call,
      callFollowed: this.#calls.callFollowed,
    });
  }

  async #leftBehindBy(successor: string): Promise<string | undefined> {
    const { machine, member, plan } = this.#options;
    await this.#gossip.hearAll();
    return leftBehindBy(successor, {
      own: plan.datacenter,
      uses: machine.usesLevel,
      members: member.members(),
      datacenters: this.datacenters(),
      levelOf: (name) => this.#gossip.directory.levelOf(name),
    });
  }

  #standing() {
    const { machine } = this.#options;
    return feedStandingOf({
      replication: machine.replication(),
      isReigning: this.#isReigning,
      level: machine.usesLevel,
      datacenters: this.datacenters(),
      primaryAddresses: () => this.#view.primaryAddresses(),
    });
  }

  #newGossip(): Gossip {
    const { platform, member, plan, clusterId } = this.#options;
    return new Gossip({
      ...platform,
      datacenter: plan.datacenter,
      clusterId: () => clusterId() ?? '',
      federationId: () => this.#federationId,
      isRemoved: (datacenter) => this.#view.isRemoved(datacenter),
      clusterIdOf: (datacenter) => this.#view.clusterIdOf(datacenter),
      isFollowed: (datacenter) => this.#view.isFollowed(datacenter),
      own: () => this.#ownRecord(),
      seeds: plan.retryJoin,
      neighbours: () => member.members().flatMap((each) => (each.isSelf ? [] : [each.address])),
      call: this.#calls.callFollowed,
      onChanged: () => this.#look(),
    });
  }

  /** The leader speaks for its datacenter. */
  #ownRecord(): OwnRecord | undefined {
    const { clusterId, machine } = this.#options;
    const own = clusterId();
    if (this.#reign === undefined || own === undefined) return undefined;
    const { datacenter, epoch } = this.primary();
    return {
      clusterId: own,
      federationId: this.#federationId,
      addresses: this.#view.ownAddresses(),
      primary: datacenter,
      epoch,
      term: this.#reign,
      level: machine.usesLevel,
    };
  }

  #startGossip(): void {
    if (this.#isGossiping || this.#options.member.address === undefined) return;
    this.#isGossiping = true;
    this.#gossip.start();
  }

  #begunBefore(method: string, handler: RpcServer): RpcServer {
    if (method !== FEED_METHOD.hello) return handler;
    return async (request: RpcRequest) => {
      if (this.#isReigning && this.isPrimary) await this.#beginning.beforeHello();
      const { isWitness } = decodeHello(request.payload);
      // Who is refused can acknowledge nothing. Who is let in is known behind that, with its cluster.
      const answer = await handler(request);
      this.#enlisting.add(request.from.datacenter, isWitness);
      this.#look();
      void this.#enlisting.look();
      return answer;
    };
  }
}
