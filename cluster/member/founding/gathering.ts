// How a node without a group comes to one: it asks the addresses that it was told, joins the group that
// it finds there, or founds one with those who have none either. founding.ts says who founds, and
// identity.ts what binds. A node that has promised itself asks its founder what became of it; nothing
// but that answer frees it.

import { messageOf } from '../../base/message-of.ts';
import type { Clock, Timer } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { addressText, type NetAddress } from '../../platform/net.ts';
import type { Random } from '../../platform/random.ts';
import type { MemberRecord } from '../../replica/group-record.ts';
import { RpcRefusal } from '../../transport/calls/rpc-error.ts';
import type { HandlerByMethod } from '../member-calls.ts';
import {
  decodeFateAnswer,
  decodeFoundingOrder,
  decodeIntroduction,
  decodeText,
  encodeFateAnswer,
  encodeFoundingOrder,
  encodeIntroduction,
  encodeText,
  type FateAnswer,
  type FoundingOrder,
  type Introduction,
} from '../member-frames.ts';
import type { MemberTiming } from '../member-timing.ts';
import {
  type FoundingPromise,
  fateOf,
  foundingPayloads,
  foundingStep,
  isBinding,
  type Neighbour,
  promiseOf,
  promiseText,
  waitsForFounder,
} from './founding.ts';
import type { Identity } from './identity.ts';
import { Neighbourhood } from './neighbourhood.ts';

export interface GatheringOptions {
  readonly identity: Identity;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly timing: MemberTiming;
  readonly self: () => MemberRecord;
  readonly expect: number;
  readonly retryJoin: readonly NetAddress[];
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, method: string, payload: Uint8Array) => Promise<Uint8Array>;
  /** Called once, when the node belongs to a cluster. */
  readonly onGathered: (gathered: Gathered) => void;
}

/** How a node came to its cluster. */
export interface Gathered {
  /** Members that it was told of. */
  readonly told: readonly MemberRecord[];
  /** It has founded the cluster itself: nobody can lead it yet. */
  readonly isFounder: boolean;
}

export class Gathering {
  /** What other nodes may ask while this one looks for a group. */
  readonly handlers: HandlerByMethod = {
    'member.intro': async ({ payload }) => this.#onIntroduction(payload),
    'member.promise': ({ payload }) => this.#onPromiseAsked(payload),
    'member.found': ({ payload }) => this.#onFounded(payload),
    'member.fate': async ({ payload }) => this.#onFateAsked(payload),
  };
  readonly #options: GatheringOptions;
  readonly #neighbourhood: Neighbourhood;
  /** What was written down here just now: who asks gets it. */
  #order: FoundingOrder | undefined;
  #says = 'looking for other servers';
  #timer: Timer | undefined;
  #isOver = false;

