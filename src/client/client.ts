// The typed client of the service. One generic call turns an endpoint's definition and an input into a
// request and the answer into a value; it speaks the service's own dialect of headers and statuses. A
// write is sent once; a read whose connection broke is sent a second time.

import type { Endpoint } from '../api/endpoints/endpoint.ts';
import { TEXT_ENDPOINTS } from '../api/endpoints/endpoints-node.ts';
import { unreadable, valueIn } from './answer-shape.ts';
import {
  type Answer,
  type CallArguments,
  type CallInput,
  type CallName,
  type CallOutput,
  definitionOf,
  type ListItem,
  type ListName,
} from './call-types.ts';
import { ClientError } from './client-error.ts';
import { type NamedCalls, namedCalls } from './groups.ts';
import { type SnapshotCalls, snapshotCalls } from './snapshots.ts';
import {
  type Transport,
  TransportError,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts';
import { type ClientOptions, type LooseInput, metaOf, requestOf } from './wire.ts';

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
  /** The whole state of a datacenter, out and in. */
  readonly snapshot: SnapshotCalls;
}

/** The most objects that the service gives at once. */
export const PAGE_LIMIT_MAX = 1000;

/** A client of the server at `address`. Opens nothing and needs no closing. */
export function createClient(options: ClientOptions): Client {
  async function call(name: CallName, input: LooseInput = {}): Promise<Answer<unknown>> {
    const endpoint = definitionOf(name);
    const request = requestOf(endpoint, input, options);
    const response = await sent(request, options.transport);
    const asked = { method: request.method, path: new URL(request.url).pathname };
    if (!isAnswer(endpoint, response)) throw new ClientError(asked, response);
    const value = TEXT_ENDPOINTS.has(name) ? response.text : valueIn(endpoint.answer, response);
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
      // Whoever answers to that with the same again never comes to an end.
      if (page.meta.next !== undefined && page.meta.next === next) throw unreadable(200);
      next = page.meta.next;
    } while (next !== undefined);
  }

  // Inside, all endpoints are alike; the exact types of each stand in the interface.
  return {
    ...namedCalls(call as (name: CallName) => Promise<unknown>),
    call,
    pages,
    snapshot: snapshotCalls(options),
  } as unknown as Client;
}

/** Whether the body is what the endpoint promises. A refusal of the same status is text. */
function isAnswer({ alsoAnswers }: Endpoint, { status, headers }: TransportResponse): boolean {
  if (status >= 200 && status <= 299) return true;
  return status === alsoAnswers?.status && headers['content-type'] === 'application/json';
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
