// One run of one command against one server: the client with its settings, and the ways to print.
// JSON output is what the service said, unchanged; tables are for people.

import picocolors from 'picocolors';
import type { Colors } from 'picocolors/types.js';
import { type Client, createClient } from '../client/client.ts';
import { type Connection, type ConnectionOptions, connectionOf } from './connection.ts';
import { blockLines, type Part } from './show/block.ts';
import { jsonArrayLines, jsonText } from './show/json.ts';
import { type Column, tableLines } from './show/table.ts';
import type { Surroundings } from './surroundings.ts';
import { secretInput } from './text-input.ts';

/** Shorter texts, such as `anonymous`'s first letters, would tear holes into every message. */
const SCRUBBED_LENGTH_MIN = 8;

export class Session {
  readonly connection: Connection;
  readonly surroundings: Surroundings;
  readonly client: Client;
  readonly #isJson: boolean;
  readonly #colors: Colors;
  readonly #secrets = new Set<string>();

  constructor(options: ConnectionOptions, surroundings: Surroundings) {
    this.surroundings = surroundings;
    this.connection = connectionOf(options, surroundings);
    this.client = this.#clientWith(this.connection.token);
    this.#isJson = options.format === 'json';
    const hasColors = surroundings.out.isTerminal && !surroundings.environment.NO_COLOR;
    this.#colors = picocolors.createColors(hasColors);
  }

  /** The same client acting with another token. */
  clientFor(secret: string): Client {
    return this.#clientWith(secret);
  }

  /** A secret that a flag gives: text, `@file` or `-`. Throws UsageError naming the flag. */
  secretOf(flag: string, value: string): string {
    const secret = secretInput(this.surroundings, flag, value);
    this.#secrets.add(secret);
    return secret;
  }

  /** The text without the secrets of this command line, whoever put them there. */
  scrubbed(text: string): string {
    const { token } = this.connection;
    const secrets = token === undefined ? [...this.#secrets] : [...this.#secrets, token];
    return secrets
      .filter((secret) => secret.length >= SCRUBBED_LENGTH_MIN)
      .reduce((clean, secret) => clean.replaceAll(secret, '<hidden>'), text);
  }

  /** Prints one object. */
  async show(value: unknown, partsOf: (colors: Colors) => readonly Part[]): Promise<void> {
    const text = this.#isJson
      ? `${jsonText(value)}\n`
      : blockLines(partsOf(this.#colors), this.#colors);
    await this.surroundings.out.write(text);
  }

  /** Prints objects as their pages arrive. `nouns` is what the empty list is called. */
  async showList<Item>(
    pages: AsyncIterable<readonly Item[]>,
    columns: readonly Column<Item>[],
    nouns: string,
  ): Promise<void> {
    const lines = this.#isJson ? jsonArrayLines(pages) : tableLines(columns, pages, this.#colors);
    let isEmpty = true;
    for await (const text of lines) {
      isEmpty = false;
      await this.surroundings.out.write(text);
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

  /** Says in one sentence what was done; as JSON, `value`. */
  async done(value: unknown, sentence: string): Promise<void> {
    await this.surroundings.out.write(this.#isJson ? `${jsonText(value)}\n` : `${sentence}\n`);
  }

  /** A remark for people, beside the output. */
  async note(sentence: string): Promise<void> {
    if (!this.#isJson) await this.surroundings.err.write(`${sentence}\n`);
  }

  #clientWith(token: string | undefined): Client {
    const { baseUrl, socketPath, caFile, namespace, datacenter, consistency } = this.connection;
    const transport = this.surroundings.openTransport({ socketPath, caFile });
    return createClient({ address: baseUrl, transport, token, namespace, datacenter, consistency });
  }
}

async function* onePage<Item>(items: readonly Item[]): AsyncGenerator<readonly Item[]> {
  yield items;
}
