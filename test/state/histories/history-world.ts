// Three datacenters whose state machines get random commands: what all share goes from the primary to the others
// entry by entry or as a snapshot, now and then two are primary for a while, and one gives way.

import type { CallerResolver } from '../../../src/service/rights/caller-resolver.ts';
import type { Change } from '../../../src/state/commands/commands.ts';
import { NEWEST_LEVEL } from '../../../src/state/commands/feature-levels.ts';
import type { Outcome } from '../../../src/state/commands/outcome.ts';
import { suffixOf } from '../../../src/state/global-log/chain.ts';
import { cursorAfter, decodeEntry, entryHash } from '../../../src/state/global-log/global-entry.ts';
import {
  decodeHeader,
  type GlobalSnapshot,
} from '../../../src/state/global-log/global-snapshot.ts';
import type { Replication } from '../../../src/state/global-log/replication.ts';
import { MemoryKv } from '../../support/memory-kv.ts';
import { aCommand, accessorNumbered, aToken } from '../../support/state-and-service/fixtures.ts';
import { BUILTINS, MachineHarness } from '../../support/state-and-service/machine-harness.ts';
import { archived, commandsOf, type Server } from '../archives/restoring.ts';
import { sharedStep } from './history-changes.ts';
import {
  type LoginDesk,
  type LoginHere,
  loginDeskOf,
  takeLogin,
  takeLogout,
} from './history-logins.ts';
import {
  inSpace,
  NO_LINKS,
  PLACES,
  type Place,
  POLICIES,
  ROLES,
  SPACE_OF,
  type Space,
  TTL_MS,
} from './history-objects.ts';
import { type Beginning, NUMBERS, OPENING, type Step } from './history-steps.ts';
import { tokenStep } from './history-tokens.ts';
import { type Shared, SharedHistory, without } from './shared-history.ts';
import { resolverOf, type Seen, TokenLives } from './token-lives.ts';

interface Import {
  readonly snapshot: GlobalSnapshot;
  readonly to: Place;
  number: number;
  after: Uint8Array | undefined;
  isLast: boolean;
}

interface Archived {
  readonly at: Place;
  readonly bytes: Uint8Array;
  readonly epoch: number;
  readonly lives: ReturnType<TokenLives['asOf']>;
  readonly shared: Shared;
}

const PRIMARY_LAST = [...PLACES].reverse();
const PASSING = 99;
const same = (shared: Shared): Shared => shared;
const FORCED = { promises: [], isForced: true, isFromFork: false } as const;

export class HistoryWorld {
  readonly #dcs = PLACES.map(() => new MachineHarness(new MemoryKv()));
  readonly #resolvers: CallerResolver[] = [];
  readonly #desks: LoginDesk[] = [];
  readonly #reached: Map<string, number>;
  readonly #lives = new TokenLives((what) => this.#note(what));
  readonly #shared = new SharedHistory();
  #marks = 0;
  #batch = 0;
  #nowMs = this.#dcs[0]!.clock.wallMs();
  #import: Import | undefined;
  /** Whoever writes what all share and is right; on a fork another one does, too. */
  #primary: Place = 0;
  #rival: Place | undefined;
  #archived: Archived | undefined;
  /** What was made behind an archive may be gone from others, too, and what was deleted back. */
  #hasRestored = false;

  constructor(reached: Map<string, number>) {
    this.#reached = reached;
  }

