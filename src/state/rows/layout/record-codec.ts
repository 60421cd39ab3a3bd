// How the objects of the domain are laid out in bytes, as values of the state and inside commands.
// Fields have places, and a place is never given another meaning: a change of layout is a new format
// number that is written from then on, while the older ones stay readable. History of the formats:
// 1 is the first and only one of every record.

import type { AuthMethod } from '../../../acl/auth-method.ts';
import type { BindingRule } from '../../../acl/binding-rule.ts';
import type { NodeIdentity, ServiceIdentity, TemplatedPolicy } from '../../../acl/identities.ts';
import type { Namespace } from '../../../acl/namespace.ts';
import type { Policy } from '../../../acl/policy.ts';
import type { Role } from '../../../acl/role.ts';
import type { Unstamped } from '../../../acl/stamped.ts';
import type { AuthMethodOrigin, Token } from '../../../acl/token.ts';
import { packedNumberAt } from './packed-number.ts';
import { type Fields, jsonField, pack, requireFormat, unpack } from './packing.ts';
import type { Stamped } from './stamp.ts';

/** How one type of object is written. `fieldsOf` is everything but the indexes. */
export interface RecordCodec<T extends Stamped> {
  fieldsOf(object: Unstamped<T>): Fields;
  objectOf(fields: Fields, indexes: Stamped): T;
}

/** Of every record so far. */
export const RECORD_FORMAT = 1;

/** The value of an object's row: format, CreateIndex, ModifyIndex, then the fields. */
export function encodeRecord<T extends Stamped>(codec: RecordCodec<T>, object: T): Uint8Array {
  return pack([RECORD_FORMAT, object.createIndex, object.modifyIndex, codec.fieldsOf(object)]);
}

/** msgpack of an array of four: format, CreateIndex, ModifyIndex, fields. */
export const RECORD_HEAD = 0x94;

/** The CreateIndex of the record in these bytes; NaN where they are not laid out as expected. */
export function createIndexAtHead(value: Uint8Array): number {
  const isExpected = value[0] === RECORD_HEAD && value[1] === RECORD_FORMAT;
  return isExpected ? packedNumberAt(value, 2) : Number.NaN;
}

export function decodeRecord<T extends Stamped>(codec: RecordCodec<T>, value: Uint8Array): T {
  const [format, createIndex, modifyIndex, fields] = unpack(value);
  requireFormat('record', format, RECORD_FORMAT);
  return codec.objectOf(fields as Fields, { createIndex, modifyIndex } as Stamped);
}

export const TOKEN_CODEC: RecordCodec<Token> = {
  fieldsOf: (token) => [
    token.accessorId,
    token.secretId,
    token.namespace,
    token.description,
    token.policies,
    token.roles,
    token.serviceIdentities.map(serviceIdentityFields),
    token.nodeIdentities.map(nodeIdentityFields),
    token.templatedPolicies.map(templatedPolicyFields),
    token.local,
    token.authMethod === undefined ? null : originFields(token.authMethod),
    token.createTime,
    token.expirationTime ?? null,
    token.hash,
  ],
  // By place and not by pattern: this runs for every token that is read.
  objectOf: (fields, { createIndex, modifyIndex }) =>
    ({
      accessorId: fields[0],
      secretId: fields[1],
      namespace: fields[2],
      description: fields[3],
      policies: fields[4],
      roles: fields[5],
      serviceIdentities: listOf(fields[6], serviceIdentityOf),
      nodeIdentities: listOf(fields[7], nodeIdentityOf),
      templatedPolicies: listOf(fields[8], templatedPolicyOf),
      local: fields[9],
      authMethod: fields[10] === null ? undefined : originOf(fields[10] as Fields),
      createTime: fields[11],
      expirationTime: fields[12] ?? undefined,
      hash: fields[13],
      createIndex,
      modifyIndex,
    }) as Token,
};

export const POLICY_CODEC: RecordCodec<Policy> = {
  fieldsOf: ({ id, name, namespace, description, rules, datacenters, hash }) => [
    id,
    name,
    namespace,
    description,
    rules,
    datacenters,
    hash,
  ],
  objectOf: (
    [id, name, namespace, description, rules, datacenters, hash],
    { createIndex, modifyIndex },
  ) =>
    ({
      id,
      name,
      namespace,
      description,
      rules,
      datacenters,
      hash,
      createIndex,
      modifyIndex,
    }) as Policy,
};

