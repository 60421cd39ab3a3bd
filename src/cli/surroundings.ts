// What the commands need from the world around the process. The real one is process-surroundings.ts;
// tests script theirs, so that every request and every printed line can be compared.

import type { Transport } from '../client/transport.ts';

export interface Output {
  /** Resolves when it is on its way, so that what is long does not pile up in memory. */
  write(content: string | Uint8Array): Promise<void>;
  readonly isTerminal: boolean;
}

export interface TransportOptions {
  /** Path of a Unix socket to connect to in place of the host of the address. */
  readonly socketPath: string | undefined;
  /** Texts of PEM: the authority that the server's certificate must come from, and what this side shows. */
  readonly tls: {
    readonly ca: string | undefined;
    readonly cert: string | undefined;
    readonly key: string | undefined;
  };
}

type Chunks = AsyncIterable<Uint8Array>;

/** A file on its way into its place: it is there whole or not at all. */
export interface FileInProgress {
  write(chunk: Uint8Array): Promise<void>;
  /** What was written, as the disk gives it back. */
  readBack(): Chunks;
  /** It is on disk, and takes the place of whatever had its name. */
  commit(): Promise<void>;
  /** Leaves no trace. Harmless after `commit`. */
  discard(): Promise<void>;
}

/** Encryption of archives under a key of 32 bytes. */
export interface Sealing {
  /** Whether a file that begins with these bytes is encrypted. */
  isSealed(start: Uint8Array): boolean;
  sealed(key: Uint8Array, content: Chunks): Chunks;
  /** Throws where the file does not fit the key, was changed or cut off. */
  unsealed(key: Uint8Array, file: Chunks): Chunks;
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
  /** Only its owner may read the file. */
  createFile(path: string): Promise<FileInProgress>;
  /** The bytes of a file as they are read; `-` is standard input. */
  readChunks(path: string): Chunks;
  randomBytes(count: number): Uint8Array;
  readonly sealing: Sealing;
  openTransport(options: TransportOptions): Transport;
}
