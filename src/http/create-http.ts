// The HTTP server: every endpoint of src/api as a route of fastify, with the answers for everything
// that is no route. It does not listen; whoever calls `listen` on the result owns it and closes it.
// Fastify routes, reads bodies and looks after connections; answers are written by exchange.ts.

import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { AclError } from '../acl/error.ts';
import type { Endpoint } from '../api/endpoints/endpoint.ts';
import { NODE_ENDPOINTS, type NodeEndpointName } from '../api/endpoints/endpoints-node.ts';
import {
  OPERATOR_ENDPOINTS,
  type OperatorEndpointName,
  SNAPSHOT_ENDPOINTS,
  type SnapshotEndpointName,
} from '../api/endpoints/endpoints-operator.ts';
import { OPERATION_TABLE } from '../service/operation-table.ts';
import type { OperationName } from '../service/operations.ts';
import { fastifyOptionsOf, REDIRECT_PATH, REFUSED_PATH } from './fastify-options.ts';
import { RouteStats } from './figures/route-stats.ts';
import { HeldRequests } from './limits/held-requests.ts';
import type { RequestSort } from './limits/rate-limit.ts';
import type { HttpParts } from './parts.ts';
import { ENDPOINT_BY_OPERATION } from './routes/operation-types.ts';
import { type Entrance, PlainLane } from './routes/plain-lane.ts';
import { RouteTable, routePathOf } from './routes/route-table.ts';
import {
  answerRedirect,
  answerUnknownPath,
  answerWrongMethod,
  refusePath,
} from './routes/unrouted.ts';
import { Parked } from './serving/parked.ts';
import { serveInTurn } from './serving/serve-in-turn.ts';
import { serveNode } from './serving/serve-node.ts';
import {
  type Found,
  missingServer,
  operationServer,
  type Shared,
} from './serving/serve-operation.ts';
import { serveOperator } from './serving/serve-operator.ts';
import { serveSnapshot } from './serving/serve-snapshot.ts';
import { Exchange, RetryLater } from './wire/exchange.ts';
import { TokenInUrlWarning } from './wire/token-in-url.ts';

type Serve = (exchange: Exchange, found: Found) => Promise<void> | void;
/** Whether a request may go on; one that may not is answered. */
type Gate = (exchange: Exchange) => boolean;
type Hook = (request: FastifyRequest, reply: FastifyReply, done: () => void) => void;

/**
 * Builds the server. `close()` of the result ends all blocking queries with an answer and lets
 * requests under way finish.
 */
export function createHttp(parts: HttpParts): FastifyInstance {
  const app = fastify(fastifyOptionsOf(parts)) as unknown as FastifyInstance;
  const shared: Shared = {
    parked: new Parked(parts.settings.blockingQueriesMax),
    tokenInUrl: new TokenInUrlWarning(),
  };
  const server = new HttpServer(app, parts, shared);
  server.acceptAnyBody();
  server.routeOperations();
  server.routeNode();
  server.routeOperator();
  server.routeTheRest();
  server.lane.openOn(app.server);
  serveInTurn(app.server, parts.logger);
  app.addHook('preClose', async () => {
    server.lane.close();
    shared.parked.close();
  });
  const { tls } = parts.settings;
  parts.clientLimits.connections.keep(app.server, { isPlain: tls === undefined });
  const labels = { listener: tls === undefined ? 'http' : 'https' };
  const waiting = parts.metrics.gauge('conclave.http.blocking_queries', labels);
  parts.metrics.onCollect(() => waiting.set(shared.parked.count));
  return app;
}

