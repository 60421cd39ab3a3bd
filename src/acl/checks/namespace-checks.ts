// What a valid namespace is: a draft goes in, a namespace ready for the log comes out, or a refusal.
// A write of one is an upsert where the path allows it, so there is one builder (decisions 4).

import { invalid } from '../error.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../ids.ts';
import type { Namespace } from '../namespace.ts';
import { requireSameAddress } from '../refusals.ts';
import type { Unstamped } from '../stamped.ts';
import { requireNamespaceName } from '../values/names.ts';
import type { NamespaceDraft } from './drafts.ts';
import { type Links, uniqueIds } from './links.ts';

export interface NamespaceGiven {
  /** The name in the path, or undefined when the path has none. */
  readonly pathName: string | undefined;
  /** The draft's default links as ids, for a namespace of that name. Throws the refusal of an unknown link. */
  resolveLinks(name: NamespaceName): Links;
}

/** The namespace that a write leaves behind: a full replacement. Throws 'id-mismatch' or 'invalid'. */
export function buildNamespace(draft: NamespaceDraft, given: NamespaceGiven): Unstamped<Namespace> {
  const wanted = wantedName(draft, given.pathName);
  requireSameAddress('Namespace Name', { path: wanted, body: draft.name });
  const name = requireNamespaceName(wanted);
  const links = given.resolveLinks(name);
  return {
    name,
    description: draft.description ?? '',
    policyDefaults: uniqueIds(links.policies),
    roleDefaults: uniqueIds(links.roles),
    meta: draft.meta ?? {},
  };
}

/** The name that a request means, whatever it is: of its path, else of its body. */
export function wantedName(draft: NamespaceDraft, pathName = ''): string {
  return pathName === '' ? (draft.name ?? '') : pathName;
}

/** Refuses ('invalid') to delete the namespace that always exists. */
export function requireDeletableNamespace(name: string): void {
  if (name !== DEFAULT_NAMESPACE) return;
  throw invalid(`Delete operation not permitted on the ${DEFAULT_NAMESPACE} namespace`);
}
