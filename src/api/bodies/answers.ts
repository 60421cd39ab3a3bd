// What the service sends: one schema an answer, for OpenAPI and for the static types of clients.
// The render files write exactly these; test/api holds them together.

import { type Static, Type } from 'typebox';
import type { JsonValue } from '../../acl/auth-method.ts';
import { answer, nullable, text } from './schema.ts';

const optionalText = Type.Optional(Type.String());
const strings = Type.Array(Type.String());
const stamps = { CreateIndex: Type.Integer(), ModifyIndex: Type.Integer() };
const hash = nullable(Type.String({ description: 'Digest of the content, base64.' }));
const namespace = Type.Optional(text('Only where namespaces are enabled.'));

export const Link = answer('Link', { ID: Type.String(), Name: Type.String() });

export const ServiceIdentity = answer('ServiceIdentity', {
  ServiceName: Type.String(),
  Datacenters: Type.Optional(strings),
});

export const NodeIdentity = answer('NodeIdentity', {
  NodeName: Type.String(),
  Datacenter: Type.String(),
});

export const TemplatedPolicy = answer('TemplatedPolicy', {
  TemplateID: Type.String(),
  TemplateName: Type.String(),
  TemplateVariables: Type.Optional(
    answer('TemplateVariables', { name: Type.Optional(Type.String()) }),
  ),
  Datacenters: Type.Optional(strings),
});

const identities = {
  ServiceIdentities: Type.Optional(Type.Array(ServiceIdentity)),
  NodeIdentities: Type.Optional(Type.Array(NodeIdentity)),
  TemplatedPolicies: Type.Optional(Type.Array(TemplatedPolicy)),
};

const tokenFields = {
  AccessorID: Type.String(),
  SecretID: text('`<hidden>` for callers without `acl:write`.'),
  Description: Type.String(),
  Policies: Type.Optional(nullable(Type.Array(Link))),
  Roles: Type.Optional(Type.Array(Link)),
  ...identities,
  Local: Type.Boolean(),
  AuthMethod: optionalText,
  AuthMethodNamespace: optionalText,
  ExpirationTime: optionalText,
  CreateTime: Type.String(),
  Hash: hash,
  ...stamps,
  Namespace: namespace,
};

export const Token = answer('Token', tokenFields);
export const BootstrapToken = answer('BootstrapToken', { ID: Type.String(), ...tokenFields });

export const Policy = answer('Policy', {
  ID: Type.String(),
  Name: Type.String(),
  Description: Type.String(),
  Rules: Type.String(),
  Datacenters: Type.Optional(nullable(strings)),
  Hash: hash,
  ...stamps,
  Namespace: namespace,
});

export const PolicyListEntry = answer('PolicyListEntry', {
  ID: Type.String(),
  Name: Type.String(),
  Description: Type.String(),
  Datacenters: nullable(strings),
  Hash: hash,
  ...stamps,
  Namespace: namespace,
});

export const Role = answer('Role', {
  ID: Type.String(),
  Name: Type.String(),
  Description: Type.String(),
  Policies: Type.Optional(Type.Array(Link)),
  ...identities,
  Hash: hash,
  ...stamps,
  Namespace: namespace,
});

/** A single read gives one or the other: `expanded` adds the second half. */
export const TokenRead = answer('TokenRead', {
  ...tokenFields,
  ExpandedPolicies: Type.Optional(nullable(Type.Array(Policy))),
  ExpandedRoles: Type.Optional(nullable(Type.Array(Role))),
  NamespaceDefaultPolicyIDs: Type.Optional(nullable(strings)),
  NamespaceDefaultRoleIDs: Type.Optional(nullable(strings)),
  NamespaceDefaultPolicies: Type.Optional(nullable(Type.Array(Link))),
  NamespaceDefaultRoles: Type.Optional(nullable(Type.Array(Link))),
  AgentACLDefaultPolicy: optionalText,
  AgentACLDownPolicy: optionalText,
  ResolvedByAgent: optionalText,
});

const authMethodFields = {
  MaxTokenTTL: optionalText,
  Name: Type.String(),
  Type: Type.String(),
  DisplayName: optionalText,
  Description: optionalText,
  TokenLocality: optionalText,
};

export const AuthMethod = answer('AuthMethod', {
  ...authMethodFields,
  Config: Type.Unsafe<{ readonly [key: string]: JsonValue }>({
    type: 'object',
    additionalProperties: true,
  }),
  NamespaceRules: Type.Optional(
    Type.Array(answer('NamespaceRule', { Selector: optionalText, BindNamespace: Type.String() })),
  ),
  ...stamps,
  Namespace: namespace,
});

export const AuthMethodListEntry = answer('AuthMethodListEntry', {
  ...authMethodFields,
  Description: Type.String(),
  ...stamps,
  Namespace: namespace,
});

export const BindingRule = answer('BindingRule', {
  ID: Type.String(),
  Description: Type.String(),
  AuthMethod: Type.String(),
  Selector: Type.String(),
  BindType: Type.String(),
  BindName: Type.String(),
  BindVars: Type.Optional(answer('BindVars', { name: Type.String() })),
  ...stamps,
  Namespace: namespace,
});

export const Namespace = answer('Namespace', {
  Name: Type.String(),
  Description: Type.String(),
  ACLs: answer('NamespaceDefaults', {
    PolicyDefaults: Type.Optional(Type.Array(Link)),
    RoleDefaults: Type.Optional(Type.Array(Link)),
  }),
  Meta: Type.Optional(Type.Record(Type.String(), Type.String())),
  ...stamps,
});

