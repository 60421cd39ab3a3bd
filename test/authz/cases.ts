// Tables of decisions: rules, and what they must allow and deny.

import type { NamespaceName } from '../../src/acl/ids.ts';
import type { AccessQuery } from '../../src/authz/access-query.ts';
import { authorizerOf, type TestPolicy } from './tokens.ts';

/** `resource:access segment @namespace`; the last two may be missing. */
export function ask(text: string): AccessQuery {
  const [, resource, access, segment, namespace] =
    /^([a-z]+):([a-z-]+)(?: ([^@ ]+))?(?: @(.+))?$/.exec(text) ?? [];
  return {
    resource,
    access,
    segment: segment ?? '',
    namespace: (namespace ?? 'default') as NamespaceName,
  } as AccessQuery;
}

interface Case {
  readonly policies?: readonly (string | TestPolicy)[];
  readonly namespaceDefaults?: readonly (string | TestPolicy)[];
  readonly defaultPolicy?: 'allow' | 'deny';
  readonly allow?: readonly string[];
  readonly deny?: readonly string[];
}

export function check(
  t: { equal(found: unknown, wanted: unknown, about: string): unknown },
  cases: readonly Case[],
): void {
  for (const { allow = [], deny = [], ...token } of cases) {
    const authorizer = authorizerOf(token);
    const about = JSON.stringify(token);
    for (const query of allow) t.equal(authorizer.decide(ask(query)), 'allow', `${query} ${about}`);
    for (const query of deny) t.equal(authorizer.decide(ask(query)), 'deny', `${query} ${about}`);
  }
}
