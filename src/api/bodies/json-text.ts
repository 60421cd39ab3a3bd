// Reads the first JSON value of a text; what follows it is ignored. The native parser does the work;
// only when it refuses does the scanner here find the end of the first value, or say what is wrong
// and where, in the words that deployed clients show to people.

/** The text is no JSON; the message names the offending character and what it stands behind or in. */
export class JsonTextError extends Error {
  override readonly name = 'JsonTextError';
  /** The index of that character in the text, or the length of a text that ends too early. */
  readonly place: number;

  constructor(message: string, place: number) {
    super(message);
    this.place = place;
  }
}

/**
 * The first value of `text`. Of a name given twice in one object the last value counts that is not null: null takes
 * nothing back. Throws JsonTextError.
 */
export function parseFirstValue(text: string): unknown {
  if (text.includes('null')) return JSON.parse(withoutLateNulls(text)) as unknown;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return JSON.parse(text.slice(0, endOfFirstValue(text))) as unknown;
  }
}

/** Whether a name stands twice in one object of the first value, spelled alike. Throws JsonTextError. */
export function repeatsName(text: string): boolean {
  const known = new Set<string>();
  let repeats = false;
  endOfFirstValue(text, (key) => {
    const name = nameOf(text, key);
    repeats ||= known.has(name);
    known.add(name);
  });
  return repeats;
}

/** It stands for one name of one object. */
function nameOf(text: string, { start, end, objectStart }: ScannedKey): string {
  return `${objectStart} ${String(JSON.parse(text.slice(start, end)))}`;
}

const NULL_BEHIND_KEY = /[ \t\r\n]*:[ \t\r\n]*null/y;

/** The first value of `text`, without the members that are null where one of the same name stands before them. */
function withoutLateNulls(text: string): string {
  const known = new Set<string>();
  const kept: string[] = [];
  let from = 0;
  const end = endOfFirstValue(text, (key) => {
    const name = nameOf(text, key);
    NULL_BEHIND_KEY.lastIndex = key.end;
    if (known.has(name) && NULL_BEHIND_KEY.test(text)) {
      // Behind the first member of an object each has a comma before it.
      kept.push(text.slice(from, text.lastIndexOf(',', key.start)));
      from = NULL_BEHIND_KEY.lastIndex;
    }
    known.add(name);
  });
  return [...kept, text.slice(from, end)].join('');
}

/** What may come next at a place of the text. */
type Expected = 'value' | 'first-item' | 'first-key' | 'key' | 'colon' | 'comma-or-end';

/** A key of an object, with its quotation marks, by indexes in the text. */
export interface ScannedKey {
  readonly start: number;
  readonly end: number;
  /** Of the bracket that opens its object. */
  readonly objectStart: number;
}

/**
 * The index behind the first value; `onKey` is told of each key on the way. Needs no stack of its own depth:
 * brackets are kept in a list.
 */
export function endOfFirstValue(text: string, onKey?: (key: ScannedKey) => void): number {
  const open: ('{' | '[')[] = [];
  const starts: number[] = [];
  let expected: Expected = 'value';
  let place = skipBlanks(text, 0);
  if (place === text.length) throw new JsonTextError('EOF', place);
  for (;;) {
    place = skipBlanks(text, place);
    if (place === text.length) throw unexpectedEnd(text);
    const char = text[place] as string;
    const inside = open.at(-1);
    if (expected === 'comma-or-end' && char === ',') {
      expected = inside === '{' ? 'key' : 'value';
      place += 1;
      continue;
    }
    if (isClosing(char, inside, expected)) {
      open.pop();
      starts.pop();
      place += 1;
    } else if (expected === 'colon') {
      if (char !== ':') throw wrongCharacter(text, place, 'after object key');
      expected = 'value';
      place += 1;
      continue;
    } else if (expected === 'key' || expected === 'first-key') {
      if (char !== '"')
        throw wrongCharacter(text, place, 'looking for beginning of object key string');
      const start = place;
      place = endOfString(text, start);
      onKey?.({ start, end: place, objectStart: starts.at(-1) ?? 0 });
      expected = 'colon';
      continue;
    } else if (expected === 'comma-or-end') {
      throw wrongCharacter(
        text,
        place,
        inside === '{' ? 'after object key:value pair' : 'after array element',
      );
    } else if (char === '{' || char === '[') {
      open.push(char);
      starts.push(place);
      expected = char === '{' ? 'first-key' : 'first-item';
      place += 1;
      continue;
    } else {
      place = endOfScalar(text, place);
    }
    if (open.length === 0) return place;
    expected = 'comma-or-end';
  }
}

