// Indented JSON for people: four spaces, a newline at the end. Works on JSON text piece by piece, so
// that a long list can be indented while it is sent; the text must be valid JSON without blanks.

const INDENT = '    ';

export class PrettyPrinter {
  #depth = 0;
  #isInString: boolean = false;
  #isEscaped: boolean = false;
  /** An opening bracket whose content has not come yet: `[]` stays on one line. */
  #hasJustOpened: boolean = false;

  /** The next piece of text, indented. */
  push(json: string): string {
    let out = '';
    for (const char of json) out += this.#isInString ? this.#inString(char) : this.#outside(char);
    return out;
  }

  /** What ends the text. */
  end(): string {
    return '\n';
  }

  #inString(char: string): string {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (char === '\\') this.#isEscaped = true;
    else if (char === '"') this.#isInString = false;
    return char;
  }

  #outside(char: string): string {
    if (char === '}' || char === ']') {
      this.#depth -= 1;
      const before = this.#hasJustOpened ? '' : this.#newline();
      this.#hasJustOpened = false;
      return before + char;
    }
    const before = this.#hasJustOpened ? this.#newline() : '';
    this.#hasJustOpened = false;
    if (char === '{' || char === '[') {
      this.#depth += 1;
      this.#hasJustOpened = true;
    } else if (char === '"') {
      this.#isInString = true;
    } else if (char === ',') {
      return `,${this.#newline()}`;
    } else if (char === ':') {
      return ': ';
    }
    return before + char;
  }

  #newline(): string {
    return `\n${INDENT.repeat(this.#depth)}`;
  }
}
