// The operator who settles what a primary that was left behind has and nobody else: has entries made again, over what
// is there or not, and has others forgotten, in the middle of everything else and, when nothing breaks any more,
// all of them.

import { countIn } from '../../../../../src/state/global-log/replication.ts';
import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import { type KnownEntry, placeText } from '../../../checks/federation/global-chain.ts';
import type { Violations } from '../../../checks/violations.ts';
import type { SimGroup } from '../../../run/sim-group.ts';
import type { HttpAnswer } from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import type { World } from '../../../world/world.ts';
import type { Place } from '../global/global-history.ts';
import { OperatorLine } from './operator-line.ts';

export interface ForkKeeperOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly (readonly SimHost[])[];
  readonly checks: FederationChecks;
  readonly violations: Violations;
  /** Whether all is to be settled in the end. */
  readonly settlesAll: boolean;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  remade: 'a divergent entry was made again',
  putOver: 'a divergent entry was put over what was there',
  unmakeable: 'a divergent entry could not be made again',
  discarded: 'a divergent entry was discarded',
  discardedAll: 'all divergent entries were discarded',
} as const;

/** An entry of a fork, and where it was made again. */
export interface Remade {
  readonly of: Place;
  readonly at: Place;
}

const TIMEOUT_MS = 8000;
/** Whoever was asked tries for so long, also when nobody waits for its answer any more. */
const TRIES_MS = 15_000;
const SETTLE_EVERY_MS = 1000;
/** So many are looked at at once. */
const LISTED_MAX = 20;
/** Done, not possible, settled already, something is there, nobody to do it, not known. */
const SAID: readonly number[] = [200, 400, 404, 409, 503, 504];
const IS_THERE = /^the object is there with ModifyIndex (\d+): /;
const IS_GONE = /^the object was changed by the entry, and has been deleted since: name cas=0 /;

/** Undefined where no index lets the entry through. */
function indexToNameIn(text: string): string | undefined {
  return IS_GONE.test(text) ? '0' : IS_THERE.exec(text)?.[1];
}

export class ForkKeeper {
  readonly #options: ForkKeeperOptions;
  readonly #line: OperatorLine;
  readonly #stream: Stream;
  /** Entries that are made again for sure. */
  readonly remade: Remade[] = [];
  /** By place: entries that may be made again, or forgotten, for all that anybody knows. */
  readonly #asked = new Set<string>();
  /** By datacenter: whatever it has written until then may be forgotten. */
  readonly #allAskedUntilMs = new Map<string, number>();
  #isStopped = false;
  changeCount = 0;
  quietAtMs = 0;

