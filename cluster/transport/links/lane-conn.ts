// A connection on which it is proved who is there. Messages that are handed over in one turn leave as one
// frame; what finds too much waiting is lost, as on a bad wire. Silence ends it, and so does whatever cannot
// be read, with the reason told to the other side and nothing else affected.

import type { Timer } from '../../platform/clock.ts';
import { type Conn, type ConnHandlers, FRAME_MAX_BYTES } from '../../platform/net.ts';
import type { Message } from '../../raft/message.ts';
import { type Frame, type Hello, MESSAGES_MAX, type RefusedCode } from '../../wire/frame.ts';
import { decodeFrame, encodeFrame } from '../../wire/frame-codec.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import type { Proved, Side } from '../handshake/handshake.ts';
import type { LinkParts } from './link-parts.ts';

/** What a frame holds beside its messages or its payload. */
const HEAD_MAX_BYTES = 64 * 1024;

/** A message, and how large it is on the wire. */
export interface WaitingMessage {
  readonly message: Message;
  readonly sizeBytes: number;
}

export interface LaneConnOptions {
  readonly parts: LinkParts;
  readonly conn: Conn;
  /** Who is there, for which lane, and in which layout both speak. */
  readonly proved: Proved;
  /** Which of the two this node is. */
  readonly side: Side;
  /** Whatever is not this connection's own matter. Throws WireDamage at what should not have come. */
  readonly onFrame: (frame: Frame, lane: LaneConn) => void;
  /** Called once, whoever closed. */
  readonly onClosed: (why: string, lane: LaneConn) => void;
}

export class LaneConn implements ConnHandlers {
  readonly peer: Hello;
  readonly side: Side;
  readonly #protocol: number;
  readonly openedAtMs: number;
  readonly #options: LaneConnOptions;
  /** What was handed over in this turn. */
  #waitingMessages: WaitingMessage[] = [];
  #waitingFrames: Frame[] = [];
  #waitingBytes = 0;
  #flush: Timer | undefined;
  #ping: Timer | undefined;
  /** Pings since anything was heard. A node that was stopped itself has missed them, not the other side. */
  #silentPingCount = 0;
  #lastHeardAtMs: number;
  /** A large frame on a slow way is no silence. */
  #receivedBytes = 0;
  #roundTripMs: number | undefined;
  #closedWhy: string | undefined;

  /** Whoever made the connection hands it its frames from now on. */
  constructor(options: LaneConnOptions) {
    this.#options = options;
    this.peer = options.proved.hello;
    this.#protocol = options.proved.version;
    this.side = options.side;
    this.openedAtMs = options.parts.clock.monotonicMs();
    this.#lastHeardAtMs = this.openedAtMs;
    this.#sendPing();
  }

  get remote(): string {
    return this.#options.conn.remote;
  }

  get lastHeardAtMs(): number {
    return this.#lastHeardAtMs;
  }

  get roundTripMs(): number | undefined {
    return this.#roundTripMs;
  }

