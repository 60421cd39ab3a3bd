// Holds every answer of several datacenters against the global log that is left at the end:
//   exactly once        a request is in the log at most once, whoever it was sent to
//   answers             what a client was told became of its write is what the log says
//   G4 majority         what a majority has acknowledged is in the log of every later epoch
//   G5 no silent loss   what was acknowledged is in the log, or is set apart where it was written; where the
//                       log was trimmed before, it is said to be gone
//   G9 read your writes what can be read somewhere is read there from then on, and where it is waited for
//   G11 atomic          a listing shows what there was at one place of the log
//   revocations         a token that was deleted is refused from then on, and so is what a role or policy gave no more
//   conditions          a write stands behind the version that it names
//   forks               what was set apart, and was made again, is in the log and says the same

import { createHash } from 'node:crypto';
import { objectsOf } from '../../../../../src/state/global-log/entry-objects.ts';
import type { GlobalEntry } from '../../../../../src/state/global-log/global-entry.ts';
import { decodeRecord } from '../../../../../src/state/rows/layout/record-codec.ts';
import { TOKENS } from '../../../../../src/state/rows/objects/objects.ts';
import { ROW } from '../../../../../src/state/rows/tables.ts';
import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import type { KnownEntry } from '../../../checks/federation/global-chain.ts';
import type { Violations } from '../../../checks/violations.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import { MANAGEMENT_SECRET } from '../../../subject/node-subject.ts';
import { bytesOf, textOf } from '../../../world/key-text.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import { SortedRows } from '../../../world/sorted-rows.ts';
import type { ForkKeeper, Remade } from '../operators/fork-keeper.ts';
import { requireCondition } from './global-conditions.ts';
import type { GlobalHistory, GlobalRead, GlobalWrite, Place } from './global-history.ts';
import { GlobalPhases } from './global-phases.ts';
import { ALLOWED } from './global-rights.ts';

export interface GlobalJudgeOptions {
  readonly violations: Violations;
  readonly checks: FederationChecks;
  readonly hosts: readonly SimHost[];
  readonly history: GlobalHistory;
  readonly forks: Pick<ForkKeeper, 'remade' | 'wasAsked'>;
}

/** What a datacenter was known to have, from a moment on. */
interface Seen {
  readonly returnMs: number;
  readonly site: number;
  /** Undefined: the whole datacenter. */
  readonly server: string | undefined;
  readonly seq: number;
}

export class GlobalJudge {
  readonly #options: GlobalJudgeOptions;
  readonly #chain: readonly KnownEntry[];
  /** By seq. */
  readonly #writtenAtMs: ReadonlyMap<number, number>;
  readonly #onChain: ReadonlySet<string>;
  readonly #phases: GlobalPhases;
  /** Of the entries that are not in the log that is left. */
  readonly #apart: GlobalPhases;
  readonly #byRequest = new Map<string, KnownEntry[]>();
  readonly #managementId: string;
  readonly #seen: Seen[] = [];

  constructor(options: GlobalJudgeOptions) {
    this.#options = options;
    const { checks, hosts } = options;
    const head = checks.head(hosts);
    this.#chain = head === undefined ? [] : checks.chain.upTo(textOf(head.at.cursor.hash));
    this.#writtenAtMs = new Map(this.#chain.map(({ entry: { seq }, atMs }) => [seq, atMs]));
    this.#onChain = new Set(this.#chain.map(({ hash }) => hash));
    const origin = this.#originRows();
    const rowsBehind = (hash: string): SortedRows | undefined => checks.chain.behind(hash)?.rows;
    this.#phases = new GlobalPhases(this.#chain, { origin, rowsBehind });
    const all = [...checks.chain.all()];
    const apart = all.filter(({ hash }) => !this.#onChain.has(hash));
    this.#apart = new GlobalPhases(apart, { before: this.#phases, rowsBehind });
    for (const known of checks.chain.all()) {
      const { request } = known.entry;
      if (request === undefined) continue;
      const key = hex(request.key);
      this.#byRequest.set(key, [...(this.#byRequest.get(key) ?? []), known]);
    }
    this.#managementId = managementIdIn(origin, this.#chain);
  }

  /** The objects that there were when the log began. */
  #originRows(): SortedRows {
    const [first] = this.#chain;
    const behind = first && this.#options.checks.chain.behind(first.prevHash);
    return behind?.rows ?? SortedRows.EMPTY;
  }