function isClosing(char: string, inside: '{' | '[' | undefined, expected: Expected): boolean {
  const mayClose = expected === 'comma-or-end' || expected.startsWith('first');
  if (!mayClose) return false;
  return (char === '}' && inside === '{') || (char === ']' && inside === '[');
}

function skipBlanks(text: string, from: number): number {
  let place = from;
  while (' \t\r\n'.includes(text[place] ?? 'x')) place += 1;
  return place;
}

function endOfScalar(text: string, start: number): number {
  const char = text[start] as string;
  if (char === '"') return endOfString(text, start);
  if (char === '-' || isDigit(char)) return endOfNumber(text, start);
  for (const word of ['true', 'false', 'null']) {
    if (char === word[0]) return endOfWord(text, start, word);
  }
  throw wrongCharacter(text, start, 'looking for beginning of value');
}

function endOfWord(text: string, start: number, word: string): number {
  for (let offset = 1; offset < word.length; offset += 1) {
    const char = text[start + offset];
    if (char === undefined) throw unexpectedEnd(text);
    if (char !== word[offset]) {
      throw wrongCharacter(
        text,
        start + offset,
        `in literal ${word} (expecting '${word[offset]}')`,
      );
    }
  }
  return start + word.length;
}

function endOfString(text: string, start: number): number {
  let place = start + 1;
  for (;;) {
    const char = text[place];
    if (char === undefined) throw unexpectedEnd(text);
    if (char === '"') return place + 1;
    if (char < ' ') throw wrongCharacter(text, place, 'in string literal');
    place = char === '\\' ? endOfEscape(text, place) : place + 1;
  }
}

function endOfEscape(text: string, start: number): number {
  const char = text[start + 1];
  if (char === undefined) throw unexpectedEnd(text);
  if ('"\\/bfnrt'.includes(char)) return start + 2;
  if (char !== 'u') throw wrongCharacter(text, start + 1, 'in string escape code');
  for (let offset = 2; offset < 6; offset += 1) {
    const digit = text[start + offset];
    if (digit === undefined) throw unexpectedEnd(text);
    if (!/^[0-9a-fA-F]$/.test(digit)) {
      throw wrongCharacter(text, start + offset, 'in \\u hexadecimal character escape');
    }
  }
  return start + 6;
}

function endOfNumber(text: string, start: number): number {
  let place = text[start] === '-' ? start + 1 : start;
  if (text[place] === '0') place += 1;
  else place = endOfDigits(text, place, 'in numeric literal');
  if (text[place] === '.') {
    place = endOfDigits(text, place + 1, 'after decimal point in numeric literal');
  }
  if (text[place] === 'e' || text[place] === 'E') {
    const sign = text[place + 1];
    const isSigned = sign === '+' || sign === '-';
    place = endOfDigits(text, place + (isSigned ? 2 : 1), 'in exponent of numeric literal');
  }
  return place;
}

/** At least one digit must stand at `start`. */
function endOfDigits(text: string, start: number, where: string): number {
  const first = text[start];
  if (first === undefined) throw unexpectedEnd(text);
  if (!isDigit(first)) throw wrongCharacter(text, start, where);
  let place = start + 1;
  while (isDigit(text[place] ?? '')) place += 1;
  return place;
}

function isDigit(char: string): boolean {
  return char >= '0' && char <= '9';
}

function unexpectedEnd(text: string): JsonTextError {
  return new JsonTextError('unexpected EOF', text.length);
}

function wrongCharacter(text: string, place: number, where: string): JsonTextError {
  const char = text[place] as string;
  const shown = char >= ' ' && char <= '~' ? char : JSON.stringify(char).slice(1, -1);
  return new JsonTextError(`invalid character '${shown}' ${where}`, place);
}
