// Local tokens of a run, each made, presented and deleted by one client at servers of its datacenter. All
// that is said of one there must hold, whatever comes from the primary meanwhile; elsewhere it must mean
// nothing, and never be seen.

import { canarySecret, canaryText } from '../../../checks/federation/canaries.ts';
import type { Violations } from '../../../checks/violations.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import {
  type HttpAnswer,
  type HttpQuestion,
  MANAGEMENT_SECRET,
} from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import type { Came } from '../../came.ts';
import type { Losses } from '../losses.ts';
import type { ArchivedChanges } from './changed-token.ts';

export interface LocalTokensOptions {
  readonly sites: readonly (readonly SimHost[])[];
  readonly violations: Violations;
  readonly losses: Losses;
  readonly ask: (host: SimHost, question: HttpQuestion) => Promise<Came>;
}

interface LocalToken {
  readonly site: number;
  readonly accessorId: string;
  readonly secret: string;
  readonly text: string;
  /** maybe: nobody knows. */
  state: 'maybe' | 'there' | 'gone';
  /** The request that makes it was never answered: it may lie before a server that stands still. */
  mayCome: boolean;
  isBusy: boolean;
}

/** What is known of the tokens in an archive, by accessor id. */
export interface ArchivedTokens {
  readonly states: ReadonlyMap<string, 'maybe' | 'there' | 'gone'>;
  /** All that there may be in it. */
  readonly known: ReadonlySet<string>;
  /** Of those that are changed. */
  readonly changed?: ArchivedChanges;
}

/** Tokens by accessor id. */
interface Restoring {
  /** All made, and left alone, before it began. */
  readonly settled: ReadonlySet<string>;
  /** Those whose deletion was under way, or began, since then. */
  readonly deleting: Set<string>;
}

/** The checker's name. */
const CHECKER = 'local tokens';
const NOBODY: readonly number[] = [503, 504];

export class LocalTokens {
  readonly #options: LocalTokensOptions;
  readonly #tokens: LocalToken[] = [];
  /** Datacenters in which an archive is being restored. */
  readonly #uncertain = new Map<number, Restoring>();
  /** Whose deletion is under way. */
  readonly #deleting = new Set<LocalToken>();
  readonly counts = { localMade: 0, localDeleted: 0, localPresented: 0 };

  constructor(options: LocalTokensOptions) {
    this.#options = options;
  }

  /** All disks of the datacenter are lost, and its tokens with them: no answer of before says what is there now. */
  lose(site: number): void {
    this.#uncertain.delete(site);
    this.#renew(site, () => 'gone');
  }

  /** One of the things that happen to local tokens, at a server of the datacenter. */
  async next(site: number, stream: Stream): Promise<void> {
    const own = this.#tokens.filter((token) => token.site === site && !token.isBusy);
    const host = stream.pick(this.#options.sites[site]!);
    const token = own.length === 0 || stream.chance(0.25) ? undefined : stream.pick(own);
    if (token === undefined) await this.#make(site, host);
    else await this.#alone(token, stream, host);
  }

  /** Presents all of the datacenter; resolves with whether each was answered. */
  async presentAll(site: number, host: SimHost): Promise<boolean> {
    let isAnswered = true;
    for (const token of this.#tokens.filter((each) => each.site === site && !each.isBusy)) {
      isAnswered = (await this.#present(token, host)) && isAnswered;
    }
    return isAnswered;
  }

  /** What an archive has that is taken between this moment and the next call of the result. */
  archiving(site: number): () => ArchivedTokens {
    const before = this.#settledOf(site);
    return () => {
      const after = this.#settledOf(site);
      const same = [...after].filter(([id, state]) => before.get(id) === state);
      const all = this.#tokens.filter((token) => token.site === site);
      return { states: new Map(same), known: new Set(all.map(({ accessorId }) => accessorId)) };
    };
  }

  /** An archive is being restored: until it is known what came of it, nobody knows what is there. */
  beginRestore(site: number): void {
    const settled = new Set(this.#settledOf(site).keys());
    const own = [...this.#deleting].filter((token) => token.site === site);
    const deleting = new Set(own.map(({ accessorId }) => accessorId));
    this.#uncertain.set(site, { settled, deleting });
    this.#renew(site, () => 'maybe');
  }

  /** What is there is what the archive has; undefined: that is not known, or what was there before. */
  endRestore(site: number, archived: ArchivedTokens | undefined): void {
    const before = this.#uncertain.get(site);
    this.#uncertain.delete(site);
    this.#renew(site, ({ accessorId }) => {
      if (archived === undefined) return 'maybe';
      // What was made or deleted meanwhile may have been so behind it, before its answer came.
      if (before?.deleting.has(accessorId) === true) return 'maybe';
      if (archived.known.has(accessorId)) return archived.states.get(accessorId) ?? 'maybe';
      return before?.settled.has(accessorId) === true ? 'gone' : 'maybe';
    });
  }

  /** Of the others a request may be under way, of which nobody waits for the answer any more. */
  #settledOf(site: number): ReadonlyMap<string, LocalToken['state']> {
    const own = this.#tokens.filter(
      (token) => token.site === site && !token.isBusy && token.state !== 'maybe',
    );
    return new Map(own.map(({ accessorId, state }) => [accessorId, state]));
  }

