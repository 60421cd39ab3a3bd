// The list of tokens: at most one filter, void tokens left out, secrets hidden in each namespace in
// which the caller may not write.

import { invalid } from '../../acl/error.ts';
import {
  DEFAULT_NAMESPACE,
  type NamespaceName,
  type PolicyId,
  type RoleId,
  requireLookupUuid,
} from '../../acl/ids.ts';
import type { NamespaceScope } from '../../acl/namespace-selection.ts';
import { isGiven } from '../../acl/values/given.ts';
import type { TokenFilter } from '../../state/view.ts';
import type { OperationInput, OperationOutput } from '../operations.ts';
import { readMetaOf } from '../reading.ts';
import { mayAcl } from '../rights/permissions.ts';
import { namespaceCalled, requireParameterEnabled } from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';
import { listScopeOf } from './list-scope.ts';
import { listed } from './listing.ts';
import { tokenViewOf } from './make-views.ts';

export async function listTokens(
  service: Service,
  input: OperationInput<'token.list'>,
  request: Request,
): Promise<OperationOutput<'token.list'>> {
  const { view, callers } = service;
  const meta = readMetaOf(service, 'tokens');
  const { scope, shows, caller } = await listScopeOf(service, request);
  const { namespacesEnabled } = service.settings;
  requireParameterEnabled('authmethod-ns', input.authMethodNamespace, namespacesEnabled);
  const filter = filterOf(input, scope);
  const { names } = service;
  const hides = memoized((namespace) => !mayAcl(caller, 'write', namespace));
  return listed({
    page: input.page,
    meta,
    fetch: (page) => view.tokens(scope, filter, page),
    keyOf: (token) => token.accessorId,
    keeps: (token) => shows(token.namespace) && !callers.isVoid(token),
    show: (token) => tokenViewOf(token, names, { secretHidden: hides(token.namespace) }),
  });
}

/** Throws 'invalid' for more than one filter and for ids that are none, 'malformed' for a namespace that is none. */
function filterOf(
  input: OperationInput<'token.list'>,
  scope: NamespaceScope,
): TokenFilter | undefined {
  const { policy, role, serviceName, authMethod, authMethodNamespace } = input;
  const filters: TokenFilter[] = [];
  if (isGiven(policy)) filters.push({ by: 'policy', id: policy as PolicyId });
  if (isGiven(role)) filters.push({ by: 'role', id: role as RoleId });
  if (isGiven(serviceName)) filters.push({ by: 'service-name', name: serviceName });
  const selected = scope.kind === 'one' ? scope.name : DEFAULT_NAMESPACE;
  const namespace = isGiven(authMethodNamespace) ? namespaceCalled(authMethodNamespace) : selected;
  if (isGiven(authMethod)) filters.push({ by: 'auth-method', name: authMethod, namespace });
  if (filters.length > 1) {
    throw invalid('can only filter by one of policy, role, serviceName, or methodName at a time');
  }
  const [filter] = filters;
  if (filter?.by === 'policy' || filter?.by === 'role') requireLookupUuid('token', filter.id);
  return filter;
}

/** A list asks the same question for every object, and there are few namespaces. */
function memoized(
  question: (namespace: NamespaceName) => boolean,
): (namespace: NamespaceName) => boolean {
  const answers = new Map<NamespaceName, boolean>();
  return (namespace) => {
    const known = answers.get(namespace);
    if (known !== undefined) return known;
    const answer = question(namespace);
    answers.set(namespace, answer);
    return answer;
  };
}
