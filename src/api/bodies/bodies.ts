// What callers send: one schema a request body, with the names of the wire. All fields may be absent
// here; what an operation needs is checked behind the door. draft-of.ts turns bodies into drafts.

import { type Static, Type } from 'typebox';
import { body, duration, flag, freeObject, readOnly, text, time } from './schema.ts';

const namespace = text('The namespace; goes before the `ns` parameter and the header.');
const datacenters = Type.Array(Type.String(), {
  description: 'Datacenters where it is valid; empty means all, also future ones.',
});
const stamps = {
  CreateIndex: readOnly('Set by the service.'),
  ModifyIndex: readOnly('Set by the service.'),
};

export const LinkBody = body('LinkInput', {
  ID: text('The id; goes before the name.'),
  Name: text('The name, resolved to an id when the request is handled.'),
});

const ServiceIdentityBody = body('ServiceIdentityInput', {
  ServiceName: text('Lower-case alphanumerics, `-` and `_`, at most 256.'),
  Datacenters: datacenters,
});

const NodeIdentityBody = body('NodeIdentityInput', {
  NodeName: text('Lower-case alphanumerics, `-` and `_`, at most 256.'),
  Datacenter: text('The one datacenter where it is valid.'),
});

export const TemplatedPolicyBody = body('TemplatedPolicyInput', {
  TemplateID: text('The id of the template; the name is enough.'),
  TemplateName: text('The name of the template, such as `builtin/service`.'),
  TemplateVariables: body('TemplateVariablesInput', {
    name: text('The variable that the template needs.'),
  }),
  Datacenters: datacenters,
});

const links = {
  Policies: Type.Array(LinkBody, { description: 'Links to policies, by id or name.' }),
  ServiceIdentities: Type.Array(ServiceIdentityBody),
  NodeIdentities: Type.Array(NodeIdentityBody),
  TemplatedPolicies: Type.Array(TemplatedPolicyBody),
};

export const TokenBody = body('TokenInput', {
  AccessorID: text('Public id; chosen by the service when absent. Immutable.'),
  SecretID: text('The secret; chosen by the service when absent. Immutable.'),
  Description: text('Free text.'),
  ...links,
  Roles: Type.Array(LinkBody, { description: 'Links to roles, by id or name.' }),
  Local: flag('True: lives in this datacenter alone. Immutable.'),
  AuthMethod: text('The auth method that made the token. Never set by callers.'),
  ExpirationTime: time('When the token becomes void. Only on create.'),
  ExpirationTTL: duration('Life of the token from its creation. Only on create.'),
  Namespace: namespace,
  AuthMethodNamespace: readOnly('Set by the service.'),
  CreateTime: readOnly('Set by the service.'),
  Hash: readOnly('Set by the service.'),
  ...stamps,
  ExpandedPolicies: readOnly('Part of an expanded read.'),
  ExpandedRoles: readOnly('Part of an expanded read.'),
  NamespaceDefaultPolicies: readOnly('Part of an expanded read.'),
  NamespaceDefaultRoles: readOnly('Part of an expanded read.'),
  NamespaceDefaultPolicyIDs: readOnly('Part of an expanded read.'),
  NamespaceDefaultRoleIDs: readOnly('Part of an expanded read.'),
  AgentACLDefaultPolicy: readOnly('Part of an expanded read.'),
  AgentACLDownPolicy: readOnly('Part of an expanded read.'),
  ResolvedByAgent: readOnly('Part of an expanded read.'),
});

export const PolicyBody = body('PolicyInput', {
  ID: text('Equal to the id in the path; never on create.'),
  Name: text('Letters, digits, `-` and `_`, 1 to 128; unique in its namespace.'),
  Description: text('Free text.'),
  Rules: text('The rules, as HCL or JSON.'),
  Datacenters: datacenters,
  Namespace: namespace,
  Hash: readOnly('Set by the service.'),
  ...stamps,
});

export const RoleBody = body('RoleInput', {
  ID: text('Equal to the id in the path; never on create.'),
  Name: text('Letters, digits, `-` and `_`, 1 to 256; unique in its namespace.'),
  Description: text('Free text.'),
  ...links,
  Namespace: namespace,
  Hash: readOnly('Set by the service.'),
  ...stamps,
});

