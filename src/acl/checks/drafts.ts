// What a caller asks for, before any check: the fields of a request body by the domain's names.
// `undefined` means absent (a JSON null counts as absent). Fields that the service itself sends and
// that a caller may send back (indexes, hashes, times of creation) are dropped before this point.

import type { JsonValue } from '../auth-method.ts';

/** A link by id or by name; with both, the id counts. */
export interface LinkDraft {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
}

export interface ServiceIdentityDraft {
  readonly serviceName?: string | undefined;
  readonly datacenters?: readonly string[] | undefined;
}

export interface NodeIdentityDraft {
  readonly nodeName?: string | undefined;
  readonly datacenter?: string | undefined;
}

export interface TemplatedPolicyDraft {
  readonly templateId?: string | undefined;
  readonly templateName?: string | undefined;
  readonly variables?: { readonly name?: string | undefined } | undefined;
  readonly datacenters?: readonly string[] | undefined;
}

export interface TokenDraft {
  readonly accessorId?: string | undefined;
  readonly secretId?: string | undefined;
  readonly description?: string | undefined;
  readonly policies?: readonly LinkDraft[] | undefined;
  readonly roles?: readonly LinkDraft[] | undefined;
  readonly serviceIdentities?: readonly ServiceIdentityDraft[] | undefined;
  readonly nodeIdentities?: readonly NodeIdentityDraft[] | undefined;
  readonly templatedPolicies?: readonly TemplatedPolicyDraft[] | undefined;
  readonly local?: boolean | undefined;
  readonly authMethod?: string | undefined;
  /** RFC 3339 text as it was sent; the zero time counts as absent. */
  readonly expirationTime?: string | undefined;
  readonly expirationTtlNs?: bigint | undefined;
  readonly namespace?: string | undefined;
}

export interface PolicyDraft {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly rules?: string | undefined;
  readonly datacenters?: readonly string[] | undefined;
  readonly namespace?: string | undefined;
}

export interface RoleDraft {
  readonly id?: string | undefined;
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly policies?: readonly LinkDraft[] | undefined;
  readonly serviceIdentities?: readonly ServiceIdentityDraft[] | undefined;
  readonly nodeIdentities?: readonly NodeIdentityDraft[] | undefined;
  readonly templatedPolicies?: readonly TemplatedPolicyDraft[] | undefined;
  readonly namespace?: string | undefined;
}

export interface NamespaceRuleDraft {
  readonly selector?: string | undefined;
  readonly bindNamespace?: string | undefined;
}

export interface AuthMethodDraft {
  readonly name?: string | undefined;
  readonly type?: string | undefined;
  readonly displayName?: string | undefined;
  readonly description?: string | undefined;
  readonly maxTokenTtlNs?: bigint | undefined;
  readonly tokenLocality?: string | undefined;
  readonly config?: { readonly [key: string]: JsonValue } | undefined;
  readonly namespaceRules?: readonly NamespaceRuleDraft[] | undefined;
  readonly namespace?: string | undefined;
}

export interface BindingRuleDraft {
  readonly id?: string | undefined;
  readonly description?: string | undefined;
  readonly authMethod?: string | undefined;
  readonly selector?: string | undefined;
  readonly bindType?: string | undefined;
  readonly bindName?: string | undefined;
  readonly bindVars?: { readonly name?: string | undefined } | undefined;
  readonly namespace?: string | undefined;
}

export interface NamespaceDraft {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
  readonly policyDefaults?: readonly LinkDraft[] | undefined;
  readonly roleDefaults?: readonly LinkDraft[] | undefined;
  readonly meta?: Readonly<Record<string, string>> | undefined;
}
