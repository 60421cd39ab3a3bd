// JSON as other programs read it: indented by two blanks, one line end at the end. An array is printed
// as its pages arrive; one that was cut off by an error stays without its closing bracket.

/**
 * The indented text of a value, without a line end. What a terminal would obey, and what some programs take for a
 * line end, is escaped: to JSON both are the same.
 */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2).replace(
    /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** The text of an array whose items come in pages; holds one page at a time. */
export async function* jsonArrayLines(
  pages: AsyncIterable<readonly unknown[]>,
): AsyncGenerator<string> {
  let before = '[\n';
  for await (const page of pages) {
    if (page.length === 0) continue;
    yield before + page.map(indented).join(',\n');
    before = ',\n';
  }
  yield before === '[\n' ? '[]\n' : '\n]\n';
}

function indented(item: unknown): string {
  return `  ${jsonText(item).replaceAll('\n', '\n  ')}`;
}
