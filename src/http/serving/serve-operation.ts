// One request of an operation, from its bytes to its answer: checks in the order that the interface
// promises, one call through the door, headers by the kind of the endpoint. Never rejects: what goes
// wrong becomes the answer.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import { AclError } from '../../acl/error.ts';
import { aclDisabled } from '../../acl/refusals.ts';
import { decodeBody } from '../../api/bodies/decode.ts';
import type { Endpoint } from '../../api/endpoints/endpoint.ts';
import type { EndpointInput } from '../../api/endpoints/endpoints.ts';
import type { Call } from '../../service/call.ts';
import { OPERATION_TABLE } from '../../service/operation-table.ts';
import type { OperationInput, OperationName, Soon } from '../../service/operations.ts';
import type { ListResult, ObjectView, ReadResult, WriteResult } from '../../service/views.ts';
import type { Page } from '../../state/view.ts';
import { OPERATION_ROUTES } from '../routes/operation-routes.ts';
import {
  ENDPOINT_BY_OPERATION,
  type OperationEndpoint,
  type OperationRoute,
  type RouteRequest,
  type ValueOf,
} from '../routes/operation-types.ts';
import { type Exchange, indexHeaders, writeHeaders } from '../wire/exchange.ts';
import type { TokenInUrlWarning } from '../wire/token-in-url.ts';
import { answerWhenNewer } from './blocking.ts';
import { askedOf, type Blocking, pageOf } from './call-of.ts';
import type { Parked } from './parked.ts';
import { RepeatedBodies } from './repeated-bodies.ts';
import { sendList } from './send-list.ts';

/** What the requests of one server share. */
export interface Shared {
  readonly parked: Parked;
  readonly tokenInUrl: TokenInUrlWarning;
}

/** What the router found in a request. */
export interface Found {
  readonly parameter: string;
  readonly body: Buffer | undefined;
}

/** A route with all that is known of it before a request comes. */
interface Prepared<Name extends OperationName> {
  readonly name: Name;
  readonly endpoint: OperationEndpoint;
  readonly route: OperationRoute<Name>;
  readonly shared: Shared;
  /** Undefined: nobody is expected to send the same body twice. */
  readonly repeated: RepeatedBodies | undefined;
  readonly isRead: boolean;
}

/** Answers one request: at once where nothing has to be waited for. Neither throws nor rejects. */
export type Serve = (exchange: Exchange, found: Found) => Promise<void> | undefined;

/** Prepares the route of an operation. */
export function operationServer<Name extends OperationName>(name: Name, shared: Shared): Serve {
  const endpoint: OperationEndpoint = ENDPOINT_BY_OPERATION[name];
  const repeated = endpoint.body?.isRepeated === true ? new RepeatedBodies() : undefined;
  const isRead = OPERATION_TABLE[name].kind === 'read';
  const prepared = { name, endpoint, route: OPERATION_ROUTES[name], shared, repeated, isRead };
  return (exchange, found) => serveOperation(prepared, exchange, found);
}

/** Serves the path of an operation without the id or the name that belongs there. */
export function missingServer(refusal: string): Serve {
  return (exchange) => {
    const { aclEnabled } = exchange.parts.settings;
    exchange.fail(aclEnabled ? new AclError('malformed', refusal) : aclDisabled());
    return undefined;
  };
}

function serveOperation<Name extends OperationName>(
  prepared: Prepared<Name>,
  exchange: Exchange,
  found: Found,
): Promise<void> | undefined {
  const { endpoint, route, shared } = prepared;
  let hasRun = false;
  const fail = (error: unknown): void => {
    if (hasRun && blockingKinds.has(endpoint.kind)) exchange.failRead(error);
    else exchange.fail(error);
  };
  try {
    if (!exchange.parts.settings.aclEnabled) throw aclDisabled();
    shared.tokenInUrl.maybeWarn(exchange);
    const { call, blocking } = askedOf(exchange, endpoint);
    const input = route.input(routeRequestOf(prepared, exchange, found));
    hasRun = true;
    return give({ prepared, exchange, input, call, blocking })?.catch(fail);
  } catch (error) {
    fail(error);
    return undefined;
  }
}

/** Runs the operation and sends what it gives. Throws, or rejects, as the operation does. */
function give<Name extends OperationName>(run: Run<Name>): Promise<void> | undefined {
  const { kind } = run.prepared.endpoint;
  switch (kind) {
    case 'read':
      return withOutput(readWhenNewer(run), (result) => sendRead(run, result));
    case 'list':
      return giveList(run);
    case 'write':
      return withOutput(runOnce(run), (output) =>
        sendWrite(run, output as WriteResult<ValueOf<Name>>),
      );
    case 'plain':
      return withOutput(runOnce(run), (output) =>
        run.exchange.sendJson(rendered(run, output as ValueOf<Name>), [], undefined),
      );
    default:
      return unreachable(kind);
  }
}

/** No turn of the microtask queue for what is there already: beside a read from memory it is dear. */
function withOutput<Output>(
  output: Output | Promise<Output>,
  use: (output: Output) => void,
): Promise<void> | undefined {
  if (output instanceof Promise) return output.then(use);
  use(output);
  return undefined;
}

