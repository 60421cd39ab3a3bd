// Taking off what a text ends with. The pattern /x+$/ says the same, but is tried anew at each x of a
// run that is not at the end: half a minute for a few hundred kilobytes from whoever sent them.

/** `text` without the repetitions of `char`, one code unit, at its end. Takes linear time. */
export function withoutTrailing(text: string, char: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === char) end--;
  return text.slice(0, end);
}
