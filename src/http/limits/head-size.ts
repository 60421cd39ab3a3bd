// How much of what a client sent is kept in memory for as long as its request is under way, the body left out.

/** Characters of the target and of the headers, names and values. */
export function headCharsOf(target: string, rawHeaders: readonly string[]): number {
  let chars = target.length;
  for (const text of rawHeaders) chars += text.length;
  return chars;
}
