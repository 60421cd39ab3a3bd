// Local tokens that are changed at home, each by one client after the other, in `default` and in namespaces that come
// and go: what each is at every moment, by what was answered. What was acknowledged is there until it is changed again,
// deleted, or void; what was deleted never comes back, and neither does what an earlier version could do.

import { canarySecret, canaryText } from '../../../checks/federation/canaries.ts';
import type { Applied } from '../../../checks/shadow.ts';
import type { Violations } from '../../../checks/violations.ts';
import { siteName } from '../../../subject/datacenters-subject.ts';
import {
  type HttpAnswer,
  type HttpQuestion,
  MANAGEMENT_SECRET,
} from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import type { ChangedTarget, LocalRightTarget, RightAbout } from '../../acl-requests.ts';
import type { Came } from '../../came.ts';
import { type Shown, wasReached } from '../logins.ts';
import type { Losses } from '../losses.ts';
import type { DrawnLinks } from './changed-links.ts';
import {
  type ArchivedChanges,
  type ChangedToken,
  casQuery,
  drawCas,
  expiryIn,
  type Held,
  heldIn,
  namesOf,
  namespaceQuery,
  type Pending,
  pathOf,
  type TokenText,
} from './changed-token.ts';

export interface ChangedTokensOptions {
  /** Keys of all that they may link to. */
  readonly rootKeys: readonly string[];
  readonly sites: readonly (readonly SimHost[])[];
  readonly violations: Violations;
  readonly losses: Losses;
  readonly ask: (host: SimHost, question: HttpQuestion) => Promise<Came>;
  /** Whether a token is on the disk of a host, and the namespace of that name. */
  readonly isLeft: (host: SimHost, accessorId: string) => boolean;
  readonly hasNamespace: (host: SimHost, name: string) => boolean;
}

/** The checkers' names. */
const CHECKER = 'local tokens';
const CONDITIONS = 'conditions';
/** Beyond the local tokens of other clients. */
const FIRST = 4_000_000;
/** Nobody to do it: nothing was done. */
const IDLE = 503;
const NOT_KNOWN = 504;
const MISMATCH = 409;
/** What it links to, or its namespace, is not there. */
const IS_GONE = /^Cannot find token |ACL not found$/;
const LACKS = /^No such ACL (?:policy|role) |^Namespace "\S+" does not exist/;

export class ChangedTokens {
  readonly #options: ChangedTokensOptions;
  #tokens: readonly ChangedToken[] = [];
  /** All that were asked for, by accessor id: some may have been made without anybody knowing. */
  readonly #all = new Map<string, Pick<ChangedToken, 'namespace' | 'home' | 'expiresAtMs'>>();
  /** Those of datacenters in which an archive is being restored that were left alone before it began. */
  readonly #restoring = new Map<number, ReadonlySet<ChangedToken>>();
  #valueCount = 0;
  readonly counts = { changedMade: 0, changedUpdates: 0, changedDeleted: 0 };

  constructor(options: ChangedTokensOptions) {
    this.#options = options;
  }

  /** One of the datacenter that nobody is about, if there is one; it is the caller's until it is released. */
  take(site: number, stream: Stream): ChangedToken | undefined {
    if (this.#options.losses.isRestoring(site)) return undefined;
    const own = this.#tokens.filter((token) => token.site === site && !token.isBusy);
    const living = own.filter(({ now }) => now !== undefined).slice(-12);
    const from = living.length > 0 && stream.chance(0.85) ? living : own;
    const token = from.length === 0 ? undefined : stream.pick(from);
    if (token !== undefined) token.isBusy = true;
    return token;
  }

  /** All in that namespace of which nobody has to learn anything, as `take`. */
  takeIn(site: number, namespace: string): readonly ChangedToken[] {
    if (this.#options.losses.isRestoring(site)) return [];
    const own = this.#tokens.filter((token) => {
      const isOne = token.site === site && token.namespace === namespace;
      return isOne && !token.isBusy && token.now !== undefined;
    });
    for (const token of own) token.isBusy = true;
    return own;
  }