export const AuthMethodBody = body('AuthMethodInput', {
  Name: text('Letters, digits, `-` and `_`, 1 to 128. Immutable.'),
  Type: text('`jwt`, `oidc`, `kubernetes` or `aws-iam`. Immutable.'),
  DisplayName: text('Shown in place of the name.'),
  Description: text('Free text.'),
  MaxTokenTTL: duration('Longest life of the tokens of this method.'),
  TokenLocality: text('`local` or `global`; empty means local.'),
  TokenNameFormat: text('Accepted where it is empty, or what deployed clients send unasked.'),
  Config: freeObject('Configuration; its keys depend on the type.'),
  NamespaceRules: Type.Array(
    body('NamespaceRuleInput', {
      Selector: text('Which identities; empty means all.'),
      BindNamespace: text('The namespace of the token, or a template of it.'),
    }),
    { description: 'Where tokens are made; the first rule that matches decides.' },
  ),
  Namespace: namespace,
  ...stamps,
});

export const BindingRuleBody = body('BindingRuleInput', {
  ID: text('Equal to the id in the path; never on create.'),
  Description: text('Free text.'),
  AuthMethod: text('Name of the auth method. Immutable.'),
  Selector: text('Which identities; empty means all.'),
  BindType: text('`service`, `node`, `role`, `policy` or `templated-policy`.'),
  BindName: text('The name that is bound, or a template of it.'),
  BindVars: body('BindVarsInput', { name: text('The variable of the templated policy.') }),
  Namespace: namespace,
  ...stamps,
});

export const NamespaceBody = body('NamespaceInput', {
  Name: text('A DNS label. Immutable.'),
  Description: text('Free text.'),
  ACLs: body('NamespaceDefaultsInput', {
    PolicyDefaults: Type.Array(LinkBody),
    RoleDefaults: Type.Array(LinkBody),
  }),
  Meta: Type.Record(Type.String(), Type.String()),
  ...stamps,
});

export const BootstrapBody = body('BootstrapInput', {
  BootstrapSecret: text('A UUID to use as the secret of the first token.'),
});

export const PreviewBody = body('TemplateVariablesInput', {
  name: text('The variable that the template needs.'),
});

export const LoginBody = body('LoginInput', {
  AuthMethod: text('Name of the auth method.'),
  BearerToken: text('What the auth method validates.'),
  Meta: Type.Record(Type.String(), Type.String()),
  Namespace: namespace,
});

export const AgentTokenBody = body('AgentTokenInput', {
  Token: text('The secret of a token.'),
});

export const OidcAuthUrlBody = body('OIDCAuthURLInput', {
  AuthMethod: text('Name of the auth method.'),
  RedirectURI: text('Where the provider sends the browser back; one of the allowed ones.'),
  ClientNonce: text('A secret of the caller, repeated at the callback.'),
  Meta: Type.Record(Type.String(), Type.String()),
  Namespace: namespace,
});

export const OidcCallbackBody = body('OIDCCallbackInput', {
  AuthMethod: text('Name of the auth method.'),
  State: text('From the redirect.'),
  Code: text('From the redirect.'),
  ClientNonce: text('As it was given for the URL.'),
  Namespace: namespace,
});

export const AuthorizeBody = Type.Array(
  body('AuthorizationInput', {
    Resource: text('Such as `service`, `key`, `acl`.'),
    Access: text('`read`, `write`; for keys also `list` and `write-prefix`.'),
    Segment: text('The name that is asked about.'),
    Namespace: namespace,
  }),
);

export type TokenBody = Static<typeof TokenBody>;
export type PolicyBody = Static<typeof PolicyBody>;
export type RoleBody = Static<typeof RoleBody>;
export type AuthMethodBody = Static<typeof AuthMethodBody>;
export type BindingRuleBody = Static<typeof BindingRuleBody>;
export type NamespaceBody = Static<typeof NamespaceBody>;
export type LinkBody = Static<typeof LinkBody>;
export type TemplatedPolicyBody = Static<typeof TemplatedPolicyBody>;
