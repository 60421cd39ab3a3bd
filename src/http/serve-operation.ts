// One request of an operation, from its bytes to its answer: checks in the order that the interface
// promises, one call through the door, headers by the kind of the endpoint. Never rejects: what goes
// wrong becomes the answer.

import { unreachable } from '../../cluster/base/unreachable.ts';
import { AclError } from '../acl/error.ts';
import { decodeBody } from '../api/decode.ts';
import type { Endpoint } from '../api/endpoint.ts';
import type { EndpointInput } from '../api/endpoints.ts';
import type { OperationName } from '../service/operations.ts';
import type {
  AuthMethodView,
  BindingRuleView,
  ListResult,
  NamespaceView,
  PolicyView,
  ReadResult,
  RoleView,
  TokenView,
  WriteResult,
} from '../service/views.ts';
import { answerWhenNewer } from './blocking.ts';
import { askedOf, type Blocking, pageOf } from './call-of.ts';
import { type Exchange, indexHeaders, writeHeaders } from './exchange.ts';
import { OPERATION_ROUTES } from './operation-routes.ts';
import { ENDPOINT_BY_OPERATION, type RouteRequest, type ValueOf } from './operation-types.ts';
import type { Parked } from './parked.ts';
import { sendList } from './send-list.ts';
import type { TokenInUrlWarning } from './token-in-url.ts';

/** What the requests of one server share. */
export interface Shared {
  readonly parked: Parked;
  readonly tokenInUrl: TokenInUrlWarning;
}

/** What the router found in a request. */
export interface Found {
  readonly parameter: string;
  readonly body: Uint8Array | undefined;
}

type View = TokenView | PolicyView | RoleView | AuthMethodView | BindingRuleView | NamespaceView;

/** Answers one request of an operation. */
export async function serveOperation<Name extends OperationName>(
  name: Name,
  shared: Shared,
  exchange: Exchange,
  found: Found,
): Promise<void> {
  const { operations, settings } = exchange.parts;
  const endpoint: Endpoint = ENDPOINT_BY_OPERATION[name];
  const route = OPERATION_ROUTES[name];
  let hasRun = false;
  try {
    if (!settings.aclEnabled) throw new AclError('acl-disabled', 'ACL support disabled');
    shared.tokenInUrl.maybeWarn(exchange);
    const { call, blocking } = askedOf(exchange, endpoint);
    const input = route.input(routeRequestOf<Name>(exchange, endpoint, found));
    hasRun = true;
    await give(exchange, shared.parked, {
      endpoint,
      blocking,
      run: () => operations.run(name, input, call),
      render: (value) => route.render(value as ValueOf<Name>, settings),
    });
  } catch (error) {
    if (hasRun && blockingKinds.has(endpoint.kind)) exchange.failRead(error);
    else exchange.fail(error);
  }
}

const blockingKinds: ReadonlySet<Endpoint['kind']> = new Set(['read', 'list']);

function routeRequestOf<Name extends OperationName>(
  exchange: Exchange,
  endpoint: Endpoint,
  found: Found,
): RouteRequest<Name> {
  return {
    parameter: found.parameter,
    query: exchange.query,
    body: bodyOf(exchange, endpoint, found) as EndpointInput<Name> | undefined,
    page: endpoint.kind === 'list' ? pageOf(exchange.query) : {},
  };
}

function bodyOf(exchange: Exchange, { body }: Endpoint, found: Found): unknown {
  if (body === undefined) return undefined;
  const bytes = found.body ?? new Uint8Array();
  if (bytes.length === 0 && !body.required) return undefined;
  const { namespaces } = exchange.parts.settings;
  return decodeBody(body.schema, bytes, { label: body.label, namespaces });
}

/** An operation about to run. Its output is what ENDPOINT_BY_OPERATION says of the endpoint's kind. */
interface Run {
  readonly endpoint: Endpoint;
  readonly blocking: Blocking | undefined;
  readonly run: () => Promise<unknown>;
  readonly render: (value: unknown) => string;
}

function give(exchange: Exchange, parked: Parked, run: Run): Promise<void> {
  switch (run.endpoint.kind) {
    case 'read':
      return giveRead(exchange, parked, run);
    case 'list':
      return giveList(exchange, parked, run);
    case 'write':
      return giveWrite(exchange, run);
    case 'plain':
      return givePlain(exchange, run);
    default:
      return unreachable(run.endpoint.kind);
  }
}

async function giveWrite(exchange: Exchange, run: Run): Promise<void> {
  const { value, meta } = (await run.run()) as WriteResult<unknown>;
  exchange.sendJson(run.render(value), writeHeaders(meta), meta.position);
}

async function givePlain(exchange: Exchange, run: Run): Promise<void> {
  exchange.sendJson(run.render(await run.run()), [], undefined);
}

async function giveRead(exchange: Exchange, parked: Parked, run: Run): Promise<void> {
  const watched = {
    run: run.run as () => Promise<ReadResult<View>>,
    metaOf: (result: ReadResult<View>) => result.meta,
    versionOf: (result: ReadResult<View>) =>
      result.refusal === undefined ? modifyIndexOf(result.value) : 0,
    // A policy may yet be created; the id of a token that is gone never comes back.
    isFinal: (result: ReadResult<View>) => result.refusal?.code === 'token-not-found',
    discard: async () => {},
  };
  const blocking = run.blocking ?? NOT_BLOCKING;
  const result = await answerWhenNewer(exchange, parked, { blocking, watched });
  if (result === undefined) return;
  const headers = indexHeaders(result.meta);
  if (result.refusal === undefined) {
    exchange.sendJson(run.render(result.value), headers, result.meta.position);
    return;
  }
  exchange.failRead(new AclError(result.refusal.code, result.refusal.message), headers);
}

async function giveList(exchange: Exchange, parked: Parked, run: Run): Promise<void> {
  const watched = {
    run: run.run as () => Promise<ListResult<unknown>>,
    metaOf: (result: ListResult<unknown>) => result.meta,
    versionOf: () => undefined,
    isFinal: () => false,
    discard: async (result: ListResult<unknown>) => {
      await result.slices[Symbol.asyncIterator]().return?.();
    },
  };
  const blocking = run.blocking ?? NOT_BLOCKING;
  const list = await answerWhenNewer(exchange, parked, { blocking, watched });
  if (list === undefined) return;
  const isPage = exchange.query.has('limit');
  await sendList(exchange, { list, renderItem: run.render, isPage });
}

const NOT_BLOCKING: Blocking = { index: 0, waitMs: 0 };

function modifyIndexOf(view: View): number {
  switch (view.kind) {
    case 'token':
      return view.token.modifyIndex;
    case 'policy':
      return view.policy.modifyIndex;
    case 'role':
      return view.role.modifyIndex;
    case 'auth-method':
      return view.method.modifyIndex;
    case 'binding-rule':
      return view.rule.modifyIndex;
    case 'namespace':
      return view.namespace.modifyIndex;
    default:
      return unreachable(view);
  }
}
