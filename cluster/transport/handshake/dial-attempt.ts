// One try to reach a node: a connection, then the handshake on it. It comes to one of the two ends that
// its owner gave, unless the owner ends it before.

import { messageOf } from '../../base/message-of.ts';
import type { Clock } from '../../platform/clock.ts';
import {
  addressText,
  type Conn,
  type ConnHandlers,
  type Net,
  type NetAddress,
} from '../../platform/net.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { Lane } from '../../wire/frame.ts';
import { encodeFrame } from '../../wire/frame-codec.ts';
import type { TransportTiming } from '../transport-limits.ts';
import { Greeting } from './greeting.ts';
import type { Handshake, Proved } from './handshake.ts';
import { HandshakeRefusal } from './handshake-refusal.ts';

export interface DialRequest {
  readonly address: NetAddress;
  readonly lane: Lane;
  /** Who should answer, if it is known. */
  readonly expected: NodeId | undefined;
  /** This node does not say to which cluster it belongs. */
  readonly isStranger?: boolean;
  readonly onProved: (conn: Conn, proved: Proved) => ConnHandlers;
  readonly onFailed: (refusal: HandshakeRefusal) => void;
}

export interface DialAttemptOptions extends DialRequest {
  readonly net: Net;
  readonly clock: Clock;
  readonly timing: TransportTiming;
  readonly frameMaxBytes: number;
  readonly handshake: Handshake;
}

export class DialAttempt {
  readonly #options: DialAttemptOptions;
  #greeting: Greeting | undefined;
  #endedBy: HandshakeRefusal | undefined;

  constructor(options: DialAttemptOptions) {
    this.#options = options;
    void this.#dial();
  }

  /** The other side may take the link for made. */
  get hasSentProof(): boolean {
    return this.#options.handshake.hasSentProof;
  }

  /** Neither of its two ends comes after this. */
  end(refusal: HandshakeRefusal): void {
    this.#endedBy = refusal;
    this.#greeting?.end(refusal);
  }

  async #dial(): Promise<void> {
    const { net, address, timing, onFailed } = this.#options;
    let conn: Conn;
    try {
      conn = await net.dial(address, { timeoutMs: timing.dialTimeoutMs });
    } catch (error) {
      const why = messageOf(error);
      const says = `${addressText(address)} cannot be reached: ${why}`;
      if (this.#endedBy === undefined) onFailed(new HandshakeRefusal('refused', says));
      return;
    }
    this.#greet(conn);
  }

  #greet(conn: Conn): void {
    const { clock, timing, frameMaxBytes, handshake, onProved, onFailed } = this.#options;
    if (this.#endedBy !== undefined) {
      const { code, message } = this.#endedBy;
      conn.send(encodeFrame({ kind: 'refused', code, why: message }));
      conn.close(message);
      return;
    }
    this.#greeting = new Greeting({
      conn,
      handshake,
      clock,
      timeoutMs: timing.handshakeTimeoutMs,
      frameMaxBytes,
      onProved: (proved) => onProved(conn, proved),
      onFailed,
    });
  }
}
