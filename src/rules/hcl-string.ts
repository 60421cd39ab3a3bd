// Double-quoted strings of HCL 1: finds their end and resolves their escapes. Text inside `${…}` is
// kept as it was written, because rules know no interpolation.

import { isIllFormed } from './source-text.ts';

/** Where a string is wrong: an offset in the text and what is wrong there. */
export interface StringFault {
  readonly offset: number;
  readonly message: string;
}

export type StringScan =
  | { readonly ok: true; readonly value: string; readonly endOffset: number }
  | { readonly ok: false; readonly fault: StringFault };

const SIMPLE_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\x07'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\\', '\\'],
  ['"', '"'],
]);

/** A run without anything special; sticky, so the scan is linear. */
const PLAIN = /[^"\\\n\0$]+/y;
const NUMERIC_ESCAPE = /\\(?:([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))/y;

/** Reads the string that opens at `offset`; `endOffset` is the one after its closing quote. */
export function scanString(text: string, offset: number): StringScan {
  const parts = new StringParts();
  let at = offset + 1;
  while (at < text.length) {
    const char = text[at];
    if (char === '"') return closed(parts, { offset, endOffset: at + 1 });
    if (char === '\n' || char === '\0') break;
    if (char === '\\') {
      const length = parts.addEscape(text, at);
      if (length === undefined) return failed(at, 'illegal char escape');
      at += length;
    } else if (char === '$' && text[at + 1] === '{') {
      const endOffset = interpolationEnd(text, at);
      if (typeof endOffset !== 'number') return { ok: false, fault: endOffset };
      parts.addText(text.slice(at, endOffset));
      at = endOffset;
    } else if (char === '$') {
      parts.addText('$');
      at++;
    } else {
      PLAIN.lastIndex = at;
      const run = PLAIN.exec(text)![0];
      parts.addText(run);
      at += run.length;
    }
  }
  return failed(offset, 'literal not terminated');
}

function closed(
  parts: StringParts,
  place: { readonly offset: number; readonly endOffset: number },
): StringScan {
  const value = parts.value();
  if (value === undefined) return failed(place.offset, 'literal is not valid UTF-8');
  return { ok: true, value, endOffset: place.endOffset };
}

function failed(offset: number, message: string): StringScan {
  return { ok: false, fault: { offset, message } };
}

/** Quotes and newlines mean nothing in here; braces are counted, escapes only checked. */
function interpolationEnd(text: string, offset: number): number | StringFault {
  let depth = 1;
  for (let at = offset + 2; at < text.length; at++) {
    const char = text[at];
    if (char === '\0') break;
    if (char === '{') depth++;
    if (char === '}' && --depth === 0) return at + 1;
    if (char === '\\') {
      const found = readEscape(text, at);
      if (found === undefined) return { offset: at, message: 'illegal char escape' };
      at += found.length - 1;
    }
  }
  return { offset, message: 'literal not terminated' };
}

interface EscapeSequence {
  /** Of the escape in the text, in code units. */
  readonly length: number;
  /** One byte of text in UTF-8, or whole text. */
  readonly meaning: { readonly byte: number } | { readonly text: string };
}

function readEscape(text: string, offset: number): EscapeSequence | undefined {
  const simple = SIMPLE_ESCAPES.get(text[offset + 1] ?? '');
  if (simple !== undefined) return { length: 2, meaning: { text: simple } };
  NUMERIC_ESCAPE.lastIndex = offset;
  const match = NUMERIC_ESCAPE.exec(text);
  if (match === null) return undefined;
  const [whole, octal, hex, short, long] = match;
  const byte = octal !== undefined ? Number.parseInt(octal, 8) : Number.parseInt(hex ?? '', 16);
  if (byte > 0xff) return undefined;
  if (!Number.isNaN(byte)) return { length: whole.length, meaning: { byte } };
  const codePoint = Number.parseInt(short ?? long ?? '', 16);
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
  if (codePoint > 0x10ffff || isSurrogate) return undefined;
  return { length: whole.length, meaning: { text: String.fromCodePoint(codePoint) } };
}

/** Collects text; bytes given by octal or hex escapes must join up to UTF-8. */
class StringParts {
  readonly #parts: string[] = [];
  #bytes: number[] = [];
  #brokenRuns = 0;

  addText(text: string): void {
    this.#flushBytes();
    this.#parts.push(text);
  }

  /** Returns the length of the escape, or undefined where there is none. */
  addEscape(text: string, offset: number): number | undefined {
    const found = readEscape(text, offset);
    if (found === undefined) return undefined;
    if ('byte' in found.meaning) this.#bytes.push(found.meaning.byte);
    else this.addText(found.meaning.text);
    return found.length;
  }

  value(): string | undefined {
    this.#flushBytes();
    return this.#brokenRuns === 0 ? this.#parts.join('') : undefined;
  }

  #flushBytes(): void {
    if (this.#bytes.length === 0) return;
    const text = utf8Of(this.#bytes);
    this.#bytes = [];
    if (text === undefined) this.#brokenRuns++;
    else this.#parts.push(text);
  }
}

function utf8Of(bytes: readonly number[]): string | undefined {
  const buffer = Buffer.from(bytes);
  const text = buffer.toString('utf8');
  // Decoding replaces what is wrong, so only right bytes come back the same.
  return !isIllFormed(text) && Buffer.from(text, 'utf8').equals(buffer) ? text : undefined;
}