  /** Whether something of this size would be sent now, or be lost. */
  hasRoomFor(sizeBytes: number): boolean {
    if (this.#closedWhy !== undefined || sizeBytes > FRAME_MAX_BYTES - HEAD_MAX_BYTES) return false;
    const { conn, parts } = this.#options;
    const { bulkLaneMaxBytes, controlLaneMaxBytes } = parts.limits;
    const waitingMaxBytes = this.peer.lane === 'control' ? controlLaneMaxBytes : bulkLaneMaxBytes;
    return this.#waitingBytes + conn.bufferedBytes() + sizeBytes <= waitingMaxBytes;
  }

  /** Leaves at the end of this turn, with its other messages; only if there is room. */
  sendMessage(waiting: WaitingMessage): void {
    this.#waitingMessages.push(waiting);
    this.#await(waiting.sizeBytes);
  }

  /** Leaves at the end of this turn, after its messages; only if there is room. */
  sendFrame(frame: Frame, payloadBytes: number): void {
    this.#waitingFrames.push(frame);
    this.#await(payloadBytes);
  }

  /** Tells the other side why it closes. */
  refuse(code: RefusedCode, why: string): void {
    if (this.#closedWhy !== undefined) return;
    this.#sendWaiting();
    this.#options.conn.send(encodeFrame({ kind: 'refused', code, why }));
    this.#end(why);
  }

  onFrame(bytes: Uint8Array): void {
    if (this.#closedWhy !== undefined) return;
    this.#lastHeardAtMs = this.#options.parts.clock.monotonicMs();
    try {
      this.#take(decodeFrame(bytes, this.#protocol));
    } catch (error) {
      if (!(error instanceof WireDamage)) throw error;
      this.#onDamage(`a frame of ${bytes.length} bytes is damaged: ${error.message}`);
    }
  }

  onClose(why: string): void {
    this.#end(why);
  }

  #onDamage(why: string): void {
    const { node, name, lane } = this.peer;
    const fields = { node, name, lane, remote: this.remote, why };
    this.#options.parts.logger.warn(fields, 'a connection is closed because of what came over it');
    this.refuse('refused', why);
  }

  #take(frame: Frame): void {
    if (frame.kind === 'ping') {
      if (this.hasRoomFor(0)) this.sendFrame({ kind: 'pong', sentAtMs: frame.sentAtMs }, 0);
    } else if (frame.kind === 'pong') {
      const tookMs = Math.floor(this.#options.parts.clock.monotonicMs()) - frame.sentAtMs;
      this.#roundTripMs = Math.max(0, tookMs);
    } else if (frame.kind === 'refused') {
      this.#end(`node ${this.peer.name} closed it: ${frame.why}`);
    } else {
      this.#options.onFrame(frame, this);
    }
  }

  #await(sizeBytes: number): void {
    this.#waitingBytes += sizeBytes;
    this.#flush ??= this.#options.parts.clock.after(0, () => this.#sendWaiting());
  }

  #sendWaiting(): void {
    this.#flush?.cancel();
    this.#flush = undefined;
    const messages = this.#waitingMessages;
    const frames = this.#waitingFrames;
    this.#waitingMessages = [];
    this.#waitingFrames = [];
    this.#waitingBytes = 0;
    const { conn, parts } = this.#options;
    for (const batch of inBatches(messages, parts.limits.messagesFrameBytes)) {
      conn.send(encodeFrame({ kind: 'messages', messages: batch }, this.#protocol));
    }
    for (const frame of frames) conn.send(encodeFrame(frame, this.#protocol));
  }

  #sendPing(): void {
    const { conn, parts } = this.#options;
    const { clock } = parts;
    const { pingMs, silenceMs } = parts.timing;
    const receivedBytes = conn.receivedBytes();
    if (receivedBytes !== this.#receivedBytes) this.#silentPingCount = 0;
    this.#receivedBytes = receivedBytes;
    if (this.#silentPingCount * pingMs >= silenceMs) {
      const heardMs = Math.round(clock.monotonicMs() - this.#lastHeardAtMs);
      this.refuse('refused', `nothing was heard from node ${this.peer.name} for ${heardMs} ms`);
      return;
    }
    this.#silentPingCount += 1;
    if (this.hasRoomFor(0))
      this.sendFrame({ kind: 'ping', sentAtMs: Math.floor(clock.monotonicMs()) }, 0);
    this.#ping = clock.after(pingMs, () => this.#sendPing());
  }

  #end(why: string): void {
    if (this.#closedWhy !== undefined) return;
    this.#closedWhy = why;
    this.#flush?.cancel();
    this.#ping?.cancel();
    this.#waitingMessages = [];
    this.#waitingFrames = [];
    this.#options.conn.close(why);
    this.#options.onClosed(why, this);
  }
}

function inBatches(
  messages: readonly WaitingMessage[],
  batchBytes: number,
): readonly (readonly Message[])[] {
  const batches: Message[][] = [];
  let batch: Message[] = [];
  let bytes = 0;
  for (const { message, sizeBytes } of messages) {
    if (batch.length > 0 && (bytes + sizeBytes > batchBytes || batch.length >= MESSAGES_MAX)) {
      batches.push(batch);
      batch = [];
      bytes = 0;
    }
    batch.push(message);
    bytes += sizeBytes;
  }
  if (batch.length > 0) batches.push(batch);
  return batches;
}
