// Everything that gives rights to a token, found in the state: policies linked directly, through roles,
// through identities and templated policies, and the defaults of its namespace. Links to what no
// longer exists give nothing. Which of it counts in this datacenter is for the authorizer's maker.

import type { NodeIdentity, ServiceIdentity, TemplatedPolicy } from '../acl/identities.ts';
import type { NamespaceName, PolicyId, RoleId } from '../acl/ids.ts';
import type { Policy } from '../acl/policy.ts';
import type { Role } from '../acl/role.ts';
import {
  policyOfNodeIdentity,
  policyOfServiceIdentity,
  policyOfTemplatedPolicy,
} from '../acl/synthetic-policy.ts';
import type { Token } from '../acl/token.ts';
import type { RoleRef, Via } from '../authz/policy-source.ts';
import type { StateView, TableName } from '../state/view.ts';

/** A policy, stored or synthetic, and the way by which it came to the token. */
export interface LinkedPolicy {
  readonly policy: Policy;
  readonly via: Via;
}

export interface LinkedPolicies {
  readonly own: readonly LinkedPolicy[];
  /** What the token's namespace gives to all its tokens. */
  readonly defaults: readonly LinkedPolicy[];
  /** Roles of the token and of its namespace's defaults. */
  readonly roles: readonly Role[];
  /** `dependencyOf` everything that was looked up, found or not. */
  readonly dependencies: ReadonlySet<string>;
}

/** What a token's rights follow from; tokens that are equal in these share their rights. */
export type RightsOwner = Pick<
  Token,
  'namespace' | 'policies' | 'roles' | 'serviceIdentities' | 'nodeIdentities' | 'templatedPolicies'
>;

type RightsView = Pick<StateView, 'policy' | 'role' | 'namespace'>;

/** What an applied change of an object is known by: its table and its id or name. */
export function dependencyOf(table: TableName, id: string): string {
  return `${table} ${id.toLowerCase()}`;
}

/** Reads each linked object once; the reads happen in one go, without a pause between them. */
export function linkedPolicies(view: RightsView, token: RightsOwner): LinkedPolicies {
  const gathering = new Gathering(view);
  const own = [
    ...gathering.policies(token.policies, { kind: 'direct' }),
    ...identityPolicies(token, token.namespace, undefined),
    ...token.roles.flatMap((id) => gathering.throughRole(id, roleVia)),
  ];
  const defaults = gathering.namespaceDefaults(token.namespace);
  const { roles, dependencies } = gathering;
  return { own, defaults, roles, dependencies };
}

/** How a policy comes through a role: the same for the role's links, another for its identities. */
function roleVia(role: RoleRef): Via {
  return { kind: 'role', role };
}

class Gathering {
  readonly roles: Role[] = [];
  readonly dependencies = new Set<string>();
  readonly #view: RightsView;

  constructor(view: RightsView) {
    this.#view = view;
  }

  policies(ids: readonly PolicyId[], via: Via): readonly LinkedPolicy[] {
    return ids.flatMap((id) => {
      this.#dependOn('policies', id);
      const policy = this.#view.policy(id);
      return policy === undefined ? [] : [{ policy, via }];
    });
  }

  throughRole(id: RoleId, viaOf: (role: RoleRef) => Via): readonly LinkedPolicy[] {
    this.#dependOn('roles', id);
    const role = this.#view.role(id);
    if (role === undefined) return [];
    this.roles.push(role);
    return [
      ...this.policies(role.policies, viaOf(role)),
      ...identityPolicies(role, role.namespace, role),
    ];
  }

  namespaceDefaults(name: NamespaceName): readonly LinkedPolicy[] {
    this.#dependOn('namespaces', name);
    const namespace = this.#view.namespace(name);
    if (namespace === undefined) return [];
    const viaOf = (role: RoleRef | undefined): Via => ({
      kind: 'namespace-default',
      namespace: name,
      role,
    });
    return [
      ...this.policies(namespace.policyDefaults, viaOf(undefined)),
      ...namespace.roleDefaults.flatMap((id) => this.throughRole(id, viaOf)),
    ];
  }

  #dependOn(table: TableName, id: string): void {
    this.dependencies.add(dependencyOf(table, id));
  }
}

/** The synthetic policies of whoever holds identities; they speak for the holder's namespace. */
function identityPolicies(
  holder: {
    readonly serviceIdentities: readonly ServiceIdentity[];
    readonly nodeIdentities: readonly NodeIdentity[];
    readonly templatedPolicies: readonly TemplatedPolicy[];
  },
  namespace: NamespaceName,
  role: RoleRef | undefined,
): readonly LinkedPolicy[] {
  return [
    ...holder.serviceIdentities.map((identity) => ({
      policy: policyOfServiceIdentity(identity, namespace),
      via: { kind: 'service-identity', serviceName: identity.serviceName, role } as const,
    })),
    ...holder.nodeIdentities.map((identity) => ({
      policy: policyOfNodeIdentity(identity, namespace),
      via: { kind: 'node-identity', nodeName: identity.nodeName, role } as const,
    })),
    ...holder.templatedPolicies.flatMap((templated) => {
      const policy = policyOfTemplatedPolicy(templated, namespace);
      const { templateName } = templated;
      const via = { kind: 'templated-policy', templateName, role } as const;
      return policy === undefined ? [] : [{ policy, via }];
    }),
  ];
}
