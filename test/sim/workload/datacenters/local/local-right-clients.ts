// How clients come to tokens of one datacenter, or of a login, that link to what all share, and ask what these may do,
// often right behind a change of that.

import type { SimHost } from '../../../world/sim-host.ts';
import type { World } from '../../../world/world.ts';
import type { LocalRightTarget } from '../../acl-requests.ts';
import { triedUntil } from '../../client-loop.ts';
import type { GlobalConsistency } from '../global/global-history.ts';
import type { Client, GlobalSessions } from '../global/global-sessions.ts';
import { Logins, type LoginsOptions } from '../logins.ts';
import {
  drawBinding,
  hasNoLinks,
  LINKING_METHODS,
  LocalRights,
  type LocalRightsOptions,
} from './local-rights.ts';

/** In a row. */
const CHANGES_MAX = 4;
const CHANGES = ['create', 'update', 'update', 'update', 'update', 'delete'] as const;

export interface LocalRightClientsOptions
  extends LocalRightsOptions,
    Omit<LoginsOptions, 'methods' | 'bind'> {
  readonly world: World;
  readonly sessions: GlobalSessions;
}

export class LocalRightClients {
  readonly #options: LocalRightClientsOptions;
  readonly #rights: LocalRights;
  /** Those whose tokens have links. */
  readonly #logins: Logins;

  constructor(options: LocalRightClientsOptions) {
    this.#options = options;
    this.#rights = new LocalRights(options);
    this.#logins = new Logins({ ...options, methods: LINKING_METHODS, bind: drawBinding });
  }

  get counts(): Readonly<Record<string, number>> {
    return { ...this.#rights.counts, linkedLogins: this.#logins.counts.logins };
  }

  /** What the datacenter at this place has alone, nobody knows any more. */
  lose(site: number): void {
    this.#logins.lose(site);
    this.#rights.lose(site);
  }

  async next(client: Client, consistency: GlobalConsistency): Promise<void> {
    const { stream, home } = client;
    const host = stream.pick(this.#options.sites[home]!);
    const kind = stream.pick(['make', 'log in', 'ask'] as const);
    if (kind === 'make') await this.#make(client, host);
    else if (kind === 'log in') await this.#logIn(client, host);
    // What was made at another server of the datacenter may be new to this one.
    const seen = consistency === 'stale' ? 'default' : consistency;
    for (let left = 1 + stream.below(CHANGES_MAX); left > 0; left -= 1) {
      const target = this.#pick(client);
      await this.#changeSome(client, host, target);
      if (target === undefined || !this.#knows(target)) continue;
      const { sessions } = this.#options;
      await sessions.askLocalRight(client, host, { target, consistency: seen });
    }
  }

  #pick({ home, stream }: Client): LocalRightTarget | undefined {
    const login = stream.chance(0.3) ? this.#logins.pick(home, stream) : undefined;
    if (login === undefined || hasNoLinks(login.links)) return this.#rights.pick(home, stream);
    return this.#rights.ofLogin(login);
  }

  #knows(target: LocalRightTarget): boolean {
    const { login } = target;
    return login === undefined ? this.#rights.knows(target) : this.#logins.knows(login);
  }

  /** What the last linked tokens of the datacenter may do. True when each was answered. */
  async askAll(
    client: Client,
    host: SimHost,
    { site, tries }: { readonly site: number; readonly tries: Parameters<typeof triedUntil>[0] },
  ): Promise<boolean> {
    for (const target of this.#rights.recent(site)) {
      const isAnswered = await triedUntil(tries, () => {
        // It was lost meanwhile.
        if (!this.#rights.knows(target)) return Promise.resolve(true);
        return this.#options.sessions.askLocalRight(client, host, {
          target,
          consistency: 'default',
        });
      });
      if (!isAnswered) return false;
    }
    return true;
  }

  async #make(client: Client, host: SimHost): Promise<void> {
    const { roots, sessions, world } = this.#options;
    const way = client.stream.pick(roots.ways);
    const isThere = await this.#rights.make(client.home, host, way);
    for (const root of isThere ? [] : way.roots) {
      await sessions.write(client, root, 'create', host, world.hosts);
    }
  }

  async #logIn(client: Client, host: SimHost): Promise<void> {
    const { roots, sessions, world } = this.#options;
    const { home, stream } = client;
    if (await this.#logins.logIn(home, host, stream)) return;
    await sessions.write(client, stream.pick(roots.targets), 'create', host, world.hosts);
  }

  /** Mostly of what that token rests on. */
  async #changeSome(
    client: Client,
    host: SimHost,
    target: LocalRightTarget | undefined,
  ): Promise<void> {
    const { roots, sessions, world } = this.#options;
    const { stream } = client;
    const own = roots.targets.filter(({ key }) => target?.rootKeys.includes(key) === true);
    const root = stream.pick(own.length > 0 && stream.chance(0.8) ? own : roots.targets);
    // An update names a policy or role by its id, which is another one after each deletion.
    await sessions.read(client, root, 'default', host);
    const change = stream.pick(CHANGES);
    await sessions.write(client, root, change, stream.pick(world.hosts), world.hosts);
  }
}
