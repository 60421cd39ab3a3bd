// The outside world of one node: what differs between a real process and a simulated one.

import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../cluster/platform/clock.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Net, NetAddress } from '../../cluster/platform/net.ts';
import type { Random } from '../../cluster/platform/random.ts';
import type { TlsInUse } from '../../cluster/platform/tls-in-use.ts';
import type { AuditFile } from '../audit/audit-trail.ts';
import type { HttpsClient } from '../auth-methods/outside/https-client.ts';
import type { HttpSettings } from '../http/settings.ts';

export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** To the other servers of the datacenter. */
  readonly net: Net;
  /**
   * Lets an application of HTTP be asked, and has it show what is in use of `tls`. Rejects when the address cannot
   * be had.
   */
  serveHttp(app: FastifyInstance, at: HttpListening): Promise<ServedAt>;
  /** Starts to measure how long the event loop keeps others waiting. */
  watchLoopDelay(): LoopDelay;
  /** For auth methods that ask an identity provider. */
  readonly https: HttpsClient;
  /** This node's id: made once, kept in the data folder. */
  readonly nodeId: string;
  /**
   * Opens one of the node's databases. Of the state there may be several generations; of the log there
   * is 0 alone. `onFatal` is called once, with its first failure.
   */
  openKv(name: 'log' | 'state', generation: number, onFatal: (cause: Error) => void): Promise<Kv>;
  /** Deletes a generation that is not open; harmless when it is not there. */
  dropKv(name: 'state', generation: number): Promise<void>;
  /** The generations that are on disk, whole or not. */
  kvGenerations(name: 'state'): Promise<readonly number[]>;
  /** Reads and deletes the operator's bootstrap reset file; undefined when there is none, or its text is for others. */
  takeBootstrapReset(isForAsker: (text: string) => boolean): string | undefined;
  readonly certificates: Certificates;
  /** Where the audit log goes; undefined where there is none. */
  readonly auditFile: AuditFile | undefined;
  /**
   * Ends the process, because going on could lie about what is on disk: at once, or, where a store failed, when all of
   * them are closed and take nothing more, since calls to a disk may hang; but in a few seconds.
   */
  exitAfterFatal(isOfStore: boolean): void;
}

/** What the files hold that `tls.*` and `tls.cluster.*` name. */
export interface Certificates {
  /** Of the HTTPS interface; undefined where there is none. */
  readonly https: TlsInUse | undefined;
  /** By the setting that names the file, the wall clock's milliseconds at which its first certificate ends. */
  ends(): readonly { readonly setting: string; readonly endMs: number }[];
  /** Reads all files anew. Where one is not what it should be, all stay as they are, and the log says why. */
  renew(): void;
}

export interface HttpListening {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** What the application was made with; undefined: plain HTTP. */
  readonly tls: HttpSettings['tls'];
}

export interface ServedAt {
  /** With the port that was taken. */
  readonly address: NetAddress;
  /** Ends blocking queries, lets what is under way finish, but not for ever. */
  close(): Promise<void>;
}

export interface LoopDelay {
  /** What was measured since the last call. */
  take(): LoopDelays;
  close(): void;
}

/** How late the event loop got round to what was due. */
export interface LoopDelays {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
}
