// A local token that is changed: what is known of it, and how requests and answers tell that.

import type { Stream } from '../../../world/stream.ts';
import type { Links } from '../../acl-requests.ts';
import { linksOf } from '../logins.ts';

/** What one is from one change to the next. */
export interface Held {
  readonly value: string;
  readonly index: number;
  readonly links: Links;
  /** Of its own. */
  readonly hasIdentity: boolean;
}

/** A change of which nobody knows whether it took effect, or will. */
export interface Pending {
  /** What the token says behind it; undefined: it is deleted. */
  readonly value: string | undefined;
  /** Of the version that it asked for; undefined: whichever there is. */
  readonly cas: number | undefined;
}

export interface ChangedToken {
  readonly site: number;
  readonly accessorId: string;
  readonly secret: string;
  readonly namespace: string | undefined;
  readonly home: { index: number | undefined };
  readonly expiresAtMs: number;
  /** Undefined: it is deleted. */
  now: Held | undefined;
  pending: readonly Pending[];
  hadUnknown: boolean;
  isBusy: boolean;
}

/** What is known of those in an archive, by accessor id. */
export interface ArchivedChanges {
  readonly states: ReadonlyMap<string, Held | undefined>;
  /** All that there may be in it. */
  readonly known: ReadonlySet<string>;
}

interface Link {
  readonly ID: string;
  readonly Name: string;
}

export interface TokenText {
  readonly Description: string;
  readonly ModifyIndex: number;
  readonly ExpirationTime?: string;
  readonly Local?: boolean;
  readonly Policies?: readonly Link[] | null;
  readonly Roles?: readonly Link[] | null;
  readonly ServiceIdentities?:
    | readonly { readonly Datacenters?: readonly string[] | null }[]
    | null;
}

/** An archive that has none of these. */
export function noneOf({ known }: ArchivedChanges): ArchivedChanges {
  return { known, states: new Map([...known].map((id) => [id, undefined])) };
}

/** Mostly the version that there is. */
export function drawCas({ index }: Held, stream: Stream): number | undefined {
  return stream.pick([index, index, index, undefined, index - 1] as const);
}

export function pathOf({ accessorId }: ChangedToken): string {
  return `/v1/acl/token/${accessorId}`;
}

export function namespaceQuery(namespace: string | undefined): string {
  return namespace === undefined ? '' : `?ns=${namespace}`;
}

export function casQuery(namespace: string | undefined, cas: number | undefined): string {
  const query = namespaceQuery(namespace);
  if (cas === undefined) return query;
  return `${query}${query === '' ? '?' : '&'}cas=${cas}`;
}

export function namesOf(
  links: readonly { readonly Name: string }[] | null | undefined,
): readonly string[] {
  return (links ?? []).map(({ Name }) => Name);
}

export function expiryIn({ ExpirationTime }: TokenText): number {
  return Date.parse(ExpirationTime ?? '') || Number.POSITIVE_INFINITY;
}

export function heldIn(text: TokenText): Held {
  const { Description: value, ModifyIndex: index, ServiceIdentities } = text;
  return { value, index, links: linksOf(text), hasIdentity: (ServiceIdentities ?? []).length > 0 };
}
