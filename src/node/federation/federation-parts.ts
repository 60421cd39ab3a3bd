// The parts of this node's work in the federation, made in the order in which they need each other, tied
// together, and closed in the reverse order. What starts and stops them is `node-federation.ts`: of that they
// see whether this server reigns, and they tell it when something that its role depends on may have changed.

import type { Closer } from '../../../cluster/base/closer.ts';
import type { OwnRecord } from '../../../cluster/federation/directory/directory.ts';
import { Gossip } from '../../../cluster/federation/directory/gossip.ts';
import type { EntrySource } from '../../../cluster/federation/entry-source.ts';
import type { GlobalBatch } from '../../../cluster/federation/feed/feed-reader.ts';
import { FeedServer, type FeedStanding } from '../../../cluster/federation/feed/feed-server.ts';
import { Subscriber } from '../../../cluster/federation/feed/subscriber.ts';
import { Promotion } from '../../../cluster/federation/promotion/promotion.ts';
import { Slots } from '../../../cluster/federation/slots/slots.ts';
import { SnapshotLender } from '../../../cluster/federation/snapshot/snapshot-lender.ts';
import type { Member } from '../../../cluster/member/group-member.ts';
import type { Command } from '../../state/commands/commands.ts';
import { GLOBAL_LOG_LEVEL, levelOfEntry } from '../../state/commands/feature-levels.ts';
import type { Outcome } from '../../state/commands/outcome.ts';
import { linksAtHead } from '../../state/global-log/entry-head.ts';
import { decodeEntry } from '../../state/global-log/global-entry.ts';
import { FIRST_EPOCH, removedOf } from '../../state/global-log/replication.ts';
import type { StateMachine } from '../../state/machine.ts';
import type { Platform } from '../platform.ts';
import type { ClockWatch } from '../reign/clock-watch.ts';
import { leftBehindBy, unreadableBy } from '../reign/feature-level.ts';
import type { FederationPlan } from '../settings/federation-settings.ts';
import { adoptFederation, GlobalLogBeginning } from './beginning/begin-global-log.ts';
import { Enlisting } from './beginning/enlisting.ts';
import { federationElsewhere } from './beginning/federation-elsewhere.ts';
import { DatacenterCalls } from './calls/datacenter-calls.ts';
import { DatacenterLine } from './calls/datacenter-line.ts';
import { feedStandingOf, hasWritten } from './federation-role.ts';
import { FederationView } from './federation-view.ts';
import { OutsidePlaces } from './gate/outside-places.ts';
import { PrimaryGate } from './gate/primary-gate.ts';
import { ComingEntries } from './ports/coming-entries.ts';
import { feedSourceOf } from './ports/feed-source.ts';
import { applyBatch, type FollowingDeps } from './ports/follow-primary.ts';
import { GlobalSnapshotSink, lentBy } from './ports/global-snapshots.ts';
import { promotionPortOf } from './ports/promotion-port.ts';
import { trimGlobalLog } from './ports/trim-global-log.ts';

export interface FederationPartsOptions {
  readonly plan: FederationPlan;
  readonly platform: Pick<Platform, 'clock' | 'random' | 'logger'>;
  readonly member: Member<Outcome>;
  readonly machine: StateMachine;
  readonly clusterId: () => string | undefined;
  /** Rejects as `ServiceDeps.propose` says. */
  readonly propose: (command: Command) => Promise<Outcome>;
  /** Calls to other datacenters that may be under way at once. */
  readonly countMax: number;
  readonly clocks: Pick<ClockWatch, 'noteEntry' | 'forgetEntries'>;
  /** Whether all read what the global log says. */
  readonly mayBegin: () => boolean;
  /** Whether this server has had, since its start, all that its leader began with. */
  readonly hasCaughtUp: () => boolean;
}

/** What the parts see of whoever starts and stops them. */
export interface OwnReign {
  /** The term in which this server reigns; undefined outside of a reign. */
  readonly term: () => number | undefined;
  /** What others tell, which the role of this server may depend on, has changed. */
  readonly onChanged: () => void;
}

/** How often it is looked what of the global log may go: what goes at once delays what comes meanwhile. */
const REVIEW_MS = 1_000;

