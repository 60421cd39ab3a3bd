// What a process ends with. Node ends one in which nothing is left to wait for, whether what it was started for is
// done or not, and with status 0: a caller would take for done what never was.

/** Ends with `status` once that is known, and with 1 where the process is over before. */
export function exitWith(status: Promise<number>): void {
  let isDone = false;
  process.exitCode = 1;
  process.once('beforeExit', () => {
    if (isDone) return;
    process.stderr.write(
      'Error: the program ended before it was done\nNext: if this was a write, it may have taken effect: read before you try again.\n',
    );
  });
  void status.then((known) => {
    isDone = true;
    process.exitCode = known;
  });
}
