// What comes from a server is shown on somebody's terminal: control characters in a description must
// not move the cursor, recolour the screen or forge a line of the table.

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const LINE_CONTROL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Text for one line: control characters are shown as escapes. */
export function oneLine(text: string): string {
  return text.replace(CONTROL, escaped);
}

/** Text of several lines: line ends and tabs stay, everything else as in `oneLine`. */
export function manyLines(text: string): string {
  return text.replace(/\r\n/g, '\n').replace(LINE_CONTROL, escaped);
}

function escaped(character: string): string {
  if (character === '\n') return '\\n';
  if (character === '\t') return '\\t';
  const code = character.charCodeAt(0).toString(16);
  return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
}