  async open({ level, ahead }: Beginning): Promise<void> {
    for (const place of PLACES) {
      this.#watch(place);
      const begin = { datacenter: `dc${place + 1}`, primary: 'dc1', isWitness: false };
      await this.say(place, { type: 'global-log.begin', ...begin });
      this.#shared.began(this.machine(place));
      await this.say(place, { type: 'level.raise', level });
    }
    const withDefault = (shared: Shared): Shared => ({
      ...shared,
      spaces: new Map([['default', { mark: this.#mark(), defaults: NO_LINKS }]]),
    });
    await this.#write(0, BUILTINS, withDefault);
    for (const each of OPENING) await this.take(each);
    for (const at of [1, 2] as const) {
      await this.take({ kind: 'follow', at, isFork: false, entries: 99, with: [] });
    }
    const made = aToken(PASSING + 1, { local: true });
    await this.say(1, { type: 'token.set', presence: 'create', token: made });
    for (let count = 0; count < ahead; count += 1) {
      await this.say(1, { type: 'token.set', presence: 'update', token: made });
    }
  }

  async close(): Promise<void> {
    await this.#import?.snapshot.close();
  }

  machine(place: Place): MachineHarness['machine'] {
    return this.#dcs[place]!.machine;
  }

  async take(step: Step): Promise<void> {
    // What older levels do with these is known to be wrong: see 1206 and 1222 of the invariants.
    if (step.kind === 'fork' || step.kind === 'no space') await this.#raise(PRIMARY_LAST);
    switch (step.kind) {
      case 'token':
      case 'links':
      case 'no token':
        await this.#run(step.at, [step]);
        break;
      case 'login':
        await takeLogin(this.#loginHere(step.at), step);
        break;
      case 'logout':
        await takeLogout(this.#loginHere(step.at), step.number);
        break;
      case 'follow':
        await this.#follow(step);
        break;
      case 'begin':
        await this.#begin(step);
        break;
      case 'carry':
        await this.#carry(1);
        break;
      case 'commit':
        await this.#commit();
        break;
      case 'reap':
        await this.#reap(step.at);
        break;
      case 'restart':
        this.#restart(step.at);
        break;
      case 'no space':
        await this.#emptied(step.space);
        await this.#sayShared(step);
        if (step.isMadeAnew) await this.#sayShared({ kind: 'space', space: step.space });
        break;
      case 'passing':
        await this.#passing(step.space);
        break;
      case 'wait':
        this.#nowMs += TTL_MS * 0.6;
        for (const { clock } of this.#dcs) clock.advance(TTL_MS * 0.6);
        break;
      case 'raise':
        await this.#raise(this.#writesShared(step.at) ? PRIMARY_LAST : [step.at]);
        break;
      case 'discard':
        await this.#discard();
        break;
      case 'fork':
        await this.#fork(step.at);
        break;
      case 'archive':
        await this.#archive(step.at);
        break;
      case 'restore':
        await this.#restore();
        break;
      case 'settle':
        await this.#settle(step.at);
        break;
      default:
        await this.#sayShared(step);
    }
    for (const place of PLACES) this.#lives.look(this.#seen(place));
  }

  async say(place: Place, change: Change): Promise<string> {
    const outcome = await this.#dcs[place]!.one(change, { timeMs: this.#nowMs });
    return this.#count(change, outcome);
  }

  #count(change: Change, outcome: Outcome): string {
    const answer = outcome.kind === 'applied' ? outcome.answer : undefined;
    const said = answer?.type === 'verdict' ? answer.verdict : 'applied';
    const what = outcome.kind === 'refused' ? outcome.code : said;
    this.#note(`${change.type} ${what}`);
    if (['diverged', 'broken-chain'].includes(what)) throw new Error(`${change.type}: ${what}`);
    return what;
  }

  #note(what: string): void {
    this.#reached.set(what, (this.#reached.get(what) ?? 0) + 1);
  }

  #mark(): string {
    this.#marks += 1;
    return `mark ${this.#marks}`;
  }

  #watch(place: Place): void {
    const harness = this.#dcs[place]!;
    const resolver = resolverOf({ place, harness });
    this.#resolvers[place] = resolver;
    this.#desks[place] = loginDeskOf(place, harness);
    harness.machine.watch.onApplied((event) => resolver.onApplied(event));
  }

  #seen(place: Place): Seen {
    const kept = this.#resolvers[place]!;
    const shared = this.#shared.at(this.machine(place));
    return { place, harness: this.#dcs[place]!, shared, kept, nowMs: this.#nowMs };
  }

  /** Whether what all share is written there. */
  #writesShared(place: Place): boolean {
    return place === this.#primary || place === this.#rival;
  }

  /** Says it where it goes into the log of what all share, which is then what `after` says. */
  async #write(
    place: Place,
    change: Change,
    after: (before: Shared, outcome: Outcome) => Shared,
  ): Promise<string> {
    const machine = this.machine(place);
    const { seq } = machine.cursor()!;
    const before = this.#shared.at(machine);
    const outcome = await this.#dcs[place]!.one(change, { timeMs: this.#nowMs });
    const said = this.#count(change, outcome);
    const count = machine.cursor()!.seq - seq;
    // Of several entries, only what is behind the last is looked at: nobody is asked for less of them.
    if (count > 0) this.#shared.wrote(machine, seq, Array(count).fill(after(before, outcome)));
    return said;
  }

  /** What all share, in whichever may, each time with a mark of its own. */
  async #sayShared(step: Step): Promise<void> {
    for (const place of PLACES) {
      if (!this.#writesShared(place)) continue;
      const now = this.#shared.at(this.machine(place));
      const { change, after } = sharedStep(now, this.#mark(), step);
      const said = await this.#write(place, change, after);
      if (said === 'applied') this.#note(`shared: ${step.kind}`);
    }
  }

  /** A token of all is made in the namespace and deleted. */
  async #passing(space: Space): Promise<void> {
    const given = {
      kind: 'token',
      number: PASSING,
      space,
      secret: undefined,
      method: undefined,
    } as const;
    const rest = { links: NO_LINKS, isByName: false, isLocal: false, doesExpire: false } as const;
    for (const at of PLACES) {
      if (!this.#writesShared(at)) continue;
      await this.#run(at, [{ ...given, ...rest, at }]);
      await this.#run(at, [{ kind: 'no token', at, number: PASSING }]);
    }
  }

  /** What is in the namespace goes first, as far as whoever writes what all share knows of it. */
  async #emptied(space: Space): Promise<void> {
    if (space === SPACE_OF.own) await this.#sayShared({ kind: 'no method', name: 'own' });
    for (const number of inSpace(POLICIES, space))
      await this.#sayShared({ kind: 'no policy', number });
    for (const number of inSpace(ROLES, space)) await this.#sayShared({ kind: 'no role', number });
    for (const at of PLACES) {
      if (!this.#writesShared(at)) continue;
      const tokens = NUMBERS.filter(
        (number) => this.machine(at).token(accessorNumbered(number))?.namespace === space,
      );
      const steps = tokens.map((number) => ({ kind: 'no token', at, number }) as const);
      await this.#run(at, steps);
    }
  }

  #loginHere(place: Place): LoginHere {
    this.#batch += 1;
    return {
      ...{ place, machine: this.machine(place), desk: this.#desks[place]! },
      ...{ history: this.#shared, lives: this.#lives, nowMs: this.#nowMs, batch: this.#batch },
      doesWrite: this.#writesShared(place),
      mark: this.#mark(),
      note: (what) => this.#note(what),
    };
  }

  /** Steps at one place as one batch, and other commands behind them. */
  async #run(place: Place, steps: readonly Step[], behind: readonly Change[] = []): Promise<void> {
    this.#batch += 1;
    const machine = this.machine(place);
    const shared = this.#shared.at(machine);
    const { seq } = machine.cursor()!;
    const here = {
      ...{ place, machine, shared, nowMs: this.#nowMs, batch: this.#batch, lives: this.#lives },
      doesWrite: this.#writesShared(place),
      fresh: new Map(),
      mark: () => this.#mark(),
    };
    const ready = steps.map((step) => tokenStep(here, step));
    const changes = [...ready.map(({ change }) => change), ...behind];
    const when = { timeMs: this.#nowMs };
    const commands = changes.map((change) => aCommand(change, when));
    const outcomes = await this.#dcs[place]!.run(...commands);
    const written: Shared[] = [];
    for (const [number, outcome] of outcomes.entries()) {
      const said = this.#count(changes[number]!, outcome);
      if (said !== 'applied') continue;
      const after = ready[number]?.done(outcome, written.at(-1) ?? shared);
      if (after !== undefined) written.push(after);
    }
    if (here.doesWrite || written.length > 0) this.#shared.wrote(machine, seq, written);
  }

  async #reap(place: Place): Promise<void> {
    const accessorIds = NUMBERS.map(accessorNumbered);
    const seen = this.#seen(place);
    const before = this.#lives.storedIn(seen);
    const ended = this.#lives.voidOf(seen);
    await this.#write(place, { type: 'token.reap', accessorIds }, (shared) => ({
      ...shared,
      tokens: without(shared.tokens, ...ended),
    }));
    const after = this.#lives.storedIn(this.#seen(place));
    for (const life of before) {
      if (after.includes(life)) continue;
      this.#note('reaped');
      if (!this.#lives.isOver(seen, life)) throw new Error(`${life.mark} was reaped, and stands`);
    }
  }

  async #raise(places: readonly Place[]): Promise<void> {
    for (const place of places) {
      const from = this.machine(place).usesLevel;
      if (from === NEWEST_LEVEL) continue;
      await this.say(place, { type: 'level.raise', level: NEWEST_LEVEL });
      this.#note(`raised from ${from}`);
    }
  }

