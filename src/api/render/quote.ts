// Text as JSON. `<`, `>` and `&` are escaped, as deployed clients are used to see them, so that an
// answer shown inside a page cannot open a tag.

/** Everything that JSON or the rule above does not allow as it is. */
const SPECIAL = /[\u0000-\u001f"\\<>&\u2028\u2029\ud800-\udfff]/;
const BEYOND_JSON = ['<', '>', '&', '\u2028', '\u2029'].map((char) => {
  const written = `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return { char, written };
});

/** `text` as a JSON string, quotes included. */
export function quote(text: string): string {
  return SPECIAL.test(text) ? escapeMarkup(JSON.stringify(text)) : `"${text}"`;
}

/** Any value as JSON, escaped in the same way. For what has no fixed shape; objects are hand-built. */
export function quoteValue(value: unknown): string {
  return escapeMarkup(JSON.stringify(value));
}

/** A list of texts. */
export function quoteAll(texts: readonly string[]): string {
  return `[${texts.map(quote).join()}]`;
}

/** By pieces: a text may be a mebibyte of nothing else, and a call for each is ten times as dear. */
function escapeMarkup(json: string): string {
  let escaped = json;
  for (const { char, written } of BEYOND_JSON) {
    if (escaped.includes(char)) escaped = escaped.split(char).join(written);
  }
  return escaped;
}
