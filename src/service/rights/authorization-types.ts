// The answer to one question of an authorize batch, in the domain's words.

import type { AuthorizationItem } from '../../authz/parse-authorization.ts';

export interface AuthorizationAnswer extends AuthorizationItem {
  readonly allow: boolean;
  readonly explanation: ExplanationView | undefined;
}

/** Why: what decided, in an order that a person reads. */
export interface ExplanationView {
  readonly decision: 'allow' | 'deny';
  /** One sentence. */
  readonly summary: string;
  readonly token:
    | { readonly accessorId: string; readonly description: string; readonly namespace: string }
    | undefined;
  readonly role: { readonly id: string; readonly name: string } | undefined;
  /** `service web`, `node n1 in dc1`, `builtin/dns`: the identity that the policy was made from. */
  readonly identity: string | undefined;
  readonly policy:
    | { readonly id: string; readonly name: string; readonly namespace: string }
    | undefined;
  readonly rule:
    | { readonly text: string; readonly line: number; readonly column: number }
    | undefined;
  readonly decidedBy: 'rule' | 'namespace-default' | 'default-policy';
  /** Rules that also matched and lost, and why. */
  readonly overruled: readonly {
    readonly policy: string;
    readonly rule: string;
    readonly why: string;
  }[];
}