export class FederationParts {
  readonly calls: DatacenterCalls;
  readonly gate: PrimaryGate;
  /** Proposes what the federation brings, as far as the gate lets it through. */
  readonly following: FollowingDeps & { readonly coming: ComingEntries };
  readonly beginning: GlobalLogBeginning;
  readonly enlisting: Enlisting;
  readonly gossip: Gossip;
  readonly view: FederationView;
  readonly outside: OutsidePlaces;
  readonly line: DatacenterLine;
  readonly feed: FeedServer;
  readonly lender: SnapshotLender;
  readonly slots: Slots;
  readonly subscriber: Subscriber;
  readonly promotion: Promotion;
  readonly #options: FederationPartsOptions;
  readonly #reign: OwnReign;

  constructor(options: FederationPartsOptions, reign: OwnReign, closer: Closer) {
    this.#options = options;
    this.#reign = reign;
    this.calls = this.#newCalls();
    this.gate = this.#newGate();
    closer.defer(options.machine.onGlobalLogMoved(() => this.gate.hearing.look()));
    const { clock } = options.platform;
    this.following = {
      propose: (command) => this.gate.global.pass(command.change, () => options.propose(command)),
      wallMs: () => clock.wallMs(),
      coming: new ComingEntries(),
    };
    this.beginning = this.#newBeginning();
    this.enlisting = this.#newEnlisting();
    closer.defer(() => this.enlisting.close());
    this.gossip = this.#newGossip();
    closer.defer(() => this.gossip.close());
    this.view = this.#newView();
    const isRemoved = (each: string): boolean => this.view.isRemoved(each);
    this.outside = new OutsidePlaces({ clock, machine: options.machine, isRemoved });
    this.line = this.#newLine();
    const source = this.#newSource();
    this.feed = this.#newFeed(source);
    closer.defer(() => this.feed.close());
    this.lender = this.#newLender();
    closer.defer(() => this.lender.close());
    this.slots = this.#newSlots(source);
    closer.defer(() => this.slots.stop());
    this.subscriber = this.#newSubscriber();
    closer.defer(() => this.subscriber.stop());
    this.promotion = this.#newPromotion(source);
    closer.defer(() => this.promotion.stop());
  }

  get isReigning(): boolean {
    return this.#reign.term() !== undefined;
  }

  /** Who has a part in the federation, or may come to, the own one first: without those that go on alone. */
  partners(): readonly string[] {
    const { directory } = this.gossip;
    return this.view.datacenters().filter((each) => !directory.goesAlone(each));
  }

  /**
   * Whether a voter may go by an older list, with one that was removed or let back since. A list that names nobody as
   * removed tells nothing of that to a leader that has heard no voter yet.
   */
  get mayCountRemoved(): boolean {
    const replication = this.#options.machine.replication();
    const heardSeq = this.feed.acknowledgedSeq('majority');
    const mayBeShorter = heardSeq > 0 || removedOf(replication).length > 0;
    return mayBeShorter && heardSeq < (replication?.datacentersSeq ?? 0);
  }

