// Checks that several commands share. Each throws the refusal; none changes anything.

import { AclError, invalid } from '../../acl/error.ts';
import {
  type AccessorId,
  DEFAULT_NAMESPACE,
  lookupBytes,
  type NamespaceName,
} from '../../acl/ids.ts';
import { unknownNamespace } from '../../acl/refusals.ts';
import type { ChangeSet } from '../change-set.ts';
import { hasNamespace } from '../reads/reads.ts';
import { POLICIES, ROLES } from '../rows/objects/objects.ts';

/** What every handler of a command gets. */
export interface ApplyContext {
  readonly changes: ChangeSet;
  /** The proposing leader's wall clock. */
  readonly timeMs: number;
  readonly cas: number | undefined;
  /** Who asked; undefined for duties. */
  readonly principal: AccessorId | undefined;
}

/** `cas`: the object's ModifyIndex as the caller knows it; 0 means that there is none. */
export function requireCas(
  { cas }: ApplyContext,
  existing: { readonly modifyIndex: number } | undefined,
): void {
  if (cas === undefined || cas === (existing?.modifyIndex ?? 0)) return;
  const found =
    existing === undefined ? 'it does not exist' : `its ModifyIndex is ${existing.modifyIndex}`;
  throw new AclError('cas-mismatch', `The object is not as cas=${cas} expects: ${found}`);
}

export function requireNamespace({ changes }: ApplyContext, name: NamespaceName): void {
  if (hasNamespace(changes, name)) return;
  throw unknownNamespace(name);
}

/** An id of a new object. Ids are random: meeting one again means that a caller chose it. */
export function requireFreshId(kind: string, id: string, existing: unknown): void {
  if (lookupBytes(id) === undefined) throw invalid(`${kind} ID invalid UUID`);
  if (existing === undefined) return;
  throw new AclError('duplicate', `Invalid ${kind}: ID is already in use`);
}

interface Links {
  readonly policies: readonly string[];
  readonly roles: readonly string[];
}

/** Links lead into the namespace of the object that has them, or into `default`. */
export function requireLinks(
  { changes: { links } }: ApplyContext,
  namespace: NamespaceName,
  { policies, roles }: Links,
  refusals: { policy(id: string): AclError; role(id: string): AclError },
): void {
  for (const id of roles) {
    if (!isWithinReach(namespace, links.namespaceOf(ROLES, id))) throw refusals.role(id);
  }
  for (const id of policies) {
    if (!isWithinReach(namespace, links.namespaceOf(POLICIES, id))) throw refusals.policy(id);
  }
}

function isWithinReach(from: NamespaceName, target: NamespaceName | undefined): boolean {
  return target === from || target === DEFAULT_NAMESPACE;
}
