// Clients of several datacenters: they make, read, replace and delete what all share at any server of any
// datacenter, and local tokens at those of their own. A write is sent again under its request id, often in
// another datacenter, when nobody knows what became of it.

import { idBytes } from '../../../../src/state/rows/objects/objects.ts';
import { rowKey } from '../../../../src/state/rows/tables.ts';
import type { FederationChecks } from '../../checks/federation/federation-checks.ts';
import { replayLog } from '../../checks/shadow.ts';
import type { Violations } from '../../checks/violations.ts';
import type { SimGroup } from '../../run/sim-group.ts';
import type { Site } from '../../run/site.ts';
import { siteName } from '../../subject/datacenters-subject.ts';
import type { HttpQuestion } from '../../subject/node-subject.ts';
import type { SimHost } from '../../world/sim-host.ts';
import type { World } from '../../world/world.ts';
import {
  authMethodTarget,
  headersOf,
  policyTarget,
  type Target,
  tokenTarget,
} from '../acl-requests.ts';
import { ClientLoop, triedUntil } from '../client-loop.ts';
import { drawWeighted } from '../draw-weighted.ts';
import type { Workload } from '../workload.ts';
import { Asking } from './asking.ts';
import {
  DEPUTIES,
  DEPUTY_TARGETS,
  type Deputy,
  hasRight,
  judgeDeputies,
  localTokenOf,
  rootsOf,
} from './global/deputies.ts';
import type { GlobalConsistency } from './global/global-history.ts';
import { GlobalJudge } from './global/global-judge.ts';
import { type Client, GlobalSessions } from './global/global-sessions.ts';
import { clearingOf, GRANT_TARGETS, GRANTS } from './global/grants.ts';
import { ChangedLinks } from './local/changed-links.ts';
import { ChangedTokenClients } from './local/changed-token-clients.ts';
import { ChangedTokens } from './local/changed-tokens.ts';
import { LocalRightClients } from './local/local-right-clients.ts';
import { localRootsOf } from './local/local-rights.ts';
import { type ArchivedTokens, LocalTokens } from './local/local-tokens.ts';
import { HOMES, Tenants } from './local/tenants.ts';
import { LOGIN_METHODS, Logins } from './logins.ts';
import { Losses } from './losses.ts';
import type { ForkKeeper } from './operators/fork-keeper.ts';

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
  | 'tenant'
  | 'localRight'
  | 'changed'
  | 'grant';

export interface DatacentersWorkloadOptions {
  readonly world: World;
  readonly group: SimGroup;
  readonly sites: readonly Site[];
  readonly checks: FederationChecks;
  readonly violations: Violations;
  readonly forks: Pick<ForkKeeper, 'remade' | 'wasAsked'>;
  readonly clientCount: number;
  /** Policies, and as many tokens. */
  readonly keyCount: number;
  readonly thinkMs: number;
  readonly timeoutMs: number;
  /** So long the tokens of logins live; undefined: until somebody ends them. */
  readonly loginTtlMs: number | undefined;
  /** Whether the datacenter of this number answers nobody. */
  readonly isWitness: (site: number) => boolean;
  readonly weights: Readonly<Record<DatacentersOperation, number>>;
}

/** Corners that a long series of runs must have been in. */
export const MARKS = {
  login: 'a login made a token',
  givenBack: 'a token of a login was given back',
  actedAtHome: 'a deputy made a local token',
} as const;

/** Of a deputy, in a row. */
const LOCALS_MAX = 12;
/** Of a local token, beside that it is made: no right, nobody to do it, not known. */
const LOCAL_SAID: readonly number[] = [403, 503, 504];

export class DatacentersWorkload implements Workload {
  readonly #options: DatacentersWorkloadOptions;
  readonly #targets: readonly Target[];
  readonly #loop: ClientLoop<Client>;
  readonly #asking: Asking;
  readonly #sessions: GlobalSessions;
  readonly #losses = new Losses();
  readonly #local: LocalTokens;
  readonly #logins: Logins;
  readonly #tenants: Tenants;
  readonly #localRights: LocalRightClients;
  readonly #changed: ChangedTokens;
  readonly #changedClients: ChangedTokenClients;
  #clientCount = 0;
  #deputyWrites = 0;
  #localCount = 0;

