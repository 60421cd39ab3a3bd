// Which namespaces a list shows to its caller: the selected one, or of all those in which the caller
// has the right to read ACLs.

import { DEFAULT_NAMESPACE, type NamespaceName } from '../../acl/ids.ts';
import type { NamespaceScope } from '../../acl/namespace-selection.ts';
import type { StateView } from '../../state/view.ts';
import type { Caller } from '../rights/caller.ts';
import { mayAcl, permissionDenied, requireAcl } from '../rights/permissions.ts';
import { requireNamespaceExists, selectScope } from '../rights/select-namespace.ts';
import type { Request, Service } from '../service.ts';

export interface ListScope {
  readonly scope: NamespaceScope;
  /** Whether the caller may see objects of the namespace. */
  shows(namespace: NamespaceName): boolean;
  /** With the rights that `shows` goes by. */
  readonly caller: Caller;
}

/** Throws 'permission-denied' when the caller may read ACLs in none of the namespaces. */
export async function listScopeOf(
  { view, settings, callers }: Service,
  { call }: Pick<Request, 'call'>,
): Promise<ListScope> {
  const isEnabled = settings.namespacesEnabled;
  const asking = callers.resolve(call.secret);
  const scope = selectScope({ call, token: asking.token, isEnabled });
  if (scope.kind === 'one') {
    requireAcl(asking, 'read', scope.name);
    requireNamespaceExists(view, scope.name);
    return { scope, shows: (namespace) => namespace === scope.name, caller: asking };
  }
  const names = await namespaceNames(view);
  // To read them took a while: what counts is what the caller may do now.
  const caller = callers.resolve(call.secret);
  const readable = new Set(names.filter((name) => mayAcl(caller, 'read', name)));
  if (readable.size === 0) throw permissionDenied(caller, 'acl:read');
  return { scope, shows: (namespace) => readable.has(namespace), caller };
}

/** All that there are. */
export async function namespaceNames(
  view: Pick<StateView, 'namespaces'>,
): Promise<readonly NamespaceName[]> {
  const names = new Set([DEFAULT_NAMESPACE]);
  for await (const slice of view.namespaces({})) for (const { name } of slice) names.add(name);
  return [...names];
}
