// All of an answer as one text. What answers may be anything: it is not held without end.

import { TransportError } from './transport.ts';

/** Far beyond what a server of ours sends in one piece: an object has a few megabytes, and a page of a list too. */
export const ANSWER_BYTES_MAX = 128 * 1024 * 1024;

/** Throws TransportError for one that does not end within `bytesMax`, and what the chunks throw. */
export async function textOfChunks(
  chunks: AsyncIterable<Uint8Array>,
  bytesMax: number = ANSWER_BYTES_MAX,
): Promise<string> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (sizeBytes > bytesMax)
      throw new TransportError('unreadable', `the answer has more than ${bytesMax} bytes`);
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString('utf8');
}