  /** Empty while this datacenter belongs to none. */
  get #federationId(): string {
    return this.#options.machine.replication()?.federationId ?? '';
  }

  #newCalls(): DatacenterCalls {
    const { member, plan } = this.#options;
    return new DatacenterCalls({
      ...{ member, datacenter: plan.datacenter },
      federationId: () => this.#federationId,
      view: () => this.view,
      overhear: (request) => {
        this.gossip.overhear(request);
        this.outside.overhear(request);
      },
    });
  }

  #newGate(): PrimaryGate {
    const { hasCaughtUp, machine, plan, platform } = this.#options;
    return new PrimaryGate({
      ...{ plan, machine, hasCaughtUp, clock: platform.clock, isReigning: () => this.isReigning },
      heard: () => {
        const { beginning, calls, feed, gossip, promotion, subscriber, view } = this;
        const { directory } = gossip;
        const askSeeds = () => gossip.hearSeeds();
        return { askSeeds, beginning, calls, directory, feed, promotion, subscriber, view };
      },
    });
  }

  #newBeginning(): GlobalLogBeginning {
    const { machine, member, plan, platform } = this.#options;
    const call = member.call.bind(member);
    const { datacenter, retryJoin: seeds } = plan;
    return new GlobalLogBeginning({
      ...{ ...platform, ...this.#options, following: this.following },
      elsewhere: () =>
        federationElsewhere({
          ...{ clock: platform.clock, datacenter, seeds, call },
          hasWritten: hasWritten(machine.position()),
        }),
    });
  }

  #newEnlisting(): Enlisting {
    const { machine, platform } = this.#options;
    return new Enlisting({
      ...{ ...platform, machine, following: this.following },
      clusterIdOf: (each) => this.#clusterHeardAs(each),
      isLed: () => this.isReigning && this.view.isPrimary,
      majoritySeq: () => this.feed.acknowledgedSeq('majority'),
    });
  }

  /** Of this datacenter, or as it was let in to follow. */
  #clusterHeardAs(datacenter: string): string | undefined {
    const { clusterId, plan } = this.#options;
    if (datacenter === plan.datacenter) return clusterId();
    return this.feed.clusterIdOf(datacenter);
  }

  #newGossip(): Gossip {
    const { platform, member, plan, clusterId } = this.#options;
    return new Gossip({
      ...platform,
      datacenter: plan.datacenter,
      clusterId: () => clusterId() ?? '',
      federationId: () => this.#federationId,
      isRemoved: (datacenter) => this.view.isRemoved(datacenter),
      // Others may lag behind, and would take that for the word of one that has a part in the federation.
      knowsRemoved: (each) => each === plan.datacenter || each === this.view.primary().datacenter,
      clusterIdOf: (datacenter) => this.view.clusterIdOf(datacenter),
      isFollowed: (datacenter) => this.view.isFollowed(datacenter),
      own: () => this.#ownRecord(),
      seeds: plan.retryJoin,
      neighbours: () => member.members().flatMap((each) => (each.isSelf ? [] : [each.address])),
      call: this.calls.callFollowed,
      onChanged: () => this.#reign.onChanged(),
    });
  }

  /** The leader speaks for its datacenter. */
  #ownRecord(): OwnRecord | undefined {
    const { clusterId, machine } = this.#options;
    const own = clusterId();
    const term = this.#reign.term();
    if (term === undefined || own === undefined) return undefined;
    const { datacenter, epoch } = this.view.primary();
    return {
      clusterId: own,
      federationId: this.#federationId,
      addresses: this.view.ownAddresses(),
      primary: datacenter,
      epoch,
      term,
      level: machine.usesLevel,
    };
  }

  #newView(): FederationView {
    const { machine, member, plan } = this.#options;
    const { directory } = this.gossip;
    const followers = () => this.enlisting.followers;
    const isKeptOut = () => this.beginning.keptOutBecause !== undefined;
    return new FederationView({ plan, machine, member, directory, isKeptOut, followers });
  }

  #newLine(): DatacenterLine {
    const { countMax, plan } = this.#options;
    return new DatacenterLine({
      addresses: (datacenter) => this.view.addressesOf(datacenter),
      ...{ call: this.calls.call, countMax, ackTimeoutMs: plan.ackTimeoutMs },
    });
  }

  #newSource(): EntrySource {
    const { machine, platform } = this.#options;
    return feedSourceOf(machine, (seq) => {
      const says =
        'an entry of the global log is damaged on this disk: who needs it gets a snapshot';
      platform.logger.error({ seq }, says);
    });
  }

  #newFeed(source: EntrySource): FeedServer {
    const { platform, plan } = this.#options;
    const standing = () => this.#standing();
    const onNewerEpoch = (epoch: number) => void this.promotion.onNewerEpoch(epoch);
    return new FeedServer({
      ...platform,
      ...{ datacenter: plan.datacenter, source, standing, onNewerEpoch },
    });
  }

  #newLender(): SnapshotLender {
    const { machine, platform } = this.#options;
    const standing = () => this.#standing();
    const onAsked = (each: string) => this.feed.heard(each);
    const open = () => lentBy(machine);
    return new SnapshotLender({ ...platform, standing, open, onAsked });
  }

  #standing(): FeedStanding {
    const { machine } = this.#options;
    return feedStandingOf({
      replication: machine.replication(),
      isReigning: this.isReigning,
      level: machine.usesLevel,
      datacenters: this.partners(),
      primaryAddresses: () => this.view.primaryAddresses(),
    });
  }

  #newSlots(source: EntrySource): Slots {
    const { platform, machine, plan, propose } = this.#options;
    const trimming = { ...this.following, machine, propose, isReigning: () => this.isReigning };
    return new Slots({
      ...{ ...platform, datacenter: plan.datacenter, source },
      // What nobody follows is kept for a short while only.
      datacenters: () => (this.view.isPrimary ? this.view.datacenters() : [plan.datacenter]),
      followers: () => this.feed.followers(),
      // Of what the primary was the last to give, a witness may be all that is left.
      pinnedSeq: () =>
        machine.replication()?.isWitness === true ? source.kept.afterSeq : this.lender.pinnedSeq,
      majoritySeq: () =>
        this.view.isPrimary ? this.feed.acknowledgedSeq('majority') : source.head.seq,
      unusedTimeMs: () => machine.unusedTimeMs(),
      trim: (upToSeq) => trimGlobalLog(trimming, upToSeq),
      limits: { maxBytes: plan.logMaxBytes, maxAgeMs: plan.logMaxAgeMs },
      reviewMs: Math.min(REVIEW_MS, plan.logMaxAgeMs),
    });
  }

  #newSubscriber(): Subscriber {
    const { platform, machine, plan, clusterId } = this.#options;
    return new Subscriber({
      ...platform,
      call: this.calls.callFollowed,
      addresses: () => this.view.primaryAddresses(),
      toldEpoch: () => this.gossip.directory.primary()?.epoch ?? 0,
      clusterId: () => clusterId() ?? '',
      federationId: () => this.#federationId,
      adopt: (federationId) => adoptFederation(machine, this.following, federationId),
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
      apply: (batch) => {
        this.#noteTime(batch);
        return applyBatch({ ...this.following, machine }, batch.epoch, batch);
      },
      sink: new GlobalSnapshotSink(machine, this.following),
      settled: () => this.following.coming.over(),
    });
  }

  #noteTime({ entries }: GlobalBatch): void {
    const last = entries.at(-1);
    const timeMs = last && linksAtHead(last.bytes)?.timeMs;
    if (timeMs !== undefined) this.#options.clocks.noteEntry(timeMs);
  }

  #newPromotion(source: EntrySource): Promotion {
    const { platform, machine, plan } = this.#options;
    return new Promotion({
      ...platform,
      datacenter: plan.datacenter,
      source,
      unreadableBy: (datacenter, entries) =>
        unreadableBy(datacenter, {
          // Whoever lacks some of a global log has one.
          reads: this.gossip.directory.levelOf(datacenter) ?? GLOBAL_LOG_LEVEL,
          needs: Math.max(...entries.map(({ bytes }) => levelOfEntry(decodeEntry(bytes)))),
        }),
      port: promotionPortOf({
        ...this.following,
        machine,
        random: platform.random,
        gate: this.gate.global,
        isReigning: () => this.isReigning,
        leftBehindBy: (successor) => this.#leftBehindBy(successor),
      }),
      federationId: () => this.#federationId,
      addressesOf: (datacenter) => this.view.addressesOf(datacenter),
      claim: () => this.gossip.directory.primary(),
      heardEpoch: () => this.gate.reigns.heardEpoch(),
      isRivalled: (epoch) =>
        (epoch !== FIRST_EPOCH && this.gossip.directory.isRivalled(plan.datacenter, epoch)) ||
        this.outside.ahead().some(({ upTo }) => upTo.epoch === epoch),
      passesOver: () => this.#passedOverText(),
      hearAll: () => this.gossip.hearAll(),
      ahead: () => this.gate.reigns.ahead(),
      haveTold: () => this.gate.hearing.over(),
      isNamed: (each) => this.view.clusterIdOf(each) !== undefined,
      datacenters: () => this.view.datacenters(),
      onWriterAsks: () => this.subscriber.beginAnew(),
      isDiverged: () => this.subscriber.state().kind === 'diverged',
      ackedSeqOf: (datacenter) => {
        const followers = this.feed.followers();
        return followers.find((each) => each.datacenter === datacenter)?.acked?.seq;
      },
      call: this.calls.call,
      callFollowed: this.calls.callFollowed,
    });
  }

  /** A later reign may be heard of while a hand-over waits. */
  #passedOverText(): string | undefined {
    return this.gate.reigns.outrunText() ?? this.gate.reigns.passedOverText();
  }

  async #leftBehindBy(successor: string): Promise<string | undefined> {
    const { machine, member, plan } = this.#options;
    await Promise.all([this.gossip.hearAll(), this.gate.hearing.over()]);
    const passedOver = this.#passedOverText();
    if (passedOver !== undefined) return passedOver;
    return leftBehindBy(successor, {
      own: plan.datacenter,
      uses: machine.usesLevel,
      members: member.members(),
      datacenters: this.partners(),
      levelOf: (name) => this.gossip.directory.levelOf(name),
    });
  }
}
