// Figures of repeated runs and how they are shown.

/** The middle of the values; NaN of none. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value that so large a part of them is below; NaN of none. */
export function quantile(sorted: readonly number[], fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
}

/** Three figures of a number, without an exponent: 12345 → 12,300; 0.01234 → 0.0123. */
export function shown(value: number): string {
  if (!Number.isFinite(value)) return '-';
  const digits = value === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  const rounded =
    value >= 1000 ? Math.round(value / 100) * 100 : Number(value.toFixed(Math.min(digits, 4)));
  return rounded.toLocaleString('en-US', { maximumFractionDigits: 4 });
}

/** Rows of cells under a heading, columns aligned: text to the left, figures to the right. */
export function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [heading, ...rows];
  const widths = heading.map((_, column) =>
    Math.max(...all.map((row) => row[column]?.length ?? 0)),
  );
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      )
      .join('  ');
  return `${[line(heading), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n')}\n`;
}
