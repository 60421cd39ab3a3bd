// What tests of rights share.

import type { SecretId } from '../../../src/acl/ids.ts';
import type { OperationInput, OperationName } from '../../../src/service/operations.ts';
import { type Harness, refusalOf } from '../harness.ts';

export const ID = 'ffffffff-0000-4000-8000-000000000000';

export const page = {};

/** An input for each operation, of which only the right to ask is of interest. */
export const INPUTS: { readonly [Name in OperationName]: OperationInput<Name> } = {
  bootstrap: { secret: undefined },
  'token.create': { draft: {} },
  'token.read': { accessorId: ID, expanded: false },
  'token.read-self': {},
  'token.update': { accessorId: ID, draft: {} },
  'token.clone': { accessorId: ID, description: undefined, namespace: undefined },
  'token.delete': { accessorId: ID },
  'token.list': {
    policy: undefined,
    role: undefined,
    serviceName: undefined,
    authMethod: undefined,
    authMethodNamespace: undefined,
    page,
  },
  'policy.create': { draft: { name: 'p' } },
  'policy.read': { id: ID },
  'policy.read-by-name': { name: 'p' },
  'policy.update': { id: ID, draft: { name: 'p' } },
  'policy.delete': { id: ID },
  'policy.list': { page },
  'role.create': { draft: { name: 'r' } },
  'role.read': { id: ID },
  'role.read-by-name': { name: 'r' },
  'role.update': { id: ID, draft: { name: 'r' } },
  'role.delete': { id: ID },
  'role.list': { policy: undefined, page },
  'auth-method.create': { draft: { name: 'm', type: 'jwt', config: {} } },
  'auth-method.read': { name: 'm' },
  'auth-method.update': { name: 'm', draft: { type: 'jwt', config: {} } },
  'auth-method.delete': { name: 'none' },
  'auth-method.list': { page },
  'binding-rule.create': { draft: { authMethod: 'm', bindType: 'service', bindName: 'x' } },
  'binding-rule.read': { id: ID },
  'binding-rule.update': { id: ID, draft: {} },
  'binding-rule.delete': { id: ID },
  'binding-rule.list': { authMethod: undefined, page },
  'namespace.create': { draft: { name: 'n' } },
  'namespace.read': { name: 'default' },
  'namespace.update': { name: 'n', draft: {} },
  'namespace.delete': { name: 'none' },
  'namespace.list': { page },
  'templated-policy.list': {},
  'templated-policy.read': { name: 'builtin/dns' },
  'templated-policy.preview': { name: 'builtin/dns', variables: { name: undefined } },
  login: { authMethod: 'none', bearerToken: '{}', meta: {}, namespace: undefined },
  'explain-login': { authMethod: 'none', bearerToken: '{}', meta: {}, namespace: undefined },
  logout: {},
  'oidc.auth-url': {
    authMethod: 'none',
    redirectUri: '',
    clientNonce: '',
    meta: {},
    namespace: undefined,
  },
  'oidc.callback': {
    authMethod: 'none',
    state: '',
    code: '',
    clientNonce: '',
    namespace: undefined,
  },
  'oidc.explain': {
    authMethod: 'none',
    state: '',
    code: '',
    clientNonce: '',
    namespace: undefined,
  },
  authorize: { items: [], explain: false },
  'token.authorize': { accessorId: ID, items: [], explain: false },
  'replication.status': {},
  'datacenter.remove': { name: 'none', isForced: false },
  'datacenter.allow': { name: 'none', isForced: false },
};

export function ask(
  harness: Harness,
  name: OperationName,
  secret: SecretId | undefined,
): Promise<string> {
  return refusalOf(harness.run(name, INPUTS[name], { secret }));
}

/**
 * What the first of several answers is: a token is kept from its second use on, so the third comes from
 * memory, and the first after the next change would, too.
 */
export async function askOften(harness: Harness, secret: SecretId): Promise<string> {
  const first = await ask(harness, 'policy.list', secret);
  for (let again = 0; again < 2; again += 1) {
    const later = await ask(harness, 'policy.list', secret);
    if (later !== first) return `first ${first}, then ${later}`;
  }
  return first;
}

export const NO_IDENTITIES = { serviceIdentities: [], nodeIdentities: [], templatedPolicies: [] };
