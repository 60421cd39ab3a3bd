// What a valid auth method is, but for its Config, whose keys belong to its type and are checked in
// src/auth-methods. A write of one is an upsert, so there is one builder for create and update. The
// texts are compatibility 3.2 and 3.5.

import { AUTH_METHOD_TYPES, type AuthMethod, type AuthMethodType } from '../auth-method.ts';
import { invalid } from '../error.ts';
import { DEFAULT_NAMESPACE, type NamespaceName } from '../ids.ts';
import { authMethodTypeChanged, requireSameAddress } from '../refusals.ts';
import type { Unstamped } from '../stamped.ts';
import { formatDuration } from '../values/duration.ts';
import { requireAuthMethodName } from '../values/names.ts';
import type { AuthMethodDraft, NamespaceRuleDraft } from './drafts.ts';
import type { TtlLimits } from './token-expiry.ts';

export interface AuthMethodGiven {
  /** The name in the path, or undefined when the path has none. */
  readonly pathName: string | undefined;
  readonly namespace: NamespaceName;
  readonly limits: TtlLimits;
}

/** The name that a write means: the path's if there is one. The service looks up `existing` by it. */
export function authMethodNameOf(
  draft: Pick<AuthMethodDraft, 'name'>,
  pathName: string | undefined,
): string {
  return pathName === undefined || pathName === '' ? (draft.name ?? '') : pathName;
}

/**
 * The auth method that a write leaves behind: a full replacement in which an absent Type is filled in
 * and the name keeps the letter case it was created with. Throws 'id-mismatch' or 'invalid'.
 */
export function buildAuthMethod(
  existing: AuthMethod | undefined,
  draft: AuthMethodDraft,
  given: AuthMethodGiven,
): Unstamped<AuthMethod> {
  const name = authMethodNameOf(draft, given.pathName);
  requireSameAddress('AuthMethod Name', { path: name, body: draft.name });
  requireAuthMethodName(name);
  const type = requireType(existing, draft.type ?? '');
  const maxTokenTtlNs = draft.maxTokenTtlNs ?? 0n;
  requireMaxTokenTtl(maxTokenTtlNs, type, given.limits);
  return {
    name: existing?.name ?? name,
    namespace: given.namespace,
    type,
    displayName: draft.displayName ?? '',
    description: draft.description ?? '',
    maxTokenTtlNs,
    tokenLocality: requireTokenLocality(draft.tokenLocality ?? ''),
    config: draft.config ?? {},
    namespaceRules: requireNamespaceRules(draft.namespaceRules ?? [], given.namespace),
  };
}

/** What newer command lines of deployed servers send with each method, unless they are told another one. */
// biome-ignore lint/suspicious/noTemplateCurlyInString: a template of theirs, taken as it is.
const TOKEN_NAME_FORMAT = '${auth_method_type}-${auth_method_name}';

/** Tokens have no names, and need no format for them. Throws 'invalid' where another one is asked for. */
export function requireNoTokenNameFormat(format = ''): void {
  if (format === '' || format === TOKEN_NAME_FORMAT) return;
  throw invalid(
    'Invalid Auth Method: TokenNameFormat cannot be chosen: tokens have no names, and their descriptions show the Meta of the login',
  );
}

function requireType(existing: AuthMethod | undefined, wanted: string): AuthMethodType {
  if (existing !== undefined) {
    if (wanted === '' || wanted === existing.type) return existing.type;
    throw authMethodTypeChanged();
  }
  const type = AUTH_METHOD_TYPES.find((known) => known === wanted);
  if (type === undefined) {
    throw invalid(`Invalid Auth Method: Type should be one of: [${AUTH_METHOD_TYPES.join(' ')}]`);
  }
  return type;
}

function requireMaxTokenTtl(ttlNs: bigint, type: AuthMethodType, limits: TtlLimits): void {
  if (ttlNs === 0n) {
    if (type !== 'oidc') return;
    throw invalid('Invalid Auth Method: MaxTokenTTL must be set for type "oidc"');
  }
  const subject = `MaxTokenTTL ${formatDuration(ttlNs)} cannot be`;
  if (ttlNs > limits.maxTtlNs) {
    throw invalid(`${subject} more than ${formatDuration(limits.maxTtlNs)}`);
  }
  if (ttlNs < limits.minTtlNs) {
    throw invalid(`${subject} less than ${formatDuration(limits.minTtlNs)}`);
  }
}

function requireTokenLocality(locality: string): AuthMethod['tokenLocality'] {
  if (locality === '' || locality === 'local' || locality === 'global') return locality;
  throw invalid("Invalid Auth Method: TokenLocality should be one of 'local' or 'global'");
}

/** Selectors and templates in the rules depend on the Config, and are checked with it. */
function requireNamespaceRules(
  drafts: readonly NamespaceRuleDraft[],
  namespace: NamespaceName,
): AuthMethod['namespaceRules'] {
  if (drafts.length > 0 && namespace !== DEFAULT_NAMESPACE) {
    throw invalid(
      `Invalid Auth Method: NamespaceRules can only be used in the ${DEFAULT_NAMESPACE} namespace`,
    );
  }
  return drafts.map(({ selector = '', bindNamespace = '' }, place) => {
    if (bindNamespace === '') {
      throw invalid(`Invalid Auth Method: NamespaceRules[${place}] has no BindNamespace set`);
    }
    return { selector, bindNamespace };
  });
}
