// What the commands need from the world around the process. The real one is process-surroundings.ts;
// tests script theirs, so that every request and every printed line can be compared.

import type { Transport } from '../client/transport.ts';

export interface Output {
  /** Resolves when the text is on its way, so that long lists do not pile up in memory. */
  write(text: string): Promise<void>;
  readonly isTerminal: boolean;
}

export interface TransportOptions {
  /** Path of a Unix socket to connect to in place of the host of the address. */
  readonly socketPath: string | undefined;
  /** PEM file with the authority that the server's certificate must come from. */
  readonly caFile: string | undefined;
}

export interface Surroundings {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly out: Output;
  readonly err: Output;
  /** The version of this program. */
  readonly version: string;
  readTextFile(path: string): string;
  readStandardInput(): string;
  /** Replaces the file; only its owner may read it. */
  writeSecretFile(path: string, text: string): void;
  openTransport(options: TransportOptions): Transport;
}
