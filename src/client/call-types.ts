// What goes into a call and comes out of it, derived from the endpoint definitions: path parameters
// from the path, the body and the answer from their schemas. Nothing here names an endpoint.

import type { Static, TSchema } from 'typebox';
import type { Endpoint } from '../api/endpoints/endpoint.ts';
import { ENDPOINTS } from '../api/endpoints/endpoints.ts';
import { NODE_ENDPOINTS } from '../api/endpoints/endpoints-node.ts';
import { OPERATOR_ENDPOINTS } from '../api/endpoints/endpoints-operator.ts';

/** Every endpoint that takes and gives JSON or text, by name. */
export const CALLABLE = { ...ENDPOINTS, ...NODE_ENDPOINTS, ...OPERATOR_ENDPOINTS };

export type CallName = keyof typeof CALLABLE;
type Definition<Name extends CallName> = (typeof CALLABLE)[Name];

/** True is sent as a bare name, false and undefined are not sent. */
export type QueryValue = string | number | boolean | undefined;

/** Parameters that whole kinds of endpoints share; query-parameters.ts says what they mean. */
export const SHARED_QUERY = [
  'ns',
  'dc',
  'stale',
  'consistent',
  'index',
  'wait',
  'min-position',
  'limit',
  'next',
  'cas',
  'ack',
  'ack_timeout',
] as const;
type SharedQuery = (typeof SHARED_QUERY)[number];

type OwnQuery<Name extends CallName> =
  Definition<Name> extends { readonly query: infer Query } ? Extract<keyof Query, string> : never;

type PathParameter<Path extends string> = Path extends `${string}:${infer Parameter}/${infer Rest}`
  ? Parameter | PathParameter<Rest>
  : Path extends `${string}:${infer Parameter}`
    ? Parameter
    : never;

type PathPart<Name extends CallName> = [PathParameter<Definition<Name>['path']>] extends [never]
  ? { readonly path?: undefined }
  : { readonly path: Readonly<Record<PathParameter<Definition<Name>['path']>, string>> };

/** Fields that are undefined are not sent, so they may be there. */
type Sendable<Body> = Body extends readonly unknown[]
  ? Body
  : { readonly [Field in keyof Body]: Body[Field] | undefined };

type BodyPart<Name extends CallName> =
  Definition<Name> extends {
    readonly body: {
      readonly schema: infer Schema extends TSchema;
      readonly required: infer Required;
    };
  }
    ? Required extends true
      ? { readonly body: Sendable<Static<Schema>> }
      : { readonly body?: Sendable<Static<Schema>> | undefined }
    : { readonly body?: undefined };

/** What a call takes: `path` and `body` where the endpoint has them, and what is always possible. */
export type CallInput<Name extends CallName> = PathPart<Name> &
  BodyPart<Name> & {
    readonly query?: Readonly<Partial<Record<OwnQuery<Name> | SharedQuery, QueryValue>>>;
    /** Headers of one's own, such as `X-Service-Request-Id`. */
    readonly headers?: Readonly<Record<string, string>>;
  };

/** Calls without a path parameter and without a required body need no input. */
export type CallArguments<Name extends CallName> =
  Record<never, never> extends CallInput<Name>
    ? [input?: CallInput<Name>]
    : [input: CallInput<Name>];

/** The parsed body of a successful answer. */
export type CallOutput<Name extends CallName> = Static<Definition<Name>['answer']>;

/** What the headers of an answer say. Undefined: the header was not sent. */
export interface AnswerMeta {
  readonly index: number | undefined;
  /** `epoch.seq`: give it as `min-position` to read, anywhere, what was written, or to write behind it. */
  readonly position: string | undefined;
  /** Where the next page begins; undefined on the last one. */
  readonly next: string | undefined;
  /** The acknowledgement level that a write reached. */
  readonly ack: string | undefined;
}

export interface Answer<Value> {
  readonly value: Value;
  readonly meta: AnswerMeta;
}

/** The names of endpoints that answer in pages. */
export type ListName = {
  [Name in CallName]: Definition<Name> extends { readonly kind: 'list' } ? Name : never;
}[CallName];

export type ListItem<Name extends ListName> =
  CallOutput<Name> extends readonly (infer Item)[] ? Item : never;

/** The definition without its exact types, for code that treats all endpoints alike. */
export function definitionOf(name: CallName): Endpoint {
  return CALLABLE[name];
}
