// Two datacenters whose state machines get random commands: what all share goes from the primary to the other one
// entry by entry or as a snapshot, now and then both are primary for a while, and one gives way.

import type { PolicyId } from '../../src/acl/ids.ts';
import type { Instant } from '../../src/acl/instant.ts';
import type { Token } from '../../src/acl/token.ts';
import type { CallerResolver } from '../../src/service/rights/caller-resolver.ts';
import type { Change, Command } from '../../src/state/commands/commands.ts';
import { NEWEST_LEVEL } from '../../src/state/commands/feature-levels.ts';
import type { Outcome } from '../../src/state/commands/outcome.ts';
import { cursorAfter, decodeEntry, entryHash } from '../../src/state/global-log/global-entry.ts';
import type { GlobalSnapshot } from '../../src/state/global-log/global-snapshot.ts';
import type { Replication } from '../../src/state/global-log/replication.ts';
import {
  aCommand,
  accessorNumbered,
  aNamespace,
  aNamespaceName,
  anAuthMethod,
  aPolicy,
  aToken,
  policyIdNumbered,
  secretNumbered,
} from '../support/fixtures.ts';
import { BUILTINS, MachineHarness } from '../support/machine-harness.ts';
import { MemoryKv } from '../support/memory-kv.ts';
import { NUMBERS, type Step, type TokenStep } from './history-steps.ts';
import {
  type Life,
  type Place,
  resolverOf,
  type Seen,
  SPACE_OF,
  TokenLives,
} from './token-lives.ts';

interface Import {
  readonly snapshot: GlobalSnapshot;
  readonly to: Place;
  number: number;
  after: Uint8Array | undefined;
  isLast: boolean;
}

const PASSING = 99;
const PLACES = [0, 1] as const;
const FORCED = { promises: [], isForced: true, isFromFork: false } as const;
const TTL_MS = 60_000;

export class HistoryWorld {
  readonly #dcs = [new MachineHarness(new MemoryKv()), new MachineHarness(new MemoryKv())];
  readonly #resolvers: CallerResolver[] = [];
  readonly #reached: Map<string, number>;
  readonly #lives = new TokenLives((what) => this.#note(what));
  #marks = 0;
  #batch = 0;
  #nowMs = this.#dcs[0]!.clock.wallMs();
  #import: Import | undefined;
  /** Whoever writes what all share and is right; on a fork the other one does, too. */
  #primary: Place = 0;
  #isForked = false;

  constructor(reached: Map<string, number>) {
    this.#reached = reached;
  }

  /** `ahead`: how many local writes the one that follows has more, whose indexes are higher by that. */
  async open({ level = NEWEST_LEVEL, ahead = 0 } = {}): Promise<void> {
    for (const place of PLACES) {
      this.#watch(place);
      const begin = { datacenter: `dc${place + 1}`, primary: 'dc1', isWitness: false };
      await this.say(place, { type: 'global-log.begin', ...begin });
      await this.say(place, { type: 'level.raise', level });
    }
    await this.say(0, BUILTINS);
    await this.take({ kind: 'space', space: 'team' });
    for (const name of ['login', 'own'] as const) await this.take({ kind: 'method', name });
    for (const number of [1, 2, 3]) await this.take({ kind: 'policy', number });
    await this.take({ kind: 'space', space: 'other' });
    await this.take({ kind: 'follow', entries: 99, with: [] });
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
    switch (step.kind) {
      case 'token':
      case 'links':
      case 'no token':
        await this.#run(step.at, [step]);
        break;
      case 'follow':
        await this.#follow(step.entries, step.with);
        break;
      case 'begin':
        await this.#begin();
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
        await this.#shared(step);
        if (step.isMadeAnew) await this.#shared({ kind: 'space', space: step.space });
        break;
      case 'passing':
        await this.#passing(step.space);
        break;
      case 'wait':
        this.#nowMs += TTL_MS * 0.6;
        for (const { clock } of this.#dcs) clock.advance(TTL_MS * 0.6);
        break;
      case 'discard':
        await this.#discard();
        break;
      case 'fork':
        await this.#fork();
        break;
      case 'settle':
        await this.#settle(step.at);
        break;
      default:
        await this.#shared(step);
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
    harness.machine.watch.onApplied((event) => resolver.onApplied(event));
  }

  #seen(place: Place): Seen {
    const kept = this.#resolvers[place]!;
    return { place, harness: this.#dcs[place]!, kept, nowMs: this.#nowMs };
  }

  /** Whether what all share is written there. */
  #writesShared(place: Place): boolean {
    return place === this.#primary || this.#isForked;
  }

  /** What all share, in whichever may, each time with a mark of its own. */
  async #shared(step: Step): Promise<void> {
    for (const place of PLACES) {
      if (this.#writesShared(place)) await this.say(place, this.#sharedChange(place, step));
    }
  }

  /** A token of all is made in the namespace and deleted. */
  async #passing(space: string): Promise<void> {
    const number = PASSING;
    const given = { kind: 'token', number, space, secret: undefined, method: undefined } as const;
    const rest = { links: [], isLocal: false, doesExpire: false } as const;
    for (const at of PLACES) {
      if (!this.#writesShared(at)) continue;
      await this.#run(at, [{ ...given, ...rest, at }]);
      await this.#run(at, [{ kind: 'no token', at, number }]);
    }
  }

  /** What is in the namespace goes first, as far as whoever writes what all share knows of it. */
  async #emptied(space: string): Promise<void> {
    if (space === SPACE_OF.own) await this.#shared({ kind: 'no method', name: 'own' });
    for (const at of PLACES) {
      if (!this.#writesShared(at)) continue;
      const inIt = NUMBERS.filter(
        (number) => this.machine(at).token(accessorNumbered(number))?.namespace === space,
      );
      await this.#run(
        at,
        inIt.map((number) => ({ kind: 'no token', at, number })),
      );
    }
  }

