// Everything between this node and one other: a lane for small frames, so that votes and heartbeats never
// stand behind a megabyte of entries, a lane for large ones, and the calls in both directions.

import { addressText, type Conn, type ConnHandlers, type NetAddress } from '../../platform/net.ts';
import type { Message } from '../../raft/message.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { Frame, Hello, Lane, RefusedCode } from '../../wire/frame.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import type { CallReply, CallServer } from '../calls/call-server.ts';
import type { CallTable } from '../calls/call-table.ts';
import { RpcError } from '../calls/rpc-error.ts';
import type { Proved } from '../handshake/handshake.ts';
import type { HandshakeRefusal } from '../handshake/handshake-refusal.ts';
import type { PeerStatus, RpcCall } from '../transport.ts';
import type { LaneConn } from './lane-conn.ts';
import { LaneSlot } from './lane-slot.ts';
import { LifeWatch } from './life-watch.ts';
import { callerOf, type LinkParts, newCallServer, newCallTable } from './link-parts.ts';
import { laneOf, messageSizeBytes } from './message-size.ts';

export interface LinkOptions {
  readonly parts: LinkParts;
  readonly node: NodeId;
  /** No connection stands any more, and none is dialled. */
  readonly onIdle: () => void;
}

export class Link {
  readonly node: NodeId;
  readonly #options: LinkOptions;
  readonly #control: LaneSlot;
  readonly #bulk: LaneSlot;
  readonly #calls: CallTable;
  readonly #served: CallServer;
  readonly #lives = new LifeWatch();
  #address: NetAddress | undefined;
  /** Of the last handshake. */
  #peer: Hello | undefined;
  #lastHeardAtMs: number | undefined;
  #lastErrorText: string | undefined;
  #lostCount = 0;
  #isClosed = false;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.node = options.node;
    this.#control = this.#slot('control');
    this.#bulk = this.#slot('bulk');
    this.#calls = newCallTable(options.parts);
    this.#served = newCallServer(options.parts);
  }

  /** Whether this node dials the other one. */
  get isPeer(): boolean {
    return this.#address !== undefined;
  }

  setAddress(address: NetAddress): void {
    this.#address = address;
    this.#control.setAddress(address);
    this.#bulk.setAddress(address);
  }

  admit(hello: Hello): HandshakeRefusal | undefined {
    return this.#slotOf(hello.lane).admit(hello);
  }

  /** A connection that the other node dialled and that was admitted. */
  take(conn: Conn, proved: Proved): ConnHandlers {
    return this.#slotOf(proved.hello.lane).take(conn, proved, 'listener');
  }

  send(message: Message): void {
    const lane = this.#slotOf(laneOf(message)).up;
    const sizeBytes = messageSizeBytes(message);
    if (lane?.hasRoomFor(sizeBytes)) {
      this.#lostCount = 0;
      lane.sendMessage({ message, sizeBytes });
    } else if (lane !== undefined) this.#onLost(lane);
  }

  call(request: RpcCall): Promise<Uint8Array> {
    const { method, payload } = request;
    const lane = this.#laneFor(payload.length).up;
    if (lane === undefined) {
      const why = this.#lastErrorText ?? 'there is no connection yet';
      const says = `${method} was not sent, node ${this.#name} is not linked: ${why}`;
      return Promise.reject(new RpcError('unreachable', says));
    }
    if (!lane.hasRoomFor(payload.length)) {
      const says = `${method} was not sent, too much waits to go to node ${this.#name} already`;
      return Promise.reject(new RpcError('unreachable', says));
    }
    return this.#calls.call(request, (frame) => lane.sendFrame(frame, payload.length));
  }

  status(): PeerStatus | undefined {
    const address = this.#address;
    if (address === undefined) return undefined;
    const heardAtMs = this.#heardAtMs();
    const isLinked = this.#control.up !== undefined && this.#bulk.up !== undefined;
    const nowMs = this.#options.parts.clock.monotonicMs();
    return {
      node: this.node,
      address,
      isLinked,
      name: this.#peer?.name ?? '',
      version: this.#peer?.programVersion ?? '',
      datacenter: this.#peer?.datacenter ?? '',
      reads: this.#peer?.reads,
      lastErrorText: isLinked ? undefined : this.#lastErrorText,
      lastHeardMs: heardAtMs === undefined ? undefined : Math.max(0, nowMs - heardAtMs),
      roundTripMs: this.#control.up?.roundTripMs,
    };
  }

  /** Resolves when every call that is carried out here is answered; takes no more. */
  drain(): Promise<void> {
    return this.#served.drain();
  }

  /** For good; nobody is told but the other node. */
  close(code: RefusedCode, why: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#control.close(code, why);
    this.#bulk.close(code, why);
    this.#calls.failAll(why);
  }

  get #name(): string {
    return this.#peer?.name ?? String(this.node);
  }

  #slot(lane: Exclude<Lane, 'call'>): LaneSlot {
    const { parts, node } = this.#options;
    return new LaneSlot({
      parts,
      node,
      lane,
      onFrame: (frame, from) => this.#onFrame(frame, from),
      onUp: (up) => this.#onUp(up),
      onDown: (why, down) => this.#onDown(why, down),
      onReplaced: (old, fresh) => this.#onReplaced(old, fresh),
      onDialFailed: (refusal) => this.#onDialFailed(refusal),
    });
  }

  #slotOf(lane: Lane): LaneSlot {
    return lane === 'control' ? this.#control : this.#bulk;
  }

  #laneFor(payloadBytes: number): LaneSlot {
    const isSmall = payloadBytes <= this.#options.parts.limits.smallCallBytes;
    return isSmall ? this.#control : this.#bulk;
  }

  #onFrame(frame: Frame, lane: LaneConn): void {
    switch (frame.kind) {
      case 'messages':
        for (const message of frame.messages) this.#onMessage(message);
        return;
      case 'call':
        this.#served.take(frame, callerOf(lane.peer, lane.remote), (reply) =>
          this.#reply(reply, lane),
        );
        return;
      case 'answer':
      case 'refusal':
        this.#calls.settle(frame);
        return;
      default:
        throw new WireDamage(`a frame ${frame.kind} came on a link that stands`);
    }
  }

  #onMessage(message: Message): void {
    const { parts } = this.#options;
    const { type, from, to } = message;
    if (from !== this.node || to !== parts.self.node) {
      const says = `a message ${type} from ${from} to ${to} came on the link from ${this.node} to ${parts.self.node}`;
      throw new WireDamage(says);
    }
    parts.onMessage(message);
  }

  /**
   * Whoever asked has given its call up when the connection that it asked over is gone; another life of
   * it, whose calls have the same ids, must never get the answer. One that finds no room is lost: its
   * caller waits until its deadline.
   */
  #reply(reply: CallReply, asked: LaneConn): void {
    if (this.#slotOf(asked.peer.lane).up !== asked) return;
    const bytes = reply.kind === 'answer' ? reply.payload.length : 0;
    // Both lanes are with one life, see #onUp.
    const lane = this.#laneFor(bytes).up ?? asked;
    if (lane.hasRoomFor(bytes)) lane.sendFrame(reply, bytes);
    else this.#onLost(lane);
  }

  /** Once for each time that the lane is full, not for each message. */
  #onLost({ peer }: LaneConn): void {
    this.#lostCount += 1;
    if (this.#lostCount > 1) return;
    const { logger } = this.#options.parts;
    const says = 'too much waits to be sent to a node: what comes now is lost';
    logger.warn({ node: peer.node, name: peer.name, lane: peer.lane }, says);
  }

  #onUp(up: LaneConn): void {
    this.#peer = up.peer;
    const { node, name, programVersion: version, lane } = up.peer;
    const { logger } = this.#options.parts;
    if (lane === 'control') {
      logger.info({ node, name, version, remote: up.remote }, 'linked');
      this.#watchLives(up);
    }
    const other = (lane === 'control' ? this.#bulk : this.#control).up;
    // Half of the link is with a life that is over.
    if (other !== undefined && other.peer.life !== up.peer.life) {
      other.refuse('closing', 'the node came back in another life');
    }
  }

  #watchLives({ peer, remote }: LaneConn): void {
    const { life, name, id } = peer;
    const other = this.#lives.onUp({ life, remote });
    if (other === undefined) return;
    const remotes = [other.remote, remote];
    this.#options.parts.logger.error(
      { name, id, remotes },
      'two servers run from copies of one data folder: stop one of them and empty its folder',
    );
  }

  #onDown(why: string, down: LaneConn): void {
    this.#lastHeardAtMs = Math.max(this.#lastHeardAtMs ?? 0, down.lastHeardAtMs);
    this.#lastErrorText = why;
    this.#calls.failAll(why);
    const { parts, onIdle } = this.#options;
    const { node, name, lane } = down.peer;
    parts.logger.info({ node, name, lane, why }, 'a lane of a link ended');
    if (lane === 'control') parts.onLinkClosed(node);
    if (!this.isPeer && this.#control.up === undefined && this.#bulk.up === undefined) onIdle();
  }

  #onReplaced(old: LaneConn, fresh: LaneConn): void {
    this.#calls.failAll(`node ${fresh.peer.name} dialled anew`);
    const hasNewLife = old.peer.life !== fresh.peer.life;
    if (hasNewLife && old.peer.lane === 'control') this.#options.parts.onLinkClosed(this.node);
  }

  #onDialFailed(refusal: HandshakeRefusal): void {
    const isNew = this.#lastErrorText !== refusal.message;
    this.#lastErrorText = refusal.message;
    if (!isNew || refusal.code === 'linked-already') return;
    const { logger } = this.#options.parts;
    const address = addressText(this.#address ?? { host: '', port: 0 });
    const says = refusal.isTheirs ? 'a peer refuses the link' : 'a peer cannot be linked with';
    logger.warn({ node: this.node, address, why: refusal.message }, says);
  }

  #heardAtMs(): number | undefined {
    const times = [
      this.#lastHeardAtMs,
      this.#control.up?.lastHeardAtMs,
      this.#bulk.up?.lastHeardAtMs,
    ];
    const known = times.filter((time) => time !== undefined);
    return known.length === 0 ? undefined : Math.max(...known);
  }
}
