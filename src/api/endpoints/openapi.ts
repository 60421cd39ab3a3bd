// The OpenAPI 3.1 document, made from the endpoint definitions and from nothing else. Schemas with a
// title become components; the paths are those that a server answers.

import { ARCHIVE_TYPE, archive } from '../bodies/schema.ts';
import type { Endpoint } from './endpoint.ts';
import { ENDPOINTS } from './endpoints.ts';
import { NODE_ENDPOINTS, TEXT_ENDPOINTS } from './endpoints-node.ts';
import { OPERATOR_ENDPOINTS, SNAPSHOT_ENDPOINTS } from './endpoints-operator.ts';
import { NAMESPACE_PARAMETER, QUERY_BY_KIND } from './query-parameters.ts';

const ALL_ENDPOINTS = {
  ...ENDPOINTS,
  ...NODE_ENDPOINTS,
  ...OPERATOR_ENDPOINTS,
  ...SNAPSHOT_ENDPOINTS,
};

type Json = string | number | boolean | null | readonly Json[] | JsonObject;
interface JsonObject {
  readonly [key: string]: Json;
}

const DESCRIPTION =
  'A replicated, multi-datacenter access-control service. Every header `X-Service-…` is also known ' +
  'as `X-Consul-…`, on requests and on answers. Field names of bodies are matched in any letter case.';

/** The document as a value; `version` is the one of the program. */
export function openApiDocument(version: string): JsonObject {
  const components = new Map<string, Json>();
  const paths: Record<string, Record<string, Json>> = {};
  for (const [name, endpoint] of Object.entries<Endpoint>(ALL_ENDPOINTS)) {
    const path = endpoint.path.replace(/:(\w+)/g, '{$1}');
    paths[path] ??= {};
    paths[path][endpoint.method.toLowerCase()] = operationOf(name, endpoint, components);
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Conclave',
      version,
      description: DESCRIPTION,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      responses: { Refusal: REFUSAL },
      securitySchemes: {
        token: { type: 'apiKey', in: 'header', name: 'X-Service-Token' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
    security: [{}, { token: [] }, { bearer: [] }],
  };
}

/** What a refusal looks like, whatever its status. */
const REFUSAL: JsonObject = {
  description:
    'A refusal: its text, or the same as RFC 9457 when `application/problem+json` is accepted.',
  content: {
    'text/plain': { schema: { type: 'string' } },
    'application/problem+json': {
      schema: {
        type: 'object',
        required: ['type', 'title', 'status', 'detail', 'code'],
        properties: {
          type: { type: 'string' },
          title: { type: 'string' },
          status: { type: 'integer' },
          detail: { type: 'string' },
          code: { type: 'string' },
        },
      },
    },
  },
};

function operationOf(name: string, endpoint: Endpoint, components: Map<string, Json>): Json {
  const { alsoAnswers } = endpoint;
  const answered = {
    [typeOfAnswer(name, endpoint)]: { schema: hoisted(endpoint.answer, components) },
    ...(endpoint.alsoAsText === true ? { 'text/plain': { schema: { type: 'string' } } } : {}),
  };
  return {
    operationId: name,
    tags: [name.replace(/\..*/, '')],
    summary: endpoint.summary,
    description: `Access: ${endpoint.access}.`,
    parameters: parametersOf(endpoint),
    ...requestBodyOf(endpoint, components),
    responses: {
      '200': { description: 'Done.', content: answered },
      ...(alsoAnswers === undefined
        ? {}
        : { [alsoAnswers.status]: { description: alsoAnswers.says, content: answered } }),
      default: { $ref: '#/components/responses/Refusal' },
    },
  };
}

function typeOfAnswer(name: string, { archive: place }: Endpoint): string {
  if (place === 'answer') return ARCHIVE_TYPE;
  return TEXT_ENDPOINTS.has(name) ? 'text/plain' : 'application/json';
}

function parametersOf(endpoint: Endpoint): Json[] {
  const query = {
    ...endpoint.query,
    ...(endpoint.namespaced ? NAMESPACE_PARAMETER : {}),
    ...QUERY_BY_KIND[endpoint.kind],
  };
  const inPath = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(query).map(([name, description]) => ({
    name,
    in: 'query',
    description,
    schema: { type: 'string' },
  }));
  return [...inPath, ...inQuery];
}

function requestBodyOf(endpoint: Endpoint, components: Map<string, Json>): JsonObject {
  if (endpoint.archive === 'body') {
    const schema = hoisted(archive('An archive, as `GET` on this path gives it.'), components);
    return { requestBody: { required: true, content: { [ARCHIVE_TYPE]: { schema } } } };
  }
  if (endpoint.body === undefined) return {};
  const schema = hoisted(endpoint.body.schema, components);
  return {
    requestBody: {
      required: endpoint.body.required,
      content: { 'application/json': { schema } },
    },
  };
}

/** The schema as plain JSON; parts with a title are moved to the components and referred to. */
function hoisted(schema: unknown, components: Map<string, Json>): Json {
  if (Array.isArray(schema)) return schema.map((item: unknown) => hoisted(item, components));
  if (typeof schema !== 'object' || schema === null) return schema as Json;
  const plain: Record<string, Json> = {};
  for (const [key, value] of Object.entries(schema)) plain[key] = hoisted(value, components);
  const { title } = plain;
  if (typeof title !== 'string') return plain;
  components.set(title, plain);
  return { $ref: `#/components/schemas/${title}` };
}
