// The place of one lane of a link: at most one connection stands in it. It is dialled while nothing does,
// and when both nodes dial at the same time, the dial of the lower number wins at both ends.
//
// Why both agree: a listening side gives a lane away when it answers a proof. A node that has sent its own
// proof and has the lower number answers no, so if its proof is answered with yes, that one stands alone. A
// node that has not sent a proof, or has the higher number, answers yes and gives its own try up.

import { assert } from '../../base/assert.ts';
import type { Timer } from '../../platform/clock.ts';
import type { Conn, ConnHandlers, NetAddress } from '../../platform/net.ts';
import type { NodeId } from '../../raft/node-id.ts';
import type { Frame, Hello, Lane, RefusedCode } from '../../wire/frame.ts';
import type { DialAttempt } from '../handshake/dial-attempt.ts';
import type { Proved, Side } from '../handshake/handshake.ts';
import { HandshakeRefusal } from '../handshake/handshake-refusal.ts';
import { LaneConn } from './lane-conn.ts';
import type { LinkParts } from './link-parts.ts';

export interface LaneSlotOptions {
  readonly parts: LinkParts;
  readonly node: NodeId;
  readonly lane: Exclude<Lane, 'call'>;
  readonly onFrame: (frame: Frame, lane: LaneConn) => void;
  readonly onUp: (lane: LaneConn) => void;
  /** Called when nothing stands here any more, but not after `close`. */
  readonly onDown: (why: string, lane: LaneConn) => void;
  /** Another connection of the same node took the place of one. */
  readonly onReplaced: (old: LaneConn, fresh: LaneConn) => void;
  readonly onDialFailed: (refusal: HandshakeRefusal) => void;
}

export class LaneSlot {
  readonly #options: LaneSlotOptions;
  #address: NetAddress | undefined;
  #up: LaneConn | undefined;
  #attempt: DialAttempt | undefined;
  #retry: Timer | undefined;
  /** Tries since the last good link. */
  #failureCount = 0;

  constructor(options: LaneSlotOptions) {
    this.#options = options;
  }

  get up(): LaneConn | undefined {
    return this.#up;
  }

  /** Where to dial from now on; undefined: nowhere. What stands goes on standing. */
  setAddress(address: NetAddress | undefined): void {
    if (isSameAddress(address, this.#address)) return;
    this.#address = address;
    this.#failureCount = 0;
    this.#stopDialling('the node has another address');
    if (this.#up === undefined) this.#dial();
  }

  /** Whether a connection that the other node dialled may stand here. */
  admit({ life, name }: Hello): HandshakeRefusal | undefined {
    const { parts, node } = this.#options;
    const up = this.#up;
    if (up !== undefined) {
      // Whoever dials again, or comes back to life, knows that its old connection is of no use.
      const isOutdated = up.peer.life !== life || up.side === 'listener';
      return isOutdated ? undefined : linkedAlready(`${parts.self.name} has a link with ${name}`);
    }
    const isOwnBetter = this.#attempt?.hasSentProof === true && parts.self.node < node;
    return isOwnBetter ? linkedAlready(`${parts.self.name} is dialling ${name} itself`) : undefined;
  }

  take(conn: Conn, proved: Proved, side: Side): ConnHandlers {
    const { parts, onFrame, onReplaced, onUp } = this.#options;
    const fresh = new LaneConn({
      parts,
      conn,
      proved,
      side,
      onFrame,
      onClosed: (why, closed) => this.#onClosed(why, closed),
    });
    this.#stopDialling('the other node was faster');
    const old = this.#up;
    this.#up = fresh;
    if (old !== undefined) {
      old.refuse('closing', placeTakenText(old, fresh));
      onReplaced(old, fresh);
    }
    onUp(fresh);
    return fresh;
  }

  /** For good. */
  close(code: RefusedCode, why: string): void {
    this.#address = undefined;
    this.#stopDialling(why);
    const up = this.#up;
    this.#up = undefined;
    up?.refuse(code, why);
  }

  #onClosed(why: string, closed: LaneConn): void {
    if (this.#up !== closed) return;
    this.#up = undefined;
    const { parts, onDown } = this.#options;
    const stoodMs = parts.clock.monotonicMs() - closed.openedAtMs;
    this.#failureCount = stoodMs >= parts.timing.goodAfterMs ? 0 : this.#failureCount + 1;
    onDown(why, closed);
    if (this.#up === undefined) this.#dialLater();
  }

  /** At once first, then within a time that doubles: many nodes must not come back all together. */
  #dialLater(): void {
    const { clock, random, timing } = this.#options.parts;
    const doublings = Math.min(this.#failureCount, DOUBLINGS_MAX) - 1;
    const withinMs = Math.min(timing.retryMaxMs, timing.retryBaseMs * 2 ** doublings);
    const delayMs = this.#failureCount === 0 ? 0 : random.fraction() * withinMs;
    this.#retry?.cancel();
    this.#retry = clock.after(delayMs, () => this.#dial());
  }

  #dial(): void {
    this.#retry = undefined;
    const address = this.#address;
    if (address === undefined) return;
    const { parts, node, lane } = this.#options;
    assert(this.#up === undefined && this.#attempt === undefined, 'one connection a lane', {
      node,
    });
    this.#attempt = parts.dial({
      address,
      lane,
      expected: node,
      onProved: (conn, proved) => {
        this.#attempt = undefined;
        return this.take(conn, proved, 'dialler');
      },
      onFailed: (refusal) => {
        this.#attempt = undefined;
        this.#failureCount += 1;
        this.#options.onDialFailed(refusal);
        if (this.#up === undefined) this.#dialLater();
      },
    });
  }

  #stopDialling(why: string): void {
    this.#retry?.cancel();
    this.#retry = undefined;
    this.#attempt?.end(new HandshakeRefusal('linked-already', why));
    this.#attempt = undefined;
  }
}

/** Beyond it every delay is the longest. */
const DOUBLINGS_MAX = 20;

function linkedAlready(why: string): HandshakeRefusal {
  return new HandshakeRefusal('linked-already', why);
}

/** Who reads that another life took its place is alive beside it. */
function placeTakenText(old: LaneConn, fresh: LaneConn): string {
  if (old.peer.life === fresh.peer.life) return 'another connection took its place';
  return (
    `another process with its node id took its place, at ${fresh.remote}: two servers run from copies of one ` +
    'data folder; stop one of them and empty its folder'
  );
}

function isSameAddress(one: NetAddress | undefined, other: NetAddress | undefined): boolean {
  return one?.host === other?.host && one?.port === other?.port;
}
