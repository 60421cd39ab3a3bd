// Bodies are held in few pieces, however they come. Node gives each chunk of a chunked body, and each packet, as a
// buffer of its own, which costs hundreds of bytes: a mebibyte that somebody without a token sent in chunks of one
// byte took three hundred in memory, also while it waited for its turn. So did the trailers of a request that waits:
// ten times their bytes.

import { GatheredBytes } from '../../../cluster/base/gathered-bytes.ts';
import type { RawRequest } from './wire-types.ts';

/**
 * So many pieces of the request that is answered are handed on as they come: more than most bodies have, and few enough
 * to cost next to nothing. Of those that wait for their turn a connection has hundreds: theirs are none.
 */
const FREE_PIECES = 64;
/** Later ones are put together until they have so many bytes, or the body ends. */
const PIECE_BYTES = 4096;

/** From now on what comes of the body is. For a request of which nothing but the head was read. */
export function holdInFewPieces(
  request: RawRequest,
  { isInTurn }: { readonly isInTurn: boolean },
): void {
  // Of those that wait the headers are not made ready: that takes more than the function below.
  if (isInTurn && !hasBody(request)) return;
  const small = new GatheredBytes();
  const push = request.push.bind(request);
  let leftFree = isInTurn ? FREE_PIECES : 0;
  const pushInFew = (piece: Buffer | null): boolean => {
    if (piece === null) {
      // What stands behind the last chunk nobody reads, and Node has put it there by now.
      request.rawTrailers = [];
      if (small.length > 0) push(small.take());
      return push(null);
    }
    leftFree -= 1;
    if (leftFree >= 0) return push(piece);
    small.add(piece);
    return small.length < PIECE_BYTES || push(small.take());
  };
  // Node calls this with each piece, and with null at the end.
  request.push = pushInFew;
}

function hasBody({ headers }: RawRequest): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}
