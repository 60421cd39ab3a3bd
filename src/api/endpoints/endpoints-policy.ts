// Policies, roles and templated policies on the wire.

import { Type } from 'typebox';
import { Deleted, Policy, PolicyListEntry, Role, Template } from '../bodies/answers.ts';
import { PolicyBody, PreviewBody, RoleBody } from '../bodies/bodies.ts';
import { endpoint } from './endpoint.ts';

const policyBody = { schema: PolicyBody, label: 'Policy decoding failed', required: true } as const;
const roleBody = { schema: RoleBody, label: 'Role decoding failed', required: true } as const;
const MISSING_TEMPLATE = { refusal: 'Missing templated policy Name' };

export const POLICY_ENDPOINTS = {
  'policy.create': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/policy',
    summary: 'Create a policy.',
    access: 'acl:write',
    namespaced: true,
    body: policyBody,
    answer: Policy,
  }),
  'policy.read': endpoint({
    kind: 'read',
    method: 'GET',
    path: '/v1/acl/policy/:id',
    summary: 'Read a policy.',
    access: 'acl:read',
    namespaced: true,
    answer: Policy,
    whenEmpty: { refusal: 'Missing policy ID' },
  }),
  'policy.read-by-name': endpoint({
    kind: 'read',
    method: 'GET',
    path: '/v1/acl/policy/name/:name',
    summary: 'Read a policy by its name, in any letter case.',
    access: 'acl:read',
    namespaced: true,
    answer: Policy,
    whenEmpty: { refusal: 'Missing policy Name' },
  }),
  'policy.update': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/policy/:id',
    summary: 'Replace a policy.',
    access: 'acl:write',
    namespaced: true,
    body: policyBody,
    answer: Policy,
    whenEmpty: { create: 'policy.create' },
  }),
  'policy.delete': endpoint({
    kind: 'write',
    method: 'DELETE',
    path: '/v1/acl/policy/:id',
    summary: 'Delete a policy.',
    access: 'acl:write',
    namespaced: true,
    answer: Deleted,
    whenEmpty: { refusal: 'Missing policy ID' },
  }),
  'policy.list': endpoint({
    kind: 'list',
    method: 'GET',
    path: '/v1/acl/policies',
    summary: 'List policies, by name, without their rules.',
    access: 'acl:read',
    namespaced: true,
    answer: Type.Array(PolicyListEntry),
  }),
};

export const ROLE_ENDPOINTS = {
  'role.create': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/role',
    summary: 'Create a role.',
    access: 'acl:write',
    namespaced: true,
    body: roleBody,
    answer: Role,
  }),
  'role.read': endpoint({
    kind: 'read',
    method: 'GET',
    path: '/v1/acl/role/:id',
    summary: 'Read a role.',
    access: 'acl:read',
    namespaced: true,
    answer: Role,
    whenEmpty: { refusal: 'Missing role ID' },
  }),
  'role.read-by-name': endpoint({
    kind: 'read',
    method: 'GET',
    path: '/v1/acl/role/name/:name',
    summary: 'Read a role by its name, in any letter case.',
    access: 'acl:read',
    namespaced: true,
    answer: Role,
    whenEmpty: { refusal: 'Missing role Name' },
  }),
  'role.update': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/role/:id',
    summary: 'Replace a role.',
    access: 'acl:write',
    namespaced: true,
    body: roleBody,
    answer: Role,
    whenEmpty: { create: 'role.create' },
  }),
  'role.delete': endpoint({
    kind: 'write',
    method: 'DELETE',
    path: '/v1/acl/role/:id',
    summary: 'Delete a role.',
    access: 'acl:write',
    namespaced: true,
    answer: Deleted,
    whenEmpty: { refusal: 'Missing role ID' },
  }),
  'role.list': endpoint({
    kind: 'list',
    method: 'GET',
    path: '/v1/acl/roles',
    summary: 'List roles, by name.',
    access: 'acl:read',
    namespaced: true,
    query: { policy: 'Only roles linked to the policy of this id; ordered by id.' },
    answer: Type.Array(Role),
  }),
};

export const TEMPLATE_ENDPOINTS = {
  'templated-policy.list': endpoint({
    kind: 'plain',
    method: 'GET',
    path: '/v1/acl/templated-policies',
    summary: 'List the templates, by name.',
    access: 'acl:read',
    namespaced: true,
    answer: Type.Record(Type.String(), Template),
  }),
  'templated-policy.read': endpoint({
    kind: 'plain',
    method: 'GET',
    path: '/v1/acl/templated-policy/name/:name',
    summary: 'Read a template.',
    access: 'acl:read',
    namespaced: true,
    answer: Template,
    whenEmpty: MISSING_TEMPLATE,
  }),
  'templated-policy.preview': endpoint({
    kind: 'plain',
    method: 'POST',
    path: '/v1/acl/templated-policy/preview/:name',
    summary: 'Show the policy that a template gives with these variables.',
    access: 'acl:read',
    namespaced: true,
    body: { schema: PreviewBody, label: 'Failed to decode request body', required: true },
    answer: Policy,
    whenEmpty: MISSING_TEMPLATE,
  }),
};
