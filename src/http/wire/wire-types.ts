// The raw request and answer under fastify's, by the names that this folder uses for them.

import type { FastifyReply, FastifyRequest } from 'fastify';

export type RawRequest = FastifyRequest['raw'];
export type RawResponse = FastifyReply['raw'];
export type IncomingHttpHeaders = RawRequest['headers'];

/** A request and its answer. */
export interface RawExchange {
  readonly request: RawRequest;
  readonly response: RawResponse;
}
