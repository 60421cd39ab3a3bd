// BLAKE2b-256 compiled for WebAssembly: several times as fast as portable code.

import { createBLAKE2b } from 'hash-wasm';
import { messageOf } from '../../../cluster/base/message-of.ts';
import { adoptBlake2b256, type Blake2b256 } from '../../../cluster/platform/blake2b.ts';
import type { Logger } from '../../../cluster/platform/logger.ts';

const BITS = 256;

/** Takes its place within the first moments. Until then portable code hashes, and wherever there is no WebAssembly. */
export function adoptWasmBlake2b256(logger: Logger): void {
  makeWasmBlake2b256()
    .then(adoptBlake2b256)
    .catch((error: unknown) => {
      logger.warn(
        { cause: messageOf(error) },
        'content hashes take longer: there is no WebAssembly',
      );
    });
}

/** Rejects where the engine has no WebAssembly. */
export async function makeWasmBlake2b256(): Promise<Blake2b256> {
  const hasher = await createBLAKE2b(BITS);
  return (bytes) => hasher.init().update(bytes).digest('binary');
}
