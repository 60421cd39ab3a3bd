// From a decoded body to the draft of the domain: the one place where the names that callers write
// become the names that the rest of the program knows. Nothing is checked or filled in here.

import type {
  AuthMethodDraft,
  BindingRuleDraft,
  LinkDraft,
  NamespaceDraft,
  PolicyDraft,
  RoleDraft,
  TemplatedPolicyDraft,
  TokenDraft,
} from '../../acl/checks/drafts.ts';
import type {
  AuthMethodBody,
  BindingRuleBody,
  LinkBody,
  NamespaceBody,
  PolicyBody,
  RoleBody,
  TemplatedPolicyBody,
  TokenBody,
} from './bodies.ts';

export function tokenDraftOf(body: TokenBody): TokenDraft {
  return {
    accessorId: body.AccessorID,
    secretId: body.SecretID,
    description: body.Description,
    ...linkDraftsOf(body),
    roles: body.Roles?.map(linkDraftOf),
    local: body.Local,
    authMethod: body.AuthMethod,
    expirationTime: body.ExpirationTime,
    expirationTtlNs: nanosecondsOf(body.ExpirationTTL),
    namespace: body.Namespace,
  };
}

export function policyDraftOf(body: PolicyBody): PolicyDraft {
  return {
    id: body.ID,
    name: body.Name,
    description: body.Description,
    rules: body.Rules,
    datacenters: body.Datacenters,
    namespace: body.Namespace,
  };
}

export function roleDraftOf(body: RoleBody): RoleDraft {
  return {
    id: body.ID,
    name: body.Name,
    description: body.Description,
    ...linkDraftsOf(body),
    namespace: body.Namespace,
  };
}

export function authMethodDraftOf(body: AuthMethodBody): AuthMethodDraft {
  return {
    name: body.Name,
    type: body.Type,
    displayName: body.DisplayName,
    description: body.Description,
    maxTokenTtlNs: nanosecondsOf(body.MaxTokenTTL),
    tokenLocality: body.TokenLocality,
    config: body.Config,
    namespaceRules: body.NamespaceRules?.map((rule) => ({
      selector: rule.Selector,
      bindNamespace: rule.BindNamespace,
    })),
    namespace: body.Namespace,
  };
}

export function bindingRuleDraftOf(body: BindingRuleBody): BindingRuleDraft {
  return {
    id: body.ID,
    description: body.Description,
    authMethod: body.AuthMethod,
    selector: body.Selector,
    bindType: body.BindType,
    bindName: body.BindName,
    bindVars: body.BindVars,
    namespace: body.Namespace,
  };
}

export function namespaceDraftOf(body: NamespaceBody): NamespaceDraft {
  return {
    name: body.Name,
    description: body.Description,
    policyDefaults: body.ACLs?.PolicyDefaults?.map(linkDraftOf),
    roleDefaults: body.ACLs?.RoleDefaults?.map(linkDraftOf),
    meta: body.Meta,
  };
}

/** The links that tokens and roles have in common. */
function linkDraftsOf(body: TokenBody | RoleBody) {
  return {
    policies: body.Policies?.map(linkDraftOf),
    serviceIdentities: body.ServiceIdentities?.map((identity) => ({
      serviceName: identity.ServiceName,
      datacenters: identity.Datacenters,
    })),
    nodeIdentities: body.NodeIdentities?.map((identity) => ({
      nodeName: identity.NodeName,
      datacenter: identity.Datacenter,
    })),
    templatedPolicies: body.TemplatedPolicies?.map(templatedPolicyDraftOf),
  };
}

function linkDraftOf(link: LinkBody): LinkDraft {
  return { id: link.ID, name: link.Name };
}

function templatedPolicyDraftOf(policy: TemplatedPolicyBody): TemplatedPolicyDraft {
  return {
    templateId: policy.TemplateID,
    templateName: policy.TemplateName,
    variables: policy.TemplateVariables,
    datacenters: policy.Datacenters,
  };
}

/** The decoder has turned every duration into a bigint. */
function nanosecondsOf(value: string | number | bigint | undefined): bigint | undefined {
  return typeof value === 'bigint' ? value : undefined;
}
