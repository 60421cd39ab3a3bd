// Tokens of all datacenters that were made while the primary was there, and whose time passes while it is away:
// nobody can delete them then, and each server must refuse them from their time on.

import type { NodeDescription } from '../../cluster/cluster-files.ts';
import type { Absence } from './absence.ts';
import type { Asker } from './asker.ts';

export interface ExpiringTokensOptions {
  readonly asker: Asker;
  readonly absence: Absence;
  /** Gives numbers from 0 up to 1. */
  readonly random: () => number;
}

interface Expiring {
  readonly secret: string;
  readonly expiresAtMs: number;
}

const COUNT = 24;
/** The least that a server takes. */
const LIFE_MIN_MS = 60_000;
const CLOCK_MS = 1_500;

export class ExpiringTokens {
  readonly #options: ExpiringTokensOptions;
  #tokens: readonly Expiring[] = [];
  goodCount = 0;
  /** Refused after their time, while nobody could delete them. */
  voidCount = 0;

  constructor(options: ExpiringTokensOptions) {
    this.#options = options;
  }

  /** Their ends lie evenly between a minute from now and `lastMs`. */
  async make({ http }: NodeDescription, lastMs: number): Promise<void> {
    const { asker } = this.#options;
    const stepMs = Math.max(0, lastMs - LIFE_MIN_MS) / COUNT;
    const tokens: Expiring[] = [];
    for (let place = 0; place < COUNT; place += 1) {
      const body = { ExpirationTTL: `${Math.round(LIFE_MIN_MS + place * stepMs)}ms` };
      const { text } = await asker.mustDo({ http, path: '/v1/acl/token', method: 'PUT', body });
      const made = JSON.parse(text) as Record<'SecretID' | 'ExpirationTime', string>;
      tokens.push({ secret: made.SecretID, expiresAtMs: Date.parse(made.ExpirationTime) });
    }
    this.#tokens = tokens;
  }

  /** One of them at this server, once the server has it. */
  async useOne({ name, http }: NodeDescription): Promise<void> {
    const { asker, absence, random } = this.#options;
    const one = this.#tokens[Math.floor(random() * this.#tokens.length)];
    if (one === undefined) return;
    const wasAway = absence.watch();
    const isOver = Date.now() > one.expiresAtMs + CLOCK_MS;
    const answer = await asker.ask({ http, path: '/v1/acl/token/self', secret: one.secret });
    if (answer?.status === 200) {
      this.goodCount += 1;
      if (isOver) asker.fault(`${name}: a token works though its time is over`);
    } else if (answer?.status === 403) {
      if (Date.now() < one.expiresAtMs)
        asker.fault(`${name}: a token is refused before its time is over: ${answer.text}`);
      else if (wasAway()) this.voidCount += 1;
    }
  }
}
