// Connections that carry whole frames, as the outside world supplies them: WebSockets in production,
// memory in tests. Frames of one connection arrive in order and whole, or the connection closes.

/** One open connection. Frames that arrive before `onFrame` is called are kept for it. */
export interface Connection {
  /** Hands a frame over; false when the connection is closed. Keeps no reference to `frame`. */
  send(frame: Uint8Array): boolean;
  /** Bytes handed over that have not left yet. */
  bufferedBytes(): number;
  /** Ends the connection at once. Closing twice is harmless. */
  close(): void;
  onFrame(handler: (frame: Uint8Array) => void): void;
  /** Called once; at once when the connection is closed already. */
  onClose(handler: () => void): void;
  /** Called whenever bytes handed over have left. */
  onDrain(handler: () => void): void;
}

export interface Listening {
  /** Where others can dial this listener. */
  readonly address: string;
  /** Stops listening and ends what was accepted. */
  close(): Promise<void>;
}

export interface Net {
  listen(handler: (connection: Connection) => void): Promise<Listening>;
  /** Rejects when there is no connection to be had, or once `signal` is aborted. */
  dial(address: string, signal: AbortSignal): Promise<Connection>;
}
