// The command line itself is wrong: the flag, the value or their combination. Nothing was sent.

/** Ends the command with exit status 2; the message names the flag. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
