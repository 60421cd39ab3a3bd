// One run of one command against one server: the client with its settings, the secrets of the command
// line, and the ways to print.

import { ANONYMOUS_SECRET } from '../acl/ids.ts';
import { type Client, createClient } from '../client/client.ts';
import { type Connection, type ConnectionOptions, connectionOf } from './flags/connection.ts';
import { secretInput } from './flags/text-input.ts';
import { Printer } from './printer.ts';
import type { Surroundings } from './surroundings.ts';

/** Shorter texts would tear holes into every message, and so would the word that everybody knows. */
const SCRUBBED_LENGTH_MIN = 8;

export class Session extends Printer {
  readonly connection: Connection;
  readonly client: Client;
  readonly #secrets = new Set<string>();

  constructor(options: ConnectionOptions, surroundings: Surroundings) {
    super(options.format, surroundings);
    this.connection = connectionOf(options, surroundings);
    this.client = this.#clientWith(this.connection.token);
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
      .filter((secret) => secret.length >= SCRUBBED_LENGTH_MIN && secret !== ANONYMOUS_SECRET)
      .reduce((clean, secret) => clean.replaceAll(secret, '<hidden>'), text);
  }

  #clientWith(token: string | undefined): Client {
    const { baseUrl, socketPath, tls, namespace, datacenter, consistency } = this.connection;
    const transport = this.surroundings.openTransport({ socketPath, tls });
    return createClient({ address: baseUrl, transport, token, namespace, datacenter, consistency });
  }
}
