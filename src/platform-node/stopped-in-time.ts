// A process that is told to stop ends in time, though writes to a disk hang. Then closing does not end, and neither
// does leaving in good order: the system would wait for the threads that wait for the disk. One that stands still in
// a read of its disk does not hear that it is told.

/** In good order it takes a second; with no successor, and with clients that do not read, some more. */
export const STOP_MAX_MS = 25_000;

/**
 * Resolves when `stop` does, and rejects as it does. Where that takes longer than `STOP_MAX_MS`, the process kills
 * itself, behind `onLate`.
 */
export async function stoppedInTime(stop: () => Promise<void>, onLate: () => void): Promise<void> {
  const timer = setTimeout(() => {
    onLate();
    process.kill(process.pid, 'SIGKILL');
  }, STOP_MAX_MS);
  try {
    await stop();
  } finally {
    clearTimeout(timer);
  }
}
