// The query string. Of a parameter given twice the first counts; a parameter without a value is
// present and empty. `+` is a space.

import { AclError } from '../../acl/error.ts';
import { LIMITS } from '../settings.ts';

export interface Query {
  /** The value, `''` when present without one, undefined when absent. */
  get(name: string): string | undefined;
  has(name: string): boolean;
}

/** Most requests have no query, and each is asked for a dozen parameters. */
const EMPTY: Query = { get: () => undefined, has: () => false };

/**
 * The query of a request target; undefined when an escape in it is broken. Throws 'malformed' where it has
 * more parameters, or is longer, than anybody could mean.
 */
export function queryOf(target: string): Query | undefined {
  const text = queryTextOf(target);
  return text === '' ? EMPTY : parseQuery(text);
}

/** What stands behind the question mark. Throws 'malformed' where it is longer than anybody could mean. */
export function queryTextOf(target: string): string {
  const start = target.indexOf('?');
  if (start === -1) return '';
  const text = target.slice(start + 1);
  if (text.length <= LIMITS.queryChars) return text;
  throw new AclError('malformed', `the query has more than ${LIMITS.queryChars} characters`);
}

function parseQuery(text: string): Query | undefined {
  const values = new Map<string, string>();
  const pairs = text.split('&', PARAMETERS_MAX + 1);
  if (pairs.length > PARAMETERS_MAX) throw tooMany();
  for (const pair of pairs) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = unescapeQuery(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : unescapeQuery(pair.slice(equals + 1));
    if (name === undefined || value === undefined) return undefined;
    if (!values.has(name)) values.set(name, value);
  }
  return values;
}

const PARAMETERS_MAX = LIMITS.queryParametersMax;

function tooMany(): AclError {
  return new AclError('malformed', `the query has more than ${PARAMETERS_MAX} parameters`);
}

/** Undoes the escapes of a query; undefined when one is broken or gives no UTF-8. */
export function unescapeQuery(text: string): string | undefined {
  const spaced = text.includes('+') ? text.split('+').join(' ') : text;
  return spaced.includes('%') ? decoded(spaced) : spaced;
}

/** Undoes percent escapes; undefined when one is broken or gives no UTF-8. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

/** A non-empty value, or undefined. */
export function textOf(query: Query, name: string): string | undefined {
  const value = query.get(name);
  return value === '' ? undefined : value;
}

/** Present, and neither `false` nor `0`. */
export function isSwitchedOn(query: Query, name: string): boolean {
  const value = query.get(name);
  return value !== undefined && value !== 'false' && value !== '0';
}
