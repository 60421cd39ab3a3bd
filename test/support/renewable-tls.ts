// TLS whose texts a test renews.

import type { TlsInUse, TlsTexts } from '../../cluster/platform/tls-in-use.ts';

export class RenewableTls implements TlsInUse {
  texts: TlsTexts;
  readonly #users: ((texts: TlsTexts) => void)[] = [];

  constructor(texts: TlsTexts) {
    this.texts = texts;
  }

  onRenewed(use: (texts: TlsTexts) => void): void {
    this.#users.push(use);
  }

  renew(texts: TlsTexts): void {
    this.texts = texts;
    for (const use of this.#users) use(texts);
  }
}
