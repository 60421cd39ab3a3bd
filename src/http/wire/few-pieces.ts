// Bodies are held in few pieces, however they come. Node gives each chunk of a chunked body, and each packet, as a
// buffer of its own, which costs hundreds of bytes: a mebibyte that somebody without a token sent in chunks of one
// byte took three hundred in memory, also while it waited for its turn.

import { GatheredBytes } from '../../../cluster/base/gathered-bytes.ts';
import type { RawRequest } from './wire-types.ts';

/** So many pieces are handed on as they come: more than most bodies have, and few enough to cost next to nothing. */
const FREE_PIECES = 64;
/** Later ones are put together until they have so many bytes, or the body ends. */
const PIECE_BYTES = 4096;

/** From now on what comes of the body is. For a request of which nothing but the head was read. */
export function holdInFewPieces(request: RawRequest): void {
  const { headers } = request;
  if (headers['content-length'] === undefined && headers['transfer-encoding'] === undefined) return;
  const small = new GatheredBytes();
  const push = request.push.bind(request);
  let count = 0;
  const pushInFew = (piece: Buffer | null): boolean => {
    if (piece === null) {
      if (small.length > 0) push(small.take());
      return push(null);
    }
    count += 1;
    if (count <= FREE_PIECES) return push(piece);
    small.add(piece);
    return small.length < PIECE_BYTES || push(small.take());
  };
  // Node calls this with each piece, and with null at the end.
  request.push = pushInFew;
}
