// Whether the other datacenters reach the primary, for those who judge what they are told meanwhile.

export class Absence {
  /** Since when the primary cannot be reached, by `performance.now`; undefined: it can. */
  #sinceMs: number | undefined;
  #count = 0;

  begin(): void {
    this.#sinceMs = performance.now();
    this.#count += 1;
  }

  /** To be called before anything is mended. */
  end(): void {
    this.#sinceMs = undefined;
  }

  /** Undefined: it can be reached. */
  get lastsMs(): number | undefined {
    return this.#sinceMs === undefined ? undefined : performance.now() - this.#sinceMs;
  }

  /** Begins to watch: what it gives says later whether the primary was away all the time since. */
  watch(): () => boolean {
    const { lastsMs } = this;
    const count = this.#count;
    return () => lastsMs !== undefined && this.lastsMs !== undefined && count === this.#count;
  }
}
