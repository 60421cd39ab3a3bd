// What commands print: JSON that is what the service said, unchanged, or tables and sentences for people.

import picocolors from 'picocolors';
import type { Colors } from 'picocolors/types.js';
import { messageOf } from '../../cluster/base/message-of.ts';
import { CommandFailed, isClosedPipe } from './failed.ts';
import { blockLines, type Part } from './show/block.ts';
import { jsonArrayLines, jsonText } from './show/json.ts';
import { oneLine } from './show/safe-text.ts';
import { type Column, tableLines } from './show/table.ts';
import type { Surroundings } from './surroundings.ts';

export type Format = 'table' | 'json' | 'pretty';

export class Printer {
  readonly surroundings: Surroundings;
  readonly #isJson: boolean;
  readonly #colors: Colors;

  constructor(format: Format | undefined, surroundings: Surroundings) {
    this.surroundings = surroundings;
    this.#isJson = format === 'json';
    const hasColors = surroundings.out.isTerminal && !surroundings.environment.NO_COLOR;
    this.#colors = picocolors.createColors(hasColors);
  }

  /** Prints one object. */
  async show(value: unknown, partsOf: (colors: Colors) => readonly Part[]): Promise<void> {
    const text = this.#isJson
      ? `${jsonText(value)}\n`
      : blockLines(partsOf(this.#colors), this.#colors);
    await this.#print(text);
  }

  /** Prints objects as their pages arrive. `nouns` is what the empty list is called. */
  async showList<Item>(
    pages: AsyncIterable<readonly Item[]>,
    columns: readonly Column<NoInfer<Item>>[],
    nouns: string,
  ): Promise<void> {
    const lines = this.#isJson ? jsonArrayLines(pages) : tableLines(columns, pages, this.#colors);
    let isEmpty = true;
    for await (const text of lines) {
      isEmpty = false;
      await this.#print(text);
    }
    if (isEmpty) await this.note(`There are no ${nouns}.`);
  }

  /** Prints objects that are all there. */
  showAll<Item>(
    items: readonly Item[],
    columns: readonly Column<Item>[],
    nouns: string,
  ): Promise<void> {
    return this.showList(onePage(items), columns, nouns);
  }

  /** Prints rows of one object; as JSON, the object. `nouns` is what no rows are called. */
  async showTable<Item>(
    whole: unknown,
    rows: readonly Item[],
    columns: readonly Column<Item>[],
    nouns = 'rows',
  ): Promise<void> {
    if (this.#isJson) await this.#print(`${jsonText(whole)}\n`);
    else await this.showAll(rows, columns, nouns);
  }

  /** Says in one sentence what was done; as JSON, `value`. */
  async done(value: unknown, sentence: string): Promise<void> {
    await this.#print(this.#isJson ? `${jsonText(value)}\n` : `${sentence}\n`);
  }

  /** A remark for people, beside the output. */
  async note(sentence: string): Promise<void> {
    if (!this.#isJson) await this.surroundings.err.write(`${sentence}\n`);
  }

  /** Beside the output, whatever its format: something may be other than it was meant. */
  async warn(text: string): Promise<void> {
    await this.surroundings.err.write(`Warning: ${oneLine(text)}\n`);
  }

  /** By then the command is done: whoever does not see what came of it must not take it for undone. */
  async #print(text: string): Promise<void> {
    try {
      await this.surroundings.out.write(text);
    } catch (error) {
      if (isClosedPipe(error)) throw error;
      throw new CommandFailed(
        `the output could not be written: ${messageOf(error)}\nNext: the command itself is done: look at what it changed before you run it again.`,
      );
    }
  }
}

async function* onePage<Item>(items: readonly Item[]): AsyncGenerator<readonly Item[]> {
  yield items;
}
