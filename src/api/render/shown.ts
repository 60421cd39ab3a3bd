// What rendering needs to see of an answer. The shapes are declared here because this floor lies below
// the service; the service's views have them, and the routes in src/http hold the two together.

import type { AuthMethod } from '../../acl/auth-method.ts';
import type { BindingRule } from '../../acl/binding-rule.ts';
import type { Identities } from '../../acl/identities.ts';
import type { Namespace } from '../../acl/namespace.ts';
import type { Policy } from '../../acl/policy.ts';
import type { Role } from '../../acl/role.ts';
import type { Token } from '../../acl/token.ts';
import type { ShownFederation } from './shown-federation.ts';

/** How this server writes. */
export interface WireStyle {
  /** Objects carry `Namespace`. */
  readonly namespaces: boolean;
}

export interface ShownLink {
  readonly id: string;
  readonly name: string;
}

export interface ShownToken {
  readonly token: Token;
  readonly policies: readonly ShownLink[];
  readonly roles: readonly ShownLink[];
  readonly secretHidden: boolean;
  readonly expanded: ShownExpansion | undefined;
}

export interface ShownExpansion {
  readonly policies: readonly Policy[];
  readonly roles: readonly ShownRole[];
  readonly namespaceDefaultPolicies: readonly ShownLink[] | undefined;
  readonly namespaceDefaultRoles: readonly ShownLink[] | undefined;
  readonly defaultPolicy: string;
  readonly downPolicy: string;
  readonly resolvedByNode: string;
}

export interface ShownRole {
  readonly role: Role;
  readonly policies: readonly ShownLink[];
}

export interface ShownPolicy {
  readonly policy: Policy;
}

export interface ShownAuthMethod {
  readonly method: AuthMethod;
}

export interface ShownBindingRule {
  readonly rule: BindingRule;
}

export interface ShownNamespace {
  readonly namespace: Namespace;
  readonly policyDefaults: readonly ShownLink[];
  readonly roleDefaults: readonly ShownLink[];
}

/** A template of the catalogue. */
export interface ShownTemplate {
  readonly templateName: string;
  readonly schema: string;
  readonly template: string;
  readonly description: string;
}

export interface ShownReplication {
  readonly enabled: boolean;
  readonly running: boolean;
  readonly sourceDatacenter: string;
  /** What deployed servers call it; empty in the primary. */
  readonly replicationType: '' | 'tokens';
  readonly replicatedIndex: number;
  readonly replicatedRoleIndex: number;
  readonly replicatedTokenIndex: number;
  readonly lastSuccessMs: number | undefined;
  readonly lastErrorMs: number | undefined;
  readonly lastErrorMessage: string;
  readonly federation: ShownFederation;
}

export interface ShownAuthorization {
  readonly resource: string;
  readonly access: string;
  readonly segment: string;
  readonly namespace: string | undefined;
  readonly allow: boolean;
  readonly explanation: ShownExplanation | undefined;
}

export interface ShownLoginExplanation {
  readonly granted: boolean;
  readonly summary: string;
  readonly attributes: readonly ShownAttribute[] | undefined;
  readonly namespace: string | undefined;
  readonly namespaceSelector: string | undefined;
  readonly rules: readonly ShownRuleExplanation[];
  readonly token: ShownWouldBeToken | undefined;
}

export interface ShownAttribute {
  readonly name: string;
  readonly value: string | readonly string[];
}

export interface ShownRuleExplanation {
  readonly id: string;
  readonly bindType: string;
  readonly bindName: string;
  readonly selector: string;
  readonly result: string;
  readonly name: string | undefined;
  readonly why: string;
}

export interface ShownWouldBeToken extends Identities {
  readonly description: string;
  readonly policies: readonly ShownLink[];
  readonly roles: readonly ShownLink[];
  readonly local: boolean;
  readonly expirationTtl: string | undefined;
}

export interface ShownExplanation {
  readonly decision: 'allow' | 'deny';
  readonly summary: string;
  readonly token: { readonly accessorId: string; readonly description: string } | undefined;
  readonly role: ShownLink | undefined;
  readonly identity: string | undefined;
  readonly policy: (ShownLink & { readonly namespace: string }) | undefined;
  readonly rule:
    | { readonly text: string; readonly line: number; readonly column: number }
    | undefined;
  readonly decidedBy: string;
  readonly overruled: readonly {
    readonly policy: string;
    readonly rule: string;
    readonly why: string;
  }[];
}
