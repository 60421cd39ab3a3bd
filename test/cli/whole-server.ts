// A server that answers whatever a command asks for, and the files that commands read.

import {
  AUTHORIZATION,
  LOGIN_EXPLANATION,
  MEMBER,
  METHOD,
  NAMESPACE,
  PLAIN_TOKEN,
  POLICIES,
  POLICY,
  POLICY_ID,
  ROLE,
  ROLE_ID,
  RULE,
  RULE_ID,
  SECRET,
  TEMPLATE,
  TOKEN,
  TOKEN_ID,
} from './fixtures.ts';
import type { Script } from './harness.ts';

export const ANONYMOUS = PLAIN_TOKEN.AccessorID;
export const token = `/v1/acl/token/${TOKEN_ID}`;
export const policy = `/v1/acl/policy/${POLICY_ID}`;
export const role = `/v1/acl/role/${ROLE_ID}`;
export const rule = `/v1/acl/binding-rule/${RULE_ID}`;

export const SERVER: NonNullable<Script['answers']> = {
  'PUT /v1/acl/bootstrap': { value: { ID: SECRET, ...TOKEN } },
  'GET /v1/acl/tokens': { value: [TOKEN, PLAIN_TOKEN] },
  'PUT /v1/acl/token': { value: TOKEN },
  'GET /v1/acl/token/self': { value: TOKEN },
  [`GET ${token}`]: { value: TOKEN },
  [`PUT ${token}`]: { value: TOKEN },
  [`PUT ${token}/clone`]: { value: TOKEN },
  [`DELETE ${token}`]: { value: true },
  [`GET /v1/acl/token/${ANONYMOUS}`]: { value: PLAIN_TOKEN },
  'GET /v1/acl/policies': { value: POLICIES },
  'PUT /v1/acl/policy': { value: POLICY },
  'GET /v1/acl/policy/name/ops': { value: POLICY },
  [`GET ${policy}`]: { value: POLICY },
  [`PUT ${policy}`]: { value: POLICY },
  [`DELETE ${policy}`]: { value: true },
  'GET /v1/acl/roles': { value: [ROLE] },
  'PUT /v1/acl/role': { value: ROLE },
  'GET /v1/acl/role/name/deployers': { value: ROLE },
  [`GET ${role}`]: { value: ROLE },
  [`PUT ${role}`]: { value: ROLE },
  [`DELETE ${role}`]: { value: true },
  'GET /v1/acl/auth-methods': { value: [METHOD] },
  'PUT /v1/acl/auth-method': { value: METHOD },
  'GET /v1/acl/auth-method/ci': { value: METHOD },
  'PUT /v1/acl/auth-method/ci': { value: METHOD },
  'DELETE /v1/acl/auth-method/ci': { value: true },
  'GET /v1/acl/binding-rules': { value: [RULE] },
  'PUT /v1/acl/binding-rule': { value: RULE },
  [`GET ${rule}`]: { value: RULE },
  [`PUT ${rule}`]: { value: RULE },
  [`DELETE ${rule}`]: { value: true },
  'GET /v1/acl/templated-policies': { value: { 'builtin/service': TEMPLATE } },
  'GET /v1/acl/templated-policy/name/builtin%2Fservice': { value: TEMPLATE },
  'POST /v1/acl/templated-policy/preview/builtin%2Fservice': { value: POLICY },
  'GET /v1/namespaces': { value: [NAMESPACE] },
  'PUT /v1/namespace': { value: NAMESPACE },
  'GET /v1/namespace/team-a': { value: NAMESPACE },
  'PUT /v1/namespace/team-a': { value: NAMESPACE },
  'DELETE /v1/namespace/team-a': { value: true },
  'POST /v1/internal/acl/authorize': { value: [AUTHORIZATION] },
  [`POST /v1/internal/acl/authorize/${TOKEN_ID}`]: { value: [AUTHORIZATION] },
  'POST /v1/acl/login': { value: TOKEN },
  'POST /v1/acl/login/explain': { value: LOGIN_EXPLANATION },
  'POST /v1/acl/logout': { value: true },
  'GET /v1/agent/members': { value: [MEMBER] },
};

export const FILES = {
  'rules.hcl': 'acl = "read"\n',
  'config.json': '{"BoundIssuer":"https://other.example"}',
  jwt: 'header.payload.signature\n',
  secret: `${SECRET}\n`,
  variables: '{"name":"api"}',
};
