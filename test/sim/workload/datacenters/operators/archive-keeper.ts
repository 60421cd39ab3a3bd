// The operator who takes archives of datacenters, and restores them in the middle of everything else. Only the primary
// restores; what comes of it is the objects of the archive, everywhere, and its local tokens at home.

import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import type { Behind } from '../../../checks/federation/global-chain.ts';
import type { Violations } from '../../../checks/violations.ts';
import type { DecidingFault } from '../../../faults/fault-plan.ts';
import type { SimGroup } from '../../../run/sim-group.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import type { HttpQuestion } from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import type { World } from '../../../world/world.ts';
import type { DatacentersWorkload } from '../datacenters-workload.ts';
import { placeIn } from '../global/global-history.ts';
import { noneOf } from '../local/changed-token.ts';
import type { ArchivedTokens } from '../local/local-tokens.ts';
import { type Foreign, foreignArchive } from './foreign-archive.ts';
import { OperatorLine } from './operator-line.ts';

export interface ArchiveKeeperOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly (readonly SimHost[])[];
  readonly checks: FederationChecks;
  readonly violations: Violations;
  readonly workload: Pick<DatacentersWorkload, 'archiving' | 'beginRestore' | 'endRestore'>;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  saved: 'an archive was taken',
  restored: 'an archive was restored',
  refused: 'a secondary was not restored',
  foreign: 'an archive of another federation was restored',
  before: 'an archive from before the log began was restored',
  elsewhere: 'an archive of another datacenter was refused',
} as const;

type Restore = Omit<Extract<DecidingFault, { readonly kind: 'restore-archive' }>, 'kind'>;

interface Archive {
  readonly bytes: Uint8Array;
  readonly objects: Behind;
  readonly tokens: ArchivedTokens;
}

const TIMEOUT_MS = 10_000;
/** Whoever was asked tries for so long, also when nobody waits for its answer any more. */
const TRIES_MS = 20_000;
/** Done, nobody to do it, not known. */
const SAID: readonly number[] = [200, 503, 504];
/** Refused for good. */
const IS_ELSEWHERE = /^the archive is of datacenter "\S+", this is "\S+": nothing was changed$/;
const IS_SECONDARY = /^Nothing was written: datacenter \S+ is not the primary /;

export class ArchiveKeeper {
  readonly #options: ArchiveKeeperOptions;
  readonly #line: OperatorLine;
  /** The last one of each datacenter, by its place. */
  readonly #archives = new Map<number, Archive>();
  /** One at a time, so that it is known what a restore brings. */
  #isBusy = false;
  #isStopped = false;
  readonly #stream: Stream;
  changeCount = 0;
  quietAtMs = 0;

  constructor(options: ArchiveKeeperOptions) {
    this.#options = options;
    const { group, violations, world } = options;
    this.#line = new OperatorLine({
      ...{ group, violations, world, kind: 'archive', timeoutMs: TIMEOUT_MS },
      mayBe: ({ status, text }) =>
        SAID.includes(status) || (status === 400 && IS_ELSEWHERE.test(text)),
    });
    this.#stream = options.world.stream.fork('foreign archives');
  }

  begin(): void {
    // Only what the plan says.
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Whether a restore may still come about. */
  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** False where there is nobody to ask. */
  save(place: number): boolean {
    const { group, sites } = this.#options;
    const leader = group.leader(sites[place]!);
    if (leader === undefined || this.#isBusy || this.#isStopped) return false;
    void this.#save(place, leader);
    return true;
  }

  /** False where there is nobody to ask, or nothing to restore. */
  restore({ site, madeOf, savedAt = site }: Restore): boolean {
    const { group, sites } = this.#options;
    const leader = group.leader(sites[site - 1]!);
    const archive = this.#archives.get(savedAt - 1);
    if (leader === undefined || archive === undefined) return false;
    if (this.#isBusy || this.#isStopped) return false;
    if (savedAt !== site) void this.#refuse(leader, archive);
    else if (madeOf === undefined) void this.#restore(site - 1, leader, archive);
    else void this.#restoreForeign(site - 1, leader, { archive, madeOf });
    return true;
  }

  /** One of another datacenter: nothing comes of it, wherever it is restored. */
  async #refuse(host: SimHost, { bytes }: Archive): Promise<void> {
    const { violations, world } = this.#options;
    const answer = await this.#line.ask(host, putting(bytes));
    if (answer === undefined) return;
    violations.require(answer.status !== 200, 'answers', () => {
      return `${host.name} restored an archive of another datacenter`;
    });
    if (IS_ELSEWHERE.test(answer.text)) world.trace.mark(MARKS.elsewhere);
  }

  async #restoreForeign(
    place: number,
    host: SimHost,
    { archive, madeOf }: { readonly archive: Archive; readonly madeOf: Foreign },
  ): Promise<void> {
    const { world } = this.#options;
    this.#isBusy = true;
    const { bytes, objects } = await foreignArchive(archive.bytes, {
      ...{ foreign: madeOf, datacenter: siteName(place), stream: this.#stream },
    });
    // Local tokens of this datacenter are in none.
    const { known, changed } = archive.tokens;
    const states = new Map([...known].map((id) => [id, 'gone' as const]));
    const tokens = { known, states, ...(changed !== undefined && { changed: noneOf(changed) }) };
    const made = { bytes, objects, tokens };
    if (await this.#restore(place, host, made))
      world.trace.mark(madeOf === 'federation' ? MARKS.foreign : MARKS.before);
  }

  async #save(place: number, host: SimHost): Promise<void> {
    const { checks, workload, world } = this.#options;
    const archived = workload.archiving(place);
    const answer = await this.#line.ask(host, { method: 'GET', path: '/v1/snapshot' });
    const at = answer?.status === 200 ? placeIn(answer) : undefined;
    const objects = at && checks.archived(at);
    if (answer?.bytes === undefined || objects === undefined) return;
    world.trace.mark(MARKS.saved);
    this.#archives.set(place, { bytes: answer.bytes, objects, tokens: archived() });
  }

  /** True when it was answered that it is done. */
  async #restore(place: number, host: SimHost, archive: Archive): Promise<boolean> {
    const { checks, workload, world } = this.#options;
    this.#isBusy = true;
    this.quietAtMs = world.time.nowMs + TRIES_MS;
    const untilMs = this.quietAtMs;
    checks.onRestoring(archive.objects);
    workload.beginRestore(place);
    const { bytes, tokens } = archive;
    const answer = await this.#line.ask(host, putting(bytes));
    if (answer?.status === 200) {
      this.changeCount += 1;
      world.trace.mark(MARKS.restored);
    } else if (answer !== undefined && IS_SECONDARY.test(answer.text)) {
      world.trace.mark(MARKS.refused);
    } else {
      // It may still come about.
      await world.time.pause(untilMs - world.time.nowMs);
    }
    workload.endRestore(place, answer?.status === 200 ? tokens : undefined);
    this.#isBusy = false;
    return answer?.status === 200;
  }
}

function putting(bytes: Uint8Array): Omit<HttpQuestion, 'body'> {
  const headers = { 'Content-Type': 'application/octet-stream' };
  return { method: 'PUT', path: '/v1/snapshot', headers, bytes };
}
