// A connection of a node that only asks: its calls are carried out here, and nothing else is taken.

import type { Conn } from '../../platform/net.ts';
import type { Frame } from '../../wire/frame.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import type { CallReply, CallServer } from '../calls/call-server.ts';
import type { Proved } from '../handshake/handshake.ts';
import { LaneConn } from './lane-conn.ts';
import { callerOf, type LinkParts, newCallServer } from './link-parts.ts';

export interface AskedLaneOptions {
  readonly parts: LinkParts;
  readonly conn: Conn;
  readonly proved: Proved;
  readonly onClosed: () => void;
}

export class AskedLane {
  readonly lane: LaneConn;
  readonly #served: CallServer;

  constructor({ parts, conn, proved, onClosed }: AskedLaneOptions) {
    this.#served = newCallServer(parts);
    this.lane = new LaneConn({
      parts,
      conn,
      proved,
      side: 'listener',
      onFrame: (frame) => this.#onFrame(frame),
      onClosed,
    });
  }

  /** Resolves when every call is answered; takes no more. */
  drain(): Promise<void> {
    return this.#served.drain();
  }

  #onFrame(frame: Frame): void {
    if (frame.kind !== 'call')
      throw new WireDamage(`a frame ${frame.kind} came where calls are due`);
    const from = callerOf(this.lane.peer, this.lane.remote);
    this.#served.take(frame, from, (reply) => this.#reply(reply));
  }

  #reply(reply: CallReply): void {
    const bytes = reply.kind === 'answer' ? reply.payload.length : 0;
    if (this.lane.hasRoomFor(bytes)) this.lane.sendFrame(reply, bytes);
  }
}
