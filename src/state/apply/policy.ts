// Policies. A delete leaves links to it behind; they are skipped by whoever reads them.

import { isBuiltinPolicy } from '../../acl/built-in/built-ins.ts';
import { requireDeletablePolicy } from '../../acl/checks/policy-checks.ts';
import type { Policy } from '../../acl/policy.ts';
import {
  builtinDatacentersChanged,
  builtinRulesChanged,
  policyNameTaken,
  policyToUpdateMissing,
} from '../../acl/refusals.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import { nameKey } from '../../acl/values/names.ts';
import type { ChangeOf } from '../commands/commands.ts';
import type { Answer } from '../commands/outcome.ts';
import { readPolicy, readPolicyByName } from '../reads/reads.ts';
import { POLICIES } from '../rows/objects/objects.ts';
import { type ApplyContext, requireCas, requireFreshId, requireNamespace } from './checks.ts';

export function applyPolicySet(
  context: ApplyContext,
  { presence, policy }: ChangeOf<'policy.set'>,
): Answer {
  const made = presence === 'create' ? createdPolicy(context, policy) : updated(context, policy);
  context.changes.put(POLICIES, made);
  return { type: 'policy', policy: made };
}

/** The new policy, checked and stamped. */
function createdPolicy(context: ApplyContext, policy: Unstamped<Policy>): Policy {
  const { changes } = context;
  requireNamespace(context, policy.namespace);
  requireFreshId('Policy', policy.id, readPolicy(changes, policy.id));
  requireCas(context, undefined);
  requireFreeName(context, policy, 'create');
  return { ...policy, createIndex: changes.nextIndex, modifyIndex: changes.nextIndex };
}

function updated(context: ApplyContext, policy: Unstamped<Policy>): Policy {
  const { changes } = context;
  const existing = readPolicy(changes, policy.id);
  if (existing?.namespace !== policy.namespace) throw policyToUpdateMissing(policy.id);
  requireCas(context, existing);
  requireFreeName(context, policy, 'update');
  requireBuiltinKept(existing, policy);
  const { id, createIndex } = existing;
  return { ...policy, id, createIndex, modifyIndex: changes.nextIndex };
}

function requireFreeName(
  { changes }: ApplyContext,
  policy: Unstamped<Policy>,
  on: 'create' | 'update',
): void {
  const bearer = readPolicyByName(changes, policy.namespace, policy.name);
  if (bearer === undefined || nameKey(bearer.id) === nameKey(policy.id)) return;
  throw policyNameTaken(policy.name, on);
}

function requireBuiltinKept(existing: Policy, policy: Unstamped<Policy>): void {
  if (!isBuiltinPolicy(existing.id)) return;
  if (existing.rules !== policy.rules) throw builtinRulesChanged(existing.name);
  if (policy.datacenters.length > 0) throw builtinDatacentersChanged(existing.name);
}

export function applyPolicyDelete(
  context: ApplyContext,
  { id }: ChangeOf<'policy.delete'>,
): Answer {
  const policy = readPolicy(context.changes, id);
  requireCas(context, policy);
  if (policy === undefined) return { type: 'deleted', existed: false };
  requireDeletablePolicy(policy);
  context.changes.delete(POLICIES, policy);
  return { type: 'deleted', existed: true };
}