export const Template = answer('Template', {
  TemplateName: Type.String(),
  Schema: text('A JSON Schema as text; empty when the template needs no variable.'),
  Template: Type.String(),
  Description: Type.String(),
});

const Explanation = answer('Explanation', {
  Decision: Type.Union([Type.Literal('allow'), Type.Literal('deny')]),
  Summary: Type.String(),
  DecidedBy: Type.String(),
  Token: Type.Optional(
    answer('ExplanationToken', { AccessorID: Type.String(), Description: Type.String() }),
  ),
  Role: Type.Optional(Link),
  Identity: optionalText,
  Policy: Type.Optional(
    answer('ExplanationPolicy', {
      ID: Type.String(),
      Name: Type.String(),
      Namespace: namespace,
    }),
  ),
  Rule: Type.Optional(
    answer('ExplanationRule', {
      Text: Type.String(),
      Line: Type.Integer(),
      Column: Type.Integer(),
    }),
  ),
  Overruled: Type.Optional(
    Type.Array(
      answer('OverruledRule', {
        Policy: Type.String(),
        Rule: Type.String(),
        Why: Type.String(),
      }),
    ),
  ),
});

export const Authorization = answer('Authorization', {
  Resource: Type.String(),
  Segment: optionalText,
  Access: Type.String(),
  Namespace: optionalText,
  Allow: Type.Boolean(),
  Explanation: Type.Optional(Explanation),
});

export const LoginExplanation = answer('LoginExplanation', {
  Granted: Type.Boolean(),
  Summary: Type.String(),
  Attributes: Type.Optional(
    Type.Array(
      answer('IdentityAttribute', {
        Name: text('As selectors call it, such as `value.team`.'),
        Value: Type.Union([Type.String(), strings]),
      }),
    ),
  ),
  Namespace: namespace,
  NamespaceSelector: optionalText,
  BindingRules: Type.Array(
    answer('ExplainedBindingRule', {
      ID: Type.String(),
      BindType: Type.String(),
      BindName: Type.String(),
      Selector: Type.String(),
      Result: text('`bound`, `not-selected`, `selector-invalid`, `target-missing` or `refused`.'),
      Name: Type.Optional(text('What BindName comes to.')),
      Why: Type.String(),
    }),
  ),
  Token: Type.Optional(
    answer('WouldBeToken', {
      Description: Type.String(),
      Policies: Type.Optional(Type.Array(Link)),
      Roles: Type.Optional(Type.Array(Link)),
      ...identities,
      Local: Type.Boolean(),
      ExpirationTTL: optionalText,
    }),
  ),
});

const DatacenterStatus = answer('DatacenterStatus', {
  Name: Type.String(),
  State: text(
    '`primary`, `live`, `catching-up`, `snapshot`, `away`, `stopped`, `differs`, `removed`, or `unknown` to this server.',
  ),
  Witness: Type.Boolean({ description: 'It votes, and has no objects.' }),
  Position: nullable(text('How much of the global log it has on disk: `epoch.seq`.')),
  LagEntries: nullable(Type.Integer({ description: 'Entries that it lacks.' })),
  LagBytes: nullable(Type.Integer({ description: 'Bytes of the entries that it lacks.' })),
  LagSeconds: nullable(Type.Number({ description: 'Age of the oldest entry that it lacks.' })),
  LastContactSeconds: nullable(Type.Number({ description: 'Since it was heard of.' })),
  LastSuccess: Type.String(),
  LastError: Type.String(),
  LastErrorMessage: Type.String(),
  Differences: Type.Integer({
    description: 'How often it was found to have what the primary has not at the same place.',
  }),
});

export const ReplicationStatus = answer('ReplicationStatus', {
  Enabled: Type.Boolean(),
  Running: Type.Boolean(),
  SourceDatacenter: Type.String(),
  ReplicationType: Type.String(),
  ReplicatedIndex: Type.Integer({ description: "Of the primary's policies; 0: not known yet." }),
  ReplicatedRoleIndex: Type.Integer({ description: "Of the primary's roles." }),
  ReplicatedTokenIndex: Type.Integer({ description: "Of the primary's tokens." }),
  LastSuccess: Type.String(),
  LastError: Type.String(),
  LastErrorMessage: Type.String(),
  PrimaryDatacenter: text('The datacenter that writes what all share.'),
  Epoch: Type.Integer({ description: 'Counts the reigns of primaries.' }),
  Position: nullable(text('How much of the global log this datacenter has: `epoch.seq`.')),
  HeadPosition: text('The end of the global log, as far as this server knows.'),
  MajorityPosition: nullable(text('What a majority has; known to the leader of the primary.')),
  Datacenters: Type.Array(DatacenterStatus),
});

export const Deleted = Type.Boolean({ description: 'Whether there was something to delete.' });
export const Done = Type.Boolean({ description: 'Always true.' });
export const AuthUrl = answer('AuthURL', { AuthURL: Type.String() });

export type Token = Static<typeof Token>;
export type Policy = Static<typeof Policy>;
export type Role = Static<typeof Role>;
export type AuthMethod = Static<typeof AuthMethod>;
export type BindingRule = Static<typeof BindingRule>;
export type Namespace = Static<typeof Namespace>;
