// Tokens that logins make, through auth methods that clients make, replace and delete as everything else that
// all share. Some live in the datacenter of the login alone, some everywhere; all of them must be void where
// the end of their method can be read, whether a later method has its name or not. Those that expire are void
// when their time has passed by the clock of the server that is asked, and leave all disks in the end.

import type { AuthMethodOrigin } from '../../../../src/acl/token.ts';
import type { Violations } from '../../checks/violations.ts';
import { type HttpQuestion, MANAGEMENT_SECRET } from '../../subject/node-subject.ts';
import type { SimHost } from '../../world/sim-host.ts';
import type { Stream } from '../../world/stream.ts';
import type { Links, LoginTarget } from '../acl-requests.ts';
import type { Came } from '../came.ts';
import { BEARER } from './identity-cluster.ts';
import type { Losses } from './losses.ts';

/** The auth methods of a run, and where their tokens live. */
export const LOGIN_METHODS = [
  { name: 'm1', locality: 'local' },
  { name: 'm2', locality: 'global' },
] as const;

export interface LoginsOptions {
  readonly methods: readonly { readonly name: string }[];
  /** What the rule of a method gives: without one nobody logs in. */
  readonly bind: (stream: Stream) => { readonly BindType: string; readonly BindName: string };
  readonly sites: readonly (readonly SimHost[])[];
  readonly violations: Violations;
  readonly nowMs: () => number;
  readonly losses: Losses;
  readonly ask: (host: SimHost, question: HttpQuestion) => Promise<Came>;
  /** Which auth method made a token, by what the disks of these hosts say. */
  readonly originOf: (
    hosts: readonly SimHost[],
    accessorId: string,
  ) => AuthMethodOrigin | undefined;
}

interface TokenText {
  readonly AccessorID: string;
  readonly SecretID: string;
  readonly Description: string;
  readonly ModifyIndex: number;
  readonly Local?: boolean;
  readonly ExpirationTime?: string;
  readonly Policies?: readonly { readonly ID: string }[] | null;
  readonly Roles?: readonly { readonly ID: string }[] | null;
}

/** A local token that was given back, at the latest then; undefined: nobody knows whether it was. */
interface GivenBack {
  readonly atMs: number | undefined;
}

/** Whether any of their wall clocks has ever shown a later moment: one that was set back may have deleted by it. */
export function wasReached(hosts: readonly SimHost[], atMs: number): boolean {
  return hosts.some(({ clocks }) => clocks.furthestWallMs > atMs);
}

/**
 * What a server said of a token that was presented to it, and its wall clock before that and after: none while it is
 * down.
 */
export interface Shown {
  readonly host: SimHost;
  readonly isFound: boolean;
  /** When it was asked, in the time of the run; undefined where it may answer from an earlier state. */
  readonly askedAtMs: number | undefined;
  readonly beforeMs: number | undefined;
  readonly afterMs: number | undefined;
}

/** The checker's name. */
const CHECKER = 'revocations';

/** What may be said of a login, or of a rule: done, refused, nobody to do it, not known. */
const SAID: readonly number[] = [200, 400, 403, 404, 503, 504];

export class Logins {
  readonly #options: LoginsOptions;
  #targets: readonly LoginTarget[] = [];
  /** By accessor id. Of those that all share, the global log tells. */
  readonly #givenBack = new Map<string, GivenBack>();
  readonly counts = { logins: 0 };

  constructor(options: LoginsOptions) {
    this.#options = options;
  }

  /** One that a server of this datacenter must know, if there is one. */
  pick(site: number, stream: Stream): LoginTarget | undefined {
    const known = this.#targets.filter((target) => !target.isLocal || target.site === site);
    // The last ones are those whose method may still be there.
    const recent = known.slice(-8);
    return recent.length === 0 ? undefined : stream.pick(recent);
  }

  /** Whether it is known yet: a local one may be lost with its datacenter. */
  knows(target: LoginTarget): boolean {
    return this.#targets.includes(target);
  }

  /** Nobody knows any more which tokens of logins a datacenter has that are of no other one. */
  lose(site: number): void {
    this.#targets = this.#targets.filter((target) => !target.isLocal || target.site !== site);
  }

  /** Without a rule nobody logs in; it ends with its method. */
  async #bind(host: SimHost, AuthMethod: string, stream: Stream): Promise<void> {
    const body = { AuthMethod, ...this.#options.bind(stream) };
    const headers = { 'X-Service-Token': MANAGEMENT_SECRET };
    await this.#ask(host, { method: 'PUT', path: '/v1/acl/binding-rule', body, headers });
  }

