// Turns stored objects into views: links get the names that they have now, links to what no longer
// exists are left out. Whether a secret may be seen is decided by whoever asks for the view.

import type { Namespace } from '../acl/namespace.ts';
import type { PolicyId, RoleId } from '../acl/ids.ts';
import type { Role } from '../acl/role.ts';
import type { Token } from '../acl/token.ts';
import type { StateView } from '../state/view.ts';
import type { ExpandedToken, NamedLink, NamespaceView, RoleView, TokenView } from './views.ts';

/** Names that one answer remembers; a long list asks for few names many times. */
const NAMES_MAX = 10_000;

/** The names of linked objects, asked once for each answer. */
export class LinkNames {
  readonly #view: Pick<StateView, 'policy' | 'role'>;
  readonly #names = new Map<string, string | undefined>();

  constructor(view: Pick<StateView, 'policy' | 'role'>) {
    this.#view = view;
  }

  policies(ids: readonly PolicyId[]): readonly NamedLink[] {
    return ids.flatMap((id) => this.#link(id, `policy ${id}`, () => this.#view.policy(id)?.name));
  }

  roles(ids: readonly RoleId[]): readonly NamedLink[] {
    return ids.flatMap((id) => this.#link(id, `role ${id}`, () => this.#view.role(id)?.name));
  }

  #link(id: string, key: string, lookup: () => string | undefined): readonly NamedLink[] {
    if (!this.#names.has(key)) {
      if (this.#names.size >= NAMES_MAX) this.#names.clear();
      this.#names.set(key, lookup());
    }
    const name = this.#names.get(key);
    return name === undefined ? [] : [{ id, name }];
  }
}

export function tokenViewOf(
  token: Token,
  names: LinkNames,
  shown: { readonly secretHidden: boolean; readonly expanded?: ExpandedToken },
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
