// Auth methods. Deleting one deletes its binding rules in the same command and makes its tokens void
// at once; the tokens themselves are reaped later, found through the record of the retired method.

import type { AuthMethod } from '../../acl/auth-method.ts';
import { authMethodTypeChanged } from '../../acl/refusals.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import type { ChangeSet } from '../change-set.ts';
import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import { readAuthMethod, rulesOfMethod } from '../reads/reads.ts';
import { AUTH_METHODS, BINDING_RULES, methodKey } from '../rows/objects/objects.ts';
import { NO_BYTES } from '../rows/tables.ts';
import { type ApplyContext, requireCas, requireNamespace } from './checks.ts';

export function applyAuthMethodSet(
  context: ApplyContext,
  { method }: ChangeOf<'auth-method.set'>,
): Answer {
  const made = setMethod(context, method);
  context.changes.put(AUTH_METHODS, made);
  return { type: 'auth-method', method: made };
}

/** An existing method is replaced; it keeps its name's letter case, its type and its CreateIndex. */
function setMethod(context: ApplyContext, method: Unstamped<AuthMethod>): AuthMethod {
  const { nextIndex } = context.changes;
  requireNamespace(context, method.namespace);
  const existing = readAuthMethod(context.changes, method.namespace, method.name);
  requireCas(context, existing);
  if (existing === undefined) return { ...method, createIndex: nextIndex, modifyIndex: nextIndex };
  if (existing.type !== method.type) throw authMethodTypeChanged();
  const { name, createIndex } = existing;
  return { ...method, name, createIndex, modifyIndex: nextIndex };
}

export function applyAuthMethodDelete(
  context: ApplyContext,
  { namespace, name }: ChangeOf<'auth-method.delete'>,
): Answer {
  const { changes } = context;
  const method = readAuthMethod(changes, namespace, name);
  requireCas(context, method);
  if (method === undefined) return { type: 'deleted', existed: false };
  for (const rule of rulesOfMethod(changes, namespace, name)) {
    changes.delete(BINDING_RULES, rule);
  }
  changes.delete(AUTH_METHODS, method);
  retireMethod(changes, method);
  return { type: 'deleted', existed: true };
}

/** The method was deleted: its tokens are void, and found by its record until they are reaped. */
export function retireMethod(changes: ChangeSet, method: AuthMethod): void {
  if (changes.get(methodKey('methodTokens', method)) === undefined) return;
  changes.putRow(methodKey('retiredMethod', method), NO_BYTES);
  // Its tokens are gone for all who list them, though their rows are still there.
  changes.touch('tokens');
}
