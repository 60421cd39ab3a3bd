// Which namespaces a list shows to its caller: the selected one, or of all those in which the caller
// has the right to read ACLs.

import { DEFAULT_NAMESPACE, type NamespaceName } from '../acl/ids.ts';
import type { NamespaceScope } from '../acl/namespace-selection.ts';
import type { Caller } from './caller.ts';
import { mayAcl, permissionDenied, requireAcl } from './permissions.ts';
import { requireNamespaceExists, selectScope } from './select-namespace.ts';
import type { Request, Service } from './service.ts';

export interface ListScope {
  readonly scope: NamespaceScope;
  /** Whether the caller may see objects of the namespace. */
  shows(namespace: NamespaceName): boolean;
}

/** Throws 'permission-denied' when the caller may read ACLs in none of the namespaces. */
export async function listScopeOf(
  service: Service,
  { call }: Pick<Request, 'call'>,
  caller: Caller,
): Promise<ListScope> {
  const { view, settings } = service;
  const isEnabled = settings.namespacesEnabled;
  const scope = selectScope({ call, token: caller.token, isEnabled });
  if (scope.kind === 'one') {
    requireAcl(caller, 'read', scope.name);
    requireNamespaceExists(view, scope.name);
    return { scope, shows: (namespace) => namespace === scope.name };
  }
  const readable = new Set<NamespaceName>();
  if (mayAcl(caller, 'read', DEFAULT_NAMESPACE)) readable.add(DEFAULT_NAMESPACE);
  for await (const slice of view.namespaces({})) {
    for (const { name } of slice) if (mayAcl(caller, 'read', name)) readable.add(name);
  }
  if (readable.size === 0) throw permissionDenied(caller, 'acl:read');
  return { scope, shows: (namespace) => readable.has(namespace) };
}
