// A connection from its first byte until it is proved who is there. It ends in time one way or the other:
// the connection is handed on, or closed with the reason told to the other side.

import type { Clock, Timer } from '../../platform/clock.ts';
import type { Conn, ConnHandlers } from '../../platform/net.ts';
import { encodeFrame } from '../../wire/frame-codec.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import type { Handshake, Proved } from './handshake.ts';
import { HandshakeRefusal } from './handshake-refusal.ts';

export interface GreetingOptions {
  readonly conn: Conn;
  readonly handshake: Handshake;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** One frame of a stranger. */
  readonly frameMaxBytes: number;
  /** Whoever gets the connection: called in the turn in which it is proved who is there. */
  readonly onProved: (proved: Proved) => ConnHandlers;
  /** Called at most once, in place of `onProved`; not after `end`. */
  readonly onFailed: (refusal: HandshakeRefusal) => void;
}

export class Greeting {
  readonly #options: GreetingOptions;
  readonly #timer: Timer;
  #successor: ConnHandlers | undefined;
  #isOver = false;

  /** Takes the connection over. */
  constructor(options: GreetingOptions) {
    this.#options = options;
    const { clock, conn, timeoutMs } = options;
    this.#timer = clock.after(timeoutMs, () =>
      this.#fail(new HandshakeRefusal('refused', `no handshake within ${timeoutMs} ms`)),
    );
    conn.handle({
      onFrame: (frame) => this.#onFrame(frame),
      onClose: (why) => this.#onClose(why),
    });
    this.#send(options.handshake.begin().reply);
  }

  get remote(): string {
    return this.#options.conn.remote;
  }

  get hasSentProof(): boolean {
    return this.#options.handshake.hasSentProof;
  }

  /** This side wants the connection no more. */
  end(refusal: HandshakeRefusal): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#timer.cancel();
    this.#tell(refusal);
  }

  #onFrame(frame: Uint8Array): void {
    if (this.#successor !== undefined) this.#successor.onFrame(frame);
    else if (!this.#isOver) this.#shake(frame);
  }

  #onClose(why: string): void {
    if (this.#successor !== undefined) this.#successor.onClose(why);
    else this.#fail(new HandshakeRefusal('closing', `the connection ended: ${why}`, 'theirs'));
  }

  #shake(frame: Uint8Array): void {
    const { conn, frameMaxBytes, handshake, onProved } = this.#options;
    try {
      if (frame.length > frameMaxBytes) {
        throw new WireDamage(`a frame of ${frame.length} bytes came before the handshake was done`);
      }
      const { reply, proved } = handshake.take(frame);
      this.#send(reply);
      if (proved === undefined) return;
      this.#isOver = true;
      this.#timer.cancel();
      conn.trust();
      this.#successor = onProved(proved);
    } catch (error) {
      this.#fail(refusalOf(error));
    }
  }

  #send(frame: Uint8Array | undefined): void {
    if (frame !== undefined) this.#options.conn.send(frame);
  }

  #fail(refusal: HandshakeRefusal): void {
    if (this.#isOver) return;
    this.end(refusal);
    this.#options.onFailed(refusal);
  }

  #tell({ code, isTheirs, message }: HandshakeRefusal): void {
    if (!isTheirs) this.#send(encodeFrame({ kind: 'refused', code, why: message }));
    this.#options.conn.close(message);
  }
}

function refusalOf(error: unknown): HandshakeRefusal {
  if (error instanceof HandshakeRefusal) return error;
  if (error instanceof WireDamage) {
    return new HandshakeRefusal(
      'refused',
      `what came is no frame of this protocol: ${error.message}`,
    );
  }
  throw error;
}
