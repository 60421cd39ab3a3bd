// What callers may leave out.

/** Whether a text was given: the empty one counts as absent. */
export function isGiven(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}