  /** Who uses less than whom it hears is given nothing. */
  #isTooOld(place: Place, source: Place): boolean {
    return this.machine(place).usesLevel < this.machine(source).usesLevel;
  }

  /** Whom one hears; undefined of who writes itself, or stands on a fork that it wrote. */
  #heardBy({ at, isFork }: { readonly at: Place; readonly isFork: boolean }): Place | undefined {
    const source = isFork ? (this.#rival ?? this.#primary) : this.#primary;
    return this.#writesShared(at) ? undefined : source;
  }

  async #follow(step: Extract<Step, { readonly kind: 'follow' }>): Promise<void> {
    const { at } = step;
    const source = this.#heardBy(step);
    const from = this.machine(at).cursor()!;
    const hash = source === undefined ? undefined : this.machine(source).globalHashAt(from.seq);
    // On another chain, or nothing is kept: whoever is asked says so.
    const doesFit = hash !== undefined && Buffer.compare(hash, from.hash) === 0;
    if (source === undefined || !doesFit || this.#isTooOld(at, source)) {
      await this.#run(at, step.with);
      return;
    }
    const all = (await this.machine(source).globalEntries(from.seq, 1 << 24)) ?? [];
    const entries = all.slice(0, step.entries);
    const last = entries.at(-1);
    const to = last === undefined ? from : cursorAfter(decodeEntry(last), entryHash(last));
    const { epoch } = this.machine(source).cursor()!;
    const coming = this.machine(at).importUnderWay();
    // So the leader of a datacenter does.
    if (coming !== undefined && coming.cursor.epoch > epoch) {
      await this.say(at, { type: 'restore.abandon', id: coming.id });
    }
    await this.#run(at, step.with, [{ type: 'global-log.apply', epoch, from, entries, to }]);
  }

  async #begin(step: Extract<Step, { readonly kind: 'begin' }>): Promise<void> {
    const source = this.#heardBy(step);
    if (source === undefined || this.#isTooOld(step.at, source)) return;
    await this.close();
    this.#import = undefined;
    const to = step.at;
    const snapshot = (await this.machine(source).globalSnapshot())!;
    const { header } = snapshot;
    let said = await this.say(to, { type: 'global-snapshot.begin', id: 'one', header });
    let count = 0;
    for await (const rows of snapshot.pieces()) {
      if (said !== 'applied') break;
      count += 1;
      said = await this.say(to, { type: 'global-snapshot.chunk', id: 'one', number: count, rows });
    }
    if (said === 'applied') {
      this.#import = { snapshot, to, number: 0, after: undefined, isLast: false };
    } else await snapshot.close();
  }

  async #carry(limit: number): Promise<void> {
    const under = this.#import;
    if (under === undefined || under.isLast) return;
    under.number += 1;
    const isFirst = under.number === 1;
    const keys = isFirst ? [] : await this.machine(under.to).localRows(under.after, limit);
    under.isLast = !isFirst && keys.length < limit;
    under.after = keys.at(-1) ?? under.after;
    const { number, isLast } = under;
    const carry = { type: 'global-snapshot.carry', id: 'one', number, keys, isLast } as const;
    await this.say(under.to, carry);
  }

  async #commit(): Promise<void> {
    while (this.#import?.isLast === false) await this.#carry(2);
    if (this.#import === undefined) return;
    const { to } = this.#import;
    const { header } = this.#import.snapshot;
    const hasFork = suffixOf(this.#standing(to), decodeHeader(header).epochs).length > 0;
    const said = await this.say(to, { type: 'global-snapshot.commit', id: 'one' });
    await this.close();
    this.#import = undefined;
    if (said !== 'applied' || !(hasFork || this.#hasRestored)) return;
    this.#lives.leftFork(this.#seen(to));
  }

  #standing(place: Place): Replication {
    return this.machine(place).replication()!;
  }

  async #fork(at: Place): Promise<void> {
    const isNone = this.#rival !== undefined || at === this.#primary;
    if (isNone || PLACES.some((each) => this.#standing(each).isDiverged)) return;
    const epoch = this.#nextEpoch();
    const said = await this.#write(at, { type: 'epoch.start', epoch, ...FORCED }, same);
    if (said === 'applied') this.#rival = at;
  }

  #nextEpoch(): number {
    return 1 + Math.max(...PLACES.map((each) => this.#standing(each).maxEpochPromised));
  }

  /** One of both gives way, and has what it wrote set apart. */
  async #settle(at: Place): Promise<void> {
    if (this.#rival === undefined) return;
    const both = [this.#primary, this.#rival] as const;
    const [winner, loser] = at === this.#rival ? [both[1], both[0]] : both;
    const epoch = this.#nextEpoch();
    await this.#write(winner, { type: 'epoch.start', epoch, ...FORCED }, same);
    await this.say(loser, { type: 'epoch.fence', epochs: this.#standing(winner).epochs });
    this.#rival = undefined;
    this.#primary = winner;
  }

  /** Nothing of what was set apart is wanted. */
  async #discard(): Promise<void> {
    for (const place of PLACES) {
      for (const { epoch, last } of this.#standing(place).divergent) {
        await this.say(place, { type: 'divergent.discard', epoch, upTo: last });
      }
    }
  }

  async #archive(at: Place): Promise<void> {
    if (!this.#writesShared(at)) return;
    const bytes = await archived(this.#dcs[at] as Server);
    const { epoch } = this.machine(at).cursor()!;
    const shared = this.#shared.at(this.machine(at));
    this.#archived = { at, bytes, epoch, lives: this.#lives.asOf(at), shared };
  }

  /** Where it is of, if that one writes what all share. */
  async #restore(): Promise<void> {
    if (this.#archived === undefined) return;
    const { at, bytes, epoch, lives, shared } = this.#archived;
    // What is of a later epoch is restored as of this one: see archives.ts.
    if (!this.#writesShared(at) || epoch > this.machine(at).cursor()!.epoch) return;
    for (const { change } of await commandsOf(bytes, this.machine(at).usesLevel)) {
      if (!change.type.startsWith('restore.')) continue;
      const said = await this.#write(at, change, () => shared);
      if (said !== 'applied') throw new Error(`${change.type}: refused`);
    }
    this.#lives.restore(at, lives);
    this.#hasRestored = true;
  }

  #restart(place: Place): void {
    // What the one before still sweeps away is in a store of its own.
    this.#dcs[place] = new MachineHarness(this.#dcs[place]!.kv.copy());
    this.#dcs[place]!.clock.advance(this.#nowMs - this.#dcs[place]!.clock.wallMs());
    this.#watch(place);
  }
}
