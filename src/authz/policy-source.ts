// Where rights come from: a policy's rules together with the way by which they reach a token.

import type { NamespaceName, PolicyId, RoleId } from '../acl/ids.ts';
import type { RuleSet } from '../rules/rule-set.ts';

export interface PolicyRef {
  readonly id: PolicyId;
  readonly name: string;
  /** Decides where the rules apply: see RuleLayer. */
  readonly namespace: NamespaceName;
}

export interface RoleRef {
  readonly id: RoleId;
  readonly name: string;
}

/** How the policy came to the token; `role` where it came through one. */
export type Via =
  | { readonly kind: 'direct' }
  | { readonly kind: 'role'; readonly role: RoleRef }
  | {
      readonly kind: 'service-identity';
      readonly serviceName: string;
      readonly role: RoleRef | undefined;
    }
  | {
      readonly kind: 'node-identity';
      readonly nodeName: string;
      readonly role: RoleRef | undefined;
    }
  | {
      readonly kind: 'templated-policy';
      readonly templateName: string;
      readonly role: RoleRef | undefined;
    }
  | {
      readonly kind: 'namespace-default';
      readonly namespace: NamespaceName;
      readonly role: RoleRef | undefined;
    };

/**
 * One policy of a token. Compiled forms are kept per `ruleSet` object, so handing in the same object
 * for the same policy shares them between tokens.
 */
export interface PolicySource {
  readonly ruleSet: RuleSet;
  readonly policy: PolicyRef;
  readonly via: Via;
}

/** Whether a policy or identity limited to these datacenters counts here; names compare exactly. */
export function validInDatacenter(datacenters: readonly string[], datacenter: string): boolean {
  return datacenters.length === 0 || datacenters.includes(datacenter);
}
