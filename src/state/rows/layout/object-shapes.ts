// What the fields of stored objects are. A codec takes the fields of a row as they stand there, since this
// service wrote them; where somebody else may have, they are looked at here before anything rests on them.
// What a text says (rules, selectors, names) is not asked: what an older release let in is still an object.

import {
  AUTH_METHOD_TYPES,
  type AuthMethod,
  type NamespaceRule,
} from '../../../acl/auth-method.ts';
import { BIND_TYPES, type BindingRule } from '../../../acl/binding-rule.ts';
import type { NodeIdentity, ServiceIdentity, TemplatedPolicy } from '../../../acl/identities.ts';
import { lookupBytes } from '../../../acl/ids.ts';
import type { Namespace } from '../../../acl/namespace.ts';
import type { Policy } from '../../../acl/policy.ts';
import type { Role } from '../../../acl/role.ts';
import type { AuthMethodOrigin, Token } from '../../../acl/token.ts';
import { parseInstant } from '../../../acl/values/instant.ts';
import type { TableName } from '../../view.ts';
import type { Stamped } from './stamp.ts';

type Holds = (value: unknown) => boolean;
/** Total: a field that nobody thought of does not compile. */
type Shape<T> = Readonly<Record<keyof Required<T>, Holds>>;
type Fields = Readonly<Record<string, unknown>>;

/** A number that counts: whole, exact and not negative. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

const isText: Holds = (value) => typeof value === 'string';
const isFlag: Holds = (value) => typeof value === 'boolean';
const isId: Holds = (value) => isText(value) && lookupBytes(value as string) !== undefined;
const isSecret: Holds = (value) => isText(value) && value !== '';
const isInstant: Holds = (value) => isText(value) && parseInstant(value as string) !== undefined;
const isStamp: Holds = (value) => isCount(value) && value > 0;
const isTtl: Holds = (value) => typeof value === 'bigint' && value >= 0n;
const isTexts = listOf(isText);
const isIds = listOf(isId);

const SERVICE_IDENTITY: Shape<ServiceIdentity> = { serviceName: isText, datacenters: isTexts };
const NODE_IDENTITY: Shape<NodeIdentity> = { nodeName: isText, datacenter: isText };
const VARIABLES: Shape<{ readonly name: string }> = { name: isText };
const TEMPLATED_POLICY: Shape<TemplatedPolicy> = {
  templateId: isText,
  templateName: isText,
  variables: orNone(shapedAs(VARIABLES)),
  datacenters: isTexts,
};
const ORIGIN: Shape<AuthMethodOrigin> = { name: isText, namespace: isText, createIndex: isCount };
const NAMESPACE_RULE: Shape<NamespaceRule> = { selector: isText, bindNamespace: isText };

const STAMPS: Shape<Stamped> = { createIndex: isStamp, modifyIndex: isStamp };
const IDENTITIES = {
  serviceIdentities: listOf(shapedAs(SERVICE_IDENTITY)),
  nodeIdentities: listOf(shapedAs(NODE_IDENTITY)),
  templatedPolicies: listOf(shapedAs(TEMPLATED_POLICY)),
};

const TOKEN: Shape<Token> = {
  accessorId: isId,
  secretId: isSecret,
  namespace: isText,
  description: isText,
  policies: isIds,
  roles: isIds,
  ...IDENTITIES,
  local: isFlag,
  authMethod: orNone(shapedAs(ORIGIN)),
  createTime: isInstant,
  expirationTime: orNone(isInstant),
  hash: isText,
  ...STAMPS,
};

const POLICY: Shape<Policy> = {
  id: isId,
  name: isText,
  namespace: isText,
  description: isText,
  rules: isText,
  datacenters: isTexts,
  hash: isText,
  ...STAMPS,
};

const ROLE: Shape<Role> = {
  id: isId,
  name: isText,
  namespace: isText,
  description: isText,
  policies: isIds,
  ...IDENTITIES,
  hash: isText,
  ...STAMPS,
};

const AUTH_METHOD: Shape<AuthMethod> = {
  name: isText,
  namespace: isText,
  type: oneOf(AUTH_METHOD_TYPES),
  displayName: isText,
  description: isText,
  maxTokenTtlNs: isTtl,
  tokenLocality: oneOf(['', 'local', 'global']),
  config: isFields,
  namespaceRules: listOf(shapedAs(NAMESPACE_RULE)),
  ...STAMPS,
};

const BINDING_RULE: Shape<BindingRule> = {
  id: isId,
  namespace: isText,
  description: isText,
  authMethod: isText,
  selector: isText,
  bindType: oneOf(BIND_TYPES),
  bindName: isText,
  bindVars: orNone(shapedAs(VARIABLES)),
  ...STAMPS,
};

const NAMESPACE: Shape<Namespace> = {
  name: isText,
  description: isText,
  policyDefaults: isIds,
  roleDefaults: isIds,
  meta: (value) => isFields(value) && Object.values(value).every(isText),
  ...STAMPS,
};

type Checks = readonly (readonly [field: string, holds: Holds])[];

const CHECKS_BY_TABLE: Readonly<Record<TableName, Checks>> = {
  tokens: Object.entries(TOKEN),
  policies: Object.entries(POLICY),
  roles: Object.entries(ROLE),
  'auth-methods': Object.entries(AUTH_METHOD),
  'binding-rules': Object.entries(BINDING_RULE),
  namespaces: Object.entries(NAMESPACE),
};

/** The name of the first field that is not what such an object has; undefined when all are. */
export function wrongFieldOf(table: TableName, object: Stamped): string | undefined {
  const fields = object as unknown as Fields;
  const wrong = CHECKS_BY_TABLE[table].find(([field, holds]) => !holds(fields[field]));
  return wrong?.[0];
}

function listOf(holds: Holds): Holds {
  return (value) => Array.isArray(value) && value.every((each) => holds(each));
}

function orNone(holds: Holds): Holds {
  return (value) => value === undefined || holds(value);
}

function oneOf(values: readonly string[]): Holds {
  return (value) => values.includes(value as string);
}

function shapedAs<T>(shape: Shape<T>): Holds {
  const checks: Checks = Object.entries(shape);
  return (value) => isFields(value) && checks.every(([field, holds]) => holds(value[field]));
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
