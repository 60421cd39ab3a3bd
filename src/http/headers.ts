// Header names. Every header of ours exists under two prefixes: both are read, both are written. This
// file holds the one list of prefixes; nothing else in the program spells a prefix out.

import type { IncomingHttpHeaders } from './wire-types.ts';

/** The second is the one that deployed clients know. */
export const HEADER_PREFIXES = ['X-Service-', 'X-Consul-'] as const;

const DEPLOYED_PREFIX = HEADER_PREFIXES[1].toLowerCase();

/** A header of ours by its name behind the prefix, under all its prefixes. */
export function headerNames(name: string): readonly string[] {
  return HEADER_PREFIXES.map((prefix) => prefix + name);
}

/** Reads one of our headers: the first prefix that has a value that is not empty. */
export function headerReader(name: string): (headers: IncomingHttpHeaders) => string | undefined {
  const names = headerNames(name).map((full) => full.toLowerCase());
  return (headers) => {
    for (const full of names) {
      const value = headers[full];
      if (typeof value === 'string' && value !== '') return value;
    }
    return undefined;
  };
}

/** Appends one of our headers, under all its prefixes, to a flat list of names and values. */
export function pushHeader(flat: string[], names: readonly string[], value: string): void {
  for (const name of names) flat.push(name, value);
}

/** Whether a request speaks as deployed clients do: it has any header of their prefix. */
export function hasDeployedHeader(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) {
    if (name.startsWith(DEPLOYED_PREFIX)) return true;
  }
  return false;
}
