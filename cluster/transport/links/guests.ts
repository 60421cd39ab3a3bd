// Connections for calls alone, to addresses of nodes that are no peers: whoever looks for a group to join
// asks by address. Each is shared by the calls to its address, but for those that bring much, which share
// another one, and stays open a little after the last one.

import type { Timer } from '../../platform/clock.ts';
import type { Conn, ConnHandlers, NetAddress } from '../../platform/net.ts';
import type { Frame } from '../../wire/frame.ts';
import { WireDamage } from '../../wire/wire-damage.ts';
import type { CallTable } from '../calls/call-table.ts';
import { RpcError } from '../calls/rpc-error.ts';
import type { DialAttempt } from '../handshake/dial-attempt.ts';
import type { Proved } from '../handshake/handshake.ts';
import { HandshakeRefusal } from '../handshake/handshake-refusal.ts';
import type { RpcCall, RpcCaller } from '../transport.ts';
import { LaneConn } from './lane-conn.ts';
import { callerOf, type LinkParts, newCallTable } from './link-parts.ts';

/** What a connection is for; a stranger only learns who is there. */
type Purpose = 'small' | 'bulk' | 'stranger';

const WHO_IS_THERE = 'the question who is there';

export class Guests {
  readonly #parts: LinkParts;
  readonly #guestByAddress = new Map<string, Guest>();

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  /** Rejects with RpcError. */
  async call(address: NetAddress, request: RpcCall): Promise<Uint8Array> {
    const purpose = request.isBulk === true ? 'bulk' : 'small';
    return this.#guestAt(address, purpose, request.method).call(request);
  }

  /** See Transport. */
  async whoIsAt(address: NetAddress, deadlineMs: number): Promise<RpcCaller> {
    return this.#guestAt(address, 'stranger', WHO_IS_THERE).who(deadlineMs);
  }

