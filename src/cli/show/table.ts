// Lists as columns. Widths come from the first page, so that a list of any length can be printed as
// it arrives; a later cell that is wider pushes its own row only. The last column is never padded.

import type { Colors } from 'picocolors/types.js';
import { oneLine } from './safe-text.ts';

export interface Column<Item> {
  readonly heading: string;
  cell(item: Item): string;
  /** Whether the cell is to be seen at once: it is red where there are colours. */
  isAlarming?(item: Item): boolean;
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
    const alarms = page.map((item) => columns.map((column) => column.isAlarming?.(item) === true));
    const headings = columns.map(({ heading }) => heading);
    if (widths === undefined) {
      widths = widthsOf([headings, ...rows]);
      yield `${colors.bold(lineOf(headings, widths))}\n`;
    }
    const known = widths;
    const lines = rows.map((row, place) => lineOf(row, known, alarms[place], colors.red));
    yield lines.map((line) => `${line}\n`).join('');
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

function lineOf(
  row: readonly string[],
  widths: readonly number[],
  alarms: readonly boolean[] = [],
  paint: (text: string) => string = (text) => text,
): string {
  return row
    .map((cell, column) => {
      const missing = Math.max(0, (widths[column] ?? 0) - lengthOf(cell));
      const shown = alarms[column] === true ? paint(cell) : cell;
      return column === row.length - 1 ? shown : shown + ' '.repeat(missing);
    })
    .join('  ');
}

/** Characters as a person counts them, more or less: not the halves of surrogate pairs. */
function lengthOf(text: string): number {
  return [...text].length;
}
