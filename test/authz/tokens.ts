// Builds authorizers for tests from rule texts, with all the defaults that a case does not mention.

import type { NamespaceName, PolicyId } from '../../src/acl/ids.ts';
import { type Authorizer, compileAuthorizer } from '../../src/authz/authorizer.ts';
import type { PolicySource, Via } from '../../src/authz/policy-source.ts';
import { parseRules } from '../../src/rules/parse-rules.ts';

export interface TestPolicy {
  readonly rules: string;
  readonly name?: string;
  readonly namespace?: string;
  readonly via?: Via;
}

export function sourceOf(policy: TestPolicy): PolicySource {
  const name = policy.name ?? 'a-policy';
  return {
    ruleSet: parseRules(policy.rules),
    policy: {
      id: `id-of-${name}` as PolicyId,
      name,
      namespace: (policy.namespace ?? 'default') as NamespaceName,
    },
    via: policy.via ?? { kind: 'direct' },
  };
}

export function authorizerOf(options: {
  readonly policies?: readonly (string | TestPolicy)[];
  readonly namespaceDefaults?: readonly (string | TestPolicy)[];
  readonly defaultPolicy?: 'allow' | 'deny';
}): Authorizer {
  const sources = (policies: readonly (string | TestPolicy)[] | undefined) =>
    (policies ?? []).map((policy) =>
      sourceOf(typeof policy === 'string' ? { rules: policy } : policy),
    );
  return compileAuthorizer({
    sources: sources(options.policies),
    namespaceDefaults: sources(options.namespaceDefaults),
    defaultPolicy: options.defaultPolicy ?? 'deny',
  });
}
