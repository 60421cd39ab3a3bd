// The secret of requests that bring none, at this server: what `acl.tokens.default` says, until somebody who may write
// the agent sets another one, which holds until the server ends: as at deployed servers that are not told to keep it.

export class DefaultToken {
  #secret: string | undefined;

  /** As `acl.tokens.default` has it; undefined: none. */
  constructor(configured: string | undefined) {
    this.#secret = configured;
  }

  get secret(): string | undefined {
    return this.#secret;
  }

  /** Empty: none. */
  set(secret: string): void {
    this.#secret = secret === '' ? undefined : secret;
  }
}
