// Whether this server may write what all share: the gate of the primary, and all that closes it. What others tell is
// heard by parts that are made later than the gate, because they propose through it.

import type { Directory } from '../../../../cluster/federation/directory/directory.ts';
import type { FeedServer } from '../../../../cluster/federation/feed/feed-server.ts';
import { askPlaces } from '../../../../cluster/federation/promotion/ask-places.ts';
import type { Clock } from '../../../../cluster/platform/clock.ts';
import type { AclError } from '../../../acl/error.ts';
import { LeaderAway } from '../../../service/remote.ts';
import { isRenewingIn } from '../../../state/global-log/election.ts';
import { removedOf } from '../../../state/global-log/replication.ts';
import type { StateMachine } from '../../../state/machine.ts';
import { notPrimary } from '../../../state/refusals.ts';
import type { FederationPlan } from '../../settings/federation-settings.ts';
import type { GlobalLogBeginning } from '../beginning/begin-global-log.ts';
import type { DatacenterCalls } from '../calls/datacenter-calls.ts';
import type { FederationView } from '../federation-view.ts';
import { FirstHearing } from './first-hearing.ts';
import { GlobalGate } from './global-gate.ts';
import { OtherReigns, type OtherReignsOptions } from './other-reigns.ts';
import { nothingWritten } from './outrun-refusal.ts';
import { PrimaryLease } from './primary-lease.ts';

type Heard = ReturnType<OtherReignsOptions['heard']>;

export interface PrimaryGateOptions {
  readonly plan: Pick<FederationPlan, 'datacenter' | 'primaryLeaseMs'>;
  readonly clock: Clock;
  readonly machine: StateMachine;
  readonly isReigning: () => boolean;
  /** Whether this server has had, since its start, all that its leader began with. */
  readonly hasCaughtUp: () => boolean;
  /** The parts that others are heard by. */
  readonly heard: () => Heard & {
    readonly beginning: GlobalLogBeginning;
    readonly calls: DatacenterCalls;
    readonly feed: FeedServer;
    readonly view: FederationView;
    readonly directory: Pick<Directory, 'federated'>;
    /** Of the settings, who there is. Undefined where there are none. Never rejects. */
    readonly askSeeds: () => Promise<void> | undefined;
  };
}

export class PrimaryGate {
  readonly lease: PrimaryLease;
  readonly hearing: FirstHearing;
  readonly reigns: OtherReigns;
  /** What the leader proposes of what all share passes here. */
  readonly global: GlobalGate;
  readonly #options: PrimaryGateOptions;

  constructor(options: PrimaryGateOptions) {
    this.#options = options;
    this.lease = this.#newLease();
    this.hearing = this.#newHearing();
    const { isReigning, machine, plan, heard } = options;
    const { datacenter } = plan;
    this.reigns = new OtherReigns({
      datacenter,
      machine,
      isReigning,
      hearing: this.hearing,
      heard,
    });
    this.global = new GlobalGate({
      ...{ view: machine, datacenter },
      refusal: () => this.#refusal(),
      elsewhere: () => this.notPrimary(),
      mayForceOut: (each) => this.reigns.mayForceOut(each),
    });
  }

  /** Whether this server leads the primary, or the one that was it and has promised itself the next reign. */
  get leadsLastPrimary(): boolean {
    const replication = this.#options.machine.replication();
    const isRenewing = replication !== undefined && isRenewingIn(replication);
    return this.#options.isReigning() && (this.#heard.view.isPrimary || isRenewing);
  }

  /** Whose promises count, where this server leads the primary. */
  ledVoters(): readonly string[] | undefined {
    const { view } = this.#heard;
    return this.#options.isReigning() && view.isPrimary ? view.voters() : undefined;
  }

  /** Where this datacenter has a global log, and another one writes it, or nobody. */
  notPrimary(): AclError | undefined {
    const replication = this.#options.machine.replication();
    const isElsewhere = replication !== undefined && !this.#heard.view.isPrimary;
    return isElsewhere ? notPrimary(replication) : undefined;
  }

  get #heard(): ReturnType<PrimaryGateOptions['heard']> {
    return this.#options.heard();
  }

  #newLease(): PrimaryLease {
    const { clock, plan } = this.#options;
    return new PrimaryLease({
      ...{ clock, datacenter: plan.datacenter, leaseMs: plan.primaryLeaseMs },
      voters: () => this.ledVoters(),
      heardAtMs: (each) => this.#heard.feed.heardAtMs(each),
    });
  }

  #newHearing(): FirstHearing {
    const { clock, hasCaughtUp, machine, plan } = this.#options;
    const { datacenter } = plan;
    return new FirstHearing({
      ...{ clock, datacenter },
      others: () => (this.leadsLastPrimary ? this.#partners() : []),
      find: () => (machine.replication() === undefined ? undefined : this.#heard.askSeeds()),
      isHeard: (each) => this.#heard.feed.hasHeardOrAsked(each),
      ask: (each, limitMs) => this.#askPlace(each, limitMs),
      headSeq: () => machine.position().seq,
      hasCaughtUp,
    });
  }

  /** Who is listed, or says that it is of this federation: it may have come since the day of the data folders. */
  #partners(): readonly string[] {
    const replication = this.#options.machine.replication();
    const listed = replication?.datacenters.map(({ name }) => name) ?? [];
    const all = new Set([...listed, ...this.#heard.directory.federated()]);
    const isAnother = (each: string): boolean => each !== this.#options.plan.datacenter;
    return [...all].filter((each) => isAnother(each) && !removedOf(replication).includes(each));
  }

  async #askPlace(datacenter: string, deadlineMs: number): Promise<void> {
    const { machine, plan } = this.#options;
    const { calls, feed, view } = this.#heard;
    const cursor = machine.replication()?.cursor;
    if (cursor === undefined) return;
    const asking = { addressesOf: (each: string) => view.addressesOf(each), call: calls.call };
    const question = { datacenter, candidate: plan.datacenter, cursor, deadlineMs };
    // One that does not answer is waited for so long as writes are: what others say must not come behind them.
    const places = await askPlaces(asking, question, (some) => feed.tells(datacenter, some));
    feed.told(datacenter, places);
  }

  #refusal(): AclError | undefined {
    return (
      nothingWritten(this.reigns.outrunText()) ??
      nothingWritten(this.reigns.rivalText()) ??
      this.#heard.beginning.refusal() ??
      nothingWritten(this.reigns.lostHereText()) ??
      this.hearing.refusal() ??
      this.#begunRefusal() ??
      this.lease.refusal()
    );
  }

  /** Others tell whose that is, a moment later; and who is no primary any more says who is. */
  #begunRefusal(): LeaderAway | undefined {
    const begun = this.#heard.view.isPrimary ? this.reigns.begunText() : undefined;
    return begun === undefined
      ? undefined
      : new LeaderAway({ says: `Nothing was written: ${begun}` });
  }
}
