// The command line itself is wrong: the flag, the value or their combination. Nothing was sent.

/** Ends the command with exit status 2; the message names the flag. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * The value of a flag that may be left out. Throws UsageError for one that is empty or blank: a script whose
 * variable is empty would be given what no flag narrows down. `instead` says how that is asked for.
 */
export function notBlank(
  flag: string,
  value: string | undefined,
  instead?: string,
): string | undefined {
  if (value?.trim() !== '') return value;
  throw new UsageError(instead === undefined ? `${flag} is empty` : `${flag} is empty: ${instead}`);
}