const blockingKinds: ReadonlySet<Endpoint['kind']> = new Set(['read', 'list']);

function routeRequestOf<Name extends OperationName>(
  prepared: Prepared<Name>,
  exchange: Exchange,
  found: Found,
): RouteRequest<Name> {
  return {
    parameter: found.parameter,
    query: exchange.query,
    body: bodyOf(prepared, exchange, found) as EndpointInput<Name> | undefined,
    page: prepared.endpoint.kind === 'list' ? pageOf(exchange.query) : NO_PAGE,
  };
}

const NO_PAGE: Page = {};

function bodyOf(
  { endpoint: { body }, repeated }: Pick<Prepared<OperationName>, 'endpoint' | 'repeated'>,
  exchange: Exchange,
  found: Found,
): unknown {
  if (body === undefined) return undefined;
  const bytes = found.body ?? NO_BYTES;
  if (bytes.length === 0 && !body.required) return undefined;
  const { namespaces } = exchange.parts.settings;
  const decode = () => decodeBody(body.schema, bytes, { label: body.label, namespaces }) as object;
  return repeated === undefined ? decode() : repeated.decoded(bytes, decode);
}

const NO_BYTES = Buffer.alloc(0);

/**
 * An operation about to run. Its output is what ENDPOINT_BY_OPERATION says of the endpoint's kind,
 * which the compiler cannot follow: the functions below that ask for an output say which.
 */
interface Run<Name extends OperationName> {
  readonly prepared: Prepared<Name>;
  readonly exchange: Exchange;
  readonly input: OperationInput<Name>;
  readonly call: Call;
  readonly blocking: Blocking | undefined;
}

function runOnce<Name extends OperationName>({
  prepared,
  exchange,
  input,
  call,
}: Run<Name>): Soon<Name> {
  const { operations } = exchange.parts;
  if (prepared.isRead) return operations.answer(prepared.name, input, call);
  return operations.answer(prepared.name, input, call, () => exchange.isGone);
}

function rendered<Name extends OperationName>(run: Run<Name>, value: ValueOf<Name>): string {
  return run.prepared.route.render(value, run.exchange.parts.settings);
}

function sendWrite<Name extends OperationName>(
  run: Run<Name>,
  { value, meta }: WriteResult<ValueOf<Name>>,
): void {
  run.exchange.sendJson(rendered(run, value), writeHeaders(meta), meta.position);
}

/** Undefined when the client went away while the request waited. */
function readWhenNewer<Name extends OperationName>(
  run: Run<Name>,
): ReadResult<ObjectView> | undefined | Promise<ReadResult<ObjectView> | undefined> {
  const once = () => runOnce(run) as ReadResult<ObjectView> | Promise<ReadResult<ObjectView>>;
  const blocking = run.blocking ?? NOT_BLOCKING;
  if (blocking.index === 0) return once();
  const watched = { ...READS, run: once };
  return answerWhenNewer(run.exchange, run.prepared.shared.parked, { blocking, watched });
}

const READS = {
  metaOf: (result: ReadResult<ObjectView>) => result.meta,
  versionOf: (result: ReadResult<ObjectView>) =>
    result.refusal === undefined ? modifyIndexOf(result.value) : 0,
  // A policy may yet be created; the id of a token that is gone never comes back.
  isFinal: (result: ReadResult<ObjectView>) => result.refusal?.code === 'token-not-found',
  discard: async () => {},
};

function sendRead<Name extends OperationName>(
  run: Run<Name>,
  result: ReadResult<ObjectView> | undefined,
): void {
  if (result === undefined) return;
  const { exchange } = run;
  const headers = indexHeaders(result.meta);
  if (result.refusal === undefined) {
    const body = rendered(run, result.value as ValueOf<Name>);
    exchange.sendJson(body, headers, result.meta.position);
    return;
  }
  exchange.failRead(new AclError(result.refusal.code, result.refusal.message), headers);
}

async function giveList<Name extends OperationName>(run: Run<Name>): Promise<void> {
  const { exchange, prepared } = run;
  const watched = { ...LISTS, run: () => listOf(run) };
  const blocking = run.blocking ?? NOT_BLOCKING;
  const list = await answerWhenNewer(exchange, prepared.shared.parked, { blocking, watched });
  if (list === undefined) return;
  const isPage = exchange.query.has('limit');
  const renderItem = (item: ValueOf<Name>) => rendered(run, item);
  await sendList(exchange, { list, renderItem, isPage });
}

function listOf<Name extends OperationName>(run: Run<Name>) {
  return runOnce(run) as ListResult<ValueOf<Name>> | Promise<ListResult<ValueOf<Name>>>;
}

const LISTS = {
  metaOf: (result: ListResult<unknown>) => result.meta,
  versionOf: () => undefined,
  isFinal: () => false,
  discard: async (result: ListResult<unknown>) => {
    await result.slices[Symbol.asyncIterator]().return?.();
  },
};

const NOT_BLOCKING: Blocking = { index: 0, waitMs: 0 };

function modifyIndexOf(view: ObjectView): number {
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
