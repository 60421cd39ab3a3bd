// What an endpoint is: one operation of the service as it stands on the wire. Routes, the OpenAPI
// document and clients are all derived from these; nothing about an endpoint is written twice.

import type { TSchema } from 'typebox';

export type Method = 'GET' | 'PUT' | 'POST' | 'DELETE';

/**
 * How an endpoint answers. `read` and `list` have index headers and can block, `write` has the index
 * of what it did, `plain` has neither; `control` changes the group of servers and nothing stored.
 */
export type EndpointKind = 'read' | 'list' | 'write' | 'plain' | 'control';

/** An archive of the state travels in place of JSON, as the body of the request or of the answer. */
export type ArchivePlace = 'body' | 'answer';

export interface Endpoint {
  readonly kind: EndpointKind;
  readonly method: Method;
  /** `/v1/acl/token/:accessorId/clone`. A parameter at the end takes the rest, slashes included. */
  readonly path: string;
  readonly summary: string;
  /** What the caller's token needs, for people: `acl:read`, `none`. */
  readonly access: string;
  /** False: namespace parameters are not looked at. */
  readonly namespaced: boolean;
  /** Parameters of its own: name and meaning. Those of its kind are in query-parameters.ts. */
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: EndpointBody;
  readonly answer: TSchema;
  /** A status beside 200 that comes with the same answer. */
  readonly alsoAnswers?: { readonly status: number; readonly says: string };
  /** Whether it answers with bare text to those who ask for that. */
  readonly alsoAsText?: true;
  readonly archive?: ArchivePlace;
  /** What an empty parameter at the end of the path means. */
  readonly whenEmpty?: { readonly refusal: string } | { readonly create: string };
}

export interface EndpointBody {
  readonly schema: TSchema;
  /** What a refusal of the body begins with. */
  readonly label: string;
  readonly required: boolean;
  /** Whether many requests bring the same one. */
  readonly isRepeated?: true;
}

/** Keeps the exact types of an endpoint, so that clients know its body and its answer. */
export function endpoint<const E extends Endpoint>(definition: E): E {
  return definition;
}