  constructor(options: ForkKeeperOptions) {
    this.#options = options;
    const { group, violations, world } = options;
    this.#line = new OperatorLine({
      ...{ group, violations, world, kind: 'fork', timeoutMs: TIMEOUT_MS },
      mayBe: ({ status }) => SAID.includes(status),
    });
    this.#stream = options.world.stream.fork('forks');
  }

  begin(): void {
    // Only what the plan says.
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Whether somebody has asked that this entry of a fork be made again, or forgotten. */
  wasAsked({ entry: { epoch, seq }, site, atMs }: KnownEntry): boolean {
    const untilMs = this.#allAskedUntilMs.get(site) ?? 0;
    return this.#asked.has(placeText(epoch, seq)) || atMs <= untilMs;
  }

  /** A few entries of the datacenter at this place. False where there is nobody to ask, or nothing to settle. */
  settleSome(place: number): boolean {
    const leader = this.#options.group.leader(this.#options.sites[place]!);
    if (leader === undefined || this.#isStopped || this.#countOn(leader) === 0) return false;
    void this.#some(leader, 1 + this.#stream.below(4));
    return true;
  }

  /** Whether nothing is left to settle on the disks of these hosts. */
  isSettled(hosts: readonly SimHost[]): boolean {
    return !this.#options.settlesAll || hosts.every((host) => this.#countOn(host) === 0);
  }

  /** Never resolves; these hosts are well, and nobody else is ever again. */
  async settle(hosts: readonly SimHost[]): Promise<void> {
    const { group, settlesAll, sites } = this.#options;
    if (!settlesAll) return;
    for (;;) {
      await this.#options.world.time.pause(SETTLE_EVERY_MS);
      for (const site of sites) {
        const leader = group.leader(site.filter((host) => hosts.includes(host)));
        if (leader !== undefined && this.#countOn(leader) > 0) await this.#one(leader);
      }
    }
  }

  #countOn(host: SimHost): number {
    const { divergent, gone } = this.#options.checks.replicationOf(host) ?? {};
    return countIn(divergent) + countIn(gone);
  }

  async #some(host: SimHost, count: number): Promise<void> {
    for (let left = count; left > 0 && !this.#isStopped; left -= 1) await this.#one(host);
  }

  async #one(host: SimHost): Promise<void> {
    const listed = await this.#ask(host, 'GET', `limit=${LISTED_MAX}`);
    if (listed?.status !== 200) return;
    const { Entries: entries } = JSON.parse(listed.text) as {
      readonly Entries: readonly { readonly Position: string }[];
    };
    const entry = entries.length === 0 ? undefined : this.#stream.pick(entries);
    if (entry === undefined || this.#stream.chance(0.1)) await this.#discardAll(host);
    else if (this.#stream.chance(0.3)) await this.#discard(host, entry.Position);
    else await this.#remake(host, entry.Position);
  }

  /** As the messages say: over what is there with its index, and what cannot be made again is discarded. */
  async #remake(host: SimHost, position: string): Promise<void> {
    this.#asked.add(position);
    const came = await this.#ask(host, 'PUT', `position=${position}`);
    const index = came?.status === 409 ? indexToNameIn(came.text) : undefined;
    if (index === undefined) {
      await this.#settled(host, position, came, MARKS.remade);
      return;
    }
    if (this.#stream.chance(0.4)) {
      await this.#discard(host, position);
      return;
    }
    const over = await this.#ask(host, 'PUT', `position=${position}&cas=${index}`);
    await this.#settled(host, position, over, MARKS.putOver);
  }

  async #settled(
    host: SimHost,
    position: string,
    came: HttpAnswer | undefined,
    mark: string,
  ): Promise<void> {
    if (came?.status === 400) {
      this.#options.world.trace.mark(MARKS.unmakeable);
      await this.#discard(host, position);
    } else if (came?.status === 200) {
      const { Position: at } = JSON.parse(came.text) as { readonly Position: string };
      this.#done(mark);
      this.remade.push({ of: placeOf(position), at: placeOf(at) });
    }
  }

  async #discard(host: SimHost, position: string): Promise<void> {
    this.#asked.add(position);
    const came = await this.#ask(host, 'DELETE', `position=${position}`);
    if (came?.status === 200) this.#done(MARKS.discarded);
  }

  async #discardAll(host: SimHost): Promise<void> {
    const { checks, world } = this.#options;
    // While it waits for the next reign, more may be set apart at any moment.
    const isWaiting = checks.replicationOf(host)?.isDiverged === true;
    this.#noteListed(host);
    const came = await this.#ask(host, 'DELETE', 'all');
    this.#noteListed(host);
    if (isWaiting || came?.status !== 200) {
      this.#allAskedUntilMs.set(checks.siteNameOf(host), world.time.nowMs + TRIES_MS);
    }
    if (came?.status === 200) this.#done(MARKS.discardedAll);
  }

  #noteListed(host: SimHost): void {
    const { divergent = [], gone = [] } = this.#options.checks.replicationOf(host) ?? {};
    for (const { epoch, first, last } of [...divergent, ...gone]) {
      for (let seq = first; seq <= last; seq += 1) this.#asked.add(placeText(epoch, seq));
    }
  }

  #done(mark: string): void {
    this.changeCount += 1;
    this.#options.world.trace.mark(mark);
  }

  #ask(
    host: SimHost,
    method: 'GET' | 'PUT' | 'DELETE',
    query: string,
  ): Promise<HttpAnswer | undefined> {
    if (method !== 'GET') this.quietAtMs = this.#options.world.time.nowMs + TRIES_MS;
    return this.#line.ask(host, { method, path: `/v1/operator/divergence?${query}` });
  }
}

function placeOf(text: string): Place {
  const [epoch, seq] = text.split('.');
  return { epoch: Number(epoch), seq: Number(seq) };
}
