// What a valid policy is, and what may change about one: a draft goes in, a policy ready for the log
// comes out, or a refusal in the words of compatibility 3.2 and 3.3. Whether a name is taken and
// whether the rule text can be read is asked through functions.

import { isBuiltinPolicy } from '../built-in/built-ins.ts';
import { invalid } from '../error.ts';
import { policyHash } from '../hash.ts';
import { isUuid, type NamespaceName, type PolicyId } from '../ids.ts';
import type { Policy } from '../policy.ts';
import {
  builtinDatacentersChanged,
  builtinRulesChanged,
  policyIdChosen,
  policyNameTaken,
  policyToUpdateMissing,
  requireSameAddress,
} from '../refusals.ts';
import type { Unstamped } from '../stamped.ts';
import { requirePolicyName } from '../values/names.ts';
import type { PolicyDraft } from './drafts.ts';

export interface PolicyLookups {
  /** The policy that bears the name in the policy's namespace, in any letter case. */
  policyNamed(name: string): Pick<Policy, 'id'> | undefined;
  /** Throws the refusal of a rule text that a policy of this namespace may not have. */
  requireRules(rules: string, namespace: NamespaceName): void;
}

export interface NewPolicyGiven extends PolicyLookups {
  readonly freshId: PolicyId;
  readonly namespace: NamespaceName;
}

export interface PolicyUpdateGiven extends PolicyLookups {
  /** The id of the path. */
  readonly pathId: string;
}

/** The policy that a create asks for. Throws 'id-mismatch', 'invalid' or 'duplicate'. */
export function buildNewPolicy(draft: PolicyDraft, given: NewPolicyGiven): Unstamped<Policy> {
  if (draft.id !== undefined && draft.id !== '') throw policyIdChosen();
  const { freshId: id, namespace } = given;
  const name = draft.name ?? '';
  requirePolicyName(name, id);
  if (given.policyNamed(name) !== undefined) throw policyNameTaken(name, 'create');
  const rules = draft.rules ?? '';
  given.requireRules(rules, namespace);
  return withHash({ id, namespace, ...contentOf(draft, rules) });
}

/**
 * The policy that an update leaves behind: a full replacement. Of a built-in only the name and the
 * description may change; rules that are absent stay there. `existing` is undefined when the path
 * names no policy.
 */
export function applyPolicyUpdate(
  existing: Policy | undefined,
  draft: PolicyDraft,
  given: PolicyUpdateGiven,
): Unstamped<Policy> {
  requireSameAddress('Policy ID', { path: given.pathId, body: draft.id });
  if (!isUuid(given.pathId)) throw invalid('Policy ID invalid UUID');
  if (existing === undefined) throw policyToUpdateMissing(given.pathId);
  const { id, namespace } = existing;
  const name = draft.name ?? '';
  requirePolicyName(name, id);
  const bearer = given.policyNamed(name);
  if (bearer !== undefined && bearer.id !== id) throw policyNameTaken(name, 'update');
  if (isBuiltinPolicy(id)) {
    requireBuiltinUnchanged(existing, draft);
    return withHash({ id, namespace, ...contentOf(draft, existing.rules) });
  }
  const rules = draft.rules ?? '';
  given.requireRules(rules, namespace);
  return withHash({ id, namespace, ...contentOf(draft, rules) });
}

function requireBuiltinUnchanged(existing: Policy, draft: PolicyDraft): void {
  if (draft.rules !== undefined && draft.rules !== existing.rules) {
    throw builtinRulesChanged(existing.name);
  }
  if (draft.datacenters !== undefined) {
    throw builtinDatacentersChanged(existing.name);
  }
}

/** Refuses ('invalid') to delete a built-in. */
export function requireDeletablePolicy(policy: Pick<Policy, 'id' | 'name'>): void {
  if (!isBuiltinPolicy(policy.id)) return;
  throw invalid(`Delete operation not permitted on the builtin ${policy.name} policy`);
}

type PolicyContent = Pick<Policy, 'name' | 'description' | 'rules' | 'datacenters'>;

function contentOf(draft: PolicyDraft, rules: string): PolicyContent {
  const { name = '', description = '', datacenters = [] } = draft;
  return { name, description, rules, datacenters };
}

function withHash(policy: Omit<Unstamped<Policy>, 'hash'>): Unstamped<Policy> {
  return { ...policy, hash: policyHash(policy) };
}
