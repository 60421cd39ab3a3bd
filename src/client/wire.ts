// From a call to its request, and from the headers of an answer to what they mean. All endpoints are
// alike here: their exact types are the business of the client's interface.

import type { Endpoint } from '../api/endpoints/endpoint.ts';
import type { AnswerMeta, QueryValue } from './call-types.ts';
import type { Transport, TransportRequest, TransportResponse } from './transport.ts';

export interface ClientOptions {
  /** Scheme, host and port: `http://127.0.0.1:8500`. */
  readonly address: string;
  readonly transport: Transport;
  /** The secret of the token to act with; without it the service sees the anonymous token. */
  readonly token?: string | undefined;
  /** Default namespace of the calls that have one. */
  readonly namespace?: string | undefined;
  readonly datacenter?: string | undefined;
  /** For reads. `stale` answers may lag behind a write that was just made. */
  readonly consistency?: 'stale' | 'default' | 'consistent' | undefined;
}

/** What a call is given, with its exact types left behind. */
export interface LooseInput {
  readonly path?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, QueryValue>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

/** The request of a call. Throws where the path would mean another endpoint. */
export function requestOf(
  endpoint: Endpoint,
  input: LooseInput,
  options: ClientOptions,
): TransportRequest {
  const query = queryText({ ...defaultQuery(endpoint, options), ...input.query });
  const body = input.body === undefined ? undefined : JSON.stringify(input.body);
  return {
    method: endpoint.method,
    url: `${options.address}${pathOf(endpoint.path, input.path ?? {})}${query}`,
    headers: {
      accept: 'application/json, application/problem+json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(options.token === undefined ? {} : { 'x-service-token': options.token }),
      ...input.headers,
    },
    body,
  };
}

function defaultQuery(
  endpoint: Endpoint,
  options: ClientOptions,
): Readonly<Record<string, QueryValue>> {
  const { consistency = 'default' } = options;
  const isRead = endpoint.kind !== 'write' && endpoint.kind !== 'control';
  return {
    ns: endpoint.namespaced ? options.namespace : undefined,
    dc: options.datacenter,
    ...(isRead && consistency !== 'default' ? { [consistency]: true } : {}),
  };
}

/**
 * Fills in the parameters. An empty one, or dots that lead elsewhere, is a mistake of the caller: on the wire it would
 * mean another endpoint, which for a PUT is the one that creates.
 */
function pathOf(template: string, parameters: Readonly<Record<string, string>>): string {
  return template.replace(/:(\w+)/g, (_, name: string) => {
    const value = parameters[name] ?? '';
    if (value === '') throw new Error(`the path parameter ${name} of ${template} is empty`);
    if (value === '.' || value === '..')
      throw new Error(`the path parameter ${name} of ${template} is ${value}`);
    return encodeURIComponent(value);
  });
}

function queryText(query: Readonly<Record<string, QueryValue>>): string {
  const parts = Object.entries(query).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    return [value === true ? name : `${name}=${encodeURIComponent(value)}`];
  });
  return parts.length === 0 ? '' : `?${parts.join('&')}`;
}

/** What the headers of an answer say. */
export function metaOf(response: Pick<TransportResponse, 'headers'>): AnswerMeta {
  const header = (name: string): string | undefined => response.headers[name] || undefined;
  const index = Number(header('x-service-index'));
  return {
    index: Number.isSafeInteger(index) && index > 0 ? index : undefined,
    position: header('x-service-position'),
    next: header('x-service-next'),
    ack: header('x-service-ack'),
  };
}
