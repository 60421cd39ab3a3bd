// Header names. Every header of ours exists under two prefixes: both are read, both are written. This
// file holds the one list of prefixes; nothing else in the program spells a prefix out.

import type { IncomingHttpHeaders, RawRequest } from './wire-types.ts';

/** The second is the one that deployed clients know. */
export const HEADER_PREFIXES = ['X-Service-', 'X-Consul-'] as const;

const DEPLOYED_PREFIX = HEADER_PREFIXES[1].toLowerCase();

/** A header of ours by its name behind the prefix, under all its prefixes. */
export function headerNames(name: string): readonly string[] {
  return HEADER_PREFIXES.map((prefix) => prefix + name);
}

type Headers = Pick<RawRequest, 'headers' | 'rawHeaders'>;

/** Reads one of our headers: the first prefix that has a value that is not empty. Of several lines the first counts. */
export function headerReader(name: string): (request: Headers) => string | undefined {
  const names = headerNames(name).map((full) => full.toLowerCase());
  return ({ headers, rawHeaders }) => {
    for (const full of names) {
      const joined = headers[full];
      if (typeof joined !== 'string' || joined === '') continue;
      // Node makes one value of several.
      const value = joined.includes(', ') ? firstOf(rawHeaders, full) : joined;
      if (value !== '') return value;
    }
    return undefined;
  };
}

function firstOf(rawHeaders: readonly string[], name: string): string {
  const place = rawHeaders.findIndex((text, at) => at % 2 === 0 && text.toLowerCase() === name);
  return rawHeaders[place + 1] ?? '';
}

/** No client sends a longer list: of one that does nothing is read. */
const LIST_CHARS_MAX = 4096;

/** Reads lists such as that of `Accept`: whether one of the names is there, unless with a weight of nothing. */
export function listReader(...names: readonly string[]): (header: unknown) => boolean {
  return (header) => {
    if (typeof header !== 'string' || header.length > LIST_CHARS_MAX) return false;
    return header.split(',').some((part) => {
      const [what = '', ...parameters] = part.toLowerCase().split(';');
      const isMeant = names.includes(what.trim());
      return isMeant && !parameters.some((each) => WEIGHT_OF_NOTHING.test(each));
    });
  };
}

const WEIGHT_OF_NOTHING = /^\s*q=0(?:\.0*)?\s*$/;

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
