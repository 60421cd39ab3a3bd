// This node's part in the federation: it serves the feed while it leads the primary, follows the primary
// while it leads a secondary, and carries calls to other datacenters at any time. Which of these it does
// follows from the state of its datacenter and from its reigns, looked at again at every change of either.

import type { Closer } from '../../../cluster/base/closer.ts';
import { decodeHello, FEED_METHOD } from '../../../cluster/federation/feed/feed-frames.ts';
import type { Promotion } from '../../../cluster/federation/promotion/promotion.ts';
import type { SlotAlarm } from '../../../cluster/federation/slots/slots.ts';
import type { RpcRequest, RpcServer } from '../../../cluster/transport/transport.ts';
import { AclError } from '../../acl/error.ts';
import type { ShownFederation } from '../../api/render/shown-federation.ts';
import type { AckLevel } from '../../service/call.ts';
import type {
  Errand,
  Federation,
  Primacy,
  WaitThere,
} from '../../service/datacenters/federation.ts';
import type { PrimaryPort } from '../../service/operators/primary-port.ts';
import type { Change } from '../../state/commands/commands.ts';
import { GLOBAL_LOG_LEVEL } from '../../state/commands/feature-levels.ts';
import type { Position } from '../../state/global-log/cursor.ts';
import { removedOf } from '../../state/global-log/replication.ts';
import { primaryPortOf } from '../operators/primary-port.ts';
import { type LevelReader, readersElsewhere } from '../reign/feature-level.ts';
import { acknowledgedLevel } from './acknowledged/acknowledged-level.ts';
import type { DatacenterLine } from './calls/datacenter-line.ts';
import { FederationParts, type FederationPartsOptions } from './federation-parts.ts';
import { overruledSettings } from './federation-role.ts';
import { federationShown } from './shown/federation-shown.ts';

/** Whoever is refused asks one server of the primary after the other, so often at least. */
const REFUSED_RETRY_MS = 2_000;

export class NodeFederation implements Federation {
  readonly #options: FederationPartsOptions;
  readonly #parts: FederationParts;
  /** By the monotonic clock; undefined: it does not yet. */
  #gossipsSinceMs: number | undefined;
  /** The term in which this server reigns; undefined outside of a reign. */
  #reign: number | undefined;
  /** Since when this server has led the primary, by the monotonic clock, as the last look found it. */
  #ledSinceMs: number | undefined;
  /** Why the feed server would have to look again. */
  #role = '';

