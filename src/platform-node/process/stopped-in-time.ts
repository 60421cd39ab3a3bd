// A process that is told to stop, or that cannot go on, ends in time, though writes to a disk hang. Then closing does
// not end, and neither does leaving in good order: the system would wait for the threads that wait for the disk. One
// that stands still in a read of its disk does not hear that it is told.

/** In good order it takes a second; with no successor, and with clients that do not read, some more. */
export const STOP_MAX_MS = 25_000;
/** What was under way at the disks when one of them failed. */
export const END_MAX_MS = 5_000;
/** Between two looks whether that is over. */
const LOOK_MS = 50;

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
    killItself();
  }, maxMs);
  try {
    await stop();
  } finally {
    timer.unref();
  }
}

/** At once, whatever hangs. Process 1, as a server in a container may be, is spared its own SIGKILL: it breaks down. */
export function killItself(): void {
  process.kill(process.pid, 'SIGKILL');
  process.abort();
}

/**
 * Ends the process with status 1, once what is open is closed and no file is being read or written, for which leaving
 * would wait; or by force.
 */
export function endAfterFatal(
  close: () => Promise<unknown>,
  onLate: () => void,
  maxMs: number = END_MAX_MS,
): void {
  const end = (): void => {
    if (!isAtFiles()) process.exit(1);
    setTimeout(end, LOOK_MS);
  };
  // Whoever meets what is closed meanwhile is of no matter, and must not make it leave before.
  process.on('uncaughtException', () => undefined);
  void stoppedInTime(close, onLate, maxMs).then(end, end);
}

/** By the names that Node gives such calls; those of the databases are over when these are closed. */
function isAtFiles(): boolean {
  return process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq'));
}
