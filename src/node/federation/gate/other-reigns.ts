// What others are known to have that a write of this datacenter would pass over: later reigns, reigns of the same
// epoch, and what it wrote itself and has lost. Nothing is decided here: who asks closes the gate, refuses a hand-over,
// or begins no reign.

import type { Directory } from '../../../../cluster/federation/directory/directory.ts';
import type { AheadFollower } from '../../../../cluster/federation/feed/ahead-followers.ts';
import type { FeedServer } from '../../../../cluster/federation/feed/feed-server.ts';
import type { Subscriber } from '../../../../cluster/federation/feed/subscriber.ts';
import { isFurther } from '../../../../cluster/federation/global-log.ts';
import type { Ahead } from '../../../../cluster/federation/promotion/passed-over.ts';
import type { Promotion } from '../../../../cluster/federation/promotion/promotion.ts';
import type { Position } from '../../../state/global-log/cursor.ts';
import { currentEpoch, FIRST_EPOCH } from '../../../state/global-log/replication.ts';
import type { StateMachine } from '../../../state/machine.ts';
import type { FederationView } from '../federation-view.ts';
import type { FirstHearing } from './first-hearing.ts';
import { type LostReign, lostReignText } from './lost-reign.ts';
import { begunText, outrunText, rivalText } from './outrun-refusal.ts';

export interface OtherReignsOptions {
  /** The own one. */
  readonly datacenter: string;
  readonly machine: Pick<StateMachine, 'position' | 'replication'>;
  readonly isReigning: () => boolean;
  readonly hearing: Pick<FirstHearing, 'awaits' | 'refusal'>;
  /** What is heard of others, and the parts that hear it: they are made later than what asks here. */
  readonly heard: () => {
    readonly directory: Pick<
      Directory,
      'followersBehind' | 'forgottenReign' | 'latestEpoch' | 'rivalOf'
    >;
    readonly view: Pick<FederationView, 'isRemoved' | 'primary'>;
    readonly feed: Pick<FeedServer, 'ahead' | 'begunEpoch' | 'beyond'>;
    readonly promotion: Pick<Promotion, 'outrunBy'>;
    readonly subscriber: Pick<Subscriber, 'state'>;
  };
}

export class OtherReigns {
  readonly #options: OtherReignsOptions;

  constructor(options: OtherReignsOptions) {
    this.#options = options;
  }

  /**
   * The latest epoch that anybody has told of: by gossip, by asking for the log, or by answering as its primary before
   * anything of it has come; 0 while nobody has.
   */
  heardEpoch(): number {
    const { directory, feed, subscriber } = this.#heard;
    return Math.max(directory.latestEpoch(), feed.begunEpoch, subscriber.state().begunEpoch);
  }

  /**
   * What a reign that this datacenter began by itself, or gave away, would pass over, or may; undefined where it would
   * nothing.
   */
  passedOverText(): string | undefined {
    const known = this.rivalText() ?? this.lostHereText();
    return known ?? this.#options.hearing.awaits() ?? this.begunText();
  }

