// A binding rule: how the claims of a login become roles, policies or identities.

import type { BindingRuleId, NamespaceName } from './ids.ts';

export const BIND_TYPES = ['service', 'node', 'role', 'policy', 'templated-policy'] as const;
export type BindType = (typeof BIND_TYPES)[number];

export interface BindingRule {
  readonly id: BindingRuleId;
  readonly namespace: NamespaceName;
  readonly description: string;
  /** Name of the auth method, in the same namespace. Immutable. */
  readonly authMethod: string;
  readonly selector: string;
  readonly bindType: BindType;
  readonly bindName: string;
  readonly bindVars: { readonly name: string } | undefined;
  readonly createIndex: number;
  readonly modifyIndex: number;
}
