// Numbers of the command line.

/** Throws for what is none. */
export function wholeNumber(text: string): number {
  const found = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(found)) {
    throw new Error(`${text} is no whole number`);
  }
  return found;
}
