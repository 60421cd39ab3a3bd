// The real surroundings of a command: this process's environment, its streams, the disk and the net.

import { readStandardInput, readTextFile, writeSecretFile } from '../platform-node/disk/files.ts';
import { isSealed, sealed, unsealed } from '../platform-node/disk/sealed-archive.ts';
import { createWholeFile, readChunks } from '../platform-node/disk/whole-file.ts';
import { httpTransport } from '../platform-node/net/http-transport.ts';
import { systemRandom } from '../platform-node/system-random.ts';
import type { Output, Surroundings } from './surroundings.ts';

/** Longer than a server waits for a leader, shorter than a person waits for an answer. */
const ANSWER_TIMEOUT_MS = 60_000;

/** Surroundings of the running process. `version` is what `conclave version` prints. */
export function processSurroundings(version: string): Surroundings {
  return {
    environment: process.env,
    out: outputTo(process.stdout),
    err: outputTo(process.stderr),
    version,
    readTextFile,
    readStandardInput,
    writeSecretFile,
    createFile: createWholeFile,
    readChunks,
    randomBytes: (count) => systemRandom.bytes(count),
    sealing: { isSealed, sealed, unsealed },
    openTransport: (options) => httpTransport({ ...options, timeoutMs: ANSWER_TIMEOUT_MS }),
  };
}

function outputTo(stream: NodeJS.WriteStream): Output {
  // Whoever writes hears of a failure from `write`; without a listener it would end the process.
  stream.on('error', () => undefined);
  return {
    isTerminal: stream.isTTY === true,
    write: (content) =>
      new Promise((resolve, reject) => {
        stream.write(content, (error) => {
          if (error === null || error === undefined) resolve();
          else reject(error);
        });
      }),
  };
}
