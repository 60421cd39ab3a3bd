// The short way of reads. A GET of a plain path goes from Node's server straight to its endpoint: what
// the router does for a request is a good part of what a read from memory costs. Whatever is not plain
// in every respect takes the router's way, which leads to the same endpoints.

import type { FastifyInstance } from 'fastify';
import type { RawRequest, RawResponse } from './wire-types.ts';

/** Answers one request; neither throws nor rejects. `parameter` is empty where the path has none. */
export type ServeRead = (
  raw: { readonly request: RawRequest; readonly response: RawResponse },
  parameter: string,
) => void;

/** A segment that means what it says: nothing is escaped, and it is no dot segment. */
const PLAIN_SEGMENT = /^[A-Za-z0-9\-_:+~][A-Za-z0-9\-_:+~.]*$/;

export class ReadLane {
  readonly #byPath = new Map<string, ServeRead>();
  /** Paths that end with a parameter, by what stands before it. */
  readonly #byStart = new Map<string, ServeRead>();
  #isClosed = false;

  /** Reads of a path as the router knows it (`routePathOf`) are served by `serve`. */
  add(path: string, serve: ServeRead): void {
    if (path.endsWith('/*')) this.#byStart.set(path.slice(0, -1), serve);
    else this.#byPath.set(path, serve);
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
    if (method !== 'GET' || url === undefined || this.#isClosed) return false;
    const end = url.indexOf('?');
    const path = end === -1 ? url : url.slice(0, end);
    const serveWhole = this.#byPath.get(path);
    if (serveWhole !== undefined) {
      serveWhole({ request, response }, '');
      return true;
    }
    const start = path.lastIndexOf('/') + 1;
    const serve = this.#byStart.get(path.slice(0, start));
    const parameter = path.slice(start);
    if (serve === undefined || !PLAIN_SEGMENT.test(parameter)) return false;
    serve({ request, response }, parameter);
    return true;
  }
}