  /** No answer to what was asked before says anything of them. */
  #renew(site: number, stateOf: (token: LocalToken) => LocalToken['state']): void {
    for (const [place, token] of this.#tokens.entries()) {
      if (token.site !== site) continue;
      this.#tokens[place] = { ...token, state: stateOf(token), isBusy: false };
    }
  }

  /** Known for sure, unless an archive is being restored. */
  #known(site: number, state: 'there' | 'gone'): LocalToken['state'] {
    return this.#options.losses.isRestoring(site) ? 'maybe' : state;
  }

  async #alone(token: LocalToken, stream: Stream, host: SimHost): Promise<void> {
    token.isBusy = true;
    if (token.state !== 'gone' && stream.chance(0.15)) await this.#delete(token, host);
    // What nobody here knows might be the primary's to know, and is sent there.
    else if (token.state === 'there' && stream.chance(0.2)) await this.#overreach(token, host);
    else await this.#present(token, host);
    token.isBusy = false;
  }

  async #make(site: number, host: SimHost): Promise<void> {
    const number = this.#tokens.length + 1;
    const token: LocalToken = {
      site,
      accessorId: `dddddddd-0000-4000-8000-${number.toString(16).padStart(12, '0')}`,
      secret: canarySecret(site, number),
      text: canaryText(site, number),
      state: 'maybe',
      mayCome: true,
      isBusy: true,
    };
    this.#tokens.push(token);
    const { accessorId: AccessorID, secret: SecretID, text: Description } = token;
    const body = { AccessorID, SecretID, Description, Local: true };
    const came = await this.#asManager(host, { method: 'PUT', path: '/v1/acl/token', body });
    token.isBusy = false;
    if (typeof came === 'string' || NOBODY.includes(came.status)) return;
    token.mayCome = false;
    if (came.status === 200) {
      token.state = this.#known(site, 'there');
      this.counts.localMade += 1;
    } else this.#complain(token, host, 'was made', came);
  }

  async #delete(token: LocalToken, host: SimHost): Promise<void> {
    const before = token.state;
    token.state = 'maybe';
    this.#deleting.add(token);
    this.#uncertain.get(token.site)?.deleting.add(token.accessorId);
    const path = `/v1/acl/token/${token.accessorId}`;
    const came = await this.#asManager(host, { method: 'DELETE', path });
    this.#deleting.delete(token);
    if (typeof came === 'string' || NOBODY.includes(came.status)) return;
    const wasThere = came.status === 200 && came.text === 'true';
    // That it is not there says nothing of a request that comes yet.
    if (!wasThere && token.mayCome) return;
    const isGone = came.status === 200 || (came.status === 404 && before === 'maybe');
    if (isGone) {
      token.state = this.#known(token.site, 'gone');
      this.counts.localDeleted += 1;
    } else this.#complain(token, host, 'was deleted', came);
  }

  /** Shows itself. True when it was answered. */
  async #present(token: LocalToken, host: SimHost): Promise<boolean> {
    const path = '/v1/acl/token/self';
    const before = token.state;
    const came = await this.#as(token, host, { method: 'GET', path });
    if (typeof came === 'string' || NOBODY.includes(came.status)) return false;
    this.counts.localPresented += 1;
    const isShown = came.status === 200 && came.text.includes(token.text);
    const isRight = (isShown && before !== 'gone') || (came.status === 403 && before !== 'there');
    // One that was shown once may still be made by a request of which nobody knows, but not the reverse.
    if (!isRight) this.#complain(token, host, `is ${before}`, came);
    return true;
  }

  /** It means nothing to the primary, and must not get there. */
  async #overreach(token: LocalToken, host: SimHost): Promise<void> {
    const body = { Name: `by-${token.text}`, Rules: '' };
    const came = await this.#as(token, host, { method: 'PUT', path: '/v1/acl/policy', body });
    if (typeof came === 'string' || NOBODY.includes(came.status) || came.status === 403) return;
    this.#complain(token, host, 'asked for a policy', came);
  }

  #asManager(host: SimHost, question: Omit<HttpQuestion, 'headers'>): Promise<Came> {
    const headers = { 'X-Service-Token': MANAGEMENT_SECRET };
    return this.#options.ask(host, { ...question, headers });
  }

  #as(token: LocalToken, host: SimHost, question: Omit<HttpQuestion, 'headers'>): Promise<Came> {
    return this.#options.ask(host, { ...question, headers: { 'X-Service-Token': token.secret } });
  }

  #complain(token: LocalToken, host: SimHost, what: string, came: HttpAnswer): void {
    const { text, site } = token;
    // It was lost while it was asked about.
    if (!this.#tokens.includes(token)) return;
    const says = `${host.name} of ${siteName(site)}: ${text} ${what}, and the answer is ${came.status} ${came.text}`;
    this.#options.violations.add(CHECKER, says);
  }
}
