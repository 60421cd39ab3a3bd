// Namespaces, authorize and the state of replication on the wire.

import { Type } from 'typebox';
import { AUTHORIZATIONS_MAX } from '../../authz/parse-authorization.ts';
import { Authorization, Deleted, Namespace, ReplicationStatus } from '../bodies/answers.ts';
import { AuthorizeBody, NamespaceBody } from '../bodies/bodies.ts';
import { endpoint } from './endpoint.ts';
import { MISSING_ID } from './endpoints-token.ts';

const namespaceBody = {
  schema: NamespaceBody,
  label: 'Namespace decoding failed',
  required: true,
} as const;

export const NAMESPACE_ENDPOINTS = {
  'namespace.create': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/namespace',
    summary: 'Create a namespace.',
    access: 'operator:write',
    namespaced: false,
    body: namespaceBody,
    answer: Namespace,
  }),
  'namespace.read': endpoint({
    kind: 'read',
    method: 'GET',
    path: '/v1/namespace/:name',
    summary: 'Read a namespace.',
    access: 'operator:read',
    namespaced: false,
    answer: Namespace,
    whenEmpty: { refusal: 'Missing namespace name' },
  }),
  'namespace.update': endpoint({
    kind: 'write',
    method: 'PUT',
    path: '/v1/namespace/:name',
    summary: 'Replace a namespace.',
    access: 'operator:write',
    namespaced: false,
    body: namespaceBody,
    answer: Namespace,
    whenEmpty: { create: 'namespace.create' },
  }),
  'namespace.delete': endpoint({
    kind: 'write',
    method: 'DELETE',
    path: '/v1/namespace/:name',
    summary: 'Delete a namespace that holds nothing.',
    access: 'operator:write',
    namespaced: false,
    answer: Deleted,
    whenEmpty: { refusal: 'Missing namespace name' },
  }),
  'namespace.list': endpoint({
    kind: 'list',
    method: 'GET',
    path: '/v1/namespaces',
    summary: 'List namespaces, by name.',
    access: 'operator:read',
    namespaced: false,
    answer: Type.Array(Namespace),
  }),
};

const ASKING = {
  explain: 'Present and not `false` or `0`: each answer says what decided it.',
  ns: 'The namespace of the questions that name none. Ignored while namespaces are off.',
};
const QUESTIONS = {
  schema: AuthorizeBody,
  label: 'Failed to decode request body',
  required: true,
  isRepeated: true,
} as const;

export const OTHER_ENDPOINTS = {
  authorize: endpoint({
    kind: 'plain',
    method: 'POST',
    path: '/v1/internal/acl/authorize',
    summary: `Ask what the presented token may do; at most ${AUTHORIZATIONS_MAX} questions.`,
    access: 'none',
    namespaced: false,
    query: ASKING,
    body: QUESTIONS,
    answer: Type.Array(Authorization),
  }),
  'token.authorize': endpoint({
    kind: 'plain',
    method: 'POST',
    path: '/v1/internal/acl/authorize/:accessorId',
    summary: 'Ask the same of the token with that accessor id, by the rights of the one presented.',
    access: 'acl:read',
    namespaced: false,
    query: ASKING,
    body: QUESTIONS,
    answer: Type.Array(Authorization),
    whenEmpty: MISSING_ID,
  }),
  'replication.status': endpoint({
    kind: 'plain',
    method: 'GET',
    path: '/v1/acl/replication',
    summary: 'How far this datacenter follows the primary one.',
    access: 'none',
    namespaced: false,
    answer: ReplicationStatus,
  }),
};
