// What comes with a request beside its input: who asks, where, and how careful the answer must be.
// Everything here is plain data, so that a call can be forwarded to another server as it is.

import type { SecretId } from '../acl/ids.ts';
import type { Position } from '../state/global-log/cursor.ts';

export type Consistency = 'stale' | 'default' | 'consistent';
export type AckLevel = 'primary' | 'majority' | 'all';

export interface Call {
  /** The presented secret after the precedence of sources; undefined when none was presented. */
  readonly secret: SecretId | undefined;
  /** The `ns` query parameter, then the namespace header; the body's own field comes with the input. */
  readonly namespaceParameter: string | undefined;
  readonly namespaceHeader: string | undefined;
  readonly datacenter: string | undefined;
  readonly consistency: Consistency;
  /** A read waits until the datacenter that answers has it, a write until the one that was asked has. */
  readonly minPosition: Position | undefined;
  readonly cas: number | undefined;
  readonly requestId: string | undefined;
  /** How many datacenters must have a global write; undefined means the operation's default. */
  readonly ack: AckLevel | undefined;
  readonly ackTimeoutMs: number | undefined;
  /** Address of the caller, for logs and rate limits. */
  readonly remoteAddress: string | undefined;
  /** Of a login that was carried to another datacenter: the one where it was asked for. */
  readonly askedIn?: string;
}

/** Says nothing but what it must: nobody's, here, with the care of an ordinary read. */
export const PLAIN_CALL: Call = {
  secret: undefined,
  namespaceParameter: undefined,
  namespaceHeader: undefined,
  datacenter: undefined,
  consistency: 'default',
  minPosition: undefined,
  cas: undefined,
  requestId: undefined,
  ack: undefined,
  ackTimeoutMs: undefined,
  remoteAddress: undefined,
};
