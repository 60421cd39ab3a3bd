// A process that is told to stop, or that cannot go on, ends in time, though writes to a disk hang. Then closing does
// not end, and neither does leaving in good order: the system would wait for the threads that wait for the disk. One
// that stands still in a read of its disk does not hear that it is told.

/** In good order it takes a second; with no successor, and with clients that do not read, some more. */
export const STOP_MAX_MS = 25_000;
/** What was under way at the disks when one of them failed. */
export const END_MAX_MS = 5_000;

/**
 * Resolves when `stop` does, and rejects as it does. Where that and leaving take longer than `maxMs`, the process kills
 * itself, behind `onLate`: also what nobody waits for at its end may hang.
 */
export async function stoppedInTime(
  stop: () => Promise<unknown>,
  onLate: () => void,
  maxMs: number = STOP_MAX_MS,
): Promise<void> {
  const timer = setTimeout(() => {
    onLate();
    process.kill(process.pid, 'SIGKILL');
  }, maxMs);
  try {
    await stop();
  } finally {
    timer.unref();
  }
}

/** Ends the process with status 1, once what is open is closed, or by force. */
export function endAfterFatal(close: () => Promise<unknown>, onLate: () => void): void {
  const end = (): void => process.exit(1);
  // Whoever meets what is closed meanwhile is of no matter, and must not make it leave before.
  process.on('uncaughtException', () => undefined);
  void stoppedInTime(close, onLate, END_MAX_MS).then(end, end);
}
