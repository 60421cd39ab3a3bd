// How a member keeps its place: it tells the leader when its name, address or version is not what the
// group has on record, and when it knows no leader for a while it asks everybody it can think of who
// leads. So it also learns that it was removed: nobody but the leader, behind a read barrier, ends its place.

import { messageOf } from '../../base/message-of.ts';
import type { Logger } from '../../platform/logger.ts';
import { addressText, type NetAddress } from '../../platform/net.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { GroupRecord, MemberRecord } from '../../replica/group-record.ts';
import { RpcError } from '../../transport/calls/rpc-error.ts';
import { isSameRecord } from '../leading/admission.ts';
import { decodeIntroduction, encodeIntroduction, type Introduction } from '../member-frames.ts';
import type { Directory } from './directory.ts';

export interface AnnouncingOptions {
  readonly logger: Logger;
  readonly directory: Directory;
  readonly retryJoin: readonly NetAddress[];
  readonly introduction: () => Introduction;
  readonly group: () => GroupRecord;
  /** As far as this node knows; never this node. */
  readonly leader: () => NodeId | undefined;
  /** Milliseconds since a leader was known; 0 while one is. */
  readonly leaderlessMs: () => number;
  readonly searchAfterMs: number;
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, method: string, payload: Uint8Array) => Promise<Uint8Array>;
  /** The directory knows more than before. */
  readonly onTold: () => void;
  readonly onRemoved: (says: string) => void;
}

export class Announcing {
  readonly #options: AnnouncingOptions;
  #lastRefusal: string | undefined;
  #isInDoubt = false;

  constructor(options: AnnouncingOptions) {
    this.#options = options;
  }

  /** Somebody says that this node was removed: the leader is asked, whatever the record says. */
  doubt(): void {
    this.#isInDoubt = true;
  }

  /** To be done again and again while this node does not lead. */
  async look(): Promise<void> {
    const { leader, directory, leaderlessMs, searchAfterMs } = this.#options;
    const node = leader();
    const known = node === undefined ? undefined : directory.memberOf(node);
    if (known !== undefined) {
      if (this.#isInDoubt || !this.#isOnRecord()) await this.#tell(known.address);
      return;
    }
    // A leader that this node cannot place, it cannot answer either.
    if (node === undefined && leaderlessMs() < searchAfterMs) return;
    const found = await this.#search();
    if (found !== undefined) await this.#tell(found.address);
  }

  #isOnRecord(): boolean {
    const { record } = this.#options.introduction();
    const known = this.#options.group().members.find(({ node }) => node === record.node);
    return known !== undefined && isSameRecord(known, record);
  }

  async #tell(leader: NetAddress): Promise<void> {
    const { introduction, call, onRemoved, logger } = this.#options;
    this.#isInDoubt = false;
    try {
      await call(leader, 'member.join', encodeIntroduction(introduction()));
      this.#lastRefusal = undefined;
    } catch (error) {
      const why = messageOf(error);
      if (error instanceof RpcError && error.refusal?.code === 'removed') onRemoved(why);
      else if (why !== this.#lastRefusal) {
        this.#lastRefusal = why;
        logger.warn(
          { leader: addressText(leader), why },
          'the leader did not take this server on record',
        );
      }
    }
  }

  /** Asks everybody who leads; tells the directory what it hears. */
  async #search(): Promise<MemberRecord | undefined> {
    const { call, directory, introduction, onTold } = this.#options;
    const own = introduction();
    const payload = encodeIntroduction(own);
    const answers = await Promise.allSettled(
      this.#addresses().map(async (address) =>
        decodeIntroduction(await call(address, 'member.intro', payload)),
      ),
    );
    const heard = answers
      .flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []))
      .filter(({ clusterId }) => clusterId === own.clusterId);
    for (const { record, members } of heard) {
      directory.heard(record);
      directory.tell([record, ...members]);
    }
    if (heard.length > 0) onTold();
    return heard.find(({ leader }) => leader !== undefined && leader.node !== own.record.node)
      ?.leader;
  }

  #addresses(): readonly NetAddress[] {
    const { retryJoin, directory, group, introduction } = this.#options;
    const members = group().members.map(({ address }) => address);
    const all = [...retryJoin, ...members, ...directory.peers().values()];
    const byText = new Map(all.map((address) => [addressText(address), address]));
    byText.delete(addressText(introduction().record.address));
    return [...byText.values()].filter(({ port }) => port > 0);
  }
}
