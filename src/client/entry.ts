// The public entry of the client: what a program imports that talks to a Conclave server.

export type { Answer, AnswerMeta, CallInput, CallName, CallOutput } from './call-types.ts';
export { type Client, createClient, PAGE_LIMIT_MAX } from './client.ts';
export { ClientError } from './client-error.ts';
export type { SnapshotCalls } from './snapshots.ts';
export {
  type StreamRequest,
  type StreamResponse,
  type Transport,
  TransportError,
  type TransportFailure,
  type TransportRequest,
  type TransportResponse,
} from './transport.ts';
export type { ClientOptions } from './wire.ts';
