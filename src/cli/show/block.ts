// One object as a block of names and values: single values aligned in one column, then the lists, then
// texts of several lines as they are, so that rules can be copied from the screen.

import type { Colors } from 'picocolors/types.js';
import { unreachable } from '../../../cluster/base/unreachable.ts';
import { manyLines, oneLine } from './safe-text.ts';

export type Part =
  | { readonly kind: 'field'; readonly name: string; readonly value: string }
  /** As a field; `value` is text of our own that may carry colours, `rest` stands behind it. */
  | {
      readonly kind: 'styled';
      readonly name: string;
      readonly value: string;
      readonly rest: string;
    }
  /** Left out when empty. */
  | { readonly kind: 'list'; readonly name: string; readonly items: readonly string[] }
  /** Left out when empty. */
  | { readonly kind: 'text'; readonly name: string; readonly text: string };

export function field(name: string, value: string | number | boolean): Part {
  return { kind: 'field', name, value: String(value) };
}

/** A field that is left out when the service did not send it. */
export function fieldIf(name: string, value: string | undefined): readonly Part[] {
  return value === undefined || value === '' ? [] : [field(name, value)];
}

export function list(name: string, items: readonly string[]): Part {
  return { kind: 'list', name, items };
}

export function text(name: string, lines: string): Part {
  return { kind: 'text', name, text: lines };
}

/** The block with a line end behind each line. */
export function blockLines(parts: readonly Part[], colors: Colors): string {
  const widest = parts.reduce(
    (width, part) => (isSingle(part) ? Math.max(width, part.name.length) : width),
    0,
  );
  return parts
    .map((part, place) => {
      const lines = partLines(part, widest, colors);
      // One text behind another: without a gap their lines would run together.
      const isApart = part.kind === 'text' && parts[place - 1]?.kind === 'text' && lines !== '';
      return isApart ? `\n${lines}` : lines;
    })
    .join('');
}

function isSingle({ kind }: Part): boolean {
  return kind === 'field' || kind === 'styled';
}

function partLines(part: Part, widest: number, colors: Colors): string {
  switch (part.kind) {
    case 'field': {
      const gap = ' '.repeat(widest - part.name.length + 2);
      const line = `${colors.bold(`${part.name}:`)}${gap}${oneLine(part.value)}`;
      return `${line.trimEnd()}\n`;
    }
    case 'styled': {
      const gap = ' '.repeat(widest - part.name.length + 2);
      return `${colors.bold(`${part.name}:`)}${gap}${part.value}  ${oneLine(part.rest)}\n`;
    }
    case 'list':
      if (part.items.length === 0) return '';
      return `${colors.bold(`${part.name}:`)}\n${part.items.map((item) => `   ${oneLine(item)}\n`).join('')}`;
    case 'text': {
      const lines = manyLines(part.text).trimEnd();
      return lines === '' ? '' : `${colors.bold(`${part.name}:`)}\n${lines}\n`;
    }
    default:
      return unreachable(part);
  }
}
