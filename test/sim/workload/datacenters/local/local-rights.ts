// Local tokens, and those of logins, whose right hangs on what all share and others write: a policy, a role, one that
// counts in one datacenter alone, a role with an identity of one datacenter. What they may do is asked while that is
// changed and deleted elsewhere, and once more when nothing breaks any more.

import { canarySecret, canaryText } from '../../../checks/federation/canaries.ts';
import type { Violations } from '../../../checks/violations.ts';
import { type HttpQuestion, MANAGEMENT_SECRET } from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import {
  authMethodTarget,
  type Links,
  type LocalRightTarget,
  type LoginTarget,
  policyNamed,
  type RightAbout,
  roleNamed,
  type Target,
} from '../../acl-requests.ts';
import type { Came } from '../../came.ts';
import { linksOf } from '../logins.ts';
import type { Losses } from '../losses.ts';

/** Through them logins get links. */
export const LINKING_METHODS = [
  { name: 'm3', locality: 'local' },
  { name: 'm4', locality: 'global' },
] as const;

/** A way by which a token has its right, and all that has to be there for it, in this order. */
interface Way {
  readonly links: Readonly<Record<string, readonly { readonly Name: string }[]>>;
  readonly about: RightAbout;
  readonly roots: readonly Target[];
}

/** What a run has of all that, by how many datacenters there are. */
export interface LocalRoots {
  readonly ways: readonly Way[];
  readonly targets: readonly Target[];
}

export function localRootsOf(siteCount: number): LocalRoots {
  const policy = policyNamed('linked', 'key');
  const scoped = { ...policyNamed('linked-in-one', 'key'), siteCount };
  const role = roleNamed('linked', 'linked');
  const scopedRole = roleNamed('linked-in-one', 'linked-in-one');
  const known = { ...roleNamed('known-in-one', ''), identityOf: siteCount };
  const methods = LINKING_METHODS.map(({ name, locality }) => {
    return authMethodTarget(name, locality, undefined);
  });
  const ways: readonly Way[] = [
    { links: { Policies: [{ Name: 'linked' }] }, about: 'key', roots: [policy] },
    { links: { Policies: [{ Name: 'linked-in-one' }] }, about: 'key', roots: [scoped] },
    { links: { Roles: [{ Name: 'linked' }] }, about: 'key', roots: [policy, role] },
    { links: { Roles: [{ Name: 'linked-in-one' }] }, about: 'key', roots: [scoped, scopedRole] },
    { links: { Roles: [{ Name: 'known-in-one' }] }, about: 'service', roots: [known] },
  ];
  return { ways, targets: [policy, scoped, role, scopedRole, known, ...methods] };
}

/** What the rule of a method gives whoever logs in. */
export function drawBinding(stream: Stream): {
  readonly BindType: string;
  readonly BindName: string;
} {
  const BindType = stream.pick(['policy', 'role'] as const);
  return { BindType, BindName: stream.pick(['linked', 'linked-in-one'] as const) };
}

export interface LocalRightsOptions {
  readonly roots: LocalRoots;
  readonly violations: Violations;
  readonly ask: (host: SimHost, question: HttpQuestion) => Promise<Came>;
  readonly losses: Losses;
}

/** Beyond the local tokens of other clients. */
const FIRST = 3_000_000;

/** What may be said of one that is made: done, nothing of that name, nobody to do it, not known. */
const SAID: readonly number[] = [200, 400, 503, 504];

export class LocalRights {
  readonly #options: LocalRightsOptions;
  #targets: readonly LocalRightTarget[] = [];
  #madeCount = 0;
  readonly counts = { linkedLocals: 0 };

  constructor(options: LocalRightsOptions) {
    this.#options = options;
  }

  /** Nobody knows any more which of them a datacenter has. */
  lose(site: number): void {
    this.#targets = this.#targets.filter((target) => target.site !== site);
  }

  /** One of the datacenter, if there is one. */
  pick(site: number, stream: Stream): LocalRightTarget | undefined {
    const own = this.#of(site);
    return own.length === 0 ? undefined : stream.pick(own);
  }

  /** Whether it is known yet: one may be lost with its datacenter. */
  knows(target: LocalRightTarget): boolean {
    return this.#targets.includes(target);
  }

  /** The last ones of the datacenter, of each way. */
  recent(site: number): readonly LocalRightTarget[] {
    return this.#of(site).slice(-20);
  }

  #of(site: number): readonly LocalRightTarget[] {
    return this.#targets.filter((target) => target.site === site);
  }

  /** Makes a local token. False when what it is to link to is not there. */
  async make(site: number, host: SimHost, way: Way): Promise<boolean> {
    const isCertain = this.#options.losses.watch(site);
    this.#madeCount += 1;
    const number = FIRST + this.#madeCount;
    const accessorId = `dddddddd-1111-4000-8000-${number.toString(16).padStart(12, '0')}`;
    const secret = canarySecret(site, number);
    const ids = { AccessorID: accessorId, SecretID: secret, Description: canaryText(site, number) };
    const came = await this.#options.ask(host, {
      ...{ method: 'PUT', path: '/v1/acl/token' },
      body: { ...ids, Local: true, ...way.links },
      headers: { 'X-Service-Token': MANAGEMENT_SECRET },
    });
    if (typeof came === 'string') return true;
    if (!SAID.includes(came.status)) {
      const says = `a linked token at ${host.name} was answered ${came.status} ${came.text}`;
      this.#options.violations.add('answers', says);
    }
    if (came.status !== 200) return came.status !== 400;
    if (!isCertain()) return true;
    const links = linksOf(JSON.parse(came.text));
    const { about, roots } = way;
    const rootKeys = roots.map(({ key }) => key);
    const key = `local right of ${accessorId}`;
    const target = { kind: 'local-right', key, secret, site, links } as const;
    this.#targets = [...this.#targets, { ...target, about, rootKeys, login: undefined }];
    this.counts.linkedLocals += 1;
    return true;
  }

  /** What a login gave its token. */
  ofLogin(login: LoginTarget): LocalRightTarget {
    const { targets } = this.#options.roots;
    return {
      kind: 'local-right',
      key: `local right of ${login.key}`,
      secret: login.secret,
      site: login.isLocal ? login.site : undefined,
      links: login.links,
      about: 'key',
      rootKeys: targets.map(({ key }) => key),
      login,
    };
  }
}

/** Whether a token links to nothing. */
export function hasNoLinks({ policies, roles }: Links): boolean {
  return policies.length === 0 && roles.length === 0;
}
