// Clients of several datacenters: they make, read, replace and delete what all share at any server of any
// datacenter, and local tokens at those of their own. A write is sent again under its request id, often in
// another datacenter, when nobody knows what became of it.

import { idBytes } from '../../../../src/state/rows/objects.ts';
import { rowKey } from '../../../../src/state/rows/tables.ts';
import { replayLog } from '../../checks/shadow.ts';
import type { FederationChecks } from '../../checks/federation/federation-checks.ts';
import type { Violations } from '../../checks/violations.ts';
import type { SimGroup } from '../../run/sim-group.ts';
import type { Site } from '../../run/site.ts';
import {
  type HttpQuestion,
  type LiveServer,
  MANAGEMENT_SECRET,
} from '../../subject/node-subject.ts';
import { siteName } from '../../subject/datacenters-subject.ts';
import type { SimHost } from '../../world/sim-host.ts';
import type { Stream } from '../../world/stream.ts';
import type { World } from '../../world/world.ts';
import {
  authMethodTarget,
  headersOf,
  type Known,
  knownFrom,
  type LoginTarget,
  policyTarget,
  readQuestion,
  type Target,
  type TenantTarget,
  tokenTarget,
  writeQuestion,
} from '../acl-requests.ts';
import { type Came, cameFrom } from '../came.ts';
import { drawWeighted } from '../draw-weighted.ts';
import type { ObjectInput, ObjectOutput } from '../object-model.ts';
import type { Workload } from '../workload.ts';
import {
  DEPUTIES,
  DEPUTY_TARGETS,
  type Deputy,
  hasRight,
  judgeDeputies,
  localTokenOf,
  rootsOf,
} from './deputies.ts';
import {
  ackIn,
  type Asked,
  type GlobalConsistency,
  type GlobalListing,
  type GlobalRead,
  type GlobalWrite,
  isBefore,
  type Place,
  placeIn,
} from './global-history.ts';
import { GlobalJudge } from './global-judge.ts';
import { outputFor, queryOf, type Question, type Role, withAck } from './global-requests.ts';
import { type ArchivedTokens, LocalTokens } from './local-tokens.ts';
import { LOGIN_METHODS, Logins } from './logins.ts';
import { HOMES, Tenants } from './tenants.ts';

export type DatacentersOperation =
  | 'create'
  | 'update'
  | 'delete'
  | 'read'
  | 'present'
  | 'list'
  | 'local'
  | 'login'
  | 'logout'
  | 'deputy'
  | 'tenant';

export interface DatacentersWorkloadOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly Site[];
  readonly checks: FederationChecks;
  readonly violations: Violations;
  readonly clientCount: number;
  /** Policies, and as many tokens. */
  readonly keyCount: number;
  readonly thinkMs: number;
  readonly timeoutMs: number;
  /** So long the tokens of logins live; undefined: until somebody ends them. */
  readonly loginTtlMs: number | undefined;
  /** The datacenter that answers nobody, by its number; undefined: all answer. */
  readonly witnessSite: number | undefined;
  readonly weights: Readonly<Record<DatacentersOperation, number>>;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  login: 'a login made a token',
  ended: 'a token of a login had ended',
  expired: 'a token of a login had expired',
  givenBack: 'a token of a login was given back',
  acted: 'a deputy wrote',
  actedAtHome: 'a deputy made a local token',
  denied: 'a deputy was denied',
  tenant: 'a token in a namespace had ended',
  withheld: 'a deputy lost its right and was told that it had written',
} as const;

const ATTEMPTS_MAX = 3;
/** Of a deputy, in a row. */
const LOCALS_MAX = 12;
/** Of a local token, beside that it is made: no right, nobody to do it, not known. */
const LOCAL_SAID: readonly number[] = [403, 503, 504];
/** Of a write whose acknowledgement did not come in time: it is done. */
const STANDS = /^The write stands at position (\d+)\.(\d+),/;

interface Client {
  readonly number: number;
  readonly stream: Stream;
  readonly known: Map<string, Known>;
  readonly home: number;
  /** The furthest place that it was told of: no answer to it may be from before. */
  furthest: Place | undefined;
}

