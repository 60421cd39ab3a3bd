// What applying a command gives: an answer, or a refusal that changed nothing.

import type { AuthMethod } from '../../acl/auth-method.ts';
import type { BindingRule } from '../../acl/binding-rule.ts';
import type { AclErrorCode } from '../../acl/error.ts';
import type { Namespace } from '../../acl/namespace.ts';
import type { Policy } from '../../acl/policy.ts';
import type { Role } from '../../acl/role.ts';
import type { Token } from '../../acl/token.ts';
import type { Position } from '../global-log/cursor.ts';
import type { VerdictAnswer } from '../global-log/verdict.ts';

export type Answer =
  | { readonly type: 'token'; readonly token: Token }
  | { readonly type: 'policy'; readonly policy: Policy }
  | { readonly type: 'role'; readonly role: Role }
  | { readonly type: 'auth-method'; readonly method: AuthMethod }
  | { readonly type: 'binding-rule'; readonly rule: BindingRule }
  | { readonly type: 'namespace'; readonly namespace: Namespace }
  /** Of a delete: whether there was something to delete, and whether that was a local token (told from level 4 on). */
  | { readonly type: 'deleted'; readonly existed: boolean; readonly isLocal?: true }
  /** Of duties that no caller waits for. */
  | { readonly type: 'done' }
  /** Of commands about the global log. */
  | VerdictAnswer;

export type Outcome =
  | {
      readonly kind: 'applied';
      readonly answer: Answer;
      /** The datacenter's index after this command. */
      readonly index: number;
      readonly position: Position;
      /** True when a remembered request id answered and nothing changed. */
      readonly replayed: boolean;
    }
  | { readonly kind: 'refused'; readonly code: AclErrorCode; readonly message: string };

export type AppliedOutcome = Extract<Outcome, { readonly kind: 'applied' }>;

/** Whether it is of a token that no other datacenter has. */
export function isOfLocalToken(answer: Answer): boolean {
  if (answer.type === 'token') return answer.token.local;
  return answer.type === 'deleted' && answer.isLocal === true;
}