  constructor(options: DatacentersWorkloadOptions) {
    this.#options = options;
    const { world, thinkMs, checks, sites, violations } = options;
    this.#loop = new ClientLoop({ world, thinkMs, next: (client) => this.#next(client) });
    this.#asking = new Asking(options);
    const numbers = Array.from({ length: options.keyCount }, (_, place) => place + 1);
    const roots = localRootsOf(sites.length);
    const links = new ChangedLinks(sites.length);
    this.#targets = [
      ...numbers.flatMap((number) => [policyTarget(number), tokenTarget(number, `p${number}`)]),
      ...LOGIN_METHODS.map(({ name, locality }) => {
        return authMethodTarget(name, locality, options.loginTtlMs);
      }),
      ...(options.weights.deputy > 0 ? DEPUTY_TARGETS : []),
      ...(options.weights.tenant > 0 ? HOMES : []),
      ...(options.weights.grant > 0 ? GRANT_TARGETS : []),
      ...(options.weights.localRight > 0 ? roots.targets : []),
      ...(options.weights.changed > 0 ? links.targets : []),
    ];
    const asked = {
      sites: sites.map(({ hosts }) => hosts),
      violations,
      nowMs: () => world.time.nowMs,
      losses: this.#losses,
      ask: (host: SimHost, question: HttpQuestion) => this.#asking.ask(host, question),
    };
    this.#local = new LocalTokens(asked);
    const loggedIn = {
      ...asked,
      originOf: (hosts: readonly SimHost[], accessorId: string) =>
        checks.originOf(hosts, accessorId),
    };
    this.#logins = new Logins({
      ...{ ...loggedIn, methods: LOGIN_METHODS },
      bind: () => ({ BindType: 'service', BindName: 'web' }),
    });
    const onDisk = {
      isLeft: (host: SimHost, accessorId: string) =>
        checks.has(host, rowKey('token', idBytes(accessorId))),
      hasNamespace: (host: SimHost, name: string) => checks.has(host, rowKey('namespace', name)),
    };
    this.#tenants = new Tenants({ ...asked, ...onDisk });
    const rootKeys = links.targets.map(({ key }) => key);
    this.#changed = new ChangedTokens({ ...asked, ...onDisk, rootKeys });
    const parts = {
      ...{ asking: this.#asking, logins: this.#logins, tenants: this.#tenants },
      ...{ changed: this.#changed, losses: this.#losses },
    };
    this.#sessions = new GlobalSessions({ world, checks, violations, ...parts });
    this.#localRights = new LocalRightClients({
      ...loggedIn,
      world,
      roots,
      sessions: this.#sessions,
    });
    this.#changedClients = new ChangedTokenClients({
      ...{ world, links, tokens: this.#changed, sessions: this.#sessions },
      sites: asked.sites,
    });
  }

  get counts(): Readonly<Record<string, number>> {
    const { checks } = this.#options;
    return {
      ...this.#sessions.counts,
      deputyWrites: this.#deputyWrites,
      ...this.#local.counts,
      ...this.#logins.counts,
      ...this.#tenants.counts,
      ...this.#localRights.counts,
      ...this.#changed.counts,
      entries: checks.chain.size,
      comparedObjects: checks.comparedCount,
    };
  }

  get isIdle(): boolean {
    return this.#loop.isIdle;
  }

  begin(): void {
    const { clientCount, sites } = this.#options;
    for (let place = 0; place < clientCount; place += 1) {
      this.#loop.begin(this.#client(`client ${place}`, place % sites.length));
    }
  }

  stop(): void {
    this.#loop.stop();
  }

  /** All disks of the datacenter at this place are lost, and what it alone had. */
  onEmptied(site: number): void {
    this.#losses.onEmptied(site);
    this.#local.lose(site);
    this.#changed.lose(site);
    this.#loseAtHome(site);
  }

  /** What the datacenter at this place has alone, nobody knows any more. */
  #loseAtHome(site: number): void {
    this.#sessions.lose(site);
    this.#localRights.lose(site);
  }

  /** As `LocalTokens`. */
  archiving(site: number): () => ArchivedTokens {
    const [local, changed] = [this.#local.archiving(site), this.#changed.archiving(site)];
    return () => ({ ...local(), changed: changed() });
  }

  /** An archive of the datacenter at this place is being restored. */
  beginRestore(site: number): void {
    this.#losses.onRestoring(site);
    this.#local.beginRestore(site);
    this.#changed.beginRestore(site);
    this.#loseAtHome(site);
  }

  /** As `LocalTokens`. */
  endRestore(site: number, archived: ArchivedTokens | undefined): void {
    this.#losses.onRestored(site);
    this.#local.endRestore(site, archived);
    this.#changed.endRestore(site, archived?.changed);
    this.#loseAtHome(site);
  }

  async probe(all: readonly SimHost[], timeoutMs: number): Promise<readonly string[]> {
    const { world, isWitness } = this.#options;
    const hosts = all.filter((host) => !isWitness(this.#asking.siteOf(host) + 1));
    const tries = { world, endMs: world.time.nowMs + timeoutMs, pauseMs: 100 };
    const probes = hosts.map(async (host, place) => {
      const site = this.#asking.siteOf(host);
      const client = this.#client(`probe ${place}`, site);
      const target = policyTarget(1000 + place);
      const wrote = await triedUntil(tries, () =>
        this.#sessions.write(client, target, 'create', host, hosts),
      );
      const read = await triedUntil(tries, () =>
        this.#sessions.read(client, target, 'default', host),
      );
      const shown = await triedUntil(tries, () => this.#local.presentAll(site, host));
      const areJudged =
        (await this.#localRights.askAll(client, host, { site, tries })) &&
        (await this.#changedClients.askAll(client, host, { site, tries }));
      const isReaped = await triedUntil(tries, () => {
        const areGone = this.#logins.isReaped(host, hosts) && this.#tenants.isReaped(host);
        return Promise.resolve(areGone && this.#changed.isReaped(host, hosts));
      });
      return [
        ...(wrote ? [] : [`a write through ${host.name}`]),
        ...(read ? [] : [`a read at ${host.name}`]),
        ...(shown ? [] : [`local tokens at ${host.name}`]),
        ...(areJudged ? [] : [`rights of linked tokens at ${host.name}`]),
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
    const { violations, checks, forks, sites, world } = this.#options;
    const groups = sites.flatMap(({ allChecks }, place) =>
      allChecks.map((group) => ({ group, place })),
    );
    for (const { group, place } of groups) {
      const committed = group.committed.map(({ entry }) => entry);
      const replay = await replayLog(committed, hasRight);
      this.#tenants.settle(replay.commands);
      this.#changed.settle(replay.commands);
      const site = siteName(place);
      this.#deputyWrites += judgeDeputies(replay.commands, { violations, site });
      for (const [index, digest] of replay.digests) {
        const known = group.digestAt(index);
        violations.require(known === undefined || known === digest, 'states', () => {
          return `the log up to ${index} does not give the state that the nodes have`;
        });
      }
    }
    const history = this.#sessions;
    new GlobalJudge({ violations, checks, hosts: world.hosts, history, forks }).all();
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
        await this.#sessions.read(client, target, consistency, host);
        return;
      case 'present':
        await this.#sessions.present(client, token, consistency, host);
        return;
      case 'list':
        await this.#sessions.list(client, host);
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
      case 'localRight':
        await this.#localRights.next(client, consistency);
        return;
      case 'changed':
        await this.#changedClients.next(client, consistency);
        return;
      case 'grant':
        await this.#aboutGrant(client, consistency, host);
        return;
      default: {
        const isAnswered = await this.#sessions.write(client, target, kind, host, world.hosts);
        // Who is told that a write can be read looks for it.
        if (isAnswered && stream.chance(0.3))
          await this.#sessions.read(client, target, 'default', host);
      }
    }
  }

  /** Makes a token in a namespace, presents or deletes one, or deletes a namespace and presents one. */
  async #asTenant(client: Client, consistency: GlobalConsistency, host: SimHost): Promise<void> {
    const { stream } = client;
    const { hosts } = this.#options.world;
    const site = this.#asking.siteOf(host);
    const home = stream.pick(HOMES);
    const target = this.#tenants.pick(site, stream);
    if (target === undefined || stream.chance(0.3)) {
      const isThere = await this.#tenants.make(site, host, home.name);
      if (!isThere) await this.#sessions.write(client, home, 'create', host, hosts);
      return;
    }
    if (stream.chance(0.2)) {
      await this.#tenants.end(target, host);
      return;
    }
    if (stream.chance(0.2))
      await this.#sessions.write(client, home, 'delete', stream.pick(hosts), hosts);
    // What was made at another server of the datacenter may be new to this one.
    const seen = consistency === 'stale' ? 'default' : consistency;
    await this.#sessions.showSelf(client, host, {
      target,
      consistency: seen,
      secret: target.secret,
    });
  }

  /** Asks what a token may do, often right behind a change of what that hangs on. */
  async #aboutGrant(client: Client, consistency: GlobalConsistency, host: SimHost): Promise<void> {
    const { stream } = client;
    const { hosts } = this.#options.world;
    const grant = stream.pick(GRANTS);
    const { token, roots, homes, right } = grant;
    for (const each of [...homes, ...roots, token]) {
      if (stream.chance(0.5)) await this.#sessions.write(client, each, 'create', host, hosts);
    }
    if (stream.chance(0.6)) {
      const root = stream.pick([...roots, token]);
      // An update names a policy or role by its id, which is another one after each deletion.
      await this.#sessions.read(client, root, 'default', host);
      const change = stream.pick(['update', 'update', 'update', 'delete'] as const);
      await this.#sessions.write(client, root, change, stream.pick(hosts), hosts);
    }
    if (stream.chance(0.1)) {
      for (const each of clearingOf(grant)) {
        await this.#sessions.read(client, each, 'default', host);
        await this.#sessions.write(client, each, 'delete', host, hosts);
      }
    }
    await this.#sessions.askRight(client, host, { target: right, consistency });
  }

  /** A deputy writes; often somebody takes its right away, or gives it, in the same moment. */
  async #asDeputy(client: Client, target: Target, host: SimHost): Promise<void> {
    const { stream } = client;
    const { hosts } = this.#options.world;
    const deputy = stream.pick(DEPUTIES);
    const roots = rootsOf(deputy);
    const right = stream.pick(roots);
    for (const root of roots) {
      if (stream.chance(0.4)) await this.#sessions.write(client, root, 'create', host, hosts);
    }
    // An update names a policy or role by its id, which is another one after each deletion.
    if (stream.chance(0.5)) await this.#sessions.read(client, right, 'default', host);
    // Nobody may delete the token that they present.
    const ends = target.key === deputy.key ? [] : (['delete'] as const);
    const kind = stream.pick(['create', 'update', ...ends] as const);
    const acts = this.#sessions.write(client, target, kind, host, hosts, deputy);
    const change = stream.pick(['update', 'update', 'update', 'delete'] as const);
    if (stream.chance(0.6)) {
      const changes = this.#sessions.write(client, right, change, stream.pick(hosts), hosts);
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
      const came = await this.#asking.ask(host, {
        method: 'PUT',
        path: '/v1/acl/token',
        body,
        headers,
      });
      if (typeof came === 'string') return;
      if (came.status === 200) this.#mark(MARKS.actedAtHome);
      else if (!LOCAL_SAID.includes(came.status))
        this.#asking.complain('/v1/acl/token', host, came);
    }
  }

  /** Logs in, or presents what a login made. */
  async #login(client: Client, consistency: GlobalConsistency, host: SimHost): Promise<void> {
    const { stream } = client;
    const site = this.#asking.siteOf(host);
    const target = stream.chance(0.5) ? this.#logins.pick(site, stream) : undefined;
    if (target !== undefined) {
      // What was made at another server of the datacenter may be new to this one.
      const seen = target.isLocal && consistency === 'stale' ? 'default' : consistency;
      await this.#sessions.showSelf(client, host, {
        target,
        consistency: seen,
        secret: target.secret,
      });
    } else if (await this.#logins.logIn(site, host, stream)) this.#mark(MARKS.login);
  }

  /** Gives back what a login made, and looks whether it still works. */
  async #logOut(client: Client, host: SimHost): Promise<void> {
    const target = this.#logins.pick(this.#asking.siteOf(host), client.stream);
    if (target === undefined) return;
    const isGone = target.isLocal
      ? await this.#logins.giveBack(target, host)
      : await this.#sessions.giveBack(client, target, host);
    if (!isGone) return;
    this.#mark(MARKS.givenBack);
    const { secret } = target;
    await this.#sessions.showSelf(client, host, { target, consistency: 'default', secret });
  }

  #mark(name: string): void {
    this.#options.world.trace.mark(name);
  }
}