  /** True when a token came of it. */
  async logIn(site: number, host: SimHost, stream: Stream): Promise<boolean> {
    const { name: AuthMethod } = stream.pick(this.#options.methods);
    const isCertain = this.#options.losses.watch(site);
    const body = { AuthMethod, BearerToken: BEARER };
    const came = await this.#ask(host, {
      method: 'POST',
      path: '/v1/acl/login',
      body,
      headers: {},
    });
    if (typeof came === 'string') return false;
    if (came.status === 403) await this.#bind(host, AuthMethod, stream);
    if (came.status !== 200) return false;
    const token = JSON.parse(came.text) as TokenText;
    const { AccessorID: accessorId, SecretID: secret, Local: isLocal = false } = token;
    const expiresAtMs = Date.parse(token.ExpirationTime ?? '') || Number.POSITIVE_INFINITY;
    const { sites, originOf } = this.#options;
    const method = originOf(isLocal ? sites[site]! : sites.flat(), accessorId);
    // Reaped already, as its method is gone.
    if (method === undefined) return false;
    if (isLocal && !isCertain()) return false;
    this.counts.logins += 1;
    const version = { value: token.Description, index: token.ModifyIndex };
    const key = `login ${accessorId}`;
    const known = { kind: 'login', key, accessorId, secret, isLocal, site, method } as const;
    const links = linksOf(token);
    this.#targets = [...this.#targets, { ...known, version, expiresAtMs, links }];
    return true;
  }

  /** Gives a local token back, at a server of its datacenter. True when it is known to be gone. */
  async giveBack({ accessorId, secret }: LoginTarget, host: SimHost): Promise<boolean> {
    const headers = { 'X-Service-Token': secret };
    const before = this.#givenBack.get(accessorId);
    this.#givenBack.set(accessorId, { atMs: before?.atMs });
    const came = await this.#ask(host, { method: 'POST', path: '/v1/acl/logout', headers });
    if (typeof came === 'string' || came.status !== 200) return false;
    this.#givenBack.set(accessorId, { atMs: before?.atMs ?? this.#options.nowMs() });
    return true;
  }

  /** Whether it is not there because it was given back. One that works after that is a finding. */
  wasGivenBack({ accessorId, key }: LoginTarget, { host, isFound, askedAtMs }: Shown): boolean {
    const given = this.#givenBack.get(accessorId);
    if (given === undefined) return false;
    const { atMs = Number.POSITIVE_INFINITY } = given;
    const isWrong = isFound && askedAtMs !== undefined && askedAtMs > atMs;
    this.#options.violations.require(!isWrong, CHECKER, () => {
      return `${host.name} took the ${key} at ${askedAtMs} ms, though it was given back by ${atMs} ms`;
    });
    return !isFound;
  }

  /** Whether it is not there because its time has passed. A token that works after its time is a finding. */
  hasExpired(target: LoginTarget, { host, isFound, beforeMs, afterMs }: Shown): boolean {
    const { expiresAtMs, isLocal, key, site } = target;
    if (isFound) {
      const nowMs = Math.min(beforeMs ?? 0, afterMs ?? 0);
      this.#options.violations.require(nowMs <= expiresAtMs, CHECKER, () => {
        return `${host.name} took the ${key} at ${beforeMs}, though it expired at ${expiresAtMs}`;
      });
      return false;
    }
    if ((afterMs ?? Number.POSITIVE_INFINITY) > expiresAtMs) return true;
    // Whoever deletes it may have another clock. That all share are deleted by an entry of the log.
    return isLocal && wasReached(this.#options.sites[site]!, expiresAtMs);
  }

  /** Whether nothing is left on the disk of a host that has expired by the clocks of all of these. */
  isReaped(host: SimHost, clocks: readonly SimHost[]): boolean {
    const nowMs = Math.min(...clocks.map((each) => each.process?.clock.wallMs() ?? 0));
    return this.#targets.every(({ accessorId, expiresAtMs }) => {
      const isDue = expiresAtMs < nowMs;
      return !isDue || this.#options.originOf([host], accessorId) === undefined;
    });
  }

  async #ask(host: SimHost, question: HttpQuestion): Promise<Came> {
    const came = await this.#options.ask(host, question);
    if (typeof came !== 'string' && !SAID.includes(came.status)) {
      const says = `${question.path} at ${host.name} was answered ${came.status} ${came.text}`;
      this.#options.violations.add('answers', says);
    }
    return came;
  }
}

/** By the answer that shows a token. */
export function linksOf({ Policies, Roles }: Pick<TokenText, 'Policies' | 'Roles'>): Links {
  const [policies, roles] = [Policies, Roles].map((links) => (links ?? []).map(({ ID }) => ID));
  return { policies: policies ?? [], roles: roles ?? [] };
}
