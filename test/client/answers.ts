// What calls of the client come to, and bodies that come in pieces.

import { TransportError } from '../../src/client/entry.ts';

/** How a call failed to get an answer. */
export function failureOf(call: Promise<unknown>): Promise<string> {
  return call.then(
    () => 'none',
    (error: unknown) => (error instanceof TransportError ? error.failure : String(error)),
  );
}

/** `count` pieces, of so many bytes or of this text; notes how many were taken. */
export async function* inPieces(
  count: number,
  content: number | string,
  taken: { count: number } = { count: 0 },
): AsyncGenerator<Uint8Array> {
  const piece = typeof content === 'string' ? Buffer.from(content) : Buffer.alloc(content);
  for (; taken.count < count; taken.count += 1) yield piece;
}