  #guestAt(address: NetAddress, purpose: Purpose, method: string): Guest {
    const key = `${purpose} ${address.host}:${address.port}`;
    const known = this.#current(key);
    const { guestsMax } = this.#parts.limits;
    if (known === undefined && this.#guestByAddress.size >= guestsMax) {
      const says = `${method} was not sent: ${guestsMax} connections for calls are open already`;
      throw new RpcError('unreachable', says);
    }
    return known ?? this.#open(key, address, purpose);
  }

  /** What a node has come to belong to since, those at the other end of its connections have not heard. */
  #current(key: string): Guest | undefined {
    const guest = this.#guestByAddress.get(key);
    if (guest === undefined || guest.belonging === this.#parts.belonging()) return guest;
    guest.retire();
    return undefined;
  }

  #open(key: string, address: NetAddress, purpose: Purpose): Guest {
    const to = { address, isStranger: purpose === 'stranger' };
    const guest: Guest = new Guest(this.#parts, to, () => {
      if (this.#guestByAddress.get(key) === guest) this.#guestByAddress.delete(key);
    });
    this.#guestByAddress.set(key, guest);
    return guest;
  }

  close(why: string): void {
    for (const guest of [...this.#guestByAddress.values()]) guest.close(why);
  }
}

/** Waits for the connection to be made, or not. */
interface Asker {
  readonly onMade: (lane: LaneConn) => void;
  readonly onFailed: (why: string) => void;
}

class Guest {
  /** What the own node said that it belongs to, as it made the connection. */
  readonly belonging: string;
  readonly #parts: LinkParts;
  readonly #onGone: () => void;
  readonly #attempt: DialAttempt;
  readonly #calls: CallTable;
  readonly #askers = new Set<Asker>();
  #lane: LaneConn | undefined;
  #idle: Timer | undefined;
  #isRetired = false;
  #isGone = false;

  constructor(
    parts: LinkParts,
    to: { readonly address: NetAddress; readonly isStranger: boolean },
    onGone: () => void,
  ) {
    this.#parts = parts;
    this.belonging = parts.belonging();
    this.#onGone = onGone;
    this.#calls = newCallTable(parts);
    this.#attempt = parts.dial({
      ...to,
      lane: 'call',
      expected: undefined,
      onProved: (conn, proved) => this.#onProved(conn, proved),
      onFailed: ({ message }) => this.#end(message),
    });
  }

  async call(request: RpcCall): Promise<Uint8Array> {
    const { clock } = this.#parts;
    this.#idle?.cancel();
    const startMs = clock.monotonicMs();
    const lane = this.#lane ?? (await this.#made(request));
    const strange = strangerIn(lane, request);
    if (strange !== undefined) {
      // Who belongs to nothing yet, or to no federation, says something else over the next connection.
      const { clusterId, federationId } = lane.peer;
      if (clusterId === '' || federationId === '') this.retire();
      else this.#endWhenIdle();
      throw strange;
    }
    const deadlineMs = Math.max(0, request.deadlineMs - (clock.monotonicMs() - startMs));
    if (!lane.hasRoomFor(request.payload.length)) {
      throw new RpcError('unreachable', `${request.method} was not sent: ${lane.remote} is busy`);
    }
    const answer = this.#calls.call({ ...request, deadlineMs }, (frame) =>
      lane.sendFrame(frame, request.payload.length),
    );
    return answer.finally(() => this.#endWhenIdle());
  }

  /** As the handshake proves it; nothing else is asked. */
  async who(deadlineMs: number): Promise<RpcCaller> {
    const lane = this.#lane ?? (await this.#made({ method: WHO_IS_THERE, deadlineMs }));
    this.retire();
    return callerOf(lane.peer, lane.remote);
  }

  /** No other call comes: it ends with the last one that is under way. */
  retire(): void {
    this.#isRetired = true;
    this.#onGone();
    this.#endWhenIdle();
  }

  close(why: string): void {
    this.#attempt.end(new HandshakeRefusal('closing', why));
    this.#lane?.refuse('closing', why);
    this.#end(why);
  }

  #made({ method, deadlineMs }: Pick<RpcCall, 'method' | 'deadlineMs'>): Promise<LaneConn> {
    return new Promise((resolve, reject) => {
      const fail = (why: string): void => {
        this.#askers.delete(asker);
        timer.cancel();
        reject(new RpcError('unreachable', `${method} was not sent: ${why}`));
      };
      const asker: Asker = {
        onMade: (lane) => {
          timer.cancel();
          resolve(lane);
        },
        onFailed: fail,
      };
      const timer = this.#parts.clock.after(deadlineMs, () =>
        fail(`no connection within ${deadlineMs} ms`),
      );
      this.#askers.add(asker);
    });
  }

  #onProved(conn: Conn, proved: Proved): ConnHandlers {
    const lane = new LaneConn({
      parts: this.#parts,
      conn,
      proved,
      side: 'dialler',
      onFrame: (frame) => this.#onFrame(frame),
      onClosed: (why) => this.#end(why),
    });
    this.#lane = lane;
    for (const { onMade } of this.#askers) onMade(lane);
    this.#askers.clear();
    this.#endWhenIdle();
    return lane;
  }

  #onFrame(frame: Frame): void {
    if (frame.kind !== 'answer' && frame.kind !== 'refusal') {
      throw new WireDamage(`a frame ${frame.kind} came where answers are due`);
    }
    this.#calls.settle(frame);
  }

  #endWhenIdle(): void {
    this.#idle?.cancel();
    if (this.#isGone || this.#calls.count > 0) return;
    const { clock, timing } = this.#parts;
    const idleMs = this.#isRetired ? 0 : timing.guestIdleMs;
    this.#idle = clock.after(idleMs, () => {
      if (this.#calls.count === 0 && this.#askers.size === 0) this.close('there are no more calls');
    });
  }

  #end(why: string): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#idle?.cancel();
    this.#onGone();
    for (const { onFailed } of [...this.#askers]) onFailed(why);
    this.#calls.failAll(why);
  }
}

/**
 * Whoever is at an address is not always whom the call is for: what is told of addresses may be old, and at
 * first they are those that the settings name. Undefined where it is who was meant.
 */
function strangerIn(
  { peer, remote }: LaneConn,
  { datacenter, method, refuses }: RpcCall,
): RpcError | undefined {
  const isOther = datacenter !== undefined && datacenter !== peer.datacenter;
  const says = isOther
    ? `${remote} is of datacenter "${peer.datacenter}", not of "${datacenter}"`
    : refuses?.(callerOf(peer, remote));
  return says === undefined
    ? undefined
    : new RpcError('unreachable', `${method} was not sent: ${says}`);
}
