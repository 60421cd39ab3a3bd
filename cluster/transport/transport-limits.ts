// Every bound of the transport, and its times, in one place. The values are for a few nodes that are
// milliseconds apart.

export interface TransportLimits {
  /** What waits on a lane beyond this is lost, as on a bad wire. */
  readonly controlLaneMaxBytes: number;
  readonly bulkLaneMaxBytes: number;
  /** About so large does a frame of messages get; a single larger message makes a frame of its own. */
  readonly messagesFrameBytes: number;
  /** Larger calls and answers take the way of large messages. */
  readonly smallCallBytes: number;
  /** Of a call, and of an answer. */
  readonly payloadMaxBytes: number;
  /** Calls under way on one link, in each direction. */
  readonly callsMax: number;
  /** What the calls of one link that this node carries out hold in memory. */
  readonly servedMaxBytes: number;
  readonly hopsMax: number;
  /** Connections that have not proved who they are; the oldest gives way to a new one. */
  readonly strangersMax: number;
  /** Of one host; beyond it the oldest of that host gives way. */
  readonly strangersOfHostMax: number;
  /** Nodes that link with this one and are no peers. */
  readonly visitorsMax: number;
  /** Connections of nodes that only ask, and connections of this node for asking. */
  readonly guestsMax: number;
  /** One frame before it is proved who is there. */
  readonly helloMaxBytes: number;
}

export const DEFAULT_TRANSPORT_LIMITS: TransportLimits = {
  controlLaneMaxBytes: 4 * 1024 * 1024,
  bulkLaneMaxBytes: 64 * 1024 * 1024,
  messagesFrameBytes: 512 * 1024,
  smallCallBytes: 64 * 1024,
  payloadMaxBytes: 12 * 1024 * 1024,
  callsMax: 4096,
  servedMaxBytes: 64 * 1024 * 1024,
  hopsMax: 3,
  strangersMax: 256,
  strangersOfHostMax: 128,
  visitorsMax: 16,
  guestsMax: 128,
  helloMaxBytes: 16 * 1024,
};

export interface TransportTiming {
  readonly dialTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  /** The first try after a good link ended comes at once, later ones within a time that doubles up to the max. */
  readonly retryBaseMs: number;
  readonly retryMaxMs: number;
  /** A link that stood for so long was a good one. */
  readonly goodAfterMs: number;
  readonly pingMs: number;
  /** A connection on which nothing was heard for so long is closed, at the next ping. */
  readonly silenceMs: number;
  /** A connection for calls to a node that is no peer stays open for so long after the last one. */
  readonly guestIdleMs: number;
  /** So long a transport that closes waits for the calls that it is carrying out. */
  readonly closeGraceMs: number;
}

export const DEFAULT_TRANSPORT_TIMING: TransportTiming = {
  dialTimeoutMs: 2_000,
  handshakeTimeoutMs: 3_000,
  retryBaseMs: 50,
  retryMaxMs: 2_000,
  goodAfterMs: 2_000,
  pingMs: 1_000,
  silenceMs: 4_000,
  guestIdleMs: 10_000,
  closeGraceMs: 1_000,
};
