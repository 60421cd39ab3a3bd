// Every operation's standing facts: whether it writes, where it may run, and what its caller must be
// allowed to do. The table is total by type.

import type { OperationName } from './operations.ts';
import type { Permission } from './rights/permissions.ts';

/**
 * Where an operation may run. `local`: in any datacenter, from its own state. `global`: only in the
 * primary. `by-token`: in the datacenter that owns the token, which the input's or the stored
 * token's `Local` decides; `by-method`: the same by the token locality of the auth method.
 */
export type OperationScope = 'local' | 'global' | 'by-token' | 'by-method';

export interface OperationFacts {
  readonly kind: 'read' | 'write';
  readonly scope: OperationScope;
  /** Whether a request may name the datacenter that answers; elsewhere the parameter is ignored. */
  readonly takesDatacenter: boolean;
  /** Whether the answer shows the token that it is about: of a local one, its datacenter alone sees it. */
  readonly answersWithToken: boolean;
  /** Of a read: whether the leader knows more than its own state tells. */
  readonly atLeader: boolean;
  /** Whether it is about datacenters and not about objects, so that operators do it alone. */
  readonly isOfOperators?: true;
  /** Whether it asks an identity provider, which may take its time, and is run once. */
  readonly asksProvider?: true;
  /**
   * What the operation asks for; its own function does that, and a test holds both together. `none` where it finds
   * out by other means who may, or where everybody may.
   */
  readonly permission: Permission | 'none';
}

const aclRead: OperationFacts = {
  kind: 'read',
  scope: 'local',
  takesDatacenter: true,
  answersWithToken: false,
  atLeader: false,
  permission: 'acl:read',
};
const aclWrite: OperationFacts = {
  kind: 'write',
  scope: 'global',
  takesDatacenter: false,
  answersWithToken: false,
  atLeader: false,
  permission: 'acl:write',
};
const tokenWrite: OperationFacts = { ...aclWrite, scope: 'by-token', answersWithToken: true };
/** Deployed clients name a datacenter on these, though methods and their rules are global here. */
const methodWrite: OperationFacts = { ...aclWrite, takesDatacenter: true };
const checkedMethodWrite: OperationFacts = { ...methodWrite, asksProvider: true };
const namespaceRead: OperationFacts = { ...aclRead, permission: 'operator:read' };
const operatorWrite: OperationFacts = { ...aclWrite, permission: 'operator:write' };
const datacenterWrite: OperationFacts = { ...operatorWrite, isOfOperators: true };
const logoutWrite: OperationFacts = {
  kind: 'write',
  scope: 'by-token',
  takesDatacenter: true,
  answersWithToken: false,
  atLeader: false,
  permission: 'none',
};
const loginWrite: OperationFacts = {
  ...logoutWrite,
  scope: 'by-method',
  answersWithToken: true,
  asksProvider: true,
};
/** It runs where the login would, so that it says what the login would; it changes nothing that anybody has. */
const loginExplanation: OperationFacts = {
  ...loginWrite,
  answersWithToken: false,
  permission: 'acl:read',
};

export const OPERATION_TABLE: Readonly<Record<OperationName, OperationFacts>> = {
  bootstrap: { ...aclWrite, permission: 'none' },
  'token.create': tokenWrite,
  'token.read': aclRead,
  'token.read-self': { ...aclRead, permission: 'none' },
  'token.update': tokenWrite,
  'token.clone': tokenWrite,
  'token.delete': { ...tokenWrite, answersWithToken: false },
  'token.list': aclRead,
  'policy.create': aclWrite,
  'policy.read': aclRead,
  'policy.read-by-name': aclRead,
  'policy.update': aclWrite,
  'policy.delete': aclWrite,
  'policy.list': aclRead,
  'role.create': aclWrite,
  'role.read': aclRead,
  'role.read-by-name': aclRead,
  'role.update': aclWrite,
  'role.delete': aclWrite,
  'role.list': aclRead,
  'auth-method.create': checkedMethodWrite,
  'auth-method.read': aclRead,
  'auth-method.update': checkedMethodWrite,
  'auth-method.delete': methodWrite,
  'auth-method.list': aclRead,
  'binding-rule.create': methodWrite,
  'binding-rule.read': aclRead,
  'binding-rule.update': methodWrite,
  'binding-rule.delete': methodWrite,
  'binding-rule.list': aclRead,
  'namespace.create': operatorWrite,
  'namespace.read': namespaceRead,
  'namespace.update': operatorWrite,
  'namespace.delete': operatorWrite,
  'namespace.list': namespaceRead,
  'templated-policy.list': aclRead,
  'templated-policy.read': aclRead,
  'templated-policy.preview': aclRead,
  login: loginWrite,
  'explain-login': loginExplanation,
  logout: logoutWrite,
  'oidc.auth-url': loginWrite,
  'oidc.callback': loginWrite,
  'oidc.explain': loginExplanation,
  authorize: { ...aclRead, permission: 'none' },
  'token.authorize': aclRead,
  'replication.status': { ...aclRead, atLeader: true, permission: 'none' },
  'datacenter.remove': datacenterWrite,
  'datacenter.allow': datacenterWrite,
};
