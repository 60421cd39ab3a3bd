// Which methods each path has, for everything that fastify's router does not say: the methods that a
// 405 names, and which path an unknown method meant.

import type { Endpoint, Method } from '../api/endpoint.ts';

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

  constructor(endpoints: readonly Endpoint[]) {
    for (const endpoint of endpoints) {
      const path = routePathOf(endpoint);
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

  /** `OPTIONS,GET,PUT,DELETE` of a path of `paths`. */
  allowOf(path: string): string {
    return ['OPTIONS', ...METHODS.filter((method) => this.hasMethod(path, method))].join();
  }

  /** The path of `paths` that a request's path means: itself, or the longest one that it lies below. */
  match(requested: string): string | undefined {
    if (this.#methodsByPath.has(requested)) return requested;
    for (
      let end = requested.lastIndexOf('/');
      end >= 0;
      end = requested.lastIndexOf('/', end - 1)
    ) {
      const path = `${requested.slice(0, end + 1)}*`;
      if (this.#methodsByPath.has(path)) return path;
      if (end === 0) break;
    }
    return undefined;
  }
}
