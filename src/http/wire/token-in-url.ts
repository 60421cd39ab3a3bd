// The warning about secrets in the query string, which end up in the logs of every proxy on the way.
// It never shows the secret, and comes at most once in ten seconds however many requests do it.

import type { Exchange } from './exchange.ts';

const PAUSE_MS = 10_000;

export class TokenInUrlWarning {
  #nextMs = 0;
  #unreported = 0;

  /** Warns when the request has a `token` parameter. */
  maybeWarn(exchange: Exchange): void {
    if (!exchange.query.has('token')) return;
    this.#unreported += 1;
    const nowMs = exchange.parts.clock.monotonicMs();
    if (nowMs < this.#nextMs) return;
    const fields = {
      route: exchange.stats.template,
      client: exchange.client,
      token: '<hidden>',
      requests: this.#unreported,
    };
    exchange.parts.logger.warn(fields, 'token in the query string is deprecated, use the header');
    this.#unreported = 0;
    this.#nextMs = nowMs + PAUSE_MS;
  }
}
