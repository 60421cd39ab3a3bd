// Who else is there, as far as a node without a group can tell: it asks the addresses that it knows, and
// remembers who introduced itself lately and who does not answer.

import { messageOf } from '../../base/message-of.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { addressText, type NetAddress } from '../../platform/net.ts';
import { decodeIntroduction, encodeIntroduction, type Introduction } from '../member-frames.ts';

/** Nodes that introduced themselves; beyond it the one heard longest ago is forgotten. */
const NEIGHBOURS_MAX = 64;
const ADDRESSES_MAX = 64;
const FAILURES_SHOWN_MAX = 3;

export interface NeighbourhoodOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Who was not heard for so long does not count. */
  readonly neighbourMs: number;
  readonly retryJoin: readonly NetAddress[];
  readonly introduction: () => Introduction;
  /** Rejects with RpcError. */
  readonly call: (to: NetAddress, method: string, payload: Uint8Array) => Promise<Uint8Array>;
}

interface Seen {
  readonly introduction: Introduction;
  readonly atMs: number;
}

export class Neighbourhood {
  readonly #options: NeighbourhoodOptions;
  readonly #seenById = new Map<string, Seen>();
  /** Addresses that are being asked. */
  readonly #asked = new Set<string>();
  /** Why an address did not answer the last time. */
  readonly #failureByAddress = new Map<string, string>();

  constructor(options: NeighbourhoodOptions) {
    this.#options = options;
  }

  /** Asks every address that is known; what they say counts when it comes. */
  look(): void {
    const introduction = encodeIntroduction(this.#options.introduction());
    const addresses = this.#addresses();
    const current = new Set(addresses.map(addressText));
    for (const address of this.#failureByAddress.keys()) {
      if (!current.has(address)) this.#failureByAddress.delete(address);
    }
    for (const address of addresses) void this.#ask(address, introduction);
  }

  /** Somebody says who it is. */
  note(introduction: Introduction): void {
    const { id } = introduction.record;
    if (id === this.#options.introduction().record.id) return;
    if (!this.#seenById.has(id) && this.#seenById.size >= NEIGHBOURS_MAX) this.#forgetOldest();
    this.#seenById.set(id, { introduction, atMs: this.#options.clock.monotonicMs() });
  }

  /** Those who were heard lately. */
  heard(): readonly Introduction[] {
    const { clock, neighbourMs } = this.#options;
    const sinceMs = clock.monotonicMs() - neighbourMs;
    return [...this.#seenById.values()]
      .filter(({ atMs }) => atMs >= sinceMs)
      .map(({ introduction }) => introduction);
  }

  /** For people: who does not answer, and why; undefined when everybody does. */
  get failures(): string | undefined {
    const failures = [...this.#failureByAddress].slice(0, FAILURES_SHOWN_MAX);
    if (failures.length === 0) return undefined;
    return failures.map(([address, why]) => `${address} (${why})`).join(', ');
  }

  async #ask(address: NetAddress, introduction: Uint8Array): Promise<void> {
    const key = addressText(address);
    if (this.#asked.has(key)) return;
    this.#asked.add(key);
    try {
      const answer = await this.#options.call(address, 'member.intro', introduction);
      this.note(decodeIntroduction(answer));
      this.#failureByAddress.delete(key);
    } catch (error) {
      this.#onSilent(key, messageOf(error));
    } finally {
      this.#asked.delete(key);
    }
  }

  /** Said once, not at every round. */
  #onSilent(address: string, why: string): void {
    if (this.#failureByAddress.get(address) === why) return;
    this.#failureByAddress.set(address, why);
    this.#options.logger.warn({ address, why }, 'an address did not answer');
  }

  #addresses(): readonly NetAddress[] {
    const { retryJoin, introduction } = this.#options;
    const learned = this.heard().flatMap(({ record, members }) => [
      record.address,
      ...members.map(({ address }) => address),
    ]);
    const byText = new Map(
      [...retryJoin, ...learned].map((address) => [addressText(address), address]),
    );
    byText.delete(addressText(introduction().record.address));
    return [...byText.values()].slice(0, ADDRESSES_MAX);
  }

  #forgetOldest(): void {
    const oldest = [...this.#seenById].sort(([, one], [, other]) => one.atMs - other.atMs)[0];
    if (oldest !== undefined) this.#seenById.delete(oldest[0]);
  }
}