  constructor(options: GatheringOptions) {
    this.#options = options;
    const { clock, logger, timing, retryJoin, call } = options;
    this.#neighbourhood = new Neighbourhood({
      clock,
      logger,
      neighbourMs: timing.neighbourMs,
      retryJoin,
      introduction: () => this.#introduction(),
      call,
    });
  }

  /** What it waits for, for people, and who does not answer. */
  get says(): string {
    const { failures } = this.#neighbourhood;
    return failures === undefined ? this.#says : `${this.#says}. Not answering: ${failures}`;
  }

  start(): void {
    this.#timer = this.#options.clock.after(0, () => void this.#round());
  }

  close(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  /** Another node tells who it is, and hears who this one is. */
  #onIntroduction(payload: Uint8Array): Uint8Array {
    this.#neighbourhood.note(decodeIntroduction(payload));
    return encodeIntroduction(this.#introduction());
  }

  /** A founder asks for the promise of this node; answers when it is on disk. */
  async #onPromiseAsked(payload: Uint8Array): Promise<Uint8Array> {
    const { identity, logger, self, expect } = this.#options;
    const asked = promiseOf(decodeText(payload));
    const { name } = self();
    if (expect === 1) throw new RpcRefusal('joins-only', `server ${name} founds with nobody`);
    await this.#askFateAnew(asked);
    try {
      await identity.grant(asked);
    } catch (error) {
      if (error instanceof RpcRefusal) {
        throw new RpcRefusal(error.code, `server ${name}: ${error.message}`);
      }
      throw error;
    }
    logger.info({ founder: asked.founderName, cluster: asked.foundingId }, 'promised to a founder');
    return encodeText(asked.foundingId);
  }

  /**
   * A founder that asks anew has given up what it was promised before. It is asked at once what became of that:
   * rounds of so many nodes would miss each other, and every founding find somebody bound by the last one.
   */
  async #askFateAnew(asked: FoundingPromise): Promise<void> {
    const { given } = this.#options.identity;
    const isAnew = given?.founderId === asked.founderId && given.foundingId !== asked.foundingId;
    if (given !== undefined && isAnew) await this.#askFate(given);
  }

  /** The founder has all promises: this node writes the founding down too. */
  async #onFounded(payload: Uint8Array): Promise<Uint8Array> {
    const order = decodeFoundingOrder(payload);
    if (!(await this.#writeFounding(order, []))) {
      throw new RpcRefusal('not-promised', 'this server has not promised itself to that founding');
    }
    return encodeText(order.clusterId);
  }

  /** A node that gave this one its promise asks what became of it. */
  #onFateAsked(payload: Uint8Array): Uint8Array {
    const { identity, self } = this.#options;
    const fate = fateOf(decodeText(payload), identity);
    const payloads = fate === 'founded' ? (this.#order?.payloads ?? []) : [];
    return encodeFateAnswer({ answererId: self().id, fate, payloads });
  }

  #introduction(): Introduction {
    const { self, expect } = this.#options;
    return { record: self(), expect, clusterId: '', leader: undefined, members: [] };
  }

  async #round(): Promise<void> {
    const { clock, random, timing, logger } = this.#options;
    try {
      this.#neighbourhood.look();
      await this.#step();
    } catch (error) {
      logger.error({ cause: error }, 'looking for a cluster failed; it goes on');
    }
    if (this.#isOver) return;
    const delayMs = timing.gatherMs * (1 + random.fraction());
    this.#timer = clock.after(delayMs, () => void this.#round());
  }

  async #step(): Promise<void> {
    const { identity } = this.#options;
    const { promise, given } = identity;
    if (given !== undefined) {
      await this.#askFate(given);
      return;
    }
    // A founding of this node that came to nothing, in this life or an earlier one: from here on it says
    // so to everybody who gave their promise and asks.
    if (promise !== undefined) await identity.release(promise.foundingId);
    const fresh = this.#neighbourhood.heard();
    const settled = fresh.filter(({ clusterId }) => clusterId !== '');
    if (settled.length > 0) {
      await this.#join(settled);
      return;
    }
    const step = foundingStep(this.#introduction(), fresh);
    if (step.kind === 'wait') this.#say(step.says);
    else await this.#found(step.founders);
  }

  /** The founder, and whoever belongs to the cluster by now, know what became of the founding. */
  async #askFate(promise: FoundingPromise): Promise<void> {
    const { founderId, founderAddress, foundingId } = promise;
    const knowing = this.#neighbourhood
      .heard()
      .filter(({ record, clusterId }) => record.id === founderId || clusterId === foundingId);
    const addresses = [founderAddress, ...knowing.map(({ record }) => record.address)];
    const byText = new Map(addresses.map((address) => [addressText(address), address]));
    const payload = encodeText(foundingId);
    this.#say(waitsForFounder(promise));
    for (const address of byText.values()) {
      const answer = await this.#fateAt(address, payload);
      if (answer === undefined || !isBinding(answer.fate, answer.answererId, promise)) continue;
      await this.#onFate(promise, answer, knowing);
      return;
    }
  }

  async #fateAt(address: NetAddress, payload: Uint8Array): Promise<FateAnswer | undefined> {
    try {
      return decodeFateAnswer(await this.#options.call(address, 'member.fate', payload));
    } catch {
      // It is asked again in the next round, and the node says all the while what it waits for.
      return undefined;
    }
  }

  async #onFate(
    { foundingId, founderName }: FoundingPromise,
    { fate, payloads }: FateAnswer,
    knowing: readonly Introduction[],
  ): Promise<void> {
    const { identity, logger } = this.#options;
    const members = knowing.flatMap((each) => [each.record, ...each.members]);
    if (fate === 'founded' && payloads.length > 0) {
      await this.#writeFounding({ clusterId: foundingId, payloads }, members);
    } else if (fate === 'founded') {
      // Its first entries are gone by now: an empty log is as good, since this node never had a say.
      if (await identity.join(foundingId)) this.#joined('joined the founded cluster', members);
    } else if (fate === 'released' && (await identity.release(foundingId))) {
      logger.info({ founder: founderName }, 'released from a promise to a founder');
    }
  }

  async #writeFounding(order: FoundingOrder, members: readonly MemberRecord[]): Promise<boolean> {
    const { identity } = this.#options;
    if (identity.clusterId === order.clusterId) return true;
    if (!(await identity.found(order))) return false;
    this.#order = order;
    this.#joined('the cluster is founded', members);
    return true;
  }

  /** Any of them says who leads; the leader lets this node in. */
  async #join(settled: readonly Introduction[]): Promise<void> {
    const { identity, call } = this.#options;
    const clusterIds = new Set(settled.map(({ clusterId }) => clusterId));
    if (clusterIds.size > 1) {
      const names = settled
        .map(({ record, clusterId }) => `${record.name} (${clusterId})`)
        .join(', ');
      this.#say(`the addresses of retry_join lead to different clusters: ${names}`);
      return;
    }
    const [clusterId = ''] = clusterIds;
    const { leader } = settled.find((each) => each.leader !== undefined) ?? {};
    if (leader === undefined) {
      this.#say('found the cluster, and waiting until it has a leader');
      return;
    }
    try {
      await call(leader.address, 'member.join', encodeIntroduction(this.#introduction()));
    } catch (error) {
      this.#say(`server ${leader.name} has not let this one join: ${messageOf(error)}`);
      return;
    }
    const members = settled.flatMap((each) => [each.record, ...each.members]);
    if (await identity.join(clusterId)) {
      this.#joined('joined a cluster', [leader, ...members]);
    }
  }

  async #found(founders: readonly Neighbour[]): Promise<void> {
    const { identity, random, self, logger } = this.#options;
    const own = self();
    const promise: FoundingPromise = {
      foundingId: random.uuid(),
      founderId: own.id,
      founderName: own.name,
      founderAddress: own.address,
    };
    const others = founders.filter(({ record }) => record.id !== own.id);
    if (!(await identity.begin(promise))) return;
    const why = await this.#collect(promise, others);
    if (why !== undefined) {
      this.#say(`the cluster could not be founded yet: ${why}`);
      return;
    }
    const records = founders.map(({ record }) => record);
    const order = { clusterId: promise.foundingId, payloads: foundingPayloads(records) };
    if (!(await identity.found(order))) return;
    this.#order = order;
    logger.info({ servers: records.map(({ name }) => name), cluster: order.clusterId }, 'founded');
    await this.#tell(others, encodeFoundingOrder(order));
    this.#gathered('the cluster is founded', { told: records, isFounder: true });
  }

  /** Undefined when all have promised. */
  async #collect(
    promise: FoundingPromise,
    others: readonly Neighbour[],
  ): Promise<string | undefined> {
    const payload = encodeText(promiseText(promise));
    const answers = await Promise.allSettled(
      others.map(({ record }) => this.#options.call(record.address, 'member.promise', payload)),
    );
    const refused = answers.find((answer) => answer.status === 'rejected');
    return refused === undefined ? undefined : messageOf(refused.reason);
  }

  /** Who does not hear of it now asks; nobody waits long for that. */
  async #tell(others: readonly Neighbour[], order: Uint8Array): Promise<void> {
    const { call, clock, timing, logger } = this.#options;
    const told = others.map(async ({ record }) => {
      try {
        await call(record.address, 'member.found', order);
      } catch (error) {
        const fields = { server: record.name, why: messageOf(error) };
        logger.warn(fields, 'a founding server was not told yet');
      }
    });
    await new Promise<void>((resolve) => {
      const timer = clock.after(timing.gatherMs, resolve);
      void Promise.all(told).then(() => {
        timer.cancel();
        resolve();
      });
    });
  }

  #joined(says: string, told: readonly MemberRecord[]): void {
    this.#gathered(says, { told, isFounder: false });
  }

  #gathered(says: string, gathered: Gathered): void {
    if (this.#isOver) return;
    this.close();
    this.#say(says);
    this.#options.onGathered(gathered);
  }

  #say(says: string): void {
    if (says === this.#says) return;
    this.#says = says;
    this.#options.logger.info({}, says);
  }
}
