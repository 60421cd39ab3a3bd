// Which methods each path has, for everything that fastify's router does not say: the methods that a
// 405 names, and which path a method meant that it has not.

import type { Endpoint, Method } from '../../api/endpoints/endpoint.ts';

/** The order in which methods are named. */
const METHODS: readonly Method[] = ['GET', 'PUT', 'POST', 'DELETE'];

/** A path as the router knows it: a parameter at its end takes everything that follows. */
export function routePathOf(endpoint: Endpoint): string {
  return endpoint.path.replace(/:\w+$/, '*');
}

/** Only PUT knows a suffix behind the parameter; for other methods it is part of the parameter. */
function hasSuffix(path: string): boolean {
  return path.includes(':');
}

export class RouteTable {
  readonly #methodsByPath = new Map<string, Set<Method>>();
  /** What stands before the parameters, of each endpoint that has one. */
  readonly #starts: { readonly method: Method; readonly start: string }[] = [];

  constructor(endpoints: readonly Endpoint[]) {
    for (const endpoint of endpoints) {
      const path = routePathOf(endpoint);
      const end = path.search(/[*:]/);
      if (end !== -1) this.#starts.push({ method: endpoint.method, start: path.slice(0, end) });
      if (hasSuffix(path)) continue;
      const methods = this.#methodsByPath.get(path) ?? new Set();
      this.#methodsByPath.set(path, methods.add(endpoint.method));
    }
  }

  /** The paths without a suffix, each once. */
  get paths(): readonly string[] {
    return [...this.#methodsByPath.keys()];
  }

  hasMethod(path: string, method: string): boolean {
    return this.#methodsByPath.get(path)?.has(method as Method) === true;
  }

  /** Whether a router would take the path, which has not this method, for a parameter of another path. */
  isHidden(path: string, method: string): boolean {
    if (this.hasMethod(path, method)) return false;
    return this.#starts.some((known) => known.method === method && path.startsWith(known.start));
  }

  /** `OPTIONS,GET,PUT,DELETE` of a path of `paths`. */
  allowOf(path: string): string {
    return ['OPTIONS', ...METHODS.filter((method) => this.hasMethod(path, method))].join();
  }

  /**
   * The path of `paths` that a request's path means: itself, or the longest one that it lies below. Takes as long as
   * there are paths: anybody may send one of half a million slashes.
   */
  match(requested: string): string | undefined {
    if (this.#methodsByPath.has(requested)) return requested;
    let longest: string | undefined;
    for (const path of this.#methodsByPath.keys()) {
      const isAbove = path.endsWith('/*') && requested.startsWith(path.slice(0, -1));
      if (isAbove && path.length > (longest?.length ?? 0)) longest = path;
    }
    return longest;
  }
}