  constructor(options: FederationPartsOptions, closer: Closer) {
    this.#options = options;
    const reign = { term: () => this.#reign, onChanged: () => this.#look() };
    this.#parts = new FederationParts(options, reign, closer);
    closer.defer(
      options.machine.onGlobalLogMoved(() => {
        this.#look();
        void this.#parts.enlisting.look();
      }),
    );
    this.#serveAll();
    if (options.plan.isFederated) this.#startGossip();
  }

  get line(): DatacenterLine {
    return this.#parts.line;
  }

  /** Makes this datacenter primary, or another one in its place. */
  get promotion(): Promotion {
    return this.#parts.promotion;
  }

  /** Serves a method for all datacenters that have a part in the federation. */
  serve(method: string, handler: RpcServer): void {
    this.#parts.calls.serve(method, handler);
  }

  /** Makes what must exist before the first write of a reign. Rejects when it cannot. */
  async begin(): Promise<void> {
    await this.#parts.beginning.beforeReign();
    void this.#parts.enlisting.look();
  }

  /** Whether this datacenter writes what all share. */
  get isPrimary(): boolean {
    return this.#parts.view.isPrimary;
  }

  /** Proposes a change, unless it is of what all share and this leader takes none at the moment. */
  admit<Output>(change: Change, propose: () => Promise<Output>): Promise<Output> {
    return this.#parts.gate.global.pass(change, propose);
  }

  /** Moving the primary, in the words of the service. */
  primaryPort(): PrimaryPort {
    const { machine, plan } = this.#options;
    return primaryPortOf({
      promotion: this.#parts.promotion,
      datacenter: plan.datacenter,
      position: () => machine.position(),
      closedBecause: () => this.#parts.gate.global.closedBecause(),
      lostReign: () => this.#parts.gate.reigns.lostReignText(),
    });
  }

  closedBecause(): AclError | undefined {
    const closed = this.#parts.gate.notPrimary() ?? this.#parts.gate.global.closedBecause();
    if (closed !== undefined || this.isPrimary) return closed;
    const { firstPrimary } = this.#options.plan;
    const text = `Nothing was written: datacenter ${firstPrimary} is the primary`;
    return new AclError('not-primary', text);
  }

  onReign(term: number): void {
    this.#reign = term;
    // Who becomes the primary later has more than those who made it that.
    if (this.#parts.gate.leadsLastPrimary) this.#parts.gate.hearing.begin();
    this.#parts.slots.start();
    this.#parts.promotion.start();
    this.#look();
  }

  onReignOver(): void {
    this.#reign = undefined;
    this.#parts.slots.stop();
    this.#parts.promotion.stop();
    this.#look();
  }

  /** Datacenters that the global log does not wait for any more. */
  alarms(): readonly SlotAlarm[] {
    return this.#parts.slots.alarms();
  }

  datacenters(): readonly string[] {
    return this.#parts.view.datacenters();
  }

  primary(): Primacy {
    return this.#parts.view.primary();
  }

  /** Why the primary's log did not come the last time that it did not; undefined when nobody knows. */
  get lastFailure(): string | undefined {
    return this.#parts.beginning.keptOutBecause ?? this.#parts.subscriber.state().lastError?.text;
  }

  /** Which settings of this server count for nothing, and what to do; undefined where all do. */
  get overruled(): string | undefined {
    const { machine, plan } = this.#options;
    const { keptOutBecause, notBegunBecause } = this.#parts.beginning;
    return (
      overruledSettings(machine.replication(), plan, machine.position()) ??
      (keptOutBecause === undefined ? notBegunBecause : undefined)
    );
  }

  /** The feature level that whoever follows the primary has to use, as far as that is known here. */
  get logLevel(): number {
    const told = this.#parts.gossip.directory.levelOf(this.primary().datacenter);
    return Math.max(told ?? 0, GLOBAL_LOG_LEVEL);
  }

  /** Who besides this datacenter reads what it writes. */
  readers(): readonly LevelReader[] {
    const { machine, plan } = this.#options;
    if (!this.isPrimary) return [];
    const names = this.#parts.partners().filter((name) => name !== plan.datacenter);
    return readersElsewhere(names, {
      levelOf: (name) => this.#parts.gossip.directory.levelOf(name),
      hasGlobalLog: machine.replication() !== undefined,
    });
  }

  run(datacenter: string, errand: Errand): Promise<unknown> {
    return this.#parts.line.run(datacenter, errand);
  }

  waitForChange(datacenter: string, wait: WaitThere): Promise<void> {
    return this.#parts.line.waitForChange(datacenter, wait);
  }

  acknowledged(position: Position, wanted: AckLevel, limitMs: number): Promise<AckLevel> {
    const { machine, platform } = this.#options;
    const primary = {
      ...platform,
      machine,
      feed: this.#parts.feed,
      isPrimary: () => this.isPrimary,
    };
    return acknowledgedLevel(primary, position, { wanted, limitMs });
  }

  mayCountRemoved(): boolean {
    return this.#parts.mayCountRemoved;
  }

  hasHeardRemoved(): boolean {
    const { member, platform } = this.#options;
    if (member.address === undefined) return true;
    const sinceMs = this.#gossipsSinceMs ?? Infinity;
    const roundMs = REFUSED_RETRY_MS * (member.members().length + 1);
    return platform.clock.monotonicMs() - sinceMs > roundMs;
  }

  status(): ShownFederation {
    const { machine, plan, platform } = this.#options;
    return federationShown({
      own: plan.datacenter,
      names: this.datacenters(),
      primary: this.primary(),
      claimOfRemoved: (each) => this.#parts.gossip.directory.claimOfRemoved(each),
      silenceOfRemoved: (each) => this.#parts.gossip.directory.silenceOfRemoved(each),
      aheadOutside: this.#parts.outside.ahead(),
      isPrimary: this.isPrimary,
      replication: machine.replication(),
      position: machine.position(),
      followers: this.#parts.feed.followers(),
      ledForMs: this.#ledForMs,
      refused: (each) => this.#parts.feed.refused(each),
      majoritySeq: this.#parts.feed.acknowledgedSeq('majority'),
      subscriber: this.#reign === undefined ? undefined : this.#parts.subscriber.state(),
      nowMs: platform.clock.wallMs(),
    });
  }

  /** How long this server has led the primary; undefined where it does not. */
  get #ledForMs(): number | undefined {
    const { clock } = this.#options.platform;
    return this.#ledSinceMs === undefined ? undefined : clock.monotonicMs() - this.#ledSinceMs;
  }

  get #isFollowing(): boolean {
    const { machine } = this.#options;
    return this.#parts.isReigning && machine.replication() !== undefined && !this.isPrimary;
  }