  #sharedChange(place: Place, step: Step): Change {
    const description = this.#mark();
    switch (step.kind) {
      case 'space':
        return {
          type: 'namespace.set',
          presence: 'create',
          namespace: aNamespace(step.space, { description }),
        };
      case 'no space':
        return { type: 'namespace.delete', name: aNamespaceName(step.space) };
      case 'method': {
        const namespace = aNamespaceName(SPACE_OF[step.name]);
        // One that is changed stays the one that it is.
        const found = this.machine(place).authMethod(namespace, step.name);
        const displayName = found?.displayName ?? description;
        const method = anAuthMethod(step.name, { namespace, description, displayName });
        return { type: 'auth-method.set', presence: 'either', method };
      }
      case 'no method':
        return {
          type: 'auth-method.delete',
          namespace: aNamespaceName(SPACE_OF[step.name]),
          name: step.name,
        };
      case 'policy': {
        const rules = `key "${step.number}" { policy = "write" }`;
        return { type: 'policy.set', presence: 'create', policy: aPolicy(step.number, { rules }) };
      }
      case 'no policy':
        return { type: 'policy.delete', id: policyIdNumbered(step.number) };
      default:
        throw new Error(`${step.kind} is not shared`);
    }
  }

  /** Steps at one place as one batch, and other commands behind them. */
  async #run(place: Place, steps: readonly Step[], behind: readonly Change[] = []): Promise<void> {
    this.#batch += 1;
    const ready = steps.map((step) => this.#tokenChange(place, step));
    const changes = [...ready.map(({ change }) => change), ...behind];
    const commands: readonly Command[] = changes.map((change) =>
      aCommand(change, { timeMs: this.#nowMs }),
    );
    const outcomes = await this.#dcs[place]!.run(...commands);
    for (const [number, outcome] of outcomes.entries()) {
      const said = this.#count(changes[number]!, outcome);
      if (said === 'applied') ready[number]?.done(outcome);
    }
  }

  #tokenChange(place: Place, step: Step): { change: Change; done: (outcome: Outcome) => void } {
    switch (step.kind) {
      case 'token':
        return this.#made(place, step);
      case 'links':
        return this.#linked(place, step.number, step.links.map(policyIdNumbered));
      case 'no token': {
        const accessorId = accessorNumbered(step.number);
        const mark = this.machine(place).token(accessorId)?.description ?? '';
        const which = { mark, batch: this.#batch };
        const done = (outcome: Outcome): void => {
          const answer = outcome.kind === 'applied' ? outcome.answer : undefined;
          if (answer?.type !== 'deleted' || !answer.existed) return;
          this.#lives.end(place, step.number, which);
        };
        return { change: { type: 'token.delete', accessorId }, done };
      }
      default:
        throw new Error(`${step.kind} is not of tokens`);
    }
  }

  #made(place: Place, step: TokenStep): { change: Change; done: (outcome: Outcome) => void } {
    const space = aNamespaceName(step.space);
    const from = step.method && aNamespaceName(SPACE_OF[step.method]);
    const method = from && this.machine(place).authMethod(from, step.method!);
    const isLocal = step.isLocal || !this.#writesShared(place);
    const expiresMs = step.doesExpire ? this.#nowMs + TTL_MS : undefined;
    const secret = step.secret ?? step.number;
    const policies = step.links.map(policyIdNumbered);
    const mark = this.#mark();
    const token = aToken(step.number, {
      secretId: secretNumbered(secret),
      namespace: space,
      description: mark,
      policies,
      local: isLocal,
      authMethod: method && {
        name: method.name,
        namespace: method.namespace,
        createIndex: method.createIndex,
      },
      expirationTime:
        expiresMs === undefined ? undefined : (new Date(expiresMs).toISOString() as Instant),
    });
    const spaceMark = this.machine(place).namespace(space)?.description ?? 'none';
    const life: Life = {
      mark,
      batch: this.#batch,
      number: step.number,
      secret,
      space: step.space,
      spaceMark,
      method: method && step.method,
      methodMark: method?.displayName,
      isLocal,
      at: place,
      links: policies,
      expiresMs,
      over: [undefined, undefined],
    };
    const done = (): void => {
      this.#lives.add(life);
    };
    return { change: { type: 'token.set', presence: 'create', token }, done };
  }

  #linked(
    place: Place,
    number: number,
    policies: readonly PolicyId[],
  ): { change: Change; done: (outcome: Outcome) => void } {
    const found = this.machine(place).token(accessorNumbered(number));
    const base: Token | ReturnType<typeof aToken> = found ?? aToken(number);
    const token = { ...base, policies };
    const done = (outcome: Outcome): void => {
      const answer = outcome.kind === 'applied' ? outcome.answer : undefined;
      const mark = answer?.type === 'token' ? answer.token.description : '';
      this.#lives.link(mark, policies);
    };
    return { change: { type: 'token.set', presence: 'update', token }, done };
  }

  async #reap(place: Place): Promise<void> {
    const accessorIds = NUMBERS.map(accessorNumbered);
    const before = this.#lives.storedIn(this.#seen(place));
    await this.say(place, { type: 'token.reap', accessorIds });
    const after = this.#lives.storedIn(this.#seen(place));
    for (const life of before) {
      if (after.includes(life)) continue;
      this.#note('reaped');
      if (life.over[place] === undefined) throw new Error(`${life.mark} was reaped, and stands`);
    }
  }

  get #follower(): Place {
    return this.#primary === 0 ? 1 : 0;
  }

  async #follow(count: number, steps: readonly Step[]): Promise<void> {
    const place = this.#follower;
    const from = this.machine(place).cursor()!;
    const all = (await this.machine(this.#primary).globalEntries(from.seq, 1 << 24)) ?? [];
    const entries = all.slice(0, count);
    const last = entries.at(-1);
    const to = last === undefined ? from : cursorAfter(decodeEntry(last), entryHash(last));
    const { epoch } = this.machine(this.#primary).cursor()!;
    await this.#run(place, steps, [{ type: 'global-log.apply', epoch, from, entries, to }]);
  }

  async #begin(): Promise<void> {
    await this.close();
    this.#import = undefined;
    const to = this.#follower;
    const snapshot = (await this.machine(this.#primary).globalSnapshot())!;
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
    const wasDiverged = this.#standing(to).isDiverged;
    const said = await this.say(to, { type: 'global-snapshot.commit', id: 'one' });
    await this.close();
    this.#import = undefined;
    if (said !== 'applied' || !wasDiverged) return;
    this.#lives.leftFork(this.#seen(to));
  }

  #standing(place: Place): Replication {
    return this.machine(place).replication()!;
  }

  async #fork(): Promise<void> {
    if (this.#isForked || PLACES.some((each) => this.#standing(each).isDiverged)) return;
    const place = this.#follower;
    const epoch = this.#standing(place).maxEpochPromised + 1;
    this.#isForked =
      (await this.say(place, { type: 'epoch.start', epoch, ...FORCED })) === 'applied';
  }

  /** One of both gives way, and has what it wrote set apart. */
  async #settle(winner: Place): Promise<void> {
    if (!this.#isForked) return;
    const loser = winner === 0 ? 1 : 0;
    const promised = PLACES.map((each) => this.#standing(each).maxEpochPromised);
    const epoch = Math.max(...promised) + 1;
    await this.say(winner, { type: 'epoch.start', epoch, ...FORCED });
    await this.say(loser, { type: 'epoch.fence', epochs: this.#standing(winner).epochs });
    this.#isForked = false;
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

  #restart(place: Place): void {
    const rows = this.#dcs[place]!.kv.dump().map((row) => {
      const [key = '', value = ''] = row.split(' ');
      return [Buffer.from(key, 'hex').toString('latin1'), Buffer.from(value, 'hex')] as const;
    });
    // What the one before still sweeps away is in a store of its own.
    this.#dcs[place] = new MachineHarness(new MemoryKv(rows));
    this.#dcs[place]!.clock.advance(this.#nowMs - this.#dcs[place]!.clock.wallMs());
    this.#watch(place);
  }
}
