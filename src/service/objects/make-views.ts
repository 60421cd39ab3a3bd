// Turns stored objects into views: links get the names that they have now, links to what no longer
// exists are left out. Whether a secret may be seen is decided by whoever asks for the view.

import type { Namespace } from '../../acl/namespace.ts';
import type { Role } from '../../acl/role.ts';
import type { Token } from '../../acl/token.ts';
import type { ExpandedToken, NamespaceView, RoleView, TokenView } from '../views.ts';
import type { LinkNames } from './link-names.ts';

export function tokenViewOf(
  token: Token,
  names: LinkNames,
  shown: { readonly secretHidden: boolean; readonly expanded?: ExpandedToken | undefined },
): TokenView {
  return {
    kind: 'token',
    token,
    policies: names.policies(token.policies),
    roles: names.roles(token.roles),
    secretHidden: shown.secretHidden,
    expanded: shown.expanded,
  };
}

export function roleViewOf(role: Role, names: LinkNames): RoleView {
  return { kind: 'role', role, policies: names.policies(role.policies) };
}

export function namespaceViewOf(namespace: Namespace, names: LinkNames): NamespaceView {
  return {
    kind: 'namespace',
    namespace,
    policyDefaults: names.policies(namespace.policyDefaults),
    roleDefaults: names.roles(namespace.roleDefaults),
  };
}
