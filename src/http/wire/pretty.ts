// Indented JSON for people: four spaces, a newline at the end. Works on JSON text piece by piece, so
// that a long list can be indented while it is sent; the text must be valid JSON without blanks.

const INDENT = '    ';
/** Deeper levels are rare. */
const LINE_BREAKS = Array.from({ length: 16 }, (_, depth) => lineBreakAt(depth));

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class PrettyPrinter {
  #depth = 0;
  #isInString: boolean = false;
  #isEscaped: boolean = false;
  /** An opening bracket whose content has not come yet: `[]` stays on one line. */
  #hasJustOpened: boolean = false;

  /** The next piece of text, indented. What lies between two places where something is put in is copied whole. */
  push(json: string): string {
    let out = '';
    let copied = 0;
    const putIn = (place: number, text: string): void => {
      out += json.slice(copied, place) + text;
      copied = place;
    };
    for (let place = 0; place < json.length; place += 1) {
      if (this.#isInString) {
        place = this.#endOfString(json, place);
        continue;
      }
      const code = json.charCodeAt(place);
      const isClosing = code === 0x7d || code === 0x5d;
      if (isClosing) this.#depth -= 1;
      if (this.#hasJustOpened !== isClosing) putIn(place, this.#newline());
      this.#hasJustOpened = code === 0x7b || code === 0x5b;
      if (this.#hasJustOpened) this.#depth += 1;
      else if (code === QUOTE) this.#isInString = true;
      else if (code === 0x2c) putIn(place + 1, this.#newline());
      else if (code === 0x3a) putIn(place + 1, ' ');
    }
    return out + json.slice(copied);
  }

  /** What ends the text. */
  end(): string {
    return '\n';
  }

  /** The place of the quotation mark that ends the string, or the end of the piece. */
  #endOfString(json: string, start: number): number {
    let isEscaped = this.#isEscaped;
    let place = start;
    for (; place < json.length; place += 1) {
      const code = json.charCodeAt(place);
      if (isEscaped) isEscaped = false;
      else if (code === BACKSLASH) isEscaped = true;
      else if (code === QUOTE) break;
    }
    this.#isEscaped = isEscaped;
    this.#isInString = place === json.length;
    return place;
  }

  #newline(): string {
    return LINE_BREAKS[this.#depth] ?? lineBreakAt(this.#depth);
  }
}

function lineBreakAt(depth: number): string {
  return `\n${INDENT.repeat(depth)}`;
}
