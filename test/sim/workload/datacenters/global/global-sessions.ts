// What clients of several datacenters ask for, try after try, and what they are told: the history that is judged.

import type { FederationChecks } from '../../../checks/federation/federation-checks.ts';
import type { Violations } from '../../../checks/violations.ts';
import { MANAGEMENT_SECRET } from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import type { World } from '../../../world/world.ts';
import {
  type ChangedTarget,
  headersOf,
  type Known,
  knownFrom,
  type LocalRightTarget,
  type LoginTarget,
  type RightTarget,
  readQuestion,
  type Target,
  type TenantTarget,
  writeQuestion,
} from '../../acl-requests.ts';
import type { Came } from '../../came.ts';
import type { ObjectInput, ObjectOutput } from '../../object-model.ts';
import type { Asking } from '../asking.ts';
import type { ChangedTokens } from '../local/changed-tokens.ts';
import type { Tenants } from '../local/tenants.ts';
import type { Logins } from '../logins.ts';
import type { Losses } from '../losses.ts';
import type { Deputy } from './deputies.ts';
import {
  type Asked,
  ackIn,
  type GlobalConsistency,
  type GlobalHistory,
  type GlobalListing,
  type GlobalRead,
  type GlobalWrite,
  isBefore,
  type Place,
  placeIn,
  type ReadTarget,
} from './global-history.ts';
import {
  changedIn,
  decisionIn,
  isOfOneSite,
  isWritten,
  mayWriteQuestion,
  outputFor,
  pathAt,
  type Question,
  type Role,
  withAck,
} from './global-requests.ts';
import { ALLOWED } from './global-rights.ts';

export interface GlobalSessionsOptions {
  readonly world: World;
  readonly checks: FederationChecks;
  readonly violations: Violations;
  readonly asking: Asking;
  readonly logins: Logins;
  readonly tenants: Tenants;
  readonly changed: ChangedTokens;
  readonly losses: Losses;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  ended: 'a token of a login had ended',
  expired: 'a token of a login had expired',
  acted: 'a deputy wrote',
  denied: 'a deputy was denied',
  tenant: 'a token in a namespace had ended',
  withheld: 'a deputy lost its right and was told that it had written',
  allowed: 'a token was allowed by its policy',
  allowedByRole: 'a token was allowed by its role',
  allowedAtHome: 'a linked token of one datacenter was allowed',
  deniedAtHome: 'a linked token of one datacenter was denied',
  condition: 'a write on a condition took effect',
  mismatch: 'a write on a condition was refused',
  homeless: 'a local token that was changed had ended with its namespace',
  overdue: 'a local token that was changed had expired',
} as const;

const ATTEMPTS_MAX = 3;
/** Of a write whose acknowledgement did not come in time: it is done. */
const STANDS = /^The write stands at position (\d+)\.(\d+),/;

export interface Client {
  readonly number: number;
  readonly stream: Stream;
  readonly known: Map<string, Known>;
  readonly home: number;
  /** The furthest place that it was told of: no answer to it may be from before. */
  furthest: Place | undefined;
}

export class GlobalSessions implements GlobalHistory {
  readonly writes: GlobalWrite[] = [];
  readonly reads: GlobalRead[] = [];
  readonly listings: GlobalListing[] = [];
  readonly counts = { acknowledged: 0, refused: 0, nothing: 0, unknown: 0, reads: 0, unread: 0 };
  readonly #options: GlobalSessionsOptions;
  readonly #world: World;
  readonly #asking: Asking;
  readonly #logins: Logins;
  readonly #tenants: Tenants;
  #valueCount = 0;

  constructor(options: GlobalSessionsOptions) {
    this.#options = options;
    this.#world = options.world;
    this.#asking = options.asking;
    this.#logins = options.logins;
    this.#tenants = options.tenants;
  }

  /** What the datacenter at this place has alone, nobody knows any more. */
  lose(site: number): void {
    this.#logins.lose(site);
    this.#tenants.lose(site);
  }

