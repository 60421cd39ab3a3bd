// Everything that gives rights to a token, found in the state: policies linked directly, through roles,
// through identities and templated policies, and the defaults of its namespace. Links to what no
// longer exists give nothing. Which of it counts in this datacenter is for the authorizer's maker.

import {
  policyOfNodeIdentity,
  policyOfServiceIdentity,
  policyOfTemplatedPolicy,
} from '../../acl/built-in/synthetic-policy.ts';
import type { Identities } from '../../acl/identities.ts';
import type { NamespaceName, PolicyId, RoleId } from '../../acl/ids.ts';
import type { Policy } from '../../acl/policy.ts';
import type { Role } from '../../acl/role.ts';
import type { Token } from '../../acl/token.ts';
import type { RoleRef, Via } from '../../authz/policy-source.ts';
import type { StateView, TableName } from '../../state/view.ts';
import { charsIn } from '../chars-in.ts';
import { dependencyOf } from '../dependencies.ts';

/** A policy, stored or synthetic, and the way by which it came to the token. */
export interface LinkedPolicy {
  readonly policy: Policy;
  readonly via: Via;
}

/** So many links a token may lead to, through its roles and the defaults of its namespace: they are read at once. */
export const LINKS_MAX = 16_384;
/** Characters of what they lead to: each policy and role counted once, and what each identity stands for. */
export const LINKED_TEXT_MAX = 8 * 1024 * 1024;

/** Of a token that leads to more. */
export const TOO_MUCH_LINKED = `the links of the token, those of its roles and of its namespace included, lead to more than ${LINKS_MAX} policies and roles, or to more than ${LINKED_TEXT_MAX} characters of them`;

export interface LinkedPolicies {
  readonly own: readonly LinkedPolicy[];
  /** What the token's namespace gives to all its tokens. */
  readonly defaults: readonly LinkedPolicy[];
  /** Roles of the token and of its namespace's defaults. */
  readonly roles: readonly Role[];
  /** There is more than a token may have: what is here is not all of it, and must not be decided by. */
  readonly isTooMuch: boolean;
  /** `dependencyOf` everything that was looked up, found or not. */
  readonly dependencies: ReadonlySet<string>;
}

/** What a token's rights follow from; tokens that are equal in these share their rights. */
export type RightsOwner = Pick<
  Token,
  'namespace' | 'policies' | 'roles' | 'serviceIdentities' | 'nodeIdentities' | 'templatedPolicies'
>;

type RightsView = Pick<StateView, 'policy' | 'role' | 'namespace'>;

/** Reads each linked object once; the reads happen in one go, without a pause between them. */
export function linkedPolicies(view: RightsView, token: RightsOwner): LinkedPolicies {
  const gathering = new Gathering(view);
  const own = [
    ...gathering.policies(token.policies, { kind: 'direct' }),
    ...gathering.identities(token, token.namespace, undefined),
    ...token.roles.flatMap((id) => gathering.throughRole(id, roleVia)),
  ];
  const defaults = gathering.namespaceDefaults(token.namespace);
  const { roles, dependencies, isTooMuch } = gathering;
  return { own, defaults, roles, dependencies, isTooMuch };
}

/** How a policy comes through a role: the same for the role's links, another for its identities. */
function roleVia(role: RoleRef): Via {
  return { kind: 'role', role };
}

class Gathering {
  readonly roles: Role[] = [];
  readonly dependencies = new Set<string>();
  readonly #view: RightsView;
  #linkCount = 0;
  #textChars = 0;

  constructor(view: RightsView) {
    this.#view = view;
  }

  /** Nothing is looked up any more: it is known by then what to take away. */
  get isTooMuch(): boolean {
    return this.#linkCount > LINKS_MAX || this.#textChars > LINKED_TEXT_MAX;
  }

  policies(ids: readonly PolicyId[], via: Via): readonly LinkedPolicy[] {
    return ids.flatMap((id) => {
      const policy = this.#lookUp('policies', id, () => this.#view.policy(id));
      return policy === undefined ? [] : [{ policy, via }];
    });
  }

  throughRole(id: RoleId, viaOf: (role: RoleRef) => Via): readonly LinkedPolicy[] {
    const role = this.#lookUp('roles', id, () => this.#view.role(id));
    if (role === undefined) return [];
    this.roles.push(role);
    // Each policy that came by it holds this: the role itself may be a mebibyte, and is told with explanations.
    const ref = { id: role.id, name: role.name };
    return [
      ...this.policies(role.policies, viaOf(ref)),
      ...this.identities(role, role.namespace, ref),
    ];
  }

  /** The synthetic policies of whoever holds identities; they speak for the holder's namespace. */
  identities(
    holder: Identities,
    namespace: NamespaceName,
    role: RoleRef | undefined,
  ): readonly LinkedPolicy[] {
    const { serviceIdentities, nodeIdentities, templatedPolicies } = holder;
    this.#linkCount += serviceIdentities.length + nodeIdentities.length + templatedPolicies.length;
    const made: LinkedPolicy[] = [];
    for (const linked of identityPolicies(holder, namespace, role)) {
      if (this.isTooMuch) break;
      made.push(linked);
      // Short as a name is, the rules that it stands for are read as those of any policy.
      this.#textChars += charsIn(linked.policy);
    }
    return made;
  }

  namespaceDefaults(name: NamespaceName): readonly LinkedPolicy[] {
    this.dependencies.add(dependencyOf('namespaces', name));
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

  #lookUp<T extends Policy | Role>(
    table: TableName,
    id: string,
    lookUp: () => T | undefined,
  ): T | undefined {
    this.#linkCount += 1;
    if (this.isTooMuch) return undefined;
    const dependency = dependencyOf(table, id);
    const isNew = !this.dependencies.has(dependency);
    this.dependencies.add(dependency);
    const object = lookUp();
    if (isNew && object !== undefined) this.#textChars += charsIn(object);
    return object;
  }
}

/** Each is made when it is asked for. */
function* identityPolicies(
  { serviceIdentities, nodeIdentities, templatedPolicies }: Identities,
  namespace: NamespaceName,
  role: RoleRef | undefined,
): Generator<LinkedPolicy> {
  for (const identity of serviceIdentities) {
    const via = { kind: 'service-identity', serviceName: identity.serviceName, role } as const;
    yield { policy: policyOfServiceIdentity(identity, namespace), via };
  }
  for (const identity of nodeIdentities) {
    const via = { kind: 'node-identity', nodeName: identity.nodeName, role } as const;
    yield { policy: policyOfNodeIdentity(identity, namespace), via };
  }
  for (const templated of templatedPolicies) {
    const policy = policyOfTemplatedPolicy(templated, namespace);
    const { templateName } = templated;
    const via = { kind: 'templated-policy', templateName, role } as const;
    if (policy !== undefined) yield { policy, via };
  }
}
