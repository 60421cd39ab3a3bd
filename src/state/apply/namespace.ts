// Namespaces. One is deleted only when it holds nothing; `default` stays for ever.

import { AclError, invalid } from '../../acl/error.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../../acl/ids.ts';
import type { Namespace } from '../../acl/namespace.ts';
import { namespaceToUpdateMissing, unknownPolicyId, unknownRoleId } from '../../acl/refusals.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import type { ChangeSet } from '../change-set.ts';
import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import { readNamespace } from '../reads/reads.ts';
import { NAMESPACES } from '../rows/objects/objects.ts';
import { encodeRetiredNamespace, retiredNamespaceKey } from '../rows/objects/retired-namespace.ts';
import type { ObjectCounts } from '../view.ts';
import { type ApplyContext, requireCas, requireLinks } from './checks.ts';

export function applyNamespaceSet(
  context: ApplyContext,
  { presence, namespace }: ChangeOf<'namespace.set'>,
): Answer {
  const existing = readNamespace(context.changes, namespace.name);
  if (presence === 'create' && existing !== undefined) {
    throw new AclError('duplicate', `Namespace "${namespace.name}" already exists`);
  }
  if (presence === 'update' && existing === undefined) {
    throw namespaceToUpdateMissing(namespace.name);
  }
  requireCas(context, existing);
  const made = checked(context, namespace, existing);
  context.changes.put(NAMESPACES, made);
  return { type: 'namespace', namespace: made };
}

function checked(
  context: ApplyContext,
  namespace: Unstamped<Namespace>,
  existing: Namespace | undefined,
): Namespace {
  const links = { policies: namespace.policyDefaults, roles: namespace.roleDefaults };
  const refusals = { policy: unknownPolicyId, role: unknownRoleId };
  requireLinks(context, namespace.name, links, refusals);
  const { nextIndex } = context.changes;
  const createIndex = existing?.createIndex ?? nextIndex;
  return { ...namespace, createIndex, modifyIndex: nextIndex };
}

export function applyNamespaceDelete(
  context: ApplyContext,
  { name }: ChangeOf<'namespace.delete'>,
): Answer {
  if (name === DEFAULT_NAMESPACE) {
    throw invalid('Delete operation not permitted on the default namespace');
  }
  const namespace = readNamespace(context.changes, name);
  requireCas(context, namespace);
  if (namespace === undefined) return { type: 'deleted', existed: false };
  const held = contentsText(context.changes.countsOf(name));
  if (held !== '') throw invalid(`Namespace "${name}" is not empty: it holds ${held}`);
  context.changes.delete(NAMESPACES, namespace);
  return { type: 'deleted', existed: true };
}

/**
 * The primary deleted the namespace: the tokens that are left in it live in this datacenter alone, and
 * are void. They are found by its record until they are reaped.
 */
export function retireNamespace(changes: ChangeSet, name: NamespaceName): void {
  const { tokens } = changes.countsOf(name);
  if (tokens === 0) return;
  changes.putRow(
    retiredNamespaceKey(name),
    encodeRetiredNamespace({ upTo: changes.index, tokens }),
  );
  changes.touch('tokens');
}

/** `2 tokens, 1 policy`, or the empty text. */
function contentsText(counts: ObjectCounts): string {
  const words: readonly [number, string, string][] = [
    [counts.tokens, 'token', 'tokens'],
    [counts.policies, 'policy', 'policies'],
    [counts.roles, 'role', 'roles'],
    [counts.authMethods, 'auth method', 'auth methods'],
    [counts.bindingRules, 'binding rule', 'binding rules'],
  ];
  return words
    .filter(([count]) => count > 0)
    .map(([count, one, many]) => `${count} ${count === 1 ? one : many}`)
    .join(', ');
}
