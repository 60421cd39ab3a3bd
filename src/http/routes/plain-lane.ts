// The short way of plain requests. A GET of a plain path, and a body that says how long it is and goes to a
// path without a parameter, go from Node's server straight to their endpoint: what the router does for a
// request is a good part of what an answer from memory costs. Whatever is not plain in every respect takes
// the router's way, which leads to the same endpoints.

import type { FastifyInstance } from 'fastify';
import { GatheredBytes } from '../../../cluster/base/gathered-bytes.ts';
import type { Found } from '../serving/serve-operation.ts';
import { LIMITS } from '../settings.ts';
import type { RawExchange, RawRequest, RawResponse } from '../wire/wire-types.ts';

/** An endpoint, as both ways come to it. Neither function throws. */
export interface Entrance {
  /** Whether a request may go on; one that may not is answered. Asked before its body is read. */
  admits(raw: RawExchange): boolean;
  /** Answers one request. */
  serve(raw: RawExchange, found: Found): void;
}

export interface LanePlace {
  readonly method: string;
  /** As the router knows it (`routePathOf`). */
  readonly path: string;
  /** Whether requests bring a body. */
  readonly hasBody: boolean;
}

/** A segment that means what it says: nothing is escaped, and it is no dot segment. */
const PLAIN_SEGMENT = /^[A-Za-z0-9\-_:+~][A-Za-z0-9\-_:+~.]*$/;

export class PlainLane {
  readonly #bodyMaxBytes: number;
  readonly #reads = new Map<string, Entrance>();
  /** Of reads, paths that end with a parameter, by what stands before it. */
  readonly #readsByStart = new Map<string, Entrance>();
  /** Of requests with a body: by method, by path. */
  readonly #bodies = new Map<string, Map<string, Entrance>>();
  #isClosed = false;

  /** Longer bodies are left to the router, which refuses them. */
  constructor(bodyMaxBytes: number) {
    this.#bodyMaxBytes = bodyMaxBytes;
  }

  /** From now on takes the plain requests of a place; one that has none is left to the router. */
  add({ method, path, hasBody }: LanePlace, entrance: Entrance): void {
    if (method === 'GET') {
      if (path.endsWith('/*')) this.#readsByStart.set(path.slice(0, -1), entrance);
      else this.#reads.set(path, entrance);
    } else if (hasBody && !/[*:]/.test(path)) {
      const byPath = this.#bodies.get(method) ?? new Map<string, Entrance>();
      this.#bodies.set(method, byPath.set(path, entrance));
    }
  }

  /** Takes requests of the server before its router does. */
  openOn(server: FastifyInstance['server']): void {
    const routers = server.listeners('request');
    server.removeAllListeners('request');
    server.on('request', (request: RawRequest, response: RawResponse) => {
      if (this.take(request, response)) return;
      for (const route of routers) route.call(server, request, response);
    });
  }

  /** From now on all goes to the router, which tells clients to leave. */
  close(): void {
    this.#isClosed = true;
  }

  /** False: it is the router's, and nothing was done. */
  take(request: RawRequest, response: RawResponse): boolean {
    const { method, url } = request;
    if (method === undefined || url === undefined || this.#isClosed) return false;
    const end = url.indexOf('?');
    const path = end === -1 ? url : url.slice(0, end);
    if (path.length > LIMITS.pathChars) return false;
    const raw = { request, response };
    return method === 'GET' ? this.#takeRead(path, raw) : this.#takeBody(method, path, raw);
  }

  #takeRead(path: string, raw: RawExchange): boolean {
    const whole = this.#reads.get(path);
    if (whole !== undefined) {
      if (whole.admits(raw)) whole.serve(raw, { parameter: '', body: undefined });
      return true;
    }
    const start = path.lastIndexOf('/') + 1;
    const entrance = this.#readsByStart.get(path.slice(0, start));
    const parameter = path.slice(start);
    if (entrance === undefined || !PLAIN_SEGMENT.test(parameter)) return false;
    if (entrance.admits(raw)) entrance.serve(raw, { parameter, body: undefined });
    return true;
  }

  #takeBody(method: string, path: string, raw: RawExchange): boolean {
    const entrance = this.#bodies.get(method)?.get(path);
    if (entrance === undefined) return false;
    const sizeBytes = plainSizeOf(raw.request);
    if (sizeBytes === 0 || sizeBytes > this.#bodyMaxBytes) return false;
    if (!entrance.admits(raw)) return true;
    const gathered = new GatheredBytes();
    // Node gives no more than the length that was said. A client that goes before gets no answer.
    raw.request.on('data', (piece: Buffer) => {
      gathered.add(piece);
      if (gathered.length < sizeBytes) return;
      entrance.serve(raw, { parameter: '', body: gathered.take() });
    });
    return true;
  }
}

/** Of a body that says its length and comes without being asked for; 0 for any other. */
function plainSizeOf({ headers }: RawRequest): number {
  if (headers['transfer-encoding'] !== undefined || headers.expect !== undefined) return 0;
  return Number(headers['content-length'] ?? 0);
}
