// Lists as columns. Widths come from the first page, so that a list of any length can be printed as
// it arrives; a later cell that is wider pushes its own row only. The last column is never padded.

import type { Colors } from 'picocolors/types.js';
import { oneLine } from './safe-text.ts';

export interface Column<Item> {
  readonly heading: string;
  cell(item: Item): string;
}

/** Turns pages of items into pages of text; holds one page at a time. Empty lists give no text. */
export async function* tableLines<Item>(
  columns: readonly Column<Item>[],
  pages: AsyncIterable<readonly Item[]>,
  colors: Colors,
): AsyncGenerator<string> {
  let widths: readonly number[] | undefined;
  for await (const page of pages) {
    if (page.length === 0) continue;
    const rows = page.map((item) => columns.map((column) => shownCell(column.cell(item))));
    const headings = columns.map(({ heading }) => heading);
    if (widths === undefined) {
      widths = widthsOf([headings, ...rows]);
      yield `${colors.bold(lineOf(headings, widths))}\n`;
    }
    const known = widths;
    yield rows.map((row) => `${lineOf(row, known)}\n`).join('');
  }
}

/** An empty cell would shift what the eye reads; a hyphen says that there is nothing. */
function shownCell(text: string): string {
  return text === '' ? '-' : oneLine(text);
}

function widthsOf(rows: readonly (readonly string[])[]): readonly number[] {
  return (rows[0] ?? []).map((_, column) =>
    rows.reduce((widest, row) => Math.max(widest, lengthOf(row[column] ?? '')), 0),
  );
}

function lineOf(row: readonly string[], widths: readonly number[]): string {
  return row
    .map((cell, column) => {
      const missing = Math.max(0, (widths[column] ?? 0) - lengthOf(cell));
      return column === row.length - 1 ? cell : cell + ' '.repeat(missing);
    })
    .join('  ');
}

/** Characters as a person counts them, more or less: not the halves of surrogate pairs. */
function lengthOf(text: string): number {
  return [...text].length;
}
