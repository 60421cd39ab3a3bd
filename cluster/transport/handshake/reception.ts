// The listening side until it is proved who is there: so many strangers at once, of one host and in all, each
// for a short time, and every refusal in the log. Who may have a link is the transport's matter.

import type { Clock } from '../../platform/clock.ts';
import type { Logger } from '../../platform/logger.ts';
import { type Conn, type ConnHandlers, hostOf } from '../../platform/net.ts';
import type { TransportLimits, TransportTiming } from '../transport-limits.ts';
import { Greeting } from './greeting.ts';
import type { Handshake, Proved } from './handshake.ts';
import { HandshakeRefusal } from './handshake-refusal.ts';
import { RefusalLog } from './refusal-log.ts';

export interface ReceptionOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly timing: TransportTiming;
  readonly limits: TransportLimits;
  readonly handshake: () => Handshake;
  readonly onProved: (conn: Conn, proved: Proved) => ConnHandlers;
}

export class Reception {
  readonly #options: ReceptionOptions;
  /** In the order of their coming. */
  readonly #strangers = new Set<Greeting>();
  readonly #refusals: RefusalLog;

  constructor(options: ReceptionOptions) {
    this.#options = options;
    this.#refusals = new RefusalLog(options);
  }

  take(conn: Conn): void {
    const { clock, handshake, limits, onProved, timing } = this.#options;
    this.#makeRoom(hostOf(conn.remote));
    const shake = handshake();
    const greeting = new Greeting({
      conn,
      handshake: shake,
      clock,
      timeoutMs: timing.handshakeTimeoutMs,
      frameMaxBytes: limits.helloMaxBytes,
      onProved: (proved) => {
        this.#strangers.delete(greeting);
        return onProved(conn, proved);
      },
      onFailed: (refusal) => {
        this.#strangers.delete(greeting);
        this.#note(conn.remote, refusal, shake.theirHello?.name);
      },
    });
    this.#strangers.add(greeting);
  }

  close(why: string): void {
    for (const greeting of this.#strangers) greeting.end(new HandshakeRefusal('closing', why));
    this.#strangers.clear();
  }

  /** An honest node is through in milliseconds: the oldest stranger is the one that only waits. */
  #makeRoom(host: string): void {
    const { strangersMax, strangersOfHostMax } = this.#options.limits;
    const ofHost = [...this.#strangers].filter(({ remote }) => hostOf(remote) === host);
    const isFullForHost = ofHost.length >= strangersOfHostMax;
    if (!isFullForHost && this.#strangers.size < strangersMax) return;
    const [oldest] = isFullForHost ? ofHost : this.#strangers;
    if (oldest === undefined) return;
    this.#strangers.delete(oldest);
    const refusal = new HandshakeRefusal('busy', 'too many connections wait for their handshake');
    oldest.end(refusal);
    this.#note(oldest.remote, refusal, undefined);
  }

  #note(remote: string, { code, message }: HandshakeRefusal, name: string | undefined): void {
    const level = code === 'refused' || code === 'busy' ? 'warn' : 'debug';
    this.#refusals.note({ remote, name, why: message, level });
  }
}
