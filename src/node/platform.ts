// The outside world of one node: what differs between a real process and a simulated one.

import type { Clock } from '../../cluster/platform/clock.ts';
import type { Kv } from '../../cluster/platform/kv.ts';
import type { Logger } from '../../cluster/platform/logger.ts';
import type { Random } from '../../cluster/platform/random.ts';
import type { HttpsClient } from '../auth-methods/https-client.ts';

export interface Platform {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** For auth methods that ask an identity provider. */
  readonly https: HttpsClient;
  /** This node's id: made once, kept in the data folder. */
  readonly nodeId: string;
  /** Opens one of the node's databases. `onFatal` is called once, with its first failure. */
  openKv(name: 'log' | 'state', onFatal: (cause: Error) => void): Promise<Kv>;
  /** Reads and deletes the operator's bootstrap reset file; undefined when there is none. */
  takeBootstrapReset(): string | undefined;
  /** PEM texts of the HTTPS interface, read from the files that the settings name. */
  readonly tls: TlsTexts | undefined;
  /** Ends the process: a store has failed, and going on could lie about what is on disk. */
  exitAfterFatal(): void;
}

export interface TlsTexts {
  readonly key: string;
  readonly cert: string;
  readonly ca: string | undefined;
}
