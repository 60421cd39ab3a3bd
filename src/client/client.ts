// The typed client of the service. One generic call turns an endpoint's definition and an input into a
// request and the answer into a value; it speaks the service's own dialect of headers and statuses. A
// write is sent once; a read whose connection broke is sent a second time.

import type { Endpoint } from '../api/endpoint.ts';
import { TEXT_ENDPOINTS } from '../api/endpoints-node.ts';
import {
  type Answer,
  type AnswerMeta,
  type CallArguments,
  type CallInput,
  type CallName,
  type CallOutput,
  definitionOf,
  type ListItem,
  type ListName,
  type QueryValue,
} from './call-types.ts';
import { ClientError } from './client-error.ts';
import { namedCalls, type NamedCalls } from './groups.ts';
import {
  type Transport,
  TransportError,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts';

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

export interface Client extends NamedCalls {
  /** Rejects with ClientError when the server refuses, with TransportError when it does not answer. */
  call<Name extends CallName>(
    name: Name,
    ...input: CallArguments<Name>
  ): Promise<Answer<CallOutput<Name>>>;
  /** The objects of a list, page by page as the caller takes them; `limit` is the size of a page. */
  pages<Name extends ListName>(
    name: Name,
    input?: CallInput<Name>,
  ): AsyncGenerator<readonly ListItem<Name>[]>;
}

/** The most objects that the service gives at once. */
export const PAGE_LIMIT_MAX = 1000;

/** What a call is given, with its exact types left behind. */
interface LooseInput {
  readonly path?: Readonly<Record<string, string>> | undefined;
  readonly query?: Readonly<Record<string, QueryValue>> | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: unknown;
}

/** A client of the server at `address`. Opens nothing and needs no closing. */
export function createClient(options: ClientOptions): Client {
  async function call(name: CallName, input: LooseInput = {}): Promise<Answer<unknown>> {
    const endpoint = definitionOf(name);
    const request = requestOf(endpoint, input, options);
    const response = await sent(request, options.transport);
    const asked = { method: request.method, path: new URL(request.url).pathname };
    if (response.status < 200 || response.status > 299) throw new ClientError(asked, response);
    const value = TEXT_ENDPOINTS.has(name) ? response.text : parsed(response);
    return { value, meta: metaOf(response) };
  }

  async function* pages(name: CallName, input: LooseInput = {}): AsyncGenerator<unknown> {
    let next: string | undefined;
    do {
      const query = {
        limit: PAGE_LIMIT_MAX,
        ...input.query,
        ...(next === undefined ? {} : { next }),
      };
      const page = await call(name, { ...input, query });
      yield page.value;
      next = page.meta.next;
    } while (next !== undefined);
  }

  // Inside, all endpoints are alike; the exact types of each stand in the interface.
  return {
    ...namedCalls(call as (name: CallName) => Promise<unknown>),
    call,
    pages,
  } as unknown as Client;
}

function requestOf(
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
  const isRead = endpoint.kind !== 'write';
  return {
    ns: endpoint.namespaced ? options.namespace : undefined,
    dc: options.datacenter,
    ...(isRead && consistency !== 'default' ? { [consistency]: true } : {}),
  };
}

/**
 * Fills in the parameters. An empty one is a mistake of the caller: on the wire it would mean another
 * endpoint, which for a PUT is the one that creates.
 */
function pathOf(template: string, parameters: Readonly<Record<string, string>>): string {
  return template.replace(/:(\w+)/g, (_, name: string) => {
    const value = parameters[name] ?? '';
    if (value === '') throw new Error(`the path parameter ${name} of ${template} is empty`);
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

/** A kept connection may be closed by the server just as a read is sent; a read can be repeated. */
async function sent(request: TransportRequest, transport: Transport): Promise<TransportResponse> {
  try {
    return await transport.send(request);
  } catch (error) {
    const isBroken = error instanceof TransportError && error.failure === 'broken';
    if (!isBroken || request.method !== 'GET') throw error;
    return transport.send(request);
  }
}

function parsed(response: TransportResponse): unknown {
  try {
    return JSON.parse(response.text) as unknown;
  } catch (error) {
    throw new TransportError('unreadable', `status ${response.status}, but the answer is no JSON`, {
      cause: error,
    });
  }
}

function metaOf(response: TransportResponse): AnswerMeta {
  const header = (name: string): string | undefined => response.headers[name] || undefined;
  const index = Number(header('x-service-index'));
  return {
    index: Number.isSafeInteger(index) && index > 0 ? index : undefined,
    position: header('x-service-position'),
    next: header('x-service-next'),
    ack: header('x-service-ack'),
  };
}