/** The routes of one server. */
class HttpServer {
  readonly lane: PlainLane;
  readonly #app: FastifyInstance;
  readonly #parts: HttpParts;
  readonly #shared: Shared;
  readonly #unrouted: RouteStats;
  readonly #held = new HeldRequests();
  readonly #table = new RouteTable([
    ...Object.values<Endpoint>(ENDPOINT_BY_OPERATION),
    ...Object.values<Endpoint>(NODE_ENDPOINTS),
    ...Object.values<Endpoint>(OPERATOR_ENDPOINTS),
    ...Object.values<Endpoint>(SNAPSHOT_ENDPOINTS),
  ]);

  constructor(app: FastifyInstance, parts: HttpParts, shared: Shared) {
    this.#app = app;
    this.#parts = parts;
    this.#shared = shared;
    this.lane = new PlainLane(parts.settings.bodyMaxBytes);
    this.#unrouted = new RouteStats(parts.metrics, { method: '', template: 'none' });
  }

  /** Bodies are JSON whatever they call themselves; they are decoded by the endpoint's schema. */
  acceptAnyBody(): void {
    this.#app.removeAllContentTypeParsers();
    this.#app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => {
      done(null, body);
    });
    this.#app.setErrorHandler((error, request, reply) => {
      reply.hijack();
      this.#fail(this.#exchangeOf(this.#unrouted, request, reply), error);
    });
  }

  routeOperations(): void {
    for (const name of Object.keys(ENDPOINT_BY_OPERATION) as OperationName[]) {
      this.#routeOperation(name);
    }
  }

  routeNode(): void {
    for (const name of Object.keys(NODE_ENDPOINTS) as NodeEndpointName[]) {
      this.#route(NODE_ENDPOINTS[name], (exchange, found) => serveNode(name, exchange, found));
    }
  }

  routeOperator(): void {
    const shared = this.#shared;
    for (const name of Object.keys(OPERATOR_ENDPOINTS) as OperatorEndpointName[]) {
      this.#route(OPERATOR_ENDPOINTS[name], (exchange, found) =>
        serveOperator(name, exchange, { found, shared }),
      );
    }
    for (const name of Object.keys(SNAPSHOT_ENDPOINTS) as SnapshotEndpointName[]) {
      const serve = (exchange: Exchange) => serveSnapshot(name, exchange, shared);
      this.#routeUnread(SNAPSHOT_ENDPOINTS[name], serve);
    }
  }

  /** Wrong methods, unknown paths, paths that are not clean. */
  routeTheRest(): void {
    const table = this.#table;
    const methods = this.#app.supportedMethods;
    for (const path of table.paths) {
      const hidden = methods.filter((method) => table.isHidden(path, method));
      if (hidden.length > 0) this.#routeAtOnce(hidden, path, (exchange) => refuse(exchange, table));
    }
    this.#routeAtOnce(methods, '*', (exchange) => refuse(exchange, table));
    this.#routeAtOnce(methods, REDIRECT_PATH, answerRedirect);
    this.#routeAtOnce(methods, REFUSED_PATH, refusePath);
    // Methods that the router does not know; of some that Node knows it makes an error (`#fail`).
    this.#app.setNotFoundHandler((request, reply) => {
      reply.hijack();
      refuse(this.#exchangeOf(this.#unrouted, request, reply), table);
    });
  }

  #routeOperation(name: OperationName): void {
    const endpoint: Endpoint = ENDPOINT_BY_OPERATION[name];
    const serve = operationServer(name, this.#shared);
    const serveEmpty = this.#serverWhenEmpty(endpoint) ?? serve;
    const serveEither: Serve = (exchange, found) =>
      found.parameter === '' ? serveEmpty(exchange, found) : serve(exchange, found);
    // What answers without an index may be a write all the same, as is the beginning of a login.
    this.#route(endpoint, serveEither, OPERATION_TABLE[name].kind);
  }

  /** Who serves the endpoint's path without its parameter; undefined: the endpoint itself. */
  #serverWhenEmpty({ whenEmpty }: Endpoint): Serve | undefined {
    if (whenEmpty === undefined) return undefined;
    if ('create' in whenEmpty) {
      return operationServer(whenEmpty.create as OperationName, this.#shared);
    }
    return missingServer(whenEmpty.refusal);
  }

  #route(endpoint: Endpoint, serve: Serve, sort: RequestSort = sortOf(endpoint)): void {
    const { method, path } = endpoint;
    const url = routePathOf(endpoint);
    const stats = new RouteStats(this.#parts.metrics, { method, template: path });
    const gate = this.#gateOf(endpoint, sort);
    const needsQuery = path !== NODE_ENDPOINTS.livez.path;
    // Whoever looks after the server must get through.
    const held = path.startsWith('/v1/') ? this.#held : new HeldRequests();
    const entrance: Entrance = {
      admits: (raw) => gate === undefined || gate(new Exchange(this.#parts, stats, raw)),
      serve: (raw, found) => {
        const exchange = new Exchange(this.#parts, stats, raw);
        if (needsQuery && !hasReadableQuery(exchange)) return;
        // It never rejects, and whoever brought the request has nothing to do behind it.
        held.serve(exchange, found.body, () => serve(exchange, found));
      },
    };
    this.#app.route({
      method,
      url,
      onRequest: this.#hooksOf(gate, stats),
      handler: (request, reply) => {
        reply.hijack();
        const found = { parameter: parameterOf(request), body: request.body as Found['body'] };
        entrance.serve({ request: request.raw, response: reply.raw }, found);
      },
    });
    this.lane.add({ method, path: url, hasBody: endpoint.body !== undefined }, entrance);
  }

  /** The body, if there is one, is left to whoever serves the endpoint. */
  #routeUnread(endpoint: Endpoint, serve: (exchange: Exchange) => Promise<void>): void {
    const { method, path } = endpoint;
    const stats = new RouteStats(this.#parts.metrics, { method, template: path });
    const atOnce = (request: FastifyRequest, reply: FastifyReply) => {
      reply.hijack();
      const exchange = this.#exchangeOf(stats, request, reply);
      this.#held.serve(exchange, undefined, () => serve(exchange));
    };
    const onRequest = [...this.#hooksOf(this.#gateOf(endpoint, sortOf(endpoint)), stats), atOnce];
    this.#app.route({ method, url: routePathOf(endpoint), onRequest, handler: atOnce });
  }

  /** Answers before the body is read. */
  #routeAtOnce(methods: string[], url: string, answer: (exchange: Exchange) => void): void {
    const atOnce = (request: FastifyRequest, reply: FastifyReply) => {
      reply.hijack();
      answer(this.#exchangeOf(this.#unrouted, request, reply));
    };
    this.#app.route({ method: methods, url, onRequest: atOnce, handler: atOnce });
  }

  /** Undefined: all may go on. */
  #gateOf({ path }: Endpoint, sort: RequestSort): Gate | undefined {
    const { mode } = this.#parts.settings.requestLimits;
    if (mode === 'disabled' || !path.startsWith('/v1/')) return undefined;
    return (exchange) => {
      const waitMs = this.#parts.clientLimits.rate.take(exchange.client, sort);
      if (waitMs === 0) return true;
      this.#parts.logger.debug({ client: exchange.client, sort, mode }, 'rate limit exceeded');
      if (mode === 'permissive') return true;
      exchange.fail(new RetryLater(RATE_TEXT, waitMs));
      return false;
    };
  }

  /** The gate as the router asks it, before the body is read. */
  #hooksOf(gate: Gate | undefined, stats: RouteStats): Hook[] {
    if (gate === undefined) return [];
    return [
      (request, reply, done) => {
        if (gate(this.#exchangeOf(stats, request, reply))) done();
        else reply.hijack();
      },
    ];
  }

  /** Fastify could not bring a request to its route. */
  #fail(exchange: Exchange, error: unknown): void {
    const code = String((error as { readonly code?: unknown }).code ?? '');
    // The rest of the body is not read, so the connection cannot be used again.
    const headers = ['Connection', 'close'];
    if (code === 'FST_ERR_NOT_FOUND') refuse(exchange, this.#table);
    else if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
      const text = `the body is larger than ${this.#parts.settings.bodyMaxBytes} bytes`;
      exchange.fail(new AclError('body-too-large', text), headers);
    } else if (code.startsWith('FST_ERR_CTP_')) {
      const text = 'the body does not fit its Content-Length';
      exchange.fail(new AclError('malformed', text), headers);
    } else exchange.fail(error, headers);
  }

  #exchangeOf(stats: RouteStats, request: FastifyRequest, reply: FastifyReply): Exchange {
    return new Exchange(this.#parts, stats, { request: request.raw, response: reply.raw });
  }
}

/** Of what is no operation of the service. */
function sortOf({ kind }: Endpoint): RequestSort {
  return kind === 'write' || kind === 'control' ? 'write' : 'read';
}

/** Asked before all else, as deployed servers do; who brings another query is answered. */
function hasReadableQuery(exchange: Exchange): boolean {
  try {
    return exchange.query !== undefined;
  } catch (error) {
    exchange.fail(error);
    return false;
  }
}

/** Nothing is served there, or not to this method. */
function refuse(exchange: Exchange, table: RouteTable): void {
  if (!hasReadableQuery(exchange)) return;
  const path = table.match(exchange.request.url ?? '/');
  if (path === undefined) answerUnknownPath(exchange);
  else answerWrongMethod(exchange, table.allowOf(path));
}

const RATE_TEXT = 'rate limit exceeded, try again later or against a different server';

/** What stands in the path where the endpoint has its parameter. */
function parameterOf(request: FastifyRequest): string {
  const params = request.params as Readonly<Record<string, string>>;
  for (const name in params) return params[name] ?? '';
  return '';
}
