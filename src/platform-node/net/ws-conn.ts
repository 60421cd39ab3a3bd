// One WebSocket as a connection of nodes: frames come in portions, so that no flood holds up the process;
// those that go out in one turn leave together; a stranger may say only so much.

import type { Socket } from 'node:net';
import { type RawData, WebSocket } from 'ws';
import { type Conn, type ConnHandlers, STRANGER_MAX_BYTES } from '../../../cluster/platform/net.ts';

/** A normal end, and the ones that name a fault of the other side (RFC 6455, 7.4.1). */
const NORMAL = 1000;
const UNSUPPORTED_DATA = 1003;
const TOO_BIG = 1009;
/** The reason in a close frame has at most 123 bytes; a character cut in two may grow by 2. */
const REASON_MAX_BYTES = 120;
/** A connection that does not end by itself is cut off. */
const CLOSE_GRACE_MS = 1_000;
/** What one connection hands over in one turn. */
const PORTION_FRAMES = 64;
const PORTION_BYTES = 512 * 1024;

export interface WsConnOptions {
  readonly webSocket: WebSocket;
  /** The one below it. */
  readonly socket: Socket;
  readonly remote: string;
}

export class WsConn implements Conn {
  readonly remote: string;
  readonly #webSocket: WebSocket;
  readonly #socket: Socket;
  #handlers: ConnHandlers | undefined;
  /** Why this side closes, or what went wrong. */
  #why: string | undefined;
  /** The connection ended before anybody took it over. */
  #endedWhy: string | undefined;
  /** Read and not handed over: what was in the last piece that the socket gave. */
  #queue: Uint8Array[] = [];
  #portionFrames = 0;
  #portionBytes = 0;
  #isResting = false;
  #isCorked = false;
  #strangerBytes = 0;
  #onTrusted: (() => void) | undefined;

  constructor({ webSocket, socket, remote }: WsConnOptions) {
    this.remote = remote;
    this.#webSocket = webSocket;
    this.#socket = socket;
    // Read on only when somebody takes the frames.
    webSocket.pause();
    webSocket.on('message', (data, isBinary) => this.#onMessage(data, isBinary));
    webSocket.on('error', (error) => {
      this.#why ??= error.message;
    });
    webSocket.on('close', (code, reason) => this.#onClose(code, reason));
  }

  handle(handlers: ConnHandlers): void {
    this.#handlers = handlers;
    const why = this.#endedWhy;
    if (why !== undefined) queueMicrotask(() => handlers.onClose(why));
    else this.#webSocket.resume();
  }

  /** Counts what comes from now on, until it is trusted. */
  distrust(onTrusted: () => void): void {
    this.#onTrusted = onTrusted;
    this.#socket.on('data', this.#onStrangersData);
  }

  trust(): void {
    this.#socket.off('data', this.#onStrangersData);
    this.#onTrusted?.();
  }

  send(frame: Uint8Array): void {
    if (this.#webSocket.readyState !== WebSocket.OPEN) return;
    this.#cork();
    // What cannot be sent is told by the close that follows.
    this.#webSocket.send(frame, () => undefined);
  }

  receivedBytes(): number {
    return this.#socket.bytesRead;
  }

  bufferedBytes(): number {
    return this.#webSocket.bufferedAmount;
  }

  close(why: string): void {
    this.#close(NORMAL, why);
  }

  /** What is sent in one go leaves in one system call. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#socket.cork();
    process.nextTick(() => {
      this.#isCorked = false;
      this.#socket.uncork();
    });
  }

  readonly #onStrangersData = (data: Uint8Array): void => {
    this.#strangerBytes += data.length;
    if (this.#strangerBytes <= STRANGER_MAX_BYTES) return;
    this.#why ??= `more than ${STRANGER_MAX_BYTES} bytes came before it was known from whom`;
    this.#webSocket.terminate();
  };

  #onMessage(data: RawData, isBinary: boolean): void {
    if (this.#why !== undefined) return;
    if (!isBinary || !Buffer.isBuffer(data)) {
      this.#close(UNSUPPORTED_DATA, 'a text came, and frames are binary');
      return;
    }
    this.#queue.push(data);
    if (!this.#isResting) this.#handOver();
  }

  #handOver(): void {
    for (let frame = this.#queue.shift(); frame !== undefined; frame = this.#queue.shift()) {
      if (this.#portionFrames === 0) setImmediate(() => this.#nextPortion());
      this.#portionFrames += 1;
      this.#portionBytes += frame.length;
      this.#handlers?.onFrame(frame);
      if (this.#portionFrames >= PORTION_FRAMES || this.#portionBytes >= PORTION_BYTES) {
        this.#isResting = true;
        this.#webSocket.pause();
        return;
      }
    }
  }

  /** Everything else had its turn. */
  #nextPortion(): void {
    this.#portionFrames = 0;
    this.#portionBytes = 0;
    if (!this.#isResting) return;
    this.#isResting = false;
    this.#handOver();
    if (!this.#isResting) this.#webSocket.resume();
  }

  #onClose(code: number, reason: Buffer): void {
    const isOurs = this.#why !== undefined;
    const said = reason.length > 0 ? reason.toString() : `closed with ${code}`;
    const why = this.#why ?? (code === TOO_BIG ? 'a frame was too large for it' : said);
    this.#endedWhy = why;
    // Its last words are among what was not handed over yet.
    const last = isOurs ? [] : this.#queue;
    this.#queue = [];
    for (const frame of last) this.#handlers?.onFrame(frame);
    this.#handlers?.onClose(why);
  }

  #close(code: number, why: string): void {
    if (this.#why !== undefined || this.#endedWhy !== undefined) return;
    this.#why = why;
    this.#queue = [];
    this.#webSocket.close(code, Buffer.from(why).subarray(0, REASON_MAX_BYTES).toString());
    // Its answer to the closing must be read, whatever comes before.
    this.#webSocket.resume();
    setTimeout(() => this.#webSocket.terminate(), CLOSE_GRACE_MS).unref();
  }
}