  /** `first` is asked, and after it any of `hosts`. True when it was answered. */
  async write(
    client: Client,
    target: Target,
    kind: 'create' | 'update' | 'delete',
    first: SimHost,
    hosts: readonly SimHost[],
    deputy?: Deputy,
  ): Promise<boolean> {
    const { world } = this.#options;
    this.#valueCount += 1;
    const value = `v${this.#valueCount}`;
    const known = client.known.get(target.key);
    const cas = known !== undefined && client.stream.chance(0.4) ? known.index : undefined;
    const { key } = target;
    const input: ObjectInput = kind === 'create' ? { kind, key, value } : { kind, key, value, cas };
    const question = writeQuestion(target, input, known);
    // Of what there was before the log no entry tells.
    if (question === undefined || !this.#options.checks.hasBegun) return false;
    const write: GlobalWrite = {
      requestId: `c${client.number}-${value}`,
      ...(deputy !== undefined && { owner: `token ${deputy.accessorId}` }),
      input,
      callMs: world.time.nowMs,
      returnMs: Number.POSITIVE_INFINITY,
      output: 'unknown',
      stands: undefined,
      visibleAt: undefined,
    };
    const secret = deputy?.secret ?? MANAGEMENT_SECRET;
    const role = deputy === undefined ? 'manager' : 'deputy';
    return this.#carry(client, { write, target, question, secret, role }, first, hosts);
  }

  /** True when it is known to be in the global log. */
  async giveBack(client: Client, target: LoginTarget, host: SimHost): Promise<boolean> {
    const { world, checks } = this.#options;
    if (!checks.hasBegun) return false;
    this.#valueCount += 1;
    const write: GlobalWrite = {
      requestId: `c${client.number}-logout-${this.#valueCount}`,
      owner: `secret ${target.secret}`,
      input: { kind: 'delete', key: target.key, cas: undefined },
      callMs: world.time.nowMs,
      returnMs: Number.POSITIVE_INFINITY,
      output: 'unknown',
      stands: undefined,
      visibleAt: undefined,
    };
    const question = { method: 'POST', path: '/v1/acl/logout' } as const;
    const wish = { write, target, question, secret: target.secret, role: 'self' } as const;
    await this.#carry(client, wish, host, world.hosts);
    return write.stands !== undefined;
  }

  /** Asks for a write until it is decided, or nobody is left to ask. True when it was answered. */
  async #carry(
    client: Client,
    wish: {
      readonly write: GlobalWrite;
      readonly target: Target | LoginTarget;
      readonly question: Question;
      readonly secret: string;
      readonly role: Role;
    },
    first: SimHost,
    hosts: readonly SimHost[],
  ): Promise<boolean> {
    const { world } = this.#options;
    const { write, target, question, secret, role } = wish;
    this.writes.push(write);
    const headers = headersOf(secret, write.requestId);
    let mayBeDone = false;
    let host = first;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const asked = this.#asking.askedOf(host);
      const came = await this.#asking.ask(host, { ...withAck(question, client.stream), headers });
      const output = outputFor(role, write.input, came);
      if (output === 'impossible') {
        this.#asking.complain(question.path, host, came);
        return false;
      }
      this.#noteStands(client, write, { came, asked, output });
      if (output === 'withheld') return this.#settleWithheld(write);
      if (output === 'unknown') mayBeDone = true;
      else if (output !== 'unavailable') {
        if (role === 'deputy')
          this.#world.trace.mark(output.kind === 'refused' ? MARKS.denied : MARKS.acted);
        return this.#settle(client, write, { target, output, came, mayBeDone });
      }
      host = client.stream.pick(hosts);
    }
    this.counts[mayBeDone ? 'unknown' : 'nothing'] += 1;
    if (mayBeDone) return false;
    write.output = 'nothing';
    write.returnMs = world.time.nowMs;
    return false;
  }

  #settleWithheld(write: GlobalWrite): true {
    this.#world.trace.mark(MARKS.withheld);
    this.counts.acknowledged += 1;
    write.output = 'withheld';
    write.returnMs = this.#options.world.time.nowMs;
    return true;
  }

  /** What the answer promises of the place that the write has in the log. */
  #noteStands(
    client: Client,
    write: GlobalWrite,
    {
      came,
      asked,
      output,
    }: {
      readonly came: Came;
      readonly asked: Asked;
      readonly output: ReturnType<typeof outputFor>;
    },
  ): void {
    if (typeof came === 'string') return;
    if (typeof output !== 'string' && (output.kind === 'written' || output.kind === 'deleted')) {
      const at = placeIn(came);
      if (at === undefined) return;
      write.stands = { at, ack: ackIn(came) };
      noteFurthest(client, at);
      if (came.headers['x-service-visible'] !== 'false') write.visibleAt = asked;
    } else if (came.status === 504) {
      const [, epoch, seq] = STANDS.exec(came.text) ?? [];
      if (epoch === undefined) return;
      write.stands = { at: { epoch: Number(epoch), seq: Number(seq) }, ack: 'primary' };
    }
  }

  /**
   * A refusal of a repeat may come from what the first attempt did: then all that is known is that it
   * was decided.
   */
  #settle(
    client: Client,
    write: GlobalWrite,
    {
      target,
      output,
      came,
      mayBeDone,
    }: {
      readonly target: Target | LoginTarget;
      readonly output: ObjectOutput;
      readonly came: Came;
      readonly mayBeDone: boolean;
    },
  ): boolean {
    const isDone = output.kind === 'written' || output.kind === 'deleted';
    if (
      'cas' in write.input &&
      write.input.cas !== undefined &&
      (isDone || output.kind === 'mismatch')
    )
      this.#world.trace.mark(isDone ? MARKS.condition : MARKS.mismatch);
    this.counts[isDone ? 'acknowledged' : 'refused'] += 1;
    this.#learn(client, target, came);
    if (!isDone && mayBeDone) return true;
    write.output = output;
    write.returnMs = this.#options.world.time.nowMs;
    return true;
  }

  #learn(client: Client, target: Target | LoginTarget, came: Came): void {
    if (typeof came === 'string') return;
    const known = knownFrom(came);
    if (known !== undefined) client.known.set(target.key, known);
  }

  read(
    client: Client,
    target: Target,
    consistency: GlobalConsistency,
    host: SimHost,
  ): Promise<boolean> {
    const question = readQuestion(target, 'default');
    return this.#observe(client, host, {
      target,
      question,
      consistency,
      secret: MANAGEMENT_SECRET,
    });
  }

  /** Reads the token by its own secret: one that is deleted must be refused. */
  async present(
    client: Client,
    target: Target,
    consistency: GlobalConsistency,
    host: SimHost,
  ): Promise<void> {
    if (target.kind !== 'token') return;
    await this.showSelf(client, host, { target, consistency, secret: target.secret });
  }

  /** True when it was answered. */
  showSelf(
    client: Client,
    host: SimHost,
    wish: {
      readonly target: Target | LoginTarget | TenantTarget | ChangedTarget;
      readonly consistency: GlobalConsistency;
      readonly secret: string;
    },
  ): Promise<boolean> {
    const question = { method: 'GET' as const, path: '/v1/acl/token/self' };
    return this.#observe(client, host, { ...wish, question });
  }

  /** Asks what a token may do, by its own secret. */
  async askRight(
    client: Client,
    host: SimHost,
    wish: { readonly target: RightTarget; readonly consistency: GlobalConsistency },
  ): Promise<void> {
    const { secret } = wish.target.token;
    await this.#observe(client, host, { ...wish, question: mayWriteQuestion('key'), secret });
  }

  /** The same of one that others' objects give its right. True when it was answered. */
  askLocalRight(
    client: Client,
    host: SimHost,
    wish: { readonly target: LocalRightTarget; readonly consistency: GlobalConsistency },
  ): Promise<boolean> {
    const { about, secret } = wish.target;
    return this.#observe(client, host, { ...wish, question: mayWriteQuestion(about), secret });
  }

  async #observe(
    client: Client,
    host: SimHost,
    wish: {
      readonly target: ReadTarget;
      readonly question: Question;
      readonly consistency: GlobalConsistency;
      readonly secret: string;
    },
  ): Promise<boolean> {
    const { world } = this.#options;
    const { target, question, secret } = wish;
    // Who was told of no place yet waits for none.
    const consistency =
      wish.consistency === 'position' && client.furthest === undefined
        ? 'default'
        : wish.consistency;
    const from = consistency === 'position' ? client.furthest : undefined;
    const callMs = world.time.nowMs;
    const asked = this.#asking.askedOf(host);
    const isCertain = this.#options.losses.watch(asked.site);
    const beforeMs = wallOf(host);
    const path = pathAt(question.path, consistency, from);
    const came = await this.#asking.ask(host, {
      ...question,
      path,
      headers: headersOf(secret, undefined),
    });
    const isPresented = secret !== MANAGEMENT_SECRET;
    const input = { kind: 'read', key: target.key } as const;
    const isRight = target.kind === 'right' || target.kind === 'local-right';
    const output = isRight
      ? decisionIn(input, came)
      : outputFor(isPresented ? 'self' : 'manager', input, came);
    if (output === 'impossible') this.#asking.complain(path, host, came);
    if (isOfOneSite(target) && !isCertain()) return false;
    if (typeof output === 'string' || typeof came === 'string') {
      this.counts.unread += 1;
      return false;
    }
    this.counts.reads += 1;
    if (!isPresented && isWritten(target)) this.#learn(client, target, came);
    if (isRight && output.kind === 'found')
      this.#markRight(target, { isAllowed: output.value === ALLOWED.value });
    if (target.kind === 'tenant' && output.kind === 'missing') {
      if (this.#tenants.isEnding(target)) return true;
      this.#world.trace.mark(MARKS.tenant);
    }
    this.#noteSession(client, path, host, { came, from });
    const isFound = output.kind === 'found';
    const askedAtMs = consistency === 'default' ? callMs : undefined;
    const shown = { host, isFound, askedAtMs, beforeMs, afterMs: wallOf(host) };
    const changed = changedIn(target);
    if (changed !== undefined) {
      const isExpired = this.#options.changed.hasExpired(changed, shown);
      if (!isFound && changed.version !== null)
        this.#world.trace.mark(isExpired ? MARKS.overdue : MARKS.homeless);
      if (isExpired) return true;
    }
    if (target.kind === 'login') {
      const hasExpired = this.#logins.hasExpired(target, shown);
      if (!isFound) this.#world.trace.mark(hasExpired ? MARKS.expired : MARKS.ended);
      if (this.#logins.wasGivenBack(target, shown) || hasExpired) return true;
    }
    const returnMs = world.time.nowMs;
    const kind = isRight ? 'authorized' : isPresented ? 'presented' : 'object';
    const at = placeIn(came);
    this.reads.push({ kind, target, consistency, from, asked, at, callMs, returnMs, output });
    return true;
  }

  #markRight(
    target: RightTarget | LocalRightTarget,
    { isAllowed }: { readonly isAllowed: boolean },
  ): void {
    const { trace } = this.#world;
    if (target.kind === 'local-right')
      trace.mark(isAllowed ? MARKS.allowedAtHome : MARKS.deniedAtHome);
    else if (isAllowed)
      trace.mark(target.token.role === undefined ? MARKS.allowed : MARKS.allowedByRole);
  }

  /** Positions that one session is told never go back, where it says which it has seen (G10). */
  #noteSession(
    client: Client,
    path: string,
    host: SimHost,
    { came, from }: { readonly came: Came; readonly from: Place | undefined },
  ): void {
    const at = typeof came === 'string' ? undefined : placeIn(came);
    if (at === undefined) return;
    const goesBack = from !== undefined && isBefore(at, from);
    this.#options.violations.require(!goesBack, 'G10 monotonic', () => {
      return `${path} at ${host.name} was answered at ${at.epoch}.${at.seq}`;
    });
    noteFurthest(client, at);
  }

  async list(client: Client, host: SimHost): Promise<void> {
    const asked = this.#asking.askedOf(host);
    const headers = headersOf(MANAGEMENT_SECRET, undefined);
    const question = { method: 'GET' as const, path: '/v1/acl/policies?stale', headers };
    const came = await this.#asking.ask(host, question);
    if (typeof came === 'string' || came.status !== 200) return;
    this.#noteSession(client, question.path, host, { came, from: undefined });
    const policies = JSON.parse(came.text) as readonly {
      readonly Name: string;
      readonly ModifyIndex: number;
    }[];
    const found = policies.map(({ Name, ModifyIndex }) => `${Name} ${ModifyIndex}`).sort();
    this.listings.push({ asked, returnMs: this.#options.world.time.nowMs, found });
  }
}

/** What its wall clock shows, while it is up. */
function wallOf({ process }: SimHost): number | undefined {
  return process?.clock.wallMs();
}

function noteFurthest(client: Client, at: Place): void {
  if (client.furthest === undefined || isBefore(client.furthest, at)) client.furthest = at;
}
