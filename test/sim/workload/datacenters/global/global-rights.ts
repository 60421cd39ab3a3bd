// What each token may do at each place of one chain of the global log, by the policies that it is linked to, itself
// or by its roles: told from the rows that entries leave, by nothing that had a part in the run.

import type { Policy } from '../../../../../src/acl/policy.ts';
import type { Role } from '../../../../../src/acl/role.ts';
import type { Token } from '../../../../../src/acl/token.ts';
import { decodeRecord } from '../../../../../src/state/rows/layout/record-codec.ts';
import { POLICIES, ROLES, TOKENS } from '../../../../../src/state/rows/objects/objects.ts';
import { ROW } from '../../../../../src/state/rows/tables.ts';
import { type Links, mayWrite, type RightAbout, SERVICE } from '../../acl-requests.ts';
import type { Version } from '../../object-model.ts';

/** Decisions, as if they were versions of an object: they have no index. */
export const ALLOWED: NonNullable<Version> = { value: 'allowed', index: 0 };
export const DENIED: NonNullable<Version> = { value: 'denied', index: 0 };

interface Phase {
  readonly from: number;
  readonly version: Version;
}

const NEVER: Phase = { from: 0, version: null };

export class GlobalRights {
  /** By the key of the row. */
  readonly #policies = new Map<string, Policy>();
  readonly #roles = new Map<string, Role>();
  readonly #tokens = new Map<string, Token>();
  readonly #phasesById = new Map<string, Phase[]>();
  /** By id: what a policy or role was from one seq on, until the next. */
  readonly #policyPhases = new Map<string, Was<Policy>[]>();
  readonly #rolePhases = new Map<string, Was<Role>[]>();
  #hasChanged = false;

  /** One row of an entry; undefined: it was deleted. */
  take(seq: number, kind: number, row: string, value: Uint8Array | undefined): void {
    if (kind === ROW.policy) {
      const policy = value && decodeRecord(POLICIES.codec, value);
      noteWas(this.#policyPhases, policy ?? this.#policies.get(row), { from: seq, object: policy });
      keep(this.#policies, row, policy);
    } else if (kind === ROW.role) {
      const role = value && decodeRecord(ROLES.codec, value);
      noteWas(this.#rolePhases, role ?? this.#roles.get(row), { from: seq, object: role });
      keep(this.#roles, row, role);
    } else if (kind === ROW.token)
      keep(this.#tokens, row, value && decodeRecord(TOKENS.codec, value));
    else return;
    this.#hasChanged = true;
  }

  /** All rows of the entry at this seq were taken. */
  settle(seq: number): void {
    if (!this.#hasChanged) return;
    this.#hasChanged = false;
    const all = new Map(
      [...this.#tokens.values()].map((token) => [token.accessorId as string, token]),
    );
    for (const id of new Set([...all.keys(), ...this.#phasesById.keys()])) {
      const token = all.get(id);
      const version = token === undefined ? null : this.#decision(token);
      const phases = this.#phasesById.get(id) ?? [NEVER];
      if (phases.at(-1)!.version !== version) phases.push({ from: seq, version });
      this.#phasesById.set(id, phases);
    }
  }

  /** Whether that token may write, from one seq on until the next; null while there is none. */
  of(accessorId: string): readonly Phase[] {
    return this.#phasesById.get(accessorId) ?? [NEVER];
  }

  /** Whether whoever links to these may write in a datacenter, from one seq on until the next. */
  ofLinks(
    { policies, roles }: Links,
    { about, site, namespace, hasIdentity }: LinkedWhere,
  ): readonly Phase[] {
    const roleChanges = roles.flatMap((id) => this.#rolePhases.get(id) ?? []);
    const byRoles = roleChanges.flatMap(({ object }) => object?.policies ?? []);
    const policyChanges = [...new Set([...policies, ...byRoles])].flatMap((id) => {
      return this.#policyPhases.get(id) ?? [];
    });
    const froms = [
      0,
      ...roleChanges.map(({ from }) => from),
      ...policyChanges.map(({ from }) => from),
    ];
    return [...new Set(froms)]
      .sort((left, right) => left - right)
      .map((from) => {
        const having = roles.flatMap((id) => wasAt(this.#rolePhases, id, from) ?? []);
        const linked = [...policies, ...having.flatMap((role) => role.policies)];
        const isAllowed =
          about === 'key'
            ? linked.some((id) => {
                const policy = wasAt(this.#policyPhases, id, from);
                const isHere = policy?.namespace === namespace && counts(policy, site);
                return isHere && mayWrite(policy.description);
              })
            : hasIdentity ||
              having.some(({ serviceIdentities }) => {
                return serviceIdentities.some((identity) => {
                  return identity.serviceName === SERVICE && counts(identity, site);
                });
              });
        return { from, version: isAllowed ? ALLOWED : DENIED };
      });
  }

  /** Links to what is gone give nothing, nor does a policy of the default namespace in another one. */
  #decision({ namespace, policies, roles }: Token): Version {
    const byRole = [...this.#roles.values()].filter(({ id }) => roles.includes(id));
    const linked = [...policies, ...byRole.flatMap((role) => role.policies)];
    const isAllowed = [...this.#policies.values()].some((policy) => {
      const counts = policy.namespace === namespace && linked.includes(policy.id);
      return counts && mayWrite(policy.description);
    });
    return isAllowed ? ALLOWED : DENIED;
  }
}

/** What is asked, and of whom: in which datacenter, and in which namespace links count. */
interface LinkedWhere {
  readonly about: RightAbout;
  readonly site: string;
  readonly namespace: string;
  /** Whether the token has an identity of its own. */
  readonly hasIdentity: boolean;
}

interface Was<T> {
  readonly from: number;
  readonly object: T | undefined;
}

function noteWas<T extends { readonly id: string }>(
  phases: Map<string, Was<T>[]>,
  known: T | undefined,
  was: Was<T>,
): void {
  if (known === undefined) return;
  const all = phases.get(known.id) ?? [];
  all.push(was);
  phases.set(known.id, all);
}

function wasAt<T>(
  phases: ReadonlyMap<string, readonly Was<T>[]>,
  id: string,
  seq: number,
): T | undefined {
  return phases.get(id)?.findLast(({ from }) => from <= seq)?.object;
}

/** In that datacenter. */
function counts(
  { datacenters }: { readonly datacenters: readonly string[] },
  site: string,
): boolean {
  return datacenters.length === 0 || datacenters.includes(site);
}

function keep<T>(table: Map<string, T>, row: string, object: T | undefined): void {
  if (object === undefined) table.delete(row);
  else table.set(row, object);
}