export const ROLE_CODEC: RecordCodec<Role> = {
  fieldsOf: (role) => [
    role.id,
    role.name,
    role.namespace,
    role.description,
    role.policies,
    role.serviceIdentities.map(serviceIdentityFields),
    role.nodeIdentities.map(nodeIdentityFields),
    role.templatedPolicies.map(templatedPolicyFields),
    role.hash,
  ],
  objectOf: (
    [id, name, namespace, description, policies, services, nodes, templated, hash],
    { createIndex, modifyIndex },
  ) =>
    ({
      id,
      name,
      namespace,
      description,
      policies,
      serviceIdentities: listOf(services, serviceIdentityOf),
      nodeIdentities: listOf(nodes, nodeIdentityOf),
      templatedPolicies: listOf(templated, templatedPolicyOf),
      hash,
      createIndex,
      modifyIndex,
    }) as Role,
};

export const AUTH_METHOD_CODEC: RecordCodec<AuthMethod> = {
  fieldsOf: (method) => [
    method.name,
    method.namespace,
    method.type,
    method.displayName,
    method.description,
    method.maxTokenTtlNs,
    method.tokenLocality,
    jsonField(method.config),
    method.namespaceRules.map(({ selector, bindNamespace }) => [selector, bindNamespace]),
  ],
  objectOf: (
    [name, namespace, type, displayName, description, ttl, locality, config, rules],
    { createIndex, modifyIndex },
  ) =>
    ({
      name,
      namespace,
      type,
      displayName,
      description,
      maxTokenTtlNs: ttl,
      tokenLocality: locality,
      config: JSON.parse(config as string) as AuthMethod['config'],
      namespaceRules: listOf(rules, ([selector, bindNamespace]) => ({ selector, bindNamespace })),
      createIndex,
      modifyIndex,
    }) as AuthMethod,
};

export const BINDING_RULE_CODEC: RecordCodec<BindingRule> = {
  fieldsOf: (rule) => [
    rule.id,
    rule.namespace,
    rule.description,
    rule.authMethod,
    rule.selector,
    rule.bindType,
    rule.bindName,
    rule.bindVars?.name ?? null,
  ],
  objectOf: (
    [id, namespace, description, authMethod, selector, bindType, bindName, variable],
    { createIndex, modifyIndex },
  ) =>
    ({
      id,
      namespace,
      description,
      authMethod,
      selector,
      bindType,
      bindName,
      bindVars: variable === null ? undefined : { name: variable },
      createIndex,
      modifyIndex,
    }) as BindingRule,
};

export const NAMESPACE_CODEC: RecordCodec<Namespace> = {
  fieldsOf: ({ name, description, policyDefaults, roleDefaults, meta }) => [
    name,
    description,
    policyDefaults,
    roleDefaults,
    jsonField(meta),
  ],
  objectOf: (
    [name, description, policyDefaults, roleDefaults, meta],
    { createIndex, modifyIndex },
  ) =>
    ({
      name,
      description,
      policyDefaults,
      roleDefaults,
      meta: JSON.parse(meta as string) as Namespace['meta'],
      createIndex,
      modifyIndex,
    }) as Namespace,
};

function serviceIdentityFields({ serviceName, datacenters }: ServiceIdentity): Fields {
  return [serviceName, datacenters];
}

function serviceIdentityOf([serviceName, datacenters]: Fields): ServiceIdentity {
  return { serviceName, datacenters } as ServiceIdentity;
}

function nodeIdentityFields({ nodeName, datacenter }: NodeIdentity): Fields {
  return [nodeName, datacenter];
}

function nodeIdentityOf([nodeName, datacenter]: Fields): NodeIdentity {
  return { nodeName, datacenter } as NodeIdentity;
}

function templatedPolicyFields(templated: TemplatedPolicy): Fields {
  const { templateId, templateName, variables, datacenters } = templated;
  return [templateId, templateName, variables?.name ?? null, datacenters];
}

function templatedPolicyOf([templateId, templateName, name, datacenters]: Fields): TemplatedPolicy {
  const variables = name === null ? undefined : { name };
  return { templateId, templateName, variables, datacenters } as TemplatedPolicy;
}

function originFields({ name, namespace, createIndex }: AuthMethodOrigin): Fields {
  return [name, namespace, createIndex];
}

function originOf([name, namespace, createIndex]: Fields): AuthMethodOrigin {
  return { name, namespace, createIndex } as AuthMethodOrigin;
}

function listOf<T>(list: unknown, itemOf: (fields: Fields) => T): readonly T[] {
  return (list as readonly Fields[]).map(itemOf);
}
