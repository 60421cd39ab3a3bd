// Judges the claims of a verified token (times, issuer, audience) and maps them to attributes, as
// compatibility.md 7.3 prescribes. Pure: the time is an argument.

import type { Attributes } from '../identity.ts';
import { isRecord } from '../outside/remote.ts';
import { refused } from '../refused.ts';
import type { Claims } from './jws.ts';

/** In nanoseconds; 0 stands for the default, a negative value for none. */
export interface Leeways {
  readonly expirationNs: number;
  readonly notBeforeNs: number;
  readonly clockSkewNs: number;
}

const DEFAULT_CLAIM_LEEWAY_S = 150;
const DEFAULT_CLOCK_SKEW_S = 60;

/** Throws AclError('login-refused') unless the token is valid at `nowMs`. */
export function checkTimes(claims: Claims, leeways: Leeways, nowMs: number): void {
  const issuedAt = timeOf(claims, 'iat');
  const givenNotBefore = timeOf(claims, 'nbf');
  const givenExpiry = timeOf(claims, 'exp');
  const latestStart = latest(issuedAt, givenNotBefore);
  const expiry =
    givenExpiry ?? plus(latestStart, secondsOf(leeways.expirationNs, DEFAULT_CLAIM_LEEWAY_S));
  if (expiry === undefined) {
    throw refused('no issue time, notbefore, or expiration time encoded in token');
  }
  const notBefore =
    givenNotBefore ?? issuedAt ?? expiry - secondsOf(leeways.notBeforeNs, DEFAULT_CLAIM_LEEWAY_S);
  const skew = secondsOf(leeways.clockSkewNs, DEFAULT_CLOCK_SKEW_S);
  const now = nowMs / 1000;
  if (now + skew < notBefore) throw refused('token not valid yet (nbf)');
  if (now - skew > expiry) throw refused('token is expired (exp)');
  if (issuedAt !== undefined && now + skew < issuedAt) {
    throw refused('token issued in the future (iat)');
  }
}

/** Throws unless `iss` is exactly `issuer`. */
export function checkIssuer(claims: Claims, issuer: string): void {
  if (claimOf(claims, 'iss') !== issuer) throw refused('invalid issuer (iss) claim');
}

/**
 * Any one of the bound audiences is enough. `strict` also refuses a token that names an audience
 * while none is bound: it was made for someone else.
 */
export function checkAudience(
  claims: Claims,
  { bound, strict }: { readonly bound: readonly string[]; readonly strict: boolean },
): void {
  const audiences = audiencesOf(claims);
  if (bound.length === 0) {
    if (!strict || audiences.length === 0) return;
    throw refused('audience claim found in JWT but no audiences are bound');
  }
  const named = new Set(audiences);
  if (!bound.some((audience) => named.has(audience))) {
    throw refused('aud claim does not match any bound audience');
  }
}

/** `aud` as a list; absent is empty. Throws when it is neither text nor a list of texts. */
export function audiencesOf(claims: Claims): readonly string[] {
  const audience = claimOf(claims, 'aud') ?? [];
  const list: readonly unknown[] = Array.isArray(audience) ? audience : [audience];
  return list.map((item) => {
    if (typeof item !== 'string') throw refused('the aud claim is malformed');
    return item;
  });
}

export interface ClaimMapping {
  /** Claim to attribute: a name, or a JSON pointer when it starts with `/`. */
  readonly strings: ReadonlyMap<string, string>;
  readonly lists: ReadonlyMap<string, string>;
}

/** Items in all list attributes of an identity; one claim may be mapped very often. */
export const LIST_ITEMS_MAX = 1_000_000;

/**
 * The attributes `value.‹target›` and `list.‹target›`; claims that are missing are skipped, and so are
 * empty texts in lists: providers send one to somebody who is in no group. Throws
 * AclError('login-refused') for what is no text, and for too much.
 */
export function attributesOf(claims: Claims, mapping: ClaimMapping): Attributes {
  const strings = new Map<string, string>();
  const lists = new Map<string, readonly string[]>();
  for (const [claim, target] of mapping.strings) {
    const value = claimAt(claims, claim);
    if (value !== undefined) strings.set(`value.${target}`, stringOf(claim, value));
  }
  let itemsLeft = LIST_ITEMS_MAX;
  for (const [claim, target] of mapping.lists) {
    const value = claimAt(claims, claim);
    if (value === undefined) continue;
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    itemsLeft -= items.length;
    if (itemsLeft < 0) throw refused(`the mapped lists have more than ${LIST_ITEMS_MAX} items`);
    const texts = items.map((item) => stringOf(claim, item)).filter((text) => text !== '');
    lists.set(`list.${target}`, texts);
  }
  return { strings, lists };
}

/** A claim of its own, or undefined; null counts as absent. */
export function claimOf(claims: Claims, name: string): unknown {
  return Object.hasOwn(claims, name) ? (claims[name] ?? undefined) : undefined;
}

function claimAt(claims: Claims, name: string): unknown {
  if (!name.startsWith('/')) return claimOf(claims, name);
  let value: unknown = claims;
  for (const escaped of name.slice(1).split('/')) {
    value = memberOf(value, escaped.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  return value ?? undefined;
}

function memberOf(value: unknown, name: string): unknown {
  if (Array.isArray(value))
    return /^(?:0|[1-9][0-9]{0,8})$/.test(name) ? value[Number(name)] : undefined;
  return isRecord(value) ? claimOf(value, name) : undefined;
}

function stringOf(claim: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  // Beyond this, two different numbers would become one text, and so two users one identity.
  if (typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER) {
    return String(Math.trunc(value));
  }
  throw refused(`error converting claim ${JSON.stringify(claim)} to a string`);
}

function timeOf(claims: Claims, name: string): number | undefined {
  const value = claimOf(claims, name);
  if (value === undefined) return undefined;
  if (typeof value !== 'number') throw refused(`the ${name} claim is not a number`);
  return value;
}

function latest(first: number | undefined, second: number | undefined): number | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return Math.max(first, second);
}

function plus(start: number | undefined, seconds: number): number | undefined {
  return start === undefined ? undefined : start + seconds;
}

function secondsOf(leewayNs: number, defaultSeconds: number): number {
  if (leewayNs === 0) return defaultSeconds;
  return Math.max(leewayNs, 0) / 1e9;
}
