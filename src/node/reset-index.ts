// The operator's permission to bootstrap again, as a file holds it.

/** The index in the text; NaN for any other text, which no bootstrap has; undefined without a file. */
export function resetIndexOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}
