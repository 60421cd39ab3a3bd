// The names of policies and roles as links show them, kept in memory: a token is read far more often
// than a policy is renamed. A name is dropped the moment the state tells that its object changed.

import { LRUCache } from 'lru-cache';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { upTo } from '../../../cluster/base/up-to.ts';
import type { PolicyId, RoleId } from '../../acl/ids.ts';
import type { StateView } from '../../state/view.ts';
import type { AppliedChange, AppliedEvent } from '../../state/watch.ts';
import type { NamedLink } from '../views.ts';

const NAMES_MAX = 10_000;

export class LinkNames {
  readonly #view: Pick<StateView, 'policy' | 'role'>;
  /** By lower-cased id, as changes name their objects. */
  readonly #policies = new LRUCache<string, string>(upTo(NAMES_MAX));
  readonly #roles = new LRUCache<string, string>(upTo(NAMES_MAX));

  constructor(view: Pick<StateView, 'policy' | 'role'>) {
    this.#view = view;
  }

  /** Links to policies that no longer exist are left out. */
  policies(ids: readonly PolicyId[]): readonly NamedLink[] {
    return linksOf(ids, this.#policies, (id) => this.#view.policy(id)?.name);
  }

  /** Links to roles that no longer exist are left out. */
  roles(ids: readonly RoleId[]): readonly NamedLink[] {
    return linksOf(ids, this.#roles, (id) => this.#view.role(id)?.name);
  }

  /** To be told of every applied change before anybody is answered on account of it. */
  onApplied(event: AppliedEvent): void {
    switch (event.kind) {
      case 'changed':
        for (const change of event.changes) this.#forget(change);
        return;
      case 'replaced':
        this.#policies.clear();
        this.#roles.clear();
        return;
      default:
        unreachable(event);
    }
  }

  #forget({ table, key }: AppliedChange): void {
    if (table === 'policies') this.#policies.delete(key);
    else if (table === 'roles') this.#roles.delete(key);
  }
}

const NO_LINKS: readonly NamedLink[] = [];

function linksOf<Id extends string>(
  ids: readonly Id[],
  known: LRUCache<string, string>,
  lookup: (id: Id) => string | undefined,
): readonly NamedLink[] {
  if (ids.length === 0) return NO_LINKS;
  const links: NamedLink[] = [];
  for (const id of ids) {
    const key = id.toLowerCase();
    const name = known.get(key) ?? remembered(known, key, lookup(id));
    if (name !== undefined) links.push({ id, name });
  }
  return links;
}

/** What does not exist is not remembered: it may be made in the next moment. */
function remembered(
  known: LRUCache<string, string>,
  key: string,
  name: string | undefined,
): string | undefined {
  if (name !== undefined) known.set(key, name);
  return name;
}
