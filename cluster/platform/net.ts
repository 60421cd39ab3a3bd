// Frames between nodes, as the outside world supplies them: WebSockets in production, a scripted
// network in tests. Frames of one connection arrive whole and in order, or the connection closes.
// Who the other side is, nobody here knows: that is the handshake's matter.

export interface NetAddress {
  readonly host: string;
  readonly port: number;
}

export interface ConnHandlers {
  /**
   * The bytes belong to the receiver. Never called after `onClose`. In one turn only so many frames come
   * that a flood on one connection does not hold up everything else.
   */
  readonly onFrame: (frame: Uint8Array) => void;
  /** Called once, whoever closed. What was sent and not received by then is lost. */
  readonly onClose: (why: string) => void;
}

export interface Conn {
  /** `host:port` of the other side, for log lines. */
  readonly remote: string;
  /** Called once, in the turn in which the connection was handed over: before it nothing is lost. */
  handle(handlers: ConnHandlers): void;
  /**
   * It is known who is there. Before that, a connection that was accepted closes when more than
   * STRANGER_MAX_BYTES come over it.
   */
  trust(): void;
  /** Hands a frame to the network; neither waits nor throws. After closing it does nothing. */
  send(frame: Uint8Array): void;
  /** Bytes that have come over it so far, those of a frame that is not whole yet among them. */
  receivedBytes(): number;
  /** Bytes that were sent and have not left this process. */
  bufferedBytes(): number;
  /** What was sent before goes out still, for a while. Closing twice is harmless. */
  close(why: string): void;
}

export interface Listening {
  /** Where it listens, with the port that was taken. */
  readonly address: NetAddress;
  /** Takes no more connections; those that are open stay open. */
  close(): Promise<void>;
}

export interface Net {
  /** Port 0 takes a free one. Rejects when the address cannot be had. */
  listen(address: NetAddress, onConn: (conn: Conn) => void): Promise<Listening>;
  /** Rejects when there is no connection within `timeoutMs`. */
  dial(address: NetAddress, options: { readonly timeoutMs: number }): Promise<Conn>;
}

/** Frames above this size close the connection at both ends, unread. */
export const FRAME_MAX_BYTES = 16 * 1024 * 1024;

/** So much somebody may say before it is known who it is. */
export const STRANGER_MAX_BYTES = 64 * 1024;

/** `host:port`, and `[host]:port` where the host has colons of its own. */
export function addressText({ host, port }: NetAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The other end of a socket, as far as it is known. */
export interface SocketEnd {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
}

/** The same of a socket. */
export function remoteOf({ remoteAddress = '', remotePort = 0 }: SocketEnd): string {
  return addressText({ host: remoteAddress, port: remotePort });
}

/** Of the other side of a connection, by its `remote`. */
export function hostOf(remote: string): string {
  return remote.slice(0, Math.max(0, remote.lastIndexOf(':')));
}
