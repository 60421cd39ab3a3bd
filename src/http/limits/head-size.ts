// How much of what a client sent is kept in memory for as long as its request is under way, the body left out.

/** What a name or a value takes beside its characters: of headers of a few characters that is nearly all. */
export const TEXT_BYTES = 48;

/** In memory. */
export function headBytesOf(target: string, rawHeaders: readonly string[]): number {
  return headCharsOf(target, rawHeaders) + textBytesOf(rawHeaders);
}

/** The same without the characters. */
export function textBytesOf({ length }: readonly string[]): number {
  return length * TEXT_BYTES;
}

/** Characters of the target and of the headers, names and values. */
export function headCharsOf(target: string, rawHeaders: readonly string[]): number {
  let chars = target.length;
  for (const text of rawHeaders) chars += text.length;
  return chars;
}