export class DatacentersWorkload implements Workload {
  readonly #options: DatacentersWorkloadOptions;
  readonly #targets: readonly Target[];
  readonly #writes: GlobalWrite[] = [];
  readonly #reads: GlobalRead[] = [];
  readonly #listings: GlobalListing[] = [];
  readonly #local: LocalTokens;
  readonly #logins: Logins;
  readonly #tenants: Tenants;
  #clientCount = 0;
  #valueCount = 0;
  #openCount = 0;
  #isStopped = false;
  readonly #counts = {
    ...{ acknowledged: 0, refused: 0, nothing: 0, unknown: 0, reads: 0, unread: 0 },
    deputyWrites: 0,
  };
  #localCount = 0;
  /** How often nobody knew any more what a datacenter has alone. */
  readonly #lossCounts = new Map<number, number>();

  constructor(options: DatacentersWorkloadOptions) {
    this.#options = options;
    const { sites, violations } = options;
    const numbers = Array.from({ length: options.keyCount }, (_, place) => place + 1);
    this.#targets = [
      ...numbers.flatMap((number) => [policyTarget(number), tokenTarget(number, `p${number}`)]),
      ...LOGIN_METHODS.map(({ name, locality }) => {
        return authMethodTarget(name, locality, options.loginTtlMs);
      }),
      ...(options.weights.deputy > 0 ? DEPUTY_TARGETS : []),
      ...(options.weights.tenant > 0 ? HOMES : []),
    ];
    const asked = {
      sites: sites.map(({ hosts }) => hosts),
      violations,
      nowMs: () => options.world.time.nowMs,
      ask: (host: SimHost, question: HttpQuestion) => this.#ask(host, question),
    };
    this.#local = new LocalTokens(asked);
    this.#logins = new Logins({
      ...asked,
      originOf: (hosts, accessorId) => options.checks.originOf(hosts, accessorId),
    });
    this.#tenants = new Tenants({
      ...asked,
      isLeft: (host, accessorId) => options.checks.has(host, rowKey('token', idBytes(accessorId))),
      hasNamespace: (host, name) => options.checks.has(host, rowKey('namespace', name)),
    });
  }

  get counts(): Readonly<Record<string, number>> {
    const { checks } = this.#options;
    return {
      ...this.#counts,
      ...this.#local.counts,
      ...this.#logins.counts,
      ...this.#tenants.counts,
      entries: checks.chain.size,
      comparedObjects: checks.comparedCount,
    };
  }

  get isIdle(): boolean {
    return this.#openCount === 0;
  }

  begin(): void {
    const { clientCount, sites } = this.#options;
    for (let place = 0; place < clientCount; place += 1) {
      this.#thenNext(this.#client(`client ${place}`, place % sites.length));
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** All disks of the datacenter at this place are lost, and what it alone had. */
  onEmptied(site: number): void {
    this.#local.lose(site);
    this.#loseOthers(site);
  }

  /** As `LocalTokens`. */
  archiving(site: number): () => ArchivedTokens {
    return this.#local.archiving(site);
  }

  /** An archive of the datacenter at this place is being restored. */
  beginRestore(site: number): void {
    this.#local.beginRestore(site);
    this.#loseOthers(site);
  }

  /** As `LocalTokens`. */
  endRestore(site: number, archived: ArchivedTokens | undefined): void {
    this.#local.endRestore(site, archived);
    this.#loseOthers(site);
  }

  #loseOthers(site: number): void {
    this.#lossCounts.set(site, (this.#lossCounts.get(site) ?? 0) + 1);
    this.#logins.lose(site);
    this.#tenants.lose(site);
  }

  async probe(all: readonly SimHost[], timeoutMs: number): Promise<readonly string[]> {
    const { world, witnessSite } = this.#options;
    const hosts = all.filter((host) => this.#siteOf(host) + 1 !== witnessSite);
    const endMs = world.time.nowMs + timeoutMs;
    const probes = hosts.map(async (host, place) => {
      const site = this.#siteOf(host);
      const client = this.#client(`probe ${place}`, site);
      const target = policyTarget(1000 + place);
      const wrote = await this.#until(endMs, () =>
        this.#write(client, target, 'create', host, hosts),
      );
      const read = await this.#until(endMs, () => this.#read(client, target, 'default', host));
      const shown = await this.#until(endMs, () => this.#local.presentAll(site, host));
      const isReaped = await this.#until(endMs, () => {
        return Promise.resolve(this.#logins.isReaped(host, hosts) && this.#tenants.isReaped(host));
      });
      return [
        ...(wrote ? [] : [`a write through ${host.name}`]),
        ...(read ? [] : [`a read at ${host.name}`]),
        ...(shown ? [] : [`local tokens at ${host.name}`]),
        ...(isReaped
          ? []
          : [
              `tokens that have expired, or lost their namespace, and are on the disk of ${host.name},`,
            ]),
      ];
    });
    return (await Promise.all(probes)).flat();
  }

  async judge(): Promise<void> {
    const { violations, checks, sites, world } = this.#options;
    const groups = sites.flatMap(({ allChecks }, place) =>
      allChecks.map((group) => ({ group, place })),
    );
    for (const { group, place } of groups) {
      const committed = group.committed.map(({ entry }) => entry);
      const replay = await replayLog(committed, hasRight);
      this.#tenants.settle(replay.commands);
      const site = siteName(place);
      this.#counts.deputyWrites += judgeDeputies(replay.commands, { violations, site });
      for (const [index, digest] of replay.digests) {
        const known = group.digestAt(index);
        violations.require(known === undefined || known === digest, 'states', () => {
          return `the log up to ${index} does not give the state that the nodes have`;
        });
      }
    }
    const history = { writes: this.#writes, reads: this.#reads, listings: this.#listings };
    new GlobalJudge({ violations, checks, hosts: world.hosts, history }).all();
  }

  #client(name: string, home: number): Client {
    const { world } = this.#options;
    this.#clientCount += 1;
    return {
      number: this.#clientCount,
      stream: world.stream.fork(name),
      known: new Map(),
      home,
      furthest: undefined,
    };
  }

  #thenNext(client: Client): void {
    const { world, thinkMs } = this.#options;
    world.time.after(client.stream.exponential(0, thinkMs), () => {
      if (this.#isStopped) return;
      this.#openCount += 1;
      void this.#next(client).then(() => {
        this.#openCount -= 1;
        this.#thenNext(client);
      });
    });
  }

  async #next(client: Client): Promise<void> {
    const { stream } = client;
    const { sites, weights, world } = this.#options;
    const kind = drawWeighted(stream, weights);
    const host = stream.pick(stream.chance(0.6) ? sites[client.home]!.hosts : world.hosts);
    const target = stream.pick(this.#targets);
    const token = stream.pick(this.#targets.filter((each) => each.kind === 'token'));
    const consistency = stream.pick(['default', 'stale', 'position'] as const);
    switch (kind) {
      case 'read':
        await this.#read(client, target, consistency, host);
        return;
      case 'present':
        await this.#present(client, token, consistency, host);
        return;
      case 'list':
        await this.#list(client, host);
        return;
      case 'local':
        await this.#local.next(client.home, stream);
        return;
      case 'login':
        await this.#login(client, consistency, host);
        return;
      case 'logout':
        await this.#logOut(client, host);
        return;
      case 'deputy':
        await this.#asDeputy(client, target, host);
        return;
      case 'tenant':
        await this.#asTenant(client, consistency, host);
        return;
      default: {
        const isAnswered = await this.#write(client, target, kind, host, world.hosts);
        // Who is told that a write can be read looks for it.
        if (isAnswered && stream.chance(0.3)) await this.#read(client, target, 'default', host);
      }
    }
  }

  /** Makes a token in a namespace, presents or deletes one, or deletes a namespace and presents one. */
  async #asTenant(client: Client, consistency: GlobalConsistency, host: SimHost): Promise<void> {
    const { stream } = client;
    const { hosts } = this.#options.world;
    const site = this.#siteOf(host);
    const home = stream.pick(HOMES);
    const target = this.#tenants.pick(site, stream);
    if (target === undefined || stream.chance(0.3)) {
      const isThere = await this.#tenants.make(site, host, home.name);
      if (!isThere) await this.#write(client, home, 'create', host, hosts);
      return;
    }
    if (stream.chance(0.2)) {
      await this.#tenants.end(target, host);
      return;
    }
    if (stream.chance(0.2)) await this.#write(client, home, 'delete', stream.pick(hosts), hosts);
    // What was made at another server of the datacenter may be new to this one.
    const seen = consistency === 'stale' ? 'default' : consistency;
    await this.#showSelf(client, host, { target, consistency: seen, secret: target.secret });
  }

  /** A deputy writes; often somebody takes its right away, or gives it, in the same moment. */
  async #asDeputy(client: Client, target: Target, host: SimHost): Promise<void> {
    const { stream } = client;
    const { hosts } = this.#options.world;
    const deputy = stream.pick(DEPUTIES);
    const roots = rootsOf(deputy);
    const right = stream.pick(roots);
    for (const root of roots) {
      if (stream.chance(0.4)) await this.#write(client, root, 'create', host, hosts);
    }
    // An update names a policy or role by its id, which is another one after each deletion.
    if (stream.chance(0.5)) await this.#read(client, right, 'default', host);
    // Nobody may delete the token that they present.
    const ends = target.key === deputy.key ? [] : (['delete'] as const);
    const kind = stream.pick(['create', 'update', ...ends] as const);
    const acts = this.#write(client, target, kind, host, hosts, deputy);
    const change = stream.pick(['update', 'update', 'update', 'delete'] as const);
    if (stream.chance(0.6)) {
      const changes = this.#write(client, right, change, stream.pick(hosts), hosts);
      await Promise.all([changes, this.#makeLocals(client, deputy)]);
    }
    await acts;
  }

  /** A deputy makes local tokens, one behind the other: one may stand right before or behind its right's end. */
  async #makeLocals(client: Client, deputy: Deputy): Promise<void> {
    const { stream, home } = client;
    const host = stream.pick(this.#options.sites[home]!.hosts);
    for (let left = stream.below(LOCALS_MAX); left > 0; left -= 1) {
      this.#localCount += 1;
      const body = localTokenOf(home, this.#localCount);
      const headers = headersOf(deputy.secret, undefined);
      const came = await this.#ask(host, { method: 'PUT', path: '/v1/acl/token', body, headers });
      if (typeof came === 'string') return;
      if (came.status === 200) this.#mark(MARKS.actedAtHome);
      else if (!LOCAL_SAID.includes(came.status)) this.#complain('/v1/acl/token', host, came);
    }
  }

  /** `first` is asked, and after it any of `hosts`. True when it was answered. */
  async #write(
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
    this.#writes.push(write);
    const headers = headersOf(secret, write.requestId);
    let mayBeDone = false;
    let host = first;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const asked = this.#asked(host);
      const came = await this.#ask(host, { ...withAck(question, client.stream), headers });
      const output = outputFor(role, write.input, came);
      if (output === 'impossible') {
        this.#complain(question.path, host, came);
        return false;
      }
      this.#noteStands(client, write, { came, asked, output });
      if (output === 'withheld') return this.#settleWithheld(write);
      if (output === 'unknown') mayBeDone = true;
      else if (output !== 'unavailable') {
        if (role === 'deputy') this.#mark(output.kind === 'refused' ? MARKS.denied : MARKS.acted);
        return this.#settle(client, write, { target, output, came, mayBeDone });
      }
      host = client.stream.pick(hosts);
    }
    this.#counts[mayBeDone ? 'unknown' : 'nothing'] += 1;
    if (mayBeDone) return false;
    write.output = 'nothing';
    write.returnMs = world.time.nowMs;
    return false;
  }

  #settleWithheld(write: GlobalWrite): true {
    this.#mark(MARKS.withheld);
    this.#counts.acknowledged += 1;
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
    this.#counts[isDone ? 'acknowledged' : 'refused'] += 1;
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

  #read(
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
  async #present(
    client: Client,
    target: Target,
    consistency: GlobalConsistency,
    host: SimHost,
  ): Promise<void> {
    if (target.kind !== 'token') return;
    await this.#showSelf(client, host, { target, consistency, secret: target.secret });
  }

  /** Logs in, or presents what a login made. */
  async #login(client: Client, consistency: GlobalConsistency, host: SimHost): Promise<void> {
    const { stream } = client;
    const site = this.#siteOf(host);
    const target = stream.chance(0.5) ? this.#logins.pick(site, stream) : undefined;
    if (target !== undefined) {
      // What was made at another server of the datacenter may be new to this one.
      const seen = target.isLocal && consistency === 'stale' ? 'default' : consistency;
      await this.#showSelf(client, host, { target, consistency: seen, secret: target.secret });
    } else if (await this.#logins.logIn(site, host, stream)) this.#mark(MARKS.login);
  }

  /** Gives back what a login made, and looks whether it still works. */
  async #logOut(client: Client, host: SimHost): Promise<void> {
    const target = this.#logins.pick(this.#siteOf(host), client.stream);
    if (target === undefined) return;
    const isGone = target.isLocal
      ? await this.#logins.giveBack(target, host)
      : await this.#giveBackGlobal(client, target, host);
    if (!isGone) return;
    this.#mark(MARKS.givenBack);
    const { secret } = target;
    await this.#showSelf(client, host, { target, consistency: 'default', secret });
  }

  /** True when it is known to be in the global log. */
  async #giveBackGlobal(client: Client, target: LoginTarget, host: SimHost): Promise<boolean> {
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

  async #showSelf(
    client: Client,
    host: SimHost,
    wish: {
      readonly target: Target | LoginTarget | TenantTarget;
      readonly consistency: GlobalConsistency;
      readonly secret: string;
    },
  ): Promise<void> {
    const question = { method: 'GET' as const, path: '/v1/acl/token/self' };
    await this.#observe(client, host, { ...wish, question });
  }

  async #observe(
    client: Client,
    host: SimHost,
    wish: {
      readonly target: Target | LoginTarget | TenantTarget;
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
    const asked = this.#asked(host);
    const lossCount = this.#lossCounts.get(asked.site);
    const beforeMs = wallOf(host);
    const path = question.path + queryOf(consistency, from);
    const came = await this.#ask(host, {
      ...question,
      path,
      headers: headersOf(secret, undefined),
    });
    const isPresented = secret !== MANAGEMENT_SECRET;
    const input = { kind: 'read', key: target.key } as const;
    const output = outputFor(isPresented ? 'self' : 'manager', input, came);
    if (output === 'impossible') this.#complain(path, host, came);
    const isHome = target.kind === 'tenant' || (target.kind === 'login' && target.isLocal);
    if (isHome && lossCount !== this.#lossCounts.get(asked.site)) return false;
    if (typeof output === 'string' || typeof came === 'string') {
      this.#counts.unread += 1;
      return false;
    }
    this.#counts.reads += 1;
    const isShared = target.kind !== 'login' && target.kind !== 'tenant';
    if (!isPresented && isShared) this.#learn(client, target, came);
    if (target.kind === 'tenant' && output.kind === 'missing') {
      if (this.#tenants.isEnding(target)) return true;
      this.#mark(MARKS.tenant);
    }
    this.#noteSession(client, path, host, { came, from });
    if (target.kind === 'login') {
      const isFound = output.kind === 'found';
      const askedAtMs = consistency === 'default' ? callMs : undefined;
      const shown = { host, isFound, askedAtMs, beforeMs, afterMs: wallOf(host) };
      const hasExpired = this.#logins.hasExpired(target, shown);
      if (!isFound) this.#mark(hasExpired ? MARKS.expired : MARKS.ended);
      if (this.#logins.wasGivenBack(target, shown) || hasExpired) return true;
    }
    const returnMs = world.time.nowMs;
    const kind = isPresented ? 'presented' : 'object';
    const at = placeIn(came);
    this.#reads.push({ kind, target, consistency, from, asked, at, callMs, returnMs, output });
    return true;
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

  async #list(client: Client, host: SimHost): Promise<void> {
    const asked = this.#asked(host);
    const headers = headersOf(MANAGEMENT_SECRET, undefined);
    const question = { method: 'GET' as const, path: '/v1/acl/policies?stale', headers };
    const came = await this.#ask(host, question);
    if (typeof came === 'string' || came.status !== 200) return;
    this.#noteSession(client, question.path, host, { came, from: undefined });
    const policies = JSON.parse(came.text) as readonly {
      readonly Name: string;
      readonly ModifyIndex: number;
    }[];
    const found = policies.map(({ Name, ModifyIndex }) => `${Name} ${ModifyIndex}`).sort();
    this.#listings.push({ asked, returnMs: this.#options.world.time.nowMs, found });
  }

  #mark(name: string): void {
    this.#options.world.trace.mark(name);
  }

  #asked(host: SimHost): Asked {
    return { host: host.name, life: host.lifeCount, site: this.#siteOf(host) };
  }

  #siteOf(host: SimHost): number {
    return this.#options.sites.findIndex(({ hosts }) => hosts.includes(host));
  }

  async #ask(host: SimHost, question: HttpQuestion): Promise<Came> {
    const { group, timeoutMs } = this.#options;
    const reply = await group.ask(host, timeoutMs, (node) => (node as LiveServer).http(question));
    return cameFrom(host, reply);
  }

  #complain(path: string, host: SimHost, came: Came): void {
    const shown = typeof came === 'string' ? came : `${came.status} ${came.text}`;
    this.#options.violations.add('answers', `${path} at ${host.name} was answered ${shown}`);
  }

  async #until(endMs: number, attempt: () => Promise<boolean>): Promise<boolean> {
    const { world } = this.#options;
    while (world.time.nowMs < endMs) {
      if (await attempt()) return true;
      await new Promise<void>((resolve) => {
        world.time.after(100, resolve);
      });
    }
    return false;
  }
}

/** What its wall clock shows, while it is up. */
function wallOf({ process }: SimHost): number | undefined {
  return process?.clock.wallMs();
}

function noteFurthest(client: Client, at: Place): void {
  if (client.furthest === undefined || isBefore(client.furthest, at)) client.furthest = at;
}
