// Networks of nodes over real sockets of this machine: one that listens, connections to it from both ends, and
// the certificates that they show.

import type { Socket } from 'node:net';
import type { Test } from 'tap';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Conn, Listening, Net } from '../../cluster/platform/net.ts';
import type { TlsTexts } from '../../cluster/platform/tls-in-use.ts';
import { openWsNet } from '../../src/platform-node/net/ws-net.ts';
import { systemClock } from '../../src/platform-node/system-clock.ts';
import { certify, makeAuthority } from '../support/certificates.ts';
import { RenewableTls } from '../support/renewable-tls.ts';

export const HERE = { host: '127.0.0.1', port: 0 };
export const TIMEOUT_MS = 60_000;

/** What a network wrote to its log. */
export class Log {
  readonly lines: string[] = [];

  get logger(): Logger {
    const write = (fields: object): void => {
      this.lines.push(JSON.stringify(fields));
    };
    return { debug: write, info: write, warn: write, error: write };
  }
}

export class End {
  readonly frames: Uint8Array[] = [];
  closedWhy: string | undefined;
  readonly conn: Conn;

  constructor(conn: Conn) {
    this.conn = conn;
    conn.handle({
      onFrame: (frame) => this.frames.push(frame),
      onClose: (why) => {
        this.closedWhy = why;
      },
    });
  }

  get texts(): readonly string[] {
    return this.frames.map((frame) => Buffer.from(frame).toString());
  }
}

export interface Port {
  readonly net: Net;
  readonly log: Log;
  readonly listening: Listening;
  /** Those that were accepted, in order. */
  readonly ends: End[];
}

export async function listen(
  test: Test,
  shown?: TlsTexts | RenewableTls,
  isTrusting = true,
): Promise<Port> {
  const log = new Log();
  const net = openWsNet({ tls: inUse(shown), clock: systemClock, logger: log.logger });
  const ends: End[] = [];
  const listening = await net.listen(HERE, (conn) => {
    if (isTrusting) conn.trust();
    ends.push(new End(conn));
  });
  test.teardown(async () => {
    for (const { conn } of ends) conn.close('the test is over');
    await listening.close();
  });
  return { net, log, listening, ends };
}

export function inUse(shown: TlsTexts | RenewableTls | undefined): RenewableTls | undefined {
  if (shown === undefined || shown instanceof RenewableTls) return shown;
  return new RenewableTls(shown);
}

export async function dial(test: Test, { net, listening }: Port, by = net): Promise<End> {
  const end = new End(await by.dial(listening.address, { timeoutMs: TIMEOUT_MS }));
  test.teardown(() => end.conn.close('the test is over'));
  return end;
}

/** Both ends of one connection. */
export async function pair(test: Test, port: Port): Promise<readonly [End, End]> {
  const near = await dial(test, port);
  await until(() => port.ends.length > 0);
  return [near, port.ends.at(-1)!];
}

export async function until(condition: () => boolean): Promise<void> {
  const endMs = Date.now() + TIMEOUT_MS;
  while (!condition()) {
    if (Date.now() > endMs) throw new Error(`it did not come to it: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

export function closed(socket: Socket): Promise<void> {
  if (socket.closed) return Promise.resolve();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}

export const AUTHORITY = makeAuthority('the authority of the cluster');
export const OTHER_AUTHORITY = makeAuthority('the authority of somebody else');
export const MUTUAL: TlsTexts = { ...certify(AUTHORITY, 'node-1'), ca: AUTHORITY.cert };

export function netWith(shown: TlsTexts | RenewableTls | undefined): Net {
  return openWsNet({ tls: inUse(shown), clock: systemClock, logger: new Log().logger });
}
