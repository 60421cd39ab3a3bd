// One request of an operator, from its bytes to its answer: the same checks in the same order for all
// of them, one call through the operators' door. Never rejects: what goes wrong becomes the answer.

import { decodeBody } from '../../api/bodies/decode.ts';
import type { Endpoint } from '../../api/endpoints/endpoint.ts';
import {
  OPERATOR_ENDPOINTS,
  type OperatorEndpointName,
} from '../../api/endpoints/endpoints-operator.ts';
import { OPERATOR_ROUTES } from '../routes/operator-routes.ts';
import type { Exchange } from '../wire/exchange.ts';
import { askedOf } from './call-of.ts';
import type { Found, Shared } from './serve-operation.ts';

/** Answers one request of an operator endpoint. */
export async function serveOperator(
  name: OperatorEndpointName,
  exchange: Exchange,
  request: { readonly found: Found; readonly shared: Shared },
): Promise<void> {
  const endpoint: Endpoint = OPERATOR_ENDPOINTS[name];
  try {
    request.shared.tokenInUrl.maybeWarn(exchange);
    const { call } = askedOf(exchange, endpoint);
    const { json, status } = await OPERATOR_ROUTES[name](exchange.parts.operator, {
      query: exchange.query,
      body: bodyOf(endpoint, request.found),
      dialect: exchange.dialect,
      call,
    });
    exchange.sendJson(json, [], undefined, status);
  } catch (error) {
    exchange.fail(error);
  }
}

function bodyOf({ body }: Endpoint, found: Found): unknown {
  if (body === undefined) return undefined;
  const bytes = found.body ?? new Uint8Array();
  // Nothing in these bodies has a namespace.
  return decodeBody(body.schema, bytes, { label: body.label, namespaces: false });
}
