// How the wire's endpoints and the service's operations fit together, as types: a compile error here
// means that one of the two has changed without the other.

import type { Endpoint, EndpointKind } from '../../api/endpoints/endpoint.ts';
import { ENDPOINTS, type EndpointInput } from '../../api/endpoints/endpoints.ts';
import type { WireStyle } from '../../api/render/shown.ts';
import type { OperationInput, OperationName, OperationOutput } from '../../service/operations.ts';
import type { ListResult, ReadMeta, WriteMeta } from '../../service/views.ts';
import type { Page } from '../../state/view.ts';
import type { Query } from '../wire/query.ts';

/** How an operation's output decides the kind of its endpoint. */
type KindOf<Name extends OperationName> =
  OperationOutput<Name> extends ListResult<unknown>
    ? 'list'
    : OperationOutput<Name> extends { readonly meta: WriteMeta }
      ? 'write'
      : OperationOutput<Name> extends { readonly meta: ReadMeta }
        ? 'read'
        : 'plain';

/** What is rendered: the object, or one item of a list. */
export type ValueOf<Name extends OperationName> =
  OperationOutput<Name> extends ListResult<infer Item>
    ? Item
    : OperationOutput<Name> extends { readonly meta: WriteMeta | ReadMeta }
      ? Exclude<Extract<OperationOutput<Name>, { readonly value: unknown }>['value'], undefined>
      : OperationOutput<Name>;

/** What a request brings for its operation, after decoding. */
export interface RouteRequest<Name extends OperationName> {
  /** The parameter of the path; empty where the path has none. */
  readonly parameter: string;
  readonly query: Query;
  /** Undefined where the endpoint takes no body, and where an optional one is absent. */
  readonly body: EndpointInput<Name> | undefined;
  readonly page: Page;
}

/** The part of a route that differs from operation to operation. */
export interface OperationRoute<Name extends OperationName> {
  readonly input: (request: RouteRequest<Name>) => OperationInput<Name>;
  readonly render: (value: ValueOf<Name>, style: WireStyle) => string;
}

/** The endpoint of an operation. */
export type OperationEndpoint = Endpoint & { readonly kind: Exclude<EndpointKind, 'control'> };

/** Every operation has its endpoint, and the endpoint's kind is what the operation gives. */
export const ENDPOINT_BY_OPERATION: {
  readonly [Name in OperationName]: OperationEndpoint & { readonly kind: KindOf<Name> };
} = ENDPOINTS;
