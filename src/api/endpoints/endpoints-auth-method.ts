// Auth methods and binding rules on the wire.

import { Type } from 'typebox';
import { AuthMethod, AuthMethodListEntry, BindingRule, Deleted } from '../bodies/answers.ts';
import { AuthMethodBody, BindingRuleBody } from '../bodies/bodies.ts';
import { endpoint } from './endpoint.ts';

const authMethodBody = {
  schema: AuthMethodBody,
  label: 'AuthMethod decoding failed',
  required: true,
} as const;
const bindingRuleBody = {
  schema: BindingRuleBody,
  label: 'BindingRule decoding failed',
  required: true,
} as const;

export const AUTH_METHOD_ENDPOINTS = {
  'auth-method.create': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/auth-method',
    summary: 'Create an auth method, or replace the one of that name.',
    access: 'acl:write',
    namespaced: true,
    body: authMethodBody,
    answer: AuthMethod,
  }),
  'auth-method.read': endpoint({
    kind: 'read',
    method: 'GET',
    path: '/v1/acl/auth-method/:name',
    summary: 'Read an auth method.',
    access: 'acl:read',
    namespaced: true,
    answer: AuthMethod,
    whenEmpty: { refusal: 'Missing auth method name' },
  }),
  'auth-method.update': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/auth-method/:name',
    summary: 'Replace an auth method.',
    access: 'acl:write',
    namespaced: true,
    body: authMethodBody,
    answer: AuthMethod,
    whenEmpty: { create: 'auth-method.create' },
  }),
  'auth-method.delete': endpoint({
    kind: 'write',
    method: 'DELETE',
    path: '/v1/acl/auth-method/:name',
    summary: 'Delete an auth method, its binding rules and its tokens.',
    access: 'acl:write',
    namespaced: true,
    answer: Deleted,
    whenEmpty: { refusal: 'Missing auth method name' },
  }),
  'auth-method.list': endpoint({
    kind: 'list',
    method: 'GET',
    path: '/v1/acl/auth-methods',
    summary: 'List auth methods, by name, without their configuration.',
    access: 'acl:read',
    namespaced: true,
    answer: Type.Array(AuthMethodListEntry),
  }),
};

export const BINDING_RULE_ENDPOINTS = {
  'binding-rule.create': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/binding-rule',
    summary: 'Create a binding rule.',
    access: 'acl:write',
    namespaced: true,
    body: bindingRuleBody,
    answer: BindingRule,
  }),
  'binding-rule.read': endpoint({
    kind: 'read',
    method: 'GET',
    path: '/v1/acl/binding-rule/:id',
    summary: 'Read a binding rule.',
    access: 'acl:read',
    namespaced: true,
    answer: BindingRule,
    whenEmpty: { refusal: 'Missing binding rule ID' },
  }),
  'binding-rule.update': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/acl/binding-rule/:id',
    summary: 'Replace a binding rule.',
    access: 'acl:write',
    namespaced: true,
    body: bindingRuleBody,
    answer: BindingRule,
    whenEmpty: { create: 'binding-rule.create' },
  }),
  'binding-rule.delete': endpoint({
    kind: 'write',
    method: 'DELETE',
    path: '/v1/acl/binding-rule/:id',
    summary: 'Delete a binding rule.',
    access: 'acl:write',
    namespaced: true,
    answer: Deleted,
    whenEmpty: { refusal: 'Missing binding rule ID' },
  }),
  'binding-rule.list': endpoint({
    kind: 'list',
    method: 'GET',
    path: '/v1/acl/binding-rules',
    summary: 'List binding rules, by id.',
    access: 'acl:read',
    namespaced: true,
    query: { authmethod: 'Only the rules of this auth method.' },
    answer: Type.Array(BindingRule),
  }),
};