  /** The state says something else, or the reign does. */
  #look(): void {
    const { machine, platform } = this.#options;
    const replication = machine.replication();
    const removed = removedOf(replication);
    for (const each of removed) {
      this.#parts.enlisting.forget(each);
      this.#parts.feed.forget(each);
    }
    this.#parts.outside.forgetOthers(removed);
    const role = [
      this.#reign,
      this.isPrimary,
      replication?.maxEpochPromised,
      replication?.epochs.length,
      this.datacenters(),
    ].join();
    if (role === this.#role) return;
    this.#role = role;
    this.#parts.gossip.hurry();
    const isLed = this.#parts.gate.ledVoters() !== undefined;
    if (isLed && this.#ledSinceMs === undefined) {
      this.#ledSinceMs = platform.clock.monotonicMs();
      this.#parts.gate.lease.begin();
    } else if (!isLed) this.#ledSinceMs = undefined;
    this.#parts.feed.standingChanged();
    void this.#parts.lender.standingChanged();
    if (replication !== undefined) this.#startGossip();
    this.#followOrStop();
  }

  /** The leader of a secondary follows the primary, and nobody else does. */
  #followOrStop(): void {
    const { subscriber } = this.#parts;
    const isStarted = subscriber.state().kind !== 'idle';
    if (this.#isFollowing && !isStarted && this.#reign !== undefined) {
      subscriber.start(this.#reign);
    } else if (!this.#isFollowing && isStarted) {
      subscriber.stop();
      this.#options.clocks.forgetEntries();
    }
  }

  #serveAll(): void {
    const { feed, gossip, lender, promotion } = this.#parts;
    const served = {
      ...{ ...feed.handlers, ...lender.handlers, ...gossip.handlers },
      ...promotion.handlers,
    };
    for (const [method, handler] of Object.entries(served)) {
      this.serve(method, this.#begunBefore(method, handler));
    }
  }

  #startGossip(): void {
    const { member, platform } = this.#options;
    if (this.#gossipsSinceMs !== undefined || member.address === undefined) return;
    this.#gossipsSinceMs = platform.clock.monotonicMs();
    this.#parts.gossip.start();
  }

  #begunBefore(method: string, handler: RpcServer): RpcServer {
    if (method !== FEED_METHOD.hello) return handler;
    return async (request: RpcRequest) => {
      if (this.#parts.isReigning && this.isPrimary) await this.#parts.beginning.beforeHello();
      const { isWitness } = decodeHello(request.payload);
      // Who is refused can acknowledge nothing, and whoever is sent on may be. Who is let in is known behind that, with
      // its cluster.
      const answer = await handler(request);
      const { datacenter } = request.from;
      if (this.#parts.feed.heardAtMs(datacenter) === undefined) return answer;
      this.#parts.enlisting.add(datacenter, isWitness);
      this.#look();
      void this.#parts.enlisting.look();
      return answer;
    };
  }
}
