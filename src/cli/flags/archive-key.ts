// The key of encrypted archives, from its file: what `conclave keygen` printed.

import type { Surroundings } from '../surroundings.ts';
import { UsageError } from '../usage-error.ts';
import { fileInput } from './text-input.ts';

export const KEY_BYTES = 32;

/** Throws UsageError, which never repeats what the file holds. */
export function archiveKeyOf(surroundings: Surroundings, path: string): Uint8Array {
  const text = fileInput(surroundings, '--key-file', path).trim();
  const key = Buffer.from(text, 'base64');
  if (key.length === KEY_BYTES && key.toString('base64') === text) return key;
  throw new UsageError(
    `--key-file: the file ${path} holds no key: expected ${KEY_BYTES} bytes as base64, as \`conclave keygen\` prints them`,
  );
}
