// How clients make, change, delete and present local tokens, and change what these link to, one behind the other.

import type { SimHost } from '../../../world/sim-host.ts';
import type { World } from '../../../world/world.ts';
import { triedUntil } from '../../client-loop.ts';
import type { GlobalConsistency } from '../global/global-history.ts';
import type { Client, GlobalSessions } from '../global/global-sessions.ts';
import { CHANGED_HOMES, type ChangedLinks } from './changed-links.ts';
import type { ChangedToken } from './changed-token.ts';
import type { ChangedTokens } from './changed-tokens.ts';

export interface ChangedTokenClientsOptions {
  readonly world: World;
  readonly sites: readonly (readonly SimHost[])[];
  readonly tokens: ChangedTokens;
  readonly links: ChangedLinks;
  readonly sessions: GlobalSessions;
}

const CHANGES = ['create', 'update', 'update', 'update', 'delete'] as const;
/** Their lives, where they have an end. */
const TTL_MIN_MS = 1500;
const TTL_MAX_MS = 20_000;
/** In a row, of one token. */
const STEPS_MAX = 4;

export class ChangedTokenClients {
  readonly #options: ChangedTokenClientsOptions;

  constructor(options: ChangedTokenClientsOptions) {
    this.#options = options;
  }

  async next(client: Client, consistency: GlobalConsistency): Promise<void> {
    const { tokens } = this.#options;
    const { home, stream } = client;
    if (stream.chance(0.06)) {
      await this.#clear(client);
      return;
    }
    const token = stream.chance(0.25) ? undefined : tokens.take(home, stream);
    if (token === undefined) {
      await this.#make(client);
      return;
    }
    // What was made at another server of the datacenter may be new to this one.
    const seen = consistency === 'stale' ? 'default' : consistency;
    for (let left = 1 + stream.below(STEPS_MAX); left > 0 && tokens.knows(token); left -= 1) {
      await this.#step(client, token, seen);
    }
    tokens.release(token);
  }

  /** Presents the last ones of the datacenter, and asks what they may do. True when each was answered. */
  async askAll(
    client: Client,
    host: SimHost,
    { site, tries }: { readonly site: number; readonly tries: Parameters<typeof triedUntil>[0] },
  ): Promise<boolean> {
    const { tokens } = this.#options;
    for (const token of tokens.recent(site)) {
      const isAnswered = await triedUntil(tries, () => {
        // It was lost meanwhile.
        if (!tokens.knows(token)) return Promise.resolve(true);
        // Somebody is still about it.
        if (token.isBusy) return Promise.resolve(false);
        return this.#look(client, token, { host, consistency: 'default' });
      });
      if (!isAnswered) return false;
    }
    return true;
  }

  async #make(client: Client): Promise<void> {
    const { links, sessions, tokens, world } = this.#options;
    const { home, stream } = client;
    const host = this.#hostOf(client);
    const place = stream.pick([undefined, undefined, ...CHANGED_HOMES]);
    const drawn = links.draw(stream, place?.name);
    const ttlMs = stream.chance(0.2) ? Math.ceil(stream.spread(TTL_MIN_MS, TTL_MAX_MS)) : undefined;
    const wish = { namespace: place?.name, links: drawn, ttlMs };
    if (await tokens.make(home, host, wish)) return;
    for (const root of [...(place === undefined ? [] : [place]), ...drawn.roots]) {
      await sessions.write(client, root, 'create', host, world.hosts);
    }
  }

  async #step(client: Client, token: ChangedToken, consistency: GlobalConsistency): Promise<void> {
    const { links, tokens } = this.#options;
    const { stream } = client;
    const host = this.#hostOf(client);
    const isThere = token.now !== undefined;
    const kind = stream.pick([
      'update',
      'update',
      'update',
      'look',
      'look',
      'root',
      'root',
      'delete',
      'elsewhere',
    ] as const);
    if (kind === 'update' && isThere) {
      await tokens.update(token, host, { links: links.draw(stream, token.namespace), stream });
    } else if (kind === 'delete' && isThere && stream.chance(0.5)) {
      await tokens.delete(token, host, stream);
    } else if (kind === 'root') await this.#changeRoot(client, host);
    else if (kind === 'elsewhere') await tokens.showElsewhere(token, this.#hostElsewhere(client));
    if (tokens.knows(token)) {
      await this.#look(client, token, { host: this.#hostOf(client), consistency });
    }
  }

  /** True when it was answered. */
  async #look(
    client: Client,
    token: ChangedToken,
    { host, consistency }: { readonly host: SimHost; readonly consistency: GlobalConsistency },
  ): Promise<boolean> {
    const { sessions, tokens } = this.#options;
    if (token.pending.length > 0) return tokens.learn(token, host);
    const { secret } = token;
    const shown = { target: tokens.targetOf(token), consistency, secret };
    const isShown = await sessions.showSelf(client, host, shown);
    if (!tokens.knows(token) || token.now === undefined) return isShown;
    const target = tokens.rightOf(token, client.stream.pick(['key', 'service'] as const));
    return (await sessions.askLocalRight(client, host, { target, consistency })) && isShown;
  }

  async #changeRoot(client: Client, host: SimHost): Promise<void> {
    const { links, sessions, world } = this.#options;
    const { stream } = client;
    const root = stream.pick(links.targets.filter(({ kind }) => kind !== 'namespace'));
    // An update names a policy or role by its id, which is another one after each deletion.
    await sessions.read(client, root, 'default', host);
    await sessions.write(client, root, stream.pick(CHANGES), stream.pick(world.hosts), world.hosts);
  }

  /** Ends a namespace with all that is in it; as a rule it is made again by whoever needs it next. */
  async #clear(client: Client): Promise<void> {
    const { links, sessions, tokens, world } = this.#options;
    const { home, stream } = client;
    const place = stream.pick(CHANGED_HOMES);
    const host = stream.pick(world.hosts);
    for (const each of links.inside(place.name)) {
      await sessions.read(client, each, 'default', host);
      await sessions.write(client, each, 'delete', host, world.hosts);
    }
    for (const token of tokens.takeIn(home, place.name)) {
      await tokens.delete(token, this.#hostOf(client), stream);
      tokens.release(token);
    }
    await sessions.write(client, place, 'delete', host, world.hosts);
    if (stream.chance(0.5)) await sessions.write(client, place, 'create', host, world.hosts);
  }

  #hostOf({ home, stream }: Client): SimHost {
    return stream.pick(this.#options.sites[home]!);
  }

  #hostElsewhere({ home, stream }: Client): SimHost {
    return stream.pick(this.#options.sites.filter((_, place) => place !== home).flat());
  }
}