  release(token: ChangedToken): void {
    token.isBusy = false;
  }

  /** Whether what is known of it still holds: it may be lost with its datacenter. */
  knows(token: ChangedToken): boolean {
    return this.#tokens.includes(token);
  }

  /** The last ones of the datacenter: those that are there, and those that were deleted. */
  recent(site: number): readonly ChangedToken[] {
    const own = this.#tokens.filter((token) => token.site === site);
    const deleted = own.filter(({ now }) => now === undefined);
    return [...own.filter(({ now }) => now !== undefined).slice(-16), ...deleted.slice(-8)];
  }

  targetOf(token: ChangedToken): ChangedTarget {
    const { accessorId, secret, site, namespace, home, expiresAtMs, now } = token;
    const key = `changed token ${accessorId}`;
    const version = now === undefined ? null : { value: now.value, index: now.index };
    return {
      ...{ kind: 'changed', key, accessorId, secret, site, namespace, home, expiresAtMs },
      version,
    };
  }

  /** What it may do at this version of it. */
  rightOf(token: ChangedToken, about: RightAbout): LocalRightTarget {
    const holder = this.targetOf(token);
    const { key, secret, site } = holder;
    return {
      kind: 'local-right',
      key: `right of ${key}`,
      ...{ secret, site, about, holder, login: undefined, rootKeys: this.#options.rootKeys },
      links: token.now?.links ?? { policies: [], roles: [] },
      hasIdentity: token.now?.hasIdentity === true,
    };
  }

  /** Makes one. False when what it is to link to, or its namespace, is not there. */
  async make(
    site: number,
    host: SimHost,
    wish: {
      readonly namespace: string | undefined;
      readonly links: DrawnLinks;
      readonly ttlMs: number | undefined;
    },
  ): Promise<boolean> {
    const { namespace, links, ttlMs } = wish;
    const isCertain = this.#options.losses.watch(site);
    const number = FIRST + this.#all.size;
    const accessorId = `dddddddd-2222-4000-8000-${number.toString(16).padStart(12, '0')}`;
    const secret = canarySecret(site, number);
    const home = { index: undefined };
    this.#all.set(accessorId, { namespace, home, expiresAtMs: Number.POSITIVE_INFINITY });
    const came = await this.#asManager(host, {
      ...{ method: 'PUT', path: `/v1/acl/token${namespaceQuery(namespace)}` },
      body: {
        ...{ AccessorID: accessorId, SecretID: secret, Description: canaryText(site, number) },
        ...{ Local: true, ...links.body },
        ...(ttlMs !== undefined && { ExpirationTTL: `${ttlMs}ms` }),
      },
    });
    if (typeof came === 'string' || came.status === IDLE || came.status === NOT_KNOWN) return true;
    if (came.status !== 200) {
      const isLacking = came.status === 400 || came.status === 404;
      if (!isLacking) this.#complain(host, `making ${accessorId}`, came);
      return false;
    }
    const text = JSON.parse(came.text) as TokenText;
    const expiresAtMs = expiryIn(text);
    this.#all.set(accessorId, { namespace, home, expiresAtMs });
    if (!isCertain()) return true;
    this.counts.changedMade += 1;
    const known = { site, accessorId, secret, namespace, home, expiresAtMs, now: heldIn(text) };
    this.#tokens = [...this.#tokens, { ...known, pending: [], hadUnknown: false, isBusy: false }];
    return true;
  }

  /** Replaces what it says and links to, on the version that there is, on another one, or on whichever. */
  async update(
    token: ChangedToken,
    host: SimHost,
    { links, stream }: { readonly links: DrawnLinks; readonly stream: Stream },
  ): Promise<void> {
    const { now } = token;
    if (now === undefined) return;
    this.#valueCount += 1;
    const value = `changed ${this.#valueCount}`;
    const cas = drawCas(now, stream);
    const came = await this.#asManager(host, {
      ...{ method: 'PUT', path: `${pathOf(token)}${casQuery(token.namespace, cas)}` },
      body: { Description: value, Local: true, ...links.body },
    });
    if (!this.knows(token) || this.#isUndone(token, { came, value, cas })) return;
    const { status, text } = came as HttpAnswer;
    if (status === 200) {
      this.counts.changedUpdates += 1;
      this.#requireFitting(token, host, { came: came as HttpAnswer, cas, now });
      const shown = JSON.parse(text) as TokenText;
      this.#requireExpiry(token, host, shown);
      this.#requireLinks(token, host, { links, shown });
      this.#know(token, heldIn(shown));
      return;
    }
    if (status === MISMATCH) this.#requireMismatch(token, host, { cas, now });
    else if (!(status === 400 && LACKS.test(text)))
      this.#requireGone(token, host, came as HttpAnswer);
  }

  async delete(token: ChangedToken, host: SimHost, stream: Stream): Promise<void> {
    const { now } = token;
    if (now === undefined) return;
    const cas = drawCas(now, stream);
    const path = `${pathOf(token)}${casQuery(token.namespace, cas)}`;
    const came = await this.#asManager(host, { method: 'DELETE', path });
    if (!this.knows(token) || this.#isUndone(token, { came, value: undefined, cas })) return;
    const { status, text } = came as HttpAnswer;
    if (status === 200 && text === 'true') {
      this.counts.changedDeleted += 1;
      this.#requireFitting(token, host, { came: came as HttpAnswer, cas, now });
      this.#know(token, undefined);
    } else if (status === MISMATCH) this.#requireMismatch(token, host, { cas, now });
    else this.#requireGone(token, host, came as HttpAnswer);
  }

  /** Shows itself, so that it is known what became of the changes that nobody knows of. True when it was answered. */
  async learn(token: ChangedToken, host: SimHost): Promise<boolean> {
    const headers = { 'X-Service-Token': token.secret };
    const came = await this.#options.ask(host, {
      ...{ method: 'GET', path: '/v1/acl/token/self', headers },
    });
    if (!this.knows(token)) return true;
    if (typeof came === 'string' || came.status === IDLE || came.status === NOT_KNOWN) return false;
    if (came.status === 403) {
      const isWell =
        token.now === undefined ||
        this.#mayBeVoid(token) ||
        token.pending.some(({ value }) => value === undefined);
      if (!isWell) this.#complain(host, `${token.accessorId} is not there`, came);
      // Whether it was deleted, or is void, nobody knows.
      this.#forget((each) => each === token);
      return true;
    }
    if (came.status !== 200) {
      this.#complain(host, `showing ${token.accessorId}`, came);
      return true;
    }
    const shown = JSON.parse(came.text) as TokenText;
    const held = heldIn(shown);
    const isKnown = token.now?.value === held.value && token.now.index === held.index;
    const isPending =
      token.now !== undefined && token.pending.some(({ value }) => value === held.value);
    if (!isKnown && !isPending)
      this.#complain(
        host,
        `${token.accessorId} is ${JSON.stringify(token.now)} or ${JSON.stringify(token.pending)}`,
        came,
      );
    this.#requireExpiry(token, host, shown);
    this.#know(token, held);
    return true;
  }

  /** Shows itself at a server of another datacenter, to which it must mean nothing. */
  async showElsewhere(token: ChangedToken, host: SimHost): Promise<void> {
    const headers = { 'X-Service-Token': token.secret };
    const came = await this.#options.ask(host, {
      ...{ method: 'GET', path: '/v1/acl/token/self', headers },
    });
    if (typeof came === 'string' || came.status === IDLE || came.status === NOT_KNOWN) return;
    if (came.status !== 403)
      this.#complain(host, `${token.accessorId} of ${siteName(token.site)} elsewhere`, came);
  }

  /** Whether it may be void by somebody's clock, who has deleted it. One that works after its time is a finding. */
  hasExpired(
    { expiresAtMs, key, site }: ChangedTarget,
    { host, isFound, beforeMs, afterMs }: Shown,
  ): boolean {
    if (isFound) {
      const nowMs = Math.min(beforeMs ?? 0, afterMs ?? 0);
      this.#options.violations.require(nowMs <= expiresAtMs, 'revocations', () => {
        return `${host.name} took the ${key} at ${beforeMs}, though it expired at ${expiresAtMs}`;
      });
      return false;
    }
    return wasReached(this.#options.sites[site]!, expiresAtMs);
  }

  /** Whether nothing is left on the disk of a host that has expired by all of these clocks, or lost its namespace. */
  isReaped(host: SimHost, clocks: readonly SimHost[]): boolean {
    const { hasNamespace, isLeft } = this.#options;
    const nowMs = Math.min(...clocks.map((each) => each.process?.clock.wallMs() ?? 0));
    return [...this.#all].every(([accessorId, { namespace, expiresAtMs }]) => {
      const isLost = namespace !== undefined && !hasNamespace(host, namespace);
      return !(isLost || expiresAtMs < nowMs) || !isLeft(host, accessorId);
    });
  }

  /** Tells each which namespace it was made in, by the log of its datacenter. */
  settle(commands: readonly Applied[]): void {
    for (const { command, namespaceIndex, outcome } of commands) {
      const { change } = command;
      if (change.type !== 'token.set' || outcome.kind !== 'applied') continue;
      const known = this.#all.get(change.token.accessorId);
      if (known !== undefined) known.home.index ??= namespaceIndex;
    }
  }

  /** All disks of the datacenter are lost, and its tokens with them. */
  lose(site: number): void {
    this.#restoring.delete(site);
    this.#forget((token) => token.site === site && token.isBusy);
    for (const token of this.#tokens) if (token.site === site) this.#know(token, undefined);
  }

  /** What an archive has that is taken between this moment and the next call of the result. */
  archiving(site: number): () => ArchivedChanges {
    const before = this.#settledOf(site);
    return () => {
      const after = this.#settledOf(site);
      const same = [...after].filter(([id, now]) => before.has(id) && before.get(id) === now);
      const own = this.#tokens.filter((token) => token.site === site);
      return { states: new Map(same), known: new Set(own.map(({ accessorId }) => accessorId)) };
    };
  }

  /** An archive is being restored: until it is known what came of it, nobody changes one. */
  beginRestore(site: number): void {
    this.#forget((token) => token.site === site && (token.isBusy || token.hadUnknown));
    this.#restoring.set(site, new Set(this.#tokens.filter((token) => token.site === site)));
  }

  /** What is there is what the archive has; undefined: that is not known, or what was there before. */
  endRestore(site: number, archived: ArchivedChanges | undefined): void {
    const settled = this.#restoring.get(site) ?? new Set();
    this.#restoring.delete(site);
    this.#forget((token) => {
      if (token.site !== site) return false;
      const { accessorId } = token;
      const isKnown =
        archived?.known.has(accessorId) === false || archived?.states.has(accessorId) === true;
      return !isKnown || !settled.has(token);
    });
    for (const token of this.#tokens) {
      if (token.site === site) this.#know(token, archived?.states.get(token.accessorId));
    }
  }

  #forget(isIt: (token: ChangedToken) => boolean): void {
    this.#tokens = this.#tokens.filter((token) => !isIt(token));
  }

  #settledOf(site: number): ReadonlyMap<string, Held | undefined> {
    const own = this.#tokens.filter(
      (token) => token.site === site && !token.isBusy && !token.hadUnknown,
    );
    return new Map(own.map(({ accessorId, now }) => [accessorId, now]));
  }

  /** Changes that asked for another version come to nothing from now on, and all of them where it is gone. */
  #know(token: ChangedToken, now: Held | undefined): void {
    token.now = now;
    token.pending = token.pending.filter(({ cas }) => {
      return now !== undefined && (cas === undefined || cas === now.index);
    });
  }

  /** Whether it is not known what came of a change, or that nothing did. */
  #isUndone(token: ChangedToken, { came, ...change }: Pending & { readonly came: Came }): boolean {
    if (came === 'not-sent' || (came !== 'lost' && came.status === IDLE)) return true;
    if (came !== 'lost' && came.status !== NOT_KNOWN) return false;
    token.hadUnknown = true;
    token.pending = [...token.pending, change];
    return true;
  }

  /** That a change took effect fits the version that it asked for. */
  #requireFitting(
    { accessorId, pending }: ChangedToken,
    host: SimHost,
    {
      came,
      cas,
      now,
    }: { readonly came: HttpAnswer; readonly cas: number | undefined; readonly now: Held },
  ): void {
    if (cas === undefined || cas === now.index || pending.length > 0) return;
    this.#options.violations.add(
      CONDITIONS,
      `${host.name} changed ${accessorId} at ${cas}, which is at ${now.index}: ${came.text}`,
    );
  }

  /** A refusal fits, too: nobody else has changed it since. */
  #requireMismatch(
    { accessorId, pending }: ChangedToken,
    host: SimHost,
    { cas, now }: { readonly cas: number | undefined; readonly now: Held },
  ): void {
    if (cas !== now.index || pending.length > 0) return;
    this.#options.violations.add(
      CONDITIONS,
      `${host.name} refused a change of ${accessorId} at ${cas}, at which it is`,
    );
  }

  /** What is said of it is that it is not there, and it may be so. */
  #requireGone(token: ChangedToken, host: SimHost, came: HttpAnswer): void {
    const { status, text } = came;
    const isSaid = (status === 200 && text === 'false') || IS_GONE.test(text);
    const isWell = isSaid && (this.#mayBeVoid(token) || token.pending.length > 0);
    if (!isWell) this.#complain(host, `a change of ${token.accessorId}, which is there,`, came);
  }

  #requireExpiry(token: ChangedToken, host: SimHost, shown: TokenText): void {
    const isKept = expiryIn(shown) === token.expiresAtMs && shown.Local === true;
    this.#options.violations.require(isKept, CHECKER, () => {
      return `${host.name} shows ${token.accessorId} with another end, or as none of its own: ${JSON.stringify(shown)}`;
    });
  }

  /** It links to what was asked for, and to nothing else. */
  #requireLinks(
    { accessorId }: ChangedToken,
    host: SimHost,
    { links, shown }: { readonly links: DrawnLinks; readonly shown: TokenText },
  ): void {
    const { Policies, Roles, ServiceIdentities } = links.body;
    const asked = [namesOf(Policies), namesOf(Roles), (ServiceIdentities ?? []).length];
    const said = [namesOf(shown.Policies), namesOf(shown.Roles)];
    const count = (shown.ServiceIdentities ?? []).length;
    const areSame = JSON.stringify(asked) === JSON.stringify([...said, count]);
    this.#options.violations.require(areSame, CHECKER, () => {
      return `${host.name} was to link ${accessorId} to ${JSON.stringify(links.body)}, and answers ${JSON.stringify(shown)}`;
    });
  }

  /** By its time, or by the end of its namespace. */
  #mayBeVoid({ namespace, expiresAtMs }: ChangedToken): boolean {
    return namespace !== undefined || expiresAtMs < Number.POSITIVE_INFINITY;
  }

  #asManager(host: SimHost, question: Omit<HttpQuestion, 'headers'>): Promise<Came> {
    const headers = { 'X-Service-Token': MANAGEMENT_SECRET };
    return this.#options.ask(host, { ...question, headers });
  }

  #complain(host: SimHost, what: string, { status, text }: HttpAnswer): void {
    this.#options.violations.add(
      CHECKER,
      `${host.name}: ${what}, and the answer is ${status} ${text}`,
    );
  }
}
