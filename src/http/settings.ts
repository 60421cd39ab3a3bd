// What an operator can set about HTTP, with the values that hold when nothing is set. src/node fills
// this in from the configuration; the names of the keys there are in the comments.

import type { TlsInUse } from '../../cluster/platform/tls-in-use.ts';

export interface HttpSettings {
  /** `acl.enabled`. False: every ACL endpoint answers 401. */
  readonly aclEnabled: boolean;
  /** `http.dialect`. `auto` goes by the headers of each request. */
  readonly dialect: 'auto' | 'service' | 'consul';
  /** `namespaces.enabled`. */
  readonly namespaces: boolean;
  /** `limits.body_max_bytes`. */
  readonly bodyMaxBytes: number;
  /** `limits.snapshot_max_bytes`: the largest archive that is taken in. */
  readonly snapshotMaxBytes: number;
  /** `limits.http_max_conns_per_client`; 0 means no limit. */
  readonly connectionsPerClientMax: number;
  /** `limits.blocking_queries_max`: so many may wait at once; of one connection one does. */
  readonly blockingQueriesMax: number;
  /** `limits.request_limits`: requests a second and client. */
  readonly requestLimits: {
    readonly mode: 'disabled' | 'permissive' | 'enforcing';
    readonly readRate: number;
    readonly writeRate: number;
  };
  /** How long a blocking query waits when it does not say, and at most. */
  readonly defaultQueryTimeMs: number;
  readonly maxQueryTimeMs: number;
  /** What `tls.*` names; undefined serves plain HTTP. */
  readonly tls:
    | {
        /** Whoever listens sees to it that renewed ones are shown. */
        readonly inUse: TlsInUse;
        /** Clients must show a certificate that the `ca` of it signed. */
        readonly verifyIncoming: boolean;
      }
    | undefined;
}

export const DEFAULT_HTTP_SETTINGS: HttpSettings = {
  aclEnabled: true,
  dialect: 'auto',
  namespaces: true,
  bodyMaxBytes: 1024 * 1024,
  snapshotMaxBytes: 4 * 1024 * 1024 * 1024,
  connectionsPerClientMax: 200,
  blockingQueriesMax: 10_000,
  requestLimits: { mode: 'disabled', readRate: 0, writeRate: 0 },
  defaultQueryTimeMs: 300_000,
  maxQueryTimeMs: 600_000,
  tls: undefined,
};

/** Limits that nobody has asked to set. */
export const LIMITS = {
  /** Request line and headers together. */
  headerMaxBytes: 1024 * 1024,
  /** A request with more headers is refused. */
  headersMax: 1000,
  /** A path of more characters is refused: the longest that means anything has a few hundred. */
  pathChars: 16 * 1024,
  /** So many requests of a connection may wait for the answers before theirs. */
  sentAheadMax: 512,
  /** Of memory, for heads and bodies of requests that wait so; more than the head of one may have. */
  sentAheadBytes: 2 * 1024 * 1024,
  /** A query of more characters is refused, too. */
  queryChars: 64 * 1024,
  /** A query of more parameters is refused: what is read of it is kept for as long as its request. */
  queryParametersMax: 100,
  /** Path, query and headers of a blocking query, which are kept for as long as it waits. */
  blockingHeadBytes: 16 * 1024,
  /** Heads and bodies of requests that are being answered; see `HeldRequests`. */
  heldBytes: 64 * 1024 * 1024,
  /** A request that is not complete by then is dropped: slow bodies hold no connection for ever. */
  requestTimeoutMs: 60_000,
  /** So long the sender of an archive may pause, and so long the reader of an archive or a list may. */
  stallMs: 60_000,
  /** Objects on one page of a list. */
  pageMax: 1000,
  /** A page ends behind the objects with which it is so long: it is made as one text. */
  pageChars: 4 * 1024 * 1024,
  /** Answers from this size on are compressed when the client accepts it. */
  gzipMinLength: 1400,
  /** A list is sent in chunks of about this size once it does not fit one of them. */
  chunkChars: 64 * 1024,
  /** Clients whose rates are remembered. */
  rateClientsMax: 10_000,
} as const;