  /**
   * Whether an operator may remove that one by force though others have what would be passed over. The entry that says
   * so stands in the place of what this primary may have lost, or of a reign that has begun: that one is none of those
   * who have it is no word about that, and behind a start nobody has told yet.
   */
  mayForceOut(datacenter: string): boolean {
    const having = [...this.ahead(), ...this.#beyond()].map((each) => each.datacenter);
    if (having.length > 0) return having.includes(datacenter);
    return this.#options.hearing.refusal() === undefined;
  }

  /** Why what this primary writes would be set apart; undefined where nobody is said to have begun a later reign. */
  outrunText(): string | undefined {
    // What a reign begins with is written in any case: without one, nobody learns of a later reign.
    const claim = this.#isReigning ? this.#heard.promotion.outrunBy() : undefined;
    if (claim === undefined) return undefined;
    const lost = this.#lostElsewhere();
    return lost === undefined ? outrunText(this.#options.datacenter, claim) : lostReignText(lost);
  }

  /** That another one has begun the epoch of this primary, too; undefined where none is said to have. */
  rivalText(): string | undefined {
    const { datacenter: own, machine } = this.#options;
    // Who goes on alone shares its epoch with nobody, whatever the archive is of that it was made from.
    if (machine.replication() === undefined || !this.#isReigning) return undefined;
    const { datacenter, epoch } = this.#heard.view.primary();
    // Whose the first epoch was, which no entry says, a newcomer has from its settings alone.
    const isOwn = datacenter === own && epoch !== FIRST_EPOCH;
    if (!isOwn) return undefined;
    const reign = { datacenter, epoch };
    return rivalText(reign, this.#heard.directory.rivalOf(datacenter, epoch));
  }

  /** Why nobody is the primary, whoever was, and what to do about it; undefined where no reign is known to be lost. */
  lostReignText(): string | undefined {
    const lost = this.#lostElsewhere();
    return lost === undefined ? this.lostHereText() : lostReignText(lost);
  }

  /** The same of the reigns of this datacenter alone. */
  lostHereText(): string | undefined {
    const lost = this.#lostHere();
    return lost && lostReignText(lost);
  }

  /** Undefined while nobody is known to have more of the own reigns than there is here. */
  #lostHere(): LostReign | undefined {
    const { datacenter: own, machine } = this.#options;
    return this.#lostBy(own, machine.position(), this.ahead());
  }

  /** The last reign, where it was another datacenter's, and that one knows nothing of it any more. */
  #lostElsewhere(): LostReign | undefined {
    const forgotten = this.#heard.directory.forgottenReign();
    if (forgotten === undefined || !this.#isReigning) return undefined;
    const { datacenter, knownEpoch: epoch } = forgotten;
    if (datacenter === this.#options.datacenter) return undefined;
    return this.#lostBy(datacenter, { epoch, seq: 0 }, this.#followersBehind(datacenter, epoch));
  }

  #lostBy(datacenter: string, head: Position, ahead: readonly Ahead[]): LostReign | undefined {
    if (ahead.length === 0) return undefined;
    const isWitness = (each: string): boolean => this.#isWitness(each);
    const isVoter = (each: string): boolean => this.#isVoter(each);
    return { datacenter, head, ahead, isWitness, isVoter };
  }

  /** Who has more of the own reigns than there is here, as far as is known; who has most first. */
  ahead(): readonly Ahead[] {
    const { datacenter: own, machine } = this.#options;
    const replication = machine.replication();
    if (replication === undefined || !this.#isReigning) return [];
    const { epoch } = currentEpoch(replication);
    const { cursor: head } = replication;
    return [
      ...this.#followersBehind(own, epoch),
      ...this.#withoutRemoved(this.#heard.feed.ahead())
        .filter(({ cursor }) => isFurther(cursor, head))
        .map(({ datacenter, cursor }) => ({ datacenter, upTo: cursor })),
    ];
  }

  #followersBehind(beginner: string, after: number): readonly Ahead[] {
    return this.#withoutRemoved(this.#heard.directory.followersBehind(beginner, after)).map(
      ({ datacenter, epoch }) => ({ datacenter, upTo: { epoch, seq: 0 } }),
    );
  }

  /** Who has something of a later reign, whosever that is; who has most first. */
  #beyond(): readonly AheadFollower[] {
    return this.#withoutRemoved(this.#heard.feed.beyond());
  }

  /** One that was asked how far it is may answer when it was removed meanwhile: that is no word any more. */
  #withoutRemoved<Told extends { readonly datacenter: string }>(
    told: readonly Told[],
  ): readonly Told[] {
    return told.filter(({ datacenter }) => !this.#heard.view.isRemoved(datacenter));
  }

  /** Whoever has something of a later reign may be heard of it before gossip tells whose that is, or where it is. */
  begunText(): string | undefined {
    const [first] = this.#beyond();
    return first && begunText(this.#options.datacenter, first, this.#isWitness(first.datacenter));
  }

  #isWitness(datacenter: string): boolean {
    const datacenters = this.#options.machine.replication()?.datacenters ?? [];
    return datacenters.some(({ name, isWitness }) => name === datacenter && isWitness);
  }

  #isVoter(datacenter: string): boolean {
    const datacenters = this.#options.machine.replication()?.datacenters ?? [];
    return datacenters.some(({ name, isVoter }) => name === datacenter && isVoter);
  }

  get #isReigning(): boolean {
    return this.#options.isReigning();
  }

  get #heard(): ReturnType<OtherReignsOptions['heard']> {
    return this.#options.heard();
  }
}
