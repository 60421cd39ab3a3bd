// How long plain data is, as far as that is in its texts.

/** Characters of all texts in it. */
export function charsIn(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce<number>((sum, each) => sum + charsIn(each), 0);
}
