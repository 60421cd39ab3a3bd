// Local tokens in namespaces that clients make and delete as everything else that all share. Each of them must be
// void where the end of its namespace can be read, whether a later namespace has its name or not, and leave the
// disks of its datacenter in the end.

import { canarySecret, canaryText } from '../../../checks/federation/canaries.ts';
import type { Applied } from '../../../checks/shadow.ts';
import type { Violations } from '../../../checks/violations.ts';
import { type HttpQuestion, MANAGEMENT_SECRET } from '../../../subject/node-subject.ts';
import type { SimHost } from '../../../world/sim-host.ts';
import type { Stream } from '../../../world/stream.ts';
import { namespaceTarget, type Target, type TenantTarget } from '../../acl-requests.ts';
import type { Came } from '../../came.ts';
import type { Losses } from '../losses.ts';

/** The namespaces of a run. */
export const HOMES: readonly Extract<Target, { readonly kind: 'namespace' }>[] = [
  namespaceTarget('n1'),
  namespaceTarget('n2'),
];

export interface TenantsOptions {
  readonly violations: Violations;
  readonly ask: (host: SimHost, question: HttpQuestion) => Promise<Came>;
  readonly losses: Losses;
  /** Whether a token is on the disk of a host, and the namespace of that name. */
  readonly isLeft: (host: SimHost, accessorId: string) => boolean;
  readonly hasNamespace: (host: SimHost, name: string) => boolean;
}

/** Beyond the local tokens of other clients. */
const FIRST = 2_000_000;

/** What may be said of one that is made or deleted: done, no such namespace, nobody to do it, not known. */
const SAID: readonly number[] = [200, 400, 404, 503, 504];

export class Tenants {
  readonly #options: TenantsOptions;
  /** All that were asked for, by accessor id: some of them may have been made without anybody knowing. */
  readonly #targets = new Map<string, TenantTarget>();
  /** Those that are known to have been made, and that nobody has begun to delete. */
  readonly #known = new Set<TenantTarget>();
  readonly counts = { tenants: 0 };

  constructor(options: TenantsOptions) {
    this.#options = options;
  }

  /** One of the last of the datacenter, if there is one. */
  pick(site: number, stream: Stream): TenantTarget | undefined {
    const recent = [...this.#known].filter((target) => target.site === site).slice(-8);
    return recent.length === 0 ? undefined : stream.pick(recent);
  }

  /** Nobody knows any more which of them a datacenter has. */
  lose(site: number): void {
    for (const target of this.#known) if (target.site === site) this.#known.delete(target);
  }

  /** Makes one. False when there is no such namespace. */
  async make(site: number, host: SimHost, namespace: string): Promise<boolean> {
    const isCertain = this.#options.losses.watch(site);
    const number = FIRST + this.#targets.size;
    const accessorId = `ffffffff-0000-4000-8000-${number.toString(16).padStart(12, '0')}`;
    const secret = canarySecret(site, number);
    const value = canaryText(site, number);
    const known = {
      kind: 'tenant',
      key: `tenant ${accessorId}`,
      accessorId,
      secret,
      site,
    } as const;
    const target = { ...known, namespace, version: null, namespaceIndex: undefined };
    this.#targets.set(accessorId, target);
    const ids = { AccessorID: accessorId, SecretID: secret };
    const body = { ...ids, Description: value, Local: true, Namespace: namespace };
    const came = await this.#asManager(host, { method: 'PUT', path: '/v1/acl/token', body });
    if (typeof came === 'string') return true;
    if (came.status !== 200) return came.status !== 400 && came.status !== 404;
    const { ModifyIndex: index } = JSON.parse(came.text) as { readonly ModifyIndex: number };
    const made = { ...target, version: { value, index } };
    this.#targets.set(accessorId, made);
    if (isCertain()) this.#known.add(made);
    this.counts.tenants += 1;
    return true;
  }

  /** While it is there, its namespace cannot be deleted where its datacenter is the primary. */
  async end(target: TenantTarget, host: SimHost): Promise<void> {
    this.#known.delete(target);
    const path = `/v1/acl/token/${target.accessorId}?ns=${target.namespace}`;
    await this.#asManager(host, { method: 'DELETE', path });
  }

  /** Whether somebody has begun to delete it: then nobody knows whether it is there. */
  isEnding(target: TenantTarget): boolean {
    return !this.#known.has(target);
  }

  /** Tells each which namespace it was made in, by the log of its datacenter. */
  settle(commands: readonly Applied[]): void {
    for (const { command, namespaceIndex, outcome } of commands) {
      const { change } = command;
      if (change.type !== 'token.set' || outcome.kind !== 'applied') continue;
      const target = this.#targets.get(change.token.accessorId);
      if (target !== undefined) target.namespaceIndex = namespaceIndex;
    }
  }

  /** Whether nothing is left on the disk of a host whose namespace is gone there. */
  isReaped(host: SimHost): boolean {
    const { hasNamespace, isLeft } = this.#options;
    return [...this.#targets.values()].every(({ accessorId, namespace }) => {
      return hasNamespace(host, namespace) || !isLeft(host, accessorId);
    });
  }

  async #asManager(host: SimHost, question: Omit<HttpQuestion, 'headers'>): Promise<Came> {
    const headers = { 'X-Service-Token': MANAGEMENT_SECRET };
    const came = await this.#options.ask(host, { ...question, headers });
    if (typeof came !== 'string' && !SAID.includes(came.status)) {
      const says = `${question.path} at ${host.name} was answered ${came.status} ${came.text}`;
      this.#options.violations.add('answers', says);
    }
    return came;
  }
}
