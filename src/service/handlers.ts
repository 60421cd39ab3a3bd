// Which function runs which operation. Total by type: an operation without one does not compile.

import { replicationStatus } from './datacenters/replication-status.ts';
import { explainLogin, explainOidc } from './logins/explain-login.ts';
import { login, logout } from './logins/login.ts';
import { oidcAuthUrl, oidcCallback } from './logins/oidc-login.ts';
import {
  createAuthMethod,
  deleteAuthMethod,
  listAuthMethods,
  readAuthMethod,
  updateAuthMethod,
} from './objects/auth-methods.ts';
import {
  createBindingRule,
  deleteBindingRule,
  listBindingRules,
  readBindingRule,
  updateBindingRule,
} from './objects/binding-rules.ts';
import { bootstrap } from './objects/bootstrap.ts';
import {
  createNamespace,
  deleteNamespace,
  listNamespaces,
  readNamespace,
  updateNamespace,
} from './objects/namespaces.ts';
import {
  createPolicy,
  deletePolicy,
  listPolicies,
  readPolicy,
  readPolicyByName,
  updatePolicy,
} from './objects/policies.ts';
import {
  createRole,
  deleteRole,
  listRoles,
  readRole,
  readRoleByName,
  updateRole,
} from './objects/roles.ts';
import {
  listTemplates,
  previewTemplatedPolicy,
  readTemplate,
} from './objects/templated-policies.ts';
import { listTokens } from './objects/token-list.ts';
import {
  cloneToken,
  createToken,
  deleteToken,
  readSelfToken,
  readToken,
  updateToken,
} from './objects/tokens.ts';
import type { OperationInput, OperationName, Soon } from './operations.ts';
import { allowDatacenter, removeDatacenter } from './operators/datacenters.ts';
import { authorize, authorizeToken } from './rights/authorize.ts';
import type { Request, Service } from './service.ts';

export type Handler<Name extends OperationName> = (
  service: Service,
  input: OperationInput<Name>,
  request: Request,
) => Soon<Name>;

export const HANDLERS: { readonly [Name in OperationName]: Handler<Name> } = {
  bootstrap,
  'token.create': createToken,
  'token.read': readToken,
  'token.read-self': readSelfToken,
  'token.update': updateToken,
  'token.clone': cloneToken,
  'token.delete': deleteToken,
  'token.list': listTokens,
  'policy.create': createPolicy,
  'policy.read': readPolicy,
  'policy.read-by-name': readPolicyByName,
  'policy.update': updatePolicy,
  'policy.delete': deletePolicy,
  'policy.list': listPolicies,
  'role.create': createRole,
  'role.read': readRole,
  'role.read-by-name': readRoleByName,
  'role.update': updateRole,
  'role.delete': deleteRole,
  'role.list': listRoles,
  'auth-method.create': createAuthMethod,
  'auth-method.read': readAuthMethod,
  'auth-method.update': updateAuthMethod,
  'auth-method.delete': deleteAuthMethod,
  'auth-method.list': listAuthMethods,
  'binding-rule.create': createBindingRule,
  'binding-rule.read': readBindingRule,
  'binding-rule.update': updateBindingRule,
  'binding-rule.delete': deleteBindingRule,
  'binding-rule.list': listBindingRules,
  'namespace.create': createNamespace,
  'namespace.read': readNamespace,
  'namespace.update': updateNamespace,
  'namespace.delete': deleteNamespace,
  'namespace.list': listNamespaces,
  'templated-policy.list': listTemplates,
  'templated-policy.read': readTemplate,
  'templated-policy.preview': previewTemplatedPolicy,
  login,
  'explain-login': explainLogin,
  logout,
  'oidc.auth-url': oidcAuthUrl,
  'oidc.callback': oidcCallback,
  'oidc.explain': explainOidc,
  authorize,
  'token.authorize': authorizeToken,
  'replication.status': replicationStatus,
  'datacenter.remove': removeDatacenter,
  'datacenter.allow': allowDatacenter,
};