  all(): void {
    const { writes, reads, listings } = this.#options.history;
    for (const write of writes) this.#judgeWrite(write);
    for (const remade of this.#options.forks.remade) this.#judgeRemade(remade);
    const told = writes.flatMap((write) => (write.visibleAt === undefined ? [] : [{ write }]));
    const all = [...told, ...reads.map((read) => ({ read }))].sort(
      (left, right) => returnOf(left) - returnOf(right),
    );
    for (const each of all) {
      if ('write' in each) this.#noteVisible(each.write);
      else this.#judgeRead(each.read);
    }
    for (const { found, asked } of listings) {
      const isOne = this.#hasBranches || this.#wasListed(found);
      this.#options.violations.require(isOne, 'G11 atomic', () => {
        return `${asked.host} listed ${found.join(', ')}, which there was at no place of the log`;
      });
    }
  }

  /** Whether entries were written that are not in the log that is left. */
  get #hasBranches(): boolean {
    return this.#onChain.size < this.#options.checks.chain.size;
  }

  #wasListed(found: readonly string[]): boolean {
    const wanted = found.join();
    return this.#phases.listings.some(([, names]) => names.join() === wanted);
  }

  #entriesOf({
    requestId,
    owner = `token ${this.#managementId}`,
  }: GlobalWrite): readonly KnownEntry[] {
    const text = JSON.stringify([owner, requestId]);
    return this.#byRequest.get(createHash('sha256').update(text).digest('hex')) ?? [];
  }

  #judgeWrite(write: GlobalWrite): void {
    const { checks, violations } = this.#options;
    const { requestId, output } = write;
    const entries = this.#entriesOf(write);
    const isRemade = entries.some((known) => this.#options.forks.wasAsked(known));
    const effects = entries.filter(({ hash }) => this.#onChain.has(hash));
    // What a restore replaced is done with: nobody remembers what was asked for before.
    const restores = effects.map(({ entry }) => this.#restoreCountAt(entry.seq));
    violations.require(new Set(restores).size === restores.length, 'exactly once', () => {
      return `${requestId} took effect ${effects.length} times, at ${effects.map(placeOf).join()}`;
    });
    // Who had it made again named the version that was there then.
    if (!isRemade) for (const known of entries) this.#requireCondition(write, known);
    if (write.stands !== undefined) {
      const { at } = write.stands;
      const there = entries.filter(({ entry }) => isAt(entry, at));
      // A datacenter that was put back may have written it once more, in the same place.
      const left = there.find(({ hash }) => this.#onChain.has(hash));
      const known = left ?? there[0] ?? checks.chain.at(at.epoch, at.seq);
      this.#requireKept(`${requestId} ${JSON.stringify(write.input)},`, known, write.stands);
    }
    if (output === 'unknown') return;
    const isDone =
      output === 'withheld' ||
      (output !== 'nothing' && (output.kind === 'written' || output.kind === 'deleted'));
    // A datacenter that lost its reign meanwhile asks the next one again: what that refuses is true of the
    // log that is left, and the first entry is set apart.
    const isRefusal = !isDone && output !== 'nothing';
    const present = isRefusal
      ? effects.filter((known) => !this.#wasForgotten(write, known))
      : entries;
    const isTrue = isDone === present.length > 0 || (isRefusal && isRemade);
    violations.require(isTrue, 'answers', () => {
      const real = entries.length > 0 ? `is at ${entries.map(placeOf).join()}` : 'is nowhere';
      return `${requestId} ${JSON.stringify(write.input)} was answered ${JSON.stringify(output)} and ${real}`;
    });
    if (typeof output === 'string' || output.kind !== 'written') return;
    // A repeat at a primary that is outrun, and does not know, takes effect there once more: the answer is of
    // the entry that it names, which may be the one that is set apart.
    const told = entries.filter(({ entry }) => isAt(entry, write.stands?.at));
    const isTold = told.some(({ entry }) => entry.index === output.index);
    violations.require(isTold, 'answers', () => {
      const real = entries.map((known) => `${known.entry.index} at ${placeOf(known)}`).join();
      return `${requestId} was answered index ${output.index} at ${JSON.stringify(write.stands?.at)}, the log says ${real}`;
    });
  }

  /** Where not all before the entry is known, nothing is. */
  #requireCondition(write: GlobalWrite, known: KnownEntry): void {
    const { checks, violations } = this.#options;
    const before = checks.chain.behind(known.prevHash);
    if (before !== undefined) requireCondition(violations, write, { known, before: before.rows });
  }

  /**
   * A repeat that comes behind a restore, a server's own among them, may be refused on account of what the archive
   * has, or has not. Where it was refused is not told: an answer names what the datacenter that was asked has.
   */
  #wasForgotten({ returnMs }: GlobalWrite, { entry }: KnownEntry): boolean {
    return this.#chain.some(({ entry: { body, seq }, atMs }) => {
      return body.kind === 'reset' && seq > entry.seq && atMs <= returnMs;
    });
  }

  #restoreCountAt(seq: number): number {
    return this.#chain.filter(({ entry }) => entry.body.kind === 'reset' && entry.seq <= seq)
      .length;
  }

  /**
   * What was made again is kept as any other write, under the same request, and says the same, where it is no deletion
   * of what is gone already. What a later reign has of that fork is there, and need not be made.
   */
  #judgeRemade({ of, at }: Remade): void {
    const { checks, violations } = this.#options;
    const [was, is] = [of, at].map(({ epoch, seq }) => checks.chain.at(epoch, seq));
    const says = `${of.epoch}.${of.seq}, made again at ${at.epoch}.${at.seq},`;
    const areKnown = was !== undefined && is !== undefined;
    const isThere = areKnown && is === was && this.#onChain.has(is.hash);
    const isOther = areKnown && is !== was && (saysTheSame(was, is) || this.#isGoneAt(is, was));
    violations.require(isThere || isOther, 'forks', () => {
      return `${says} says ${is && saidIn(is.entry)}, and was ${was && saidIn(was.entry)}`;
    });
    this.#requireKept(says, is, { at, ack: 'primary' });
  }

  /** Whether nothing of what `deletion` deletes is there behind the other entry. */
  #isGoneAt({ hash }: KnownEntry, { entry: { body } }: KnownEntry): boolean {
    const rows = this.#options.checks.chain.behind(hash)?.rows;
    const effects = body.kind === 'effects' ? body.effects : [];
    if (rows === undefined || effects.length === 0) return false;
    return effects.every(
      ({ key, value }) => value === undefined && rows.get(textOf(key)) === undefined,
    );
  }

  /** `known`: what stands there. */
  #requireKept(
    what: string,
    known: KnownEntry | undefined,
    { at, ack }: NonNullable<GlobalWrite['stands']>,
  ): void {
    const { checks, forks, hosts, violations } = this.#options;
    const says = (): string => `${what} acknowledged by ${ack} at ${at.epoch}.${at.seq},`;
    if (known !== undefined && this.#onChain.has(known.hash)) return;
    const isLostByTwo = known !== undefined && checks.wasLostByTwo(known);
    if (ack !== 'primary' && !this.#wasForced(at) && !isLostByTwo) {
      violations.add('G4 majority', `${says()} is not in the log that is left`);
      return;
    }
    const keepers = hosts.filter((host) => {
      const { divergent = [], gone = [] } = checks.replicationOf(host) ?? {};
      return [...divergent, ...gone].some(({ epoch, first, last }) => {
        return epoch === at.epoch && first <= at.seq && at.seq <= last;
      });
    });
    const isKept = keepers.some((host) => checks.siteNameOf(host) === known?.site);
    // Where its server is gone for good nobody could keep it.
    const isFenced = known === undefined || this.#hasHeard(known.site, at.epoch);
    // It was lost there with all disks, or what was written on them of late, before anybody else had it.
    const isLost =
      known !== undefined &&
      (checks.wasEmptied(known.site, known.atMs) || checks.chain.isForgotten(known));
    const isSettled = known !== undefined && forks.wasAsked(known);
    const isExcused = isLost || isSettled || this.#wasGivenUp(known);
    violations.require(isKept || !isFenced || isExcused, 'G5 no silent loss', () => {
      return `${says()} is neither in the log that is left, nor set apart or said to be gone where it was written`;
    });
  }

  /**
   * Whether it was given up together with a restore of the same reign, as a refusal says: whoever wrote both was put
   * back to before them, and nobody with objects had taken what was restored.
   */
  #wasGivenUp(known: KnownEntry | undefined): boolean {
    if (known === undefined) return false;
    const { checks } = this.#options;
    const { site, atMs, entry } = known;
    if (!this.#wasForced(entry) || !checks.wasPutBackSince(site, atMs)) return false;
    return [...checks.chain.all()].some((each) => {
      const { body, epoch } = each.entry;
      const isOfReign = each.site === site && epoch === entry.epoch;
      return body.kind === 'reset' && isOfReign && !this.#onChain.has(each.hash);
    });
  }

  /** Whether that datacenter has learnt that a later epoch began elsewhere: one of its own may be as lost. */
  #hasHeard(site: string, epoch: number): boolean {
    const { checks, hosts } = this.#options;
    return hosts.some((host) => {
      const at = checks.replicationOf(host);
      if (checks.siteNameOf(host) !== site || at === undefined) return false;
      const isThere = at.isDiverged || this.#onChain.has(textOf(at.cursor.hash));
      return isThere && at.cursor.epoch > epoch;
    });
  }

  /** Whether an operator took the loss of what is behind this place. */
  #wasForced(place: Place): boolean {
    return this.#chain.some(({ entry: { epoch, body } }) => {
      return epoch > place.epoch && body.kind === 'epoch-start' && body.isForced;
    });
  }

  /** 0 where nothing of it is in the log, or what was written in that place when disks had been put back. */
  #seqOf(place: Place | undefined, byMs: number): number {
    if (place === undefined || this.#isLater(place.seq, byMs)) return 0;
    const known = this.#options.checks.chain.at(place.epoch, place.seq);
    return known !== undefined && this.#onChain.has(known.hash) ? place.seq : 0;
  }

  #noteVisible(write: GlobalWrite): void {
    const { stands, visibleAt, returnMs } = write;
    const seq = this.#seqOf(stands?.at, returnMs);
    if (visibleAt === undefined || seq === 0) return;
    const { site, host, life } = visibleAt;
    if (this.#isAcrossPutBack(site, write)) return;
    this.#seen.push({ returnMs, site, server: undefined, seq });
    this.#seen.push({ returnMs, site, server: `${host}/${life}`, seq });
  }

  /** What was there when it was asked need not be there when the answer has come. */
  #isAcrossPutBack(site: number, asked: Pick<GlobalRead, 'callMs' | 'returnMs'>): boolean {
    return this.#options.checks.wasPutBack(site, asked.callMs, asked.returnMs);
  }

  #floorOf({ consistency, from, asked, callMs, returnMs }: GlobalRead): number {
    if (consistency === 'position') return this.#seqOf(from, returnMs);
    const { checks } = this.#options;
    const server = consistency === 'stale' ? `${asked.host}/${asked.life}` : undefined;
    let floor = 0;
    for (const seen of this.#seen) {
      const counts = seen.site === asked.site && seen.server === server && seen.returnMs < callMs;
      if (counts && !checks.wasPutBack(seen.site, seen.returnMs, callMs))
        floor = Math.max(floor, seen.seq);
    }
    return floor;
  }

  /** What a fork showed may be as the log had it long after. */
  #isLater(seq: number, thanMs: number): boolean {
    const atMs = this.#writtenAtMs.get(seq);
    return atMs !== undefined && atMs > thanMs;
  }

  /** What is not in the log any more could be read where it was written, until that was known there. */
  #wasSetApart({ target, output }: Pick<GlobalRead, 'target' | 'output'>): boolean {
    if (target.kind === 'login') {
      const { accessorId, isLocal, method } = target;
      const key = `auth-method ${method.name}`;
      if (isLocal && this.#phases.wasBroughtBack(key, method.createIndex)) return true;
      if (isLocal && output.kind === 'missing' && this.#mayHaveLeft(key)) return true;
      return this.#apart.hasHolder(key) || this.#apart.hasToken(accessorId);
    }
    if (target.kind === 'local-right') {
      const { login, holder, rootKeys } = target;
      const own = login ?? holder;
      if (own !== undefined && this.#wasSetApart({ target: own, output })) return true;
      return output.kind === 'found' && this.#apart.hasAny(rootKeys);
    }
    if (target.kind === 'changed' && target.namespace === undefined) return false;
    if (target.kind === 'tenant' || target.kind === 'changed') {
      const key = `namespace ${target.namespace}`;
      const index = target.kind === 'tenant' ? target.namespaceIndex : target.home.index;
      if (this.#phases.wasBroughtBack(key, index)) return true;
      if (output.kind === 'missing' && this.#mayHaveLeft(key)) return true;
      return this.#apart.hasHolder(key);
    }
    if (target.kind === 'right') return this.#apart.hasAny(target.rootKeys);
    if (output.kind === 'found') return this.#apart.wasEver(target, output);
    return output.kind === 'missing' && this.#apart.wasEver(target, null);
  }

  /** Where nobody keeps the first entry beyond a fork, local tokens end with a method or namespace that was changed. */
  #mayHaveLeft(holder: string): boolean {
    return this.#hasBranches && this.#phases.wasChanged(holder);
  }

  /** Whoever waits for a place is not answered by a server whose log goes on without it. */
  #requireHad({ from, at, asked, target }: GlobalRead): void {
    const { checks, violations } = this.#options;
    const wanted = from && checks.chain.at(from.epoch, from.seq);
    const there = at && checks.chain.at(at.epoch, at.seq);
    if (wanted === undefined || there === undefined || this.#onChain.has(wanted.hash)) return;
    const had = checks.chain.upTo(there.hash).some(({ hash }) => hash === wanted.hash);
    violations.require(had, 'G9 read your writes', () => {
      return `${asked.host} showed ${target.key} at ${placeOf(there)} to who waited for ${placeOf(wanted)}, which is not in that log`;
    });
  }

  #judgeRead(read: GlobalRead): void {
    this.#requireHad(read);
    const { kind, target, output, asked, returnMs, consistency } = read;
    const floor = this.#floorOf(read);
    const phases = this.#phases.of(target, siteName(asked.site));
    const fit = phases.find(({ version, from }, place) => {
      const until = phases[place + 1]?.from ?? Number.POSITIVE_INFINITY;
      const isFit = until > Math.max(from, floor) && fits(version, output);
      return isFit && !this.#isLater(from, returnMs);
    });
    if (fit === undefined) {
      if (this.#wasSetApart(read)) return;
      const isRevoked =
        (kind === 'presented' && phases.at(-1)?.version === null) ||
        (kind === 'authorized' && fits(ALLOWED, output));
      const others = target.kind === 'changed' ? 'local tokens' : 'G9 read your writes';
      this.#options.violations.add(
        isRevoked ? 'revocations' : others,
        `${asked.host} of ${siteName(asked.site)} showed ${target.key} as ${JSON.stringify(output)} (${kind}, ${consistency}) ` +
          `between ${read.callMs} and ${returnMs} ms, though ${floor} could be read there before; it was ${JSON.stringify(phases)}`,
      );
      return;
    }
    // What one read has shown, the next has to; but a fork may have shown by chance what the log had later.
    const seq = Math.max(fit.from, floor);
    const isAcross = this.#isAcrossPutBack(asked.site, read);
    if (consistency === 'default' && !isAcross && !this.#wasSetApart(read)) {
      this.#seen.push({ returnMs, site: asked.site, server: undefined, seq });
    }
  }
}

function fits(
  version: { readonly value: string; readonly index: number } | null,
  output: GlobalRead['output'],
): boolean {
  if (output.kind === 'missing') return version === null;
  if (output.kind !== 'found') return false;
  return version?.value === output.value && version.index === output.index;
}

function returnOf(each: { readonly write: GlobalWrite } | { readonly read: GlobalRead }): number {
  return 'write' in each ? each.write.returnMs : each.read.returnMs;
}

function isAt({ epoch, seq }: Place, place: Place | undefined): boolean {
  return epoch === place?.epoch && seq === place.seq;
}

function placeOf({ entry }: KnownEntry): string {
  return `${entry.epoch}.${entry.seq}`;
}

/** But for the indexes, and the ids that the service draws: whoever asked first may have asked again meanwhile. */
function saysTheSame(left: KnownEntry, right: KnownEntry): boolean {
  const [before, after] = [left, right].map(({ entry }) => saidIn(entry));
  const [first, again] = [left, right].map(({ entry: { request } }) => request && hex(request.key));
  return before === after && (first === undefined || first === again);
}

function saidIn(entry: GlobalEntry): string {
  const said = objectsOf(entry).map(({ kind, object }) => {
    const { name, description } = (object ?? {}) as { name?: string; description?: string };
    return [kind, object === undefined, name, description];
  });
  return JSON.stringify(said);
}

/** Of the token that the clients present. */
function managementIdIn(origin: SortedRows, chain: readonly KnownEntry[]): string {
  const rows = [...origin.all()].map(({ key, value }) => ({ key: bytesOf(key), value }));
  const written = chain.flatMap(({ entry: { body } }) => {
    return body.kind === 'effects' ? body.effects : [];
  });
  for (const { key, value } of [...rows, ...written]) {
    if (key[0] !== ROW.token || value === undefined) continue;
    const { accessorId, secretId } = decodeRecord(TOKENS.codec, value);
    if (secretId === MANAGEMENT_SECRET) return accessorId;
  }
  return '';
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
