// Bodies that may take longer than other requests: an archive of the whole state. Whoever may send one
// is not cut off for its length in time; each chunk must still come in time, and all of it has a limit.

import type { Clock, Timer } from '../../../cluster/platform/clock.ts';
import { AclError } from '../../acl/error.ts';
import type { RawRequest } from '../wire/wire-types.ts';

/** Connections on which a request may take its time. */
const unhurried = new WeakSet<object>();

/** Whether the time limit of whole requests is not for what comes on this connection now. */
export function mayTakeItsTime(socket: object): boolean {
  return unhurried.has(socket);
}

export interface SlowBodyLimits {
  readonly bytesMax: number;
  /** So long nothing may come; and so long what is left of a body that nobody wants. */
  readonly stallMs: number;
}

/**
 * The body of a request as it comes, at the pace of the reader. Throws 'body-too-large'; and what the
 * connection says when it breaks or stalls, after which no answer can be given.
 */
export async function* slowBody(
  request: RawRequest,
  clock: Clock,
  limits: SlowBodyLimits,
): AsyncGenerator<Uint8Array> {
  const { socket } = request;
  unhurried.add(socket);
  let timer: Timer | undefined;
  const expectMore = (): void => {
    timer = clock.after(limits.stallMs, () => {
      request.destroy(new Error(`nothing came for ${limits.stallMs} ms`));
    });
  };
  let sizeBytes = 0;
  try {
    expectMore();
    // A reader that stops early can still answer.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      timer?.cancel();
      sizeBytes += (chunk as Uint8Array).length;
      if (sizeBytes > limits.bytesMax) throw tooLarge(limits);
      yield chunk as Uint8Array;
      expectMore();
    }
  } finally {
    timer?.cancel();
    unhurried.delete(socket);
    passOver(request, clock, limits);
  }
}

/**
 * Takes what is left of the body for nothing: a connection of which nobody reads would not show that its client has
 * gone, and keep the server from stopping.
 */
function passOver(request: RawRequest, clock: Clock, { stallMs }: SlowBodyLimits): void {
  if (request.complete || request.destroyed) return;
  const { socket } = request;
  const timer = clock.after(stallMs, () => socket.destroy());
  const isOver = (): void => {
    timer.cancel();
    socket.off('close', isOver);
  };
  // Behind its answer a request hears nothing of its connection.
  socket.once('close', isOver);
  request.once('end', isOver);
  request.resume();
}

/** Before the first byte, where the client says how much it will send. Throws 'body-too-large'. */
export function requireLength({ headers }: RawRequest, limits: SlowBodyLimits): void {
  const length = Number(headers['content-length'] ?? 0);
  if (length > limits.bytesMax) throw tooLarge(limits);
}

function tooLarge({ bytesMax }: SlowBodyLimits): AclError {
  return new AclError('body-too-large', `the archive is larger than ${bytesMax} bytes`);
}
