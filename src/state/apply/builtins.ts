// The objects that every datacenter has: the first management token by bootstrap, and the built-ins
// that the leader makes sure of. Making sure twice changes nothing.

import { isBuiltinPolicy } from '../../acl/built-in/built-ins.ts';
import { policyHash } from '../../acl/hash.ts';
import { ANONYMOUS_ACCESSOR } from '../../acl/ids.ts';
import type { Policy } from '../../acl/policy.ts';
import { bootstrapDone, bootstrapSecretInUse, wrongResetIndex } from '../../acl/refusals.ts';
import type { Unstamped } from '../../acl/stamped.ts';
import type { Token } from '../../acl/token.ts';
import type { ChangeSet } from '../change-set.ts';
import type { ChangeOf } from '../commands/commands.ts';
import { bootstrapsOnce } from '../commands/feature-levels.ts';
import type { Answer } from '../commands/outcome.ts';
import { hasNamespace, isIdInUse, readPolicy, readPolicyByName } from '../reads/reads.ts';
import { NAMESPACES, POLICIES, TOKENS } from '../rows/objects/objects.ts';
import { type ApplyContext, requireNamespace } from './checks.ts';
import { requireFreshIds, requireRights } from './token.ts';

export function applyBootstrap(
  context: ApplyContext,
  { token, resetIndex }: ChangeOf<'bootstrap'>,
): Answer {
  const { changes } = context;
  requireBootstrapAllowed(changes, resetIndex);
  requireNamespace(context, token.namespace);
  if (isIdInUse(changes, token.secretId)) throw bootstrapSecretInUse();
  requireFreshIds(context, token);
  requireRights(context, token);
  const made = { ...token, createIndex: changes.nextIndex, modifyIndex: changes.nextIndex };
  changes.markBootstrap();
  changes.put(TOKENS, made);
  return { type: 'token', token: made };
}

/** Once; and again when the caller names the index of the last time, which only an operator can. */
function requireBootstrapAllowed(changes: ChangeSet, resetIndex: number | undefined): void {
  const last = changes.bootstrapIndex;
  if (last === undefined || last === resetIndex) return;
  if (resetIndex === undefined) throw bootstrapDone(last);
  throw wrongResetIndex(`specified ${resetIndex}`, last);
}

/** Makes what is missing; a built-in policy whose rules are of another release gets the new ones. */
export function applyEnsureBuiltins(
  { changes }: ApplyContext,
  { policies, tokens, namespace }: ChangeOf<'ensure-builtins'>,
): Answer {
  if (!hasNamespace(changes, namespace.name)) {
    changes.put(NAMESPACES, {
      ...namespace,
      createIndex: changes.nextIndex,
      modifyIndex: changes.nextIndex,
    });
  }
  for (const policy of policies) ensurePolicy(changes, policy);
  for (const token of tokens) ensureToken(changes, token);
  return { type: 'done' };
}

function ensurePolicy(changes: ChangeSet, policy: Unstamped<Policy>): void {
  const existing = readPolicy(changes, policy.id);
  if (existing !== undefined) {
    if (isBuiltinPolicy(existing.id)) refreshRules(changes, existing, policy.rules);
    return;
  }
  // Somebody else's policy of that name came first: it stays, and the built-in has to wait.
  if (readPolicyByName(changes, policy.namespace, policy.name) !== undefined) return;
  changes.put(POLICIES, {
    ...policy,
    createIndex: changes.nextIndex,
    modifyIndex: changes.nextIndex,
  });
}

function refreshRules(changes: ChangeSet, existing: Policy, rules: string): void {
  if (existing.rules === rules) return;
  const policy = { ...existing, rules, modifyIndex: changes.nextIndex };
  changes.put(POLICIES, { ...policy, hash: policyHash(policy) });
}

/** A management token from the configuration counts as the bootstrap: once there was one, it is made no more. */
function ensureToken(changes: ChangeSet, token: Unstamped<Token>): void {
  if (isIdInUse(changes, token.accessorId) || isIdInUse(changes, token.secretId)) return;
  if (token.accessorId !== ANONYMOUS_ACCESSOR) {
    const isFirst = changes.bootstrapIndex === undefined;
    if (!isFirst && bootstrapsOnce(changes.level)) return;
    if (isFirst) changes.markBootstrap();
  }
  changes.put(TOKENS, { ...token, createIndex: changes.nextIndex, modifyIndex: changes.nextIndex });
}
